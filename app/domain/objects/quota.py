"""ResourceQuota: what an object uses, what a namespace uses, and whether one more fits.

Devices are counted by class (`<class>.deviceclass.resource.k8s.io/devices`). A prioritized list
counts for every class among its alternatives with the largest number asked of that class, so that
alternatives cannot be used to get around a quota; mode `All` counts as much as a claim can get.
Parity: KEP-4816 (resource quota). Objects are counted by `count/<plural>.<group>` and the older
names of core kinds. Amounts of cpu, memory and storage, and quotas with scopes, are not enforced.

Upstream trusts numbers in the quota's status; here they are counted from the objects at the moment
of asking, so two creates at once cannot both take the last device.
"""

from collections.abc import Iterable

from app.domain.errors import Forbidden
from app.domain.log import ObjectKey
from app.domain.objects import rejections
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.registry import CORE, RESOURCE, Kind
from app.domain.values import json_tree, quantity
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.quantity import QuantityError

QUOTAS = (CORE, "resourcequotas")
CLAIMS = (RESOURCE, "resourceclaims")

DEVICES_SUFFIX = ".deviceclass.resource.k8s.io/devices"

ALL_DEVICES = 32
"""What mode All may get: the most results that an allocation can have."""

_COUNTED_BY_NAME = frozenset(
    {
        "configmaps",
        "persistentvolumeclaims",
        "pods",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "services",
    }
)


def check_create(reader: ObjectsReader, kind: Kind, key: ObjectKey, tree: JsonObject) -> None:
    """Raise Forbidden when a quota of the namespace has no room for the new object."""
    asked: dict[str, int] | None = None
    for place in reader.keys(*QUOTAS, key.namespace):
        found = reader.get(place)
        if found is None or is_scoped(found):
            continue
        if asked is None:
            asked = usage(kind.group, kind.plural, tree)
        limits = hard(found)
        relevant = {name: amount for name, amount in asked.items() if amount and name in limits}
        if not relevant:
            continue
        present = used(reader, key.namespace, relevant)
        over = {n for n, amount in relevant.items() if present[n] + amount > limits[n]}
        if over:
            raise _exceeded(kind, key.name, place.name, over, relevant, present, limits)


def usage(group: str, resource: str, tree: JsonView) -> dict[str, int]:
    """What one object counts for, by the names that quotas use."""
    counted = f"{resource}.{group}" if group else resource
    found = {f"count/{counted}": 1}
    if not group and resource in _COUNTED_BY_NAME:
        is_over = json_tree.text(tree, "status", "phase") in ("Succeeded", "Failed")
        found[resource] = 0 if resource == "pods" and is_over else 1
    if (group, resource) == CLAIMS:
        found |= _devices(tree)
    return found


def used(reader: ObjectsReader, namespace: str, names: Iterable[str]) -> dict[str, int]:
    """What the namespace uses of each name; names that are not counted here are 0."""
    total = dict.fromkeys(names, 0)
    for group, resource in sorted({place for name in total if (place := place_of(name))}):
        keys = reader.keys(group, resource, namespace)
        counted = f"count/{resource}.{group}" if group else f"count/{resource}"
        wanted = {name for name in total if place_of(name) == (group, resource)}
        if counted in wanted:
            # Every object counts one, whatever it is: no need to look at it.
            keys = list(keys)
            total[counted] = len(keys)
            wanted.discard(counted)
        if not wanted:
            continue
        for key in keys:
            tree = reader.get(key)
            if tree is None:
                continue
            for name, amount in _remembered(group, resource, tree).items():
                if name in wanted:
                    total[name] += amount
    return total


def hard(quota: JsonView) -> dict[str, int]:
    """The limits of a quota that are counted here."""
    found: dict[str, int] = {}
    for name, text in json_tree.mapping(quota, "spec", "hard").items():
        if place_of(name) is None:
            continue
        try:
            found[name] = quantity.round_up(quantity.from_json(text))
        except QuantityError:
            continue
    return found


def place_of(name: str) -> tuple[str, str] | None:
    """Group and plural of the objects that count for a name; None for what is not counted."""
    if name.endswith(DEVICES_SUFFIX):
        return CLAIMS
    if name.startswith("count/"):
        resource, _, group = name.removeprefix("count/").partition(".")
        return group, resource
    return (CORE, name) if name in _COUNTED_BY_NAME else None


def is_scoped(quota: JsonView) -> bool:
    """True for a quota that counts only some pods."""
    return bool(
        json_tree.get(quota, "spec", "scopes") or json_tree.get(quota, "spec", "scopeSelector")
    )


_REMEMBERED_MAX = 16_384
_used_before: dict[int, tuple[JsonView, dict[str, int]]] = {}


def _remembered(group: str, resource: str, tree: JsonView) -> dict[str, int]:
    """The usage of a stored object; stored trees never change, so each is counted once."""
    known = _used_before.get(id(tree))
    if known is not None and known[0] is tree:
        return known[1]
    if len(_used_before) >= _REMEMBERED_MAX:
        _used_before.clear()
    found = usage(group, resource, tree)
    _used_before[id(tree)] = (tree, found)
    return found


def _devices(claim: JsonView) -> dict[str, int]:
    total: dict[str, int] = {}
    for request in json_tree.objects(claim, "spec", "devices", "requests"):
        worst: dict[str, int] = {}
        alternatives = json_tree.objects(request, "firstAvailable")
        exactly = request.get("exactly")
        for asked in alternatives or ([exactly] if isinstance(exactly, dict) else []):
            name = f"{json_tree.text(asked, 'deviceClassName')}{DEVICES_SUFFIX}"
            worst[name] = max(worst.get(name, 0), _number(asked))
        for name, amount in worst.items():
            total[name] = total.get(name, 0) + amount
    return total


def _number(asked: JsonView) -> int:
    match asked.get("allocationMode"):
        case "All":
            return ALL_DEVICES
        case "ExactCount":
            return json_tree.integer(asked, "count") or 0
        case _:
            return 0


def _exceeded(
    kind: Kind,
    name: str,
    quota: str,
    over: set[str],
    asked: dict[str, int],
    present: dict[str, int],
    limits: dict[str, int],
) -> Forbidden:
    def listed(amounts: dict[str, int]) -> str:
        return ",".join(f"{found}={amounts[found]}" for found in sorted(over))

    return rejections.forbidden(
        kind,
        name,
        f"exceeded quota: {quota}, requested: {listed(asked)}, used: {listed(present)}, "
        f"limited: {listed(limits)}",
    )
