"""The shared part of controllers that process one key after the other.

    event ── keys_of ──▶ queue ── reconcile ──▶ work ──▶ plan ── settled ──▶ done, or queued again

A controller defines the keys that an event affects and the work for a key. This module does the
queueing, batching, retries after a refusal, and the removal of keys that a recorded decision has
already handled.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Generic, NamedTuple, TypeVar

from app.domain.controllers.batching import Batcher
from app.domain.controllers.pacing import Pace
from app.domain.controllers.plan import DECISIONS, Decision, Plan, Reads, ViewsT
from app.domain.controllers.work_queue import AnyQueue, WorkQueue
from app.domain.log import DECISION, Event, EventType, Revision
from app.domain.objects.write.commands import Command
from app.domain.values.fields import decision_body
from app.domain.values.timestamps import Instant

Key = TypeVar("Key", bound=tuple[str, ...])

_CREATED, _UPDATED, _DELETED = (
    EventType.OBJECT_CREATED,
    EventType.OBJECT_UPDATED,
    EventType.OBJECT_DELETED,
)


class Work(NamedTuple):
    """The work for a key: commands, and the decision that explains them.

    With `due` the key is processed again at that instant.
    """

    commands: tuple[Command, ...] = ()
    decision: Decision | None = None
    due: Instant | None = None


class KeyedController(ABC, Generic[Key, ViewsT]):
    """A reconciler with one queue; `plan.Reconciler` documents its methods.

    Subclasses define `name`, `reads`, `keys_of` and `reconcile`. A subclass that records decisions
    also defines `decided_key` and reads DECISIONS. With `counts_looks` a look without work counts
    towards the looks that a step may make.
    """

    name: str
    reads: Reads
    counts_looks = False

    def __init__(self, *, pace: Pace | None = None, batch_max: int = 1) -> None:
        """Up to `batch_max` plans form one append; `pace` decides when a key may be processed."""
        self.queue: WorkQueue[Key] = WorkQueue(self.name, pace)
        self._batcher = Batcher(batch_max)
        self._planned: dict[str, Key] = {}
        self._reads_decisions = self.reads is not None and DECISIONS in self.reads

    @abstractmethod
    def keys_of(self, event: Event, views: ViewsT) -> Iterable[Key]:
        """The keys to process now because of an event on an object.

        The method itself adds keys that become due later to `queue`, and drops obsolete ones.
        """

    @abstractmethod
    def reconcile(self, views: ViewsT, key: Key, now: Instant) -> Work | None:
        """The work for the key now; None or an empty Work when there is none."""

    def decided_key(self, decision: Event) -> Key | None:
        """The key of a recorded decision of this controller."""
        return None

    def has_more(self, plan: Plan) -> bool:
        """Whether the key of an appended plan must be processed again."""
        return False

    def text_of(self, key: Key) -> str:
        """The text of the key in plans and decisions."""
        return "/".join(key)

    def settle(self, key: Key, plan: Plan, problem: str | None, now: Instant) -> None:
        """Retries a refused plan; after success queues the key again if there is more work."""
        self.queue.settle(key, problem, now)
        if problem is None and self.has_more(plan):
            self.queue.add(key, plan.observed)

    @property
    def queues(self) -> tuple[AnyQueue, ...]:
        """The queues of this controller, for metrics."""
        return (self.queue,)

    def fold(self, event: Event, views: ViewsT) -> None:
        """Queues the keys of an event; drops the key of a decision of this controller."""
        kind = event.type
        # As `is_about_object`, without a call: a dozen controllers fold each event.
        if kind is _UPDATED or kind is _CREATED or kind is _DELETED:
            for key in self.keys_of(event, views):
                self.queue.add(key, event.revision)
        elif (
            self._reads_decisions
            and kind is EventType.DECISION_RECORDED
            and event.key.resource == DECISION.resource
        ):
            self.fold_decision(event)

    def fold_decision(self, decision: Event) -> None:
        """Drops the key of an own decision if it was queued up to the observed revision."""
        if decision.object.get("controller") == self.name:
            key = self.decided_key(decision)
            if key is not None:
                self.queue.drop(key, Revision(decision.stamp.observed))

    def step(self, views: ViewsT, now: Instant) -> Plan | None:
        """The plans of the next keys that can share an append.

        A plan does not see the changes of the others until the next step, as with a cache.
        """
        if not self.queue.may_have(now):
            return None
        return self._batcher.collect(lambda: self._next(views, now), self._put_back)

    def settled(self, plan: Plan, problem: str | None, now: Instant) -> None:
        """Settles the keys of a plan; the parts of a refused batch are retried in smaller ones."""
        for part in self._batcher.settle(plan, problem, self._put_back):
            self.settle(self._planned.pop(part.key), part, problem, now)

    def due(self) -> Instant | None:
        """The instant at which the next waiting key becomes ready."""
        return self.queue.due()

    def redecide(self, views: ViewsT, decision: Event) -> Plan | None:
        """Makes the plan of a decision again from the observed state; None without key or work."""
        key = self.decided_key(decision)
        if key is None:
            return None
        work = self.reconcile(views, key, decided_at(decision))
        if work is None:
            return None
        return self.plan(views, key, work, decided_cause(decision))

    def plan(self, views: ViewsT, key: Key, work: Work, cause: Revision) -> Plan:
        """The plan that does the work."""
        return Plan(
            controller=self.name,
            key=self.text_of(key),
            commands=work.commands,
            decision=work.decision,
            cause=cause,
            observed=views.objects.revision,
        )

    def _next(self, views: ViewsT, now: Instant) -> Plan | None:
        while item := self.queue.take(now):
            key, cause = item
            work = self.reconcile(views, key, now) or Work()
            if work.due is not None:
                self.queue.add_at(key, work.due, cause)
            plan = self.plan(views, key, work, cause)
            if not plan.is_empty:
                self._planned[plan.key] = key
                return plan
            if self.counts_looks:
                return plan
        return None

    def _put_back(self, plan: Plan) -> None:
        self.queue.add_first(self._planned.pop(plan.key), Revision(plan.cause))


def decided_at(decision: Event) -> Instant:
    """The instant at which a recorded decision was made."""
    return Instant(decision_body.read(decision.object).inputs.now or decision.stamp.time)


def decided_cause(decision: Event) -> Revision:
    """The revision that caused a recorded decision."""
    return Revision(decision_body.read(decision.object).cause)
