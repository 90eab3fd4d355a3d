"""The one write path: a group writer per process and history.

Concurrent commands queue up. The writer takes the queued ones (bounded), decides each against the
head in order, seals the drafts and commits the batch once. A rejected command does not affect the
others. When another process has moved the head, the missing events are folded and the batch is
decided again. Every answer to a caller is based on stored events only.

Storing takes disk time, deciding processor time. A command that arrives while a batch is stored is
decided at once, as if the batch were stored already, and follows it without delay. If the
batch was not stored after all, the command is decided again.

    batch 7  decided ──▶ being stored ─────────────▶ stored, folded, answered
    batch 8                  decided one by one as it arrives ──▶ being stored ───▶ …
    batch 9                                                           decided …

Callers that are answered together write again together, and would all wait for one append while
nothing is decided. So many commands that arrive at once are stored in halves, which take turns from
then on: one is stored while the callers of the other decide what to write next.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import accumulate, islice

import anyio
import msgspec

from app.domain.errors import (
    ChainBroken,
    HeadMoved,
    LogError,
    LogUnavailable,
    RedraError,
    StaleLease,
)
from app.domain.log import (
    Actor,
    Event,
    Head,
    HistoryId,
    LeaseToken,
    Stamp,
    chain,
)
from app.domain.log.event import EVENTS_PAGE
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.rules import Rules
from app.domain.objects.write.commands import Command
from app.domain.objects.write.decided import Decided
from app.domain.objects.write.sealing import decide_and_seal
from app.domain.objects.write.staging import StagedObjects
from app.domain.values import counts
from app.domain.values.identifiers import NO_UID, Uid
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from app.ports import EventLog, UidSource
from app.service.cluster_clock import ClusterClock

_log = logging.getLogger("redra")

_CLOSED = "the server is stopping, or is reading the history again"


class WriteOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a command: the tree of the answer (storage version) and the last event.

    `event` is None when nothing changed, and for a dry run.
    """

    tree: JsonObject | None
    event: Event | None
    warnings: tuple[str, ...] = ()
    created: bool = False

    @staticmethod
    def of(decided: Decided, events: Sequence[Event]) -> "WriteOutcome":
        """The outcome of a decided command with the events that it produced."""
        return WriteOutcome(
            tree=decided.tree,
            event=events[-1] if events else None,
            warnings=decided.warnings,
            created=decided.created,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterBounds:
    """Bounds of one group writer.

    `batch_max` commands are decided and committed together. From `halved_min` commands on, those
    that arrive at once are committed in two halves. `queue_max` commands may wait; more are refused
    with LogUnavailable. A batch is decided again at most `retries_max` times after losing
    the head. A writer that is stopped looks for `stop_seconds` whether its last batch was
    stored. A client's write may not make an object larger than `object_bytes_max`, as stored
    (TooLarge). This limit does not apply to controllers, which write only small parts of objects
    that others made.
    """

    batch_max: int = 256
    halved_min: int = 64
    queue_max: int = 10_000
    retries_max: int = 20
    stop_seconds: float = 2.0
    object_bytes_max: int = 3 * 1024 * 1024


@dataclass(slots=True, kw_only=True)
class WriteRequest:
    """Commands of one caller: appended together or not at all.

    `uid` is the uid of a new object when webhooks have seen that uid already; empty otherwise.
    """

    commands: tuple[Command, ...]
    actor: Actor
    verb: str
    request_id: str
    cause: int
    observed: int
    lease: LeaseToken | None
    uid: Uid = NO_UID
    outcomes: list[WriteOutcome] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    problem: Exception | None = None
    waiter: "asyncio.Future[None] | None" = None
    is_settled: bool = False

    def settle(self) -> None:
        """Wake the caller: the outcome is known."""
        self.is_settled = True
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)

    def fail(self, problem: Exception) -> None:
        """Wake the caller with the problem: none of its events was appended."""
        self.problem = problem
        self.settle()


@dataclass(slots=True, kw_only=True)
class _Batch:
    """Requests decided one after another on top of `base`, with their events.

    `time` is the time of the last decision.
    """

    base: Head
    staged: StagedObjects
    time: Instant
    requests: list[WriteRequest] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)


class GroupWriter:
    """Serialises the commands of this process for one history.

    `commit` is called with the committed events before any caller is woken, so a caller finds its
    write in the views. `hand_on` is called with the same events next, before the callers are woken;
    a caller who is alone is woken before. `catch_up` folds the events of other writers and returns
    their hashes.
    """

    def __init__(
        self,
        *,
        log: EventLog,
        history: HistoryId,
        objects: Callable[[], ObjectsReader],
        rules: Rules,
        clock: ClusterClock,
        uids: UidSource,
        bounds: WriterBounds,
        commit: Callable[[Sequence[Event]], None],
        hand_on: Callable[[Sequence[Event]], None],
    ) -> None:
        self._log = log
        self._history = history
        self._objects = objects
        self._rules = rules
        self._clock = clock
        self._uids = uids
        self._bounds = bounds
        self._commit = commit
        self._hand_on = hand_on
        self._queue: deque[WriteRequest] = deque()
        self._ahead: _Batch | None = None
        self._arrived = asyncio.Event()
        self._is_closed = False
        # A free lock is taken without a turn of the event loop, in which an append would wait.
        self.lock = anyio.Lock(fast_acquire=True)
        self.head = Head()
        self.unstored: LogUnavailable | None = None  # why the last write is not in the log

    @property
    def waiting(self) -> int:
        """The number of requests that wait."""
        return len(self._queue) + (0 if self._ahead is None else len(self._ahead.requests))

    async def submit(self, request: WriteRequest) -> WriteRequest:
        """Queue a request and wait for its outcome. Raises the problem that refused it."""
        ahead = self._ahead
        if self._is_closed:
            raise LogUnavailable(_CLOSED)
        if self.waiting >= self._bounds.queue_max:
            raise LogUnavailable(f"more than {self._bounds.queue_max} writes are already waiting")
        waiter = request.waiter = asyncio.get_running_loop().create_future()
        if ahead is None or self._queue or len(ahead.requests) >= self._bounds.batch_max:
            self._queue.append(request)
        else:
            self._decide_next(ahead, request, self._clock.now())
        if not self._arrived.is_set():
            self._arrived.set()
        await waiter
        if request.problem is not None:
            raise request.problem
        return request

    async def run(self) -> None:
        """Write until cancelled; requests that wait then are refused."""
        try:
            while True:
                if not self.waiting:
                    self._arrived = asyncio.Event()
                    await self._arrived.wait()
                async with self.lock:
                    await self._write_batch(self._take())
        finally:
            self._is_closed = True
            self._withdraw()
            while self._queue:
                self._queue.popleft().fail(LogUnavailable(_CLOSED))

    async def catch_up(self, hashes: set[bytes] | None = None) -> bool:
        """Fold the events that others have appended; true when there were any. Needs the lock.

        Their hashes are put into `hashes`. Raises ChainBroken when the log does not continue the
        folded events: it was restored, or another copy of it took over.
        """
        begun = self.head.revision
        while True:
            stored = await self._log.head(self._history)
            if stored.revision <= self.head.revision:
                chain.check_same_end(self.head, stored)
                self.head = stored
                self._clock.observe(stored.time)
                return self.head.revision > begun
            events = await self._log.read(
                self._history, after=self.head.revision, limit=EVENTS_PAGE
            )
            chain.check_continues(events, self.head, stored)
            last = events[-1]
            if hashes is not None:
                hashes.update(event.hash for event in events)
            # The greatest time of the log may be that of an earlier event.
            time = max(self.head.time, last.stamp.time)
            self.head = Head(
                revision=last.revision,
                epoch=stored.epoch,
                hash=last.hash,
                time=stored.time if last.revision == stored.revision else time,
            )
            self._commit(events)
            self._hand_on(events)

    def _take(self) -> _Batch:
        """The batch decided ahead, if it starts at the head; otherwise the queue, decided now."""
        ahead = self._ahead
        if ahead is not None and ahead.requests and ahead.base.hash == self.head.hash:
            self._ahead = None
            return ahead
        self._withdraw()
        return self._decide_all([self._queue.popleft() for _ in range(self._count_first())])

    def _count_first(self) -> int:
        """The number of queued requests that are stored first: half of the commands, or all."""
        waiting = min(len(self._queue), self._bounds.batch_max)
        sizes = [len(request.commands) for request in islice(self._queue, waiting)]
        total = sum(sizes)
        if total < self._bounds.halved_min:
            return waiting
        return sum(2 * before < total for before in accumulate(sizes[:-1], initial=0))

    def _decide_queued(self, ahead: _Batch) -> None:
        """Decide what is queued on top of the batch that is being stored."""
        now = self._clock.now()
        while self._ahead is ahead and self._queue and len(ahead.requests) < self._bounds.batch_max:
            self._decide_next(ahead, self._queue.popleft(), now)

    def _withdraw(self) -> None:
        """Put the requests that were decided ahead back into the queue, to be decided again."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            self._queue.extendleft(reversed(ahead.requests))

    async def _write_batch(self, batch: _Batch) -> None:
        """Store a batch and answer its callers; open requests are tried again after a failure."""
        try:
            for is_last in (False, True):
                try:
                    await self._store(batch)
                    return
                except ChainBroken:
                    raise
                except LogError as problem:
                    left = await self._settle_failure(batch.requests, problem)
                    if is_last:
                        for request in left:
                            request.fail(problem)
                    if is_last or not left:
                        return
                    batch = self._decide_all(left)
        except BaseException as problem:
            stopped = LogUnavailable("the writer was stopped")
            if isinstance(problem, anyio.get_cancelled_exc_class()):
                # The commit may have been on its way: who is refused tries again. Whatever the look
                # meets, as when the history is deleted, the callers are answered.
                look_seconds = self._bounds.stop_seconds
                with anyio.move_on_after(look_seconds, shield=True), suppress(Exception):
                    await self._settle_failure(batch.requests, stopped)
            for request in batch.requests:
                if not request.is_settled:
                    request.fail(stopped)
            raise

    async def _store(self, batch: _Batch) -> None:
        """Append the events of a batch and answer. The batch is decided again when the head moved.

        A batch without events is answered when the log confirms the head on which it was decided.
        """
        for _ in range(self._bounds.retries_max):
            try:
                if batch.events:
                    await self._append(batch)
                elif await self.catch_up():
                    # A refusal or a write without a change may have another outcome at the true
                    # head.
                    batch = self._decide_all(batch.requests)
                    continue
            except HeadMoved:
                await self.catch_up()
                batch = self._decide_all(batch.requests)
                continue
            except StaleLease as stale:
                batch = self._decide_all(_drop_stale(batch.requests, stale))
                continue
            break
        else:
            times = counts.of(self._bounds.retries_max, "time")
            raise LogUnavailable(f"other writers moved the head {times} in a row")
        # Nothing is awaited since the commit, so no task sees events before they are handed on.
        # Tasks run in the order in which they are woken. A caller who is alone is answered first;
        # many callers write more before others have done their work.
        is_alone = len(batch.requests) == 1 and not self.waiting
        if is_alone:
            batch.requests[0].settle()
        self._hand_on(batch.events)
        if not is_alone:
            for request in batch.requests:
                request.settle()

    async def _settle_failure(
        self, requests: list[WriteRequest], problem: LogError
    ) -> list[WriteRequest]:
        """Settle requests after a failed append, whose outcome is unknown: look for its events.

        An append is stored as a whole. If it was stored, all requests in it are answered. If it was
        not stored, or if that cannot be learned, the requests with events fail. A request without
        events (a refusal, a dry run, a write that changes nothing) may be based on an event that
        was never stored. It fails when the log cannot be read, and is returned to be decided again
        when the log can be read.
        """
        waiting = [request for request in requests if not request.is_settled]
        hashes: set[bytes] = set()
        try:
            await self.catch_up(hashes)
        except ChainBroken:
            raise
        except LogError:
            for request in waiting:
                request.fail(problem)
            return []
        events = [event for request in waiting for event in request.events]
        is_stored = bool(events) and all(event.hash in hashes for event in events)
        left: list[WriteRequest] = []
        for request in waiting:
            if is_stored:
                request.settle()
            elif request.events:
                self.unstored = problem if isinstance(problem, LogUnavailable) else None
                request.fail(problem)
            else:
                left.append(request)
        return left

    async def _append(self, batch: _Batch) -> None:
        """Store a batch; requests that arrive meanwhile are decided ahead, on top of it."""
        leases = {
            (request.lease.name, request.lease.epoch): request.lease
            for request in batch.requests
            if request.lease is not None and request.events
        }
        events = batch.events
        last = events[-1]
        base = Head(revision=last.revision, epoch=self.head.epoch, hash=last.hash, time=batch.time)
        ahead = self._ahead = _Batch(base=base, staged=batch.staged, time=batch.time)
        if self._queue:
            # Called after the events have been sent.
            asyncio.get_running_loop().call_soon(self._decide_queued, ahead)
        try:
            head = await self._log.append(
                self._history, expected=self.head, events=events, leases=list(leases.values())
            )
        except BaseException as problem:
            self._withdraw()
            if not isinstance(problem, Exception) or isinstance(problem, RedraError):
                raise
            # A batch that cannot be stored must not end the history: its callers get the problem.
            _log.exception("events of history %d cannot be stored", self._history)
            text = f"the events cannot be stored: {type(problem).__name__}: {problem}"
            raise LogUnavailable(text) from problem
        self.head, self.unstored = head, None
        self._commit(events)
        if ahead.requests:
            # The views now contain the staged events; stage the events that were decided ahead
            # again.
            ahead.staged = self._stage()
            ahead.staged.stage(ahead.events)
        else:
            self._ahead = None

    def _decide_all(self, requests: list[WriteRequest]) -> _Batch:
        """Decide every request against the known head; each outcome is kept in its request."""
        now = self._clock.now()
        batch = _Batch(base=self.head, staged=self._stage(), time=now)
        for request in requests:
            self._decide_next(batch, request, now)
        return batch

    def _stage(self) -> StagedObjects:
        head = self.head
        return StagedObjects(self._objects(), self._rules.secrets, hash=head.hash, time=head.time)

    def _decide_next(self, batch: _Batch, request: WriteRequest, now: Instant) -> None:
        """Decide one more request after those of the batch, and add it to the batch."""
        request.problem, request.events, request.outcomes = None, [], []
        try:
            request.events, request.outcomes = self._decide(request, batch.staged, now)
        except Exception as problem:  # a refusal or an unexpected error goes to the caller
            request.problem = problem
        batch.requests.append(request)
        batch.events.extend(request.events)
        batch.time = now

    def _decide(
        self, request: WriteRequest, staged: StagedObjects, now: Instant
    ) -> tuple[list[Event], list[WriteOutcome]]:
        mark = staged.mark()
        stamp = Stamp(
            time=now,
            actor=request.actor,
            verb=request.verb,
            request_id=request.request_id,
            cause=request.cause,
            observed=request.observed,
        )
        bytes_max = self._bounds.object_bytes_max if request.lease is None else None
        events: list[Event] = []
        outcomes: list[WriteOutcome] = []
        try:
            for command in request.commands:
                decided, made = decide_and_seal(
                    command,
                    staged,
                    stamp,
                    self._rules,
                    new_uid=lambda: request.uid or self._uids.uid(),
                    object_bytes_max=bytes_max,
                )
                events.extend(made)
                outcomes.append(WriteOutcome.of(decided, made))
        except BaseException:
            staged.restore(mark)
            raise
        return events, outcomes


def _drop_stale(batch: list[WriteRequest], stale: StaleLease) -> list[WriteRequest]:
    """Fail the requests with the stale lease, and return the others."""
    kept: list[WriteRequest] = []
    for request in batch:
        lease = request.lease
        if lease is not None and (lease.name, lease.epoch) == (stale.name, stale.epoch):
            request.fail(stale)
        else:
            kept.append(request)
    return kept
