"""Worlds with one difference from a history's, in which a refused pod may be placed."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from app.analysis.views import LiveViews
from app.domain.allocation import AllocatedState
from app.domain.controllers.plan import DeviceViews
from app.domain.devices.inventory import Inventory
from app.domain.log import Event, EventType, ObjectKey
from app.domain.objects.reader import ObjectsReader
from app.domain.values import api_resources
from app.domain.values.fields import core, dra, meta
from app.domain.values.identifiers import NO_UID, PoolId, Uid
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


class ConcernedClaims:
    """The claims on which the worlds to try depend: no pod is asked about all claims.

    `lowest` is the lowest priority that a pod ever had; None without any.
    """

    def __init__(self) -> None:
        self.lowest: int | None = None
        self._held: set[ObjectKey] = set()
        self._matched: dict[ObjectKey, tuple[Uid, Sequence[str]]] = {}
        self._owned: dict[Uid, set[ObjectKey]] = defaultdict(set)

    def fold(self, event: Event) -> None:
        """Follows what claims hold and want, and the priorities of pods."""
        if not event.is_about_object:
            return
        place = event.key[:2]
        if place == api_resources.PODS:
            priority = core.priority(event.object) or 0
            self.lowest = priority if self.lowest is None else min(self.lowest, priority)
        elif place == api_resources.RESOURCE_CLAIMS:
            self._fold_claim(event)

    def held(self) -> Sequence[ObjectKey]:
        """The claims that hold devices for somebody, in the order of their keys."""
        return sorted(self._held)

    def matched(self, pod: JsonObject) -> Iterable[str]:
        """The attributes that devices of a pod's claims must have in common."""
        namespace, entries = meta.namespace(pod), core.resource_claims(pod)
        named = (
            ObjectKey(*api_resources.RESOURCE_CLAIMS, namespace, entry["resourceClaimName"])
            for entry in entries
            if isinstance(entry.get("resourceClaimName"), str)
        )
        owned = (each for each in self._owned.get(meta.uid(pod), ()) if each[2] == namespace)
        own = {each for each in (*named, *owned) if each in self._matched}
        return dict.fromkeys(name for key in sorted(own) for name in self._matched[key][1])

    def _fold_claim(self, event: Event) -> None:
        key, tree = event.key, event.object
        owner, _ = self._matched.pop(key, (NO_UID, ()))
        if owned := self._owned.get(owner):
            owned.discard(key)
            if not owned:
                del self._owned[owner]
        self._held.discard(key)
        if event.type is EventType.OBJECT_DELETED:
            return
        if dra.results(tree) and dra.consumers(tree):
            self._held.add(key)
        names = [each.match_attribute for each in dra.constraints(tree)]
        if names := [name for name in names if "/" in name]:
            owner = meta.controller_uid(tree)
            self._matched[key] = owner, names
            if meta.controller(tree) is not None:
                self._owned[owner].add(key)


def worlds(views: LiveViews, claims: ConcernedClaims, pod: JsonObject) -> list[OtherWorld]:
    """The worlds to try for a pod; `claims` are those of the views."""
    return [*_freed(views, claims, pod), *_aligned(views, claims, pod)]


def _freed(views: LiveViews, claims: ConcernedClaims, pod: JsonObject) -> Iterator[OtherWorld]:
    """The world without the claims held only by pods of lower priority."""
    own = core.priority(pod)
    if own is None or claims.lowest is None or own <= claims.lowest:
        return
    held: list[tuple[ObjectKey, JsonObject]] = []
    for event in filter(None, map(views.objects.event, claims.held())):
        consumers = dra.consumers(event.object)
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


def _aligned(views: LiveViews, claims: ConcernedClaims, pod: JsonObject) -> Iterator[OtherWorld]:
    """The world where devices also have the constraints' attributes that are in another domain."""
    for name in claims.matched(pod):
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
