"""The table row of a node. Parity: api.md 6."""

from app.domain.objects.printing.durations import age_of
from app.domain.objects.printing.tables import Cells
from app.domain.values import condition_types, json_tree
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

COLUMNS = (
    "Name, Status, Roles, Age, Version "
    "[Internal-IP, External-IP, OS-Image, Kernel-Version, Container-Runtime]"
)

_ROLE_PREFIX = "node-role.kubernetes.io/"


def cells(tree: JsonObject, now: Instant) -> Cells:
    """One row."""
    info = json_tree.mapping(tree, "status", "nodeInfo")
    return [
        meta.name(tree),
        _status(tree),
        _roles(meta.labels(tree)),
        age_of(tree, now, "metadata", "creationTimestamp"),
        json_tree.text(info, "kubeletVersion"),
        _address(tree, "InternalIP"),
        _address(tree, "ExternalIP"),
        json_tree.text(info, "osImage") or "<unknown>",
        json_tree.text(info, "kernelVersion") or "<unknown>",
        json_tree.text(info, "containerRuntimeVersion") or "<unknown>",
    ]


def _status(tree: JsonView) -> str:
    states = [
        "Ready" if condition.get("status") == "True" else "NotReady"
        for condition in meta.condition_trees(tree)
        if condition.get("type") == condition_types.READY
    ] or ["Unknown"]
    if core.unschedulable(tree):
        states.append("SchedulingDisabled")
    return ",".join(states)


def _roles(labels: dict[str, str]) -> str:
    roles = {
        key.removeprefix(_ROLE_PREFIX)
        for key in labels
        if key.startswith(_ROLE_PREFIX) and key != _ROLE_PREFIX
    }
    named = labels.get("kubernetes.io/role")
    if named:
        roles.add(named)
    return ",".join(sorted(roles)) or "<none>"


def _address(tree: JsonView, kind: str) -> str:
    for address in json_tree.objects(tree, "status", "addresses"):
        if address.get("type") == kind:
            return json_tree.text(address, "address")
    return "<none>"
