"""Materialised views in memory; for replays without a database and for tests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from app.domain.log import HistoryId, Revision
from app.domain.log.projection import Table, row_part, sum_text
from app.ports import StoredRows


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCheckpoint:
    """The checkpoint of a projection: the revision up to which its rows are written."""

    projection: str
    version: int
    revision: Revision
    state_hash: str


_Key = tuple[object, ...]


class MemoryViewStore:
    """A ViewStore. `projections` maps the name of a projection to its declared tables."""

    def __init__(self, projections: Mapping[str, Sequence[Table]]) -> None:
        self._projections = {name: tuple(tables) for name, tables in projections.items()}
        self._tables = {
            table.name: table for tables in self._projections.values() for table in tables
        }
        self._rows: dict[tuple[HistoryId, str], dict[_Key, dict[str, object]]] = {}
        self._checkpoints: dict[tuple[HistoryId, str, int], MemoryCheckpoint] = {}
        self._snapshots: dict[tuple[HistoryId, str, int], dict[Revision, bytes]] = {}

    async def checkpoint(
        self, history: HistoryId, projection: str, version: int
    ) -> MemoryCheckpoint | None:
        """The checkpoint of this version of a projection."""
        return self._checkpoints.get((history, projection, version))

    async def checkpoints(self, history: HistoryId) -> list[MemoryCheckpoint]:
        """All checkpoints of a history, sorted by projection and version."""
        return [
            self._checkpoints[place] for place in sorted(self._checkpoints) if place[0] == history
        ]

    async def write(
        self,
        history: HistoryId,
        projection: str,
        version: int,
        *,
        after: Revision,
        revision: Revision,
        state_hash: str,
        upserts: Mapping[str, Sequence[Mapping[str, object]]],
        deletes: Mapping[str, Sequence[tuple[object, ...]]],
    ) -> bool:
        """Write rows and advance the checkpoint; False when it is not at `after`.

        The first write of a version (`after` 0) replaces the rows of other versions.
        """
        place = (history, projection, version)
        checkpoint = self._checkpoints.get(place)
        if (0 if checkpoint is None else checkpoint.revision) != after:
            return False
        if checkpoint is None:
            self._remove(history, projection)
        for name, keys in deletes.items():
            rows = self._rows_of(history, name)
            for key in keys:
                rows.pop(tuple(key), None)
        for name, changed in upserts.items():
            rows = self._rows_of(history, name)
            key_columns = self._tables[name].key
            for row in changed:
                rows[tuple(row[column] for column in key_columns)] = dict(row)
        self._checkpoints[place] = MemoryCheckpoint(
            projection=projection, version=version, revision=revision, state_hash=state_hash
        )
        return True

    async def clear(self, history: HistoryId, projection: str, version: int) -> None:
        """Remove checkpoint and snapshots of this version, and the rows if it wrote them."""
        self._snapshots.pop((history, projection, version), None)
        if self._checkpoints.pop((history, projection, version), None) is not None:
            self._remove(history, projection)

    async def rows(self, history: HistoryId, table: str) -> list[dict[str, object]]:
        """All rows of one view table, sorted by key."""
        rows = self._rows_of(history, table)
        return [
            {name: _decoded(value) for name, value in rows[key].items()} for key in sorted(rows)
        ]

    async def hash_rows(
        self, history: HistoryId, projection: str, version: int, *, rows_max: int
    ) -> StoredRows:
        """The hash of all stored rows of a projection, with the checkpoint of this version."""
        checkpoint = self._checkpoints.get((history, projection, version))
        rows = [
            (table, row)
            for table in self._projections[projection]
            for row in self._rows_of(history, table.name).values()
        ]
        if len(rows) > rows_max:
            return StoredRows(checkpoint=checkpoint, hash=None, count=len(rows))
        total = sum(row_part(table.name, table.key_of(row), row) for table, row in rows)
        return StoredRows(checkpoint=checkpoint, hash=sum_text(total), count=len(rows))

    async def save_snapshot(
        self, history: HistoryId, projection: str, version: int, revision: Revision, state: bytes
    ) -> None:
        """Store a snapshot of a folded state."""
        self._snapshots.setdefault((history, projection, version), {})[revision] = state

    async def load_snapshot(
        self, history: HistoryId, projection: str, version: int, *, until: Revision
    ) -> tuple[Revision, bytes] | None:
        """The newest snapshot at or before `until`."""
        kept = self._snapshots.get((history, projection, version), {})
        newest = max((revision for revision in kept if revision <= until), default=None)
        return None if newest is None else (newest, kept[newest])

    async def kept_versions(self, history: HistoryId, projection: str) -> list[int]:
        """The versions of a projection of which snapshots are kept, sorted."""
        places = sorted(place for place, kept in self._snapshots.items() if kept)
        return [version for *place, version in places if place == [history, projection]]

    def _rows_of(self, history: HistoryId, table: str) -> dict[_Key, dict[str, object]]:
        return self._rows.setdefault((history, self._tables[table].name), {})

    def _remove(self, history: HistoryId, projection: str) -> None:
        for table in self._projections.get(projection, ()):
            self._rows.pop((history, table.name), None)
        for place in [place for place in self._checkpoints if place[:2] == (history, projection)]:
            del self._checkpoints[place]


def _decoded(value: object) -> object:
    return msgspec.json.decode(value) if isinstance(value, msgspec.Raw) else value
