"""The one write path: a group writer per process and history.

Concurrent commands queue up. The writer takes what is there (bounded), decides each against the
head in order, seals the drafts and commits the batch once. A rejected command costs its neighbours
nothing. When another process moved the head, the missing events are folded and the batch is
decided again. Whatever a caller is told stands upon stored events.

Storing takes time of the disk, deciding time of the processor: what arrives while a batch is being
stored is decided at once, as if the batch were stored already, and follows it without delay. If it
was not stored after all, that is decided again.

    batch 7  decided ──▶ being stored ─────────────▶ stored, folded, answered
    batch 8                  decided one by one as it arrives ──▶ being stored ───▶ …
    batch 9                                                           decided …
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

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
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.rules import Rules
from app.domain.objects.write.commands import Command
from app.domain.objects.write.decided import Decided
from app.domain.objects.write.sealing import decide_and_seal
from app.domain.objects.write.staging import StagedObjects
from app.domain.values import counts
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from app.ports import EventLog, UidSource
from app.service.cluster_clock import ClusterClock

_log = logging.getLogger("redra")

_CLOSED = "the server is stopping, or reads the history anew"


class WriteOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a command: the answer's tree (storage version) and its last event.

    `event` is None when nothing changed or for a dry run.
    """

    tree: JsonObject | None
    event: Event | None
    warnings: tuple[str, ...] = ()
    created: bool = False

    @staticmethod
    def of(decided: Decided, events: Sequence[Event]) -> "WriteOutcome":
        """The outcome of a command that was decided and gave these events."""
        return WriteOutcome(
            tree=decided.tree,
            event=events[-1] if events else None,
            warnings=decided.warnings,
            created=decided.created,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterBounds:
    """Bounds of one group writer.

    `batch_max` commands are decided and committed together, `queue_max` may wait (more are refused
    with LogUnavailable), `retries_max` times a batch is decided again after losing the head.
    No client may make an object grow beyond `object_bytes_max` as it is stored (TooLarge);
    controllers, which write little into what others made, are not held to that.
    """

    batch_max: int = 256
    queue_max: int = 10_000
    retries_max: int = 20
    object_bytes_max: int = 3 * 1024 * 1024


@dataclass(slots=True, kw_only=True)
class WriteRequest:
    """Commands of one caller: appended together or not at all.

    `uid` is what a new object gets when others have been told of it already.
    """

    commands: tuple[Command, ...]
    actor: Actor
    verb: str
    request_id: str
    cause: int
    observed: int
    lease: LeaseToken | None
    uid: str = ""
    outcomes: list[WriteOutcome] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    problem: Exception | None = None
    waiter: "asyncio.Future[None] | None" = None
    is_settled: bool = False

    def settle(self) -> None:
        """Tell the caller that its fate is known."""
        self.is_settled = True
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)

    def fail(self, problem: Exception) -> None:
        """Tell the caller that nothing of this was appended."""
        self.problem = problem
        self.settle()


@dataclass(slots=True, kw_only=True)
class _Batch:
    """Requests decided one after another upon `base`, with their events; the last at `time`."""

    base: Head
    staged: StagedObjects
    time: Instant
    requests: list[WriteRequest] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)


class GroupWriter:
    """Serialises the commands of this process for one history.

    `commit` is called with the committed events before any caller hears of them, so whoever was
    answered finds its write in the views. `catch_up` folds what others wrote and returns the head.
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
        commit: Callable[[Sequence[Event], Head], None],
    ) -> None:
        self._log = log
        self._history = history
        self._objects = objects
        self._rules = rules
        self._clock = clock
        self._uids = uids
        self._bounds = bounds
        self._commit = commit
        self._queue: deque[WriteRequest] = deque()
        self._ahead: _Batch | None = None
        self._arrived = asyncio.Event()
        self._is_closed = False
        self.lock = anyio.Lock()
        self.head = Head()

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return len(self._queue) + (0 if self._ahead is None else len(self._ahead.requests))

    async def submit(self, request: WriteRequest) -> WriteRequest:
        """Queue a request and wait for its fate; raises what refused it."""
        ahead = self._ahead
        if self._is_closed:
            raise LogUnavailable(_CLOSED)
        if self.waiting >= self._bounds.queue_max:
            raise LogUnavailable(f"more than {self._bounds.queue_max} writes are waiting already")
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
        """Write until cancelled; what waits then is refused."""
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

    async def catch_up(self) -> set[bytes]:
        """Fold what has been appended since; the caller holds the lock. Returns the hashes.

        Raises ChainBroken when the log does not continue what was folded: it was restored, or
        another copy of it took over.
        """
        hashes: set[bytes] = set()
        while True:
            stored = await self._log.head(self._history)
            if stored.revision <= self.head.revision:
                chain.check_same_end(self.head, stored)
                self.head = stored
                self._clock.observe(stored.time)
                return hashes
            events = await self._log.read(self._history, after=self.head.revision, limit=5_000)
            chain.check_continues(events, self.head, stored)
            last = events[-1]
            hashes.update(event.hash for event in events)
            self.head = Head(
                revision=last.revision,
                epoch=stored.epoch,
                hash=last.hash,
                time=max(self.head.time, last.stamp.time),
            )
            self._commit(events, self.head)

    def _take(self) -> _Batch:
        """What was decided ahead, if the head is where that began; else what waits, decided now."""
        ahead = self._ahead
        if ahead is not None and ahead.requests and ahead.base.hash == self.head.hash:
            self._ahead = None
            return ahead
        self._withdraw()
        count = min(len(self._queue), self._bounds.batch_max)
        return self._decide_all([self._queue.popleft() for _ in range(count)])

    def _withdraw(self) -> None:
        """What was decided ahead is to be decided again: it goes to where it came from."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            self._queue.extendleft(reversed(ahead.requests))

    async def _write_batch(self, batch: _Batch) -> None:
        """Store a batch and answer its callers; what a failure leaves open is decided once more."""
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
        except BaseException:
            for request in batch.requests:
                if not request.is_settled:
                    request.fail(LogUnavailable("the writer was stopped"))
            raise

    async def _store(self, batch: _Batch) -> None:
        """Append the events of a batch, decided again as often as others are faster, and answer.

        A batch without events is answered when the log confirms the head it was decided upon.
        """
        for _ in range(self._bounds.retries_max):
            try:
                if batch.events:
                    await self._append(batch)
                elif await self.catch_up():
                    # What was refused or changed nothing may be otherwise at the true head.
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
        for request in batch.requests:
            request.settle()

    async def _settle_failure(
        self, requests: list[WriteRequest], problem: LogError
    ) -> list[WriteRequest]:
        """After a failed append nobody knows whether it was done: look for its events.

        An append is stored as a whole. If this one was, what was decided with it is answered. If
        it was not, or if nobody knows, what would have written fails. What would not (a refusal, a
        dry run, a write that changes nothing) may stand upon an event that was never stored: it
        fails too when the log cannot be read, and is returned to be decided again when it can.
        """
        waiting = [request for request in requests if not request.is_settled]
        try:
            hashes = await self.catch_up()
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
                request.fail(problem)
            else:
                left.append(request)
        return left

    async def _append(self, batch: _Batch) -> None:
        """Store a batch; what is submitted meanwhile is decided upon it, to follow at once."""
        leases = {
            (request.lease.name, request.lease.epoch): request.lease
            for request in batch.requests
            if request.lease is not None and request.events
        }
        events = batch.events
        last = events[-1]
        base = Head(revision=last.revision, epoch=self.head.epoch, hash=last.hash, time=batch.time)
        ahead = self._ahead = _Batch(base=base, staged=batch.staged, time=batch.time)
        try:
            head = await self._log.append(
                self._history, expected=self.head, events=events, leases=list(leases.values())
            )
        except BaseException as problem:
            self._withdraw()
            if not isinstance(problem, Exception) or isinstance(problem, RedraError):
                raise
            # What one batch holds must not end the history: its callers hear of it.
            _log.exception("events of history %d cannot be stored", self._history)
            text = f"the events cannot be stored: {type(problem).__name__}: {problem}"
            raise LogUnavailable(text) from problem
        self.head = head
        self._commit(events, head)
        if ahead.requests:
            # The views show now what was staged; upon them stands what was decided ahead.
            ahead.staged = self._stage()
            ahead.staged.stage(ahead.events)
        else:
            self._ahead = None

    def _decide_all(self, requests: list[WriteRequest]) -> _Batch:
        """Decide every request against the head as known here; the outcome stands in each."""
        now = self._clock.now()
        batch = _Batch(base=self.head, staged=self._stage(), time=now)
        for request in requests:
            self._decide_next(batch, request, now)
        return batch

    def _stage(self) -> StagedObjects:
        head = self.head
        return StagedObjects(self._objects(), self._rules.secrets, hash=head.hash, time=head.time)

    def _decide_next(self, batch: _Batch, request: WriteRequest, now: Instant) -> None:
        """Decide one more request after those of the batch, and put it there."""
        request.problem, request.events, request.outcomes = None, [], []
        try:
            request.events, request.outcomes = self._decide(request, batch.staged, now)
        except Exception as problem:  # a refusal, or a mistake of ours: its caller hears it
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
    """Fail the requests that came with the stale lease, keep the others."""
    kept: list[WriteRequest] = []
    for request in batch:
        lease = request.lease
        if lease is not None and (lease.name, lease.epoch) == (stale.name, stale.epoch):
            request.fail(stale)
        else:
            kept.append(request)
    return kept
