"""Necessary conditions for the rest of a search to succeed; see `pruning` for why they are sound.

A demand is what one row still needs and from which devices it may come. Each function may narrow
the devices or say that no solution is left; none ever refuses where one exists.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.domain.allocation.constraints import Facts
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
    demands: Sequence[Demand], constraint: int, groups: Mapping[Facts, int], reference: object
) -> None:
    """Leave only devices whose value can still be common to all demands under the constraint.

    `groups` are the devices per value, `reference` the value that is fixed already, if any (as
    facts, or as a set of one value). Without one, a value stays if every concerned demand finds
    enough devices with it, and all of them together do.
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
                if together.bit_count() >= total or _has_sharing(concerned):
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
    counter cost nothing. That the same device may be counted for two demands only lowers the sum.
    """
    view = problem.view
    costs: dict[tuple[int, str, str], int] = {}
    for demand in demands:
        amounts: dict[tuple[int, str, str], list[int]] = {}
        pending = demand.mask
        free = 0
        while pending:
            low = pending & -pending
            pending ^= low
            index = low.bit_length() - 1
            device = view.devices[index]
            free += not device.consumes
            for name, counters in device.consumes:
                for counter, amount in counters:
                    amounts.setdefault((view.pool_index[index], name, counter), []).append(amount)
        if free >= demand.need:
            continue
        size = demand.mask.bit_count()
        for place, found in amounts.items():
            without = size - len(found)
            if without < demand.need:
                cheapest = sum(sorted(found)[: demand.need - without])
                costs[place] = costs.get(place, 0) + cheapest
    return all(
        cost <= usage.ledger().left(pool, (name, counter), cost)
        for (pool, name, counter), cost in costs.items()
    )


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


def _has_sharing(demands: Sequence[Demand]) -> bool:
    """Whether devices could serve several demands, so that counting them together is no bound."""
    return any(demand.row is not None and bool(demand.row.rooms) for demand in demands)
