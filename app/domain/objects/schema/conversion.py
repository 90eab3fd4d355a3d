"""Conversion of objects between versions, with v1 as the hub.

Parity: objects.md 13, api.md 5 (Events), history-formats.md 17. A version is written as
in `apiVersion` (`resource.k8s.io/v1beta1`) or, within the kind's own group, alone (`v1beta1`).
The result shares with the source the parts that are equal in both versions; the source is never
changed.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from app.domain.errors import BadRequest
from app.domain.objects import registry
from app.domain.objects.registry import Kind
from app.domain.objects.schema import autoscaler_versions
from app.domain.values import api_groups, json_tree
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject, JsonView

_OLD_AUTOSCALING = (api_groups.AUTOSCALING, "v1")

_EARLIER: Mapping[tuple[str, str], frozenset[str]] = {
    (api_groups.ADMISSION_REGISTRATION, "v1beta1"): frozenset(
        f"{verb}AdmissionPolicy{part}"
        for verb in ("Mutating", "Validating")
        for part in ("", "Binding")
    ),
    (api_groups.API_REGISTRATION, "v1beta1"): frozenset({"APIService"}),
    (api_groups.APPS, "v1beta2"): frozenset(
        {"ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"}
    ),
    (api_groups.AUTOSCALING, "v2beta2"): frozenset({"HorizontalPodAutoscaler"}),
    (api_groups.BATCH, "v1beta1"): frozenset({"CronJob"}),
    (api_groups.COORDINATION, "v1beta1"): frozenset({"Lease"}),
    (api_groups.NETWORKING, "v1beta1"): frozenset({"IPAddress", "IngressClass", "ServiceCIDR"}),
    (api_groups.NODE, "v1beta1"): frozenset({"RuntimeClass"}),
    (api_groups.POLICY, "v1beta1"): frozenset({"PodDisruptionBudget"}),
    (api_groups.RBAC, "v1beta1"): frozenset(
        {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}
    ),
    (api_groups.SCHEDULING, "v1beta1"): frozenset({"PriorityClass"}),
    (api_groups.STORAGE, "v1beta1"): frozenset(
        {"CSIDriver", "CSINode", "CSIStorageCapacity", "StorageClass"}
        | {"VolumeAttachment", "VolumeAttributesClass"}
    ),
}
"""Versions of earlier releases whose fields are those of the stable one, by kind.

Recorded objects may have them; no release that is imitated serves them.
"""

Step: TypeAlias = Callable[[JsonView], JsonObject]


def convert(tree: JsonView, kind: Kind, from_version: str, to_version: str) -> JsonObject:
    """Returns the object in another version. Raises BadRequest if a version cannot be converted."""
    source = _api_version(kind, from_version)
    target = _api_version(kind, to_version)
    if source == target:
        converted = dict(tree)
    else:
        hub = _to_hub(kind, source)(tree)
        converted = _from_hub(kind, target)(hub)
    converted["apiVersion"] = target
    converted["kind"] = kind.kind
    return converted


def check_version(kind: Kind, group: str, version: str) -> None:
    """Raises BadRequest for a version in which the kind was never or is no longer served.

    The profile decides which of the known versions a release serves.
    """
    if (group, version) in kind.group_versions:
        return
    offered = ", ".join(registry.api_version(*pair) for pair in kind.group_versions)
    if not version:
        raise BadRequest(f"{kind.kind} without its API version; it is served in {offered}")
    name = registry.api_version(group, version)
    raise BadRequest(
        f"{kind.kind} in {name} {_unserved(kind, group, version)}; it is served in {offered}"
    )


def _unserved(kind: Kind, group: str, version: str) -> str:
    """The words for a version that is not served. Not every version that others had is known."""
    if kind.group == api_groups.RESOURCE and version in ("v1alpha1", "v1alpha2"):
        return "is the older form with a control plane controller, which is no longer read"
    if version in ("v1alpha1", "v1alpha2", "v1alpha3"):
        return "is an older form that is no longer read"
    if kind.kind in _EARLIER.get((group, version), ()):
        return "is a form that redra does not serve"
    is_known = kind.group == api_groups.RESOURCE or not ("alpha" in version or "beta" in version)
    return "was never released" if is_known else "is not read"


def _api_version(kind: Kind, version: str) -> str:
    return version if "/" in version else registry.api_version(kind.group, version)


def _identity(tree: JsonView) -> JsonObject:
    return dict(tree)


def _to_hub(kind: Kind, source: str) -> Step:
    group, version = registry.split_api_version(source)
    if source == kind.storage_api_version:
        return _identity
    if kind.group == api_groups.RESOURCE and kind.kind in _FROM_BETA:
        if version == "v1beta1":
            return _FROM_BETA[kind.kind]
        if version == "v1alpha3" and group == api_groups.RESOURCE:
            return lambda tree: _FROM_BETA[kind.kind](_from_alpha(tree, kind))
    if kind.alias_group and group == kind.alias_group:
        return _event_from_alias
    if (group, version) == _OLD_AUTOSCALING:
        return autoscaler_versions.to_hub
    if (group, version) in kind.group_versions:
        return _identity
    if kind.kind in _EARLIER.get((group, version), ()):
        return _budget_from_beta if group == api_groups.POLICY else _identity
    check_version(kind, group, version)
    raise AssertionError("check_version refuses what is not listed")


def _from_hub(kind: Kind, target: str) -> Step:
    group, version = registry.split_api_version(target)
    check_version(kind, group, version)
    if kind.group == api_groups.RESOURCE and version == "v1beta1" and kind.kind in _TO_BETA:
        return _TO_BETA[kind.kind]
    if group == api_groups.EVENTS:
        return _event_to_alias
    if (group, version) == _OLD_AUTOSCALING:
        return autoscaler_versions.from_hub
    return _identity


def _budget_from_beta(tree: JsonView) -> JsonObject:
    """The budget, of which an empty selector chose no pods, as one that is not set does."""
    spec = tree.get("spec")
    if not isinstance(spec, dict) or spec.get("selector") != {}:
        return dict(tree)
    return {**tree, "spec": {name: part for name, part in spec.items() if name != "selector"}}


# ---- v1beta1

_OF_REQUESTS = ("name", "firstAvailable", "exactly")
"""The fields of a request that are not of its exact part.

In v1beta1 all others are, also those that only a newer release knows.
"""


def _changed(tree: JsonView, path: tuple[str, ...], change: Callable[[Any], Any]) -> JsonObject:
    """Returns a copy of `tree` with `change` applied to the value at `path`, if there is one."""
    changed = dict(tree)
    step, rest = path[0], path[1:]
    value = changed.get(step)
    if value is None:
        return changed
    if not rest:
        changed[step] = change(value)
    elif isinstance(value, dict):
        changed[step] = _changed(value, rest, change)
    return changed


def _each(change: Callable[[JsonView], JsonObject]) -> Callable[[Any], Any]:
    def change_all(items: Any) -> Any:
        if not isinstance(items, list):
            return items
        return [change(item) if isinstance(item, dict) else item for item in items]

    return change_all


def _request_from_beta(request: JsonView) -> JsonObject:
    converted = {key: value for key, value in request.items() if key in _OF_REQUESTS}
    exactly = {key: value for key, value in request.items() if key not in _OF_REQUESTS}
    # A zero value of a field that is not a pointer in v1beta1 is unset.
    for key in ("deviceClassName", "allocationMode", "count"):
        if not exactly.get(key, True):
            del exactly[key]
    if exactly:
        converted["exactly"] = exactly
    return converted


def _request_to_beta(request: JsonView) -> JsonObject:
    converted: JsonObject = {key: value for key, value in request.items() if key != "exactly"}
    converted["deviceClassName"] = ""
    exactly = request.get("exactly")
    if isinstance(exactly, dict):
        converted |= exactly
    return converted


_BASIC = (
    "attributes",
    "capacity",
    "consumesCounters",
    "nodeName",
    "nodeSelector",
    "allNodes",
    "taints",
    "bindsToNode",
    "bindingConditions",
    "bindingFailureConditions",
    "allowMultipleAllocations",
    "nodeAllocatableResourceMappings",
    "nodeAllocatableResources",
)


def _device_from_beta(device: JsonView) -> JsonObject:
    converted = {key: value for key, value in device.items() if key != "basic"}
    basic = device.get("basic")
    if isinstance(basic, dict):
        converted |= basic
    for key in ("attributes", "capacity"):
        if converted.get(key) == {}:
            del converted[key]
    return converted


def _device_to_beta(device: JsonView) -> JsonObject:
    converted = {key: value for key, value in device.items() if key not in _BASIC}
    converted["basic"] = {
        key: device[key]
        for key in _BASIC
        if key in device and not (key in ("attributes", "capacity") and device[key] == {})
    }
    return converted


def _slice_from_beta(tree: JsonView) -> JsonObject:
    converted = _changed(tree, ("spec", "devices"), _each(_device_from_beta))
    spec = meta.spec(converted)
    if spec.get("nodeName") == "" or spec.get("allNodes") is False:
        converted["spec"] = {
            key: value
            for key, value in spec.items()
            if not (key == "nodeName" and value == "") and not (key == "allNodes" and not value)
        }
    return converted


def _slice_to_beta(tree: JsonView) -> JsonObject:
    return _changed(tree, ("spec", "devices"), _each(_device_to_beta))


_CLAIM_REQUESTS = ("spec", "devices", "requests")
_TEMPLATE_REQUESTS = ("spec", "spec", "devices", "requests")


def _claim_from_beta(tree: JsonView) -> JsonObject:
    return _changed(tree, _CLAIM_REQUESTS, _each(_request_from_beta))


def _claim_to_beta(tree: JsonView) -> JsonObject:
    return _changed(tree, _CLAIM_REQUESTS, _each(_request_to_beta))


def _template_from_beta(tree: JsonView) -> JsonObject:
    return _changed(tree, _TEMPLATE_REQUESTS, _each(_request_from_beta))


def _template_to_beta(tree: JsonView) -> JsonObject:
    return _changed(tree, _TEMPLATE_REQUESTS, _each(_request_to_beta))


_FROM_BETA: dict[str, Step] = {
    "DeviceClass": _identity,
    "ResourceClaim": _claim_from_beta,
    "ResourceClaimTemplate": _template_from_beta,
    "ResourceSlice": _slice_from_beta,
}
_TO_BETA: dict[str, Step] = {
    "DeviceClass": _identity,
    "ResourceClaim": _claim_to_beta,
    "ResourceClaimTemplate": _template_to_beta,
    "ResourceSlice": _slice_to_beta,
}


# ---- v1alpha3 of recordings


def _from_alpha(tree: JsonView, kind: Kind) -> JsonObject:
    """Converts v1alpha3, whose amounts are plain, to v1beta1. Raises BadRequest for classic DRA."""
    spec = meta.spec(tree)
    inner = meta.spec(spec) if kind.kind == "ResourceClaimTemplate" else spec
    if "controller" in inner or json_tree.text(tree, "status", "allocation", "controller"):
        raise BadRequest(
            f"{kind.kind} in resource.k8s.io/v1alpha3 names a controller: "
            "allocation by a control plane controller was removed in 1.32 and is not read"
        )
    return (
        _changed(tree, ("spec", "devices"), _each(_device_from_alpha))
        if (kind.kind == "ResourceSlice")
        else dict(tree)
    )


def _device_from_alpha(device: JsonView) -> JsonObject:
    def amounts(capacity: Any) -> Any:
        if not isinstance(capacity, dict):
            return capacity
        return {
            name: amount if isinstance(amount, dict) else {"value": amount}
            for name, amount in capacity.items()
        }

    return _changed(device, ("basic", "capacity"), amounts)


# ---- Events

EVENT_NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "count": "deprecatedCount",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "reportingComponent": "reportingController",
}
"""The field names of core Events that differ in events.k8s.io."""

_CORE_NAMES = {theirs: ours for ours, theirs in EVENT_NAMES.items()}


def _event_to_alias(tree: JsonView) -> JsonObject:
    converted = {EVENT_NAMES.get(key, key): value for key, value in tree.items()}
    for key in ("reportingController", "reportingInstance"):
        if converted.get(key) == "":
            del converted[key]
    return converted


def _event_from_alias(tree: JsonView) -> JsonObject:
    converted = {_CORE_NAMES.get(key, key): value for key, value in tree.items()}
    converted.setdefault("reportingComponent", "")
    converted.setdefault("reportingInstance", "")
    return converted
