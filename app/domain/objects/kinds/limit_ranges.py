"""LimitRange admission: defaults and limits of resources of pods and volume claims in a namespace.

Parity: objects.md 15.2; the admission plug-in LimitRanger; the messages are upstream's. Amounts in
a message are ordered by name, while upstream has no order. Limit ranges are applied in the order of
their names.
"""

from collections.abc import Callable, Iterator, Mapping

from app.domain.log import ObjectKey
from app.domain.objects import registry, rejections
from app.domain.objects.kinds import pod_resources
from app.domain.objects.reader import ObjectsReader
from app.domain.values import api_resources, json_tree
from app.domain.values.fields import entries, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.quantity import Quantity

ANNOTATION = "kubernetes.io/limit-ranger"

_Amounts = Mapping[str, Quantity]
_Constraint = Callable[[str, str, Quantity, Quantity | None, Quantity | None], str]


def fill_pod(pod: JsonObject, reader: ObjectsReader) -> None:
    """Sets missing requests and limits of a new pod's containers, in place."""
    spec = pod["spec"]
    for limits in _of(reader, meta.namespace(pod)):
        changes: list[str] = []
        for field, prefix in (("containers", "container"), ("initContainers", "init container")):
            for container in json_tree.objects(spec, field):
                changes += _fill(container, limits, prefix)
        if changes:
            before = meta.annotations_as_stored(pod)
            text = f"LimitRanger plugin set: {'; '.join(changes)}"
            pod["metadata"]["annotations"] = {**before, ANNOTATION: text}


def check_change(reader: ObjectsReader, key: ObjectKey, subresource: str, tree: JsonView) -> None:
    """Checks a changed volume claim or a resized pod like `check`."""
    place = (key.group, key.resource, subresource)
    if place in (
        (*api_resources.PODS, "resize"),
        (*api_resources.PERSISTENT_VOLUME_CLAIMS, ""),
    ) and not meta.is_deleting(tree):
        check(reader, key, tree)


def check(reader: ObjectsReader, key: ObjectKey, tree: JsonView) -> None:
    """Raises Forbidden for a pod or volume claim that exceeds a limit range of its namespace."""
    place = (key.group, key.resource)
    if place not in (api_resources.PODS, api_resources.PERSISTENT_VOLUME_CLAIMS):
        return
    judge = _of_pod if place == api_resources.PODS else _of_claim
    for limits in _of(reader, key.namespace):
        problems = list(judge(limits, meta.spec(tree)))
        if problems:
            text = problems[0] if len(problems) == 1 else f"[{', '.join(dict.fromkeys(problems))}]"
            kind = registry.find(*place)
            assert kind is not None, "both kinds are built in"
            raise rejections.forbidden(kind, meta.name(tree), text)


def fill_range(tree: JsonObject) -> None:
    """Sets the defaults of a LimitRange: limits of containers from maxima, requests from limits."""
    for item in json_tree.objects(tree, "spec", "limits"):
        if item.get("type") != "Container":
            continue
        limits = {**(item.get("max") or {}), **(item.get("default") or {})}
        requests = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}
        for name, amounts in (("default", limits), ("defaultRequest", requests)):
            if amounts:
                item[name] = amounts


def _of(reader: ObjectsReader, namespace: str) -> Iterator[list[JsonObject]]:
    """Yields the items of each limit range of a namespace."""
    for key in reader.keys(*api_resources.LIMIT_RANGES, namespace):
        limit_range = reader.get(key)
        if limit_range is not None:
            yield json_tree.objects(limit_range, "spec", "limits")


def _fill(container: JsonObject, limits: list[JsonObject], prefix: str) -> Iterator[str]:
    """Sets the defaults of one container; yields the text of the annotation about them."""
    name = entries.name(container)
    resources = container.setdefault("resources", {})
    for field, source, word in (
        ("requests", "defaultRequest", "request"),
        ("limits", "default", "limit"),
    ):
        present = resources.get(field) or {}
        wanted: JsonObject = {}
        for item in limits:
            if item.get("type") == "Container":
                wanted |= json_tree.mapping(item, source)
        missing = {each: wanted[each] for each in sorted(wanted) if each not in present}
        if missing:
            resources[field] = {**present, **missing}
            yield f"{', '.join(missing)} {word} for {prefix} {name}"


def _of_pod(limits: list[JsonObject], spec: JsonView) -> Iterator[str]:
    for item in limits:
        if item.get("type") == "Container":
            for field in ("containers", "initContainers"):
                for container in json_tree.objects(spec, field):
                    resources = json_tree.mapping(container, "resources")
                    yield from _broken(item, *map(_read(resources), ("requests", "limits")))
        elif item.get("type") == "Pod":
            requests, most = (pod_resources.effective(spec, f) for f in ("requests", "limits"))
            yield from _broken(item, requests, most)


def _of_claim(limits: list[JsonObject], spec: JsonView) -> Iterator[str]:
    requests = _read(json_tree.mapping(spec, "resources"))("requests")
    for item in limits:
        if item.get("type") == "PersistentVolumeClaim":
            yield from _each(item, "min", _least, requests, {})
            yield from _each(item, "max", _most_requested, requests, {})


def _broken(item: JsonView, requests: _Amounts, limits: _Amounts) -> Iterator[str]:
    yield from _each(item, "min", _least, requests, limits)
    yield from _each(item, "max", _most, requests, limits)
    yield from _each(item, "maxLimitRequestRatio", _ratio, requests, limits)


def _each(
    item: JsonView, field: str, constraint: _Constraint, requests: _Amounts, limits: _Amounts
) -> Iterator[str]:
    """Yields the errors of one constraint for its resources."""
    kind = json_tree.text(item, "type")
    for name, enforced in sorted(pod_resources.amounts(json_tree.mapping(item, field)).items()):
        text = constraint(name, kind, enforced, requests.get(name), limits.get(name))
        if text:
            yield text


def _least(
    name: str, kind: str, enforced: Quantity, request: Quantity | None, limit: Quantity | None
) -> str:
    text = f"minimum {name} usage per {kind} is {enforced}"
    if request is None:
        return f"{text}.  No request is specified"
    if request.nanos < enforced.nanos:
        return f"{text}, but request is {request}"
    if limit is not None and limit.nanos < enforced.nanos:
        return f"{text}, but limit is {limit}"
    return ""


def _most(
    name: str, kind: str, enforced: Quantity, request: Quantity | None, limit: Quantity | None
) -> str:
    text = f"maximum {name} usage per {kind} is {enforced}"
    if limit is None:
        return f"{text}.  No limit is specified"
    if limit.nanos > enforced.nanos:
        return f"{text}, but limit is {limit}"
    if request is not None and request.nanos > enforced.nanos:
        return f"{text}, but request is {request}"
    return ""


def _most_requested(
    name: str, kind: str, enforced: Quantity, request: Quantity | None, _limit: Quantity | None
) -> str:
    text = f"maximum {name} usage per {kind} is {enforced}"
    if request is None:
        return f"{text}.  No request is specified"
    return f"{text}, but request is {request}" if request.nanos > enforced.nanos else ""


def _ratio(
    name: str, kind: str, enforced: Quantity, request: Quantity | None, limit: Quantity | None
) -> str:
    text = f"{name} max limit to request ratio per {kind} is {enforced}"
    for word, amount in (("request", request), ("limit", limit)):
        if amount is None or not amount.nanos:
            return f"{text}, but no {word} is specified or {word} is 0"
    assert request is not None, "asked above"
    assert limit is not None, "asked above"
    if limit.nanos * 10**9 <= enforced.nanos * request.nanos:
        return ""
    return f"{text}, but provided ratio is {limit.nanos / request.nanos:f}"


def _read(resources: JsonView) -> Callable[[str], _Amounts]:
    return lambda field: pod_resources.amounts(json_tree.mapping(resources, field))
