"""The fields of pods, nodes, workloads and Kubernetes Events."""

import msgspec

from app.domain.values import condition_types
from app.domain.values.fields import meta, paths, records
from app.domain.values.fields.records import FieldRecord
from app.domain.values.json_tree import JsonView

FINISHED = frozenset(("Succeeded", "Failed"))
"""The phases of a pod whose containers have terminated and will not restart."""

node_name = paths.text("spec", "nodeName")
"""The node that a pod is bound to; empty while it waits for one."""

grace_period = paths.integer("spec", "terminationGracePeriodSeconds")
"""The seconds that a pod has to end, unless a deletion gives others."""

nominated_node_name = paths.text("status", "nominatedNodeName")
scheduler_name = paths.text("spec", "schedulerName")
service_account_name = paths.text("spec", "serviceAccountName")
runtime_class_name = paths.text("spec", "runtimeClassName")
priority = paths.integer("spec", "priority")
containers = paths.objects("spec", "containers")
init_containers = paths.objects("spec", "initContainers")
volumes = paths.objects("spec", "volumes")
volume_claim_name = paths.text("persistentVolumeClaim", "claimName")
bound_volume = paths.text("spec", "volumeName")
storage_class_name = paths.text("spec", "storageClassName")
volume_binding_mode = paths.text("volumeBindingMode")
allowed_topologies = paths.objects("allowedTopologies")
label_expressions = paths.objects("matchLabelExpressions")
"""The terms of a StorageClass that say for which nodes volumes are made, and the labels of one."""

access_modes = paths.texts("spec", "accessModes")
volume_nodes = paths.mapping("spec", "nodeAffinity", "required")
containers_of = paths.objects("containers")
init_containers_of = paths.objects("initContainers")
tolerations_of = paths.objects("tolerations")
"""The containers and tolerations in the spec of a pod; the tolerations of a device request, too."""

node_selector_of = paths.labels("nodeSelector")
node_affinity_of = paths.objects(
    "affinity",
    "nodeAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "nodeSelectorTerms",
)
"""The labels and the terms by which the spec of a pod selects its nodes."""

requests_of = paths.mapping("resources", "requests")
"""The requests of a container, or of a whole pod in its spec."""

spread_constraints = paths.objects("spec", "topologySpreadConstraints")
topology_key = paths.text("topologyKey")
"""The label over which a constraint spreads pods, or in whose domain an affinity looks."""

overhead_of = paths.mapping("overhead")
"""What the runtime of a pod needs for itself, in the spec of the pod."""
runtime_node_selector = paths.labels("scheduling", "nodeSelector")
"""The labels of nodes that a RuntimeClass chooses."""

ports = paths.objects("ports")
"""The ports of a container, and those in the spec of a service or in a subset of endpoints."""

resource_claims = paths.objects("spec", "resourceClaims")
termination_grace_seconds = paths.integer("spec", "terminationGracePeriodSeconds")
scheduling_gates = paths.objects("spec", "schedulingGates")
resource_claim_statuses = paths.objects("status", "resourceClaimStatuses")
source_component = paths.text("source", "component")
status_reason = paths.text("status", "reason")
status_message = paths.text("status", "message")

taints = paths.objects("spec", "taints")
"""The taints of a node."""

unschedulable = paths.flag("spec", "unschedulable")
allocatable = paths.mapping("status", "allocatable")
boot_id = paths.text("status", "nodeInfo", "bootID")
"""The id of a node's boot: each reboot gives another one."""

namespace_finalizers = paths.texts("spec", "finalizers")
"""The finalizers in the spec of a namespace: it stays until they are removed."""

quota_used = paths.mapping("status", "used")
"""The amounts of a ResourceQuota that are used, by name."""

replicas = paths.integer("spec", "replicas")
update_revision = paths.text("status", "updateRevision")
min_ready_seconds = paths.integer("spec", "minReadySeconds")
selector = paths.mapping("spec", "selector")
"""The selector of a workload, a budget or a service."""

template = paths.mapping("spec", "template")
"""The template from which a workload makes its pods."""


def is_finished(pod: JsonView) -> bool:
    """True when the pod has succeeded or failed."""
    return meta.phase(pod) in FINISHED


def is_refused(pod: JsonView) -> bool:
    """True for a pod without a node that the scheduler has refused."""
    condition = meta.condition(pod, condition_types.POD_SCHEDULED)
    return condition is not None and condition.status == "False" and not node_name(pod)


def needs_no_node(pod: JsonView) -> bool:
    """True for a pod that waits for no node: it is bound, runs, or has finished.

    What was printed for people may show the phase of a pod, or what its kubelet reported, and not
    its node.
    """
    return is_finished(pod) or meta.phase(pod) == "Running" or has_node(pod)


def has_node(pod: JsonView) -> bool:
    """Whether a node was chosen for the pod, also where it is not shown which one."""
    if node_name(pod):
        return True
    placed = meta.condition(pod, condition_types.POD_SCHEDULED)
    return placed is not None and placed.status == "True"


MESSAGE_SHOWN_MAX = 200
"""The number of characters of a container's last message that a sentence shows."""


class Terminated(FieldRecord, frozen=True):
    """The terminated state of a container."""

    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""
    finished_at: str = ""

    @property
    def why(self) -> str:
        """The reason and the end of the message, in brackets after a space; empty without both.

        The message is what the container left behind; it may be the end of its log, in which the
        last lines tell most.
        """
        words = " ".join(self.message.split())
        if len(words) > MESSAGE_SHOWN_MAX:
            words = (
                f"… {words[-MESSAGE_SHOWN_MAX:].partition(' ')[2] or words[-MESSAGE_SHOWN_MAX:]}"
            )
        parts = [part for part in (self.reason, words) if part]
        return f" ({': '.join(parts)})" if parts else ""


class WaitingState(FieldRecord, frozen=True):
    """The waiting state of a container: why it does not run yet."""

    reason: str = ""
    message: str = ""


class Running(FieldRecord, frozen=True):
    """The running state of a container."""

    started_at: str = ""


class ContainerState(FieldRecord, frozen=True):
    """The state of a container; at most one of the three fields is set."""

    waiting: WaitingState = WaitingState()
    running: Running | None = None
    terminated: Terminated | None = None


class ResourceHealth(FieldRecord, frozen=True):
    """The health of one device of a container, as its kubelet reports it (KEP-4680)."""

    resource_id: str = msgspec.field(default="", name="resourceID")
    health: str = ""
    message: str = ""


class ResourceStatus(FieldRecord, frozen=True):
    """The devices that a container has of one resource; `claim:NAME` for those of a claim."""

    name: str = ""
    resources: tuple[ResourceHealth, ...] = ()


class DeviceStatuses(FieldRecord, frozen=True):
    """The devices of one container, by resource."""

    name: str = ""
    allocated_resources_status: tuple[ResourceStatus, ...] = ()


class ContainerStatus(FieldRecord, frozen=True):
    """The status of one container of a pod."""

    name: str = ""
    ready: bool = False
    started: bool = False
    restart_count: int = 0
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


start_time = paths.text("status", "startTime")
container_statuses = records.of_list(ContainerStatus, paths.get("status", "containerStatuses"))
init_container_statuses = records.of_list(
    ContainerStatus, paths.get("status", "initContainerStatuses")
)


node_selector_terms = paths.objects("nodeSelectorTerms")
expressions = paths.objects("matchExpressions")
field_expressions = paths.objects("matchFields")
"""The terms of a node selector; the requirements of a term or of a label selector, as stored."""


class SelectorRequirement(FieldRecord, frozen=True):
    """A requirement of a label selector or a node selector."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


requirement = records.of_tree(SelectorRequirement)
requirements = records.of_list(SelectorRequirement, paths.get("matchExpressions"))
field_requirements = records.of_list(SelectorRequirement, paths.get("matchFields"))


class Series(FieldRecord, frozen=True):
    """The series of a repeated Kubernetes Event."""

    count: int = 0
    last_observed_time: str = ""


class EventSource(FieldRecord, frozen=True):
    """The reporter of a Kubernetes Event, in the older API group."""

    component: str = ""
    host: str = ""


class EventObject(FieldRecord, frozen=True):
    """A Kubernetes Event of either group."""

    type: str = ""
    reason: str = ""
    action: str = ""
    message: str = ""
    note: str = ""
    count: int = 0
    first_timestamp: str | None = None
    last_timestamp: str | None = None
    event_time: str | None = None
    reporting_component: str = ""
    reporting_controller: str = ""
    source: EventSource = EventSource()
    series: Series | None = None
    involved_object: meta.Reference = meta.Reference()
    regarding: meta.Reference = meta.Reference()

    @property
    def subject(self) -> meta.Reference:
        """The reference to the object that the Event is about."""
        return self.regarding if self.involved_object == meta.Reference() else self.involved_object

    @property
    def text(self) -> str:
        return self.message or self.note

    @property
    def occurrences(self) -> int:
        """The number of times that the Event occurred, in its series or without one."""
        return max(self.count, 0 if self.series is None else self.series.count)


event_object = records.of_tree(EventObject)
