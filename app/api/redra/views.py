"""Views as tables of JSON rows, folded on first request and kept up to date from then on."""

from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.lowlevel

from app.analysis.views import projections_of
from app.domain.errors import NotFound, TooLarge
from app.domain.log import Revision
from app.domain.log.pages import Page
from app.domain.log.projection import Projection, Row, RowKey, Table
from app.domain.values.json_tree import JsonView
from app.service.runtime import HistoryRuntime
from projections import tables
from projections.objects import ObjectsProjection

_PAGE = 2_000


@dataclass(slots=True)
class _Folded:
    """A projection and its rows at its revision, by table."""

    projection: Projection
    rows: dict[str, dict[RowKey, Row]] = field(default_factory=dict)
    lock: anyio.Lock = field(default_factory=anyio.Lock)


class ViewTables:
    """Reads view tables of any history at any revision."""

    def __init__(self, *, kept_max: int) -> None:
        self._kept: dict[tuple[int, str], _Folded] = {}
        self._kept_max = kept_max
        self._tables: dict[str, tuple[str, Table]] = {}
        for name, declared in tables.OF_PROJECTIONS.items():
            for table in declared if name != ObjectsProjection.name else ():
                self._tables[table.name.removeprefix("view_")] = (name, table)

    def tables(self) -> list[tuple[str, str, Table]]:
        """Short name, projection and declaration of each table, by name."""
        return [(name, *self._tables[name]) for name in sorted(self._tables)]

    async def rows(
        self, runtime: HistoryRuntime, name: str, until: Revision
    ) -> tuple[list[Row], Revision]:
        """The rows of a table, sorted by key, and their revision. Raises NotFound."""
        named = self._tables.get(name.removeprefix("view_"))
        if named is None:
            raise NotFound(f'view "{name[:64]}" not found', resource="views", name=name[:64])
        projection_name, table = named
        place = (runtime.life, projection_name)
        folded = self._kept.get(place)
        if folded is None or folded.projection.revision > until:
            then = await runtime.as_of(until)
            folded = _Folded(_empty(projection_name, then.settings))
            if until == runtime.views.revision:
                self._keep(place, folded)
        async with folded.lock:
            await _fold(runtime, folded, until)
            rows = folded.rows.get(table.name, {})
            listed = [rows[key] for key in sorted(rows, key=_sortable)]
            return listed, folded.projection.revision

    def _keep(self, place: tuple[int, str], folded: _Folded) -> None:
        if len(self._kept) >= self._kept_max:
            self._kept.pop(next(iter(self._kept)))
        self._kept[place] = folded


def _empty(name: str, settings: JsonView) -> Projection:
    """The projection of that name, with the switches in the settings, before the first event."""
    return next(view for view in projections_of(settings)() if view.name == name)


def limited(rows: list[Row], limit: int) -> tuple[list[Row], int]:
    """The first rows, and the number of rows left out. Raises TooLarge for a limit below one."""
    if limit < 1:
        raise TooLarge("the limit must be at least 1")
    return rows[:limit], max(0, len(rows) - limit)


async def _fold(runtime: HistoryRuntime, folded: _Folded, until: Revision) -> None:
    projection = folded.projection
    while projection.revision < until:
        events = await runtime.log.read(
            runtime.info.id, after=projection.revision, until=until, limit=_PAGE
        )
        if not events:
            break
        projection.fold_page(Page(events))
        for table, keys in projection.take_changed().items():
            rows = folded.rows.setdefault(table, {})
            for key in keys:
                row = projection.row(table, key)
                if row is None:
                    rows.pop(key, None)
                else:
                    rows[key] = row
        await anyio.lowlevel.checkpoint()


def _sortable(key: RowKey) -> tuple[tuple[bool, Any], ...]:
    return tuple((isinstance(part, str), part) for part in key)
