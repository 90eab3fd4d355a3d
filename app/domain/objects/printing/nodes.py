"""The table row of a node. Parity: api.md 6."""

from app.domain.objects.printing import cells
from app.domain.objects.printing.tables import NONE, Cell, CellOf
from app.domain.values import condition_types, json_tree
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonView
from app.domain.values.timestamps import Instant

_ROLE_PREFIX = "node-role.kubernetes.io/"


def _status(tree: JsonView, _: Instant) -> Cell:
    states = [
        "Ready" if condition.status == "True" else "NotReady"
        for condition in meta.conditions(tree)
        if condition.type == condition_types.READY
    ] or ["Unknown"]
    if core.unschedulable(tree):
        states.append("SchedulingDisabled")
    return ",".join(states)


def _roles(tree: JsonView, _: Instant) -> Cell:
    labels = meta.labels(tree)
    roles = {
        key.removeprefix(_ROLE_PREFIX)
        for key in labels
        if key.startswith(_ROLE_PREFIX) and key != _ROLE_PREFIX
    }
    named = labels.get("kubernetes.io/role")
    if named:
        roles.add(named)
    return ",".join(sorted(roles)) or NONE


def _address(kind: str) -> CellOf:
    def shown(tree: JsonView, _: Instant) -> Cell:
        for address in json_tree.objects(tree, "status", "addresses"):
            if address.get("type") == kind:
                return json_tree.text(address, "address")
        return NONE

    return shown


TABLE = cells.table(
    "Name, Status, Roles, Age, Version=.status.nodeInfo.kubeletVersion [Internal-IP, External-IP, "
    "OS-Image=.status.nodeInfo.osImage|<unknown>, "
    "Kernel-Version=.status.nodeInfo.kernelVersion|<unknown>, "
    "Container-Runtime=.status.nodeInfo.containerRuntimeVersion|<unknown>]",
    {
        "Status": _status,
        "Roles": _roles,
        "Internal-IP": _address("InternalIP"),
        "External-IP": _address("ExternalIP"),
    },
)
