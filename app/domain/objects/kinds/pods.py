"""Changes that API server and admission make to a pod on create. Parity: controllers.md 5.1."""

from collections.abc import Iterator

from app.domain.log import ObjectKey
from app.domain.objects import registry, rejections
from app.domain.objects.kinds import limit_ranges, pod_defaults, priorities
from app.domain.objects.reader import ObjectsReader
from app.domain.values import api_resources, condition_types, json_tree, timestamps, well_known
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

_EVICTION_KEYS = (well_known.NOT_READY, well_known.UNREACHABLE)
_EVICTION_SECONDS = 300

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_KEY_FIELDS = (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))

GATED_MESSAGE = "Scheduling is blocked due to non-empty scheduling gates"


def prepare_create(tree: JsonObject, reader: ObjectsReader, now: Instant) -> None:
    """Sets resources, selectors, priority, tolerations and the initial status, in place.

    Raises Forbidden for a priority that differs from that of the pod's class, and for a
    RuntimeClass that does not exist or does not fit the pod.
    """
    spec = tree["spec"]
    limit_ranges.fill_pod(tree, reader)
    _merge_label_keys(tree)
    priorities.resolve(tree, reader)
    _admit_runtime_class(tree, reader)
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
    """Adds the tolerations of not ready and unreachable nodes, in place, on every write.

    An applied list of tolerations replaces the stored list, which had these tolerations.
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


def _merge_label_keys(pod: JsonObject) -> None:
    """Adds the pod's own label values to the selectors of its terms, in place.

    `matchLabelKeys` selects pods with the same value of the label as the pod itself,
    `mismatchLabelKeys` (only in affinity) pods with another value; a key that the pod lacks is
    ignored. The scheduler uses only the selectors. Parity: objects.md 15.1; the API's description
    of these fields.
    """
    spec = pod["spec"]
    if "affinity" not in spec and "topologySpreadConstraints" not in spec:
        return
    labels = meta.labels(pod)
    for term in _terms(spec):
        selector = term.get("labelSelector")
        if not isinstance(selector, dict):
            continue
        for field, operator in _KEY_FIELDS:
            for key in json_tree.texts(term, field):
                if key in labels:
                    wanted = {"key": key, "operator": operator, "values": [labels[key]]}
                    known = core.expressions(selector)
                    selector["matchExpressions"] = [*known, wanted]


def _terms(spec: JsonObject) -> Iterator[JsonObject]:
    yield from json_tree.objects(spec, "topologySpreadConstraints")
    for kind in ("podAffinity", "podAntiAffinity"):
        yield from json_tree.objects(spec, "affinity", kind, _REQUIRED)
        for item in json_tree.objects(spec, "affinity", kind, _PREFERRED):
            if isinstance(item.get("podAffinityTerm"), dict):
                yield item["podAffinityTerm"]


def _admit_runtime_class(pod: JsonObject, reader: ObjectsReader) -> None:
    """Adds the overhead, node labels and tolerations of its class to a new pod, in place.

    Raises Forbidden for a class that does not exist, and for a pod that conflicts with its class.
    Parity: objects.md 15.2; the admission plugin RuntimeClass.
    """
    spec = pod["spec"]
    name = spec.get("runtimeClassName")
    if not name:
        if spec.get("overhead"):
            raise _pod_rejected(
                pod, "Pod Overhead set without corresponding RuntimeClass defined Overhead"
            )
        return
    runtime_class = reader.get(ObjectKey(*api_resources.RUNTIME_CLASSES, "", name))
    if runtime_class is None:
        raise _pod_rejected(pod, f'RuntimeClass "{name}" not found')
    overhead = json_tree.mapping(runtime_class, "overhead", "podFixed")
    if spec.get("overhead") and spec["overhead"] != overhead:
        raise _pod_rejected(pod, "Pod's Overhead doesn't match RuntimeClass's defined Overhead")
    if overhead:
        spec["overhead"] = dict(overhead)
    wanted = core.runtime_node_selector(runtime_class)
    labels = core.node_selector_of(spec)
    for key, value in wanted.items():
        if labels.get(key, value) != value:
            raise _pod_rejected(
                pod,
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {labels[key]}",
            )
    if wanted:
        spec["nodeSelector"] = {**labels, **wanted}
    tolerations = [*(spec.get("tolerations") or ())]
    more = [
        dict(item)
        for item in json_tree.objects(runtime_class, "scheduling", "tolerations")
        if item not in tolerations
    ]
    if more:
        spec["tolerations"] = tolerations + more


def _pod_rejected(pod: JsonObject, detail: str) -> Exception:
    kind = registry.find("", "pods")
    assert kind is not None
    name = meta.name(pod)
    return rejections.forbidden(kind, name, f"pod rejected: {detail}")
