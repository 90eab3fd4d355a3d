"""The framework's filters that run before the devices are checked, in upstream's order.

The check of a node stops at the first failing filter; only the reasons of that filter are counted.
`resolvable` says whether evicting pods could help; it decides the pre-emption part of the message.
Parity: controllers.md 4.2 and 4.3. Volumes are left out.
"""

from dataclasses import dataclass

from app.domain.controllers.scheduling.framework.amounts import CPU, PODS
from app.domain.controllers.scheduling.framework.nodes import NodeInfo
from app.domain.controllers.scheduling.framework.pod_spec import ANY_ADDRESS, HostPort, PodSpec
from app.domain.values import well_known
from app.domain.values.json_tree import JsonView
from app.domain.values.tolerations import tolerates

HARD_EFFECTS = frozenset({"NoSchedule", "NoExecute"})


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRejection:
    """The reasons of one plug-in that exclude a node for a pod."""

    plugin: str
    reasons: tuple[str, ...]
    resolvable: bool = False


UNSCHEDULABLE = NodeRejection(plugin="NodeUnschedulable", reasons=("node(s) were unschedulable",))
NOT_NAMED = NodeRejection(
    plugin="NodeAffinity", reasons=("node(s) didn't satisfy plugin(s) [NodeAffinity]",)
)
NAME = NodeRejection(plugin="NodeName", reasons=("node(s) didn't match the requested node name",))
TAINTED = NodeRejection(plugin="TaintToleration", reasons=("node(s) had untolerated taint(s)",))
AFFINITY = NodeRejection(
    plugin="NodeAffinity", reasons=("node(s) didn't match Pod's node affinity/selector",)
)
PORTS = NodeRejection(
    plugin="NodePorts",
    reasons=("node(s) didn't have free ports for the requested pod ports",),
    resolvable=True,
)

UNSCHEDULABLE_TAINT = {"key": well_known.UNSCHEDULABLE, "effect": "NoSchedule"}


def check_node(
    pod: PodSpec, info: NodeInfo, served_by_devices: frozenset[str] = frozenset()
) -> NodeRejection | None:
    """Checks a node and returns the first rejection, or None when all filters pass.

    `served_by_devices` are extended resources that devices provide on this node; they are not
    compared with the node's own resources.
    """
    # Most pods state none of these, and most nodes pass: only what is stated is compared.
    if pod.only_nodes is not None and info.name not in pod.only_nodes:
        # Parity: controllers.md 4.2; an affinity to nodes by name, as DaemonSets set it, is checked
        # before all filters.
        return NOT_NAMED
    if info.is_unschedulable and not is_tolerated(pod, UNSCHEDULABLE_TAINT):
        return UNSCHEDULABLE
    if pod.node_name and pod.node_name != info.name:
        return NAME
    if info.taints and _is_tainted(pod, info):
        return TAINTED
    if (pod.node_selector or pod.node_affinity is not None) and not _has_affinity(pod, info):
        return AFFINITY
    if pod.ports and _are_ports_used(pod, info):
        return PORTS
    return None if _has_room(pod, info) else _room_rejection(pod, info, served_by_devices)


def is_tolerated(pod: PodSpec, taint: JsonView) -> bool:
    """True when one of the pod's tolerations fits the taint."""
    return any(tolerates(toleration, taint) for toleration in pod.tolerations)


def _is_tainted(pod: PodSpec, info: NodeInfo) -> bool:
    """True when the pod does not tolerate a taint that keeps pods away."""
    return any(
        taint.get("effect") in HARD_EFFECTS and not is_tolerated(pod, taint)
        for taint in info.taints
    )


def _has_affinity(pod: PodSpec, info: NodeInfo) -> bool:
    """True when the node has the labels that the pod selects, and fits its node affinity."""
    labels = info.labels
    if any(labels.get(key) != value for key, value in pod.node_selector):
        return False
    return pod.node_affinity is None or pod.node_affinity.matches(info.name, labels)


def _are_ports_used(pod: PodSpec, info: NodeInfo) -> bool:
    """True when a pod of the node has a port that the pod wants."""
    used_ports = [port for bound in info.pods.values() for port in bound.ports]
    return any(is_same_port(port, used) for port in pod.ports for used in used_ports)


def is_same_port(one: HostPort, other: HostPort) -> bool:
    """True when two pods with these host ports cannot be on one node."""
    anywhere = ANY_ADDRESS in (one[0], other[0])
    return one[1:] == other[1:] and (anywhere or one[0] == other[0])


def _has_room(pod: PodSpec, info: NodeInfo) -> bool:
    """True when the node has room for another pod and for all that this one requests.

    Where devices serve some of that, the pod may fit nevertheless.
    """
    room, requested = info.room, info.requested
    if len(info.pods) >= room.get(PODS, 0):
        return False
    for name, amount in pod.amounts.requests.items():
        if amount > 0 and amount > room.get(name, 0) - requested.get(name, 0):
            return False
    return True


def _room_rejection(
    pod: PodSpec, info: NodeInfo, served_by_devices: frozenset[str]
) -> NodeRejection | None:
    """The rejection of a node for each resource that it lacks, in order; None for none."""
    reasons: list[str] = []
    resolvable = True
    if len(info.pods) + 1 > info.has(PODS):
        reasons.append("Too many pods")
    for name, amount in _in_order(pod):
        if amount <= 0 or name in served_by_devices:
            continue
        room = info.has(name)
        if amount > room - info.requested.get(name, 0):
            reasons.append(f"Insufficient {name}")
            # Parity: controllers.md 4.2; evictions do not help when the request exceeds the whole
            # node.
            resolvable = resolvable and amount <= room
    if not reasons:
        return None
    return NodeRejection(plugin="NodeResourcesFit", reasons=tuple(reasons), resolvable=resolvable)


def _in_order(pod: PodSpec) -> list[tuple[str, int]]:
    first = {CPU: 0, "memory": 1, "ephemeral-storage": 2}
    return sorted(pod.amounts.requests.items(), key=lambda item: (first.get(item[0], 3), item[0]))
