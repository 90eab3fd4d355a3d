"""What the API server and its admission do to a pod on create. Parity: controllers.md 5.1."""

from app.domain.objects.kinds import (
    limit_ranges,
    match_labels,
    pod_defaults,
    priorities,
    runtime_classes,
)
from app.domain.objects.reader import ObjectsReader
from app.domain.values import condition_types, timestamps, well_known
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

_EVICTION_KEYS = (well_known.NOT_READY, well_known.UNREACHABLE)
_EVICTION_SECONDS = 300

GATED_MESSAGE = "Scheduling is blocked due to non-empty scheduling gates"


def prepare_create(tree: JsonObject, reader: ObjectsReader, now: Instant) -> None:
    """Set resources, selectors, priority, tolerations and the first status, in place.

    Raises Forbidden for a priority that does not go with the pod's class, and for a runtime that
    is not there.
    """
    spec = tree["spec"]
    limit_ranges.fill_pod(tree, reader)
    match_labels.merge(tree)
    priorities.resolve(tree, reader)
    runtime_classes.admit(tree, reader)
    add_tolerations(spec)
    status: JsonObject = {"phase": "Pending", "qosClass": pod_defaults.quality_of_service(spec)}
    if spec.get("schedulingGates"):
        status["conditions"] = [
            {
                "lastProbeTime": None,
                "lastTransitionTime": timestamps.seconds_text(now),
                "message": GATED_MESSAGE,
                "reason": "SchedulingGated",
                "status": "False",
                "type": condition_types.POD_SCHEDULED,
            }
        ]
    tree["status"] = status


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
