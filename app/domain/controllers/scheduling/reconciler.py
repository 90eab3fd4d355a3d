"""The scheduler as a reconciler: folds the cluster into node index and queue, and tries pods.

Every attempt that writes something is recorded as a decision with the volatile inputs (start
position, number of the attempt); attempts that would repeat earlier writes write nothing to pods,
as upstream, and are recorded together (`repeated_attempts`).
"""

from app.domain.controllers import pods
from app.domain.controllers.batching import Batcher, touched_by
from app.domain.controllers.event_objects import is_about_event
from app.domain.controllers.plan import Decision, DeviceViews, MergingViews, Plan, Reads
from app.domain.controllers.resources import claim_key, is_of, pod_key
from app.domain.controllers.scheduling import planning, repeated_attempts
from app.domain.controllers.scheduling.binding_cycle import delayed_binding, waiting_binding
from app.domain.controllers.scheduling.binding_cycle.placements import RESERVED
from app.domain.controllers.scheduling.binding_cycle.waiting_binding import (
    BindingWaits,
    Wait,
)
from app.domain.controllers.scheduling.framework import pod_spec
from app.domain.controllers.scheduling.framework.nodes import NodeIndex, bound_pod
from app.domain.controllers.scheduling.planning import NAME, Turn
from app.domain.controllers.scheduling.plugins.dynamic_resources import pod_claims
from app.domain.controllers.scheduling.plugins.dynamic_resources.device_map import DeviceIndex
from app.domain.controllers.scheduling.queue import hints
from app.domain.controllers.scheduling.queue.hints import Waker, claim_names
from app.domain.controllers.scheduling.queue.waiting_pods import (
    QueuedPod,
    QueuePart,
    SchedulingQueue,
)
from app.domain.controllers.scheduling.repeated_attempts import RepeatedAttempt
from app.domain.controllers.scheduling.reports import events, messages
from app.domain.controllers.scheduling.scheduling_cycle.assuming import Assumptions, bound_as
from app.domain.controllers.scheduling.scheduling_cycle.attempt import (
    Attempt,
    SchedulerRules,
    attempt,
)
from app.domain.controllers.scheduling.scheduling_cycle.verdicts import Verdicts
from app.domain.controllers.work_queue import AnyQueue
from app.domain.log import DECISION, Event, EventType, ObjectKey, Revision
from app.domain.objects.reader import ObjectsReader
from app.domain.values import api_resources, json_tree
from app.domain.values.fields import core, decision_body, meta
from app.domain.values.identifiers import NamespacedName
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

MOVED_MAX = 4
"""The most repetitions in a row of an attempt because a version or an Event was refused."""


class SchedulingReconciler:
    """Queue, node index and attempts."""

    name = NAME
    reads: Reads = None

    def __init__(self, rules: SchedulerRules) -> None:
        self.rules = rules
        self.nodes = NodeIndex()
        self.queue = SchedulingQueue(
            pops_early=rules.gates.enabled("SchedulerPopFromBackoffQ"), pace=rules.pace
        )
        self._verdicts = Verdicts()
        self._specs = pod_spec.PodSpecs()
        self._devices = DeviceIndex(self.nodes)
        self._waker = Waker(self.queue, self._admit)
        self._series = events.ReportSeries(rules.pace)
        self._bindings = BindingWaits(rules.pace)
        self._assumed = Assumptions(self.nodes, self._devices)
        self.redeciding = self._assumed.staying
        self._batcher = Batcher()
        self._start = 0
        self._next_start = 0
        self._is_step_over = False
        self._quiet: list[RepeatedAttempt] = []
        self._refused: dict[NamespacedName, str] = {}
        self._moved: dict[NamespacedName, int] = {}
        self._merged: dict[ObjectKey, JsonView] = {}

    @property
    def queues(self) -> tuple[AnyQueue, ...]:
        """Empty: waiting pods are counted by their position in the scheduling queue."""
        return ()

    def fold(self, event: Event, views: MergingViews) -> None:
        """Folds all events that affect the placement of pods."""
        key = event.key
        objects = views.objects
        if event.type is EventType.DECISION_RECORDED:
            if key.resource == DECISION.resource and event.object.get("controller") == NAME:
                self._fold_decision(event, objects)
        elif not event.is_about_object:
            return
        elif is_of(key, api_resources.PODS):
            self._fold_pod(event, objects)
        elif is_of(key, api_resources.RESOURCE_CLAIMS):
            self._fold_claim(event, objects)
        elif is_of(key, api_resources.NODES):
            self._fold_node(event, objects)
        elif is_of(key, api_resources.RESOURCE_SLICES):
            self._devices.fold_slice(event)
            if event.type is not EventType.OBJECT_DELETED:
                self._wake(hints.ANY_DEVICE, event, objects)
        elif is_of(key, api_resources.DEVICE_CLASSES):
            self._verdicts.clear()
            serves = self.rules.gates.enabled("DRAExtendedResource")
            for hint in self._waker.class_hints(event, serves_resources=serves):
                self._wake(hint, event, objects)
        elif is_of(key, api_resources.DEVICE_TAINT_RULES) or is_of(
            key, api_resources.RESOURCE_SLICE_PATCHES
        ):
            self._fold_merge(event, views)
        elif (storage := hints.of_volumes(event)) is not None:
            self._wake(storage, event, objects)
        else:
            self._series.fold(event)

    def step(self, views: DeviceViews, now: Instant) -> Plan | None:
        """Tries pods of the queue in one batch, each as if the earlier ones were placed."""
        self._assumed.clear()
        self._next_start = self._start
        self._is_step_over = False
        self.queue.try_again(views.objects.revision)
        self._quiet.clear()
        if not self._bindings.may_have(now) and not self.queue.may_have(now):
            return None
        with self._assumed.staying():
            plan = self._batcher.collect(
                lambda: self._next(views, now), self._put_back, foreseen=self._assumed.written
            )
        if plan is None or not self._quiet:
            return plan
        record = repeated_attempts.plan_of(
            self._quiet,
            now=now,
            following=self._next_start,
            cause=views.objects.revision,
            observed=views.objects.revision,
        )
        return self._batcher.with_record(plan, record, self._put_back)

    def settled(self, plan: Plan, problem: str | None, now: Instant) -> None:
        """Reports a refused plan in the next step, or repeats it when a version had changed."""
        for part in self._batcher.settle(plan, problem, self._put_back):
            if problem is None:
                continue
            if part.key == repeated_attempts.KEY:
                self._put_back(part)
            elif part.decision is not None:
                self._settle_refusal(part, part.decision, problem, now)

    def due(self) -> Instant | None:
        """The instant of the next back-off, flush or check of binding conditions."""
        instants = [due for due in (self.queue.due(), self._bindings.due()) if due is not None]
        return min(instants, default=None)

    def redecide(self, views: DeviceViews, decision: Event) -> Plan | None:
        """Makes the plan again; nodes must be folded up to the observed revision.

        The decisions of one step must be made again in their order, because each assumes the
        earlier ones.
        """
        body = decision.object
        inputs = decision_body.inputs(body)
        if body.get("key") == repeated_attempts.KEY:
            return self._redecide_quiet(views, body, inputs)
        recorded = decision_body.read(body)
        place, now = recorded.place, Instant(recorded.inputs.now or decision.stamp.time)
        if delayed_binding.WRITES_CLAIMS in inputs:
            held = delayed_binding.held_then(self._bindings, place, inputs)
            return None if held is None else self._act(views, held, now)
        tree = views.objects.get(pod_key(*place))
        if tree is None:
            return None
        turn = planning.turn_again(tree, body, now)
        if "bindingNode" in inputs:
            return self._act(views, planning.wait_of(turn, recorded.inputs), now)
        if recorded.outcome == "Skipped":
            return planning.skip_plan(views.objects, self._series, turn)
        if turn.batch == 0:
            self._assumed.clear()
        with self._assumed.in_force(views.allocated):
            if refused := json_tree.text(inputs, "refused"):
                result = Attempt(outcome="Error", message=refused, next_start=turn.start)
            else:
                result = self._try(views, turn)
            plan = planning.plan_of(self.rules, views.objects, self._series, turn, result)
            if result.outcome == "Scheduled":
                self._assumed.add(turn.pod, result, views.allocated, plan.commands)
        return plan

    def _redecide_quiet(self, views: DeviceViews, body: JsonView, inputs: JsonView) -> Plan | None:
        recorded = decision_body.read(body)
        now = Instant(recorded.inputs.now)
        again: list[RepeatedAttempt] = []
        for repeated in repeated_attempts.read(inputs):
            tree = views.objects.get(pod_key(repeated.namespace, repeated.name))
            if tree is None:
                return None
            turn = Turn(
                pod=self._specs.read((repeated.namespace, repeated.name), tree),
                tree=tree,
                now=now,
                cause=Revision(0),
                start=repeated.start,
                number=repeated.number,
                batch=repeated.assumed,
            )
            with self._assumed.in_force(views.allocated, repeated.assumed):
                result = repeated_attempts.refusal_of(repeated) or self._try(views, turn)
            plan = planning.plan_of(self.rules, views.objects, self._series, turn, result)
            if not plan.is_empty:
                return plan
            again.append(repeated_attempts.of_attempt(turn, result))
        return repeated_attempts.plan_of(
            again,
            now=now,
            following=recorded.inputs.next or 0,
            cause=recorded.cause,
            observed=views.objects.revision,
        )

    def _fold_pod(self, event: Event, objects: ObjectsReader) -> None:
        place = (event.key.namespace, event.key.name)
        tree = event.object
        is_gone = event.type is EventType.OBJECT_DELETED
        phase = meta.phase(tree)
        if is_gone or phase in core.FINISHED:
            self._forget(place)
            nominated = self.nodes.nominations.forget(place)
            if self.nodes.release(place) is not None:
                self._wake(hints.POD_GONE, event, objects)
            elif nominated is not None:
                self._wake(hints.nomination_ended(nominated), event, objects)
            return
        if core.node_name(tree):
            if self.nodes.counts_as(tree):
                return
            self._forget(place)
            nominated = self.nodes.nominations.forget(place)
            self.nodes.bind(bound := bound_pod(tree))
            if nominated is not None and nominated.node != bound.node:
                self._wake(hints.nomination_ended(nominated), event, objects)
            if not hints.POD_CAME.plugins.isdisjoint(self.queue.rejected_by):
                self._wake(hints.POD_CAME, event, objects)
            return
        if pod_spec.is_ours(tree, self.rules.profiles):
            self._fold_waiting(event, place, tree, objects)
            self._fold_nomination(event, place, tree, objects)

    def _fold_nomination(
        self, event: Event, place: NamespacedName, tree: JsonObject, objects: ObjectsReader
    ) -> None:
        """Follows the nominated node of the pod; other pods may use a node that it gives up."""
        pod = self.queue.get(place)
        node = core.nominated_node_name(tree)
        if pod is None:
            return
        nominated = self.nodes.nominations.follow(place, node, lambda: bound_as(pod.spec, node))
        if nominated is not None and not self.nodes.holds(place):
            self._wake(hints.nomination_ended(nominated), event, objects)

    def _fold_waiting(
        self, event: Event, place: NamespacedName, tree: JsonObject, objects: ObjectsReader
    ) -> None:
        known = self.queue.get(place)
        if known is None or known.spec.facts.uid != event.uid:
            pod = QueuedPod(
                spec=pod_spec.read(tree, pods.facts_of(event)),
                order=event.revision,
                since=event.stamp.time,
                cause=event.revision,
            )
            self.queue.put(pod)
            self._waker.note_pod(pod)
            self._admit(pod, objects, event.stamp.time)
            return
        before = known.spec
        known.spec = pod_spec.read_again(event, before)
        if known.spec.facts.generated != before.facts.generated:
            self._waker.note_pod(known)
        if known.where is QueuePart.GATED:
            self._admit(known, objects, event.stamp.time)
        elif hint := hints.own_hint(place, before, known.spec):
            self._waker.wake_itself(known, hint, objects, event.stamp.time, event.revision)

    def _fold_claim(self, event: Event, objects: ObjectsReader) -> None:
        change = self._devices.fold_claim(event)
        place = (event.key.namespace, event.key.name)
        is_gone = event.type is EventType.OBJECT_DELETED
        has_news = self._waker.has_news(event)
        if is_gone and self.rules.quirks.c15:
            return
        freed = change.was_set if is_gone else change.was_freed
        if freed:
            self._wake(hints.ANY_DEVICE, event, objects)
        if has_news:
            hint = hints.Hint(plugins=hints.ANY_DEVICE.plugins, claim=place)
            self._wake(hint, event, objects)

    def _fold_node(self, event: Event, objects: ObjectsReader) -> None:
        hint = hints.fold_node(self.nodes, event)
        if hint is not None:
            self._wake(hint, event, objects)

    def _fold_merge(self, event: Event, views: MergingViews) -> None:
        """Handles a rule or patch that changed merged slices like an update of these slices."""
        before = self._merged.pop(event.key, None)
        after = None
        if event.type is not EventType.OBJECT_DELETED:
            after = self._merged[event.key] = meta.spec(event.object)
        if before != after and views.may_have_remerged(event.revision):
            self.nodes.touch_all()
            self._wake(hints.ANY_DEVICE, event, views.objects)

    def _fold_decision(self, event: Event, objects: ObjectsReader) -> None:
        body = event.object
        decision = decision_body.read(body)
        place, outcome, inputs = decision.place, decision.outcome, decision.inputs
        if inputs.next is not None:
            self._start = inputs.next
        now = Instant(inputs.now or event.stamp.time)
        self._moved.pop(place, None)
        if decision.key == repeated_attempts.KEY:
            self._fold_quiet(event, decision_body.inputs(body), now, objects)
            return
        self._end_binding(place)
        pod = self.queue.get(place)
        if pod is None or pod.spec.facts.uid != inputs.uid:
            return
        if outcome in waiting_binding.UNDER_WAY:
            self.queue.hold(pod)
            held = waiting_binding.read(body, place, now, event.revision)
            self.nodes.bind(bound_as(pod.spec, held.node))
            self._bindings.begin(held)
            if held.assumed is not None:
                self._assumed.hold(place, held.assumed.in_flight(place[0]))
        elif outcome in ("Unschedulable", "Error"):
            self.queue.settle_failure(pod, outcome, frozenset(inputs.plugins), now)
            self._waker.replay(pod, objects, Revision(event.stamp.observed), event.stamp.time)
        elif outcome == "Skipped":
            self._forget(place)

    def _fold_quiet(
        self, event: Event, inputs: JsonView, now: Instant, objects: ObjectsReader
    ) -> None:
        observed = Revision(event.stamp.observed)
        for repeated in repeated_attempts.read(inputs):
            pod = self.queue.get((repeated.namespace, repeated.name))
            if pod is not None and pod.spec.facts.uid == repeated.uid:
                self.queue.settle_failure(pod, repeated.outcome, frozenset(repeated.plugins), now)
                self._waker.replay(pod, objects, observed, event.stamp.time)

    def _next(self, views: DeviceViews, now: Instant) -> Plan | None:
        while (held := self._bindings.take(now)) is not None:
            plan = None if held.is_lost else self._act(views, held, now)
            if held.is_lost:
                self._lose(held, now)
            if plan is not None:
                self._assumed.note(touched_by(plan))
                return plan
        pod = None if self._is_step_over else self.queue.pop(now)
        if pod is None:
            return None
        key = f"pod:{pod.place[0]}/{pod.place[1]}"
        tree = views.objects.get(pod_key(*pod.place))
        if tree is None:
            self.queue.remove(pod.place)
            return Plan(controller=NAME, key=key)
        is_asked = pod.was_flushed or self.rules.pace is not None
        if is_asked and not pod_claims.are_there(views.objects, pod.spec.facts):
            # PreEnqueue refuses a pod whose time is up. A recorded pace tries pods so late that
            # PreEnqueue had refused them in between.
            self.queue.gate(pod)
            return Plan(controller=NAME, key=key)
        claims = [claim_key(pod.place[0], name) for name in claim_names(pod.spec.facts)]
        if not self._assumed.allows(claims):
            # Its claim changes in this step in a way that is not known yet: wait for the log.
            self.queue.activate(pod, now, pod.cause)
            self._is_step_over = True
            return None
        turn = Turn(
            pod=pod.spec,
            tree=tree,
            now=now,
            cause=pod.cause,
            start=self._next_start,
            number=pod.unfit + pod.errors + 1,
            batch=len(self._assumed),
            bounds=self.rules.summary,
        )
        if "deletionTimestamp" in tree["metadata"]:
            plan = planning.skip_plan(views.objects, self._series, turn)
            if plan.is_empty:
                self._forget(pod.place)
            return plan
        self._assumed.enforce(views.allocated)
        return self._attempt(views, pod, turn)

    def _act(self, views: DeviceViews, held: Wait, now: Instant) -> Plan | None:
        """The next act of a placed pod: its claims, then its binding when all devices are ready."""
        if held.assumed is not None and held.assumed.claims_at is not None:
            return delayed_binding.write_claims(self.rules, views, self._series, held, now)
        return waiting_binding.look(views, self._series, held, now, self.rules.binding_timeout)

    def _attempt(self, views: DeviceViews, pod: QueuedPod, turn: Turn) -> Plan:
        refused = self._refused.pop(pod.place, "")
        if refused:
            result = Attempt(outcome="Error", message=refused, next_start=turn.start)
        else:
            result = self._try(views, turn)
        if until := planning.put_off(self.rules.pace, turn, result):
            self.queue.put_off(pod, until)
            return Plan(controller=NAME, key=turn.key)
        plan = planning.plan_of(self.rules, views.objects, self._series, turn, result)
        if plan.is_empty:
            # There is nothing new to write: the attempt is recorded together with similar ones.
            self._quiet.append(repeated_attempts.of_attempt(turn, result))
            self._next_start = result.next_start
            return plan
        self._next_start = result.next_start
        if result.outcome == "Scheduled":
            self._assumed.add(turn.pod, result, views.allocated, plan.commands)
        elif result.moves_others or planning.gives_up_node(turn, result):
            self._is_step_over = True
        return plan

    def _try(self, views: DeviceViews, turn: Turn) -> Attempt:
        return attempt(
            self.rules,
            views,
            self.nodes,
            self._verdicts,
            turn.pod,
            start=turn.start,
            now=turn.now,
            nominated=core.nominated_node_name(turn.tree),
            written=self._assumed.written,
        )

    def _settle_refusal(self, plan: Plan, decision: Decision, problem: str, now: Instant) -> None:
        place = (decision.namespace, decision.name)
        pod = self.queue.get(place)
        is_act = delayed_binding.WRITES_CLAIMS in decision.inputs
        if pod is None or pod.where is not (QueuePart.BINDING if is_act else QueuePart.IN_FLIGHT):
            return
        if is_act and delayed_binding.refuse(self._bindings, place, decision.summary, problem, now):
            return
        if decision.outcome not in ("Scheduled", "WaitingForBinding", RESERVED):
            self.queue.err(pod, now)
            return
        self._moved[place] = self._moved.get(place, 0) + 1
        is_passing = messages.MOVED in problem or is_about_event(problem)
        if not is_passing or self._moved[place] > MOVED_MAX:
            self._refused[place] = messages.prebind_error(decision.summary, problem)
        self.queue.activate(pod, now, plan.observed)

    def _put_back(self, plan: Plan) -> None:
        for place in repeated_attempts.places_of(plan):
            pod = self.queue.get(place)
            if pod is not None and pod.where is QueuePart.IN_FLIGHT:
                self.queue.activate(pod, pod.ready_at, pod.cause)

    def _admit(self, pod: QueuedPod, objects: ObjectsReader, now: Instant) -> None:
        """PreEnqueue: scheduling gates, then claims (C11: a refusal leaves no trace)."""
        if not pod.spec.is_gated and pod_claims.are_there(objects, pod.spec.facts):
            self.queue.activate(pod, now, pod.cause)
        else:
            self.queue.gate(pod)

    def _forget(self, place: NamespacedName) -> None:
        if self.queue.remove(place) is not None:
            self._waker.forget_pod(place)
            self._refused.pop(place, None)
        held = self._bindings.get(place)
        if held is None or held.assumed is None:
            self._end_binding(place)

    def _lose(self, held: Wait, now: Instant) -> None:
        """Forgets a wait, as a process does that ends; its successor tries the pod anew."""
        if self.rules.pace is not None:
            self.rules.pace.forget_wait(held.uid)
        self._end_binding(held.place)
        pod = self.queue.get(held.place)
        if pod is not None and pod.spec.facts.uid == held.uid:
            self.queue.activate(pod, now, held.cause)

    def _end_binding(self, place: NamespacedName) -> None:
        if self._bindings.end(place):
            self._assumed.let_go(place)
            self.nodes.release(place)

    def _wake(self, hint: hints.Hint, event: Event, objects: ObjectsReader) -> None:
        self._waker.wake(hint, objects, event.stamp.time, event.revision)
