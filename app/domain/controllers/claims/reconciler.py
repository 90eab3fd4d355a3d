"""The queue of the ResourceClaim controller: which pods and claims to sync after which event.

Claim keys come before pod keys (controllers.md 7.1). One step is one write of pod sync or all
writes of claim sync; a pod that needs several claims is synced again after each. When writes take
time, each write of claim sync is a separate step (`claim_sync`); the decision before it records the
remaining acts, so that a process that folds the log continues with them.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from app.domain.controllers import pods
from app.domain.controllers.batching import Batcher
from app.domain.controllers.claims import claim_sync, pod_sync
from app.domain.controllers.claims.caches import CACHE_LAG, LaggingCache, WorkAgain
from app.domain.controllers.claims.claim_sync import ClaimAct
from app.domain.controllers.claims.users import ClaimUsers, WrittenClaims
from app.domain.controllers.event_objects import Reporter, reference
from app.domain.controllers.gates import EverythingOn, Gates
from app.domain.controllers.pacing import Pace
from app.domain.controllers.plan import DECISIONS, Decision, Plan, Reads, Views
from app.domain.controllers.pods import PodFacts
from app.domain.controllers.quirks import ControllerQuirks
from app.domain.controllers.resources import is_of, pod_key
from app.domain.controllers.work_queue import AnyQueue, WorkQueue
from app.domain.log import Event, EventType, Revision
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.write.commands import Command, CreateObject, PatchObject
from app.domain.values import api_resources, event_reasons
from app.domain.values.fields import decision_body
from app.domain.values.identifiers import NamespacedName, Uid
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

NAME = "claims"

REMOVED_MAX = 20
"""The most dropped reservations that a decision names; the others are only counted."""

ACTS_APART = 10_000
"""Microseconds between two writes about one claim. Parity: controllers.md 2.3 (recorded)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Going:
    """The remaining acts of a look; `own` is the revision of its last write."""

    acts: tuple[ClaimAct, ...]
    due: Instant
    own: int


class ClaimsReconciler:
    """Folds pods, claims and templates into two work queues.

    Parity: controllers.md 2.1. An event on a claim queues the claim and the pods that name it; an
    event on a pod queues the claims that it no longer needs, or the pod itself.
    """

    name = NAME

    def __init__(
        self,
        gates: Gates = EverythingOn(),
        quirks: ControllerQuirks = ControllerQuirks(),
        pace: Pace | None = None,
        apart: int | None = None,
    ) -> None:
        """With `apart`, in microseconds, each write about a claim is a separate append."""
        # Decisions are read only in this mode, because they are frequent: they record later acts.
        decisions = () if apart is None else (DECISIONS,)
        self.reads: Reads = frozenset(
            {
                api_resources.PODS,
                api_resources.RESOURCE_CLAIMS,
                api_resources.RESOURCE_CLAIM_TEMPLATES,
                api_resources.EVENTS,
                *decisions,
            }
        )
        self._gates = gates
        self._quirks = quirks
        self._apart = apart
        self._going: dict[NamespacedName, _Going] = {}
        self._cache = None if pace is None else LaggingCache(pace.claims_cache)
        self._gone: dict[Uid, Instant] | None = None if pace is None else {}
        self._pods: dict[NamespacedName, PodFacts] = {}
        self._running: dict[NamespacedName, Uid] = {}
        self._users = ClaimUsers()
        self._written = WrittenClaims()
        self._by_template: dict[NamespacedName, set[str]] = {}
        self._claim_queue: WorkQueue[NamespacedName] = WorkQueue("claims", pace)
        self._pod_queue: WorkQueue[NamespacedName] = WorkQueue("claims/pods", pace)
        self._broken: dict[NamespacedName, pod_sync.SyncFailure] = {}
        self._again = WorkAgain(quirks, None if pace is None else pace.claims_cache)
        self._reporter = Reporter("resource_claim")
        self._batcher = Batcher()
        self._sent: dict[NamespacedName, pod_sync.Step] = {}
        self._passed: dict[NamespacedName, str] = {}

    @property
    def queues(self) -> tuple[AnyQueue, ...]:
        """The queues of this controller, for metrics."""
        return (self._claim_queue, self._pod_queue)

    def fold(self, event: Event, views: Views) -> None:
        """Queues the claims and pods that the event may affect."""
        key = event.key
        if is_of(key, api_resources.PODS):
            self._fold_pod(event, views.objects)
        elif is_of(key, api_resources.RESOURCE_CLAIMS):
            self._fold_claim(event, views.objects)
        elif is_of(key, api_resources.RESOURCE_CLAIM_TEMPLATES):
            if event.type is EventType.OBJECT_CREATED and self._cache is not None:
                self._cache.note_template(event)
            if event.type is not EventType.OBJECT_DELETED:
                for name in sorted(self._by_template.get((key.namespace, key.name), ())):
                    self._look_at_pod((key.namespace, name), views.objects, event.revision)
        elif event.type is EventType.CONTROLLER_RESTARTED:
            self._broken.clear()
        elif event.type is EventType.DECISION_RECORDED:
            self._fold_decision(event)
        else:
            self._reporter.fold(event)

    def step(self, views: Views, now: Instant) -> Plan | None:
        """Syncs claims, or pods when no claim is ready; as many as can share an append."""
        if not self._claim_queue.may_have(now) and not self._pod_queue.may_have(now):
            return None
        self._forget_ended(now)
        return self._batcher.collect(lambda: self._next(views, now), self._put_back)

    def _next(self, views: Views, now: Instant) -> Plan | None:
        if item := self._claim_queue.take(now):
            place, cause = item
            return self._plan_claim(views, place, now, cause)
        if item := self._pod_queue.take(now):
            place, cause = item
            return self._plan_pod(views, place, now, cause)
        return None

    def settled(self, plan: Plan, problem: str | None, now: Instant) -> None:
        """Syncs again after success; after a refusal reports (pods) and retries with back-off."""
        for part in self._batcher.settle(plan, problem, self._put_back):
            self._settle_one(part, problem, now)

    def _put_back(self, plan: Plan) -> None:
        kind, place = _place_of(plan)
        self._sent.pop(place, None)
        queue = self._pod_queue if kind == "pod" else self._claim_queue
        queue.add_first(place, Revision(plan.cause))

    def _settle_one(self, plan: Plan, problem: str | None, now: Instant) -> None:
        kind, place = _place_of(plan)
        if kind == "claim":
            if problem is not None:
                # A failed sync begins anew, with what the claim needs then.
                self._going.pop(place, None)
                self._claim_queue.retry(place, now)
            elif plan.decision is None or "follows" not in plan.decision.inputs:
                # Its failures end with its last act: a later one may fail yet.
                self._claim_queue.forget(place)
            return
        sent = self._sent.pop(place, None)
        self._passed.pop(place, None)
        match sent:
            case pod_sync.SyncFailure():
                self._broken.pop(place, None)
                self._pod_queue.retry(place, now)
            case pod_sync.PodWrite(entry=entry, command=CreateObject()) if problem is not None:
                text = f"create ResourceClaim : {problem}"
                self._broken[place] = pod_sync.SyncFailure(entry=entry, text=text)
                # The refused sync ends with its report: no other look at the pod comes between.
                self._pod_queue.resume(place, plan.observed)
            case pod_sync.PodWrite() if problem is not None:
                self._pod_queue.retry(place, now)
            case pod_sync.PodWrite(entry=entry):
                # One sync goes through the entries once, and then enters the names.
                self._passed[place] = entry
                # Its failures end when the sync has nothing left to do: another entry may fail yet.
                self._pod_queue.add_first(place, Revision(plan.cause))
            case None:
                pass

    def due(self) -> Instant | None:
        """The instant at which the next waiting key is due."""
        instants = [d for d in (self._claim_queue.due(), self._pod_queue.due()) if d is not None]
        return min(instants, default=None)

    def redecide(self, views: Views, decision: Event) -> Plan | None:
        """Makes the plan of a recorded decision again; only releases are recorded."""
        recorded = decision_body.read(decision.object)
        now = Instant(recorded.inputs.now or decision.stamp.time)
        acts = tuple(ClaimAct(act) for act in recorded.inputs.acts)
        return self._plan_release(views, recorded.place, now, Revision(recorded.cause), acts)

    def _fold_decision(self, event: Event) -> None:
        if event.object.get("controller") != NAME:
            return
        decision = decision_body.read(event.object)
        place = decision.place
        self._going.pop(place, None)
        known = {act.value for act in ClaimAct}
        acts = tuple(ClaimAct(act) for act in decision.inputs.follows if act in known)
        if not acts:
            return
        now = decision.inputs.now or event.stamp.time
        due = Instant(now + (self._apart or 0))
        own = event.revision + 1
        self._going[place] = _Going(acts=acts, due=due, own=own)
        self._claim_queue.add_at(place, due, event.revision)

    def _fold_pod(self, event: Event, objects: ObjectsReader) -> None:
        place = (event.key.namespace, event.key.name)
        pod = pods.facts_of(event)
        if self._is_seen_late(event, place, pod):
            return
        old = self._pods.get(place)
        if pod.is_done or event.type is EventType.OBJECT_DELETED:
            self._running.pop(place, None)
        else:
            self._running[place] = pod.uid
        if not pod.uses_claims:
            if old is not None:
                self._forget_pod(place, old)
            return
        if old is not None and (old.entries, old.generated) != (pod.entries, pod.generated):
            self._forget_pod(place, old)
        if event.type is EventType.OBJECT_DELETED:
            self._forget_pod(place, pod)
            self._broken.pop(place, None)
            self._again.forget(pod.uid)
            self._note_gone(pod, event)
            return
        self._pods[place] = pod
        if old is not None:
            if _asks_the_same(old, pod):
                return
            self._users.remove(old)
        self._index(pod)
        self._look_at_pod(place, objects, event.revision)

    def _is_seen_late(self, event: Event, place: NamespacedName, pod: PodFacts) -> bool:
        """Whether an event about a pod is its end, which the cache does not show yet."""
        if self._cache is None:
            return False
        self._forget_ended(event.stamp.time, (place, pod.uid))
        if not self._cache.hides_end(event, self._pods.get(place), pod):
            return False
        if event.type is EventType.OBJECT_DELETED:
            self._running.pop(place, None)
            self._note_gone(pod, event)
        return True

    def _forget_ended(self, now: Instant, new: tuple[NamespacedName, Uid] | None = None) -> None:
        """Forgets pods whose end the cache shows by now, or which a new one has replaced."""
        for place in () if self._cache is None else self._cache.shown_ends(now, new):
            pod = self._pods[place]
            self._forget_pod(place, pod)
            self._again.forget(pod.uid)

    def _note_gone(self, pod: PodFacts, event: Event) -> None:
        if self._gone is not None:
            self._gone[pod.uid] = event.stamp.time
        self._queue_claims(pod, event.revision)

    def _fold_claim(self, event: Event, objects: ObjectsReader) -> None:
        place = (event.key.namespace, event.key.name)
        if event.type is not EventType.OBJECT_DELETED:
            self._claim_queue.add(place, event.revision)
            self._written.note(place, event.object)
        else:
            self._written.forget(place)
            self._again.forget_claim(place)
            # The remaining acts are not about another claim that gets the name.
            self._going.pop(place, None)
        going = self._going.get(place)
        if (
            going is not None
            and event.revision != going.own
            and going.acts[0] is ClaimAct.FINALIZER
        ):
            # Another client wrote it: upstream's update meets a conflict, and it syncs again.
            del self._going[place]
        reserved = pods.reserved_uids(event.object)
        if event.type is EventType.OBJECT_CREATED:
            self._again.count_made(event)
        if event.type is not EventType.OBJECT_DELETED:
            users = (self._pods[(place[0], name)] for name in self._users.of(place))
            self._again.count_reserved(place, reserved, users)
        for name in self._users.to_look_at(place, reserved):
            self._look_at_pod((place[0], name), objects, event.revision)

    def _look_at_pod(
        self, place: NamespacedName, objects: ObjectsReader, revision: Revision
    ) -> None:
        pod = self._pods[place]
        if pod.is_done:
            self._queue_claims(pod, revision)
        is_reserved = self._written.is_reserved
        needs_work = pod_sync.needs_work(objects, pod, self._quirks, is_reserved)
        if needs_work and self._again.may_write(pod):
            self._pod_queue.add(place, revision)

    def _queue_claims(self, pod: PodFacts, revision: Revision) -> None:
        for named in pods.named_claims(pod):
            self._claim_queue.add((pod.namespace, named.name or ""), revision)
        if pod.extended_claim:
            self._claim_queue.add((pod.namespace, pod.extended_claim), revision)

    def _plan_claim(
        self, views: Views, place: NamespacedName, now: Instant, cause: Revision
    ) -> Plan:
        """The plan of the next act about a claim; without time between writes, of all acts."""
        acts = () if self._apart is None else (ClaimAct.FIRST,)
        rests = self._written.take_all_run(place, self._running)
        going = self._going.get(place)
        if going is not None:
            if going.due > now:
                self._claim_queue.add_at(place, going.due, cause)
                return Plan(controller=NAME, key=f"claim:{place[0]}/{place[1]}")
            plan = self._plan_release(views, place, now, cause, going.acts, self._running)
            if not plan.is_empty:
                return plan
            del self._going[place]
        if rests:
            plan = Plan(controller=NAME, key=f"claim:{place[0]}/{place[1]}")
        else:
            plan = self._plan_release(views, place, now, cause, acts, self._running)
        if plan.is_empty:
            self._claim_queue.forget(place)
        return plan

    def _plan_release(
        self,
        views: Views,
        place: NamespacedName,
        now: Instant,
        cause: Revision,
        acts: tuple[ClaimAct, ...],
        running: Mapping[NamespacedName, Uid] = claim_sync.NO_PODS,
    ) -> Plan:
        """The plan of the first of these acts; without acts, of all writes together."""
        namespace, name = place
        objects = views.objects
        key = f"claim:{namespace}/{name}"
        inputs: JsonObject = {"now": now}
        if acts:
            gone = self._lately_gone(now)
            writes = claim_sync.next_write(objects, namespace, name, acts[0], gone, running)
            inputs["acts"] = [act.value for act in acts]
        else:
            writes = claim_sync.needed_writes(objects, namespace, name, running=running)
        if writes is None:
            return Plan(controller=NAME, key=key)
        if follows := (*writes.follows, *acts[1:]):
            inputs["follows"] = [act.value for act in follows]
        decision = Decision(
            controller=NAME,
            resource="resourceclaims",
            namespace=namespace,
            name=name,
            outcome=writes.outcome,
            inputs=inputs,
            summary={
                "removed": list(writes.removed[:REMOVED_MAX]),
                "removedCount": len(writes.removed),
                "kept": writes.kept,
            },
        )
        return Plan(
            controller=NAME,
            key=key,
            commands=writes.commands,
            decision=decision,
            cause=cause,
            observed=views.objects.revision,
        )

    def _lately_gone(self, now: Instant) -> Collection[Uid]:
        """The uids of pods that upstream's cache may still hold; empty without a recorded pace."""
        if not self._gone:
            return ()
        for uid, since in tuple(self._gone.items()):
            if now < since + CACHE_LAG:
                break
            del self._gone[uid]
        return self._gone

    def _plan_pod(self, views: Views, place: NamespacedName, now: Instant, cause: Revision) -> Plan:
        key = f"pod:{place[0]}/{place[1]}"
        pod = self._pods.get(place)
        step: pod_sync.Step = self._broken.get(place)
        if pod is not None and step is None:
            spent = self._again.spent(pod)
            done = spent | _up_to(pod, self._passed.get(place, ""))
            step = pod_sync.next_step(views.objects, pod, self._gates, self._quirks, done)
            step = self._without_template(pod, step, now)
            rests = not self._again.may_write(pod) and not _names_claims(step)
            if rests or (spent and step is None):
                step = pod_sync.enter_names(pod, self._again.second_names(pod), self._quirks)
        command: Command | None = None
        match step:
            case pod_sync.PodWrite():
                command = step.command
            case pod_sync.SyncFailure():
                command = self._report(views.objects, place, step, now)
            case None:
                pass
        if command is None:
            self._pod_queue.forget(place)
            self._broken.pop(place, None)
            self._passed.pop(place, None)
            return Plan(controller=NAME, key=key)
        self._sent[place] = step
        observed = views.objects.revision
        return Plan(controller=NAME, key=key, commands=(command,), cause=cause, observed=observed)

    def _without_template(self, pod: PodFacts, step: pod_sync.Step, now: Instant) -> pod_sync.Step:
        """The step where the cache may lack the template of a claim that is to be made."""
        match step:
            case pod_sync.PodWrite(command=CreateObject()) if self._cache is not None:
                entry = next(entry for entry in pod.entries if entry.name == step.entry)
                place = (pod.namespace, pod.name)
                until = self._cache.lacks_until(place, entry.template, now)
                if until is not None:
                    self._pod_queue.add_at(place, until)  # the template wakes the pod
                    return pod_sync.lacks_template(entry)
        return step

    def _report(
        self,
        objects: ObjectsReader,
        place: NamespacedName,
        failure: pod_sync.SyncFailure,
        now: Instant,
    ) -> Command | None:
        tree = objects.get(pod_key(*place))
        if tree is None:
            return None
        return self._reporter.report(
            objects,
            now,
            reference(tree, kind="Pod", with_revision=True),
            kind="Warning",
            reason=event_reasons.FAILED_CLAIM_CREATION,
            message=f"PodResourceClaim {failure.entry}: {failure.text}",
        )

    def _index(self, pod: PodFacts) -> None:
        self._users.add(pod)
        for entry in pod.entries:
            if entry.template:
                place = (pod.namespace, entry.template)
                self._by_template.setdefault(place, set()).add(pod.name)

    def _forget_pod(self, place: NamespacedName, pod: PodFacts) -> None:
        self._pods.pop(place, None)
        self._users.remove(pod)
        for entry in pod.entries:
            _discard(self._by_template, (pod.namespace, entry.template), pod.name)


def _up_to(pod: PodFacts, name: str) -> frozenset[str]:
    """The names of the entries of a pod up to this one; none without a name."""
    names = [entry.name for entry in pod.entries]
    return frozenset(names[: names.index(name) + 1] if name in names else ())


def _names_claims(step: pod_sync.Step) -> bool:
    """Whether the step writes the names of created claims to the pod's status."""
    # Parity: controllers.md C22, the second claim of a finished pod is in its status too.
    return isinstance(step, pod_sync.PodWrite) and isinstance(step.command, PatchObject)


def _asks_the_same(old: PodFacts, new: PodFacts) -> bool:
    """True when the changes of a pod cannot affect whether it needs work."""
    return (
        old.uid == new.uid
        and old.node == new.node
        and old.generated == new.generated
        and old.is_deleting == new.is_deleting
        and old.is_done == new.is_done
        and old.extended_claim == new.extended_claim
    )


def _place_of(plan: Plan) -> tuple[str, NamespacedName]:
    kind, _, text = plan.key.partition(":")
    namespace, _, name = text.partition("/")
    return kind, (namespace, name)


def _discard(index: dict[NamespacedName, set[str]], place: NamespacedName, name: str) -> None:
    held = index.get(place)
    if held is None:
        return
    held.discard(name)
    if not held:
        del index[place]
