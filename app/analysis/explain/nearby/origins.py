"""Origins of the requests and the node selector of a pod that are not in its containers."""

import re
from collections.abc import Iterator

from app.analysis.explain.reasons import Reason
from app.analysis.views import LiveViews
from app.domain.log import ObjectKey
from app.domain.objects.kinds import limit_ranges, pod_resources
from app.domain.values import api_resources, quantity
from app.domain.values.fields import core, entries, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.quantity import Quantity


def of_request(pod: JsonObject, resource: str) -> str:
    """The parts of a pod's request of a resource that its containers do not request, as text.

    These are the overhead of its RuntimeClass, an init container that requests more than all
    containers, and defaults of a LimitRange. Empty if there is nothing of that.
    """
    spec = meta.spec(pod)
    parts = [*_overhead(pod, resource), *_initial(spec, resource)]
    parts += [f"a LimitRange set that of {of}" for of in _defaulted(pod, resource)]
    return f" ({'; '.join(parts)})" if parts else ""


def of_label(views: LiveViews, pod: JsonObject, key: str, value: str) -> Iterator[Reason]:
    """The RuntimeClass that added a label to the node selector of a pod."""
    name = core.runtime_class_name(pod)
    place = ObjectKey(*api_resources.RUNTIME_CLASSES, "", name)
    tree = views.objects.get(place) if name else None
    if core.runtime_node_selector(tree or {}).get(key) == value:
        text = f"{key}={value} in the nodeSelector is from RuntimeClass {name}"
        yield Reason(text=text, about=place, rests_on=(place,))


_DEFAULTS = re.compile(r"(?:: |; )([^;]+?) request for ((?:init )?container [^;]+)")
"""The requests in the annotation of LimitRanger: `cpu, memory request for container main`."""


def _defaulted(pod: JsonObject, resource: str) -> list[str]:
    """The containers whose request a LimitRange set when the pod was made."""
    annotation = meta.annotation(pod, limit_ranges.ANNOTATION)
    return [of for names, of in _DEFAULTS.findall(annotation) if resource in names.split(", ")]


def _overhead(pod: JsonObject, resource: str) -> Iterator[str]:
    amount = pod_resources.amounts(core.overhead_of(meta.spec(pod))).get(resource)
    if amount is not None and amount.nanos:
        name = core.runtime_class_name(pod)
        yield f"{amount} of it is overhead" + (f" of RuntimeClass {name}" if name else "")


def _initial(spec: JsonView, resource: str) -> Iterator[str]:
    """The init container that alone requests more than the containers that run together."""
    if resource in pod_resources.of(spec, "requests"):
        return
    together: dict[str, Quantity] = {}
    for container in core.containers_of(spec):
        pod_resources.add(together, pod_resources.of(container, "requests"))
    largest, of = together.get(resource, quantity.ZERO), ""
    for container in core.init_containers_of(spec):
        amount = pod_resources.of(container, "requests").get(resource, quantity.ZERO)
        if container.get("restartPolicy") != "Always" and quantity.compare(largest, amount) < 0:
            largest, of = amount, entries.name(container)
    if of:
        yield f"init container {of} alone requests {largest}"
