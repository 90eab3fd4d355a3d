"""Watches: the present objects, then every change, in order and once. Parity: api.md 7.

A watch takes its snapshot and subscribes in one step, so that no change is lost between them. A
change is encoded once for all watchers that see it in the same version. Watchers that keep up get
their changes together (`app.api.kubernetes.fanout`). A watcher that does not read what it is sent
is cut off; the server never waits for it.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from functools import partial

import anyio
import anyio.lowlevel

from app.api.kubernetes import first_states, status
from app.api.kubernetes.fanout import Fanout, LineView, Member, Push
from app.api.kubernetes.first_states import FirstStates
from app.api.kubernetes.negotiation import Shape
from app.api.kubernetes.parameters import ListOptions
from app.api.kubernetes.representations import Representations, Target, encode
from app.api.kubernetes.selection import Selection
from app.api.kubernetes.timelines import Timeline
from app.api.kubernetes.watch_lines import Frames, bookmark, line
from app.api.server.messages import Stream
from app.domain.errors import Expired, RedraError, TooManyRequests
from app.domain.log import Event, EventType, ObjectKey, Revision
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject
from app.service import watches
from app.service.watches import Subscription

_WORDS = {
    EventType.OBJECT_CREATED: b"ADDED",
    EventType.OBJECT_UPDATED: b"MODIFIED",
    EventType.OBJECT_DELETED: b"DELETED",
}
_SPREAD = 0.618_033_988_75
"""Multiples of this number, modulo 1, are evenly spread, so that watches end at different times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchBounds:
    """Time limits in seconds, and maximum numbers; see `ApiLimits`."""

    watchers_max: int
    seconds_min: float
    seconds_max: float
    bookmark_seconds: float
    revision_wait_seconds: float
    frames_max: int
    first_pages_max: int
    retained_revisions: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shared:
    """The state that all watches of a server share."""

    bounds: WatchBounds
    frames: Frames
    representations: Representations
    fanout: Fanout
    first_states: FirstStates


@dataclass(frozen=True, slots=True, kw_only=True)
class _WatchRequest:
    """One watch request: what it follows, and its duration."""

    timeline: Timeline
    target: Target
    selection: Selection
    options: ListOptions
    seconds: float
    push: Push | None


class Watching:
    """Answers watch requests."""

    def __init__(self, representations: Representations, bounds: WatchBounds) -> None:
        self._shared = _Shared(
            bounds=bounds,
            frames=Frames(representations, bounds.frames_max),
            representations=representations,
            fanout=Fanout(),
            first_states=FirstStates(bounds.first_pages_max),
        )
        self._bounds = bounds
        self._started = 0
        self._watches: set[_Watch] = set()
        self._is_ending = False

    @property
    def running(self) -> int:
        """The number of running watches."""
        return len(self._watches)

    def end(self) -> None:
        """End all present and future watches as on a timeout, because the server stops."""
        self._is_ending = True
        for watch in self._watches:
            watch.end()

    async def open(
        self,
        timeline: Timeline,
        target: Target,
        selection: Selection,
        options: ListOptions,
        *,
        push: Push | None = None,
    ) -> Stream:
        """Start a watch. Raises TooManyRequests or RevisionTooLarge before the stream begins.

        A streaming list of a revision that does not exist in time is refused; a plain watch begins
        and waits for the revision, as upstream does. With a `push` the watch gets its changes
        together with other watches while its client keeps up.
        """
        if self.running >= self._bounds.watchers_max:
            raise TooManyRequests(
                f"more than {self._bounds.watchers_max} watches are running",
                retry_after_seconds=1,
            )
        revision = options.revision  # Raises BadRequest here when it is not a number.
        if options.send_initial_events is not None or timeline.past is not None:
            await timeline.wait_for(revision, self._bounds.revision_wait_seconds)
        self._started += 1
        bounds = self._bounds
        spread = (self._started * _SPREAD) % 1.0
        seconds = bounds.seconds_min + spread * (bounds.seconds_max - bounds.seconds_min)
        if options.timeout_seconds:
            seconds = float(options.timeout_seconds)
        request = _WatchRequest(
            timeline=timeline,
            target=target,
            selection=selection,
            options=options,
            seconds=seconds,
            push=push,
        )
        return Stream(chunks=self._counted(_Watch(request, self._shared)))

    async def _counted(self, watch: "_Watch") -> AsyncGenerator[bytes, None]:
        self._watches.add(watch)
        if self._is_ending:
            watch.end()
        try:
            async for chunk in watch.lines():
                yield chunk
        finally:
            self._watches.discard(watch)


class _Watch:
    """One running watch.

    `_matching` holds the last matching state of each object when the selection depends on content
    that can change: an object that stops matching is sent as DELETED with that state.
    """

    def __init__(self, request: _WatchRequest, shared: _Shared) -> None:
        selection, target = request.selection, request.target
        self._timeline = request.timeline
        self._target = target
        self._selection = selection
        self._options = request.options
        self._seconds = request.seconds
        self._bounds = shared.bounds
        self._frames = shared.frames
        self._representations = shared.representations
        self._matching: dict[ObjectKey, Event] | None = {} if selection.can_change else None
        self._columns_sent = False
        self._ending = anyio.Event()
        self._fanout = shared.fanout
        self._first_states = shared.first_states
        is_shared = selection.is_everything and target.form.shape is Shape.OBJECT
        self._push = request.push if is_shared else None
        self._member: Member | None = None
        self._subscription: Subscription | None = None

    def end(self) -> None:
        """End the watch now."""
        self._ending.set()
        self._nudge()

    def _nudge(self) -> None:
        """Wake the watch, so that it checks the time."""
        if self._member is not None:
            self._member.leave()
        elif self._subscription is not None:
            self._subscription.nudge()

    async def lines(self) -> AsyncGenerator[bytes, None]:
        """Yield chunks of complete lines until the time is up."""
        options = self._options
        end = anyio.current_time() + self._seconds
        after = options.revision
        starts_now = after == 0 or options.send_initial_events is not None
        oldest = self._timeline.oldest(self._bounds.retained_revisions)
        if not starts_now and after < oldest:
            problem = Expired(watches.too_old(after, oldest))
            yield line(b"ERROR", encode(status.status_of(problem)))
            return
        try:
            if starts_now:
                with self._first_states.sending():
                    async for chunk in self._initial():
                        yield chunk
            else:
                revision = Revision(after)
                if revision > self._timeline.revision and not await self._reaches(revision, end):
                    return
                self._subscription = self._subscribe(revision)
                if self._matching is not None:
                    await self._recall(revision)
            async for chunk in self._live(end):
                yield chunk
        finally:
            if self._subscription is not None:
                self._subscription.close()

    def _subscribe(self, revision: Revision) -> Subscription:
        kind = self._target.kind
        return self._timeline.runtime.subscribe(
            after=revision, group=kind.group, resource=kind.plural
        )

    async def _initial(self) -> AsyncGenerator[bytes, None]:
        """Subscribe, and yield the present objects and the bookmark behind them."""
        states, options, target = self._first_states, self._options, self._target
        async with states.turn:
            view = first_states.view_of(self._timeline, target, self._selection)
            snapshot = states.snapshot(view, self._selection, self._timeline, target)
            self._subscription = self._subscribe(view.revision)
            self._remember(snapshot)
        at = len(snapshot) if options.send_initial_events is False else 0
        while at < len(snapshot):
            async with states.turn:
                page = states.page(view, snapshot, at, partial(self._line, b"ADDED"))
            self._columns_sent, at = True, page.end
            yield page.lines
        if options.send_initial_events and options.bookmarks:
            yield bookmark(target, view.revision, is_initial_end=True)

    async def _live(self, end: float) -> AsyncGenerator[bytes, None]:
        subscription = self._subscription
        assert subscription is not None, "made when the watch began"
        try:
            if self._timeline.past is not None and subscription.after >= self._timeline.revision:
                await self._idle(end)
                return
            while events := await subscription.catch_up():
                chunk, ended = self._changes(events)
                if chunk:
                    yield chunk
                if ended:
                    break
            if self._timeline.past is not None:
                await self._idle(end)
                return
            async for chunk in self._follow(subscription, end):
                yield chunk
        except RedraError as problem:
            # Too far behind, or the log cannot be read: the stream reports the error and ends.
            yield line(b"ERROR", encode(status.status_of(problem)))

    async def _follow(self, subscription: Subscription, end: float) -> AsyncGenerator[bytes, None]:
        """Yield live changes. A timer nudges the watch when a bookmark or the end is due."""
        loop = asyncio.get_running_loop()
        due = min(loop.time() + self._bounds.bookmark_seconds, end)
        timer = loop.call_at(due, self._nudge)
        try:
            if self._ending.is_set():
                return
            while True:
                if self._can_join(subscription):
                    subscription = await self._follow_with_others(subscription)
                    while events := await subscription.catch_up():
                        chunk, _ = self._changes(events)
                        if chunk:
                            yield chunk
                    events = subscription.take()
                else:
                    events = await subscription.wait_batch()
                chunk, _ = self._changes(events)
                has_ended = loop.time() >= end or self._ending.is_set()
                # No await since then: all changes up to the shown revision have been sent.
                if has_ended or loop.time() >= due:
                    if self._options.bookmarks:
                        chunk += bookmark(self._target, self._timeline.revision)
                    timer.cancel()
                    due = min(due + self._bounds.bookmark_seconds, end)
                    timer = loop.call_at(due, self._nudge)
                if chunk:
                    yield chunk
                if has_ended:
                    return
        finally:
            timer.cancel()

    def _can_join(self, subscription: Subscription) -> bool:
        """Whether the watch has sent all changes and its client reads what it is sent."""
        push = self._push
        return (
            push is not None
            and not self._ending.is_set()
            and not subscription.has_more
            and push.is_ready()
        )

    async def _follow_with_others(self, subscription: Subscription) -> Subscription:
        """Get changes from a channel until the watch must go on alone; returns a subscription."""
        assert self._push is not None
        kind = self._target.kind
        target = self._target
        channel = self._fanout.channel(self._timeline.runtime, (kind.group, kind.plural))
        member = self._member = channel.join(
            push=self._push,
            view=LineView(
                target.group, target.version, target.definition, self._selection.namespace
            ),
            lines=lambda events: self._changes(events)[0],
        )
        subscription.close()
        try:
            after = await member.wait_left()
        finally:
            self._member = None
        # `catch_up` finds the changes since the watch left.
        opened = self._subscription = self._subscribe(after)
        return opened

    async def _reaches(self, revision: Revision, end: float) -> bool:
        """Wait for a future revision; False when the time is up or the watch ends first."""

        async def cancel_when_ending() -> None:
            await self._ending.wait()
            tasks.cancel_scope.cancel()

        reached = False
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cancel_when_ending)
            left = max(0.0, end - anyio.current_time())
            reached = await self._timeline.runtime.wait_for(revision, left)
            tasks.cancel_scope.cancel()
        return reached

    async def _idle(self, end: float) -> None:
        """Wait for the time to be up; the past has no more changes."""
        with anyio.move_on_after(max(0.0, end - anyio.current_time())):
            await self._ending.wait()

    def _changes(self, events: Sequence[Event]) -> tuple[bytes, bool]:
        """The lines for a batch, and whether the shown past ends within the batch."""
        parts: list[bytes] = []
        limit = self._timeline.revision if self._timeline.past is not None else None
        simple = self._selection.is_everything and self._selection.namespace is None
        for event in events:
            if limit is not None and event.revision > limit:
                return b"".join(parts), True
            if simple:
                word = _WORDS.get(event.type)
                if word is not None:
                    parts.append(self._line(word, event))
            elif event.is_about_object and self._selection.matches_key(event.key):
                self._add_change(event, parts)
        return b"".join(parts), False

    def _add_change(self, event: Event, parts: list[bytes]) -> None:
        word = _WORDS[event.type]
        matching = self._matching
        if matching is None:
            if self._selection.matches(event):
                parts.append(self._line(word, event))
            return
        before = matching.get(event.key)
        if event.type is EventType.OBJECT_DELETED:
            if before is not None:
                del matching[event.key]
                parts.append(self._line(word, event))
        elif self._selection.matches(event):
            matching[event.key] = event
            parts.append(self._line(b"MODIFIED" if before is not None else b"ADDED", event))
        elif before is not None:
            del matching[event.key]
            parts.append(self._departure(before, event.revision))

    def _departure(self, before: Event, revision: Revision) -> bytes:
        """The line for an object that left the selection: its old state at the new revision."""
        tree: JsonObject = json_tree.copy(before.object)
        tree["metadata"]["resourceVersion"] = str(revision)
        if self._target.form.shape is Shape.OBJECT:
            return line(b"DELETED", encode(self._representations.tree_in(tree, self._target)))
        now = self._timeline.now
        return line(b"DELETED", self._representations.shown_tree(tree, self._target, now))

    def _line(self, word: bytes, event: Event) -> bytes:
        target = self._target
        if target.form.shape is not Shape.TABLE:
            return self._frames.frame(word, event, target)
        now = self._timeline.now
        metadata = b'{"resourceVersion":"%d"}' % event.revision
        body = self._representations.table(
            [event], target, now, metadata=metadata, with_columns=not self._columns_sent
        )
        self._columns_sent = True
        return line(word, body)

    def _remember(self, snapshot: Sequence[Event]) -> None:
        if self._matching is not None:
            self._matching.update((event.key, event) for event in snapshot)

    async def _recall(self, revision: Revision) -> None:
        """Load the objects that matched at the revision after which the watch starts."""
        views = await self._timeline.at(revision)
        self._remember(self._selection.select(views.objects, self._target.kind))
