"""Replay: folds a history up to a moment. Also the bounds, pages, progress of all replays."""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from app.domain.log import Event, HistoryInfo, Revision
from app.domain.log.event import EVENTS_PAGE
from app.domain.log.pages import Page
from app.domain.log.projection import Projection
from app.domain.log.upcasting import StoredRow
from app.domain.values import timestamps
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from app.ports import EventLog
from app.service.folding import projecting

Progress = Callable[[str, Revision, Revision], None]
"""Called with the kind of work, the revision reached and the revision to reach."""

_SUMMED = frozenset(("objects", "inventory", "claims", "decisions"))
"""The views that a fold report summarises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayBounds:
    """Bounds of one replay.

    `page_max` events are read at once. A replay that keeps its events makes at most `events_max`.
    Runs of one recording share at most `shared_events_max` events, some 10 KB each with their
    trees; half of them may be those of the recording. A verification keeps events with bodies of
    at most `kept_bytes_max` from its first pass for the second one.
    """

    page_max: int = EVENTS_PAGE
    events_max: int = 2_000_000
    shared_events_max: int = 40_000
    kept_bytes_max: int = 256 * 1024**2


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldReport:
    """The state at a moment in numbers, and the state hash of every view."""

    history: str
    revision: Revision
    time: Instant
    objects: Mapping[str, int]
    pools: Mapping[str, int]
    devices: int
    claims: Mapping[str, int]
    pods: Mapping[str, int]
    decisions: Mapping[str, int]
    state_hashes: Mapping[str, str]

    def to_json(self) -> JsonObject:
        """The JSON form for the command line and the API."""
        return {
            "history": self.history,
            "revision": self.revision,
            "time": timestamps.micro_text(self.time),
            "objects": dict(self.objects),
            "pools": dict(self.pools),
            "devices": self.devices,
            "claims": dict(self.claims),
            "pods": dict(self.pods),
            "decisions": dict(self.decisions),
            "stateHashes": dict(self.state_hashes),
        }


def silent(doing: str, revision: Revision, until: Revision) -> None:
    """Report nothing."""


async def fold(
    log: EventLog,
    history: HistoryInfo,
    *,
    until: Revision,
    views: Sequence[Projection],
    bounds: ReplayBounds,
    progress: Progress = silent,
) -> FoldReport:
    """Fold fresh views up to `until` (or the head, when that comes first); returns a report."""
    time = Instant(0)
    after = Revision(0)
    async for events in pages(log, history, until, bounds):
        page = Page(events)
        for view in views:
            projecting.fold(view, page)
        after, time = events[-1].revision, events[-1].stamp.time
        progress("folding", after, until)
    rows: dict[str, list[JsonObject]] = {}
    for view in views:
        if view.name in _SUMMED:
            rows |= _rows(view)
    pods = (
        msgspec.json.decode(row["object"])
        for row in rows.get("view_objects", ())
        if row["resource"] == "pods"
    )
    return FoldReport(
        history=history.name,
        revision=after,
        time=time,
        objects=_count(row["resource"] for row in rows.get("view_objects", ())),
        pools=_count(row["state"] for row in rows.get("view_pools", ())),
        devices=len(rows.get("view_devices", ())),
        claims=_count(row["state"] for row in rows.get("view_claims", ())),
        pods=_count(_pod_state(pod) for pod in pods),
        decisions=_count(row["outcome"] for row in rows.get("view_decisions", ())),
        state_hashes={view.name: view.state_hash() for view in views},
    )


async def pages(
    log: EventLog,
    history: HistoryInfo,
    until: Revision,
    bounds: ReplayBounds,
    *,
    after: Revision = Revision(0),
) -> AsyncIterator[list[Event]]:
    """The events of a history above `after` up to `until`, a page at a time."""
    while after < until:
        page = await log.read(history.id, after=after, limit=bounds.page_max, until=until)
        if not page:
            return
        yield page
        after = page[-1].revision


async def stored_pages(
    log: EventLog, history: HistoryInfo, until: Revision, bounds: ReplayBounds
) -> AsyncIterator[list[StoredRow]]:
    """The rows of a history as stored, a page at a time."""
    after = Revision(0)
    while after < until:
        page = await log.read_stored(history.id, after=after, limit=bounds.page_max, until=until)
        if not page:
            return
        yield page
        after = page[-1].event.revision


def _rows(view: Projection) -> dict[str, list[JsonObject]]:
    """All rows of a fresh view, by table, sorted by key."""
    tables: dict[str, list[JsonObject]] = {}
    for table, keys in view.take_changed().items():
        rows = (view.row(table, key) for key in sorted(keys))
        tables[table] = [row for row in rows if row is not None]
    return tables


def _count(words: Iterable[str]) -> Mapping[str, int]:
    return dict(sorted(Counter(words).items()))


def _pod_state(pod: JsonObject) -> str:
    phase = meta.phase(pod) or "Pending"
    if phase == "Pending" and core.node_name(pod):
        return "Bound"
    return phase
