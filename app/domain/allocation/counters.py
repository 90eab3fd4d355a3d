"""Shared counters of pools: what is available, and what this attempt has booked.

Parity: allocator.md 7. Upstream keys both books by pool name without driver (quirk q3), so the
first pool of a name that is asked for decides what is available for all of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from app.domain.allocation.state import AllocatedState
from app.domain.devices.model import Device
from app.domain.devices.pools import Pool

Counter: TypeAlias = tuple[str, str]
"""Counter set and counter."""

BookKey: TypeAlias = tuple[str, ...]
"""The pool name alone (quirk q3), or driver and pool name."""

Booked: TypeAlias = Mapping[BookKey, Mapping[Counter, int]]
"""What an attempt has booked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """A counter that would be overdrawn; amounts in nanos."""

    counter_set: str
    counter: str
    available: int
    booked: int


def available_of(pool: Pool, state: AllocatedState) -> dict[Counter, int]:
    """What is left of each counter of the pool; below zero when more than all is allocated."""
    left = {
        (name, counter): amount
        for name, counters in pool.counters.items()
        for counter, amount in counters.items()
    }
    for resource_slice in (*pool.slices, *pool.others):
        for device in resource_slice.devices:
            if device.consumes and state.is_allocated(device.id):
                for name, counters_used in device.consumes:
                    for counter, amount in counters_used:
                        if (name, counter) in left:
                            left[name, counter] -= amount
    return left


class AvailableCounters:
    """The cache of available counters, kept for all nodes of one attempt."""

    def __init__(self, state: AllocatedState, *, by_name: bool) -> None:
        self._state = state
        self._by_name = by_name
        self._known: dict[BookKey, dict[Counter, int]] = {}
        self._peeked: dict[Pool, dict[Counter, int]] = {}

    def key(self, pool: Pool) -> BookKey:
        """The key of the pool's books."""
        return (pool.id[1],) if self._by_name else pool.id

    def of(self, pool: Pool) -> dict[Counter, int]:
        """What is available to the pool, computed when it is first asked for."""
        key = self.key(pool)
        available = self._known.get(key)
        if available is None:
            available = available_of(pool, self._state)
            self._known[key] = available
        return available

    def peek(self, pool: Pool) -> dict[Counter, int]:
        """What `of` would give, without fixing it for later pools of the same name."""
        key = self.key(pool)
        available = self._known.get(key)
        if available is None:
            available = self._peeked.get(pool)
            if available is None:
                available = available_of(pool, self._state)
                self._peeked[pool] = available
        return available

    def fixed(self) -> int:
        """How many books have been opened; grows, and what is open never changes."""
        return len(self._known)

    def is_fixed(self, pool: Pool) -> bool:
        """Whether the book of the pool is open."""
        return self.key(pool) in self._known


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """What the devices of a view draw from counters, by device; `negative` if any amount is."""

    amounts: tuple[tuple[tuple[Counter, int], ...], ...]
    negative: bool


NO_DRAWS = Draws(amounts=(), negative=False)
"""The draws of a view without counters."""


def draws_of(devices: Sequence[Device]) -> Draws:
    """The amounts per device, counters that are named twice added up."""
    draws: list[tuple[tuple[Counter, int], ...]] = []
    negative = False
    for device in devices:
        sums: dict[Counter, int] = {}
        for name, counters in device.consumes:
            for counter, amount in counters:
                sums[name, counter] = sums.get((name, counter), 0) + amount
                negative = negative or amount < 0
        draws.append(tuple(sums.items()))
    return Draws(amounts=tuple(draws), negative=negative)


class CounterLedger:
    """What one attempt on one node has booked.

    With `every_counter` (quirk q4) booking a device asks that *every* counter of the pool suffices,
    not only those the device uses. As long as no amount is negative, what was booked with success
    leaves every counter sufficient, and giving back keeps it so; then it is enough to ask once
    whether the pool was sound before anything was booked, and after that for the device's own
    counters.
    """

    __slots__ = (
        *("_available", "_booked", "_draws", "_every_counter"),
        *("_keys", "_pool_index", "_pools", "_sound"),
    )

    def __init__(
        self,
        pools: Sequence[Pool],
        pool_index: Sequence[int],
        draws: Draws,
        available: AvailableCounters,
        *,
        every_counter: bool,
    ) -> None:
        self._pools = pools
        self._pool_index = pool_index
        self._draws = draws
        self._available = available
        self._every_counter = every_counter
        self._keys = tuple(available.key(pool) for pool in pools)
        self._booked: dict[BookKey, dict[Counter, int]] = {}
        self._sound: dict[BookKey, bool] = {}

    def book(self, device: int) -> bool:
        """Book what a device consumes, or refuse and book nothing."""
        position = self._pool_index[device]
        available = self._available.of(self._pools[position])
        if not self._suffices(device, available):
            return False
        self._add(device, 1)
        return True

    def may_book(self, device: int) -> bool:
        """Whether `book` would succeed; opens no book."""
        return self._suffices(device, self._available.peek(self._pools[self._pool_index[device]]))

    def release(self, device: int) -> None:
        """Take back what was booked."""
        self._add(device, -1)

    def shortage(self, device: int) -> Shortage | None:
        """The first counter that booking the device would overdraw; books nothing."""
        position = self._pool_index[device]
        available = self._available.peek(self._pools[position])
        booked = dict(self._booked.get(self._keys[position], {}))
        for place, amount in self._draws.amounts[device]:
            booked[place] = booked.get(place, 0) + amount
        used = {place for place, _ in self._draws.amounts[device]}
        concerned = available if self._every_counter else used
        for place in sorted(concerned, key=lambda found: (found not in used, found)):
            wanted = booked.get(place, 0)
            if available.get(place, wanted) < wanted:
                return Shortage(
                    counter_set=place[0],
                    counter=place[1],
                    available=available[place],
                    booked=wanted,
                )
        return None

    def left(self, pool: int, counter: Counter, otherwise: int) -> int:
        """What is left of a counter; `otherwise` where nothing limits it."""
        available = self._available.peek(self._pools[pool]).get(counter)
        if available is None:
            return otherwise
        return available - self._booked.get(self._keys[pool], {}).get(counter, 0)

    def is_settled(self, pools: Sequence[int]) -> bool:
        """Whether what is available to the pools can no longer depend on who asks first."""
        return all(self._available.is_fixed(self._pools[pool]) for pool in pools)

    def key(self) -> object:
        """All that is booked, and how many books of available counters are open."""
        booked = frozenset(
            (key, counter, amount)
            for key, booked in self._booked.items()
            for counter, amount in booked.items()
            if amount
        )
        return self._available.fixed(), booked

    def save(self) -> Booked:
        """What is booked now, for `restore`."""
        return {key: dict(booked) for key, booked in self._booked.items()}

    def restore(self, booked: Booked) -> None:
        """Let that be booked and nothing else."""
        self._booked = {key: dict(amounts) for key, amounts in booked.items()}

    def _suffices(self, device: int, available: dict[Counter, int]) -> bool:
        """Whether all counters that are asked suffice for one more device."""
        key = self._keys[self._pool_index[device]]
        booked = self._booked.get(key, {})
        draws = self._draws.amounts[device]
        if self._every_counter:
            if self._draws.negative:
                wanted = dict(draws)
                return all(
                    left >= booked.get(place, 0) + wanted.get(place, 0)
                    for place, left in available.items()
                )
            sound = self._sound.get(key)
            if sound is None:
                sound = all(left >= 0 for left in available.values())
                self._sound[key] = sound
            if not sound:
                return False
        for place, amount in draws:
            left = available.get(place)
            if left is not None and booked.get(place, 0) + amount > left:
                return False
        return True

    def _add(self, device: int, sign: int) -> None:
        booked = self._booked.setdefault(self._keys[self._pool_index[device]], {})
        for place, amount in self._draws.amounts[device]:
            booked[place] = booked.get(place, 0) + sign * amount
