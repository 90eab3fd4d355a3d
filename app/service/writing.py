"""The one write path: a group writer per process and history.

Concurrent commands queue up. The writer takes what is there (bounded), decides each against the
head in order, seals the drafts and commits the batch once. A rejected command costs its neighbours
nothing. When another process moved the head, the missing events are folded and the batch is
decided again. What a caller is told is always durable.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import cast

import anyio
import msgspec

from app.domain.errors import HeadMoved, LogError, LogUnavailable, StaleLease, TooLarge
from app.domain.log import (
    Actor,
    Draft,
    Event,
    EventType,
    Head,
    HistoryId,
    LeaseToken,
    ObjectKey,
    Revision,
    Stamp,
)
from app.domain.log.chain import seal
from app.domain.objects import lifecycle, quota
from app.domain.objects.commands import (
    BindPod,
    Command,
    CreateObject,
    DeleteObject,
    ImportObject,
    PatchObject,
    PatchType,
    RecordDecision,
    RecordFact,
    UpdateObject,
)
from app.domain.objects.decided import Decided
from app.domain.objects.quota_usage import Scopes, Tally
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.rules import Rules
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from app.ports import Clock, EventLog, UidSource


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a command: the answer's tree (storage version) and its last event.

    `event` is None when nothing changed or for a dry run.
    """

    tree: JsonObject | None
    event: Event | None
    warnings: tuple[str, ...] = ()
    created: bool = False


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
class Request:
    """Commands of one caller: appended together or not at all."""

    commands: tuple[Command, ...]
    actor: Actor
    verb: str
    request_id: str
    cause: int
    observed: int
    lease: LeaseToken | None
    done: anyio.Event = field(default_factory=anyio.Event)
    outcomes: list[Outcome] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    problem: Exception | None = None

    def fail(self, problem: Exception) -> None:
        """Tell the caller that nothing of this was appended."""
        self.problem = problem
        self.done.set()


_UNTOUCHED = object()


class StagedObjects:
    """The objects at the head plus what the batch being decided has changed so far."""

    def __init__(self, base: ObjectsReader) -> None:
        self._base = base
        self._events: dict[ObjectKey, Event | None] = {}
        self._by_place: dict[tuple[str, str], set[ObjectKey]] = {}
        self._uids: dict[str, ObjectKey] = {}
        self._undo: list[tuple[ObjectKey, object]] = []
        self._tallies: dict[str, tuple[int, Tally]] = {}
        self._revision = base.revision

    @property
    def revision(self) -> Revision:
        """The revision of the last staged event."""
        return self._revision

    def stage(self, events: Iterable[Event]) -> None:
        """Show these events from now on."""
        for event in events:
            self._revision = event.revision
            if not event.is_about_object:
                continue
            key = event.key
            gone = event.type is EventType.OBJECT_DELETED
            self._undo.append((key, self._events.get(key, _UNTOUCHED)))
            self._events[key] = None if gone else event
            self._by_place.setdefault((key.group, key.resource), set()).add(key)
            if event.uid and not gone:
                self._uids[event.uid] = key

    def mark(self) -> tuple[int, Revision]:
        """A point to return to."""
        return len(self._undo), self._revision

    def restore(self, mark: tuple[int, Revision]) -> None:
        """Forget what was staged after the mark."""
        length, self._revision = mark
        self._tallies = {
            namespace: held for namespace, held in self._tallies.items() if held[0] <= length
        }
        while len(self._undo) > length:
            key, event = self._undo.pop()
            if event is _UNTOUCHED:
                del self._events[key]
            else:
                self._events[key] = cast("Event | None", event)

    def get(self, key: ObjectKey) -> JsonObject | None:
        """The object as the batch has left it."""
        if key in self._events:
            event = self._events[key]
            return None if event is None else event.object
        return self._base.get(key)

    def event(self, key: ObjectKey) -> Event | None:
        """Its last event."""
        if key in self._events:
            return self._events[key]
        return self._base.event(key)

    def keys(self, group: str, resource: str, namespace: str | None = None) -> Iterable[ObjectKey]:
        """Keys of a resource, sorted."""
        touched = {
            key
            for key in self._by_place.get((group, resource), ())
            if key in self._events and (namespace is None or key.namespace == namespace)
        }
        if not touched:
            return self._base.keys(group, resource, namespace)
        found = set(self._base.keys(group, resource, namespace)) - touched
        return sorted(found | {key for key in touched if self._events[key] is not None})

    def tally(self, namespace: str, scopes: Scopes | None = None) -> Tally:
        """What the objects of a namespace count for in quotas, as the batch has left them.

        Kept with the length of the undo list that it covers, so that each staged event is counted
        once however often somebody asks. Scopes that are new to it are asked of the base.
        """
        held = self._tallies.get(namespace)
        if held is None or (scopes and held[1].within(scopes) is None):
            held = 0, quota.tally_of(self._base, namespace, scopes).copy()
        covered, tally = held
        before: dict[ObjectKey, object] = {}
        for key, previous in self._undo[covered:]:
            if key.namespace == namespace:
                before.setdefault(key, previous)
        for key, previous in before.items():
            if previous is _UNTOUCHED:
                previous = self._base.event(key)
            for event, count in ((previous, tally.remove), (self._events[key], tally.add)):
                if isinstance(event, Event):
                    count(key.group, key.resource, event.object)
        self._tallies[namespace] = (len(self._undo), tally)
        return tally

    def dependents(self, owner_uid: str) -> Iterable[ObjectKey]:
        """Keys of objects with that owner, sorted; staged objects are looked at one by one."""
        found = {key for key in self._base.dependents(owner_uid) if key not in self._events}
        for key, event in self._events.items():
            owners = [] if event is None else event.object["metadata"].get("ownerReferences") or []
            if any(owner.get("uid") == owner_uid for owner in owners):
                found.add(key)
        return sorted(found)

    def by_uid(self, uid: str) -> ObjectKey | None:
        """The key of the object with that uid."""
        key = self._uids.get(uid) or self._base.by_uid(uid)
        return key if key is not None and self.event(key) is not None else None


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
        clock: Clock,
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
        self._queue: deque[Request] = deque()
        self._arrived = anyio.Event()
        self.lock = anyio.Lock()
        self.head = Head()

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return len(self._queue)

    async def submit(self, request: Request) -> Request:
        """Queue a request and wait for its fate; raises what refused it."""
        if len(self._queue) >= self._bounds.queue_max:
            raise LogUnavailable(f"more than {self._bounds.queue_max} writes are waiting already")
        self._queue.append(request)
        self._arrived.set()
        await request.done.wait()
        if request.problem is not None:
            raise request.problem
        return request

    async def run(self) -> None:
        """Write until cancelled; what waits then is refused."""
        try:
            while True:
                if not self._queue:
                    self._arrived = anyio.Event()
                    await self._arrived.wait()
                async with self.lock:
                    await self._write_batch(self._take())
        finally:
            while self._queue:
                self._queue.popleft().fail(LogUnavailable("the server is stopping"))

    async def catch_up(self) -> set[bytes]:
        """Fold what has been appended since; the caller holds the lock. Returns the hashes."""
        hashes: set[bytes] = set()
        while True:
            stored = await self._log.head(self._history)
            if stored.revision <= self.head.revision:
                self.head = stored
                return hashes
            events = await self._log.read(self._history, after=self.head.revision, limit=5_000)
            last = events[-1]
            hashes.update(event.hash for event in events)
            self.head = Head(
                revision=last.revision,
                epoch=stored.epoch,
                hash=last.hash,
                time=max(self.head.time, last.stamp.time),
            )
            self._commit(events, self.head)

    def _take(self) -> list[Request]:
        count = min(len(self._queue), self._bounds.batch_max)
        return [self._queue.popleft() for _ in range(count)]

    async def _write_batch(self, batch: list[Request]) -> None:
        try:
            for _ in range(self._bounds.retries_max):
                events = self._decide_all(batch)
                try:
                    if events:
                        await self._append(events, batch)
                    elif await self.catch_up():
                        # What was refused or changed nothing may be otherwise at the true head.
                        continue
                except HeadMoved:
                    await self.catch_up()
                    continue
                except StaleLease as stale:
                    batch = _drop_stale(batch, stale)
                    continue
                break
            else:
                raise LogUnavailable(
                    f"other writers moved the head {self._bounds.retries_max} times in a row"
                )
            for request in batch:
                request.done.set()
        except LogError as problem:
            await self._settle_failure(batch, problem)
        except BaseException:
            for request in batch:
                if not request.done.is_set():
                    request.fail(LogUnavailable("the writer was stopped"))
            raise

    async def _settle_failure(self, batch: list[Request], problem: LogError) -> None:
        """After a failed append nobody knows whether it was done: look for our events."""
        try:
            hashes = await self.catch_up()
        except LogError:
            hashes = set()
        for request in batch:
            if request.done.is_set():
                continue
            if request.problem is None and not all(
                event.hash in hashes for event in request.events
            ):
                request.problem = problem
            request.done.set()

    async def _append(self, events: list[Event], batch: list[Request]) -> None:
        leases = {
            (request.lease.name, request.lease.epoch): request.lease
            for request in batch
            if request.lease is not None and request.events
        }
        head = await self._log.append(
            self._history, expected=self.head, events=events, leases=list(leases.values())
        )
        self.head = head
        self._commit(events, head)

    def _decide_all(self, batch: list[Request]) -> list[Event]:
        """Decide every request against the head as known here; the outcome stands in each."""
        staged = StagedObjects(self._objects())
        now = Instant(max(self._clock.now(), self.head.time))
        events: list[Event] = []
        for request in batch:
            previous = events[-1].hash if events else self.head.hash
            request.problem, request.events, request.outcomes = None, [], []
            try:
                request.events, request.outcomes = self._decide(request, staged, now, previous)
            except Exception as problem:  # a refusal, or a mistake of ours: its caller hears it
                request.problem = problem
            events.extend(request.events)
        return events

    def _decide(
        self, request: Request, staged: StagedObjects, now: Instant, previous: bytes
    ) -> tuple[list[Event], list[Outcome]]:
        mark = staged.mark()
        events: list[Event] = []
        outcomes: list[Outcome] = []
        try:
            for command in request.commands:
                stamp = Stamp(
                    time=now,
                    actor=request.actor,
                    verb=request.verb or verb_of(command),
                    request_id=request.request_id,
                    uid=self._uids.uid() if _may_create(command) else "",
                    cause=request.cause,
                    observed=request.observed,
                    origin=command.origin if isinstance(command, ImportObject) else None,
                )
                decided = lifecycle.decide(staged, command, stamp, self._rules)
                made = _seal_all(decided.drafts, staged.revision, previous)
                if request.lease is None:
                    _check_sizes(made, command, staged, self._bounds.object_bytes_max)
                staged.stage(made)
                if made:
                    previous = made[-1].hash
                    events.extend(made)
                outcomes.append(_outcome(decided, made))
        except BaseException:
            staged.restore(mark)
            raise
        return events, outcomes


def verb_of(command: Command) -> str:
    """The API verb under which a command is recorded when the caller names none."""
    match command:
        case CreateObject():
            return "create"
        case UpdateObject():
            return "update"
        case PatchObject():
            return "patch"
        case DeleteObject():
            return "delete"
        case BindPod():
            return "create"
        case RecordDecision():
            return "decide"
        case RecordFact():
            return "record"
        case ImportObject():
            return "import"


def _may_create(command: Command) -> bool:
    """Whether the command can need a fresh uid; an apply creates what is not there."""
    if isinstance(command, PatchObject):
        return command.type is PatchType.APPLY
    return isinstance(command, CreateObject)


def _seal_all(drafts: Sequence[Draft], revision: Revision, previous: bytes) -> list[Event]:
    events: list[Event] = []
    for draft in drafts:
        event = seal(draft, Revision(revision + len(events) + 1), previous)
        previous = event.hash
        events.append(event)
    return events


def _check_sizes(
    made: Sequence[Event], command: Command, staged: StagedObjects, bytes_max: int
) -> None:
    """Raise TooLarge for an object that a client makes larger than may be stored."""
    if not isinstance(command, CreateObject | UpdateObject | PatchObject):
        return
    for event in made:
        size = len(event.body)
        if size <= bytes_max or not event.is_about_object:
            continue
        before = staged.event(event.key)
        if before is None or size > len(before.body):
            raise TooLarge(f"the object would have {size} bytes; at most {bytes_max} are stored")


def _outcome(decided: Decided, made: list[Event]) -> Outcome:
    return Outcome(
        tree=decided.tree,
        event=made[-1] if made else None,
        warnings=decided.warnings,
        created=decided.created,
    )


def _drop_stale(batch: list[Request], stale: StaleLease) -> list[Request]:
    """Fail the requests that came with the stale lease, keep the others."""
    kept: list[Request] = []
    for request in batch:
        lease = request.lease
        if lease is not None and (lease.name, lease.epoch) == (stale.name, stale.epoch):
            request.fail(stale)
        else:
            kept.append(request)
    return kept
