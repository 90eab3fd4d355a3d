"""Necessary conditions for the rest of a search to succeed; `pruning` proves that they are sound.

A demand is the number of devices that one row still needs, and the devices that can satisfy it.
Each function may narrow the devices or report that no solution remains; it never does so wrongly.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.domain.allocation.constraints import Facts
from app.domain.allocation.counters import Counter
from app.domain.allocation.problem import Problem, Row
from app.domain.allocation.usage import Usage


@dataclass(slots=True, kw_only=True, eq=False)
class Demand:
    """A demand for `need` different devices of `mask`; `row` is None with several alternatives.

    The demands of one choice point belong to one claim, so their devices must differ.
    """

    row: Row | None
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
