"""What must hold of claims, devices and pods at any moment, checked from the objects alone.

Each violation names all objects concerned. Rules that controllers restore only after a while (a
reservation outlives its pod until the claim controller has looked) are marked transient: in a
recording they appear between two writes, at rest they must not. Parity: issue "Bad states" and
allocator.md 5–7, controllers.md 6.
"""

from collections import defaultdict
from collections.abc import Container, Iterator
from dataclasses import dataclass

from app.domain.devices.inventory import Inventory
from app.domain.devices.model import Device, DeviceId
from app.domain.errors import InputError
from app.domain.log import ObjectKey
from app.domain.objects.reader import ObjectsReader
from app.domain.values import json_tree, quantity
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.quantity import QuantityError
from projections import outlines

GROUP = "resource.k8s.io"
CLAIM_FINALIZER = "resource.kubernetes.io/delete-protection"
FINISHED = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One broken rule: its name, the objects concerned, and a sentence."""

    rule: str
    objects: tuple[ObjectKey, ...]
    message: str
    is_transient: bool = False

    def __str__(self) -> str:
        return f"{self.rule}: {self.message} [{', '.join(str(key) for key in self.objects)}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Holding:
    """One allocation result: the claim, and what it takes of the device."""

    claim: ObjectKey
    result: JsonView
    is_shared: bool


def check_invariants(
    objects: ObjectsReader,
    inventory: Inventory | None = None,
    *,
    known_devices: Container[DeviceId] = frozenset(),
) -> list[Violation]:
    """All violations, sorted by rule and objects.

    `inventory` is made from the slices when it is not given. `known_devices` are devices that
    existed at an earlier moment: an allocation may outlive its device.
    """
    stock = inventory if inventory is not None else inventory_of(objects)
    devices = {device.id: device for found in stock.slices() for device in found.devices}
    claims = {key: _tree(objects, key) for key in objects.keys(GROUP, "resourceclaims")}
    holdings = _holdings(claims, devices)
    found = [
        *_double_use(holdings),
        *_overdrawn_counters(stock, holdings),
        *_consumed_capacity(holdings, devices),
        *_unknown_devices(holdings, devices, known_devices),
        *_claim_states(objects, claims),
        *_pods_without_claims(objects),
    ]
    return sorted(found, key=lambda violation: (violation.rule, violation.objects))


def inventory_of(objects: ObjectsReader) -> Inventory:
    """The inventory of the slices that exist; slices that cannot be read are passed over."""
    stock = Inventory(with_rules=False, with_patches=False)
    for key in objects.keys(GROUP, "resourceslices"):
        try:
            stock.put_slice(_tree(objects, key))
        except (InputError, TypeError, ValueError, AttributeError):
            continue
    return stock


def _holdings(
    claims: dict[ObjectKey, JsonObject], devices: dict[DeviceId, Device]
) -> dict[DeviceId, list[_Holding]]:
    """Who holds each device; administrative access holds nothing."""
    found: dict[DeviceId, list[_Holding]] = defaultdict(list)
    for key, claim in claims.items():
        for result in json_tree.objects(claim, "status", "allocation", "devices", "results"):
            if json_tree.flag(result, "adminAccess"):
                continue
            device = _device_of(result)
            known = devices.get(device)
            is_shared = bool(json_tree.text(result, "shareID")) or (
                known is not None and known.allow_multiple
            )
            found[device].append(_Holding(claim=key, result=result, is_shared=is_shared))
    return found


def _double_use(holdings: dict[DeviceId, list[_Holding]]) -> Iterator[Violation]:
    for device, held in holdings.items():
        if len(held) > 1 and not all(holding.is_shared for holding in held):
            yield Violation(
                rule="device-in-one-claim",
                objects=_claims(held),
                message=f"device {'/'.join(device)} is allocated {len(held)} times",
            )


def _overdrawn_counters(
    stock: Inventory, holdings: dict[DeviceId, list[_Holding]]
) -> Iterator[Violation]:
    """A device that anybody holds draws its counters once. Parity: allocator.md 7."""
    for pool in stock.pool_ids():
        slices = stock.slices_of(pool)
        newest = max((found.generation for found in slices), default=0)
        current = [found for found in slices if found.generation == newest]
        capacity = {
            (name, counter): amount
            for found in current
            for name, counters in found.counter_sets
            for counter, amount in counters.items()
        }
        used: dict[tuple[str, str], int] = defaultdict(int)
        holders: dict[tuple[str, str], list[_Holding]] = defaultdict(list)
        for device in (device for found in current for device in found.devices):
            held = holdings.get(device.id)
            for name, counters in device.consumes if held else ():
                for counter, amount in counters:
                    used[name, counter] += amount
                    holders[name, counter].extend(held or ())
        for place, amount in sorted(used.items()):
            if place in capacity and amount > capacity[place]:
                yield Violation(
                    rule="counters-not-overdrawn",
                    objects=_claims(holders[place]),
                    message=f"counter {place[1]} of set {place[0]} in pool {'/'.join(pool)} is "
                    f"overdrawn by {_units(amount - capacity[place])}",
                )


def _consumed_capacity(
    holdings: dict[DeviceId, list[_Holding]], devices: dict[DeviceId, Device]
) -> Iterator[Violation]:
    for device, held in holdings.items():
        known = devices.get(device)
        used: dict[str, int] = defaultdict(int)
        for holding in held:
            for name, text in json_tree.mapping(holding.result, "consumedCapacity").items():
                used[name] += _nanos(text)
        for name, amount in sorted(used.items()):
            capacity = known.capacity.get(name) if known is not None else None
            if capacity is not None and amount > capacity.value.nanos:
                yield Violation(
                    rule="consumed-within-capacity",
                    objects=_claims(held),
                    message=f"of {name} of device {'/'.join(device)} "
                    f"{_units(amount - capacity.value.nanos)} too much is consumed",
                )


def _unknown_devices(
    holdings: dict[DeviceId, list[_Holding]],
    devices: dict[DeviceId, Device],
    known_devices: Container[DeviceId],
) -> Iterator[Violation]:
    for device, held in holdings.items():
        if device not in devices and device not in known_devices:
            yield Violation(
                rule="allocated-device-existed",
                objects=_claims(held),
                message=f"device {'/'.join(device)} is in no slice",
            )


def _claim_states(
    objects: ObjectsReader, claims: dict[ObjectKey, JsonObject]
) -> Iterator[Violation]:
    for key, claim in claims.items():
        allocation = json_tree.get(claim, "status", "allocation")
        reserved = json_tree.objects(claim, "status", "reservedFor")
        finalizers = json_tree.texts(claim, "metadata", "finalizers")
        if allocation is not None and CLAIM_FINALIZER not in finalizers:
            yield Violation(
                rule="allocation-has-finalizer",
                objects=(key,),
                message=f"the claim is allocated without the finalizer {CLAIM_FINALIZER}",
            )
        if reserved and allocation is None:
            yield Violation(
                rule="reservation-has-allocation",
                objects=(key,),
                message="the claim is reserved and not allocated",
            )
        for consumer in reserved:
            yield from _reservation(objects, key, consumer)


def _reservation(objects: ObjectsReader, key: ObjectKey, consumer: JsonView) -> Iterator[Violation]:
    if json_tree.text(consumer, "resource") != "pods" or json_tree.text(consumer, "apiGroup"):
        return
    pod_key = ObjectKey("", "pods", key.namespace, json_tree.text(consumer, "name"))
    pod = objects.event(pod_key)
    uid = json_tree.text(consumer, "uid")
    if pod is None or pod.uid != uid:
        yield Violation(
            rule="reservation-names-pod",
            objects=(key, pod_key),
            message=f"the claim is reserved for pod {pod_key.name} ({uid}), which does not exist",
            is_transient=True,
        )


def _pods_without_claims(objects: ObjectsReader) -> Iterator[Violation]:
    """A pod that is bound and not finished has its claims allocated and reserved for it."""
    for key in objects.keys("", "pods"):
        event = objects.event(key)
        assert event is not None, "its key is there"
        # Its outline: most pods are looked at for nothing else, and decoded by nobody.
        pod = outlines.pod(event.body)
        if not pod.spec.resource_claims or not pod.spec.node_name or pod.status.phase in FINISHED:
            continue
        uid = event.uid
        for name in _claim_names(pod):
            claim_key = ObjectKey(GROUP, "resourceclaims", key.namespace, name)
            claim = objects.get(claim_key)
            if claim is None or json_tree.get(claim, "status", "allocation") is None:
                yield Violation(
                    rule="bound-pod-has-claims",
                    objects=(key, claim_key),
                    message=f"the pod is bound and its claim {name} is not allocated",
                )
            elif not any(
                json_tree.text(consumer, "uid") == uid
                for consumer in json_tree.objects(claim, "status", "reservedFor")
            ):
                yield Violation(
                    rule="bound-pod-has-claims",
                    objects=(key, claim_key),
                    message=f"the pod is bound and its claim {name} is not reserved for it",
                )


def _claim_names(pod: outlines.Pod) -> Iterator[str]:
    status = pod.status
    made = {found.name: found.resource_claim_name for found in status.resource_claim_statuses}
    for entry in pod.spec.resource_claims:
        name = entry.resource_claim_name or made.get(entry.name)
        if name:
            yield name
    if extended := status.extended_resource_claim_status.resource_claim_name:
        yield extended


def _tree(objects: ObjectsReader, key: ObjectKey) -> JsonObject:
    found = objects.get(key)
    return {} if found is None else found


def _device_of(result: JsonView) -> DeviceId:
    return (
        json_tree.text(result, "driver"),
        json_tree.text(result, "pool"),
        json_tree.text(result, "device"),
    )


def _claims(held: list[_Holding]) -> tuple[ObjectKey, ...]:
    return tuple(sorted({holding.claim for holding in held}))


def _nanos(text: object) -> int:
    try:
        return quantity.parse(str(text)).nanos
    except QuantityError:
        return 0


def _units(nanos: int) -> str:
    whole, part = divmod(nanos, 10**9)
    return f"{whole}.{part:09d}".rstrip("0") if part else str(whole)
