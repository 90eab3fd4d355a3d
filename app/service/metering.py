"""The metrics of a history, under the names that the real components use.

The log holds what a controller did, so its metrics are counted from events: they are the same
whichever process runs the controller. Only queues are read directly, from the controllers that this
process leads. Counters begin at zero with the process, as those of the real components do.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from app.domain.controllers import pods, registry
from app.domain.controllers.plan import Reconciler
from app.domain.controllers.resources import is_of, pod_key
from app.domain.controllers.scheduling import repeated_attempts
from app.domain.controllers.scheduling.plugins.dynamic_resources import pod_claims
from app.domain.controllers.scheduling.plugins.dynamic_resources.pod_claims import ClaimsNotReady
from app.domain.controllers.scheduling.reconciler import SchedulingReconciler
from app.domain.controllers.work_queue import AnyQueue
from app.domain.log import Event, EventType, ObjectKey
from app.domain.objects.kinds import extended_resources
from app.domain.objects.profile import Profile
from app.domain.objects.reader import ObjectsReader
from app.domain.values import api_resources, event_reasons, json_tree, well_known
from app.domain.values.fields import core, decision_body, dra, meta
from app.domain.values.fields.decision_body import DecisionBody
from app.domain.values.identifiers import NamespacedName, Uid
from app.domain.values.json_tree import JsonView
from app.domain.values.timestamps import SECOND, Instant
from app.ports import Meter

_CLAIM_MAKER = registry.actor_of("claims").user
_SCHEDULER = registry.actor_of("scheduling").user
_RESULTS = {"Unschedulable": "unschedulable", "Error": "error"}
_WAITING = "WaitingForBinding"
_DEFAULT_PROFILE = "default-scheduler"

_CREATES = "dynamic_resource_allocation_resourceclaim_creates_total"
_CREATES_FROM_TEMPLATES = "resourceclaim_controller_creates_total"
_CREATES_FOR_EXTENDED_RESOURCES = "scheduler_resourceclaim_creates_total"
_ONE_NAME_SINCE = 37
"""The release (1.37) since which all components count claims under one name (controllers.md 10)."""

QUEUE_NAMES = {
    "claims": "resource_claim",
    "eviction": "device-taint-eviction-controller",
    "rule-status": "device-taint-eviction-controller",
    "garbage": "garbage_collector_attempt_to_delete",
    "namespaces": "namespace",
    "quotas": "resourcequota_primary",
    "disruption": "disruption",
    "node-ttl": "ttlcontroller",
    "pod-gc": "orphaned_pods_nodes",
    "volume-protection": "pvcprotection",
    "deployments": "deployment",
    "replica-sets": "replicaset",
    "stateful-sets": "statefulset",
    "daemon-sets": "daemonset",
    "jobs": "job",
    "service-accounts": "serviceaccount",
    "root-ca": "root_ca_cert_publisher",
    "cluster-roles": "ClusterRoleAggregator",
    "api-services": "AvailableConditionController",
}
"""Upstream's names for the queues of controllers; queues without a name are not published."""

PRIMED_AT_ONCE = 25
"""Claims that a start reads before other tasks run."""

_ClaimLabels = tuple[str, str, str]


@dataclass(slots=True)
class _BindingWait:
    """The wait of a pod for its devices: its begin, and the drivers of those with conditions."""

    uid: Uid
    began: Instant
    drivers: set[str]


class HistoryMeter:
    """Measures one history: `prime` with the present objects, then `fold` every event since then.

    `publish` writes the gauges; counters are written as events come. The profile determines names
    that differ between releases.
    """

    def __init__(self, meter: Meter, history: str, profile: Profile = Profile()) -> None:
        self._meter = meter
        self._history = history
        self._has_one_name = profile.minor >= _ONE_NAME_SINCE
        self._claims: dict[ObjectKey, _ClaimLabels] = {}
        self._claim_counts: Counter[_ClaimLabels] = Counter()
        self._waits: dict[NamespacedName, _BindingWait] = {}
        self._leads: set[str] = set()
        self._counted: WeakKeyDictionary[AnyQueue, dict[str, int]] = WeakKeyDictionary()

    def prime(self, objects: ObjectsReader) -> Iterator[None]:
        """Replace the known claims by the present ones; yields after each PRIMED_AT_ONCE of them.

        Objects may change meanwhile: events since the first part are folded after the last one.
        """
        for known in tuple(self._claims):
            self._set_claim(known, None)
        for number, key in enumerate(objects.keys(*api_resources.RESOURCE_CLAIMS), 1):
            # A copy, so that no object is decoded for good; half of it would be its managers.
            if event := objects.event(key):
                self._set_claim(key, labels_of(event.without_managers().object))
            if number % PRIMED_AT_ONCE == 0:
                yield

    def fold(self, event: Event, objects: ObjectsReader) -> None:
        """Count one event."""
        if event.type is EventType.DECISION_RECORDED:
            self._fold_decision(event, objects)
        elif is_of(event.key, api_resources.RESOURCE_CLAIMS):
            gone = event.type is EventType.OBJECT_DELETED
            self._set_claim(event.key, None if gone else labels_of(event.object))
            self._note_drivers(event)
            if event.type is EventType.OBJECT_CREATED:
                self._count_creation(event)
        elif is_of(event.key, api_resources.PODS):
            actor, verb = event.stamp.actor.user, event.stamp.verb
            if event.type is EventType.OBJECT_DELETED:
                self._waits.pop((event.key.namespace, event.key.name), None)
            elif verb == "create" and actor == _SCHEDULER:  # a binding
                self._count_attempt("scheduled", event.object)
        elif _tells_failed_creation(event):
            name = _CREATES if self._has_one_name else _CREATES_FROM_TEMPLATES
            self._count(name, "failure", "false")

    def publish(self, leading: Mapping[str, Reconciler]) -> None:
        """Write the gauges of the claims, and of the queues of controllers led here."""
        self._publish_queues(leading)
        for (allocated, admin, source), count in self._claim_counts.items():
            self._meter.gauge(
                "resourceclaim_controller_resource_claims",
                count,
                history=self._history,
                allocated=allocated,
                admin_access=admin,
                source=source,
            )

    def _publish_queues(self, leading: Mapping[str, Reconciler]) -> None:
        for name in self._leads - leading.keys():
            self._meter.gauge("redra_leads", 0, history=self._history, controller=name)
        self._leads |= leading.keys()
        depths: Counter[str] = Counter()
        for name, controller in leading.items():
            self._meter.gauge("redra_leads", 1, history=self._history, controller=name)
            if isinstance(controller, SchedulingReconciler):
                for queue, count in controller.queue.counts().items():
                    self._meter.gauge(
                        "scheduler_pending_pods", count, history=self._history, queue=queue
                    )
            title = QUEUE_NAMES.get(name)
            if title is None:
                continue
            for work_queue in controller.queues:
                depths[title] += work_queue.depth
                self._grow("workqueue_adds_total", title, work_queue, work_queue.adds)
                self._grow("workqueue_retries_total", title, work_queue, work_queue.retries)
        for title, depth in depths.items():
            self._meter.gauge("workqueue_depth", depth, history=self._history, name=title)

    def _grow(self, metric: str, title: str, queue: AnyQueue, total: int) -> None:
        """Add a queue's counts since the last call; a new term begins with a new queue."""
        known = self._counted.setdefault(queue, {})
        more = total - known.get(metric, 0)
        if more:
            self._meter.count(metric, more, history=self._history, name=title)
        known[metric] = total

    def _set_claim(self, key: ObjectKey, labels: _ClaimLabels | None) -> None:
        before = self._claims.pop(key, None)
        if before is not None:
            self._claim_counts[before] -= 1
        if labels is not None:
            self._claims[key] = labels
            self._claim_counts[labels] += 1

    def _count_creation(self, event: Event) -> None:
        actor = event.stamp.actor.user
        if actor not in (_CLAIM_MAKER, _SCHEDULER):
            return
        admin = labels_of(event.object)[1]
        if self._has_one_name:
            self._count(_CREATES, "success", admin)
        elif actor == _CLAIM_MAKER:
            self._count(_CREATES_FROM_TEMPLATES, "success", admin)
        else:
            self._meter.count(
                _CREATES_FOR_EXTENDED_RESOURCES, history=self._history, status="success"
            )

    def _count(self, name: str, status: str, admin_access: str) -> None:
        self._meter.count(name, history=self._history, status=status, admin_access=admin_access)

    def _count_attempt(self, result: str, pod: JsonView | None) -> None:
        self._meter.count(
            "scheduler_schedule_attempts_total",
            history=self._history,
            result=result,
            profile=_profile(pod),
        )

    def _fold_decision(self, event: Event, objects: ObjectsReader) -> None:
        decision = decision_body.read(event.object)
        self._meter.count(
            "redra_decisions_total",
            history=self._history,
            controller=decision.controller,
            outcome=decision.outcome,
        )
        if decision.controller == "eviction" and decision.outcome == "Evicted":
            due = decision.inputs.due or event.stamp.time
            name = "device_taint_eviction_controller_pod_deletion_duration_seconds"
            late = max(0, event.stamp.time - due) / SECOND
            self._meter.count(
                "device_taint_eviction_controller_pod_deletions_total", history=self._history
            )
            self._meter.observe(name, late, history=self._history)
        elif decision.controller == "scheduling":
            self._fold_attempt(event, decision, objects)

    def _fold_attempt(self, event: Event, decision: DecisionBody, objects: ObjectsReader) -> None:
        if decision.key == repeated_attempts.KEY:
            for attempt in repeated_attempts.read(decision_body.inputs(event.object)):
                pod = objects.get(pod_key(attempt.namespace, attempt.name))
                self._count_attempt(_RESULTS.get(attempt.outcome, "error"), pod)
            return
        place, outcome = decision.place, decision.outcome
        pod = objects.get(pod_key(*place))
        if outcome in _RESULTS:
            self._count_attempt(_RESULTS[outcome], pod)
        if outcome == _WAITING:
            drivers = _drivers(objects, pod)
            begun = _BindingWait(decision.inputs.uid, event.stamp.time, drivers)
            known = self._waits.setdefault(place, begun)
            if known.uid != begun.uid:
                self._waits[place] = begun
            return
        ended = self._waits.pop(place, None)
        if ended is not None and ended.uid == decision.inputs.uid:
            status = _wait_status(outcome, decision_body.summary_of(event.object).message)
            seconds = (event.stamp.time - ended.began) / SECOND
            for driver in sorted(ended.drivers):
                labels = {"profile": _profile(pod), "driver": driver, "status": status}
                name = "scheduler_dra_bindingconditions_allocations_total"
                self._meter.count(name, history=self._history, **labels)
                name = "scheduler_dra_bindingconditions_wait_duration_seconds"
                self._meter.observe(name, seconds, history=self._history, **labels)

    def _note_drivers(self, event: Event) -> None:
        """Note the drivers of a claim that is reserved for a waiting pod; it may lose them again.

        The claims of a pod are written after the decision with which its wait begins.
        """
        if not self._waits or event.type is EventType.OBJECT_DELETED:
            return
        for consumer in dra.consumers(event.object):
            begun = self._waits.get((event.key.namespace, consumer.name))
            if begun is not None and begun.uid == consumer.uid:
                begun.drivers |= _drivers_of(event.object)


def labels_of(claim: JsonView) -> _ClaimLabels:
    """Metric labels of a claim: allocated, admin access, source. Parity: controllers.md 2.5."""
    allocated = "status" in claim and bool(json_tree.mapping(claim, "status", "allocation"))
    requests = dra.request_trees(claim)
    admin = any(json_tree.flag(request, "exactly", "adminAccess") for request in requests)
    annotations = meta.annotations_as_stored(claim)
    source = ""
    if well_known.POD_CLAIM_NAME in annotations:
        source = "resource_claim_template"
    elif extended_resources.ANNOTATION in annotations:
        source = "extended_resource"
    return "true" if allocated else "false", "true" if admin else "false", source


def _tells_failed_creation(event: Event) -> bool:
    """Whether an event reports that the claim controller failed to make a claim; repeats count."""
    return (
        is_of(event.key, api_resources.EVENTS)
        and event.stamp.actor.user == _CLAIM_MAKER
        and event.type is not EventType.OBJECT_DELETED
        and json_tree.text(event.object, "reason") == event_reasons.FAILED_CLAIM_CREATION
    )


def _profile(pod: JsonView | None) -> str:
    return (core.scheduler_name(pod) if pod else "") or _DEFAULT_PROFILE


def _wait_status(outcome: str, message: str) -> str:
    if outcome == "Scheduled":
        return "success"
    if "device binding failed" in message:
        return "failure"
    return "timeout" if "device binding timeout" in message else "error"


def _drivers(objects: ObjectsReader, pod: JsonView | None) -> set[str]:
    """The drivers of the devices for whose binding conditions a pod waits, as known so far."""
    if pod is None:
        return set()
    try:
        claims: Iterable[pod_claims.PodClaim] = pod_claims.resolve_all(objects, pods.facts(pod))
    except ClaimsNotReady:
        return set()
    return {driver for claim in claims for driver in _drivers_of(claim.tree)}


def _drivers_of(claim: JsonView) -> set[str]:
    return {result.driver for result in dra.results(claim) if result.binding_conditions}
