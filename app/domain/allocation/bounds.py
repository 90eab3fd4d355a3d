"""Necessary conditions for the rest of a search to succeed; see `pruning` for why they are sound.

A demand is what one row still needs and from which devices it may come. Each function may narrow
the devices or say that no solution is left; none ever refuses where one exists.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.domain.allocation.constraints import Facts
from app.domain.allocation.counters import Counter
from app.domain.allocation.problem import Problem, Row
from app.domain.allocation.usage import Usage


@dataclass(slots=True, kw_only=True, eq=False)
class Demand:
    """`need` different devices out of `mask`; `row` is None when several alternatives are open.

    The demands of one choice point are of one claim, so their devices must differ.
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
    """Leave only devices whose value can still be common to all demands under the constraint.

    `groups` are the devices per value, `reference` the value that is fixed already, if any (as
    facts, or as a set of one value). Without one, a value stays if every concerned demand finds
    enough devices with it, and all of them together do; shared devices (`multi`) may serve several.
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
    """Whether all demands can be met at once with different devices (Hall's condition).

    By augmenting paths: each unit of need looks for a free device, or for one whose owner can take
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

    Per counter and demand the `need` smallest amounts are summed; devices that do not use the
    counter cost nothing. That the same device may be counted for two demands only lowers the sum;
    shared devices, whose further shares cost nothing, must not be among them.
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
    """Whether the devices have places enough, a place being the smallest share of any demand.

    A request takes a device once, so no device has more places than there are demands; a dedicated
    device has one.
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
    """How many demands the shared device can serve at most."""
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
    """Give demand `number` one more device, moving others if need be."""
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
    """Move owners along the path that ends in the free device."""
    while True:
        asking, through = came_from[device]
        owner[device] = asking
        if asking == root:
            return
        device = through
