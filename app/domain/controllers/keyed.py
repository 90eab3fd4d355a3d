"""The kernel of controllers that look at one key after the other.

    event ── keys_of ──▶ queue ── reconcile ──▶ work ──▶ plan ── settled ──▶ done, or queued again

A controller says which keys an event concerns and what is to be done for a key. Queueing, batching,
trying again after a refusal and dropping what a recorded decision has dealt with are here, once.
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


class Work(NamedTuple):
    """What is to be done for a key: commands, and the decision that explains them.

    With `due` the key is looked at again at that instant.
    """

    commands: tuple[Command, ...] = ()
    decision: Decision | None = None
    due: Instant | None = None


class KeyedController(ABC, Generic[Key, ViewsT]):
    """A reconciler with one queue; `plan.Reconciler` says what its methods mean.

    Subclasses give `name`, `reads`, `keys_of` and `reconcile`. One that records decisions gives
    `decided_key` and reads DECISIONS. With `counts_looks` a look without work is one of those that
    a step may make.
    """

    name: str
    reads: Reads
    counts_looks = False

    def __init__(self, *, pace: Pace | None = None, batch_max: int = 1) -> None:
        """Up to `batch_max` plans are one append; a `pace` says when a key may be looked at."""
        self.queue: WorkQueue[Key] = WorkQueue(self.name, pace)
        self._batcher = Batcher(batch_max)
        self._planned: dict[str, Key] = {}
        self._reads_decisions = self.reads is not None and DECISIONS in self.reads

    @abstractmethod
    def keys_of(self, event: Event, views: ViewsT) -> Iterable[Key]:
        """The keys to look at now because of an event on an object.

        What becomes due later, and what no longer has to be looked at, is said to `queue`.
        """

    @abstractmethod
    def reconcile(self, views: ViewsT, key: Key, now: Instant) -> Work | None:
        """What is to be done for the key now; None or no work: nothing."""

    def decided_key(self, decision: Event) -> Key | None:
        """The key that a recorded decision of this controller was made for."""
        return None

    def has_more(self, plan: Plan) -> bool:
        """Whether the key of a plan that was carried out is to be looked at again."""
        return False

    def text_of(self, key: Key) -> str:
        """The key as plans and decisions name it."""
        return "/".join(key)

    def settle(self, key: Key, plan: Plan, problem: str | None, now: Instant) -> None:
        """Try a refused plan again; go on after one that was carried out."""
        self.queue.settle(key, problem, now)
        if problem is None and self.has_more(plan):
            self.queue.add(key, plan.observed)

    @property
    def queues(self) -> tuple[AnyQueue, ...]:
        """What waits for this controller, for metrics."""
        return (self.queue,)

    def fold(self, event: Event, views: ViewsT) -> None:
        """Queue the keys of an event; drop the one that a decision of this controller is about."""
        if event.is_about_object:
            for key in self.keys_of(event, views):
                self.queue.add(key, event.revision)
        elif (
            self._reads_decisions
            and event.type is EventType.DECISION_RECORDED
            and event.key.resource == DECISION.resource
        ):
            self.fold_decision(event)

    def fold_decision(self, decision: Event) -> None:
        """Drop what was queued up to the revision that an own decision observed."""
        if decision.object.get("controller") == self.name:
            key = self.decided_key(decision)
            if key is not None:
                self.queue.drop(key, Revision(decision.stamp.observed))

    def step(self, views: ViewsT, now: Instant) -> Plan | None:
        """The plans of the next keys that go together.

        What one of them changes for another is seen with the next step, as it is from a cache.
        """
        return self._batcher.collect(lambda: self._next(views, now), self._put_back)

    def settled(self, plan: Plan, problem: str | None, now: Instant) -> None:
        """Settle the keys of a plan; after a refusal of several each is tried by itself."""
        if problem is None:
            self._batcher.passed()
        elif plan.parts:
            self._batcher.refused(plan)
            for part in plan.parts:
                self._put_back(part)
            return
        for part in plan.parts or (plan,):
            self.settle(self._planned.pop(part.key), part, problem, now)

    def due(self) -> Instant | None:
        """When the next key that waits is ready."""
        return self.queue.due()

    def redecide(self, views: ViewsT, decision: Event) -> Plan | None:
        """The plan again, from what the decision observed; None where none are recorded."""
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
    """The revision that provoked a recorded decision."""
    return Revision(decision_body.read(decision.object).cause)
