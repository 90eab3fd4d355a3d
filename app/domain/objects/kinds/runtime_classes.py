"""RuntimeClass admission: the overhead, node labels and tolerations that a class adds to pods.

Parity: objects.md 15.2; the admission plugin RuntimeClass.
"""

from app.domain.log import ObjectKey
from app.domain.objects import registry, rejections
from app.domain.objects.reader import ObjectsReader
from app.domain.values import api_groups, json_tree
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject

GROUP, CLASSES = api_groups.NODE, "runtimeclasses"


def admit(pod: JsonObject, reader: ObjectsReader) -> None:
    """Adds the overhead, node labels and tolerations of its class to a new pod, in place.

    Raises Forbidden for a class that does not exist, and for a pod that conflicts with its class.
    """
    spec = pod["spec"]
    name = spec.get("runtimeClassName")
    if not name:
        if spec.get("overhead"):
            raise _rejected(
                pod, "Pod Overhead set without corresponding RuntimeClass defined Overhead"
            )
        return
    runtime_class = reader.get(ObjectKey(GROUP, CLASSES, "", name))
    if runtime_class is None:
        raise _rejected(pod, f'RuntimeClass "{name}" not found')
    overhead = json_tree.mapping(runtime_class, "overhead", "podFixed")
    if spec.get("overhead") and spec["overhead"] != overhead:
        raise _rejected(pod, "Pod's Overhead doesn't match RuntimeClass's defined Overhead")
    if overhead:
        spec["overhead"] = dict(overhead)
    wanted = json_tree.labels(runtime_class, "scheduling", "nodeSelector")
    labels = json_tree.labels(spec, "nodeSelector")
    for key, value in wanted.items():
        if labels.get(key, value) != value:
            raise _rejected(
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


def _rejected(pod: JsonObject, detail: str) -> Exception:
    kind = registry.find("", "pods")
    assert kind is not None
    name = meta.name(pod)
    return rejections.forbidden(kind, name, f"pod rejected: {detail}")
