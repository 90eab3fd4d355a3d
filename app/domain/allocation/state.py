"""The allocated devices, updated claim by claim. Parity: allocator.md 1.1.

A device is dedicated (taken as a whole) or shared (some of its capacity is consumed). Claims whose
allocation is chosen but not yet written are included; they are *in flight*.
"""

from collections.abc import Iterable, Iterator, Mapping
from sys import intern
from typing import NamedTuple

import msgspec

from app.domain.devices import compiling
from app.domain.values import json_tree
from app.domain.values.fields import dra, meta, paths
from app.domain.values.identifiers import DeviceId, DeviceName, DriverName, PoolId, PoolName
from app.domain.values.json_tree import JsonView

_driver = paths.typed(DriverName, paths.text("driver"))
_pool = paths.typed(PoolName, paths.text("pool"))
_device = paths.typed(DeviceName, paths.text("device"))


class Holding(msgspec.Struct, frozen=True, kw_only=True):
    """One device that a claim holds; `share` is empty for a dedicated one.

    `consumed` is None when the result names no capacity.
    """

    device: DeviceId
    share: str
    consumed: Mapping[str, int] | None


class InFlight(NamedTuple):
    """An allocation that is chosen but not yet written, and what the claim has by its status."""

    chosen: tuple[Holding, ...]
    written: tuple[Holding, ...]

    @property
    def all(self) -> tuple[Holding, ...]:
        """The devices in use: another writer may have given the claim other ones as well."""
        return self.chosen if self.written == self.chosen else self.written + self.chosen


class AllocatedState:
    """The devices in use, their holders and the consumed capacity.

    `is_given` is true when the state was given directly instead of by claims; stamps do not cover
    it then. `stamp_of` grows with every change in a pool, so that results computed for a pool are
    valid while its stamp is unchanged.
    """

    def __init__(self, *, consumable_capacity: bool = True) -> None:
        self.consumable_capacity = consumable_capacity
        self.is_given = False
        self._holdings: dict[str, tuple[Holding, ...]] = {}
        self._in_flight: dict[str, InFlight] = {}
        self._dedicated: dict[DeviceId, int] = {}
        self._shares: dict[DeviceId, dict[str, int]] = {}
        self._aggregated: dict[DeviceId, dict[str, int]] = {}
        # How often each claim holds a device; for one claim that holds it once, its key alone. The
        # inner mappings are shared between copies: they are replaced, never changed.
        self._holders: dict[DeviceId, str | Mapping[str, int]] = {}
        self._stamps: dict[PoolId, int] = {}

    @classmethod
    def of_claims(
        cls, claims: Iterable[JsonView], *, consumable_capacity: bool = True
    ) -> "AllocatedState":
        """The state of a list of claims; claims without allocation have no effect."""
        made = cls(consumable_capacity=consumable_capacity)
        for claim in claims:
            made.add_claim(claim)
        return made

    @classmethod
    def of_parts(
        cls,
        dedicated: Iterable[DeviceId],
        shares: Iterable[tuple[DeviceId, str]] = (),
        aggregated: Mapping[DeviceId, Mapping[str, int]] | None = None,
    ) -> "AllocatedState":
        """A state given directly, as in test tables; capacity in nanos."""
        made = cls()
        made.is_given = True
        made._dedicated = dict.fromkeys(dedicated, 1)
        for device, share in shares:
            made._shares.setdefault(device, {})[share] = 1
        made._aggregated = {device: dict(sums) for device, sums in (aggregated or {}).items()}
        return made

    def copy(self) -> "AllocatedState":
        """An independent copy of the state."""
        made = AllocatedState(consumable_capacity=self.consumable_capacity)
        made._holdings = dict(self._holdings)
        made._in_flight = dict(self._in_flight)
        made._dedicated = dict(self._dedicated)
        made._shares = {device: dict(shares) for device, shares in self._shares.items()}
        made._aggregated = {device: dict(amounts) for device, amounts in self._aggregated.items()}
        made._holders = dict(self._holders)
        made._stamps = dict(self._stamps)
        made.is_given = self.is_given
        return made

    def add_claim(self, claim: JsonView) -> None:
        """Adds the allocation in the claim's status, replacing the claim's earlier holdings."""
        key = claim_key(claim)
        allocation = json_tree.mapping(claim, "status", "allocation")
        if not allocation and key in self._in_flight:
            self._in_flight[key] = self._in_flight[key]._replace(written=())
            self._replace(key, self._in_flight[key].all)
            return
        self._replace(key, self._holdings_of(allocation))
        self._in_flight.pop(key, None)

    def remove_claim(self, claim: JsonView) -> None:
        """Releases the devices of the claim, in flight or written."""
        key = claim_key(claim)
        self._replace(key, ())
        self._in_flight.pop(key, None)

    def add_in_flight(self, claim: JsonView, allocation: JsonView) -> None:
        """Adds an allocation that is chosen but not yet in the claim's status."""
        key = claim_key(claim)
        known = self._in_flight.get(key)
        written = self._holdings.get(key, ()) if known is None else known.written
        self._in_flight[key] = InFlight(self._holdings_of(allocation), written)
        self._replace(key, self._in_flight[key].all)

    def remove_in_flight(self, claim: JsonView) -> None:
        """Removes an allocation in flight; a written allocation stays."""
        key = claim_key(claim)
        if key in self._in_flight:
            self._replace(key, self._in_flight.pop(key).written)

    def release(self, holder: str) -> None:
        """Releases the devices of the claims with this name, written as in `holders`."""
        for key in self._keys_of(holder):
            self._replace(key, ())
            self._in_flight.pop(key, None)

    def pools_of(self, holder: str) -> frozenset[PoolId]:
        """The pools in which the claims with this name hold devices."""
        return frozenset(
            holding.device[:2] for key in self._keys_of(holder) for holding in self._holdings[key]
        )

    def is_in_flight(self, claim: JsonView) -> bool:
        """Whether the claim's allocation is chosen but not yet written."""
        return claim_key(claim) in self._in_flight

    def is_dedicated(self, device: DeviceId) -> bool:
        """Whether the device is taken as a whole."""
        return device in self._dedicated

    def is_shared(self, device: DeviceId) -> bool:
        """Whether some share of the device is allocated."""
        return device in self._shares

    def is_allocated(self, device: DeviceId) -> bool:
        """Whether the device counts for counters: dedicated, shared, or with capacity consumed."""
        return device in self._dedicated or device in self._shares or device in self._aggregated

    def in_use(self, devices: Iterable[DeviceId], *, shares_count: bool) -> tuple[int, int]:
        """The devices taken as a whole and those with consumed capacity, by their places, as bits.

        With `shares_count` the latter are also those of which a share is allocated.
        """
        whole = held = 0
        dedicated, sums = self._dedicated, self._aggregated
        shares = self._shares if shares_count else {}
        places = list(enumerate(devices))
        for place, device in places:
            if device in dedicated:
                whole |= 1 << place
        if sums or shares:
            for place, device in places:
                if device in sums or device in shares:
                    held |= 1 << place
        return whole, held

    @property
    def has_aggregated(self) -> bool:
        """Whether a share of any device has recorded capacity."""
        return bool(self._aggregated)

    def aggregated(self, device: DeviceId) -> Mapping[str, int] | None:
        """The consumed capacity by name in nanos; None when no share has recorded any."""
        return self._aggregated.get(device)

    def holders(self, device: DeviceId) -> tuple[str, ...]:
        """The claims that hold the device, as `namespace/name`."""
        held = self._holders.get(device)
        if isinstance(held, str):
            return (_shown(held),)
        return tuple(map(_shown, _counts(held)))

    def held_devices(self) -> Iterator[DeviceId]:
        """The devices that claims hold, in no order, whether a slice publishes them or not."""
        yield from self._holders

    def stamp_of(self, pool: PoolId) -> int:
        """A number that grows with every allocation or release in the pool."""
        return self._stamps.get(pool, 0)

    def _keys_of(self, holder: str) -> list[str]:
        """The keys of the claims that `holders` writes so; of those made anew, several."""
        beginning = f"{holder}/" if "/" in holder else f"/{holder}/"
        return [key for key in self._holdings if key.startswith(beginning)]

    def _holdings_of(self, allocation: JsonView) -> tuple[Holding, ...]:
        holdings = []
        for result in dra.result_trees_of(allocation):
            if result.get("adminAccess") is True:
                continue
            share = json_tree.text(result, "shareID") if self.consumable_capacity else ""
            consumed = result.get("consumedCapacity")
            holdings.append(
                Holding(
                    device=(
                        DriverName(intern(_driver(result))),
                        PoolName(intern(_pool(result))),
                        DeviceName(intern(_device(result))),
                    ),
                    share=share,
                    consumed={
                        name: compiling.read_quantity(value, f"consumedCapacity[{name}]").nanos
                        for name, value in consumed.items()
                    }
                    if share and isinstance(consumed, Mapping)
                    else None,
                )
            )
        return tuple(holdings)

    def _replace(self, key: str, new: tuple[Holding, ...]) -> None:
        old = self._holdings.pop(key, ())
        if old == new:
            if new:
                self._holdings[key] = new
            return
        for holding in old:
            self._release(key, holding)
        for holding in new:
            self._take(key, holding)
        if new:
            self._holdings[key] = new

    def _take(self, key: str, holding: Holding) -> None:
        device = holding.device
        self._touch(device)
        if device in self._holders:
            holders = _counts(self._holders[device])
            self._holders[device] = {**holders, key: holders.get(key, 0) + 1}
        else:
            self._holders[device] = key
        if not holding.share:
            self._dedicated[device] = self._dedicated.get(device, 0) + 1
            return
        shares = self._shares.setdefault(device, {})
        shares[holding.share] = shares.get(holding.share, 0) + 1
        if holding.consumed is not None:
            sums = self._aggregated.setdefault(device, {})
            for name, amount in holding.consumed.items():
                sums[name] = sums.get(name, 0) + amount

    def _release(self, key: str, holding: Holding) -> None:
        device = holding.device
        self._touch(device)
        held = self._holders[device]
        if held.__class__ is str and held == key:
            del self._holders[device]
        else:
            counts = _counts(held)
            left = {**counts, key: counts[key] - 1}
            if not left[key]:
                del left[key]
            self._holders[device] = next(iter(left)) if list(left.values()) == [1] else left
        if not holding.share:
            count = self._dedicated[device] - 1
            if count:
                self._dedicated[device] = count
            else:
                del self._dedicated[device]
            return
        _decrease(self._shares, device, holding.share)
        sums = self._aggregated.get(device)
        if holding.consumed is None or sums is None:
            return
        for name, amount in holding.consumed.items():
            if name in sums:
                sums[name] -= amount
        if not any(sums.values()):
            del self._aggregated[device]

    def _touch(self, device: DeviceId) -> None:
        pool = device[:2]
        self._stamps[pool] = self._stamps.get(pool, 0) + 1


def _counts(held: str | Mapping[str, int] | None) -> Mapping[str, int]:
    """The number of times that each claim holds a device."""
    if held is None:
        return {}
    return {held: 1} if isinstance(held, str) else held


def claim_key(claim: JsonView) -> str:
    """The claim's identity: namespace, name and uid."""
    metadata = meta.metadata(claim)
    return "/".join(json_tree.text(metadata, part) for part in ("namespace", "name", "uid"))


def _shown(key: str) -> str:
    namespace, name, _ = key.split("/", 2)
    return f"{namespace}/{name}" if namespace else name


def _decrease(counts: dict[DeviceId, dict[str, int]], device: DeviceId, key: str) -> None:
    inner = counts[device]
    if inner[key] > 1:
        inner[key] -= 1
        return
    del inner[key]
    if not inner:
        del counts[device]
