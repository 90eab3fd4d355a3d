"""The distribution of changes to many watches of one resource at once.

A watch whose client keeps up needs no task of its own for each change: it joins the channel of its
resource. The channel follows the history once, makes the lines of a batch once for all watches with
the same view, and passes the same bytes to each connection. A watch leaves the channel when its
client stops reading, or when it must send something else (a bookmark, its end). It then follows the
history alone, from the last revision that it was sent.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from app.domain.errors import Expired
from app.domain.log import Event, Revision
from app.domain.values.identifiers import GroupResource
from app.service.runtime import HistoryRuntime
from app.service.watches import Subscription

TURN_MAX = 200
"""Watches that get their changes in one turn of the event loop; then other tasks run."""


class Push(Protocol):
    """The connection of a response that is sent in chunks.

    `is_ready` is False before the response has begun, and while the client does not read what it
    was sent. `push` sends one chunk that is already framed; it returns False, and sends nothing,
    when the connection is not ready.
    """

    def is_ready(self) -> bool: ...

    def push(self, framed: bytes) -> bool: ...


class LineView(NamedTuple):
    """The facts that make the lines of two watches equal."""

    group: str
    version: str
    definition: int
    namespace: str | None


class Member:
    """A watch in a channel. `after` is the revision up to which all changes were sent to it."""

    __slots__ = ("_channel", "_left", "after", "is_member", "lines", "push", "view")

    def __init__(
        self,
        channel: "Channel",
        *,
        push: Push,
        view: LineView,
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
        """Wait until the watch has left; returns the revision after which it must go on."""
        try:
            await self._left.wait()
        finally:
            self.leave()
        return self.after

    def leave(self) -> None:
        """Leave the channel. No change is sent twice or left out."""
        if self.is_member:
            self.is_member = False
            self.after = self._channel.forget(self)
            self._left.set()


class Channel:
    """All watches of one resource of one history that keep up."""

    def __init__(
        self, runtime: HistoryRuntime, group_resource: GroupResource, closed: Callable[[], None]
    ) -> None:
        self._runtime = runtime
        self._closed = closed
        self._members: dict[Member, None] = {}
        group, resource = group_resource
        self._subscription: Subscription = runtime.subscribe(
            after=runtime.views.revision, group=group, resource=resource
        )
        self._subscription.listen(self._wake)
        self._is_scheduled = False
        self._batch: list[Event] = []
        self._unsent: list[Member] = []
        self._chunks: dict[LineView, bytes] = {}

    def join(
        self,
        *,
        push: Push,
        view: LineView,
        lines: Callable[[Sequence[Event]], bytes],
    ) -> Member:
        """Add a watch to which all changes up to the present revision were sent."""
        after = self._runtime.watches.published
        member = Member(self, push=push, view=view, lines=lines, after=after)
        self._members[member] = None
        self._runtime.watches.guests += 1
        return member

    def forget(self, member: Member) -> Revision:
        """Remove a member; returns the revision up to which all changes were sent to it."""
        del self._members[member]
        self._runtime.watches.guests -= 1
        watches = self._runtime.watches
        is_waiting = self._batch and member.after < self._batch[-1].revision
        if not is_waiting and not self._subscription.has_more:
            # No change for it is pending: it need not search the events since its last change.
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
        """Send the present batch to some members, or begin with the next batch."""
        try:
            if not self._unsent:
                self._batch = self._subscription.take()
                self._unsent = list(self._members) if self._batch else []
                self._chunks = {}
        except Expired:
            for member in tuple(self._members):
                member.leave()
        batch, self._unsent = self._unsent[:TURN_MAX], self._unsent[TURN_MAX:]
        for member in batch:
            if member.is_member and not self._send_changes(member):
                member.leave()
        if not self._unsent:
            self._batch, self._chunks = [], {}
        self._is_scheduled = False
        if self._members and (self._unsent or self._subscription.has_more):
            self._wake()

    def _send_changes(self, member: Member) -> bool:
        """Send a member its new changes; False when it must go on alone."""
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
            # The watch alone meets the same problem, and there it is reported.
            return False
        if chunk and not member.push.push(chunk):
            return False
        member.after = max(member.after, batch[-1].revision)
        return True


class Fanout:
    """The channels of a server."""

    def __init__(self) -> None:
        self._channels: dict[tuple[HistoryRuntime, GroupResource], Channel] = {}

    def channel(self, runtime: HistoryRuntime, group_resource: GroupResource) -> Channel:
        """The channel of a resource; it exists as long as it has members."""
        key = (runtime, group_resource)
        channel = self._channels.get(key)
        if channel is None:
            channel = Channel(runtime, group_resource, lambda: self._forget(key))
            self._channels[key] = channel
        return channel

    def _forget(self, key: tuple[HistoryRuntime, GroupResource]) -> None:
        del self._channels[key]


def framed(chunk: bytes) -> bytes:
    """A chunk in chunked transfer encoding (RFC 9112, 7.1); empty for an empty chunk."""
    return b"%x\r\n%b\r\n" % (len(chunk), chunk) if chunk else b""
