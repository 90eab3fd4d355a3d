"""Folding in parts equals folding at once; a state hash is a function of the rows."""

from collections.abc import Callable, Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.devices.cel_selectors import CelCompiler
from app.domain.log import Event
from app.domain.log.pages import Page
from app.domain.log.projection import Projection, Row, RowKey, RowSetHash, row_part
from projections import all_projections
from tests import draws
from tests.properties.event_worlds import world

Rows = dict[tuple[str, RowKey], Row]
COMPILER = CelCompiler(detailed_errors=True)
NAMES = [view.name for view in all_projections()]
WORLDS = st.tuples(st.integers(0, 10**6), st.integers(1, 120))


def fresh(name: str) -> Projection:
    """An empty projection with this name."""
    views = all_projections(compiler=COMPILER)
    return next(view for view in views if view.name == name)


def materialise(view: Projection, rows: Rows) -> None:
    """Applies the changed rows of a view, as the projector does."""
    for table, keys in view.take_changed().items():
        for key in keys:
            row = view.row(table, key)
            if row is None:
                rows.pop((table, key), None)
            else:
                rows[(table, key)] = row


def fold_at_once(name: str, events: Iterable[Event]) -> tuple[Projection, Rows]:
    """Folds all events, then materialises once."""
    view, rows = fresh(name), {}
    for event in events:
        view.fold(event)
    materialise(view, rows)
    return view, rows


def with_each_view(test: Callable[..., None]) -> Callable[..., None]:
    """Runs a law for each projection."""
    return pytest.mark.parametrize("name", NAMES)(
        settings(max_examples=draws.examples(60), deadline=None)(test)
    )


@with_each_view
@given(chosen=WORLDS, cuts=st.lists(st.integers(1, 40), max_size=12))
def test_rows_do_not_depend_on_batches(name: str, chosen: tuple[int, int], cuts: list[int]) -> None:
    events = world(*chosen)
    view, rows = fresh(name), {}
    sizes = iter(cuts)
    left = next(sizes, len(events))
    for event in events:
        view.fold(event)
        left -= 1
        if left <= 0:
            materialise(view, rows)
            left = next(sizes, len(events))
    materialise(view, rows)
    whole, expected = fold_at_once(name, events)
    assert rows == expected
    assert view.state_hash() == whole.state_hash()
    assert view.revision == whole.revision == events[-1].revision


@with_each_view
@given(chosen=WORLDS, cut=st.integers(0, 120))
def test_a_snapshot_and_the_tail_equal_the_whole(
    name: str, chosen: tuple[int, int], cut: int
) -> None:
    events = world(*chosen)
    before, rows = fold_at_once(name, events[:cut])
    state = before.dump()
    after = fresh(name)
    after.load(state)
    assert after.revision == before.revision
    assert after.state_hash() == before.state_hash()
    after.take_changed()
    for event in events[cut:]:
        after.fold(event)
    materialise(after, rows)
    whole, expected = fold_at_once(name, events)
    assert rows == expected
    assert after.state_hash() == whole.state_hash()
    assert after.dump() == whole.dump()


@settings(max_examples=draws.examples(120), deadline=None)
@given(chosen=WORLDS, cuts=st.lists(st.integers(0, 40), max_size=12))
def test_shared_pages_fold_to_what_their_events_fold_to(
    chosen: tuple[int, int], cuts: list[int]
) -> None:
    events = world(*chosen)
    paged = all_projections(compiler=COMPILER)
    begin = 0
    for size in (*cuts, len(events)):
        page = Page(events[begin : begin + size])
        for view in paged:
            view.fold_page(page)
        begin += size
    for view in paged:
        rows: Rows = {}
        materialise(view, rows)
        single, expected = fold_at_once(view.name, events)
        assert view.revision == single.revision
        assert rows == expected
        assert view.state_hash() == single.state_hash()
        assert view.dump() == single.dump()


@with_each_view
@given(chosen=WORLDS)
def test_a_loaded_snapshot_offers_all_rows(name: str, chosen: tuple[int, int]) -> None:
    whole, expected = fold_at_once(name, world(*chosen))
    loaded, rows = fresh(name), {}
    loaded.load(whole.dump())
    materialise(loaded, rows)
    assert rows == expected


@with_each_view
@given(chosen=WORLDS, asked=st.integers(1, 20))
def test_the_state_hash_is_that_of_the_rows(name: str, chosen: tuple[int, int], asked: int) -> None:
    events = world(*chosen)
    view, rows = fresh(name), {}
    for event in events:
        view.fold(event)
        if event.revision % asked == 0:
            view.state_hash()
        if event.revision % (asked + 3) == 0:
            materialise(view, rows)
    materialise(view, rows)
    total = RowSetHash()
    for (table, key), row in rows.items():
        total.put(table, key, row)
    assert view.state_hash() == total.text()


@with_each_view
@given(chosen=WORLDS)
def test_rows_have_the_declared_columns(name: str, chosen: tuple[int, int]) -> None:
    view, rows = fold_at_once(name, world(*chosen))
    tables = {table.name: table for table in view.tables()}
    for (table, key), row in rows.items():
        assert list(row) == [column.name for column in tables[table].columns]
        assert tuple(row[column] for column in tables[table].key) == key
        for column in tables[table].columns:
            assert _fits(column.type, row[column.name]), (column, row[column.name])


def _fits(type: str, value: object) -> bool:
    match type:
        case "text" | "decimal":
            return isinstance(value, str)
        case "integer" | "instant":
            return value is None or (isinstance(value, int) and not isinstance(value, bool))
        case "boolean":
            return isinstance(value, bool)
        case _:
            return type == "json"


def test_row_is_hashed_as_the_database_can_hold_it() -> None:
    assert row_part("t", ("a\0", 1), {"name": "a\0", "n": 1}) == row_part(
        "t", ("a\u2400", 1), {"name": "a\u2400", "n": 1}
    )
