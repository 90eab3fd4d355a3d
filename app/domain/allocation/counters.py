"""Shared counters of pools: the available amounts, and the amounts that this attempt has booked.

Parity: allocator.md 7. Upstream keys both books by pool name without driver (quirk q3), so the
first pool of a name that is queried decides the available amounts for all of them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from app.domain.allocation.state import AllocatedState
from app.domain.devices.model import Device
from app.domain.devices.pools import Pool

Counter: TypeAlias = tuple[str, str]
"""The names of the counter set and the counter."""

BookKey: TypeAlias = tuple[str, ...]
"""The pool name alone (quirk q3), or driver and pool name."""

Booked: TypeAlias = Mapping[BookKey, Mapping[Counter, int]]
"""The amounts that an attempt has booked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """A counter that would be overdrawn; amounts in nanos."""

    counter_set: str
    counter: str
    available: int
    booked: int


def available_of(pool: Pool, state: AllocatedState) -> dict[Counter, int]:
    """The remaining amount of each counter of the pool; negative when it is over-allocated."""
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
        """The available counters of the pool, computed and fixed on first use."""
        key = self.key(pool)
        available = self._known.get(key)
        if available is None:
            available = available_of(pool, self._state)
            self._known[key] = available
        return available

    def peek(self, pool: Pool) -> dict[Counter, int]:
        """The result of `of`, without fixing it for later pools of the same name."""
        key = self.key(pool)
        available = self._known.get(key)
        if available is None:
            available = self._peeked.get(pool)
            if available is None:
                available = available_of(pool, self._state)
                self._peeked[pool] = available
        return available

    def fixed(self) -> int:
        """The number of open books. It only grows, and an open book never changes."""
        return len(self._known)

    def is_fixed(self, pool: Pool) -> bool:
        """Whether the book of the pool is open."""
        return self.key(pool) in self._known


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """The amounts that the devices of a view draw from counters; `negative` if any is negative."""

    amounts: tuple[tuple[tuple[Counter, int], ...], ...]
    negative: bool


NO_DRAWS = Draws(amounts=(), negative=False)
"""The draws of a view without counters."""


def draws_of(devices: Sequence[Device]) -> Draws:
    """The amounts per device; a counter that is named twice is added up."""
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
    """The bookings of one attempt on one node.

    With `every_counter` (quirk q4) booking a device requires that *every* counter of the pool
    suffices, not only the counters of the device. As long as no amount is negative, a successful
    booking leaves every counter sufficient, and so does a release. Then one check of the whole pool
    before the first booking is enough, followed by checks of each device's own counters.
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
        """Books the consumption of a device, or refuses and books nothing."""
        position = self._pool_index[device]
        available = self._available.of(self._pools[position])
        if not self._suffices(device, available):
            return False
        self._add(device, 1)
        return True

    def may_book(self, device: int) -> bool:
        """Whether `book` would succeed; does not open a book."""
        return self._suffices(device, self._available.peek(self._pools[self._pool_index[device]]))

    def release(self, device: int) -> None:
        """Releases the booking of a device."""
        self._add(device, -1)

    def shortage(self, device: int) -> Shortage | None:
        """The first counter that booking the device would overdraw; books nothing."""
        return next(self.shortages(device), None)

    def shortages(self, device: int) -> Iterator[Shortage]:
        """The counters that booking the device would overdraw, its own first; books nothing."""
        position = self._pool_index[device]
        available = self._available.peek(self._pools[position])
        booked = dict(self._booked.get(self._keys[position], {}))
        for place, amount in self._draws.amounts[device]:
            booked[place] = booked.get(place, 0) + amount
        used = {place for place, _ in self._draws.amounts[device]}
        concerned = available if self._every_counter else used
        for place in sorted(concerned, key=lambda name: (name not in used, name)):
            wanted = booked.get(place, 0)
            if available.get(place, wanted) < wanted:
                yield Shortage(
                    counter_set=place[0],
                    counter=place[1],
                    available=available[place],
                    booked=wanted,
                )

    def left(self, pool: int, counter: Counter, otherwise: int) -> int:
        """The remaining amount of a counter; `otherwise` when the counter is not limited."""
        available = self._available.peek(self._pools[pool]).get(counter)
        if available is None:
            return otherwise
        return available - self._booked.get(self._keys[pool], {}).get(counter, 0)

    def is_settled(self, pools: Sequence[int]) -> bool:
        """Whether the available counters of the pools no longer depend on the order of queries."""
        return all(self._available.is_fixed(self._pools[pool]) for pool in pools)

    def key(self) -> object:
        """All bookings, and the number of open books of available counters."""
        booked = frozenset(
            (key, counter, amount)
            for key, booked in self._booked.items()
            for counter, amount in booked.items()
            if amount
        )
        return self._available.fixed(), booked

    def save(self) -> Booked:
        """The current bookings, for `restore`."""
        return {key: dict(booked) for key, booked in self._booked.items()}

    def restore(self, booked: Booked) -> None:
        """Sets the bookings to saved ones."""
        self._booked = {key: dict(amounts) for key, amounts in booked.items()}

    def _suffices(self, device: int, available: dict[Counter, int]) -> bool:
        """Whether all checked counters suffice for one more device."""
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
