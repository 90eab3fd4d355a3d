"""Counterfactuals: the smallest changes with which the refused claims would fit on a node.

Candidates come from the causes of the refusal: release a claim that holds a device, tolerate a
taint, drop a selector or constraint, lower a count, ask for less capacity, enlarge a counter,
prefer another alternative, name the counter sets that a pool has, remove a patch, give a device an
attribute that it lacks and others have. Every answer is proven by an actual allocation on the
changed world. Single changes are tried before pairs, pairs before triples, within a bound of tries.
"""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from app.domain.allocation import capacity
from app.domain.allocation.allocator import Allocation, Allocator, Answer, Failure, FailureScope
from app.domain.allocation.case import Case
from app.domain.allocation.eligibility import Exclusion, Fault
from app.domain.allocation.problem import Problem, RequestRow
from app.domain.allocation.reasons import causes, pool_repairs
from app.domain.allocation.reasons.causes import CauseKind
from app.domain.allocation.reasons.changes import (
    AllocationWorld,
    Change,
    DropConstraint,
    EditRequest,
    EnlargeCounter,
    FrozenObject,
    PreferAlternative,
    ReleaseClaim,
    RemoveRule,
)
from app.domain.allocation.reasons.patching import PatchAttribute, Patching
from app.domain.allocation.requests import AttemptAborted
from app.domain.allocation.usage import Usage
from app.domain.devices import taints
from app.domain.devices.inventory import Inventory
from app.domain.devices.model import Taint
from app.domain.devices.pools import Pool
from app.domain.values import quantity
from app.domain.values.identifiers import DeviceId
from app.domain.values.json_tree import JsonObject, JsonView

CHANGES_MAX = 2
"""The most changes that are combined."""

TRIES_MAX = 300
"""The most allocations that are tried for one node."""

CANDIDATES_MAX = 48
"""The most candidate changes per node; the causes of most devices come first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Help:
    """Changes that together make the claims fit on a node.

    `has_untried` marks the release of a claim when releases of other claims were not tried.
    """

    node: str
    changes: tuple[Change, ...]
    has_untried: bool = False

    @property
    def text(self) -> str:
        """All changes in the imperative, joined."""
        return " and ".join(change.text for change in self.changes)

    @property
    def is_release(self) -> bool:
        """Whether it is the release of one claim."""
        return len(self.changes) == 1 and isinstance(self.changes[0], ReleaseClaim)

    @property
    def kinds(self) -> frozenset[object]:
        """The kinds of the changes, equal for helps that differ only in amount or node."""
        return frozenset(_kind(change) for change in self.changes)

    @property
    def amount(self) -> int:
        """The sum of the changed counts; of helps of equal kinds, more means a smaller change."""
        return sum(
            change.value
            for change in self.changes
            if isinstance(change, EditRequest) and isinstance(change.value, int)
        )

    def tree(self) -> JsonObject:
        """The help as JSON."""
        tree: JsonObject = {
            "node": self.node,
            "changes": [change.text for change in self.changes],
        }
        if self.has_untried:
            tree["hasUntried"] = True
        return tree


def what_would_help(
    allocator: Allocator,
    answer: Answer,
    *,
    changes_max: int = CHANGES_MAX,
    tries_max: int = TRIES_MAX,
) -> list[Help]:
    """The smallest sets of changes that help, found within the effort; empty when there are none.

    Only sets of the smallest helpful size are returned, and of lowered counts only the highest. If
    the release of one claim helps, the release of every other claim that holds devices there is
    tried too, or the answer states that not all were. Nothing else is said about untried changes.
    """
    steps = looking(allocator, answer, changes_max=changes_max, tries_max=tries_max)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            helps: list[Help] = done.value
            return helps


def looking(
    allocator: Allocator,
    answer: Answer,
    *,
    changes_max: int,
    tries_max: int,
    own: Mapping[str, JsonView] | None = None,
    elsewhere: frozenset[str] = frozenset(),
) -> Generator[None, None, list[Help]]:
    """Like `what_would_help`, in steps of one try, for callers that must yield between steps.

    `own` and `elsewhere` are those of `AllocationWorld`.
    """
    if answer.case is None or (isinstance(answer, Allocation) and not elsewhere):
        return []
    start = _start(allocator, answer, answer.case, own or {}, elsewhere)
    frontier: list[_Tried] = [start]
    seen: set[frozenset[Change]] = set()
    tries = 0
    helps: list[Help] = []
    for _ in range(changes_max):
        alike: set[object] = set()
        following: list[_Tried] = []
        for tried in frontier:
            for change in tried.candidates():
                changes = (*tried.changes, change)
                kind = frozenset(_kind(one) for one in changes)
                if frozenset(changes) in seen or kind in alike:
                    continue
                if tries >= tries_max:
                    return (yield from _all_releases(allocator, start, helps, seen, 0))
                tries += 1
                yield
                seen.add(frozenset(changes))
                made = tried.with_change(allocator, change)
                if made.fits:
                    alike.add(kind)
                    helps.append(Help(node=answer.node.name, changes=changes))
                else:
                    following.append(made)
        if helps:
            break
        frontier = following
    return (yield from _all_releases(allocator, start, helps, seen, tries_max - tries))


def still_fails(
    allocator: Allocator, answer: Answer, changes: Sequence[Change], *, own: Mapping[str, JsonView]
) -> bool:
    """Whether an error on a node, which ends the attempt on all nodes, outlasts these changes."""
    if answer.case is None:
        return isinstance(answer, Failure)
    tried = _start(allocator, answer, answer.case, own, frozenset())
    for change in changes:
        tried = tried.with_change(allocator, change)
    return isinstance(tried.answer, Failure) and tried.answer.scope is not FailureScope.NODE


def _start(
    allocator: Allocator,
    answer: Answer,
    case: Case,
    own: Mapping[str, JsonView],
    elsewhere: frozenset[str],
) -> "_Tried":
    world = AllocationWorld(
        claims=tuple(plan.tree for plan in case.plans),
        classes=allocator.classes,
        state=allocator.state,
        inventory=allocator.inventory,
        own=own,
        elsewhere=elsewhere,
    )
    return _Tried(changes=(), world=world, answer=answer)


def _all_releases(
    allocator: Allocator,
    start: "_Tried",
    helps: list[Help],
    seen: set[frozenset[Change]],
    tries_left: int,
) -> Generator[None, None, list[Help]]:
    """The helps, extended by all other releases that help, or marked with `has_untried`."""
    if not any(one.is_release for one in helps):
        return helps
    rest = [change for change in start.releases() if frozenset((change,)) not in seen]
    for change in rest[:tries_left]:
        yield
        if start.with_change(allocator, change).fits:
            helps.append(Help(node=start.answer.node.name, changes=(change,)))
    if len(rest) <= tries_left:
        return helps
    return [replace(one, has_untried=True) if one.is_release else one for one in helps]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tried:
    """Changes that were tried together, and the answer of the allocator."""

    changes: tuple[Change, ...]
    world: AllocationWorld
    answer: Answer

    @property
    def fits(self) -> bool:
        """Whether all claims of the pod can be used on the node."""
        return isinstance(self.answer, Allocation) and not self.world.elsewhere

    def candidates(self) -> list[Change]:
        """The further changes that may help; removing a first cause reveals those behind it."""
        case = self.answer.case
        if case is None:
            return []
        try:
            changes = chain(
                (ReleaseClaim(claim=claim) for claim in sorted(self.world.elsewhere)),
                _repairs(case.problem, self.world),
                _candidates(case.problem, self.world.inventory),
                # Requests that only fail together show no cause at a single device.
                self.releases() if _fail_together(case.problem) else (),
            )
            return [change for change in changes if change not in self.changes][:CANDIDATES_MAX]
        except AttemptAborted:
            return []  # the claims themselves are refused before any device is checked

    def releases(self) -> list[Change]:
        """The release of each claim that holds devices of the node, or draws their counters."""
        if self.answer.case is None:
            return []
        problem = self.answer.case.problem
        # A device of another node may use the counters of a pool as well.
        elsewhere = (
            device
            for pool in problem.view.usable
            for published in (*pool.slices, *pool.others)
            for device in published.devices
            if device.consumes
        )
        names = dict.fromkeys(
            name
            for device in (*problem.view.devices, *elsewhere)
            for name in problem.state.holders(device.id)
        )
        return [ReleaseClaim(claim=name) for name in names]

    def with_change(self, allocator: Allocator, change: Change) -> "_Tried":
        """The result of one more change."""
        world = change.apply(self.world)
        changed_allocator = allocator.on_world(world.inventory, world.classes, world.state)
        return _Tried(
            changes=(*self.changes, change),
            world=world,
            answer=changed_allocator.allocate(self.answer.node, list(world.claims)),
        )


def _fail_together(problem: Problem) -> bool:
    """Whether each request could be satisfied alone, by one of its alternatives."""
    usage = Usage(problem)
    devices = range(len(problem.view.devices))
    return all(
        any(
            sum(causes.of(problem, usage, row, device) is None for device in devices) >= row.count
            for row in request
        )
        for claim in problem.rows
        for request in claim
    )


def _kind(change: Change) -> object:
    """The kind of a change; only the first helpful change of a kind is reported."""
    if isinstance(change, EditRequest) and change.field == "count":
        return (change.number, change.result_name)
    if isinstance(change, EnlargeCounter):
        return (change.pool, change.counter_set, change.counter)
    return change


def _by(change: EnlargeCounter) -> int:
    return change.by


def _repairs(problem: Problem, world: AllocationWorld) -> Iterator[Change]:
    """The changes that would make unusable pools of the node usable."""
    for pool in problem.view.pools:
        repair = None if pool.usable else pool_repairs.of_counters(world.inventory, pool.id)
        if repair is not None:
            yield repair


def _candidates(problem: Problem, inventory: Inventory) -> Iterator[Change]:
    """The changes that remove a cause, most frequent causes first; then changes of the claims."""
    weights: dict[Change, int] = {}
    patches = Patching(inventory)
    usage = Usage(problem)
    for row in (row for claim in problem.rows for request in claim for row in request):
        for device in range(len(problem.view.devices)):
            cause = causes.of(problem, usage, row, device)
            if cause is not None:
                for change in _against(problem, usage, row, device, cause.kind, patches):
                    weights[change] = weights.get(change, 0) + 1
    ordered = sorted(weights, key=lambda change: (-weights[change], change.text))
    # Of one counter the smallest enlargement is tried first.
    enlarged = sorted((each for each in ordered if isinstance(each, EnlargeCounter)), key=_by)
    smallest = iter(enlarged)
    ordered = [next(smallest) if isinstance(each, EnlargeCounter) else each for each in ordered]
    # Attributes that a driver left out come last: there may be as many such changes as devices.
    left_out = [change for change in ordered if isinstance(change, PatchAttribute)]
    yield from (change for change in ordered if not isinstance(change, PatchAttribute))
    seen = set(weights)
    for change in _of_claims(problem):
        if change not in seen:
            yield change
    yield from left_out


def _against(
    problem: Problem,
    usage: Usage,
    row: RequestRow,
    device: int,
    kind: CauseKind,
    patches: Patching,
) -> Iterator[Change]:
    """The changes that remove one cause."""
    view = problem.view
    view_device = view.devices[device]
    match kind:
        case CauseKind.ALLOCATED:
            for holder in problem.state.holders(view_device.id)[:1]:
                yield ReleaseClaim(claim=holder)
        case CauseKind.TAINT:
            for taint in _blocking(row, view_device.taints):
                if taint.rule:
                    yield RemoveRule(rule=taint.rule)
                yield _edit(
                    problem,
                    row,
                    f"tolerate taint {taint.text}",
                    "tolerations",
                    FrozenObject.of(_toleration(taint)),
                )
        case CauseKind.SELECTOR | CauseKind.SELECTOR_ERROR:
            refusal, fault = row.refused.get(device), row.faults.get(device)
            number = refusal.number if refusal else fault.number if fault else -1
            of_class = refusal.of_class if refusal else bool(fault and fault.of_class)
            own = row.request.selectors.own
            if not of_class and 0 <= number < len(own):
                yield _edit(
                    problem,
                    row,
                    f"drop selector #{number} ({own[number]})",
                    "selectors",
                    FrozenObject.of({"cel": {"expression": own[number]}}),
                )
            yield from patches.removals(view_device)
            yield from patches.additions(view_device, _named_by(refusal, fault))
        case CauseKind.COUNTERS:
            yield from _counter_changes(problem, usage, device)
        case CauseKind.CAPACITY:
            for holder in problem.state.holders(view_device.id)[:2]:
                yield ReleaseClaim(claim=holder)
            yield from _capacity_changes(problem, row, view_device.id)
            yield from patches.removals(view_device)
        case CauseKind.CAPACITY_POLICY | CauseKind.CAPACITY_MISSING:
            yield from _capacity_changes(problem, row, view_device.id)
            yield from patches.removals(view_device)
        case CauseKind.CONSTRAINT:
            names = [one.attribute for one in problem.plans[row.claim].constraints]
            yield from patches.removals(view_device)
            yield from patches.additions(view_device, " ".join(names))
        case _:
            pass


def _named_by(refusal: Exclusion | None, fault: Fault | None) -> str:
    """The text that names the attributes which a selector read."""
    return refusal.expression if refusal else fault.detail if fault else ""


def _counter_changes(problem: Problem, usage: Usage, device: int) -> Iterator[Change]:
    view = problem.view
    position = view.pool_index[device]
    shortage = usage.ledger().shortage(device)
    if shortage is None:
        return
    pool = view.usable[position]
    yield EnlargeCounter(
        pool=pool.id,
        counter_set=shortage.counter_set,
        counter=shortage.counter,
        by=shortage.booked - shortage.available,
    )
    for holder in _users(problem, pool, (shortage.counter_set, shortage.counter)):
        yield ReleaseClaim(claim=holder)


def _users(problem: Problem, pool: Pool, place: tuple[str, str]) -> list[str]:
    """The claims that hold devices which use the counter."""
    names: dict[str, None] = {}
    for resource_slice in (*pool.slices, *pool.others):
        for device in resource_slice.devices:
            used = {(name, one) for name, counters in device.consumes for one, _ in counters}
            if place in used:
                names.update(dict.fromkeys(problem.state.holders(device.id)))
    return list(names)[:4]


def _capacity_changes(problem: Problem, row: RequestRow, device: DeviceId) -> Iterator[Change]:
    """The changes that request the most that the device has left and that its policy allows."""
    view_device = next(one for one in problem.view.devices if one.id == device)
    held = problem.state.aggregated(device) or {}
    for name, amount in row.request.capacity.items():
        own = view_device.capacity.get(name)
        if own is None:
            yield _edit(problem, row, f"ask for no {name}", "capacity", (name, None))
            continue
        most = capacity.most_allowed(own.value.nanos - held.get(name, 0), own.policy)
        if 0 < most < amount.nanos:
            text = str(quantity.from_nanos(most, own.value.format))
            yield _edit(problem, row, f"ask for {text} of {name}", "capacity", (name, text))


def _of_claims(problem: Problem) -> Iterator[Change]:
    """The changes of claims that no single device suggests."""
    for number, plan in enumerate(problem.plans):
        for constraint in plan.constraints:
            yield DropConstraint(
                number=number,
                claim=plan.key,
                index=constraint.index,
                attribute=constraint.attribute,
            )
        for alternatives in problem.rows[number]:
            for row in alternatives:
                if not row.takes_all:
                    for count in range(row.count - 1, 0, -1):
                        yield _edit(problem, row, f"lower count to {count}", "count", count)
                if row.request.alternative:
                    yield PreferAlternative(
                        number=number, claim=plan.key, main=row.request.main, name=row.request.name
                    )


def _edit(problem: Problem, row: RequestRow, what: str, field: str, value: object) -> EditRequest:
    return EditRequest(
        number=row.claim,
        claim=problem.plans[row.claim].key,
        result_name=row.request.result_name,
        what=what,
        field=field,
        value=value,
    )


def _blocking(row: RequestRow, device_taints: Iterable[Taint]) -> Iterator[Taint]:
    for taint in device_taints:
        if taints.untolerated((taint,), row.request.tolerations) is not None:
            yield taint


def _toleration(taint: Taint) -> JsonObject:
    return {
        "key": taint.key,
        "operator": "Equal",
        "value": taint.value,
        "effect": taint.effect,
    }


def shown(helps: Sequence[Help]) -> list[str]:
    """The helps as sentences, one each."""
    return [f"node {help_.node}: {help_.text}" for help_ in helps]
