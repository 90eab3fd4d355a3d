"""Nodes that are alike for an attempt, so that the search of one node serves all of them.

The *form* of a view is what the claims of an attempt read from it: for each device the driver and
the values that selectors, constraints and tolerations use. Two views with the same form and the
same devices in use have equal problems, bit for bit; only the names of devices differ. The form is
computed without compiling a problem. A view has no form when names or books matter: counters,
shares, devices that choose their nodes, unusable pools, selectors that read more than plain
attributes.

For views without a form, two compiled problems are compared: rows, devices in use and facts of
constraints. Neither comparison is used for problems with counters, shares or faults.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from app.domain.allocation import eligibility
from app.domain.allocation.problem import Problem, ProblemBuilder, facts_in
from app.domain.allocation.requests import ClaimPlan, Constraint, Request
from app.domain.allocation.reused_answers import RememberedAnswer
from app.domain.devices.device_selectors import (
    KeyOf,
    SelectorCompileError,
    SelectorCompiler,
    driver_of,
)
from app.domain.devices.model import Capacity
from app.domain.devices.node_views import NodeView
from app.domain.values.bounded import Bounded

LIKE_NODES_MAX = 4_096
"""The most answers remembered for like nodes of one attempt."""

UNLIKE_MAX = 32
"""The number of unlike nodes in a row after which an attempt stops comparing nodes."""


class ViewForm:
    """The parts of a view that an attempt reads; comparable, with a hash that is computed once."""

    __slots__ = ("_hash", "_parts")

    def __init__(self, parts: tuple[Hashable, ...]) -> None:
        self._parts = parts
        self._hash = hash(parts)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, ViewForm)
            and self._hash == other._hash
            and self._parts == other._parts
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reads:
    """The parts of plain devices, besides their drivers, that the claims of an attempt read."""

    keys: tuple[KeyOf, ...]
    constraints: tuple[Constraint, ...]
    capacity: bool


class _Forms(Bounded[object, ViewForm | None]):
    """The forms of one view, by question."""

    def __init__(self) -> None:
        super().__init__(eligibility.MEMORY_MAX)


class LikeNodes:
    """The answers of one attempt, by the form of the nodes that were searched.

    The answer of the first node is stored only when a second node is queried, because many pods
    query one node and need no form. When all nodes differ, no more forms are made after a while.
    """

    __slots__ = (
        "_answers",
        "_asked_again",
        "_builder",
        "_first",
        "_plans",
        "_question",
        "_reads",
        "_unlike",
    )

    def __init__(
        self, plans: Sequence[ClaimPlan], builder: ProblemBuilder, question: object
    ) -> None:
        self._plans = plans
        self._builder = builder
        self._question = question
        self._first: tuple[Problem, RememberedAnswer] | None = None
        self._asked_again = False
        self._reads: Reads | None = None
        self._answers: dict[Hashable, RememberedAnswer] = {}
        self._unlike = 0

    def recall(self, view: NodeView) -> RememberedAnswer | None:
        """The answer of a node with the same form as the view, found without a compiled problem."""
        if self._first is None or self._unlike > UNLIKE_MAX:
            return None
        if not self._asked_again:
            self._asked_again = True
            self._reads = reads_of(self._plans, self._builder.compiler)
            self.keep(*self._first)
        if not self._answers or self._reads is None:
            return None
        form = form_of(view, self._reads, self._question)
        if form is None:
            return None
        dedicated, held = self._builder.in_use(view)
        return None if held else self._answer((form, dedicated))

    def recall_problem(self, problem: Problem) -> RememberedAnswer | None:
        """The answer of a problem that is equal to this one, for views without a form."""
        if not self._answers or self._unlike > UNLIKE_MAX or not is_anonymous(problem):
            return None
        if self._form(problem) is not None:
            return None  # `recall` has looked for it
        return self._answer(_of_problem(problem))

    def keep(self, problem: Problem, answer: RememberedAnswer) -> None:
        """Remembers the answer of a node for like nodes."""
        if self._first is None:
            self._first = problem, answer
        elif self._unlike > UNLIKE_MAX or len(self._answers) >= LIKE_NODES_MAX:
            return
        elif is_anonymous(problem):
            self._unlike += 1
            form = self._form(problem)
            like = _of_problem(problem) if form is None else (form, problem.dedicated)
            self._answers[like] = answer

    def _answer(self, like: Hashable) -> RememberedAnswer | None:
        answer = self._answers.get(like)
        if answer is not None:
            self._unlike = 0
        return answer

    def _form(self, problem: Problem) -> ViewForm | None:
        if self._reads is None or problem.held:
            return None
        return form_of(problem.view, self._reads, self._question)


def reads_of(plans: Sequence[ClaimPlan], compiler: SelectorCompiler) -> Reads | None:
    """The parts that the claims read; None when it cannot be read from published values alone."""
    keys: dict[KeyOf, None] = {}
    requests = [
        request for plan in plans for alternatives in plan.requests for request in alternatives
    ]
    for request in requests:
        for expression in _expressions(request):
            try:
                key_of = compiler.compile(expression).published_key
            except SelectorCompileError:
                return None
            if key_of is None:
                return None
            if key_of is not driver_of:
                keys[key_of] = None
    return Reads(
        keys=tuple(keys),
        constraints=tuple(constraint for plan in plans for constraint in plan.constraints),
        capacity=any(request.capacity for request in requests),
    )


def form_of(view: NodeView, reads: Reads, question: object) -> ViewForm | None:
    """The form of a view for the claims whose token is `question`; None when it has none."""
    forms = view.part(_Forms)
    form = forms.get(question)
    if form is None and question not in forms:
        form = forms[question] = _form(view, reads)
    return form


def _of_problem(problem: Problem) -> Hashable:
    """The values that like problems have in common."""
    return (
        len(problem.view.devices),
        problem.dedicated,
        tuple(
            (row.candidates, row.tainted, row.count)
            for claim in problem.rows
            for request in claim
            for row in request
        ),
        tuple(tuple(facts) for facts in problem.facts),
    )


def is_anonymous(problem: Problem) -> bool:
    """Whether neither device names nor books of counters or shares can affect the search."""
    return not (
        problem.multi
        or problem.consuming
        or any(
            row.faults or row.postponed
            for claim in problem.rows
            for request in claim
            for row in request
        )
    )


def _form(view: NodeView, reads: Reads) -> ViewForm | None:
    traits = view.traits
    if not traits.plain or traits.consuming or traits.multiple or traits.binding:
        return None
    if len(view.usable) != len(view.pools):
        return None
    sizes: list[Hashable] = []
    for pool in view.usable:
        for resource_slice in pool.slices:
            if resource_slice.per_device or resource_slice.node.tree is not None:
                return None
            sizes.append((pool.id[0], len(resource_slice.devices)))
    devices = view.devices
    parts: list[Hashable] = [eligibility.published_keys(view, key_of) for key_of in reads.keys]
    for constraint in reads.constraints:
        parts.append(tuple(facts_in(view, constraint)))
    if traits.taints:
        parts.append(("taints", tuple([device.taints for device in devices])))
    if traits.capacity:
        parts.append(("capacity", _capacities(view, named=reads.capacity)))
    return ViewForm((*sizes, *parts))


def _capacities(view: NodeView, *, named: bool) -> tuple[Hashable, ...]:
    """The capacities of each device that can refuse a request.

    All if the request names some, else those with a policy.
    """
    if not named and not view.traits.policies:
        return ((),) * len(view.devices)
    before: Mapping[str, Capacity] = {}
    shown: Hashable = ()
    capacities: list[Hashable] = []
    for device in view.devices:
        # Devices of a kind share their capacities and mostly follow each other.
        if device.capacity is not before:
            before = device.capacity
            shown = tuple(
                (name, capacity)
                for name, capacity in before.items()
                if named or capacity.policy is not None
            )
        capacities.append(shown)
    return tuple(capacities)


def _expressions(request: Request) -> tuple[str, ...]:
    return (*request.selectors.of_class, *request.selectors.own)
