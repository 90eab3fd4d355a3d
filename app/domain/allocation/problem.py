"""One allocation on one node, compiled to numbers: devices are bits, requests are rows.

A problem is the input of the search. It is built from a node view, the plans of the claims and the
allocated state, and is independent of the course of the search. Building it can end the attempt,
by the checks of mode All and the limit of devices (allocator.md 3).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from app.domain.allocation import capacity, counters, eligibility
from app.domain.allocation.capacity import Requested
from app.domain.allocation.constraints import ConstraintFacts, Facts
from app.domain.allocation.counters import NO_DRAWS, AvailableCounters, Draws
from app.domain.allocation.eligibility import Exclusion, Fault
from app.domain.allocation.features import AllocatorVariant, Features
from app.domain.allocation.quirks import Quirks
from app.domain.allocation.requests import (
    DEVICES_MAX,
    AttemptAborted,
    ClaimPlan,
    Constraint,
    PoolUnusable,
    Request,
    limit_error,
)
from app.domain.allocation.state import AllocatedState
from app.domain.devices.device_selectors import SelectorCompiler
from app.domain.devices.inventory import Inventory
from app.domain.devices.model import Capacity
from app.domain.devices.node_views import NodeView
from app.domain.devices.pools import PoolState
from app.domain.values.bounded import Bounded

Room = tuple[str, int, int]
"""Capacity name, amount that the request consumes, and amount left after it; in nanos."""


@dataclass(slots=True, kw_only=True, eq=False)
class RequestRow:
    """One request or alternative on this node.

    `candidates` are the devices that the search looks at in count mode: selectable devices that are
    not permanently excluded, and devices with faults. `listed` is the fixed list of mode All.
    `tainted` are devices with an untolerated taint. `rooms` has an entry per multi-allocatable
    device. A row `grows` if checking may enlarge its amounts (quirk q20); then undoing can take
    back more than was booked. It `lowers` what is booked if an amount is negative. `tight` are
    multi-allocatable devices without room for the amount: they get it from such rows, and are
    candidates if the problem has any. `postponed` is an error of mode All that is raised when the
    search reaches the row. `constraints` are the numbers of the claim's constraints that apply to
    the request.
    """

    index: int
    claim: int
    request: Request
    takes_all: bool
    admin: bool
    count: int
    candidates: int = 0
    listed: tuple[int, ...] = ()
    faults: Mapping[int, Fault] = field(default_factory=dict)
    refused: Mapping[int, Exclusion] = field(default_factory=dict)
    tainted: int = 0
    rooms: dict[int, tuple[Room, ...]] = field(default_factory=dict)
    tight: int = 0
    grows: bool = False
    lowers: bool = False
    requested: Mapping[str, Requested] = field(default_factory=dict)
    constraints: tuple[int, ...] = ()
    postponed: str = ""


@dataclass(slots=True, kw_only=True, eq=False)
class Problem:
    """The input of the search for one node.

    `rows[c][r][k]` is alternative k of request r of claim c. `dedicated` are devices allocated as a
    whole, `multi` devices that several requests may share, `consuming` devices with counters, from
    which they draw `draws`. `facts[c][n]` are the attribute facts of constraint n of claim c, by
    device. `counting_pools` are the usable pools with devices that have counters; with
    `plain_counters` their available amounts do not depend on which node or branch reads them first.
    """

    view: NodeView
    plans: Sequence[ClaimPlan]
    features: Features
    variant: AllocatorVariant
    quirks: Quirks
    state: AllocatedState
    available: AvailableCounters
    dedicated: int
    multi: int
    consuming: int
    held: int
    draws: Draws
    counting_pools: Sequence[int]
    plain_counters: bool
    rows: list[list[list[RequestRow]]]
    facts: list[list[Sequence[Facts | None]]]

    def constraint(self, claim: int, number: int) -> Constraint:
        """Constraint `number` of a claim."""
        return self.plans[claim].constraints[number]


class _InUse(msgspec.Struct, frozen=True, kw_only=True):
    """The masks of devices in use of a view, and the state from which they were computed."""

    state: AllocatedState
    stamps: tuple[int, ...]
    shares_count: bool
    dedicated: int
    held: int


class _DeviceCache:
    """Cached data about the devices of a view, independent of the claims."""

    __slots__ = (
        "counting_pools",
        "draws",
        "facts",
        "in_use",
        "shapes",
        "with_capacity",
        "with_policies",
    )

    def __init__(self) -> None:
        self.in_use: _InUse | None = None
        self.draws: Draws | None = None
        self.counting_pools: Sequence[int] | None = None
        self.with_capacity: int | None = None
        self.with_policies: int | None = None
        self.shapes: dict[bool, tuple[int, int]] = {}
        self.facts: Bounded[object, Sequence[Facts | None]] = Bounded(eligibility.MEMORY_MAX)


class ProblemBuilder:
    """Builds problems for the nodes of one attempt and owns the requested amounts."""

    def __init__(
        self,
        plans: Sequence[ClaimPlan],
        state: AllocatedState,
        features: Features,
        variant: AllocatorVariant,
        quirks: Quirks,
        compiler: SelectorCompiler,
        inventory: Inventory,
    ) -> None:
        self._inventory = inventory
        self._plans = plans
        self._state = state
        self._features = features
        self._variant = variant
        self._quirks = quirks
        self.compiler = compiler
        self._consumable = features.consumable_capacity and variant is not AllocatorVariant.STABLE
        self._binding = features.binding_conditions
        self._requested: dict[int, Mapping[str, Requested]] = {}
        self.available = AvailableCounters(state, by_name=quirks.q3)

    def build(self, view: NodeView) -> Problem:
        """The problem of a node. Raises AttemptAborted with upstream's text."""
        problem = self._empty(view)
        is_lowered = False
        index = 0
        for number, plan in enumerate(self._plans):
            rows: list[list[RequestRow]] = []
            least = 0
            for alternatives in plan.requests:
                made = []
                for request in alternatives:
                    made.append(self._row(problem, plan, request, number, index))
                    index += 1
                rows.append(made)
                is_lowered = is_lowered or any(row.grows or row.lowers for row in made)
                least += min(row.count for row in made)
            if plan.request_error:
                raise AttemptAborted(plan.request_error)
            if least > DEVICES_MAX:
                raise AttemptAborted(limit_error(plan, least))
            if plan.constraint_error:
                raise AttemptAborted(plan.constraint_error)
            problem.rows.append(rows)
            problem.facts.append([facts_in(view, constraint) for constraint in plan.constraints])
        if is_lowered:
            for row in (row for claim in problem.rows for request in claim for row in request):
                row.candidates |= row.tight
        return problem

    @property
    def has_grown(self) -> bool:
        """Whether a search of this attempt has enlarged a requested amount (quirk q20)."""
        return any(
            requested.has_grown
            for amounts in self._requested.values()
            for requested in amounts.values()
        )

    def _empty(self, view: NodeView) -> Problem:
        multi, consuming = _shape(view, consumable=self._consumable)
        dedicated, held = self.in_use(view)
        counting = _counting_pools(view, consuming) if consuming else ()
        return Problem(
            view=view,
            plans=self._plans,
            features=self._features,
            variant=self._variant,
            quirks=self._quirks,
            state=self._state,
            available=self.available,
            dedicated=dedicated,
            held=held,
            multi=multi,
            consuming=consuming,
            draws=_draws(view) if consuming else NO_DRAWS,
            counting_pools=counting,
            plain_counters=all(
                self._inventory.has_plain_counters(view.usable[position].id)
                for position in counting
            ),
            rows=[],
            facts=[],
        )

    def in_use(self, view: NodeView) -> tuple[int, int]:
        """The devices allocated as a whole, and those with aggregated capacity."""
        stamps = tuple([self._state.stamp_of(pool.id) for pool in view.usable])
        devices_of = view.part(_DeviceCache)
        known = devices_of.in_use
        if (
            known is not None
            and known.state is self._state
            and known.stamps == stamps
            and known.shares_count is not self._quirks.q17
        ):
            return known.dedicated, known.held
        shares_count = not self._quirks.q17
        # A pool without a stamp has never had anything allocated.
        devices = view.devices if any(stamps) or self._state.is_given else ()
        dedicated, held = self._state.in_use(
            [device.id for device in devices], shares_count=shares_count
        )
        devices_of.in_use = _InUse(
            state=self._state,
            stamps=stamps,
            shares_count=shares_count,
            dedicated=dedicated,
            held=held,
        )
        return dedicated, held

    def _row(
        self, problem: Problem, plan: ClaimPlan, request: Request, claim: int, index: int
    ) -> RequestRow:
        view = problem.view
        selection = eligibility.select(
            view, request.selectors, self.compiler, binding_conditions=self._binding
        )
        row = RequestRow(
            index=index,
            claim=claim,
            request=request,
            takes_all=request.takes_all,
            admin=request.admin,
            count=request.count,
            faults=selection.faults,
            refused=selection.refused,
            constraints=tuple(
                number
                for number, constraint in enumerate(plan.constraints)
                if constraint.concerns(request)
            ),
        )
        if self._features.device_taints:
            row.tainted = eligibility.tainted(view, request.tolerations)
        if row.faults and not self._quirks.q16:
            never = self._hopeless(problem, row) | row.tainted
            row.faults = {
                device: fault for device, fault in row.faults.items() if not never >> device & 1
            }
        matching = selection.matching
        if self._consumable:
            matching = self._with_capacity(problem, row, matching)
        if request.takes_all:
            try:
                self._check_pools(plan, row, view)
                self._list_all(plan, row, matching)
            except AttemptAborted as abort:
                if self._quirks.q11 or request.alternative is None:
                    raise
                row.postponed = str(abort)
            return row
        if not row.grows:
            hopeless = self._hopeless(problem, row)
            matching &= ~hopeless
            row.tight &= ~hopeless
        for device in row.faults:
            matching |= 1 << device
        row.candidates = matching
        return row

    def _hopeless(self, problem: Problem, row: RequestRow) -> int:
        """The devices that TAKE always refuses, without leaving a trace."""
        excluded = 0 if row.admin else problem.dedicated
        if not self._features.partitionable_devices:
            excluded |= problem.consuming
        return excluded | (row.tainted & ~problem.consuming)

    def _with_capacity(self, problem: Problem, row: RequestRow, matching: int) -> int:
        """The devices of `matching` that have the capacity when nothing else is allocating."""
        row.requested = self._requested_of(row)
        view = problem.view
        left = matching
        # Without requested amounts, only devices with capacity can fail the check: shared devices,
        # and devices whose policies set the amount.
        pending = matching
        if not row.requested:
            pending &= _with_capacity(view)
            pending &= self._with_shares(view) | _with_policies(view) | problem.multi
        while pending:
            low = pending & -pending
            pending ^= low
            index = low.bit_length() - 1
            device = view.devices[index]
            if problem.multi & low:
                self._room(row, index, device.capacity, self._state.aggregated(device.id))
            if (
                capacity.shortage(
                    row.requested,
                    device.capacity,
                    self._state.aggregated(device.id),
                    None,
                    grows=False,
                )
                is not None
            ):
                left ^= low
                row.tight |= low & problem.multi
        if row.takes_all or row.grows:
            row.tight = 0
        return matching if row.grows and not row.takes_all else left

    def _with_shares(self, view: NodeView) -> int:
        """The devices with capacity consumed by shares, even if they can no longer be shared."""
        if not self._state.has_aggregated or not view.traits.capacity:
            return 0
        return sum(
            1 << index
            for index, device in enumerate(view.devices)
            if self._state.aggregated(device.id)
        )

    def _room(
        self,
        row: RequestRow,
        index: int,
        capacities: Mapping[str, Capacity],
        aggregated: Mapping[str, int] | None,
    ) -> None:
        rooms = []
        amounts = capacity.amounts(row.requested, capacities)
        for name, amount in amounts.items():
            if amount.source is not None and self._quirks.q20:
                row.grows = True
            held = 0 if aggregated is None else aggregated.get(name, 0)
            nanos = amount.value.nanos
            row.lowers = row.lowers or nanos < 0
            rooms.append((name, nanos, capacities[name].value.nanos - held - nanos))
        row.rooms[index] = tuple(rooms)

    def _requested_of(self, row: RequestRow) -> Mapping[str, Requested]:
        known = self._requested.get(row.index)
        if known is None:
            known = {
                name: Requested(amount=amount) for name, amount in row.request.capacity.items()
            }
            self._requested[row.index] = known
        return known

    def _check_pools(self, plan: ClaimPlan, row: RequestRow, view: NodeView) -> None:
        """Raises unless every pool of the node is usable. Parity: allocator.md 3.1."""
        request = row.request
        for position, pool in enumerate(view.pools):
            if pool.usable:
                continue
            before = {pool_before.id for pool_before in view.pools[:position]}
            for device in sorted(row.faults):
                if view.usable[view.pool_index[device]].id in before:
                    raise AttemptAborted(row.faults[device].text(request.class_name, plan.key))
            condition = "being updated" if pool.state is PoolState.INCOMPLETE else "invalid"
            raise PoolUnusable(
                f"claim {plan.key}, request {request.name}: asks for all devices, "
                f"but resource pool {pool.text} is currently {condition}"
            )

    def _list_all(self, plan: ClaimPlan, row: RequestRow, matching: int) -> None:
        if row.faults:
            first = min(row.faults)
            raise AttemptAborted(row.faults[first].text(row.request.class_name, plan.key))
        listed = []
        pending = matching
        while pending:
            low = pending & -pending
            pending ^= low
            listed.append(low.bit_length() - 1)
        row.listed = tuple(listed)
        row.count = len(listed)
        row.candidates = matching


def facts_in(view: NodeView, constraint: Constraint) -> Sequence[Facts | None]:
    """The facts about the devices of a view for a constraint; cached with the view."""
    known = view.part(_DeviceCache).facts
    key = (constraint.domain, constraint.identifier)
    facts = known.get(key)
    if facts is None:
        facts = known[key] = ConstraintFacts(view.devices, constraint)
    return facts


def _draws(view: NodeView) -> Draws:
    """The amounts that the devices of a view draw from counters."""
    known = view.part(_DeviceCache)
    if known.draws is None:
        known.draws = counters.draws_of(view.devices)
    return known.draws


def _counting_pools(view: NodeView, consuming: int) -> Sequence[int]:
    """The usable pools that have devices with counters."""
    known = view.part(_DeviceCache)
    if known.counting_pools is None:
        known.counting_pools = tuple(
            sorted({view.pool_index[i] for i in range(len(view.devices)) if consuming >> i & 1})
        )
    return known.counting_pools


def _with_capacity(view: NodeView) -> int:
    """The devices that have capacities."""
    known = view.part(_DeviceCache)
    if known.with_capacity is None:
        devices = view.devices if view.traits.capacity else ()
        known.with_capacity = sum(
            1 << index for index, device in enumerate(devices) if device.capacity
        )
    return known.with_capacity


def _with_policies(view: NodeView) -> int:
    """The devices that have a capacity with a request policy."""
    known = view.part(_DeviceCache)
    if known.with_policies is None:
        devices = view.devices if view.traits.policies else ()
        known.with_policies = sum(
            1 << index
            for index, device in enumerate(devices)
            if any(each.policy is not None for each in device.capacity.values())
        )
    return known.with_policies


def _shape(view: NodeView, *, consumable: bool) -> tuple[int, int]:
    """The multi-allocatable devices and the counter-consuming ones."""
    shapes = view.part(_DeviceCache).shapes
    known = shapes.get(consumable)
    if known is None:
        multi = consuming = 0
        anywhere = view.traits.multiple or view.traits.consuming
        for index, device in enumerate(view.devices if anywhere else ()):
            if consumable and device.allow_multiple:
                multi |= 1 << index
            if device.consumes:
                consuming |= 1 << index
        known = shapes[consumable] = (multi, consuming)
    return known
