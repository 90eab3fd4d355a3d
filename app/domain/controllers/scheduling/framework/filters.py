"""The framework's filters that run before the devices are checked, in upstream's order.

The check of a node stops at the first failing filter; only the reasons of that filter are counted.
`resolvable` says whether evicting pods could help; it decides the pre-emption part of the message.
Parity: controllers.md 4.2 and 4.3. Volumes are left out.
"""

from collections.abc import Callable
from dataclasses import dataclass

from app.domain.controllers.scheduling.framework.amounts import CPU, PODS
from app.domain.controllers.scheduling.framework.nodes import NodeInfo
from app.domain.controllers.scheduling.framework.pod_spec import PodSpec
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
    for check in _CHECKS:
        refusal = check(pod, info)
        if refusal is not None:
            return refusal
    return _check_room(pod, info, served_by_devices)


def is_tolerated(pod: PodSpec, taint: JsonView) -> bool:
    """True when one of the pod's tolerations fits the taint."""
    return any(tolerates(toleration, taint) for toleration in pod.tolerations)


def _check_named(pod: PodSpec, info: NodeInfo) -> NodeRejection | None:
    # Parity: controllers.md 4.2; an affinity to nodes by name, as DaemonSets set it, is checked
    # before all filters.
    is_out = pod.only_nodes is not None and info.name not in pod.only_nodes
    return NOT_NAMED if is_out else None


def _check_unschedulable(pod: PodSpec, info: NodeInfo) -> NodeRejection | None:
    if info.is_unschedulable and not is_tolerated(pod, UNSCHEDULABLE_TAINT):
        return UNSCHEDULABLE
    return None


def _check_name(pod: PodSpec, info: NodeInfo) -> NodeRejection | None:
    return NAME if pod.node_name and pod.node_name != info.name else None


def _check_taints(pod: PodSpec, info: NodeInfo) -> NodeRejection | None:
    for taint in info.taints:
        if taint.get("effect") in HARD_EFFECTS and not is_tolerated(pod, taint):
            return TAINTED
    return None


def _check_affinity(pod: PodSpec, info: NodeInfo) -> NodeRejection | None:
    labels = info.labels
    if any(labels.get(key) != value for key, value in pod.node_selector):
        return AFFINITY
    if pod.node_affinity is not None and not pod.node_affinity.matches(info.name, labels):
        return AFFINITY
    return None


def _check_ports(pod: PodSpec, info: NodeInfo) -> NodeRejection | None:
    if not pod.ports:
        return None
    used_ports = [port for bound in info.pods.values() for port in bound.ports]
    for address, protocol, number in pod.ports:
        for other, used_protocol, used in used_ports:
            anywhere = "0.0.0.0" in (address, other)  # noqa: S104 - upstream's any address
            if number == used and protocol == used_protocol and (anywhere or address == other):
                return PORTS
    return None


def _check_room(
    pod: PodSpec, info: NodeInfo, served_by_devices: frozenset[str]
) -> NodeRejection | None:
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


_CHECKS: tuple[Callable[[PodSpec, NodeInfo], NodeRejection | None], ...] = (
    _check_named,
    _check_unschedulable,
    _check_name,
    _check_taints,
    _check_affinity,
    _check_ports,
)
