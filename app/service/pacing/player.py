"""The player of a recording: shows events when they are due; seeks, stops and steps on request.

One player plays a history at a time. It reads the recording ahead, sends due events through the one
write path, and waits until the next event is due or the pace changes. Clients write between its
events. A conflict with their writes is recorded as `ConflictObserved`.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

import anyio
from anyio import lowlevel

from app.domain.errors import InputError, LogError, LogUnavailable
from app.domain.log import Event, HistoryInfo, LeaseToken, ObjectKey, Revision
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import LATEST, SECOND, Instant
from app.ports import Clock, EventLog
from app.service import moments
from app.service.pacing import stage
from app.service.pacing.pace import MAX, PacedPosition
from app.service.pacing.script import PlayedSpan, Script, StopRule
from app.service.pacing.shifting import TimeMap
from app.service.pacing.showing import Showing
from app.service.pacing.stage import PLAYER, StageTarget
from app.service.runtime import HistoryRuntime


class PlayerState(StrEnum):
    """The state of a replay."""

    RUNNING = "running"
    PAUSED = "paused"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class _Unsure:
    """An append with an unknown outcome: its events, and the revision that it follows.

    The events are the next `count` of the recording; `recorded` holds their objects after them.
    """

    after: Revision
    count: int
    recorded: Mapping[ObjectKey, JsonObject | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayerBounds:
    """Bounds of one player.

    `batch_max` events are shown in one append. `page_max` events are read at once. `conflicts_max`
    conflicts are remembered (the log has all of them). An object whose name clients hold is tried
    again every `held_seconds`. A turn may lead to a state of `objects_max` objects, with at most
    `changes_max` changes and deletions, which are one append. `turns_max` changes of pace are
    remembered.
    """

    batch_max: int = 500
    page_max: int = 2_000
    conflicts_max: int = 1_000
    held_seconds: float = 0.5
    pause_seconds: float = 1.0
    objects_max: int = 100_000
    changes_max: int = 20_000
    turns_max: int = 100_000


class Player:
    """Plays a recording in the history `info` until cancelled; see the module's text.

    `open_runtime` returns the running history, which may be a new runtime after it was closed. All
    events are appended with `lease`, if one is set. After the lease was taken over nothing is
    appended, and `run` ends with StaleLease.
    """

    def __init__(
        self,
        *,
        log: EventLog,
        clock: Clock,
        parent: HistoryInfo,
        info: HistoryInfo,
        open_runtime: Callable[[], Awaitable[HistoryRuntime]],
        span: PlayedSpan,
        speed: float,
        shifts: bool = False,
        bounds: PlayerBounds = PlayerBounds(),
    ) -> None:
        self.parent = parent
        self.info = info
        self.span = span
        self.problem = ""
        self._log = log
        self._clock = clock
        self._open_runtime = open_runtime
        self.lease: LeaseToken | None = None
        self._bounds = bounds
        self._pace = PacedPosition(
            span.begin.time, clock.steady(), speed=speed or 1.0, is_paused=not speed
        )
        self._script = Script(log, parent, span, page_max=bounds.page_max)
        self._showing = Showing(
            log,
            parent,
            TimeMap(turns_max=bounds.turns_max),
            shifts=shifts,
            conflicts_max=bounds.conflicts_max,
            objects_max=bounds.objects_max,
        )
        self._lateness_max = 0
        self._unsure: _Unsure | None = None
        self._runtime: HistoryRuntime | None = None
        self._changed = anyio.Event()
        self._lock = anyio.Lock()

    @property
    def revision(self) -> Revision:
        """The last revision of the recording that has been shown."""
        return self._script.revision

    @property
    def shifts(self) -> bool:
        """Whether the times in objects are shifted to the times at which they are shown."""
        return self._showing.shifts

    @property
    def state(self) -> PlayerState:
        """The state of the replay."""
        if self._script.is_over:
            return PlayerState.ENDED
        return PlayerState.PAUSED if self._pace.is_paused else PlayerState.RUNNING

    @property
    def speed(self) -> float:
        """The speed of the replay while it runs, as a multiple of the recorded speed."""
        return self._pace.speed

    @property
    def moment(self) -> Instant:
        """The instant of the recording at which the replay stands.

        All events before it have been shown, even when that took longer than it should.
        """
        ahead = self._script.ahead
        limit = ahead[0].stamp.time if ahead else self.span.end.time
        return min(self._pace.position(self._clock.steady()), limit)

    @property
    def counts(self) -> tuple[int, int]:
        """The numbers of events shown and of conflicts met since the last turn."""
        return self._showing.shown.events, self._showing.shown.conflicts

    @property
    def lateness_max(self) -> int:
        """The microseconds by which the latest of all events since the last turn was too late.

        Only events that were due at a pace count: steps and the speed `max` have no time for one.
        """
        return self._lateness_max

    @property
    def conflicts(self) -> list[Event]:
        """The latest conflicts since the last turn."""
        return list(self._showing.shown.listed)

    async def next_event(self) -> Event | None:
        """The next event of the recording; None at the end."""
        async with self._lock:
            return next(iter(await self._script.read()), None)

    async def begin(self, *, is_new: bool) -> None:
        """Bring the history to the beginning of the span; a new, unshifted one is there already."""
        async with self._lock:
            runtime = await self._open()
            if is_new and not self.shifts:
                self._pace.move(self.span.begin.time, self._clock.steady())
                self._showing.times = self._begun_times(runtime, self.span.begin)
                self._set_clock(runtime)
            else:
                await self._turn(runtime, self.span.begin)

    async def run(self) -> None:
        """Play until cancelled."""
        while True:
            try:
                async with self._lock:
                    left = await self._advance()
                self.problem = ""
            except LogUnavailable as problem:
                self.problem = str(problem)
                left = int(self._bounds.pause_seconds * SECOND)
            if left is None or left > 0:
                await self._wait(left)
            else:
                await lowlevel.checkpoint()

    async def set_pace(self, *, speed: float | None = None, paused: bool | None = None) -> None:
        """Change the speed, pause, or continue. Speed 0 is step by step: it pauses."""
        async with self._lock:
            if speed == 0:
                speed, paused = None, True
            self._pace.change(self._clock.steady(), speed=speed, paused=paused)
            self._keep_time(await self._open())
            self._wake()

    async def seek(self, moment: str) -> None:
        """Move to another moment of the recording. Raises InputError, RevisionTooLarge.

        Forwards, all events up to the moment are shown. Backwards, the objects are restored to
        their recorded state, and what clients wrote is removed.
        """
        now = self._clock.now()
        revision = await moments.find_revision(self._log, self.parent, moment, now)
        if revision < 1:
            raise InputError(
                f"{moment} is before the first event of {self.parent.name}", place="seek"
            )
        if revision > self.span.end.revision:
            raise InputError(
                f"{moment} is after the end of what is played, revision {self.span.end.revision}",
                place="seek",
            )
        time = await moments.find_time(self._log, self.parent, moment, revision, now)
        async with self._lock:
            runtime = await self._open()
            if revision >= self.revision:
                self._turn_times(runtime, 0.0)
                await self._show_until(runtime, revision)
                self._pace.move(time, self._clock.steady())
                self._keep_time(runtime)
            else:
                await self._turn(runtime, StageTarget(revision=revision, time=time))
            self._wake()

    async def step(self, step: StopRule) -> Event | None:
        """Show all events up to the next one that the step asks for, and pause there.

        None, with nothing changed, when there is no such event before the end.
        """
        async with self._lock:
            runtime = await self._open()
            wanted = await self._script.find(step)
            if wanted is None:
                return None
            self._pace.change(self._clock.steady(), paused=True)
            self._keep_time(runtime)
            await self._show_until(runtime, wanted.revision)
            self._pace.reach(wanted.stamp.time, self._clock.steady())
            self._keep_time(runtime)
            self._wake()
            return wanted

    async def _open(self) -> HistoryRuntime:
        runtime = await self._open_runtime()
        if runtime is not self._runtime:
            self._runtime = runtime
            self._set_clock(runtime)
        return runtime

    async def _advance(self) -> int | None:
        """Show due events; returns microseconds until the next is due, None when none will be."""
        runtime = await self._open()
        steady = self._clock.steady()
        ahead = await self._script.read()
        if not self.shifts:
            # The history's time must not pass an event that is still to be shown.
            limit = ahead[0].stamp.time if ahead else self.span.end.time
            runtime.clock.hold_at(self._showing.times.shown(limit))
        due: list[Event] = []
        for event in ahead:
            is_due = self._pace.is_due(event.stamp.time, steady)
            if not is_due or len(due) >= self._bounds.batch_max:
                break
            due.append(event)
        if due:
            await self._show(runtime, due)
            if self._pace.speed == MAX:
                self._pace.reach(due[-1].stamp.time, steady)
            else:
                late = self._pace.lateness(due[0].stamp.time, self._clock.steady())
                self._lateness_max = max(self._lateness_max, late)
            return 0
        if free := self._showing.take_free(runtime):
            await runtime.submit_all(free, actor=PLAYER, lease=self.lease)
        if not ahead:
            # No event follows: time stands still at the end of the recording.
            self._set_clock(runtime)
        left = self._pace.wait_for(ahead[0].stamp.time, steady) if ahead else None
        held = int(self._bounds.held_seconds * SECOND) if self._showing.shown.held else None
        return min((each for each in (left, held) if each is not None), default=None)

    async def _show_until(self, runtime: HistoryRuntime, revision: Revision) -> None:
        """Show all events up to a revision, as fast as possible."""
        while self.revision < revision:
            batch = [event for event in await self._script.read() if event.revision <= revision]
            await self._show(runtime, batch[: self._bounds.batch_max])
            await lowlevel.checkpoint()

    async def _show(self, runtime: HistoryRuntime, events: Sequence[Event]) -> None:
        """Show the next events of the recording in one append."""
        if self._unsure is not None:
            await self._settle(runtime, self._unsure)
            return
        showing = self._showing
        commands, recorded = await showing.commands(runtime, events)
        if commands:
            runtime.clock.observe(max(command.time for command in commands))
            before = runtime.head.revision
            try:
                outcomes = await runtime.submit_all(commands, actor=PLAYER, lease=self.lease)
            except LogError:
                self._unsure = _Unsure(before, len(events), recorded)
                raise
            showing.count(commands, [outcome.event for outcome in outcomes], events)
        showing.shown.remember(recorded)
        self._script.drop(len(events))

    async def _settle(self, runtime: HistoryRuntime, unsure: "_Unsure") -> None:
        """Learn whether an append with unknown outcome was done: the log then has its events."""
        first = self.revision + 1
        after, is_stored = unsure.after, False
        while stored := await self._log.read(
            runtime.info.id, after=after, limit=self._bounds.page_max
        ):
            origins = (event.stamp.origin for event in stored)
            if any(origin is not None and origin.replayed >= first for origin in origins):
                is_stored = True
                break
            after = stored[-1].revision
        self._unsure = None
        if is_stored:
            self._showing.shown.remember(unsure.recorded)
            self._script.drop(unsure.count)

    async def _turn(self, runtime: HistoryRuntime, target: StageTarget) -> None:
        """Restore the objects to a state of the recording, and continue from there."""
        showing = self._showing
        before, showing.times = showing.times, self._begun_times(runtime, target)
        try:
            commands = await stage.turn(
                self._log,
                self.parent,
                target,
                runtime.views.objects,
                partial(showing.as_shown, runtime),
                objects_max=self._bounds.objects_max,
                changes_max=self._bounds.changes_max,
            )
            await runtime.submit_all(commands, actor=PLAYER, lease=self.lease)
        except BaseException:
            # The append may have been done or not: the caller gets the error, and the replay
            # pauses.
            showing.times = before
            self._pace.change(self._clock.steady(), paused=True)
            raise
        self._script.go_to(target.revision)
        self._unsure = None
        self._lateness_max = 0
        await showing.turn(runtime, target)
        self._pace.move(target.time, self._clock.steady())
        self._set_clock(runtime)
        self._turn_times(runtime, self._rate)

    def _begun_times(self, runtime: HistoryRuntime, target: StageTarget) -> TimeMap:
        """A time map for a recording that continues at the target now."""
        times = TimeMap(turns_max=self._bounds.turns_max)
        times.begin(target.time, runtime.clock.now(), self._rate)
        return times

    def _keep_time(self, runtime: HistoryRuntime) -> None:
        """Run the history's time at the changed pace."""
        self._set_clock(runtime)
        self._turn_times(runtime, self._rate)

    def _turn_times(self, runtime: HistoryRuntime, rate: float) -> None:
        """From the present position on, show times at another rate."""
        position = self.moment
        if self.shifts:
            self._showing.times.turn(position, runtime.clock.now(), rate)
        else:
            runtime.clock.observe(self._showing.times.shown(position))

    def _set_clock(self, runtime: HistoryRuntime) -> None:
        if self.shifts:
            runtime.clock.attach()
        else:
            is_over = self.state is PlayerState.ENDED
            runtime.clock.detach(0.0 if is_over else self._pace.rate)

    @property
    def _rate(self) -> float:
        """The rate at which the recording passes, in the history's own time."""
        return self._pace.rate if self.shifts else 1.0

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    async def _wait(self, microseconds: int | None) -> None:
        """Wait for `microseconds`, or until the pace changes."""
        changed = self._changed
        async with anyio.create_task_group() as tasks:

            async def wait_change() -> None:
                await changed.wait()
                tasks.cancel_scope.cancel()

            tasks.start_soon(wait_change)
            if microseconds is None:
                await changed.wait()
            else:
                until = min(self._clock.now() + microseconds, LATEST)
                await self._clock.wait_until(Instant(until))
            tasks.cancel_scope.cancel()
