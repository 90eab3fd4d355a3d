"""Unrecorded writes that can be the cause of a differing allocation.

Such writes of claims and rules may have kept devices from being had, and may have given devices
back. So an allocation is decided again as if every device but its own could not be had, and as if
what may have ended had. The search takes the first devices in its order that fit. If it does not
come to the recorded ones even then, no such writes explain them.

Example: a, b and c are free, and a claim has b. A claim that was written unseen may hold a, so that
is no difference. In a log that lacks nothing but deletions it is one: they keep nobody from a. If
all that is not recorded is one write of a claim, it is one, too, where that claim's selectors do
not match a.
"""

from collections import Counter
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.analysis.verify.allocation_index import NEEDED, RESTED_ON, AllocationIndex
from app.analysis.views import LiveViews
from app.domain.allocation import AllocatedState
from app.domain.allocation.checking.claim_requests import asks_of
from app.domain.allocation.selections import Selections
from app.domain.controllers import pods
from app.domain.devices import nodes
from app.domain.devices.inventory import Inventory
from app.domain.devices.model import Slice
from app.domain.devices.pools import PoolState, Reading
from app.domain.log import Event, EventType, ObjectKey, Revision, doubts
from app.domain.values import api_resources
from app.domain.values.fields import dra, meta
from app.domain.values.identifiers import DeviceId, PoolId
from app.domain.values.json_tree import JsonObject, JsonView

_SLICES = api_resources.RESOURCE_SLICES
_CHOICE_ALONE = frozenset(
    (api_resources.NODES, api_resources.DEVICE_TAINT_RULES, api_resources.RESOURCE_CLAIMS)
)
"""Kinds that say which devices may be had; all else of an allocation comes from the claim itself,
the classes and what publishes its devices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocatorInputs:
    """The devices and their holders on which claims are decided.

    `objects` are classes and nodes that are others than in the views; None is one that is missing.
    """

    inventory: Inventory
    allocated: AllocatedState
    objects: Mapping[ObjectKey, JsonObject | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferingAllocation:
    """An allocation that differs: on which node, of which claims, at which place among them.

    `recorded` is the allocation as it was recorded, `answers` are those that were made again,
    `without` the uids of deleted pods for which nothing may be assumed.
    """

    event: Event
    node: JsonObject
    wanted: Sequence[JsonObject]
    place: int
    recorded: JsonObject
    answers: Sequence[JsonObject]
    without: frozenset[str] = frozenset()


class UnseenWrites:
    """The writes that were not recorded, while a log is folded event by event."""

    def __init__(self, index: AllocationIndex, views: LiveViews) -> None:
        self._index = index
        self._views = views
        self._keys: set[ObjectKey] = set()
        # The slices that were written since the last gap of all slices.
        self._slices_since: set[ObjectKey] = set()

    def follow(self, event: Event) -> None:
        """Remember what is not known as it is: an allocation may depend on it."""
        if event.type is EventType.GAP_OBSERVED:
            if not event.key.resource:
                self._keys |= {ObjectKey(*kind, "", "") for kind in NEEDED}
            elif event.key[:2] in RESTED_ON:
                self._keys.add(event.key)
            if not event.key.name:
                self._slices_since.clear()
        elif self._keys and event.is_about_object:
            self._keys.discard(event.key)
            if event.key[:2] == _SLICES and not doubts.of_event(event):
                self._slices_since.add(event.key)
        elif self._keys:
            self._keys.difference_update(doubts.gaps_closed(event, self._keys))

    def may_explain(
        self,
        differing: DifferingAllocation,
        decide: Callable[[AllocatorInputs], Sequence[JsonObject]],
    ) -> bool:
        """Whether unrecorded writes can be why the recorded allocation is another one.

        `decide` gives the answers from other inputs. Where the devices are the same, writes that
        say which devices may be had explain nothing.
        """
        keys = self._keys_at(differing.event)
        devices = devices_given(differing.recorded)
        if any(devices_given(each) == devices for each in differing.answers):
            return any(key[:2] not in _CHOICE_ALONE for key in keys)
        if self._may_differ(differing, keys):
            return True
        freed = self._freed(differing, keys)
        ended = self._ended(differing, keys)
        kept, keepers = None, self._keepers(differing, keys)
        if keepers is None or keepers or freed:
            kept = self._devices_together(differing)
            if kept is None:
                return True
        elif not ended:
            return False
        holds = _Holds(self._views, self._index.node_of_pod, keepers, freed)
        return any(
            devices_given(each) == devices
            for gone in self._gone(differing, kept, holds)
            for each in decide(self._inputs(freed, ended, gone))
        )

    def may_have_changed_devices(
        self, event: Event, claim: JsonObject, allocation: JsonObject
    ) -> bool:
        """Whether unrecorded writes may have changed the classes or devices of an allocation.

        A slice that was written since a gap of all slices has the devices that it shows, whatever
        other slices there are.
        """
        kinds = api_resources.NODES, api_resources.RESOURCE_CLAIMS
        keys = {key for key in self._keys_at(event) if key[:2] not in kinds}
        pools = {result.id[:2] for result in dra.results_of(allocation)}
        slices = (each.name for pool in pools for each in self._views.inventory.slices_of(pool))
        all_slices = ObjectKey(*_SLICES, "", "")
        is_over = self._slices_since.issuperset(ObjectKey(*_SLICES, "", name) for name in slices)
        if is_over and all_slices not in self._index.unseen_at(event.revision):
            keys.discard(all_slices)
        if self._index.lost.may_lack("deviceclasses", event.revision):
            return True
        differing = DifferingAllocation(
            event=event, node={}, wanted=[claim], place=0, recorded=allocation, answers=()
        )
        return self._may_differ(differing, keys)

    def _keys_at(self, event: Event) -> set[ObjectKey]:
        """The objects and kinds that may have been written unseen before an event."""
        return (self._keys | self._index.unseen_at(event.revision)) - {event.key}

    def _may_differ(self, differing: DifferingAllocation, keys: set[ObjectKey]) -> bool:
        """Whether classes, the node or published devices of the allocation may be others.

        The other claims of the pod have to fit as well, and their devices count like its own.
        """
        revision = differing.event.revision
        own = {result.id[:2] for result in dra.results_of(differing.recorded)}
        own |= {device[:2] for device in self._devices_together(differing) or ()}
        pools = own | {
            result.id[:2] for each in differing.answers for result in dra.results_of(each)
        }
        classes = {
            request.device_class_name
            for claim in differing.wanted
            for each in dra.requests(claim)
            for request in (each.exactly, *each.first_available)
            if request is not None
        }
        for key in keys:
            kind = key[:2]
            if kind == api_resources.RESOURCE_SLICE_PATCHES:
                return True
            if kind == api_resources.DEVICE_CLASSES and key.name in ("", *classes):
                return True
            if kind == api_resources.NODES and key.name in ("", meta.name(differing.node)):
                return True
            if kind == api_resources.RESOURCE_SLICES and self._pool_of(key) in (None, *pools):
                return True
        lost = self._index.lost
        # An object that is named and not there at all is a sign of a lost line itself.
        if lost.is_lossy and any(
            self._views.objects.get(ObjectKey(*api_resources.DEVICE_CLASSES, "", name)) is None
            for name in classes
        ):
            return True
        if lost.may_lack("resourceslices") and any(
            self._has_unknown(pool, revision) for pool in own
        ):
            return True
        lacks_slices = lost.may_lack("resourceslices", revision)
        if lacks_slices and not all(self._is_known(pool, revision) for pool in pools):
            return True
        # The devices chosen instead may have been withdrawn.
        return self._index.lacks_ends and not all(
            self._is_known(pool, revision) for pool in pools - own
        )

    def _pool_of(self, key: ObjectKey) -> PoolId | None:
        """The pool of a slice; None when it is not known."""
        views = self._views
        if views.objects.get(key) is None or key in views.unreadable:
            # That of a slice cannot change.
            return self._index.pools.get(key)
        return views.inventory.slice(key.name).pool

    def _has_unknown(self, pool: PoolId, revision: Revision) -> bool:
        """Whether a pool has a slice that no line shows: devices of it are allocated later.

        A pool that is complete, or that gets another slice later, may have none.
        """
        state = self._views.inventory.pool(pool)
        if state is None:
            return self._index.lost.is_lossy
        is_lossy = self._index.lost.may_lack("resourceslices")
        if (
            not is_lossy
            or state.state is not PoolState.INCOMPLETE
            or any(first > revision for first in self._index.slices.values())
        ):
            return False
        named = {
            result.id
            for each in self._index.written
            for result in dra.results_of(each.allocation)
            if result.id[:2] == pool
        }
        return not named <= {
            device.id for each in self._views.inventory.slices_of(pool) for device in each.devices
        }

    def _is_known(self, pool: PoolId, revision: Revision) -> bool:
        """Whether later lines show that the pool has the devices that are known."""
        state = self._views.inventory.pool(pool)
        if state is None or state.state is PoolState.INCOMPLETE:
            return False
        return all(
            self._index.is_shown_after(
                ObjectKey(*api_resources.RESOURCE_SLICES, "", each.name),
                meta.uid(each.tree),
                revision,
            )
            for each in (*state.slices, *state.others)
        )

    def _keepers(
        self, differing: DifferingAllocation, keys: set[ObjectKey]
    ) -> Sequence[JsonObject] | None:
        """The claims that may have kept devices from this one; None if anything may have."""
        index = self._index
        claims = {key for key in keys if key[:2] == api_resources.RESOURCE_CLAIMS}
        if index.lost.may_lack_claims or not claims <= index.last_lost:
            return None
        is_of_rules = not self._views.profile.ignores_rules and (
            index.lacks_rules
            or index.lost.may_lack("devicetaintrules")
            or any(key[:2] == api_resources.DEVICE_TAINT_RULES for key in keys)
        )
        if is_of_rules:
            return None
        known = (self._views.objects.get(key) for key in sorted(claims))
        return [claim for claim in known if claim is not None and not dra.allocation(claim)]

    def _freed(self, differing: DifferingAllocation, keys: set[ObjectKey]) -> list[JsonObject]:
        """The claims with devices that may have given them back."""
        claims = (key for key in keys if key[:2] == api_resources.RESOURCE_CLAIMS and key.name)
        held = (self._views.objects.get(key) for key in claims)
        freed = [claim for claim in held if claim is not None and dra.allocation(claim)]
        kind = ObjectKey(*api_resources.RESOURCE_CLAIMS, "", "")
        if kind in self._keys or self._index.lost.lacks_releases:
            # Any claim may have, after a gap of all of them, or without the claim controller.
            objects = self._views.objects
            freed = [
                claim
                for key in objects.keys(*api_resources.RESOURCE_CLAIMS)
                if (claim := objects.get(key)) is not None and dra.allocation(claim)
            ]
        return [claim for claim in freed if claim is not differing.wanted[differing.place]]

    def _ended(self, differing: DifferingAllocation, keys: set[ObjectKey]) -> list[str]:
        """The rules that taint the recorded devices and may have ended or be others by then."""
        devices = [result.id for result in dra.results_of(differing.recorded)]
        revision, index = differing.event.revision, self._index
        kind = api_resources.DEVICE_TAINT_RULES
        may_end = index.lacks_ends or index.lost.may_lack("devicetaintrules", revision)
        ended = []
        for name, rule in self._views.inventory.rules().items():
            key = ObjectKey(*kind, "", name)
            is_shown = index.is_shown_after(key, meta.uid(rule.tree), revision)
            is_doubted = key in keys or ObjectKey(*kind, "", "") in keys
            may_be_another = is_doubted or (may_end and not is_shown)
            if may_be_another and any(rule.matches(device) for device in devices):
                ended.append(name)
        return ended

    def _devices_together(self, differing: DifferingAllocation) -> set[DeviceId] | None:
        """The devices of all claims that are decided together; None when some are not known."""
        kept = {result.id for result in dra.results_of(differing.recorded)}
        for claim in differing.wanted:
            if claim is differing.wanted[differing.place]:
                continue
            later = next(
                (
                    each.allocation
                    for each in self._index.written
                    if each.uid == meta.uid(claim) and each.revision > differing.event.revision
                ),
                None,
            )
            if later is None:
                return None
            kept |= {result.id for result in dra.results_of(later)}
        return kept

    def _gone(
        self, differing: DifferingAllocation, kept: set[DeviceId] | None, holds: "_Holds"
    ) -> list[set[DeviceId]]:
        """The devices that others may have at one time, except `kept` ones (None: nobody has any).

        Where that is one device of several, each alone; else all of them.
        """
        if kept is None:
            return [set()]
        inventory = self._views.inventory
        view = inventory.node_view(nodes.node_of(differing.node), Reading(partitionable=True))
        gone = {
            id_
            for each in {each.name: each for each in view.slices}.values()
            for device in dra.devices(each.tree)
            if (id_ := (*each.pool, dra.published_name(device))) not in kept
            and holds.may_have(each, device)
        }
        return [{each} for each in sorted(gone)] if holds.is_of_one(gone) else [gone]

    def _inputs(
        self, freed: Sequence[JsonView], ended: Sequence[str], gone: set[DeviceId]
    ) -> AllocatorInputs:
        """The inputs without some devices, the allocations of some claims, and some rules."""
        inventory, allocated = self._views.inventory.copy(), self._views.allocated.copy()
        for claim in freed:
            allocated.remove_claim(claim)
        for name in ended:
            inventory.remove_rule(name)
        for pool in {each[:2] for each in gone}:
            for each in inventory.slices_of(pool):
                if any(device.id in gone for device in each.devices):
                    inventory.put_slice(_without(each.tree, pool, gone))
        return AllocatorInputs(inventory=inventory, allocated=allocated)


def devices_given(allocation: JsonView) -> Counter[tuple[str, DeviceId]]:
    """The devices of each request, or alternative of one, with their number."""
    return Counter((result.request, result.id) for result in dra.results_of(allocation))


@dataclass(frozen=True, slots=True)
class _Holds:
    """The devices that other claims may hold: any if `keepers` is None.

    `freed` may have given theirs back. `node_of_pod` has the nodes on which pods end up.
    """

    views: LiveViews
    node_of_pod: Mapping[str, str]
    keepers: Sequence[JsonObject] | None
    freed: Sequence[JsonView]
    selects: Selections = field(default_factory=Selections)

    def may_have(self, resource_slice: Slice, device: JsonView) -> bool:
        """Whether another claim may hold the device, or one that draws from the same counters."""
        pool = self.views.inventory.pool(resource_slice.pool)
        patches = self.views.objects.keys(*api_resources.RESOURCE_SLICE_PATCHES)
        if self.keepers is None or pool is None or pool.counters or patches:
            return True
        place = (*resource_slice.pool, dra.published_name(device))
        if any(place == result.id for claim in self.freed for result in dra.results(claim)):
            return True
        return any(
            self._fits(claim, resource_slice.pool[0], device)
            and self._reaches(claim, resource_slice.name)
            for claim in self.keepers
        )

    def is_of_one(self, devices: Collection[DeviceId]) -> bool:
        """Whether others have no more than one of the devices, and nothing else by it."""
        pools = [self.views.inventory.pool(each[:2]) for each in devices]
        if self.keepers is None or any(pool is None or pool.counters for pool in pools):
            return False
        return len(self.keepers) == 1 and not self.freed and _asks_for_one(self.keepers[0])

    def _fits(self, claim: JsonView, driver: str, device: JsonView) -> bool:
        """Whether the device matches the selectors of one of the requests of the claim."""
        kind, objects = api_resources.DEVICE_CLASSES, self.views.objects
        classes = {key.name: objects.get(key) or {} for key in objects.keys(*kind)}
        return any(
            all(
                self.selects.outcome(expression, driver, device) is not False
                for expression in ask.expressions
            )
            for alternatives in asks_of(claim, classes)
            for ask in alternatives
        )

    def _reaches(self, claim: JsonView, slice_name: str) -> bool:
        """Whether the devices of a slice can be had on the nodes of all pods of the claim."""
        objects, inventory = self.views.objects, self.views.inventory
        for key in objects.keys(*api_resources.PODS):
            pod = objects.get(key)
            if pod is None or key.namespace != meta.namespace(claim):
                continue
            named = {each.name for each in pods.named_claims(pods.facts(pod))}
            name = self.node_of_pod.get(meta.uid(pod), "")
            node = objects.get(ObjectKey(*api_resources.NODES, "", name))
            if meta.name(claim) not in named or node is None:
                continue
            view = inventory.node_view(nodes.node_of(node), Reading(partitionable=True))
            if slice_name not in {each.name for each in view.slices}:
                return False
        return True


def _asks_for_one(claim: JsonView) -> bool:
    """Whether the claim gets a single device: of one request, whichever alternative it takes."""
    asks = [
        ask
        for request in dra.requests(claim)
        for ask in (request.exactly, *request.first_available)
        if ask is not None
    ]
    is_single = all(ask.allocation_mode != "All" and (ask.count or 1) == 1 for ask in asks)
    return len(dra.requests(claim)) == 1 and is_single


def _without(tree: JsonObject, pool: PoolId, gone: Container[DeviceId]) -> JsonObject:
    """The slice without some devices."""
    spec: Mapping[str, Any] = tree["spec"]
    devices = [each for each in spec["devices"] if (*pool, each["name"]) not in gone]
    return {**tree, "spec": {**spec, "devices": devices}}
