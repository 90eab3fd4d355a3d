"""Validation of ResourceClaims' status. Parity: objects.md 5.4 and 5.5, controllers.md 6.2."""

import ipaddress
from itertools import chain
from operator import itemgetter
from typing import Any

from app.domain.objects.field_errors import (
    FieldError,
    duplicate,
    forbidden,
    immutable,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
)
from app.domain.objects.schema.equality import is_unchanged
from app.domain.objects.validation import conditions, shared
from app.domain.objects.validation.context import Context
from app.domain.objects.validation.go_form import allocation_in_go
from app.domain.objects.validation.node_selectors import node_selector
from app.domain.values import json_tree, names, well_known
from app.domain.values.fields import dra, entries, meta
from app.domain.values.json_tree import JsonObject, JsonView

RESULTS_MAX = 32
CONFIGS_MAX = 64
CONSUMERS_MAX = 256
IPS_MAX = 16
SOURCES = ("FromClaim", "FromClass")

ADMIN_TEXT = (
    "admin access to devices requires the `resource.kubernetes.io/admin-access: true` label on "
    "the containing namespace"
)


def update(
    tree: JsonView, old: JsonView, context: Context, *, known: frozenset[str]
) -> list[FieldError]:
    """Checks a changed status; `known` are the valid references of results to requests."""
    status, stored = meta.status(tree), meta.status(old)
    allocation, before = status.get("allocation"), stored.get("allocation")
    errors: list[FieldError] = []
    if allocation is not None and before is not None:
        if not is_unchanged(allocation, before):
            errors.append(immutable("status.allocation", allocation_in_go(allocation)))
    elif allocation is not None:
        errors += _allocation(allocation, known)
        errors += _admin_access(allocation, stored, context)
    terminating = json_tree.get(tree, "metadata", "deletionTimestamp") is not None
    errors += _consumers(status, stored, terminating=terminating)
    return errors + _devices(status)


def _allocation(allocation: JsonView, known: frozenset[str]) -> list[FieldError]:
    path = "status.allocation"
    errors = shared.bounded(
        json_tree.get(allocation, "devices", "results"),
        f"{path}.devices.results",
        RESULTS_MAX,
        lambda item, at: _result(item, at, known),
    )
    errors += shared.bounded(
        json_tree.get(allocation, "devices", "config"),
        f"{path}.devices.config",
        CONFIGS_MAX,
        lambda item, at: _config(item, at, known),
    )
    selector = allocation.get("nodeSelector")
    if selector is not None:
        errors += node_selector(selector, f"{path}.nodeSelector")
    return errors


def _result(item: Any, path: str, known: frozenset[str]) -> list[FieldError]:
    tree = item if isinstance(item, dict) else {}
    errors = shared.request_reference(tree.get("request"), f"{path}.request", known)
    errors += shared.driver_name(tree.get("driver"), f"{path}.driver")
    errors += shared.pool_name(tree.get("pool"), f"{path}.pool")
    errors += shared.formatted(tree.get("device"), f"{path}.device", names.label)
    if tree.get("shareID") is not None:
        errors += shared.formatted(tree["shareID"], f"{path}.shareID", shared.uid)
    return errors


def _config(item: Any, path: str, known: frozenset[str]) -> list[FieldError]:
    tree = item if isinstance(item, dict) else {}
    source = json_tree.text(tree, "source")
    errors: list[FieldError] = []
    if not source:
        errors.append(required(f"{path}.source"))
    elif source not in SOURCES:
        errors.append(not_supported(f"{path}.source", source, SOURCES))
    errors += shared.request_names(tree.get("requests"), f"{path}.requests", known)
    return errors + shared.opaque(tree, path)


def _admin_access(allocation: JsonView, stored: JsonView, context: Context) -> list[FieldError]:
    if context.namespace_labels.get(well_known.ADMIN_ACCESS) == "true":
        return []
    if any(
        json_tree.flag(result, "adminAccess")
        for result in json_tree.objects(stored, "allocation", "devices", "results")
    ):
        return []
    for index, result in enumerate(dra.result_trees_of(allocation)):
        if json_tree.flag(result, "adminAccess"):
            path = f"status.allocation.devices.results[{index}].adminAccess"
            return [forbidden(path, ADMIN_TEXT)]
    return []


def _consumers(status: JsonView, stored: JsonView, *, terminating: bool) -> list[FieldError]:
    path = "status.reservedFor"
    consumers = json_tree.objects(status, "reservedFor")
    errors: list[FieldError] = []
    if len(consumers) > CONSUMERS_MAX:
        errors.append(too_many(path, len(consumers), CONSUMERS_MAX))
    elif not _are_whole(consumers):
        seen: set[str] = set()
        for index, consumer in enumerate(consumers):
            place = f"{path}[{index}]"
            for name in _OF_CONSUMERS:
                if not json_tree.text(consumer, name):
                    errors.append(required(f"{place}.{name}"))
            uid = entries.uid(consumer)
            if uid in seen:
                errors.append(duplicate(place, uid))
            seen.add(uid)
    if not consumers:
        return errors
    if status.get("allocation") is None:
        errors.append(forbidden(path, "may not be specified when `allocated` is not set"))
    elif terminating:
        before = {entries.uid(item) for item in json_tree.objects(stored, "reservedFor")}
        if any(entries.uid(item) not in before for item in consumers):
            errors.append(
                forbidden(
                    path,
                    "new entries may not be added while `deallocationRequested` or "
                    "`deletionTimestamp` are set",
                )
            )
    return errors


_OF_CONSUMERS = ("resource", "name", "uid")
_read_consumer = itemgetter(*_OF_CONSUMERS)


def _are_whole(consumers: list[JsonObject]) -> bool:
    """Whether each consumer has all texts and a uid of its own: true of nearly all lists.

    Each write of a shared claim has up to 256 of them.
    """
    try:
        rows = [_read_consumer(consumer) for consumer in consumers]
        uids = {uid for _, _, uid in rows}
    except (KeyError, TypeError):
        return False
    texts = list(chain.from_iterable(rows))
    return len(uids) == len(rows) and all(texts) and set(map(type, texts)) == {str}


def _device_id(item: JsonView) -> tuple[str, str, str, str]:
    return (
        json_tree.text(item, "driver"),
        json_tree.text(item, "pool"),
        json_tree.text(item, "device"),
        json_tree.text(item, "shareID"),
    )


def _devices(status: JsonView) -> list[FieldError]:
    allocated = {
        _device_id(result)
        for result in json_tree.objects(status, "allocation", "devices", "results")
    }
    errors: list[FieldError] = []
    seen: set[tuple[str, str, str, str]] = set()
    for index, device in enumerate(json_tree.objects(status, "devices")):
        path = f"status.devices[{index}]"
        device_id = _device_id(device)
        names = dict(zip(("Driver", "Pool", "Device", "ShareID"), device_id, strict=True))
        if device_id in seen:
            errors.append(duplicate(path, names))
        seen.add(device_id)
        if device_id not in allocated:
            errors.append(invalid(path, names, "must be an allocated device in the claim"))
        errors += _device_status(device, path)
    return errors


def _device_status(device: JsonView, path: str) -> list[FieldError]:
    errors = conditions.check(device.get("conditions"), f"{path}.conditions")
    if device.get("data") is not None:
        errors += shared.raw_object(device["data"], f"{path}.data")
    network = json_tree.mapping(device, "networkData")
    for name, longest in (("interfaceName", 256), ("hardwareAddress", 128)):
        if len(json_tree.text(network, name).encode()) > longest:
            errors.append(too_long(f"{path}.networkData.{name}", longest))
    return errors + shared.bounded(
        network.get("ips"), f"{path}.networkData.ips", IPS_MAX, _address, key=lambda text: text
    )


def _address(text: Any, path: str) -> list[FieldError]:
    try:
        if "/" not in str(text):
            raise ValueError
        ipaddress.ip_interface(str(text))
    except ValueError:
        detail = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
        return [invalid(path, text, detail)]
    return []
