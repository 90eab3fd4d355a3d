"""HorizontalPodAutoscalers in autoscaling/v1, which supports only CPU utilization.

Data without a field in v1 is in annotations of its objects, as JSON: other metrics, current
metrics, conditions and the behavior. Parity: objects.md 15.1; autoscaling/v1 of a real server,
which reads the annotations back and removes them from the stored object.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from app.domain.values import json_tree
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject, JsonView

_PREFIX = "autoscaling.alpha.kubernetes.io/"
METRICS = f"{_PREFIX}metrics"
MEASURED = f"{_PREFIX}current-metrics"
CONDITIONS = f"{_PREFIX}conditions"
BEHAVIOR = f"{_PREFIX}behavior"
_ANNOTATIONS = (METRICS, MEASURED, CONDITIONS, BEHAVIOR)

_TARGET = "targetCPUUtilizationPercentage"
_CURRENT = "currentCPUUtilizationPercentage"
_SOURCES = ("object", "pods", "resource", "containerResource", "external")
_CONDITION = ("type", "status", "lastTransitionTime", "reason", "message")
_RULES = ("stabilizationWindowSeconds", "selectPolicy", "policies", "tolerance")

_Paths = tuple[tuple[str, tuple[str, ...]], ...]
"""The fields of v1 and their paths in v2, in the order in which v1 is written."""


def _paths(part: str) -> Mapping[str, _Paths]:
    """The paths of metric sources; `part` is `target` in a spec and `current` in a status."""
    average, value = f"{part}AverageValue", f"{part}Value"
    utilization = (f"{part}AverageUtilization", (part, "averageUtilization"))
    resource: _Paths = (("name", ("name",)), utilization, (average, (part, "averageValue")))
    metric: _Paths = (("metricName", ("metric", "name")),)
    return {
        "resource": resource,
        "containerResource": (*resource, ("container", ("container",))),
        "pods": (
            *metric,
            (average, (part, "averageValue")),
            ("selector", ("metric", "selector")),
        ),
        "object": (
            ("target", ("describedObject",)),
            *metric,
            (value, (part, "value")),
            ("selector", ("metric", "selector")),
            ("averageValue", (part, "averageValue")),
        ),
        "external": (
            *metric,
            ("metricSelector", ("metric", "selector")),
            (value, (part, "value")),
            (average, (part, "averageValue")),
        ),
    }


_WANTED, _MEASURED = _paths("target"), _paths("current")


def to_hub(tree: JsonView) -> JsonObject:
    """Converts an autoscaler from v1 to v2. Annotations that cannot be read are dropped."""
    hub = dict(tree)
    metadata = dict(meta.metadata(tree))
    annotations = dict(json_tree.mapping(metadata, "annotations"))
    kept = {key: text for key, text in annotations.items() if key not in _ANNOTATIONS}
    if "metadata" in tree and len(kept) != len(annotations):
        hub["metadata"] = metadata
        metadata["annotations"] = kept
        if not kept:
            del metadata["annotations"]
    if isinstance(tree.get("spec"), dict):
        hub["spec"] = _spec_to_hub(tree["spec"], annotations)
    if isinstance(tree.get("status"), dict):
        hub["status"] = _status_to_hub(tree["status"], annotations)
    return hub


def from_hub(tree: JsonView) -> JsonObject:
    """Converts an autoscaler from v2 to v1."""
    converted = dict(tree)
    annotations: dict[str, Any] = {}
    if isinstance(tree.get("spec"), dict):
        converted["spec"] = _spec_from_hub(tree["spec"], annotations)
    if isinstance(tree.get("status"), dict):
        converted["status"] = _status_from_hub(tree["status"], annotations)
    if annotations:
        metadata = dict(meta.metadata(tree))
        before = json_tree.mapping(metadata, "annotations")
        metadata["annotations"] = {**before, **annotations}
        converted["metadata"] = metadata
    return converted


def _spec_to_hub(spec: JsonView, annotations: JsonView) -> JsonObject:
    hub = {key: value for key, value in spec.items() if key != _TARGET}
    metrics: list[JsonObject] = []
    if spec.get(_TARGET) is not None:
        target = {"type": "Utilization", "averageUtilization": spec[_TARGET]}
        metrics.append({"type": "Resource", "resource": {"name": "cpu", "target": target}})
    metrics += _each(annotations.get(METRICS), _metric_to_hub)
    if metrics:
        hub["metrics"] = metrics
    behavior = _read(annotations.get(BEHAVIOR))
    if isinstance(behavior, dict):
        hub["behavior"] = behavior
    return hub


def _spec_from_hub(spec: JsonView, annotations: JsonObject) -> JsonObject:
    converted = {key: value for key, value in spec.items() if key not in ("behavior", "metrics")}
    others = []
    for metric in json_tree.objects(spec, "metrics"):
        share = json_tree.get(metric, "resource", "target", "averageUtilization")
        if _is_cpu(metric) and share is not None:
            converted[_TARGET] = share
        else:
            others.append(_metric_from_hub(metric, _WANTED))
    if others:
        annotations[METRICS] = _text(others)
    behavior = spec.get("behavior")
    if isinstance(behavior, dict):
        ways = {
            way: _ordered(behavior[way], _RULES)
            for way in ("scaleUp", "scaleDown")
            if isinstance(behavior.get(way), dict)
        }
        annotations[BEHAVIOR] = _text(ways)
    return converted


def _status_to_hub(status: JsonView, annotations: JsonView) -> JsonObject:
    hub = {key: value for key, value in status.items() if key != _CURRENT}
    measured = _each(annotations.get(MEASURED), _measure_to_hub)
    if not measured and status.get(_CURRENT) is not None:
        current = {"averageUtilization": status[_CURRENT]}
        measured = [{"type": "Resource", "resource": {"name": "cpu", "current": current}}]
    if measured:
        hub["currentMetrics"] = measured
    conditions = _read(annotations.get(CONDITIONS))
    if isinstance(conditions, list):
        hub["conditions"] = conditions
    return hub


def _status_from_hub(status: JsonView, annotations: JsonObject) -> JsonObject:
    converted = {
        key: value for key, value in status.items() if key not in ("conditions", "currentMetrics")
    }
    measured = json_tree.objects(status, "currentMetrics")
    for metric in measured:
        share = json_tree.get(metric, "resource", "current", "averageUtilization")
        if _is_cpu(metric) and share is not None:
            converted[_CURRENT] = share
    if measured:
        annotations[MEASURED] = _text([_metric_from_hub(metric, _MEASURED) for metric in measured])
    if conditions := meta.conditions_of(status):
        annotations[CONDITIONS] = _text([_ordered(held, _CONDITION) for held in conditions])
    return converted


def _is_cpu(metric: JsonView) -> bool:
    name = json_tree.text(metric, "resource", "name")
    return metric.get("type") == "Resource" and name == "cpu"


def _metric_to_hub(metric: JsonView) -> JsonObject:
    return _source_to_hub(metric, _WANTED, "target")


def _measure_to_hub(metric: JsonView) -> JsonObject:
    return _source_to_hub(metric, _MEASURED, "current")


def _source_to_hub(metric: JsonView, table: Mapping[str, _Paths], part: str) -> JsonObject:
    hub: JsonObject = {"type": metric.get("type", "")}
    for name in _SOURCES:
        source = metric.get(name)
        if not isinstance(source, dict):
            continue
        made: JsonObject = {part: {}}
        for key, path in table[name]:
            if source.get(key) is not None:
                place = made
                for step in path[:-1]:
                    place = place.setdefault(step, {})
                place[path[-1]] = source[key]
        if part == "target":
            made[part]["type"] = _target_type(made[part])
        hub[name] = made
    return hub


def _target_type(target: JsonView) -> str:
    if "averageUtilization" in target:
        return "Utilization"
    return "AverageValue" if "averageValue" in target else "Value"


def _metric_from_hub(metric: JsonView, table: Mapping[str, _Paths]) -> JsonObject:
    converted: JsonObject = {"type": metric.get("type", "")}
    for name in _SOURCES:
        source = metric.get(name)
        if not isinstance(source, dict):
            continue
        values = ((key, json_tree.get(source, *path)) for key, path in table[name])
        converted[name] = {key: value for key, value in values if value is not None}
    return converted


def _ordered(holder: JsonView, names: Iterable[str]) -> JsonObject:
    return {name: holder[name] for name in names if name in holder}


def _each(text: object, convert: Callable[[JsonView], JsonObject]) -> list[JsonObject]:
    items = _read(text)
    if not isinstance(items, list):
        return []
    return [convert(item) for item in items if isinstance(item, dict)]


def _read(text: object) -> Any:
    """The JSON value of an annotation; None if it is missing or cannot be read."""
    if not isinstance(text, str):
        return None
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None


def _text(value: object) -> str:
    return msgspec.json.encode(value).decode()
