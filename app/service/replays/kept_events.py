"""The events that the first pass of a verification has checked, kept for the second one.

So the second pass judges the very events whose rows were checked, and the store is read once. The
bodies that are kept are bounded: in a long history, the second pass reads the rest again.
"""

from collections.abc import AsyncIterator, Iterator, Sequence

from msgspec.structs import replace

from app.domain.log import Event, HistoryInfo, Revision
from app.ports import EventLog
from app.service.replays.replaying import ReplayBounds, pages


class KeptEvents:
    """Pages of events from the first one on, without gaps; at most `bytes_max` of their bodies."""

    def __init__(self, bytes_max: int) -> None:
        self._left = bytes_max
        self._pages: list[Sequence[Event]] = []

    def keep(self, events: Sequence[Event]) -> bool:
        """Keep the next page; false, then and ever after, when it is beyond the bound."""
        size = sum(len(event.body) for event in events)
        if size > self._left:
            self._left = -1
            return False
        self._left -= size
        self._pages.append(events)
        return True

    def read(self) -> Iterator[list[Event]]:
        """The kept pages; their events are copies, so decoded trees are dropped with a page."""
        for page in self._pages:
            yield [replace(event, tree=None, reading=None) for event in page]

    async def pages(
        self, log: EventLog, history: HistoryInfo, until: Revision, bounds: ReplayBounds
    ) -> AsyncIterator[list[Event]]:
        """The events of the history up to `until`: the kept ones, and the rest from the log."""
        after = Revision(0)
        for page in self.read():
            if page[-1].revision > until:
                page = [event for event in page if event.revision <= until]
            if not page:
                return
            yield page
            after = page[-1].revision
        async for page in pages(log, history, until, bounds, after=after):
            yield page
