"""When something is due in histories that are closed, kept beside their views.

A history is closed while nobody uses it, and opened again when one of its controllers has
something to do: an eviction after its `tolerationSeconds`, a retry. That instant outlives the
process. While a history is open its alarm says "now", so that one that was open when its process
ended, in whatever way, is opened at the next start and closed again with the right instant.

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
"""No log ends there: the newest alarm is meant, whatever was stored since."""


class Alarms:
    """The alarms of closed histories; with a `ViewStore` they outlive the process.

    `controllers` are those that this process runs, all when empty: processes that share the work
    keep alarms of their own.
    """

    def __init__(self, views: ViewStore | None, controllers: Iterable[str] = ()) -> None:
        self._views = views
        self._kind = " ".join(["due", *sorted(controllers)])
        self._instants: dict[HistoryId, Instant] = {}

    def is_due(self, now: Instant) -> bool:
        """True when the alarm of a history has come."""
        return any(instant <= now for instant in self._instants.values())

    def take_due(self, now: Instant) -> set[HistoryId]:
        """The histories whose alarms have come, which are then set no more."""
        due = {history for history, instant in self._instants.items() if instant <= now}
        for history in due:
            del self._instants[history]
        return due

    async def note_open(self, info: HistoryInfo, revision: Revision) -> None:
        """The history is open: nothing waits for it but the end of this process."""
        self._instants.pop(info.id, None)
        await self._keep(info, revision, _NOW)

    async def note_closed(self, info: HistoryInfo, revision: Revision, due: Instant | None) -> None:
        """The history is closed until the instant; for good when nothing is due.

        Nothing ever is in one whose time stands still while it is closed.
        """
        if info.has_own_time:
            due = None
        if due is None:
            self._instants.pop(info.id, None)
        else:
            self._instants[info.id] = due
        await self._keep(info, revision, due)

    async def recall(self, histories: Iterable[HistoryInfo]) -> None:
        """Set what an earlier process kept for live histories."""
        if self._views is None:
            return
        for info in histories:
            if info.is_decided_elsewhere or info.id in self._instants:
                continue
            kept = await self._views.load_snapshot(info.id, self._kind, _VERSION, until=_HEAD)
            if kept is not None:
                self._instants[info.id] = Instant(int(kept[1]))

    async def _keep(self, info: HistoryInfo, revision: Revision, due: Instant | None) -> None:
        """Keep an alarm; a store that takes nothing costs it only if the process ends too."""
        if self._views is None or info.is_decided_elsewhere:
            return
        try:
            await self._views.clear(info.id, self._kind, _VERSION)
            if due is not None:
                state = str(int(due)).encode()
                await self._views.save_snapshot(info.id, self._kind, _VERSION, revision, state)
        except LogUnavailable:
            return
