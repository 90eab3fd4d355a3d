"""Validation of ResourceSlices. Parity: objects.md 7."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from app.domain.objects import profile as profiles
from app.domain.objects.field_errors import (
    FieldError,
    duplicate,
    immutable,
    invalid,
    not_supported,
    required,
    too_many,
)
from app.domain.objects.validation import shared
from app.domain.objects.validation.context import Context
from app.domain.objects.validation.devices import device_values, node_resources
from app.domain.objects.validation.node_selectors import node_selector
from app.domain.values import json_tree, names
from app.domain.values.fields import dra, entries, meta
from app.domain.values.json_tree import JsonView

DEVICES_MAX = 128
TOGETHER_MAX = 32
VALUES_MAX = 48
CONDITIONS_MAX = 4
ONE_NODE_TEXT = (
    "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
)
DEVICE_NODE_TEXT = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when "
    "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"
)
DEVICE_NODE_FORBIDDEN = (
    "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set "
    "to true in the ResourceSlice spec"
)
UNKNOWN_SET = "must reference a counterSet defined in the ResourceSlice sharedCounters"
UNKNOWN_COUNTER = "must reference a counter defined in the ResourceSlice sharedCounters"
OPERATIONS = ("*", "NodePrepareResources", "NodeUnprepareResources")


UNBOUNDED = 2**31 - 1
SHARED_IN_ALL_MAX = 32
CONSUMED_BY_DEVICE_MAX = 32
CONSUMED_IN_ALL_MAX = 1_024
"""The limits of counters up to 1.34: in all sets of a slice, of one device, and of all devices."""

APART_TEXT = "only one of `sharedCounters` or `devices` is allowed"
BY_DEVICE_TEXT = f"the total number of counters must not exceed {CONSUMED_BY_DEVICE_MAX}"
IN_ALL_TEXT = f"the total number of counters in devices must not exceed {CONSUMED_IN_ALL_MAX}"
SHARED_TEXT = f"the total number of shared counters must not exceed {SHARED_IN_ALL_MAX}"
TOGETHER_TEXT = f"the total number of attributes and capacities must not exceed {TOGETHER_MAX}"
VALUES_TEXT = f"the total number of attribute values must not exceed {VALUES_MAX}"
TOTALS = (BY_DEVICE_TEXT, IN_ALL_TEXT, SHARED_TEXT, TOGETHER_TEXT, VALUES_TEXT)
"""The messages about totals that are too large."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceLimits:
    """Limits of lists that depend on the release. Parity: objects.md 7.1, 7.2 and 10."""

    devices_with_features: int
    sets: int
    counters: int
    consumptions: int
    taints: int


LIMITS = SliceLimits(devices_with_features=64, sets=8, counters=32, consumptions=2, taints=16)
LIMITS_UP_TO_34 = SliceLimits(
    devices_with_features=DEVICES_MAX,
    sets=UNBOUNDED,
    counters=UNBOUNDED,
    consumptions=UNBOUNDED,
    taints=4,
)


def create(tree: JsonView, context: Context) -> list[FieldError]:
    """Checks a new ResourceSlice."""
    return _spec(meta.spec(tree), None, context)


def update(tree: JsonView, old: JsonView, _subresource: str, context: Context) -> list[FieldError]:
    """Checks a changed ResourceSlice: driver, pool name and node name are immutable."""
    spec, stored = meta.spec(tree), meta.spec(old)
    errors = _spec(spec, stored, context)
    for path in (("pool", "name"), ("driver",), ("nodeName",)):
        value = json_tree.get(spec, *path)
        if value != json_tree.get(stored, *path):
            errors.append(immutable(".".join(("spec", *path)), value))
    return errors


def _spec(spec: JsonView, stored: JsonView | None, context: Context) -> list[FieldError]:
    errors = shared.driver_name(spec.get("driver"), "spec.driver")
    errors += _pool(json_tree.mapping(spec, "pool"))
    errors += _node_selection(spec)
    limits = _limits_of(context)
    devices, sets = spec.get("devices"), spec.get("sharedCounters")
    if limits is LIMITS_UP_TO_34:
        errors += _counters_in_all(spec)
    elif devices is not None and sets is not None:
        errors.append(invalid("spec", "", APART_TEXT))
    errors += shared.bounded(
        sets,
        "spec.sharedCounters",
        limits.sets,
        partial(_counter_set, limits=limits),
        key=lambda item: entries.name(item),
    )
    listed = devices if isinstance(devices, list) else []
    devices_max = _devices_max(listed, limits)
    if len(listed) > devices_max:
        errors.append(too_many("spec.devices", len(listed), devices_max))
    else:
        errors += _devices(listed, spec, stored, context)
    return errors + _operations(spec) + _partition_type(spec)


def _limits_of(context: Context) -> SliceLimits:
    return LIMITS if context.profile.follows(profiles.SLICE_LIMITS) else LIMITS_UP_TO_34


def _counters_in_all(spec: JsonView) -> list[FieldError]:
    """Checks counters up to 1.34: totals of the slice, and references to sets of the slice."""
    sets = dict(_by_set(spec.get("sharedCounters"), "name"))
    errors: list[FieldError] = []
    in_all = 0
    devices = spec.get("devices")
    for index, device in enumerate(devices if isinstance(devices, list) else ()):
        place = f"spec.devices[{index}]"
        uses = device.get("consumesCounters") if isinstance(device, dict) else None
        own = 0
        for number, (name, counters) in enumerate(_by_set(uses, "counterSet")):
            at = f"{place}.consumesCounters[{number}]"
            own += len(counters)
            if name not in sets:
                errors.append(invalid(f"{at}.counterSet", name, UNKNOWN_SET))
                continue
            errors += [
                invalid(f"{at}.counters", counter, UNKNOWN_COUNTER)
                for counter in sorted(set(counters) - set(sets[name]))
            ]
        if own > CONSUMED_BY_DEVICE_MAX:
            errors.append(invalid(place, own, BY_DEVICE_TEXT))
        in_all += own
    if in_all > CONSUMED_IN_ALL_MAX:
        errors.append(invalid("spec.devices", in_all, IN_ALL_TEXT))
    shared_in_all = sum(len(counters) for counters in sets.values())
    if shared_in_all > SHARED_IN_ALL_MAX:
        errors.append(invalid("spec.sharedCounters", shared_in_all, SHARED_TEXT))
    return errors


def _by_set(items: Any, name_field: str) -> list[tuple[str, JsonView]]:
    """The set name and the counters of each entry."""
    trees = [each if isinstance(each, dict) else {} for each in items or ()]
    return [(json_tree.text(each, name_field), dra.counters(each)) for each in trees]


def _pool(pool: JsonView) -> list[FieldError]:
    errors = shared.pool_name(pool.get("name"), "spec.pool.name")
    count = json_tree.integer(pool, "resourceSliceCount") or 0
    if count <= 0:
        errors.append(invalid("spec.pool.resourceSliceCount", count, "must be greater than zero"))
    generation = json_tree.integer(pool, "generation") or 0
    if generation < 0:
        detail = "must be greater than or equal to zero"
        errors.append(invalid("spec.pool.generation", generation, detail))
    return errors


def _node_selection(spec: JsonView) -> list[FieldError]:
    selections: list[str] = []
    errors: list[FieldError] = []
    name = spec.get("nodeName")
    if name is not None:
        if name == "":
            detail = "must be either unset or set to a non-empty string"
            errors.append(invalid("spec.nodeName", name, detail))
        else:
            selections.append("`nodeName`")
            errors += shared.formatted(name, "spec.nodeName", names.subdomain)
    if spec.get("nodeSelector") is not None:
        selections.append("`nodeSelector`")
        errors += node_selector(spec["nodeSelector"], "spec.nodeSelector", one_term=True)
    for flag in ("allNodes", "perDeviceNodeSelection"):
        value = spec.get(flag)
        if value is None:
            continue
        if value is True:
            selections.append(f"`{flag}`")
        else:
            detail = "must be either unset or set to true"
            errors.append(invalid(f"spec.{flag}", value, detail))
    if not selections:
        errors.append(required("spec", ONE_NODE_TEXT))
    elif len(selections) > 1:
        listed = f"{{{', '.join(selections)}}}"
        errors.append(invalid("spec", listed, f"{ONE_NODE_TEXT}, but multiple fields are set"))
    return errors


def _devices_max(devices: list[Any], limits: SliceLimits) -> int:
    for device in devices:
        tree = device if isinstance(device, dict) else {}
        if tree.get("taints") or tree.get("consumesCounters"):
            return limits.devices_with_features
        attributes = dra.attributes(tree).values()
        if any(
            isinstance(value, dict) and any(name in value for name in device_values.LISTS)
            for value in attributes
        ):
            return limits.devices_with_features
    return DEVICES_MAX


def _counter_set(item: Any, path: str, limits: SliceLimits) -> list[FieldError]:
    tree = item if isinstance(item, dict) else {}
    errors = shared.required_name(tree.get("name"), f"{path}.name", names.label)
    return errors + _counters(tree, f"{path}.counters", limits)


def _counters(tree: JsonView, path: str, limits: SliceLimits) -> list[FieldError]:
    counters = dra.counters(tree)
    if not counters:
        return [required(path)]
    return shared.bounded_map(
        counters,
        path,
        limits.counters,
        lambda name, at: shared.formatted(name, at, names.label),
        lambda value, at: device_values.quantity_errors(
            json_tree.get(value, "value") if isinstance(value, dict) else None, f"{at}.value"
        ),
    )


def _devices(
    devices: list[Any], spec: JsonView, stored: JsonView | None, context: Context
) -> list[FieldError]:
    before = {entries.name(device): device for device in json_tree.objects(stored or {}, "devices")}
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, device in enumerate(devices):
        path = f"spec.devices[{index}]"
        tree = device if isinstance(device, dict) else {}
        name = entries.name(tree)
        if name in seen:
            errors.append(duplicate(path, name))
        seen.add(name)
        per_device = json_tree.flag(spec, "perDeviceNodeSelection")
        errors += _device(tree, before.get(name, {}), path, per_device, context)
    return errors


def _device(
    tree: JsonView, old: JsonView, path: str, per_device: bool, context: Context
) -> list[FieldError]:
    errors = shared.required_name(tree.get("name"), f"{path}.name", names.label)
    errors += _attributes_and_capacity(tree, old, path, context)
    limits = _limits_of(context)
    taints = tree.get("taints")
    if taints is None or taints != old.get("taints"):
        errors += shared.bounded(taints, f"{path}.taints", limits.taints, shared.taint)
    errors += shared.bounded(
        tree.get("consumesCounters"),
        f"{path}.consumesCounters",
        limits.consumptions,
        partial(_consumption, limits=limits),
        key=lambda item: dra.counter_set(item),
    )
    errors += _device_node_selection(tree, path, per_device)
    errors += node_resources.check(tree, path)
    return errors + _binding_conditions(tree, path)


def _attributes_and_capacity(
    tree: JsonView, old: JsonView, path: str, context: Context
) -> list[FieldError]:
    attributes = dra.attributes(tree)
    capacity = dra.capacity(tree)
    count = len(attributes) + len(capacity)
    errors: list[FieldError] = []
    if count > TOGETHER_MAX:
        errors.append(invalid(path, count, TOGETHER_TEXT))
    values = sum(device_values.values_in(value) for value in attributes.values())
    if values > VALUES_MAX:
        errors.append(invalid(f"{path}.attributes", values, VALUES_TEXT))
    for name in sorted(attributes):
        place = f"{path}.attributes[{shared.shortened(name)}]"
        errors += shared.qualified_name(name, f"{path}.attributes")
        errors += device_values.attribute(attributes[name], place)
    if capacity and capacity == old.get("capacity"):
        return errors
    many = json_tree.flag(tree, "allowMultipleAllocations")
    for name in sorted(capacity):
        place = f"{path}.capacity[{shared.shortened(name)}]"
        errors += shared.qualified_name(name, f"{path}.capacity")
        errors += device_values.capacity(capacity[name], place, shared_device=many, context=context)
    return errors


def _consumption(item: Any, path: str, limits: SliceLimits) -> list[FieldError]:
    tree = item if isinstance(item, dict) else {}
    errors = shared.required_name(tree.get("counterSet"), f"{path}.counterSet", names.label)
    return errors + _counters(tree, f"{path}.counters", limits)


def _device_node_selection(tree: JsonView, path: str, per_device: bool) -> list[FieldError]:
    selections = [
        name for name in ("nodeName", "nodeSelector", "allNodes") if tree.get(name) is not None
    ]
    if not per_device:
        return [invalid(path, None, DEVICE_NODE_FORBIDDEN)] if selections else []
    errors: list[FieldError] = []
    if not selections:
        errors.append(required(path, DEVICE_NODE_TEXT))
    elif len(selections) > 1:
        listed = f"{{{', '.join(f'`{name}`' for name in selections)}}}"
        errors.append(invalid(path, listed, DEVICE_NODE_TEXT))
    if "nodeName" in selections:
        errors += shared.formatted(tree["nodeName"], f"{path}.nodeName", names.subdomain)
    if "nodeSelector" in selections:
        errors += node_selector(tree["nodeSelector"], f"{path}.nodeSelector")
    if "allNodes" in selections and tree["allNodes"] is not True:
        detail = "must be either unset or set to true"
        errors.append(invalid(f"{path}.allNodes", tree["allNodes"], detail))
    return errors


def _binding_conditions(tree: JsonView, path: str) -> list[FieldError]:
    good, bad = tree.get("bindingConditions") or [], tree.get("bindingFailureConditions") or []
    errors: list[FieldError] = []
    for name, items in (("bindingConditions", good), ("bindingFailureConditions", bad)):
        errors += shared.bounded(
            items,
            f"{path}.{name}",
            CONDITIONS_MAX,
            lambda item, at: shared.formatted(item, at, names.label_name),
            key=lambda item: item,
        )
    for index, name in enumerate(bad):
        if name in good:
            detail = "bindingFailureConditions must not overlap with bindingConditions"
            errors.append(invalid(f"{path}.bindingFailureConditions[{index}]", name, detail))
    if bad and not good:
        detail = "bindingConditions are required to use bindingFailureConditions"
        errors.append(invalid(f"{path}.bindingConditions", None, detail))
    if good and not bad:
        detail = "bindingFailureConditions are required to use bindingConditions"
        errors.append(invalid(f"{path}.bindingFailureConditions", None, detail))
    return errors


def _operations(spec: JsonView) -> list[FieldError]:
    items = json_tree.texts(spec, "skipNodeOperations")
    path = "spec.skipNodeOperations"
    errors = shared.bounded(
        items,
        path,
        len(OPERATIONS),
        lambda item, at: [] if item in OPERATIONS else [not_supported(at, item, OPERATIONS)],
        key=lambda item: item,
    )
    if "NodePrepareResources" in items and not {"NodeUnprepareResources", "*"} & set(items):
        detail = (
            "NodePrepareResources cannot be skipped unless NodeUnprepareResources is also skipped"
        )
        errors.append(invalid(path, items, detail))
    return errors


def _partition_type(spec: JsonView) -> list[FieldError]:
    name = spec.get("partitionTypeAttribute")
    if name is None:
        return []
    path = "spec.partitionTypeAttribute"
    errors = shared.fully_qualified_name(name, path)
    if errors:
        return errors
    consuming = [
        (index, device)
        for index, device in enumerate(json_tree.objects(spec, "devices"))
        if device.get("consumesCounters")
    ]
    if not consuming:
        detail = "may only be set on a slice which declares devices that consume counters"
        return [invalid(path, name, detail)]
    domain, _, identifier = name.partition("/")
    own = identifier if domain == spec.get("driver") else name
    for index, device in consuming:
        attributes = dra.attributes(device)
        value = attributes.get(name, attributes.get(own))
        place = f"spec.devices[{index}].attributes[{name}]"
        if value is None:
            detail = (
                "device consumes counters and `partitionTypeAttribute` names this attribute, so it "
                "must be set"
            )
            errors.append(required(place, detail))
        elif json_tree.get(value, "string") is None:
            detail = "must be a string value because `partitionTypeAttribute` names this attribute"
            errors.append(invalid(place, value, detail))
    return errors
