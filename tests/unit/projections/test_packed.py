"""Compressed and shared values are those that were given; views with such parts show the same."""

import random
import threading

import msgspec
import pytest

from app.domain.log import Event, ObjectKey
from app.domain.log.pages import Page
from app.domain.log.projection import Projection, Row, RowKey
from projections import all_projections, claims, decisions, packed, timeline
from projections.loading import shared
from projections.packed import PackedList, Packer
from tests.properties.event_worlds import world


class Item(msgspec.Struct, frozen=True, array_like=True):
    number: int
    text: str


def test_packed_bytes_are_those_that_were_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "SAMPLE_USES_MAX", 3)
    pick, packer = random.Random(1), Packer()
    values = [pick.randbytes(n) * 9 for n in (0, 1, 40, 5_000)] + [b"", b'{"kind":"Pod"}' * 9000]
    made = [packer.pack(value) for value in values]
    assert [each.plain for each in made] == values
    assert len({each.sample for each in made}) == 2


@pytest.mark.parametrize("plain_max", [0, 1, 300])
def test_packed_list_is_a_list(plain_max: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "BLOCKS_MAX", 1)
    pick = random.Random(plain_max)
    made, model = PackedList(Item, plain_max), list[Item]()
    for _ in range(40):
        more = [Item(pick.randrange(9), "x" * pick.randrange(5)) for _ in range(pick.randrange(40))]
        made.extend(more)
        model += more
        assert (len(made), made[:3], made[-2:]) == (len(model), model[:3], model[-2:])
        for number in pick.sample(range(-len(model), len(model)), min(8, len(model))):
            assert made[number] == model[number]
    assert list(made) == model
    for first in pick.sample(range(len(model) + 1), 9):
        assert [item for piece in made.pieces(first) for item in piece] == model[first:]
    for number in (len(model), -len(model) - 1):
        with pytest.raises(IndexError):
            made[number]


def test_parts_of_a_packed_list_are_kept_and_joined_again() -> None:
    pick = random.Random(1)
    made, model, joined = PackedList(Item, 300), list[Item](), PackedList(Item, 300)
    kept = 0
    for turn in range(60):
        more = [Item(pick.randrange(9), "x") for _ in range(pick.randrange(400))]
        made.extend(more)
        model += more
        if turn % 5 == 0:
            end = made.seal()
            joined.extend_packed(made.blocks(kept))
            kept = end
            assert list(joined) == model
        number = pick.randrange(len(model))
        assert (made[number], len(made)) == (model[number], len(model))
    assert list(made) == model


def test_packed_list_can_be_read_by_one_thread_while_another_appends() -> None:
    made, stopped = PackedList(Item, 3), threading.Event()

    def append() -> None:
        for number in range(400):
            made.extend(Item(number * 7 + each, "") for each in range(7))
        stopped.set()

    thread = threading.Thread(target=append)
    thread.start()
    while not stopped.is_set():
        count = len(made)
        assert [item.number for item in made[:count:97]] == list(range(0, count, 97))
    thread.join()
    assert [item.number for item in made] == list(range(2_800))


def rows_of(view: Projection, events: list[Event]) -> dict[tuple[str, RowKey], Row | None]:
    """The rows of a view that folds pages of 16 events and is read after each."""
    rows: dict[tuple[str, RowKey], Row | None] = {}
    for first in range(0, len(events), 16):
        view.fold_page(Page(events[first : first + 16]))
        for table, keys in view.take_changed().items():
            rows |= {(table, key): view.row(table, key) for key in keys}
    return rows


def packed_parts(view: Projection) -> int:
    """The blocks and bodies of a view that are compressed."""
    blocks = [len(part._blocks) for part in vars(view).values() if isinstance(part, PackedList)]
    return sum(blocks) + repr(vars(view)).count("Packed(")


def test_views_with_compressed_parts_show_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("claims", "decisions", "timeline")
    events = list(world(7, 400))
    plain = {view.name: view for view in all_projections() if view.name in names}
    shown = {name: rows_of(view, events) for name, view in plain.items()}
    for module in (claims, decisions, timeline):
        monkeypatch.setattr(module, "PLAIN_MAX", 1)
    monkeypatch.setattr(claims, "LATEST_MAX", 1)
    monkeypatch.setattr(packed, "BLOCK", 4)
    for view in all_projections():
        if view.name not in names:
            continue
        usual = plain[view.name]
        assert rows_of(view, events) == shown[view.name]
        assert view.dump() == usual.dump()
        assert {key: view.row(*key) for key in shown[view.name]} == {
            key: usual.row(*key) for key in shown[view.name]
        }
        again = type(view)()
        again.load(view.dump())
        assert again.state_hash() == usual.state_hash() == view.state_hash()
        assert again.dump() == usual.dump()
        assert packed_parts(view) > 3


def test_of_many_claims_all_but_the_latest_are_compressed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "PLAIN_MAX", 3)
    monkeypatch.setattr(claims, "LATEST_MAX", 2)
    folded, loaded = claims.ClaimsProjection(), claims.ClaimsProjection()
    folded.fold_page(Page(world(7, 400)))
    loaded.load(folded.dump())
    for view in (folded, loaded):
        bodies = [claim.body for claim in view._claims.values()]
        assert len(bodies) > 3
        assert sum(isinstance(body, bytes) for body in bodies) <= 2


def test_shared_values_are_equal_and_have_their_texts_in_common() -> None:
    def decoded(kind: type) -> object:
        item = Item(number=7, text="text of an item")
        value = (ObjectKey("", "pods", "ns of many", "a"), [item], (item, None, True, b"bytes"))
        return msgspec.msgpack.decode(msgspec.msgpack.encode(value), type=kind)

    kind = tuple[ObjectKey, list[Item], tuple[Item, None, bool, bytes]]
    before, first, second = decoded(kind), shared(decoded(kind)), shared(decoded(kind))
    assert before == first == second
    assert [type(part) for part in before] == [type(part) for part in first]
    assert all(one is other for one, other in zip(first[0], second[0], strict=True))
    assert first[2][0].text is second[2][0].text


def test_loaded_views_have_texts_in_common() -> None:
    names: dict[str, set[int]] = {}
    loaded = []
    for view in all_projections():
        if view.name not in ("timeline", "taints", "counters", "claims"):
            continue
        view.fold_page(Page(world(7, 400)))
        again = type(view)()
        again.load(view.dump())
        loaded.append(again)
        for place in _places(again):
            for text in place:
                names.setdefault(text, set()).add(id(text))
    assert len(loaded) == 4
    assert len(names) > 20
    assert {text: len(each) for text, each in names.items() if len(each) > 1} == {}


def _places(view: Projection) -> list[tuple[str, ...]]:
    """The keys under which a view keeps pods, claims and other objects."""
    kept = [getattr(view, name, ()) for name in ("_states", "_claims", "_pods")]
    return [key for part in kept for key in part]
