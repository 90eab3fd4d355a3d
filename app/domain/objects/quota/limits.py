"""Checks of ResourceQuotas: whether a new object fits, and how much a namespace uses.

Upstream uses the numbers in the quota's status. Here the usage is the sum over the objects at the
time of the check, so two simultaneous creates cannot both take the last device. A reader that keeps
such sums provides them (`Tallies`), also for the pods within the scopes of a quota; for other
readers the sums are computed for each check. Messages are upstream's.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol, runtime_checkable

from app.domain.errors import Forbidden
from app.domain.log import ObjectKey
from app.domain.objects import history_kinds, rejections
from app.domain.objects.kinds import extended_resources, pod_resources
from app.domain.objects.kinds.extended_resources import IMPLICIT
from app.domain.objects.quota import scopes as quota_scopes
from app.domain.objects.quota import usage
from app.domain.objects.quota.usage import DEVICES_SUFFIX, REQUESTS, RunningUsage, Scopes
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.registry import Kind
from app.domain.values import api_groups, api_resources, json_tree, quantity
from app.domain.values.fields import dra
from app.domain.values.identifiers import GroupResource
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.quantity import Quantity, QuantityError


@runtime_checkable
class Tallies(Protocol):
    """A reader that keeps the sums of the namespaces that were requested before."""

    def tally(self, namespace: str, scopes: Scopes | None = None) -> RunningUsage:
        """Returns the sums of the namespace; they are shared and must not be changed.

        With `scopes`, the tally also keeps the sums of the pods within the scopes.
        """
        ...


def check_create(reader: ObjectsReader, kind: Kind, key: ObjectKey, tree: JsonObject) -> None:
    """Raises Forbidden if a quota of the namespace has no room for the new object."""
    amounts: dict[str, Quantity] | None = None
    for place in reader.keys(*api_resources.RESOURCE_QUOTAS, key.namespace):
        quota = reader.get(place)
        if quota is None:
            continue
        is_pod = (kind.group, kind.plural) == api_resources.PODS
        scopes = quota_scopes.of(quota)
        if scopes and not (is_pod and quota_scopes.match(scopes, tree)):
            continue
        limits = hard(quota)
        if is_pod and (missing := usage.missing_compute(tree, limits)):
            text = f"failed quota: {place.name}: must specify {missing}"
            raise rejections.forbidden(kind, key.name, text)
        if amounts is None:
            amounts = amounts_of(reader, (kind.group, kind.plural), tree)
        relevant = {
            name: amounts[name] for name in limits if name in amounts and amounts[name].nanos
        }
        if not relevant:
            continue
        present = used(reader, place, quota, relevant)
        over = sorted(
            name
            for name, amount in relevant.items()
            if present[name].nanos + amount.nanos > limits[name].nanos
        )
        if over:
            raise _exceeded(kind, key.name, place.name, over, (relevant, present, limits))


def used(
    reader: ObjectsReader, place: ObjectKey, quota: JsonView, names: Iterable[str]
) -> dict[str, Quantity]:
    """Returns the usage of each name in the namespace of a quota, within the quota's scopes."""
    scopes = quota_scopes.of(quota)
    if scopes:
        alone = tally_of(reader, place.namespace, scopes).within(scopes)
        assert alone is not None, "asked for with these scopes"
        return {name: alone.amount(name) for name in names}
    tally = tally_of(reader, place.namespace)
    aliases = _aliases(reader, names)
    return {name: tally.amount(name, aliases.get(name, ())) for name in names}


def tally_of(reader: ObjectsReader, namespace: str, scopes: Scopes | None = None) -> RunningUsage:
    """Returns the sums of a namespace, kept by the reader or computed now.

    With `scopes`, the tally also has the sums of the pods within the scopes.
    """
    if isinstance(reader, Tallies):
        return reader.tally(namespace, scopes)
    made = RunningUsage()
    if scopes:
        made.keep_within(scopes, ())
    for kind in history_kinds.all_kinds(reader):
        for key in reader.keys(kind.group, kind.plural, namespace):
            tree = reader.get(key)
            if tree is not None:
                made.add(key.group, key.resource, tree)
    return made


def hard(quota: JsonView) -> dict[str, Quantity]:
    """The hard limits of a quota whose names are counted here and whose quantities can be read."""
    limits: dict[str, Quantity] = {}
    for name, text in json_tree.mapping(quota, "spec", "hard").items():
        if not places_of(name):
            continue
        try:
            limits[name] = quantity.from_json(text)
        except QuantityError:
            continue
    return limits


def places_of(name: str) -> frozenset[GroupResource]:
    """Group and plural of the objects that count for a name; empty if it is not counted."""
    if name.endswith(DEVICES_SUFFIX):
        return frozenset((api_resources.RESOURCE_CLAIMS,))
    if name.startswith("count/"):
        resource, _, group = name.removeprefix("count/").partition(".")
        return frozenset(((group, resource),))
    if name in usage.COUNTED_BY_NAME:
        return frozenset(((api_groups.CORE, name),))
    if name in (usage.NODE_PORTS, usage.BALANCERS):
        return frozenset((api_resources.SERVICES,))
    if name == usage.STORAGE or usage.STORAGE_CLASS in name:
        return frozenset((api_resources.PERSISTENT_VOLUME_CLAIMS,))
    plain = name.removeprefix(REQUESTS)
    if plain != name and extended_resources.is_extended(plain):
        return frozenset((api_resources.PODS, api_resources.RESOURCE_CLAIMS))
    plain = plain.removeprefix(usage.LIMITS) if plain == name else plain
    is_huge = plain.startswith(pod_resources.HUGE_PAGES)
    return frozenset((api_resources.PODS,)) if plain in usage.COMPUTE or is_huge else frozenset()


def amounts_of(reader: ObjectsReader, place: GroupResource, tree: JsonView) -> dict[str, Quantity]:
    """The amounts that an object uses, with its devices also under names of extended resources.

    `place` is the group and plural of the object.
    """
    amounts = usage.of_object(*place, tree)
    if place != api_resources.RESOURCE_CLAIMS:
        return amounts
    alone = RunningUsage()
    alone.add(*place, tree)
    names: set[str] = set()
    for name in amounts:
        class_name = name.removeprefix(usage.ORDINARY)
        if class_name == name:
            continue
        names.add(f"{REQUESTS}{IMPLICIT}{class_name}")
        device_class = (
            reader.get(ObjectKey(*api_resources.DEVICE_CLASSES, "", class_name)) or json_tree.EMPTY
        )
        if extended := dra.extended_resource_name(device_class):
            names.add(f"{REQUESTS}{extended}")
    aliases = _aliases(reader, names)
    return amounts | {name: alone.amount(name, aliases.get(name, ())) for name in names}


def _aliases(reader: ObjectsReader, names: Iterable[str]) -> Mapping[str, list[str]]:
    """The names of claim sums that also count for each name of an extended resource."""
    aliases: dict[str, list[str]] = {}
    explicit = set()
    for name in names:
        plain = name.removeprefix(REQUESTS)
        if plain == name or not extended_resources.is_extended(plain):
            continue
        if plain.startswith(IMPLICIT):
            aliases[name] = [f"{usage.ORDINARY}{plain.removeprefix(IMPLICIT)}"]
        else:
            explicit.add(plain)
    if not explicit:
        return aliases
    for key in reader.keys(*api_resources.DEVICE_CLASSES):
        extended = dra.extended_resource_name(reader.get(key) or {})
        if extended in explicit:
            aliases.setdefault(f"{REQUESTS}{extended}", []).append(f"{usage.ORDINARY}{key.name}")
    return aliases


_Amounts = tuple[Mapping[str, Quantity], Mapping[str, Quantity], Mapping[str, Quantity]]


def _exceeded(kind: Kind, name: str, quota: str, over: list[str], amounts: _Amounts) -> Forbidden:
    """Upstream's refusal: requested, used and limited amounts of the names without room."""
    requested, present, limited = (
        ",".join(f"{resource}={listed[resource]}" for resource in over) for listed in amounts
    )
    return rejections.forbidden(
        kind,
        name,
        f"exceeded quota: {quota}, requested: {requested}, used: {present}, limited: {limited}",
    )
