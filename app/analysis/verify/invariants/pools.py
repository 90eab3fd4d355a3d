"""Pools: what is published in a pool, and which claims hold its devices.

Quantities are exact numbers of billionths; text that is not a quantity counts as 0.

Administrative access uses nothing, so it does not count as holding. Parity: allocator.md 7, 8.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from app.analysis.verify.invariants import reading
from app.analysis.verify.invariants.known import KnownClaim
from app.analysis.verify.invariants.reading import Device, Result, Slice, Taint
from app.domain.log import ObjectKey, Revision
from app.domain.values import timestamps
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import SECOND, Instant, TimestampError

DeviceId = tuple[str, str, str]
PoolId = tuple[str, str]
CounterId = tuple[str, str]
Held = tuple[KnownClaim, Result]
Began = tuple[Instant, Revision]
"""The instant since which something is known to exist, and the write that brought it."""

BILLION = 10**9

_UNKNOWN = Instant(2**63)
"""Later than every instant, for what may have changed at any time."""

_FORM = re.compile(r"([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,3})|([numkMGTPE]|[KMGTPE]i)?)")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


@dataclass(slots=True, kw_only=True)
class Published:
    """A slice: its devices by name, and its body, from which attributes are read on demand."""

    name: str
    uid: str
    pool: PoolId
    node_name: str
    generation: int
    slice: Slice
    devices: Mapping[str, Device]
    body: bytes
    is_tainted: bool
    trees: Mapping[str, JsonObject] | None = None

    def tree_of(self, device: str) -> JsonObject:
        """The full published object of a device."""
        if self.trees is None:
            trees: dict[str, JsonObject] = {}
            for each in reading.objects(reading.get(reading.value(self.body), "spec", "devices")):
                trees.setdefault(reading.text(each, "name"), each)
            self.trees = trees
        return self.trees.get(device, {})

    @property
    def unchanged_since(self) -> Instant:
        """The instant since which it certainly has its spec: a server counts the changes of one."""
        metadata = reading.specified(self.body).metadata
        try:
            made = timestamps.parse(metadata.creation_timestamp)
        except TimestampError:
            return _UNKNOWN
        return Instant(made + SECOND) if metadata.generation == 1 else _UNKNOWN


@dataclass(slots=True, eq=False)
class Pool:
    """The slices of a pool. Derived values are computed on demand.

    `holders` maps devices to the claims that hold them, in the order in which they got them.
    `consumed` is the consumed amount of each device's capacities.
    """

    id: PoolId
    slices: dict[ObjectKey, Published] = field(default_factory=dict)
    taints: dict[str, dict[Taint, Began]] = field(default_factory=dict)
    holders: dict[str, list[Held]] = field(default_factory=dict)
    consumed: dict[str, Counter[str]] = field(default_factory=dict)
    _devices: Mapping[str, Device] | None = None
    _places: dict[str, Published] | None = None
    _limits: dict[CounterId, int] | None = None
    _is_complete: bool | None = None
    _unchanged_since: Instant | None = None
    _drawn: dict[CounterId, int] | None = None

    def forget(self) -> None:
        """Drops the derived values after a slice changed."""
        self._devices = self._places = self._limits = self._is_complete = self._drawn = None
        self._unchanged_since = None

    def newest(self) -> list[Published]:
        """The slices of the newest generation, by name."""
        slices = self.slices.values()
        if len(slices) < 2:
            return list(slices)
        generation = max(each.generation for each in slices)
        newest = [each for each in slices if each.generation == generation]
        return sorted(newest, key=lambda each: each.name)

    def slice_of(self, device: str) -> Published | None:
        """The slice of the newest generation that publishes a device."""
        if self._places is None:
            self._places = {}
            for each in reversed(self.newest()):
                self._places.update(dict.fromkeys(each.devices, each))
        return self._places.get(device)

    @property
    def devices(self) -> Mapping[str, Device]:
        """The devices of the newest generation by name."""
        if self._devices is None:
            newest = self.newest()
            self._devices = (
                newest[0].devices
                if len(newest) == 1
                else {
                    name: device
                    for each in reversed(newest)
                    for name, device in each.devices.items()
                }
            )
        return self._devices

    def has(self, device: str) -> bool:
        """Whether a device is published in any generation."""
        return any(device in each.devices for each in self.slices.values())

    def publishes(self, device: str) -> bool:
        """Whether the pool has the device.

        While slices of the newest generation are missing, older ones count as well: a driver writes
        them one by one.
        """
        return device in self.devices or (not self.is_complete and self.has(device))

    def is_unnoticed(self, device: str) -> bool:
        """Whether the nodes of an older slice with the device see no newer generation (Q12).

        That is so when its generation has as many slices for these nodes as it announces. Slices
        that are not for one named node are not judged.
        """
        return any(
            device in each.devices
            and bool(each.node_name)
            and each.slice.spec.pool.resource_slice_count
            == sum(
                other.generation == each.generation and other.node_name == each.node_name
                for other in self.slices.values()
            )
            and not any(
                other.generation > each.generation and other.node_name in ("", each.node_name)
                for other in self.slices.values()
            )
            for each in self.slices.values()
        )

    @property
    def is_complete(self) -> bool:
        """Whether all slices of the newest generation exist."""
        if self._is_complete is None:
            newest = self.newest()
            count = newest[0].slice.spec.pool.resource_slice_count if newest else 0
            self._is_complete = bool(newest) and len(newest) >= count
        return self._is_complete

    def had_never(self, device: str, instant: Instant) -> bool:
        """Whether the pool was whole at an instant and without a device, as it still is."""
        return self.is_unchanged_since(instant) and not any(
            device in each.devices for each in self.newest()
        )

    def is_unchanged_since(self, instant: Instant) -> bool:
        """Whether the pool was whole at an instant, with the slices that it still has.

        A slice of the generation that has been deleted since would have made too many of them.
        """
        if self._unchanged_since is None:
            newest = self.newest()
            count = newest[0].slice.spec.pool.resource_slice_count if newest else 0
            is_whole = len(newest) == count > 0
            since = (each.unchanged_since for each in newest)
            self._unchanged_since = max(since) if is_whole else _UNKNOWN
        return self._unchanged_since <= instant

    @property
    def limits(self) -> Mapping[CounterId, int]:
        """The counters of the newest generation."""
        if self._limits is None:
            self._limits = {
                (counters.name, name): billionths(amount.value)
                for each in self.newest()
                for counters in each.slice.spec.shared_counters
                for name, amount in counters.counters.items()
            }
        return self._limits

    def note_taints(self, now: Began) -> Iterator[tuple[str, Taint]]:
        """Records since when each device of the newest generation has each of its taints.

        Yields the taints that no longer apply.
        """
        before, self.taints = self.taints, {}
        if any(each.is_tainted for each in self.slices.values()):
            for each in self.newest():
                for name, device in each.devices.items():
                    if device.taints and self.slice_of(name) is each:
                        since = before.get(name, {})
                        taints = {taint: since.get(taint, now) for taint in device.taints}
                        self.taints[name] = taints
        for name, taints in before.items():
            left = self.taints.get(name, {})
            yield from ((name, taint) for taint in taints if taint not in left)

    def hold(self, claim: KnownClaim, result: Result) -> Sequence[Held]:
        """Adds a claim to the holders of a device, and returns the holders."""
        name = result.device
        held = self.holders.get(name)
        if held is None:
            held = self.holders[name] = [(claim, result)]
            if self._drawn is not None:
                _add(self._drawn, self.devices.get(name), 1)
        else:
            held.append((claim, result))
        if result.consumed_capacity:
            consumed = self.consumed.setdefault(name, Counter())
            for capacity, value in result.consumed_capacity.items():
                consumed[capacity] += billionths(value)
        return held

    def release(self, claim: KnownClaim, result: Result) -> Sequence[Held]:
        """Removes a claim from the holders of a device, and returns the remaining holders."""
        name = result.device
        held = self.holders[name]
        if len(held) > 1:
            held.remove((claim, result))
            for capacity, value in result.consumed_capacity.items():
                self.consumed[name][capacity] -= billionths(value)
            return held
        del self.holders[name]
        if self.consumed:
            self.consumed.pop(name, None)
        if self._drawn is not None:
            _add(self._drawn, self.devices.get(name), -1)
        return ()

    @property
    def drawn(self) -> Mapping[CounterId, int]:
        """The amounts that the devices in use draw from the counters."""
        if self._drawn is None:
            self._drawn = {}
            for name in self.holders:
                _add(self._drawn, self.devices.get(name), 1)
        return self._drawn

    def may_draw(self, device: str) -> bool:
        """Whether the device may draw from a counter."""
        if not self.limits:
            return False
        published = self.devices.get(device)
        return published is not None and bool(published.consumes_counters)

    def is_overdrawn(self, device: str) -> bool:
        """Whether a counter that the device draws from is overdrawn."""
        published = self.devices.get(device)
        limits, drawn = self.limits, self.drawn
        for each in () if published is None else published.consumes_counters:
            for name in each.counters:
                limit = limits.get((each.counter_set, name))
                if limit is not None and drawn.get((each.counter_set, name), 0) > limit:
                    return True
        return False


def _add(drawn: dict[CounterId, int], device: Device | None, times: int) -> None:
    for each in () if device is None else device.consumes_counters:
        for name, amount in each.counters.items():
            place = each.counter_set, name
            drawn[place] = drawn.get(place, 0) + times * billionths(amount.value)


def draws(device: Device | None, counter: CounterId) -> bool:
    """Whether a device draws from the counter."""
    return device is not None and any(
        each.counter_set == counter[0] and counter[1] in each.counters
        for each in device.consumes_counters
    )


def drawn_by(device: Device | None, counter: CounterId) -> int:
    """The amount that a device draws from the counter."""
    drawn: dict[CounterId, int] = {}
    _add(drawn, device, 1)
    return drawn.get(counter, 0)


def billionths(value: object) -> int:
    """The value of a quantity in billionths, rounded away from zero."""
    if isinstance(value, str | int | float):
        return _exact(str(value).strip())
    return 0


@lru_cache(maxsize=65_536)
def _exact(text: str) -> int:
    parts = _FORM.fullmatch(text)
    if parts is None:
        return 0
    sign, whole, fraction, exponent, suffix = parts.groups()
    digits = whole + (fraction or "")
    if not digits:
        return 0
    factor = BILLION << _BINARY.get(suffix or "", 0)
    power = (int(exponent) if exponent else _DECIMAL.get(suffix or "", 0)) - len(fraction or "")
    number = int(digits) * factor
    ten: int = 10 ** abs(power)
    exact = number * ten if power >= 0 else -(-number // ten)
    return -exact if sign == "-" else exact


def _text(amount: int) -> str:
    """The amount in decimal notation."""
    whole, part = divmod(abs(amount), BILLION)
    sign = "-" if amount < 0 else ""
    return f"{sign}{whole}.{part:09d}".rstrip("0") if part else f"{sign}{whole}"


def compared(*amounts: int) -> tuple[str, ...]:
    """Amounts that a sentence compares: by suffix if each is whole mebibytes, else in decimals."""
    if not all(amount % (BILLION << _BINARY["Mi"]) == 0 for amount in amounts):
        return tuple(_text(amount) for amount in amounts)
    return tuple(_by_suffix(amount) for amount in amounts)


def _by_suffix(amount: int) -> str:
    for suffix, bits in reversed(_BINARY.items()):
        if amount and amount % (BILLION << bits) == 0:
            return f"{_text(amount >> bits)}{suffix}"
    return _text(amount)
