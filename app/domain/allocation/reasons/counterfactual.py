"""Counterfactuals: the smallest changes with which the refused claims would fit on a node.

Candidates come from the causes of the refusal: release a claim that holds a device, tolerate a
taint, drop a selector or constraint, lower a count, ask for less capacity, request less of an
extended resource, enlarge a counter, prefer another alternative, name the counter sets that a pool
has, count its slices, remove a patch, give a device an attribute that it lacks and others have.
Every answer is proven by an actual allocation on the changed world. Single changes are tried before
pairs, pairs before triples, within a bound of tries.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from app.domain.allocation import reused_answers
from app.domain.allocation.allocator import Allocation, Allocator, Answer, Failure, FailureScope
from app.domain.allocation.case import Case
from app.domain.allocation.problem import Problem
from app.domain.allocation.reasons import candidates, causes
from app.domain.allocation.reasons.changes import (
    AllocationWorld,
    Change,
    EditRequest,
    EnlargeCounter,
    LowerAmount,
    MadeClaim,
    ReleaseClaim,
)
from app.domain.allocation.requests import AttemptAborted
from app.domain.allocation.usage import Usage
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
    def texts(self) -> tuple[str, ...]:
        """Each change in the imperative."""
        return tuple(change.text for change in self.changes)

    @property
    def text(self) -> str:
        """All changes in the imperative, joined."""
        return " and ".join(self.texts)

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
        lowered = (
            change.amount if isinstance(change, LowerAmount) else change.value
            for change in self.changes
            if isinstance(change, LowerAmount | EditRequest)
        )
        return sum(amount for amount in lowered if isinstance(amount, int))

    def tree(self) -> JsonObject:
        """The help as JSON."""
        tree: JsonObject = {
            "node": self.node,
            "changes": [*self.texts],
        }
        if self.has_untried:
            tree["hasUntried"] = True
        return tree


def what_would_help_in_steps(
    allocator: Allocator,
    answer: Answer,
    *,
    changes_max: int,
    tries_max: int,
    own: Mapping[str, JsonView] | None = None,
    elsewhere: frozenset[str] = frozenset(),
    made: MadeClaim | None = None,
) -> Generator[Change, None, list[Help]]:
    """The smallest sets of changes that help, in steps of one try; empty when there are none.

    Each step yields the change that is tried next.

    Sets have at most `changes_max` changes, and at most `tries_max` allocations are tried. Only
    sets of the smallest helpful size are returned, and of lowered counts only the highest. If the
    release of one claim helps, the release of every other claim that holds devices there is tried
    too, or the answer states that not all were. It contains nothing else about untried changes.

    `own`, `elsewhere` and `made` are those of `AllocationWorld`.
    """
    if answer.case is None or (isinstance(answer, Allocation) and not elsewhere):
        return []
    start = _start(allocator, answer, answer.case, own or {}, elsewhere, made)
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
                kind = frozenset(_place(one) for one in changes)
                if frozenset(changes) in seen or kind in alike:
                    continue
                if tries >= tries_max:
                    return (yield from _all_releases(allocator, start, helps, seen, 0))
                tries += 1
                yield change
                seen.add(frozenset(changes))
                further = tried.with_change(allocator, change)
                if further.fits:
                    alike.add(kind)
                    helps.append(Help(node=answer.node.name, changes=changes))
                else:
                    following.append(further)
        if helps:
            break
        frontier = following
    return (yield from _all_releases(allocator, start, helps, seen, tries_max - tries))


def still_fails(
    allocator: Allocator,
    answer: Answer,
    changes: Sequence[Change],
    *,
    own: Mapping[str, JsonView],
    made: MadeClaim | None = None,
) -> bool:
    """Whether an error on a node, which ends the attempt on all nodes, outlasts these changes."""
    if answer.case is None:
        return isinstance(answer, Failure)
    if not isinstance(answer, Failure) and _is_apart(allocator, answer.case, changes, own):
        return False
    tried = _start(allocator, answer, answer.case, own, frozenset(), made)
    for change in changes:
        tried = tried.with_change(allocator, change)
    return isinstance(tried.answer, Failure) and tried.answer.scope is not FailureScope.NODE


def _is_apart(
    allocator: Allocator, case: Case, changes: Sequence[Change], own: Mapping[str, JsonView]
) -> bool:
    """Whether changes only release devices of pools that the answer on a node does not read.

    The answer stays as it is then, under the conditions of `reused_answers`.
    """
    if not reused_answers.may_be_kept(case.problem):
        return False
    pools = {pool.id for pool in case.view.usable}
    return all(
        isinstance(change, ReleaseClaim)
        and change.claim not in own
        and pools.isdisjoint(allocator.state.pools_of(change.claim))
        for change in changes
    )


def _start(
    allocator: Allocator,
    answer: Answer,
    case: Case,
    own: Mapping[str, JsonView],
    elsewhere: frozenset[str],
    made: MadeClaim | None,
) -> "_Tried":
    world = AllocationWorld(
        claims=tuple(plan.tree for plan in case.plans),
        classes=allocator.classes,
        state=allocator.state,
        inventory=allocator.inventory,
        own=own,
        elsewhere=elsewhere,
        made=made,
    )
    return _Tried(changes=(), world=world, answer=answer)


def _all_releases(
    allocator: Allocator,
    start: "_Tried",
    helps: list[Help],
    seen: set[frozenset[Change]],
    tries_left: int,
) -> Generator[Change, None, list[Help]]:
    """The helps, extended by all other releases that help, or marked with `has_untried`."""
    if not any(one.is_release for one in helps):
        return helps
    rest = [change for change in start.releases() if frozenset((change,)) not in seen]
    for change in rest[:tries_left]:
        yield change
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
                candidates.repairs(case.view, self.world),
                candidates.of(case.problem, self.world),
                # Requests that only fail together show no cause at a single device.
                self.releases() if _fail_together(case.problem) else (),
            )
            return [change for change in changes if change not in self.changes][:CANDIDATES_MAX]
        except AttemptAborted:
            # The claims are refused before any device is checked: all devices cannot be had while
            # a pool is not whole.
            repairs = candidates.repairs(case.view, self.world)
            return [change for change in repairs if change not in self.changes][:CANDIDATES_MAX]

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
        changed_allocator = allocator.on_world(
            world.inventory, world.classes, world.state, remembers=world.state is allocator.state
        )
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


def _place(change: Change) -> object:
    """The kind of a change, without the amount of a capacity: the largest is tried first."""
    if isinstance(change, EditRequest) and change.field == "capacity":
        return candidates.capacity_of(change)
    return _kind(change)


def _kind(change: Change) -> object:
    """The kind of a change; only the first helpful change of a kind is reported."""
    if isinstance(change, EditRequest) and change.field == "count":
        return (change.number, change.result_name)
    if isinstance(change, LowerAmount):
        return (change.container, change.resource)
    if isinstance(change, EnlargeCounter):
        return (change.pool, change.counter_set, change.counter)
    return change
