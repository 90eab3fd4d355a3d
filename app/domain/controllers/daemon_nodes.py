"""Nodes on which a DaemonSet wants a pod, and why it wants none on the others."""

from app.domain.devices.taints import taint_of
from app.domain.values import json_tree, selectors, well_known
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.selectors import SelectorError
from app.domain.values.tolerations import tolerates

OTHER_LABELS = "its labels do not match"
"""The refusal of a node that the selectors of a template leave out."""

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

_TOLERATED = (
    (well_known.NOT_READY, "NoExecute"),
    (well_known.UNREACHABLE, "NoExecute"),
    (well_known.DISK_PRESSURE, "NoSchedule"),
    (well_known.MEMORY_PRESSURE, "NoSchedule"),
    (well_known.PID_PRESSURE, "NoSchedule"),
    (well_known.UNSCHEDULABLE, "NoSchedule"),
)


def refusal(
    template: JsonView, node: JsonView, effects: tuple[str, ...] = ("NoSchedule", "NoExecute")
) -> str:
    """The reason why a node gets no pod of a template: its labels, or a taint with these effects.

    Empty for a node that gets one.
    """
    spec = meta.spec(template)
    name = meta.name(node)
    labels = meta.labels(node)
    if not core.node_selector_of(spec).items() <= labels.items():
        return OTHER_LABELS
    required = json_tree.get(spec, "affinity", "nodeAffinity", _REQUIRED)
    if isinstance(required, dict):
        try:
            if not selectors.node_selector_of(required).matches(name, labels):
                return OTHER_LABELS
        except SelectorError:
            return OTHER_LABELS
    tolerations = core.tolerations_of(spec) + tolerations_of(spec)
    for taint in core.taints(node):
        is_tolerated = any(tolerates(toleration, taint) for toleration in tolerations)
        if taint.get("effect") in effects and not is_tolerated:
            return f"taint {taint_of(taint).text} is not tolerated"
    return ""


def tolerations_of(spec: JsonView) -> list[JsonObject]:
    """The tolerations that the pods of a DaemonSet get besides those of their template."""
    rows = list(_TOLERATED)
    if spec.get("hostNetwork") is True:
        rows.append((well_known.NETWORK_UNAVAILABLE, "NoSchedule"))
    return [{"key": key, "operator": "Exists", "effect": effect} for key, effect in rows]
