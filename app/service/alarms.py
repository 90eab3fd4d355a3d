"""Alarms: when something is due in closed histories, kept beside their views.

A history is closed while it is not used, and opened again when one of its controllers has
something to do: an eviction after its `tolerationSeconds`, a retry. The alarm outlives the
process. While a history is open its alarm is "now". A history that was open when its process
ended, for any reason, is opened at the next start and closed again with the right instant.

    open ──close──▶ closed with an alarm ──the instant, or the next start after it──▶ open
      └────────close, nothing due──▶ closed without one
"""

from collections.abc import Iterable

from app.domain.errors import LogUnavailable
from app.domain.log import HistoryId, HistoryInfo, Revision
from app.domain.values.timestamps import Instant
from app.ports import ViewStore

_VERSION = 1
_NOW = Instant(0)
_HEAD = Revision(2**62)
"""A revision beyond the end of any log: loads the newest alarm."""


class Alarms:
    """The alarms of closed histories; with a `ViewStore` they outlive the process.

    `controllers` are those that this process runs, all when empty: processes that share the work
    keep separate alarms.
    """

    def __init__(self, views: ViewStore | None, controllers: Iterable[str] = ()) -> None:
        self._views = views
        self._kind = " ".join(["due", *sorted(controllers)])
        self._instants: dict[HistoryId, Instant] = {}

    def is_due(self, now: Instant) -> bool:
        """Whether the alarm of any history has come."""
        return any(instant <= now for instant in self._instants.values())

    def due(self, now: Instant) -> set[HistoryId]:
        """The histories whose alarm has come; it stays until they are open or forgotten."""
        return {history for history, instant in self._instants.items() if instant <= now}

    def forget(self, histories: Iterable[HistoryId]) -> None:
        """Remove the alarms of histories that cannot be opened."""
        for history in histories:
            self._instants.pop(history, None)

    async def note_open(self, info: HistoryInfo, revision: Revision) -> None:
        """Note that the history is open: its stored alarm is "now", for a process that ends."""
        self._instants.pop(info.id, None)
        await self._keep(info, revision, _NOW)

    async def note_closed(self, info: HistoryInfo, revision: Revision, due: Instant | None) -> None:
        """Note that the history is closed until `due`, or for good when nothing is due.

        Nothing becomes due in a history whose time stands still while it is closed.
        """
        if info.has_own_time:
            due = None
        if due is None:
            self._instants.pop(info.id, None)
        else:
            self._instants[info.id] = due
        await self._keep(info, revision, due)

    async def recall(self, histories: Iterable[HistoryInfo]) -> None:
        """Load the alarms that an earlier process kept for live histories."""
        if self._views is None:
            return
        for info in histories:
            if info.is_decided_elsewhere or info.id in self._instants:
                continue
            kept = await self._views.load_snapshot(info.id, self._kind, _VERSION, until=_HEAD)
            if kept is not None:
                self._instants[info.id] = Instant(int(kept[1]))

    async def _keep(self, info: HistoryInfo, revision: Revision, due: Instant | None) -> None:
        """Store an alarm. An unavailable store is ignored: this process still has the alarm."""
        if self._views is None or info.is_decided_elsewhere:
            return
        try:
            await self._views.clear(info.id, self._kind, _VERSION)
            if due is not None:
                state = str(int(due)).encode()
                await self._views.save_snapshot(info.id, self._kind, _VERSION, revision, state)
        except LogUnavailable:
            return
