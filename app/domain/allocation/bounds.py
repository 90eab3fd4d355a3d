"""Necessary conditions for the rest of a search to succeed; `pruning` proves that they are sound.

A demand is the number of devices that one row still needs, and the devices that can satisfy it.
Each function may narrow the devices or report that no solution remains; it never does so wrongly.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from app.domain.allocation.constraints import Facts
from app.domain.allocation.counters import Counter
from app.domain.allocation.problem import Problem, RequestRow
from app.domain.allocation.usage import Usage

UNLIMITED = 1 << 200
"""More than is left of any counter, in nanos."""

_CounterSet: TypeAlias = tuple[int, str]
"""A counter set: its pool and its name."""


@dataclass(slots=True, kw_only=True, eq=False)
class Demand:
    """A demand for `need` different devices of `mask`; `row` is None with several alternatives.

    The demands of one choice point belong to one claim, so their devices must differ.
    """

    row: RequestRow | None
    need: int
    mask: int

    def concerned(self, constraint: int) -> bool:
        """Whether the constraint certainly applies to the devices."""
        return self.row is not None and constraint in self.row.constraints


def restrict(
    demands: Sequence[Demand],
    constraint: int,
    groups: Mapping[Facts, int],
    reference: object,
    multi: int,
) -> None:
    """Keeps only devices whose value can still be common to all demands under the constraint.

    `groups` are the devices per value, `reference` the value that is already fixed, if any (as
    facts, or as a set of one value). Without a reference, a value remains possible if each
    concerned demand, and all of them together, have enough devices with it; shared devices
    (`multi`) may serve several demands.
    """
    concerned = [demand for demand in demands if demand.concerned(constraint) and demand.need]
    if not concerned:
        return
    allowed = 0
    if reference is not None:
        for facts, mask in groups.items():
            if reference in (facts, facts.values):
                allowed |= mask
    else:
        total = sum(demand.need for demand in concerned)
        for mask in groups.values():
            together = 0
            for demand in concerned:
                shared = demand.mask & mask
                if shared.bit_count() < demand.need:
                    break
                together |= shared
            else:
                if together & multi or together.bit_count() >= total:
                    allowed |= mask
    for demand in concerned:
        demand.mask &= allowed


def can_match(demands: Sequence[Demand]) -> bool:
    """Whether different devices can satisfy all demands at once (Hall's condition).

    Uses augmenting paths: each unit of need takes a free device, or one whose owner can take
    another.
    """
    owner: dict[int, int] = {}
    for number, demand in enumerate(demands):
        for _ in range(demand.need):
            if not _augment(demands, number, owner):
                return False
    return True


def counters_suffice(demands: Sequence[Demand], problem: Problem, usage: Usage) -> bool:
    """Whether each counter covers the cheapest devices that the demands could take.

    The `need` smallest amounts are summed per counter and demand; devices that do not use the
    counter cost nothing. The same device may be counted for two demands, which only lowers the sum.
    The demands must not include shared devices, whose further shares cost nothing.
    """
    pool_index, draws = problem.view.pool_index, problem.draws.amounts
    costs: dict[tuple[int, Counter], int] = {}
    for demand in demands:
        amounts: dict[tuple[int, Counter], list[int]] = {}
        if (demand.mask & ~problem.consuming).bit_count() >= demand.need:
            continue
        pending = demand.mask
        while pending:
            low = pending & -pending
            pending ^= low
            index = low.bit_length() - 1
            for place, amount in draws[index]:
                amounts.setdefault((pool_index[index], place), []).append(amount)
        size = demand.mask.bit_count()
        for where, listed_draws in amounts.items():
            without = size - len(listed_draws)
            if without < demand.need:
                cheapest = sum(sorted(listed_draws)[: demand.need - without])
                costs[where] = costs.get(where, 0) + cheapest
    ledger = usage.ledger()
    return all(cost <= ledger.left(pool, place, cost) for (pool, place), cost in costs.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterGroup:
    """Devices that draw from the same counter sets, directly or by way of each other.

    `counters` are the pool and name of each counter, and its devices by the amount they draw, least
    first.
    """

    mask: int
    counters: tuple[tuple[int, Counter, tuple[tuple[int, int], ...]], ...]


def groups_of_counters(problem: Problem) -> tuple[CounterGroup, ...]:
    """The devices with counters, in groups of which no two share a counter set."""
    pool_index, draws = problem.view.pool_index, problem.draws.amounts
    parents: dict[_CounterSet, _CounterSet] = {}
    drawn: dict[tuple[int, Counter], dict[int, int]] = {}
    for index, amounts in enumerate(draws):
        pool, bit = pool_index[index], 1 << index
        for place, amount in amounts:
            by_amount = drawn.setdefault((pool, place), {})
            by_amount[amount] = by_amount.get(amount, 0) | bit
        sets = [(pool, place[0]) for place, _ in amounts]
        for each in sets:
            parents.setdefault(each, each)
            parents[_first_of(parents, each)] = _first_of(parents, sets[0])
    masks: dict[_CounterSet, int] = {}
    counters: dict[_CounterSet, list[tuple[int, Counter, tuple[tuple[int, int], ...]]]] = {}
    for (pool, place), by_amount in drawn.items():
        first = _first_of(parents, (pool, place[0]))
        counters.setdefault(first, []).append((pool, place, tuple(sorted(by_amount.items()))))
        for devices in by_amount.values():
            masks[first] = masks.get(first, 0) | devices
    return tuple(
        CounterGroup(mask=masks[first], counters=tuple(those)) for first, those in counters.items()
    )


def _first_of(parents: dict[_CounterSet, _CounterSet], place: _CounterSet) -> _CounterSet:
    """The set that stands for all sets which devices connect with this one."""
    while parents[place] != place:
        parents[place] = parents[parents[place]]  # a shorter way for the next question
        place = parents[place]
    return place


def groups_suffice(
    demands: Sequence[Demand], problem: Problem, usage: Usage, groups: Sequence[CounterGroup]
) -> bool:
    """Whether groups of counters have enough devices for each demand, and for all together.

    No choice takes more devices of a group than each of its counters has left for the cheapest of
    them. Unlike `counters_suffice` this adds the groups up: with one group exhausted, the other
    groups have to serve the demands. The same conditions apply.
    """
    if problem.draws.negative:
        return True
    ledger = usage.ledger()
    together = 0
    for demand in demands:
        together |= demand.mask
    wanted = [(sum(demand.need for demand in demands), together)]
    if len(demands) > 1:
        wanted += [(demand.need, demand.mask) for demand in demands]
    missing = [need - (mask & ~problem.consuming).bit_count() for need, mask in wanted]
    for group in groups:
        left = [ledger.left(pool, place, UNLIMITED) for pool, place, _ in group.counters]
        for number, (_, mask) in enumerate(wanted):
            if missing[number] > 0:
                missing[number] -= _most_of(group, left, mask & group.mask)
    return all(need <= 0 for need in missing)


def _most_of(group: CounterGroup, lefts: Sequence[int], mask: int) -> int:
    """An upper bound for the number of devices of `mask` that the counters have left for."""
    for (_, _, by_amount), left in zip(group.counters, lefts, strict=True):
        for amount, devices in reversed(by_amount):
            if amount <= left:
                break
            mask &= ~devices
    most = mask.bit_count()
    for (_, _, by_amount), left in zip(group.counters, lefts, strict=True):
        spared = 0
        for amount, devices in by_amount:
            drawing = (devices & mask).bit_count()
            served = min(drawing, left // amount) if amount else drawing
            left -= served * amount
            spared += drawing - served
        most = min(most, mask.bit_count() - spared)
    return most


def shares_suffice(demands: Sequence[Demand], problem: Problem, usage: Usage) -> bool:
    """Whether the devices have enough places, each sized as the smallest share of any demand.

    A request takes a device once, so a device has at most as many places as there are demands; a
    dedicated device has one.
    """
    needed = sum(demand.need for demand in demands)
    together = 0
    for demand in demands:
        together |= demand.mask
    places = (together & ~problem.multi).bit_count()
    pending = together & problem.multi
    while pending and places < needed:
        low = pending & -pending
        pending ^= low
        places += _places(demands, low.bit_length() - 1, usage)
    return places >= needed


def _places(demands: Sequence[Demand], device: int, usage: Usage) -> int:
    """The greatest number of demands that the shared device can serve."""
    places = sum(demand.mask >> device & 1 for demand in demands)
    smallest: dict[str, tuple[int, int]] = {}
    for demand in demands:
        if not demand.mask >> device & 1:
            continue
        if demand.row is None or demand.row.rooms.get(device) is None:
            return places
        for name, amount, room in demand.row.rooms[device]:
            known = smallest.get(name)
            if known is None or amount < known[0]:
                smallest[name] = (amount, room + amount)
    allocating = usage.allocating(device) or {}
    for name, (amount, free) in smallest.items():
        if amount > 0:
            places = min(places, max(0, free - allocating.get(name, 0)) // amount)
    return places


def _augment(demands: Sequence[Demand], number: int, owner: dict[int, int]) -> bool:
    """Gives demand `number` one more device, moving the devices of other demands if necessary."""
    seen = 0
    came_from: dict[int, tuple[int, int]] = {}
    queue = [number]
    for asking in queue:
        pending = demands[asking].mask & ~seen
        while pending:
            low = pending & -pending
            pending ^= low
            seen |= low
            device = low.bit_length() - 1
            holder = owner.get(device)
            if holder == asking:
                continue
            came_from[device] = (asking, _held_by(came_from, asking, number))
            if holder is None:
                _shift(came_from, owner, device, number)
                return True
            if holder not in queue:
                queue.append(holder)
                came_from[-1 - holder] = (device, 0)
    return False


def _held_by(came_from: Mapping[int, tuple[int, int]], asking: int, root: int) -> int:
    """The device through which `asking` was reached, -1 for the root."""
    return -1 if asking == root else came_from[-1 - asking][0]


def _shift(
    came_from: Mapping[int, tuple[int, int]], owner: dict[int, int], device: int, root: int
) -> None:
    """Moves owners along the path that ends at the free device."""
    while True:
        asking, through = came_from[device]
        owner[device] = asking
        if asking == root:
            return
        device = through
