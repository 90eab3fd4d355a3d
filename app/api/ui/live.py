"""`/ui/h/HISTORY/live`: server-sent events with the present revision of a history.

A stream sends only the last revision; the page then loads itself again, so that it shows what its
reader may see. The number of streams and their pace are bounded.
"""

from collections.abc import AsyncGenerator

import anyio

from app.api.server.limits import LiveBounds
from app.api.server.messages import Stream
from app.domain.errors import BadRequest, TooManyRequests
from app.domain.log import Revision
from app.service.runtime import HistoryRuntime

EVENTS = b"text/event-stream"


class LivePages:
    """The event streams of one server."""

    def __init__(self, bounds: LiveBounds) -> None:
        self._bounds = bounds
        self._is_ended = False
        self._waits: set[anyio.CancelScope] = set()
        self.running = 0

    def end(self) -> None:
        """End all streams, because the server stops; browsers reconnect by themselves."""
        self._is_ended = True
        for wait in list(self._waits):
            wait.cancel()

    def follow(self, runtime: HistoryRuntime, moment: str) -> Stream:
        """The event stream of a history. Raises BadRequest for its past, TooManyRequests."""
        if moment:
            raise BadRequest("only the present can be followed: leave the moment out")
        if self.running >= self._bounds.streams_max:
            raise TooManyRequests(
                f"more than {self._bounds.streams_max} pages follow histories",
                retry_after_seconds=round(self._bounds.beat_seconds),
            )
        return Stream(chunks=self._heads(runtime), content_type=EVENTS)

    async def _heads(self, runtime: HistoryRuntime) -> AsyncGenerator[bytes, None]:
        bounds = self._bounds
        end = anyio.current_time() + bounds.seconds_max
        last = Revision(0)
        self.running += 1
        try:
            with runtime.watches.guest():
                while not self._is_over(runtime) and anyio.current_time() < end:
                    revision = runtime.views.revision
                    if revision > last:
                        yield b"event: head\ndata: %d\n\n" % revision
                        last = revision
                        await self._pause(bounds.pace_seconds)
                    elif not await self._grown(runtime, Revision(last + 1)):
                        yield b": nothing happened\n\n"
        finally:
            self.running -= 1

    def _is_over(self, runtime: HistoryRuntime) -> bool:
        """Whether no event can follow: the server stops, or the history no longer runs here."""
        return self._is_ended or bool(runtime.watches.ended)

    async def _pause(self, seconds: float) -> None:
        with anyio.move_on_after(seconds) as wait:
            self._waits.add(wait)
            try:
                await anyio.sleep_forever()
            finally:
                self._waits.discard(wait)

    async def _grown(self, runtime: HistoryRuntime, revision: Revision) -> bool:
        """Whether the history reaches a revision within `beat_seconds`."""
        with anyio.CancelScope() as wait:
            self._waits.add(wait)
            try:
                return await runtime.wait_for(revision, self._bounds.beat_seconds)
            finally:
                self._waits.discard(wait)
        return True
