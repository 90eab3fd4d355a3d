"""Telling many watches of one resource at once.

A watch whose client keeps up needs no task of its own for each change: it joins the channel of its
resource. The channel follows the history once, makes the lines of a batch once for all watches that
see them alike, and hands the same bytes to each connection. A watch leaves when its client stops
taking what it is sent, or when it has something else to say (a bookmark, its end); then it follows
the history by itself, from the revision it was told last.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from app.domain.errors import Expired
from app.domain.log import Event, Revision
from app.service.runtime import HistoryRuntime
from app.service.watches import Place, Subscription

TURN_MAX = 200
"""How many watches are told in one turn of the loop; then others get theirs."""


class Push(Protocol):
    """The connection under an answer that is being sent in chunks.

    `is_ready` is False before the answer has begun, and while the client does not take what it was
    sent. `push` sends one chunk, already framed; it returns False, and sends nothing, when it is
    not ready.
    """

    def is_ready(self) -> bool: ...

    def push(self, framed: bytes) -> bool: ...


class View(NamedTuple):
    """What makes the lines of two watches the same: group, version, definition, namespace."""

    group: str
    version: str
    definition: int
    namespace: str | None


class Member:
    """A watch in a channel. `after` is the revision up to which it was told everything."""

    __slots__ = ("_channel", "_left", "after", "is_member", "lines", "push", "view")

    def __init__(
        self,
        channel: "Channel",
        *,
        push: Push,
        view: View,
        lines: Callable[[Sequence[Event]], bytes],
        after: Revision,
    ) -> None:
        self._channel = channel
        self._left = asyncio.Event()
        self.push = push
        self.view = view
        self.lines = lines
        self.after = after
        self.is_member = True

    async def wait_left(self) -> Revision:
        """Wait until the watch has left; returns the revision from which it has to go on."""
        try:
            await self._left.wait()
        finally:
            self.leave()
        return self.after

    def leave(self) -> None:
        """Go back to following alone. Nothing is told twice or left out."""
        if self.is_member:
            self.is_member = False
            self.after = self._channel.forget(self)
            self._left.set()


class Channel:
    """All watches of one resource of one history that keep up."""

    def __init__(self, runtime: HistoryRuntime, place: Place, closed: Callable[[], None]) -> None:
        self._runtime = runtime
        self._closed = closed
        self._members: dict[Member, None] = {}
        group, resource = place
        self._subscription: Subscription = runtime.subscribe(
            after=runtime.views.revision, group=group, resource=resource
        )
        self._subscription.listen(self._wake)
        self._is_scheduled = False
        self._batch: list[Event] = []
        self._untold: list[Member] = []
        self._chunks: dict[View, bytes] = {}

    def join(
        self,
        *,
        push: Push,
        view: View,
        lines: Callable[[Sequence[Event]], bytes],
    ) -> Member:
        """Take in a watch that was told everything up to the present revision."""
        after = self._runtime.watches.published
        member = Member(self, push=push, view=view, lines=lines, after=after)
        self._members[member] = None
        self._runtime.watches.guests += 1
        return member

    def forget(self, member: Member) -> Revision:
        """A member leaves; returns the revision up to which it was told everything."""
        del self._members[member]
        self._runtime.watches.guests -= 1
        watches = self._runtime.watches
        is_waiting = self._batch and member.after < self._batch[-1].revision
        if not is_waiting and not self._subscription.has_more:
            # There is nothing for it up to here: it need not look through what others did since.
            member.after = max(member.after, watches.published)
        if not self._members:
            self._subscription.close()
            self._closed()
        return member.after

    def _wake(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        """Tell some members of the batch that is under way, or begin with the next one."""
        try:
            if not self._untold:
                self._batch = self._subscription.take()
                self._untold = list(self._members) if self._batch else []
                self._chunks = {}
        except Expired:
            for member in tuple(self._members):
                member.leave()
        batch, self._untold = self._untold[:TURN_MAX], self._untold[TURN_MAX:]
        for member in batch:
            if member.is_member and not self._tell(member):
                member.leave()
        if not self._untold:
            self._batch, self._chunks = [], {}
        self._is_scheduled = False
        if self._members and (self._untold or self._subscription.has_more):
            self._wake()

    def _tell(self, member: Member) -> bool:
        """Send a member what is new to it; False when it has to go on alone."""
        batch = self._batch
        try:
            if member.after < batch[0].revision:
                chunk = self._chunks.get(member.view)
                if chunk is None:
                    chunk = self._chunks[member.view] = framed(member.lines(batch))
            else:
                news = [event for event in batch if event.revision > member.after]
                chunk = framed(member.lines(news))
        except Exception:
            # It meets the same problem alone, where there is somebody to hear of it.
            return False
        if chunk and not member.push.push(chunk):
            return False
        member.after = max(member.after, batch[-1].revision)
        return True


class Fanout:
    """The channels of a server."""

    def __init__(self) -> None:
        self._channels: dict[tuple[HistoryRuntime, Place], Channel] = {}

    def channel(self, runtime: HistoryRuntime, place: Place) -> Channel:
        """The channel of a resource; it is there as long as it has members."""
        key = (runtime, place)
        channel = self._channels.get(key)
        if channel is None:
            channel = Channel(runtime, place, lambda: self._forget(key))
            self._channels[key] = channel
        return channel

    def _forget(self, key: tuple[HistoryRuntime, Place]) -> None:
        del self._channels[key]


def framed(chunk: bytes) -> bytes:
    """A chunk as chunked transfer encoding writes it (RFC 9112, 7.1); empty for an empty one."""
    return b"%x\r\n%b\r\n" % (len(chunk), chunk) if chunk else b""
