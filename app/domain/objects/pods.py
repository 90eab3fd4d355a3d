"""What the API server and its admission do to a pod on create. Parity: controllers.md 5.1."""

import base64

from app.domain.errors import Rejected
from app.domain.log import ObjectKey
from app.domain.objects import pod_defaults, registry, rejections
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.registry import CORE, Kind
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject

_EVICTION_KEYS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_EVICTION_SECONDS = 300

_SYSTEM_PRIORITIES = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}

GATED_MESSAGE = "Scheduling is blocked due to non-empty scheduling gates"


def prepare_create(tree: JsonObject, reader: ObjectsReader) -> None:
    """Set priority, tolerations and the first status, in place.

    Raises Forbidden for a priority class that does not exist.
    """
    spec = tree["spec"]
    _set_priority(tree, reader)
    add_tolerations(spec)
    status: JsonObject = {"phase": "Pending", "qosClass": pod_defaults.quality_of_service(spec)}
    if spec.get("schedulingGates"):
        status["conditions"] = [
            {
                "lastProbeTime": None,
                "lastTransitionTime": None,
                "message": GATED_MESSAGE,
                "reason": "SchedulingGated",
                "status": "False",
                "type": "PodScheduled",
            }
        ]
    tree["status"] = status


def _set_priority(tree: JsonObject, reader: ObjectsReader) -> None:
    spec = tree["spec"]
    name = spec.get("priorityClassName", "")
    found: JsonObject | None = None
    if name:
        found = reader.get(ObjectKey("scheduling.k8s.io", "priorityclasses", "", name))
        if found is None and name not in _SYSTEM_PRIORITIES:
            raise _no_class(tree, name)
    else:
        found = _default_class(reader)
        if found is not None:
            spec["priorityClassName"] = json_tree.text(found, "metadata", "name")
    value = (found or {}).get("value", 0) if name not in _SYSTEM_PRIORITIES or found else None
    spec["priority"] = _SYSTEM_PRIORITIES[name] if value is None else value
    policy = (found or {}).get("preemptionPolicy", "PreemptLowerPriority")
    spec.setdefault("preemptionPolicy", policy)


def _no_class(tree: JsonObject, name: str) -> Rejected:
    pod = registry.find(CORE, "pods")
    assert isinstance(pod, Kind)
    detail = f"no PriorityClass with name {name} was found"
    return rejections.forbidden(pod, json_tree.text(tree, "metadata", "name"), detail)


def _default_class(reader: ObjectsReader) -> JsonObject | None:
    for key in reader.keys("scheduling.k8s.io", "priorityclasses"):
        found = reader.get(key)
        if found is not None and found.get("globalDefault") is True:
            return found
    return None


def add_tolerations(spec: JsonObject) -> None:
    """Let the pod bear a node that is away for a while, in place; done on every write.

    An applied list of tolerations replaces the stored one, which had these in it.
    """
    present = spec.get("tolerations") or []
    missing = [
        {
            "effect": "NoExecute",
            "key": key,
            "operator": "Exists",
            "tolerationSeconds": _EVICTION_SECONDS,
        }
        for key in _EVICTION_KEYS
        if not any(
            toleration.get("key", "") in ("", key)
            and toleration.get("effect", "") in ("", "NoExecute")
            for toleration in present
        )
    ]
    if missing:
        spec["tolerations"] = [*present, *missing]


def encode_secret(tree: JsonObject) -> None:
    """Move `stringData` of a secret into `data`, in place."""
    plain = tree.pop("stringData", None)
    if plain:
        data = tree.setdefault("data", {})
        for key, value in plain.items():
            data[key] = base64.b64encode(value.encode()).decode()
