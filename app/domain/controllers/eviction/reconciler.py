"""The queue of pods to evict: due instants, cancellations, executions.

State per pod uid, derived from the log:

    (none) --eviction set--> scheduled --due--> evicted
                 ^              |
                 '--none again--'   (Cancelling deletion)

A decision in the log ends its entry, so a restarted process evicts no pod twice.
Parity: controllers.md 1.4 and 1.5.
"""

from app.domain.controllers import conditions
from app.domain.controllers.batching import Batcher
from app.domain.controllers.event_objects import MANAGER, Reporter, without_refused
from app.domain.controllers.eviction.state import READ, Changes, TaintState
from app.domain.controllers.eviction.taints import Eviction
from app.domain.controllers.pacing import Pace
from app.domain.controllers.plan import DECISIONS, Decision, Plan, Reads, Views
from app.domain.controllers.quirks import ControllerQuirks
from app.domain.controllers.resources import is_of, pod_key
from app.domain.controllers.work_queue import AnyQueue, WorkQueue
from app.domain.log import DECISION, Event, EventType, Revision
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.write.commands import (
    Command,
    DeleteObject,
    PatchObject,
    PatchType,
)
from app.domain.values import api_resources, condition_types, timestamps
from app.domain.values.fields import decision_body, entries, meta
from app.domain.values.identifiers import Uid
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

NAME = "eviction"
COMPONENT = "device-taint-eviction-controller"
CONDITION_REASON = "DeletionByDeviceTaintManager"
CONDITION_MESSAGE = "Device Taint manager: deleting due to NoExecute taint"
EVENT_REASON = "DeviceTaintManagerEviction"
CANCELLED = "Cancelling deletion"

EVICTED_MAX = 500
"""The most evicted pods that are remembered, newest last; upstream's bound."""

REASONS_MAX = 20
"""The most reasons that a decision names; the others are only counted."""

ENDED = frozenset({"Evicted", "AlreadyTerminating"})
"""The outcomes after which a pod is not processed again (C5)."""

_PodId = tuple[str, str, Uid]


class EvictionReconciler:
    """Schedules and executes evictions."""

    name = NAME
    reads: Reads = frozenset({*READ, api_resources.EVENTS, DECISIONS})

    def __init__(
        self,
        quirks: ControllerQuirks = ControllerQuirks(),
        pace: Pace | None = None,
        *,
        with_rules: bool = True,
    ) -> None:
        """`with_rules` is the gate of DeviceTaintRules."""
        self._quirks = quirks
        self.state = TaintState(quirks, with_rules=with_rules)
        self._delete_at: dict[_PodId, Eviction] = {}
        self._evicted: dict[str, None] = {}
        self._queue: WorkQueue[_PodId] = WorkQueue(NAME, pace)
        self._cancelled: WorkQueue[_PodId] = WorkQueue("eviction/cancelled", pace)
        self._reporter = Reporter(COMPONENT)
        self._batcher = Batcher()

    @property
    def queues(self) -> tuple[AnyQueue, ...]:
        """The queues of this controller, for metrics."""
        return (self._queue, self._cancelled)

    def fold(self, event: Event, views: Views) -> None:
        """Follows pods, claims, slices and rules; removes entries that decisions have ended."""
        if event.type is EventType.DECISION_RECORDED:
            if event.key.resource == DECISION.resource:
                self._fold_decision(event)
            return
        if not event.is_about_object:
            return
        if is_of(event.key, api_resources.EVENTS):
            self._reporter.fold(event)
            return
        if is_of(event.key, api_resources.PODS) and is_marked(event.object):
            self._note_evicted(event.uid)
        changes = self.state.fold(event, has_planned=bool(self._delete_at))
        if event.type is EventType.OBJECT_DELETED and event.key.resource == "pods":
            # Parity: the entry of a deleted pod is removed without an Event (controllers.md 1.4).
            self._delete_at.pop((event.key.namespace, event.key.name, event.uid), None)
        self._look_at(changes, event.revision)

    def step(self, views: Views, now: Instant) -> Plan | None:
        """Reports cancellations and evicts due pods; as many as can share an append."""
        if not self._cancelled.may_have(now) and not self._queue.may_have(now):
            return None
        return self._batcher.collect(lambda: self._next(views, now), self._put_back)

    def _next(self, views: Views, now: Instant) -> Plan | None:
        if item := self._cancelled.take(now):
            pod_id, cause = item
            return self._plan_cancel(views.objects, pod_id, now, cause)
        while item := self._queue.take(now):
            pod_id, cause = item
            eviction = self._delete_at.get(pod_id)
            if eviction is None or pod_id[2] in self._evicted:
                continue
            if eviction.time > now:
                self._queue.add_at(pod_id, eviction.time, cause)
                continue
            plan = self._plan_evict(views.objects, pod_id, eviction, now, cause)
            if plan is not None:
                return plan
            del self._delete_at[pod_id]
        return None

    def settled(self, plan: Plan, problem: str | None, now: Instant) -> None:
        """Retries a refused plan with back-off; a success has already been folded."""
        for part in self._batcher.settle(plan, problem, self._put_back):
            self._settle_one(part, problem, now)

    def _put_back(self, plan: Plan) -> None:
        if plan.decision is not None:
            queue, pod_id = self._queue_of(plan.decision)
            queue.add_first(pod_id, Revision(plan.cause))

    def _settle_one(self, plan: Plan, problem: str | None, now: Instant) -> None:
        if plan.decision is None:
            return
        queue, pod_id = self._queue_of(plan.decision)
        if problem is None:
            queue.forget(pod_id)
        else:
            queue.retry(pod_id, now)

    def _queue_of(self, decision: Decision) -> tuple[WorkQueue[_PodId], _PodId]:
        pod_id = (decision.namespace, decision.name, entries.uid(decision.inputs))
        cancels = decision.outcome == "Cancelled"
        return (self._cancelled if cancels else self._queue), pod_id

    def due(self) -> Instant | None:
        """The instant at which the next pod is due."""
        instants = [d for d in (self._queue.due(), self._cancelled.due()) if d is not None]
        return min(instants, default=None)

    def redecide(self, views: Views, decision: Event) -> Plan | None:
        """Makes the plan again from the state folded up to the observed revision."""
        recorded = decision_body.read(decision.object)
        place = recorded.place
        pod_id = (*place, recorded.inputs.uid)
        now = Instant(recorded.inputs.now or decision.stamp.time)
        cause = Revision(recorded.cause)
        if recorded.outcome == "Cancelled":
            return self._plan_cancel(views.objects, pod_id, now, cause)
        # Not the instant that the queue stores: a look that was left out would be left out again.
        eviction = self.state.pod_eviction(place)
        if eviction is None:
            return None
        return self._plan_evict(views.objects, pod_id, eviction, now, cause)

    def _look_at(self, changes: Changes, revision: Revision) -> None:
        for place in changes.pods:
            pod = self.state.pods.get(place)
            if pod is None:
                continue
            pod_id = (*place, pod.uid)
            eviction = self.state.pod_eviction(place)
            if eviction is not None:
                # An instant that has been put off is no reason to look at the pod.
                self._delete_at[pod_id] = eviction
                self._queue.wait_until(pod_id, eviction.time, revision)
            elif self._delete_at.pop(pod_id, None) is not None:
                self._cancelled.add(pod_id, revision)

    def _fold_decision(self, event: Event) -> None:
        if event.object.get("controller") != NAME:
            return
        decision = decision_body.read(event.object)
        uid = decision.inputs.uid
        pod_id = (*decision.place, uid)
        observed = Revision(event.stamp.observed)
        if decision.outcome == "Cancelled":
            self._cancelled.drop(pod_id, observed)
            return
        if decision.outcome in ENDED:
            self._delete_at.pop(pod_id, None)
            self._queue.drop(pod_id, observed)
            self._note_evicted(uid)

    def _note_evicted(self, uid: Uid) -> None:
        self._evicted.pop(uid, None)
        self._evicted[uid] = None
        if len(self._evicted) > EVICTED_MAX:
            del self._evicted[next(iter(self._evicted))]

    def _plan_evict(
        self,
        objects: ObjectsReader,
        pod_id: _PodId,
        eviction: Eviction,
        now: Instant,
        cause: Revision,
    ) -> Plan | None:
        namespace, name, uid = pod_id
        tree = objects.get(pod_key(namespace, name))
        if tree is None or meta.uid(tree) != uid:
            return None
        outcome = "Evicted"
        counts = True
        commands: tuple[Command, ...] = ()
        if meta.is_deleting(tree):
            outcome = "AlreadyTerminating"
            counts = self._quirks.c5
        else:
            commands = without_refused(objects, self._evict_commands(objects, tree, pod_id, now))
        decision = Decision(
            controller=NAME,
            resource="pods",
            namespace=namespace,
            name=name,
            outcome=outcome,
            inputs={
                "now": now,
                "uid": uid,
                "due": eviction.time,
                "rules": [
                    [reason.rule, reason.rule_uid]
                    for reason in eviction.reasons
                    if counts and not reason.is_slice
                ],
            },
            summary={
                "due": timestamps.micro_text(eviction.time),
                "reasons": [reason.json() for reason in eviction.reasons[:REASONS_MAX]],
                "reasonsCount": len(eviction.reasons),
            },
        )
        return Plan(
            controller=NAME,
            key=f"evict:{namespace}/{name}",
            commands=commands,
            decision=decision,
            cause=cause,
            observed=objects.revision,
        )

    def _evict_commands(
        self, objects: ObjectsReader, tree: JsonObject, pod_id: _PodId, now: Instant
    ) -> tuple[Command, ...]:
        key = pod_key(pod_id[0], pod_id[1])
        commands: list[Command] = [
            self._reporter.report(
                objects,
                now,
                _reference(pod_id),
                kind="Normal",
                reason=EVENT_REASON,
                message="Marking for deletion",
            )
        ]
        condition = conditions.disruption(
            tree, reason=CONDITION_REASON, message=CONDITION_MESSAGE, now=now
        )
        if condition is not None:
            commands.append(
                PatchObject(
                    key=key,
                    version="v1",
                    type=PatchType.STRATEGIC,
                    body={
                        "metadata": {"uid": pod_id[2]},
                        "status": conditions.patch_of(tree, condition),
                    },
                    subresource="status",
                    options=MANAGER,
                )
            )
        commands.append(DeleteObject(key=key, uid=pod_id[2], options=MANAGER))
        return tuple(commands)

    def _plan_cancel(
        self, objects: ObjectsReader, pod_id: _PodId, now: Instant, cause: Revision
    ) -> Plan:
        namespace, name, uid = pod_id
        command = self._reporter.report(
            objects,
            now,
            _reference(pod_id),
            kind="Normal",
            reason=EVENT_REASON,
            message=CANCELLED,
        )
        decision = Decision(
            controller=NAME,
            resource="pods",
            namespace=namespace,
            name=name,
            outcome="Cancelled",
            inputs={"now": now, "uid": uid},
            summary={},
        )
        return Plan(
            controller=NAME,
            key=f"cancel:{namespace}/{name}",
            commands=without_refused(objects, (command,)),
            decision=decision,
            cause=cause,
            observed=objects.revision,
        )


def is_marked(pod: JsonObject) -> bool:
    """True for an evicted pod: it is terminating and has the condition of this controller."""
    if "deletionTimestamp" not in pod["metadata"]:
        return False
    return any(
        (condition.type, condition.reason) == (condition_types.DISRUPTION_TARGET, CONDITION_REASON)
        for condition in meta.conditions(pod)
    )


def _reference(pod_id: _PodId) -> JsonObject:
    return {
        "kind": "Pod",
        "namespace": pod_id[0],
        "name": pod_id[1],
        "uid": pod_id[2],
        "apiVersion": "v1",
    }
