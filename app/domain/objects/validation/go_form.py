"""Whole specs as the real server prints them in errors: with Go field names and all fields.

Parity: objects.md 5.1, recorded with 1.36.
"""

from collections.abc import Mapping
from typing import Any

from app.domain.values import json_tree
from app.domain.values.fields import entries
from app.domain.values.json_tree import JsonObject, JsonView

_REQUEST = (
    "DeviceClassName",
    "Selectors",
    "AllocationMode",
    "Count",
    "AdminAccess",
    "Tolerations",
    "Capacity",
)
_RESULT_TEXTS = ("Request", "Driver", "Pool", "Device")
_TOLERATION = ("key", "operator", "value", "effect")
_ZERO: Mapping[str, Any] = {
    "Count": 0,
    **dict.fromkeys(("AllocationMode", "DeviceClassName", "Name", *_RESULT_TEXTS), ""),
}
_RESULT = (
    *_RESULT_TEXTS,
    "AdminAccess",
    "Tolerations",
    "BindingConditions",
    "BindingFailureConditions",
    "ShareID",
    "ConsumedCapacity",
)
_ACRONYMS = {"cel": "CEL"}


def claim_spec_in_go(spec: JsonView) -> JsonObject:
    """A ResourceClaimSpec with Go field names."""
    devices = json_tree.mapping(spec, "devices")
    requests = devices.get("requests")
    constraints = devices.get("constraints")
    return {
        "Devices": {
            "Requests": _each(requests, _request),
            "Constraints": _each(
                constraints,
                lambda item: {
                    "Requests": item.get("requests"),
                    "MatchAttribute": item.get("matchAttribute"),
                    "DistinctAttribute": item.get("distinctAttribute"),
                },
            ),
            "Config": _each(
                devices.get("config"),
                lambda item: {"Requests": item.get("requests"), "Opaque": _opaque(item)},
            ),
        }
    }


def allocation_in_go(allocation: JsonView | None) -> Any:
    """An AllocationResult with Go field names."""
    if allocation is None:
        return None
    devices = json_tree.mapping(allocation, "devices")
    return {
        "Devices": {
            "Results": _each(devices.get("results"), _result) or [],
            "Config": _each(
                devices.get("config"),
                lambda item: {
                    "Source": json_tree.text(item, "source"),
                    "Requests": item.get("requests"),
                    "Opaque": _opaque(item),
                },
            ),
        },
        "NodeSelector": _node_selector(allocation.get("nodeSelector")),
        "AllocationTimestamp": allocation.get("allocationTimestamp"),
    }


def _result(item: JsonView) -> JsonObject:
    return _fields(item, _RESULT)


def _node_selector(selector: Any) -> Any:
    if not isinstance(selector, Mapping):
        return None
    terms = _each(
        selector.get("nodeSelectorTerms"),
        lambda term: {
            "MatchExpressions": _each(term.get("matchExpressions"), _requirement),
            "MatchFields": _each(term.get("matchFields"), _requirement),
        },
    )
    return {"NodeSelectorTerms": terms}


def attribute_in_go(value: JsonView) -> JsonObject:
    """A DeviceAttribute with Go field names."""
    names = ("int", "bool", "string", "version")
    scalars = {f"{_go_name(name)}Value": value.get(name) for name in names}
    return scalars | {f"{_go_name(name)}Values": value.get(f"{name}s") for name in names}


def node_selector_terms_in_go(terms: Any) -> Any:
    """The terms of a NodeSelector with Go field names."""
    return _node_selector({"nodeSelectorTerms": terms})["NodeSelectorTerms"]


def _requirement(item: JsonView) -> JsonObject:
    return {
        "Key": json_tree.text(item, "key"),
        "Operator": json_tree.text(item, "operator"),
        "Values": item.get("values"),
    }


def _request(item: JsonView) -> JsonObject:
    exactly = item.get("exactly")
    alternatives = item.get("firstAvailable")
    return {
        "Name": entries.name(item),
        "Exactly": None if exactly is None else _fields(exactly, _REQUEST),
        "FirstAvailable": _each(
            alternatives,
            lambda sub: _fields(
                sub, ("Name", *(name for name in _REQUEST if name != "AdminAccess"))
            ),
        ),
    }


def _fields(tree: JsonView, names: tuple[str, ...]) -> JsonObject:
    fields: JsonObject = {}
    for name in names:
        value = tree.get(name[0].lower() + name[1:])
        if value is None:
            fields[name] = _ZERO.get(name)
        elif name == "Tolerations":
            fields[name] = _each(value, _toleration)
        elif name == "Capacity":
            fields[name] = {"Requests": value.get("requests")}
        elif name == "ConsumedCapacity":
            fields[name] = value
        else:
            fields[name] = _named(value)
    return fields


def _toleration(item: JsonView) -> JsonObject:
    return {
        **{_go_name(key): json_tree.text(item, key) for key in _TOLERATION},
        "TolerationSeconds": item.get("tolerationSeconds"),
    }


def _opaque(item: JsonView) -> Any:
    """An opaque configuration with Go field names; its parameters are unchanged."""
    opaque = item.get("opaque")
    if not isinstance(opaque, Mapping):
        return None
    return {"Driver": json_tree.text(opaque, "driver"), "Parameters": opaque.get("parameters")}


def _each(items: Any, make: Any) -> list[Any] | None:
    if not isinstance(items, list):
        return None
    return [make(item) for item in items if isinstance(item, Mapping)]


def _named(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {_go_name(key): _named(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_named(item) for item in value]
    return value


def _go_name(key: str) -> str:
    return _ACRONYMS.get(key, key[:1].upper() + key[1:])
