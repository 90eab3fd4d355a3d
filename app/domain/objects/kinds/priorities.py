"""Priority admission: the priority of pods, and the default class.

Parity: objects.md 15.2; the admission plug-in Priority. A pod names a class, from which its
priority and preemption policy come; a pod with other values is refused. Among several default
classes, the one with the lowest value is in effect.
"""

from app.domain.errors import Rejected
from app.domain.log import ObjectKey
from app.domain.objects import registry, rejections
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.registry import Kind
from app.domain.values import api_groups, json_tree
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject, JsonView

CLASSES = "priorityclasses"

SYSTEM_PRIORITIES = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
"""The classes of every cluster, by value. They also apply in histories that lack them: in
recordings that left them out, and in histories from before they were stored."""

SYSTEM_DESCRIPTIONS = {
    "system-cluster-critical": "Used for system critical pods that must run in the cluster, but "
    "can be moved to another node if necessary.",
    "system-node-critical": "Used for system critical pods that must not be moved from their "
    "current node.",
}
"""The descriptions that the server writes."""

DEFAULT_POLICY = "PreemptLowerPriority"


def resolve(pod: JsonObject, reader: ObjectsReader) -> None:
    """Sets priority and preemption policy of a new pod, in place.

    Raises Forbidden for a class that does not exist, and for a priority or policy of the pod that
    differs from that of its class.
    """
    spec = pod["spec"]
    name = spec.get("priorityClassName") or ""
    priority_class: JsonView = {}
    if name:
        known = reader.get(ObjectKey(api_groups.SCHEDULING, CLASSES, "", name))
        if known is None and name not in SYSTEM_PRIORITIES:
            raise _refused("pods", pod, f"no PriorityClass with name {name} was found")
        priority_class = known if known is not None else {"value": SYSTEM_PRIORITIES[name]}
    elif (default := _default(reader)) is not None:
        priority_class = default
        spec["priorityClassName"] = meta.name(default)
    computed = json_tree.integer(priority_class, "value") or 0
    priority = spec.get("priority")
    if priority is not None and priority != computed:
        raise _refused(
            "pods",
            pod,
            f"the integer value of priority ({priority}) must not be provided in pod spec; "
            f"priority admission controller computed {computed} from the given PriorityClass name",
        )
    spec["priority"] = computed
    policy = json_tree.text(priority_class, "preemptionPolicy") or DEFAULT_POLICY
    wanted = spec.get("preemptionPolicy")
    if wanted is not None and wanted != policy:
        raise _refused(
            "pods",
            pod,
            f"the string value of PreemptionPolicy ({wanted}) must not be provided in pod spec; "
            f"priority admission controller computed {policy} from the given PriorityClass name",
        )
    spec["preemptionPolicy"] = policy


def keep(pod: JsonObject, old: JsonView) -> None:
    """Sets missing priority and preemption policy from the old pod, in place."""
    for field in ("priority", "preemptionPolicy"):
        held = json_tree.get(old, "spec", field)
        if held is not None:
            pod["spec"].setdefault(field, held)


def system_classes() -> tuple[JsonObject, ...]:
    """The system classes as the server creates them at its first start."""
    return tuple(
        {
            "apiVersion": f"{api_groups.SCHEDULING}/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": SYSTEM_PRIORITIES[name],
            "description": SYSTEM_DESCRIPTIONS[name],
        }
        for name in ("system-node-critical", "system-cluster-critical")
    )


def check_deletion(key: ObjectKey) -> None:
    """Raises Forbidden for a system class."""
    if (key.group, key.resource) == (
        api_groups.SCHEDULING,
        CLASSES,
    ) and key.name in SYSTEM_PRIORITIES:
        raise _refused(
            CLASSES,
            {"metadata": {"name": key.name}},
            "this is a system priority class and cannot be deleted",
        )


def check_class(tree: JsonView, reader: ObjectsReader) -> None:
    """Raises Forbidden if a second class would become the default."""
    if tree.get("globalDefault") is not True:
        return
    default = _default(reader)
    known = "" if default is None else meta.name(default)
    if known and known != meta.name(tree):
        raise _refused(
            CLASSES,
            tree,
            f"PriorityClass {known} is already marked as default. Only one default can exist",
        )


def _default(reader: ObjectsReader) -> JsonObject | None:
    defaults = [
        tree
        for key in reader.keys(api_groups.SCHEDULING, CLASSES)
        if (tree := reader.get(key)) is not None and tree.get("globalDefault") is True
    ]
    return min(defaults, key=lambda tree: json_tree.integer(tree, "value") or 0, default=None)


def _refused(plural: str, tree: JsonView, detail: str) -> Rejected:
    kind = registry.find(api_groups.CORE if plural == "pods" else api_groups.SCHEDULING, plural)
    assert isinstance(kind, Kind), "both kinds are built in"
    return rejections.forbidden(kind, meta.name(tree), detail)
