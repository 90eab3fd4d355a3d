"""The devices that one attempt has taken so far: the books of TAKE and of its undoing.

Parity: allocator.md 5.3, step by step, with the traces that its quirks leave (q1, q2, q7, q8, q9).
The search decides the order; all state that changes when a device is taken is here.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from app.domain.allocation import capacity, constraints
from app.domain.allocation.capacity import Amount, Requested
from app.domain.allocation.constraints import ConstraintState, Saved
from app.domain.allocation.counters import Booked, CounterLedger
from app.domain.allocation.features import AllocatorVariant
from app.domain.allocation.problem import Problem, RequestRow
from app.domain.allocation.requests import AttemptAborted


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """One device taken for one row; `amounts` is None unless the device is shared.

    `booked` is true when this take booked the device's counters.
    """

    row: RequestRow
    device: int
    booked: bool
    amounts: Mapping[str, Amount] | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Books:
    """A snapshot of the takes, shares, bookings and states of constraints."""

    taken_by: tuple[int, ...]
    taken_devices: int
    allocating: Mapping[int, Mapping[str, int]]
    shares: Mapping[int, int]
    constraints: tuple[Saved, ...]
    booked: Booked


class Usage:
    """The mutable state of one search on one node.

    `depth` is the number of current takes, `lowest` the least depth since `lowest` was last set.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._features = problem.features
        self._quirks = problem.quirks
        self._consumable = (
            problem.features.consumable_capacity and problem.variant is not AllocatorVariant.STABLE
        )
        self._ledger = CounterLedger(
            problem.view.usable,
            problem.view.pool_index,
            problem.draws,
            problem.available,
            every_counter=problem.quirks.q4,
        )
        self.depth = 0
        self.lowest = 0
        self._taken_by = [0] * len(problem.plans)
        self._taken = 0
        self._allocating: dict[int, dict[str, int]] = {}
        self._shares: dict[int, int] = {}
        self._constraints: list[list[ConstraintState]] = [
            [
                constraints.state_of(
                    constraint,
                    problem.facts[claim][number],
                    problem.quirks,
                    list_attributes=problem.features.list_attributes
                    and problem.variant is AllocatorVariant.EXPERIMENTAL,
                )
                for number, constraint in enumerate(plan.constraints)
            ]
            for claim, plan in enumerate(problem.plans)
        ]
        self.results: list[list[Taken]] = [[] for _ in problem.plans]

    def blocked(self, row: RequestRow) -> int:
        """The devices that the row must skip now; this attempt's shares are never among them."""
        if row.admin:
            return self._taken_by[row.claim]
        if not self._quirks.q9:
            return self._problem.dedicated | self._taken | self._taken_by[row.claim]
        return self._problem.dedicated | self._taken

    def has_capacity(self, row: RequestRow, device: int) -> bool:
        """Whether the device has enough capacity now; may enlarge the request (quirk q20)."""
        if not self._consumable:
            return True
        if row.grows or row.tight >> device & 1:
            view_device = self._problem.view.devices[device]
            return (
                capacity.shortage(
                    row.requested,
                    view_device.capacity,
                    self._problem.state.aggregated(view_device.id),
                    self._allocating.get(device),
                    grows=row.grows,
                )
                is None
            )
        allocating = self._allocating.get(device)
        if not allocating:
            return True
        return all(allocating.get(name, 0) <= free for name, _, free in row.rooms.get(device, ()))

    def take(self, row: RequestRow, device: int, *, must: bool) -> Taken | None:
        """Takes the device, or refuses. Raises AttemptAborted in mode All (quirk q10)."""
        problem = self._problem
        bit = 1 << device
        multi = bool(problem.multi & bit)
        if self.blocked(row) & bit:
            return None
        booked = False
        if problem.consuming & bit:
            if not self._features.partitionable_devices:
                return None
            if not (multi and (problem.held & bit or device in self._allocating)):
                if not self._ledger.book(device):
                    return None
                booked = True
        if row.tainted & bit:
            if booked and not self._quirks.q1:
                self._ledger.release(device)
            return None
        if not self._add_to_constraints(row, device):
            if booked and not self._quirks.q1:
                self._ledger.release(device)
            if must and self._quirks.q10:
                plan = problem.plans[row.claim]
                raise AttemptAborted(
                    f"claim {plan.key}, request {row.request.name}: cannot add device "
                    f"{problem.view.devices[device].text} "
                    "because a claim constraint would not be satisfied"
                )
            return None
        if not multi:
            self._mark(row, bit)
        if (must or row.grows) and not self.has_capacity(row, device):
            if not self._quirks.q8:
                self._withdraw(row, device, multi=multi, booked=booked)
            return None
        take = Taken(
            row=row,
            device=device,
            booked=booked,
            amounts=self._share(row, device) if multi else None,
        )
        self.results[row.claim].append(take)
        self.depth += 1
        return take

    def undo(self, take: Taken) -> None:
        """Undoes a successful take, except for the traces of quirks."""
        row, device = take.row, take.device
        popped = self.results[row.claim].pop()
        assert popped is take, "takes are undone in reverse order"
        self.depth -= 1
        self.lowest = min(self.lowest, self.depth)
        for number in row.constraints:
            self._constraints[row.claim][number].remove(device, row.request.main)
        if take.amounts is not None:
            self._unshare(device, take.amounts)
            if take.booked and not self._quirks.q2:
                self._ledger.release(device)
            return
        self._unmark(row, 1 << device)
        if take.booked:
            self._ledger.release(device)

    def books(self) -> Books:
        """A snapshot with which `restore` removes the traces of later failed attempts."""
        return Books(
            taken_by=tuple(self._taken_by),
            taken_devices=self._taken,
            allocating={device: dict(amounts) for device, amounts in self._allocating.items()},
            shares=dict(self._shares),
            constraints=tuple(
                state.save() for claim_states in self._constraints for state in claim_states
            ),
            booked=self._ledger.save(),
        )

    def restore(self, books: Books) -> None:
        """Restores a snapshot; all takes since then must have been undone."""
        self._taken_by = list(books.taken_by)
        self._taken = books.taken_devices
        self._allocating = {device: dict(amounts) for device, amounts in books.allocating.items()}
        self._shares = dict(books.shares)
        states = [state for claim_states in self._constraints for state in claim_states]
        for state, saved in zip(states, books.constraints, strict=True):
            state.restore(saved)
        self._ledger.restore(books.booked)

    def constraint_states(self, claim: int) -> list[ConstraintState]:
        """The constraints of a claim, in order."""
        return self._constraints[claim]

    def ledger(self) -> CounterLedger:
        """The books of counters."""
        return self._ledger

    @property
    def has_shares(self) -> bool:
        """Whether shares of this attempt consume capacity of any device."""
        return bool(self._allocating)

    def allocating(self, device: int) -> Mapping[str, int] | None:
        """The capacity of the device that shares of this attempt consume."""
        return self._allocating.get(device)

    def alike_now(self, device: int, others: int) -> int:
        """The devices of `others` that this attempt has used to the same amounts as `device`.

        Devices taken as a whole are left out; when `device` is, there are none. No device may draw
        counters as a share (`pruning` ensures that).
        """
        whole = 0
        for mask in self._taken_by:
            whole |= mask
        if whole >> device & 1:
            return 0
        alike = others & ~whole
        mine = self._allocating.get(device)
        for other, used in self._allocating.items():
            if used != mine:
                alike &= ~(1 << other)
        if mine:
            pending = alike
            while pending:
                low = pending & -pending
                pending ^= low
                if low.bit_length() - 1 not in self._allocating:
                    alike ^= low
        return alike

    def key(self, claim: int, relevant: int) -> object:
        """The complete state that affects rows from claim `claim` on, for devices in `relevant`.

        It is also all the state that the search can change from there on.
        """
        return (
            self._taken & relevant,
            tuple([mask & relevant for mask in self._taken_by]),
            tuple(
                [
                    state.key()
                    for claim_states in self._constraints[claim:]
                    for state in claim_states
                ]
            ),
            self._ledger.key() if self._problem.consuming & relevant else (),
            tuple(
                (device, tuple(amounts.items()))
                for device, amounts in sorted(self._allocating.items())
                if relevant >> device & 1
            )
            if self._allocating
            else (),
        )

    def _add_to_constraints(self, row: RequestRow, device: int) -> bool:
        states = self._constraints[row.claim]
        for position, number in enumerate(row.constraints):
            if not states[number].add(device, row.request.main):
                for earlier in row.constraints[:position]:
                    states[earlier].remove(device, row.request.main)
                return False
        return True

    def _mark(self, row: RequestRow, bit: int) -> None:
        self._taken_by[row.claim] |= bit
        if not row.admin or self._quirks.q9:
            self._taken |= bit

    def _unmark(self, row: RequestRow, bit: int) -> None:
        self._taken_by[row.claim] &= ~bit
        if row.admin and any(mask & bit for mask in self._taken_by):
            return
        if not row.admin or self._quirks.q9:
            self._taken &= ~bit

    def _withdraw(self, row: RequestRow, device: int, *, multi: bool, booked: bool) -> None:
        for number in row.constraints:
            self._constraints[row.claim][number].remove(device, row.request.main)
        if not multi:
            self._unmark(row, 1 << device)
        if booked:
            self._ledger.release(device)

    def _share(self, row: RequestRow, device: int) -> Mapping[str, Amount]:
        amounts = capacity.amounts(row.requested, self._problem.view.devices[device].capacity)
        entry = self._allocating.setdefault(device, {})
        for name, amount in amounts.items():
            entry[name] = entry.get(name, 0) + amount.value.nanos
        self._shares[device] = self._shares.get(device, 0) + 1
        return {
            name: Amount(value=amount.value, source=_origin(row.requested, name, amount))
            for name, amount in amounts.items()
        }

    def _unshare(self, device: int, amounts: Mapping[str, Amount]) -> None:
        self._shares[device] -= 1
        entry = self._allocating.get(device)
        if entry is None:
            return
        if not self._quirks.q7:
            for name, amount in amounts.items():
                entry[name] -= nanos_of(amount)
            if not self._shares[device]:
                del self._allocating[device]
            return
        if not amounts:
            return
        for name, amount in amounts.items():
            if name in entry:
                entry[name] -= nanos_of(amount)
        if not any(entry.values()):
            del self._allocating[device]


def nanos_of(amount: Amount) -> int:
    """The current amount: an amount by reference may have grown since it was recorded."""
    return amount.source.amount.nanos if amount.source is not None else amount.value.nanos


def _origin(requested: Mapping[str, Requested], name: str, amount: Amount) -> Requested | None:
    """The request that the recorded amount refers to, when it does so by reference."""
    return requested[name] if amount.source is not None else None
