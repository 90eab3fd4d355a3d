"""Worlds with one difference from a history's, in which a refused pod may be placed."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from app.analysis.views import LiveViews
from app.domain.allocation import AllocatedState
from app.domain.controllers.plan import DeviceViews
from app.domain.devices.inventory import Inventory
from app.domain.log import ObjectKey
from app.domain.objects.reader import ObjectsReader
from app.domain.values import api_resources
from app.domain.values.fields import core, dra, meta
from app.domain.values.identifiers import PoolId
from app.domain.values.json_tree import JsonObject, JsonView

NO_PREEMPTION = "no-preemption-for-devices"
WITHOUT_DOMAIN = "attribute-without-its-domain"
LOOKED_FOR = (NO_PREEMPTION, WITHOUT_DOMAIN)


@dataclass(frozen=True, slots=True, kw_only=True)
class _OtherViews:
    objects: ObjectsReader
    inventory: Inventory
    allocated: AllocatedState


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherWorld:
    """Another world: the incident that shows if the pod is placed there, and the text for it.

    With `must_last`, only a pod that waits for long shows it: for a moment it is usual. `held` has
    the pools in which objects hold devices.
    """

    incident: str
    text: str
    objects: tuple[ObjectKey, ...]
    views: DeviceViews
    must_last: bool = False
    held: Mapping[ObjectKey, frozenset[PoolId]] = field(default_factory=dict)

    def concerning(self, allocations: Iterable[JsonObject]) -> "OtherWorld":
        """The world with those objects alone that hold devices where a placement takes some."""
        drawn = {
            (result.driver, result.pool)
            for allocation in allocations
            for result in dra.results_of(allocation)
        }
        kept = tuple(key for key in self.objects if self.held.get(key, drawn) & drawn)
        return replace(self, objects=kept) if kept else self


def worlds(views: LiveViews, pod: JsonObject) -> list[OtherWorld]:
    """The worlds to try for a pod."""
    return [*_freed(views, pod), *_aligned(views, pod)]


def _freed(views: LiveViews, pod: JsonObject) -> Iterator[OtherWorld]:
    """The world without the claims held only by pods of lower priority."""
    own = core.priority(pod)
    if own is None:
        return
    held: list[tuple[ObjectKey, JsonObject]] = []
    for event in views.objects.events(*api_resources.RESOURCE_CLAIMS):
        consumers = dra.consumers(event.object)
        if not dra.results(event.object) or not consumers:
            continue
        keys = [
            ObjectKey(*api_resources.PODS, event.key.namespace, each.name) for each in consumers
        ]
        trees = [views.objects.get(key) for key in keys]
        if all(tree is not None and (core.priority(tree) or 0) < own for tree in trees):
            held.append((event.key, event.object))
    if not held:
        return
    allocated = views.allocated.copy()
    for _, tree in held:
        allocated.remove_claim(tree)
    yield OtherWorld(
        incident=NO_PREEMPTION,
        text=f"it has priority {own}, and fits where no pod of a lower one holds devices",
        objects=tuple(key for key, _ in held),
        held={
            key: frozenset((result.driver, result.pool) for result in dra.results(tree))
            for key, tree in held
        },
        must_last=True,
        views=_OtherViews(objects=views.objects, inventory=views.inventory, allocated=allocated),
    )


def _aligned(views: LiveViews, pod: JsonObject) -> Iterator[OtherWorld]:
    """The world where devices also have the constraints' attributes that are in another domain."""
    for name in _matched(views, pod):
        domain, _, short = name.partition("/")
        inventory: Inventory | None = None
        changed: list[ObjectKey] = []
        others: set[str] = set()
        for event in views.objects.events(*api_resources.RESOURCE_SLICES):
            tree = _renamed(event.object, domain, short, others)
            if tree is not None:
                inventory = inventory or views.inventory.copy()
                inventory.put_slice(tree)
                changed.append(event.key)
        if inventory is not None:
            text = f"its claim wants a common {name}; there are devices with {', '.join(others)}"
            yield OtherWorld(
                incident=WITHOUT_DOMAIN,
                text=text,
                objects=tuple(changed),
                views=_OtherViews(
                    objects=views.objects, inventory=inventory, allocated=views.allocated
                ),
            )


def _matched(views: LiveViews, pod: JsonObject) -> list[str]:
    """The attributes that devices of the pod's claims must have in common."""
    uid = meta.uid(pod)
    names: dict[str, None] = {}
    namespace = meta.namespace(pod)
    own = {entry.get("resourceClaimName") for entry in core.resource_claims(pod)}
    for event in views.objects.events(*api_resources.RESOURCE_CLAIMS, namespace):
        owner = meta.controller(event.object)
        if event.key.name in own or (owner is not None and owner.uid == uid):
            for each in dra.constraints(event.object):
                if "/" in each.match_attribute:
                    names[each.match_attribute] = None
    return list(names)


def _renamed(tree: JsonObject, domain: str, short: str, others: set[str]) -> JsonObject | None:
    """The slice with the attribute added under its domain; None if no device needs it."""
    driver = dra.driver(tree)
    devices: list[Any] = []
    is_changed = False
    for device in dra.devices(tree):
        attributes = device.get("attributes") or {}
        name = _elsewhere(attributes, driver, domain, short)
        if name:
            others.add(name if "/" in name else f"{driver}/{name}")
            device = {
                **device,
                "attributes": {**attributes, f"{domain}/{short}": attributes[name]},
            }
            is_changed = True
        devices.append(device)
    return {**tree, "spec": {**tree["spec"], "devices": devices}} if is_changed else None


def _elsewhere(attributes: JsonView, driver: str, domain: str, short: str) -> str:
    """The name of the attribute in another domain; empty if the device has it in this one."""
    if f"{domain}/{short}" in attributes or (driver == domain and short in attributes):
        return ""
    return next((name for name in attributes if name.rpartition("/")[2] == short), "")
