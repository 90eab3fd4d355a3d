"""The runtime of one history in this process: its views at the head, its writer, its followers.

At the start it reads the newest snapshot of the objects and folds the rest of the log; then it
follows the log. All committed events, from this process or another, pass through `_take_over`,
which folds them into the views and hands them to the clients that follow, in order and once; then
the loops of this process get them.
"""

import itertools
import logging
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio
import msgspec

from app.analysis.views import LiveViews
from app.domain.controllers.plan import Plan, Reads, Reconciler
from app.domain.controllers.record import commands_of
from app.domain.errors import ChainBroken, LogError
from app.domain.log import (
    REPLAYS,
    Actor,
    Event,
    EventType,
    Head,
    HistoryInfo,
    LeaseToken,
    Revision,
    chain,
    forks,
)
from app.domain.log.forks import FORK
from app.domain.objects.review.attributes import Attributes
from app.domain.objects.rules import Rules
from app.domain.objects.write import review_calls
from app.domain.objects.write.commands import Command
from app.domain.objects.write.staging import StagedObjects
from app.domain.values.identifiers import NO_UID, Uid
from app.domain.values.moments import HistoryEnd
from app.domain.values.timestamps import SECOND, Instant
from app.ports import EventLog, RuntimePorts, ViewStore, WebhookCaller
from app.service import broken_histories, moments
from app.service.answering import recorded_profiles
from app.service.answering.errands import Errands
from app.service.cluster_clock import ClusterClock
from app.service.folding import snapshots
from app.service.reviewing import WebhookReviewer
from app.service.watches import Subscription, Watches
from app.service.writing import GroupWriter, WriteOutcome, WriterBounds, WriteRequest
from app.signals import Signal
from projections.last_events import PLAIN_MAX

if TYPE_CHECKING:  # heavy: histories that nobody watches need none of its judges
    from app.analysis.oversight import Observation

_log = logging.getLogger("redra")

_SCHEDULER = "scheduling"

SKEW_SECONDS_MIN = 1.0
"""The smallest clock skew that is reported; clocks that are kept in step differ by less."""

POLLS_UNREAD_MAX = 5
"""The time of so many polls may pass without an answer of the log before that is reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeBounds:
    """Bounds of one history in one process.

    `watch_queue_max` events may wait for one follower. `recent_max` events are kept in memory for
    followers that start slightly in the past. `poll_seconds` is the interval of the poll that
    covers lost wake-ups. A snapshot is kept every `snapshot_every` events. At most `errands_max`
    answers are computed while no request waits for them. When the log is replaced again within
    `calm_seconds`, it is read again after a pause that doubles up to `pause_seconds_max`. The last
    `observations_max` findings are kept for display; all findings are counted and reported. With
    more than `objects_plain_max` objects, those that nobody has read for long are compressed.
    """

    writer: WriterBounds = WriterBounds()
    watch_queue_max: int = 20_000
    recent_max: int = 10_000
    poll_seconds: float = 2.0
    snapshot_every: int = 50_000
    errands_max: int = 16
    calm_seconds: float = 60.0
    pause_seconds_max: float = 60.0
    observations_max: int = 1_000
    objects_plain_max: int = PLAIN_MAX


class HistoryRuntime:
    """The runtime of one history: submit commands, read views, follow events.

    Use `running` to start and stop it. `problem` is the reason why the log cannot be followed at
    present. `troubles` holds the unexpected errors of controllers in this process, by controller
    name. `observations` are the latest findings in a history that this process watches over.
    `leading` are the controllers that this process leads. `clock` stamps the writes of this
    process. `errands` are answers that are computed while no request waits for them. `life` is a
    number that no other runtime of this process has, not even one of the same history; caches of
    its events are keyed by it.
    """

    _lives = itertools.count(1)

    def __init__(
        self, *, info: HistoryInfo, ports: RuntimePorts, rules: Rules, bounds: RuntimeBounds
    ) -> None:
        self.info = info
        self.life = next(self._lives)
        self.rules = rules
        self.views = LiveViews(rules.profile, plain_max=bounds.objects_plain_max)
        self.watches = Watches(
            ports.log, info.id, queue_max=bounds.watch_queue_max, recent_max=bounds.recent_max
        )
        # A paced replay stands still while it is not played.
        self.clock = ClusterClock(
            ports.clock, is_own=info.has_own_time, rate=0.0 if info.is_paced else 1.0
        )
        self.errands = Errands(bounds.errands_max)
        self._ports = ports
        self._bounds = bounds
        self._grown = Signal()
        self._last_read = 0.0
        self._snapshot_at = Revision(0)
        self._snapshot_tried = Revision(0)
        self.problem: LogError | None = None
        self.troubles: dict[str, str] = {}
        self.observations: deque[Observation] = deque(maxlen=bounds.observations_max)
        self.leading: dict[str, Reconciler] = {}
        self._writer = GroupWriter(
            log=ports.log,
            history=info.id,
            objects=lambda: self.views.objects,
            rules=rules,
            clock=self.clock,
            uids=ports.uids,
            bounds=bounds.writer,
            commit=self._take_over,
            hand_on=self.watches.hand_to_loops,
        )
        self._reviewing = None if ports.webhooks is None else self._reviewing_by(ports.webhooks)

    @property
    def log(self) -> EventLog:
        """The log that holds this history."""
        return self._ports.log

    @property
    def kept_views(self) -> ViewStore | None:
        """The store of kept states; None where none are kept."""
        return self._ports.views

    @property
    def head(self) -> Head:
        """The head of the history, as folded here."""
        return self._writer.head

    @property
    def present(self) -> Instant:
        """The instant up to which the newest state lasts: now, or the end of a recording."""
        return self.head.time if self.info.is_recorded else self.clock.now()

    @property
    def end(self) -> HistoryEnd:
        """The end from which relative moments count."""
        return moments.end_of(self.info, self.head.time, self._ports.clock.now())

    def absolute(self, moment: str) -> str:
        """The moment, as an instant if it is relative. Raises InputError."""
        return moments.absolute(moment, self.end)

    async def as_of(self, revision: Revision) -> HistoryInfo:
        """The history as it was at a revision, with the settings in force then.

        It names the further profiles of a recorded scheduler.
        """
        info = await moments.history_at(self.log, self.info, revision)
        profiles = await recorded_profiles.find(
            self.log, info, self.views.objects, self.views.revision
        )
        return msgspec.structs.replace(info, scheduler_profiles=profiles) if profiles else info

    async def time_of(self, revision: Revision, moment: str = "") -> Instant:
        """The instant for which the state at a revision is shown, where `moment` asks for it.

        The newest state lasts until the present, an earlier one is that of its event's time. A
        moment written as an instant is that instant, if it is not after the present.
        """
        if moment and not moments.is_revision(moment):
            return min(moments.parse_instant(moment, self.end.instant), self.present)
        if not moment or revision == self.head.revision:
            return self.present
        return await moments.time_of(self.log, self.info, revision)

    @property
    def waiting_writes(self) -> int:
        """The number of queued writes."""
        return self._writer.waiting

    @property
    def is_busy(self) -> bool:
        """Whether clients follow this history, writes are queued, or answers are being computed."""
        return self.watches.count_clients() + self.waiting_writes + self.errands.count > 0

    def next_due(self) -> Instant | None:
        """The next instant at which a controller is due without a new event, as far as known here.

        The scheduler's own retries are left out: without a new event their result is the same.
        """
        instants = [
            due
            for name, reconciler in self.leading.items()
            if name != _SCHEDULER and (due := reconciler.due()) is not None
        ]
        return min(instants, default=None)

    @asynccontextmanager
    async def running(self) -> AsyncIterator["HistoryRuntime"]:
        """Start, follow, and stop on leaving; everything that was answered before is durable.

        Ends with ChainBroken when the log is no longer the one that was folded.
        """
        await self.load()
        self._last_read = anyio.current_time()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._writer.run)
            tasks.start_soon(self._follow)
            self.errands.tasks = tasks
            try:
                yield self
            finally:
                self.errands.end()
                tasks.cancel_scope.cancel()
                self.watches.end()

    async def load(self) -> None:
        """Fold the history up to its present head. Raises ChainBroken."""
        stored = await self.log.head(self.info.id)
        await self._check_end(stored)
        last = await self._check_beginning(stored)
        if self._ports.views is not None:
            kept = await snapshots.load_of_line(
                self._ports.views, self.log, self.info, self._view, until=stored.revision
            )
            if kept is not None:
                self._snapshot_at, last, state = kept
                self.views.load_objects(state)
        self._writer.head = Head(revision=self.views.revision, hash=last)
        self.watches.start(self.views.revision)
        async with self._writer.lock:
            await self._writer.catch_up()
        if self.info.is_paced:
            sought = await self.log.read_object(
                self.info.id, REPLAYS, until=self.head.revision, limit=1
            )
            self.watches.floor = sought[0].revision if sought else Revision(0)

    async def _check_end(self, head: Head) -> None:
        """Check the head's time, from which the time of the history continues, and that it ends."""
        before = Revision(head.revision - 1)
        rows = await self.log.read_stored(self.info.id, after=before, limit=1, until=head.revision)
        if rows and rows[0].clock != head.time:
            raise ChainBroken(head.revision, chain.HEAD_TIME_PROBLEM)
        await broken_histories.check_nothing_after(self.log, self.info.id, head)

    async def _check_beginning(self, head: Head) -> bytes:
        """Check the settings against the chain; returns the hash before the first event.

        Everything that the controllers decide depends on the settings.
        """
        history, log = self.info, self.log
        first = await log.read(history.id, after=Revision(0), limit=1, until=head.revision)
        if not first:
            return head.hash
        beginning = chain.beginning_of(history, first[0])
        if history.beginning is None:
            return beginning
        forked = await log.read_object(history.id, FORK, until=head.revision, limit=1)
        if forked:
            event = forked[0]
            before = Revision(event.revision - 1)
            rows = await log.read(history.id, after=Revision(before - 1), limit=1, until=before)
            previous = rows[0].hash if rows else beginning
            if problem := forks.problem_of(history, event.object, before, previous):
                raise ChainBroken(event.revision, problem)
        return beginning

    async def submit(
        self,
        command: Command,
        *,
        actor: Actor,
        verb: str = "",
        request_id: str = "",
        cause: int = 0,
    ) -> WriteOutcome:
        """Decide and append one command. Raises Rejected or LogError; then nothing is stored.

        Admission webhooks that match the command are called first.
        """

        async def send(command: Command, uid: Uid) -> WriteOutcome:
            request = await self._writer.submit(
                WriteRequest(
                    commands=(command,),
                    actor=actor,
                    verb=verb,
                    request_id=request_id,
                    cause=cause,
                    observed=0,
                    lease=None,
                    uid=uid,
                )
            )
            return request.outcomes[0]

        reviewing = self._reviewing
        if reviewing is None or not reviewing.is_needed(command):
            return await send(command, NO_UID)
        return await reviewing.submit(command, actor, verb, send)

    async def review(self, attributes: Attributes) -> tuple[str, ...]:
        """The warnings of policies and webhooks about a request that writes no object.

        Raises Rejected when one of them refuses the request.
        """
        warnings = review_calls.judged(attributes, self.views.objects, self.rules)
        if self._reviewing is None:
            return warnings
        return (*warnings, *await self._reviewing.ask(attributes))

    def _reviewing_by(self, caller: WebhookCaller) -> WebhookReviewer:
        return WebhookReviewer(
            caller=caller,
            rules=self.rules,
            objects=lambda: StagedObjects(self.views.objects, self.rules.secrets),
            now=self.clock.now,
            uids=self._ports.uids,
        )

    async def submit_all(
        self,
        commands: Sequence[Command],
        *,
        actor: Actor,
        request_id: str = "",
        cause: int = 0,
        lease: LeaseToken | None = None,
    ) -> list[WriteOutcome]:
        """Append several commands together or none of them; none under a stale lease."""
        request = await self._writer.submit(
            WriteRequest(
                commands=tuple(commands),
                actor=actor,
                verb="",
                request_id=request_id,
                cause=cause,
                observed=0,
                lease=lease,
            )
        )
        return request.outcomes

    async def submit_plan(
        self, plan: Plan, *, actor: Actor, lease: LeaseToken | None
    ) -> list[Event]:
        """Append a controller's decision and its effects in one step, or refuse the whole plan."""
        request = await self._writer.submit(
            WriteRequest(
                commands=commands_of(plan),
                actor=actor,
                verb="",
                request_id="",
                cause=plan.cause,
                observed=plan.observed,
                lease=lease,
            )
        )
        return request.events

    def subscribe(
        self, *, after: Revision, group: str | None = None, resource: str | None = None
    ) -> Subscription:
        """Follow the events after a revision: of one resource, or of all without a resource."""
        group_resource = None if resource is None else (group or "", resource)
        return self.watches.subscribe(after=after, group_resource=group_resource)

    def follow(self, *, after: Revision, reads: Reads) -> Subscription:
        """Follow the events that a controller reads, after a revision."""
        return self.watches.subscribe(after=after, reads=reads)

    def notes(self) -> list[str]:
        """Problems of this history that do not stop its service, one sentence each."""
        notes: list[str] = []
        if self._writer.unstored is not None:
            notes.append(f"the last write was not stored: {self._writer.unstored}")
        unread, poll = anyio.current_time() - self._last_read, self._bounds.poll_seconds
        if unread > POLLS_UNREAD_MAX * poll:
            notes.append(f"the log was last read {unread:.0f} s ago, not every {poll:g} s")
        ahead = self.clock.ahead / SECOND
        if ahead >= SKEW_SECONDS_MIN:
            notes.append(
                f"the last stored event is {ahead:.0f} s ahead of the clock of this process; the "
                "time of the history continues from there"
            )
        return notes

    async def wait_for(self, revision: Revision, timeout_seconds: float) -> bool:
        """True as soon as the views have reached `revision`; False after the timeout."""
        with anyio.move_on_after(timeout_seconds):
            while self.views.revision < revision:
                await self._grown.wait()
            return True
        return self.views.revision >= revision

    async def save_snapshot(self) -> None:
        """Keep the objects at the present revision, so that the next start is short."""
        store = self._ports.views
        if store is None or self.views.revision == self._snapshot_at:
            return
        objects = self.views.objects
        revision, last = objects.revision, self.head.hash
        self._snapshot_tried = revision
        # The first part, which fixes the state, is made before anything is awaited.
        parts = objects.dump_parts()
        await snapshots.keep(store, self.info.id, self._view, revision, last, parts)
        self._snapshot_at = revision

    @property
    def _view(self) -> tuple[str, int]:
        """Name and version of the view whose states are kept."""
        return self.views.objects.name, self.views.objects.version

    def _take_over(self, events: Sequence[Event]) -> None:
        for event in events:
            self.views.fold(event)
            if event.type is EventType.REPLAY_SOUGHT:
                # Events before this one in the batch are not sent to clients that follow already.
                self.watches.turn(event.revision)
        self.watches.hand_to_clients(events)
        self._grown.raise_()
        self._grown.lower()

    async def _follow(self) -> None:
        """Fold events that other processes append: woken by hints, with a poll for lost hints."""
        async with self._ports.wake_up.listen(self.info.id) as listener:
            while True:
                await listener.wait(self._bounds.poll_seconds)
                try:
                    # Most hints are about our own appends. Those are folded already, or will be
                    # when the appending request has released the lock.
                    if not 0 < listener.named <= self._writer.head.revision:
                        async with self._writer.lock:
                            if not 0 < listener.named <= self._writer.head.revision:
                                await self._writer.catch_up()
                    self._note(None)
                    # Not again soon where it failed: in a large history it is much work.
                    last = max(self._snapshot_at, self._snapshot_tried)
                    if self.views.revision - last >= self._bounds.snapshot_every:
                        await self.save_snapshot()
                except ChainBroken:
                    raise  # the folded events are no longer in the log
                except LogError as problem:
                    # The poll tries again until the cause is gone.
                    self._note(problem)

    def _note(self, problem: LogError | None) -> None:
        """Keep the problem for the health page; log when it begins, changes and ends."""
        before, self.problem = self.problem, problem
        self._last_read = anyio.current_time()
        if str(before or "") != str(problem or ""):
            state = problem or "its log can be followed again"
            _log.warning("history %s: %s", self.info.name, state)


@dataclass(slots=True, kw_only=True)
class Use:
    """The use of an open history. A history without use is closed.

    `last` is the time of the last use, and `revision` the revision that was seen then.
    `scope` ends the history's task; `ended` is set when the task has ended.
    """

    last: float
    revision: Revision = Revision(0)
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    ended: anyio.Event = field(default_factory=anyio.Event)
