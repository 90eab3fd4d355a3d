"""The allocator: created once per scheduling attempt, called once per node.

Parity: allocator.md 1. Only the cache of available counters and, with quirk q20, requests that have
grown persist between the nodes of an attempt. Everything else is a function of the inputs. Each
answer includes its case, so that it can be explained later.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from app.domain.allocation import requests, result, reused_answers, search
from app.domain.allocation.case import Case, Picks, picks_of, takes_of
from app.domain.allocation.features import AllocatorVariant, Features
from app.domain.allocation.problem import Problem, ProblemBuilder
from app.domain.allocation.quirks import UPSTREAM, Quirks
from app.domain.allocation.requests import AttemptAborted, ClaimPlan, PoolUnusable
from app.domain.allocation.result import ShareIds
from app.domain.allocation.reused_answers import RememberedAnswer
from app.domain.allocation.search import STEPS_MAX, StepsExhausted
from app.domain.allocation.similar_nodes import LikeNodes
from app.domain.allocation.state import AllocatedState
from app.domain.allocation.usage import Taken
from app.domain.devices import nodes
from app.domain.devices.device_selectors import SelectorCompiler
from app.domain.devices.inventory import Inventory
from app.domain.devices.node_views import NodeView
from app.domain.devices.nodes import Node, NodeSelectionError
from app.domain.devices.pools import PoolState, Reading
from app.domain.values.json_tree import JsonObject, JsonView

INVALID_POOLS = "invalid resource pools were encountered"
TIMED_OUT = "filter operation aborted: context deadline exceeded"


class FailureScope(StrEnum):
    """The scope of a failure: the whole attempt for the pod, or this node only."""

    FATAL = "fatal"
    NODE = "node"


@dataclass(slots=True, kw_only=True, eq=False)
class Allocation:
    """The answer that all claims fit on the node. `results` are the takes per claim."""

    node: Node
    case: Case
    picks: Picks
    steps: int
    _results: tuple[tuple[Taken, ...], ...] | None = None

    @property
    def problem(self) -> Problem:
        """The compiled problem."""
        return self.case.problem

    @property
    def results(self) -> tuple[tuple[Taken, ...], ...]:
        """The takes per claim."""
        if self._results is None:
            self._results = takes_of(self.case.problem, self.picks)
        return self._results

    def allocation_results(self, share_ids: ShareIds) -> list[JsonObject]:
        """One AllocationResult per claim, in their order."""
        return result.allocations(self.case.problem, self.results, share_ids)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DoesNotFit:
    """The answer that the claims do not fit on the node."""

    node: Node
    case: Case
    steps: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Failure:
    """An error with upstream's text. `case` is None when the node's pools could not be read."""

    node: Node
    scope: FailureScope
    text: str
    case: Case | None
    steps: int
    timed_out: bool = False


Answer: TypeAlias = Allocation | DoesNotFit | Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Limits of one allocation call."""

    steps_max: int = STEPS_MAX


@dataclass(slots=True, kw_only=True, eq=False)
class _Attempt:
    """The claims of the attempt, compiled.

    `key` and `like` are None when answers cannot be remembered.
    """

    claims: Sequence[JsonView]
    plans: tuple[ClaimPlan, ...]
    builder: ProblemBuilder
    key: object
    like: LikeNodes | None

    def forget_if_grown(self) -> None:
        """Ends remembering once a request has grown: answers then depend on the nodes before."""
        if self.builder.has_grown:
            self.key = self.like = None


def reading_of(
    features: Features, quirks: Quirks = UPSTREAM, variant: AllocatorVariant | None = None
) -> Reading:
    """The reading of slices with these features and quirks: `variant`, or the one they require."""
    variant = features.variant() if variant is None else variant
    return Reading(
        partitionable=features.partitionable_devices,
        counter_slices_everywhere=variant is AllocatorVariant.STABLE,
        newer_unnoticed=quirks.q12,
        obsolete_disappear=quirks.q13,
        binding_pools_last=quirks.q15,
    )


class Allocator:
    """Allocates the claims of one pod, node by node, on one state of the cluster.

    `variant` defaults to the one that the features require. With `prune` false the proven shortcuts
    of the search are off; the answers are the same.
    """

    def __init__(
        self,
        inventory: Inventory | Sequence[JsonObject],
        classes: Mapping[str, JsonView],
        state: AllocatedState,
        features: Features,
        *,
        compiler: SelectorCompiler,
        quirks: Quirks = UPSTREAM,
        variant: AllocatorVariant | None = None,
        bounds: Bounds | None = None,
        prune: bool = True,
    ) -> None:
        self.inventory = (
            inventory if isinstance(inventory, Inventory) else Inventory.of_slices(inventory)
        )
        self.classes = classes
        self.state = state
        self.features = features
        self.quirks = quirks
        self.variant = features.variant() if variant is None else variant
        self.compiler = compiler
        self._bounds = bounds or Bounds()
        self._prune = prune
        self._remembers = True
        self.reading = reading_of(features, quirks, self.variant)
        self._attempt: _Attempt | None = None

    def allocate(self, node: Node | JsonView, claims: Sequence[JsonView]) -> Answer:
        """Allocates all claims on the node, or none."""
        here = node if isinstance(node, Node) else nodes.node_of(node)
        attempt = self._attempt_for(claims)
        try:
            view = self.inventory.node_view(here, self.reading)
        except NodeSelectionError as problem:
            return Failure(
                node=here, scope=FailureScope.FATAL, text=str(problem), case=None, steps=0
            )
        case = Case(view=view, plans=attempt.plans, builder=attempt.builder)
        if attempt.key is not None:
            earlier = reused_answers.recall(view, attempt.key, self.state)
            if earlier is not None:
                return self._answer(here, case, earlier)
            if attempt.like is not None and (like := attempt.like.recall(view)) is not None:
                self._remember(view, attempt.key, like)
                return self._answer(here, case, like)
        try:
            return self._search(here, case, attempt)
        except AttemptAborted as abort:
            stays = isinstance(abort, PoolUnusable) and self.features.node_scoped_pools
            scope = FailureScope.NODE if stays else FailureScope.FATAL
            return Failure(node=here, scope=scope, text=str(abort), case=case, steps=0)

    def case_of(self, node: Node, claims: Sequence[JsonView]) -> Case:
        """The case of a node without a search, for explanations. Raises NodeSelectionError."""
        attempt = self._attempt_for(claims)
        view = self.inventory.node_view(node, self.reading)
        return Case(view=view, plans=attempt.plans, builder=attempt.builder)

    def repaired(self, *marks: str) -> "Allocator":
        """The same allocator with the marked defects repaired. KeyError for an unknown mark."""
        return self._like(self.inventory, self.classes, self.state, self.quirks.without(*marks))

    def on_world(
        self,
        inventory: Inventory,
        classes: Mapping[str, JsonView],
        state: AllocatedState,
        *,
        remembers: bool = True,
    ) -> "Allocator":
        """An allocator with the same settings for other devices, classes and allocated state.

        Without `remembers` the nodes remember none of its answers: those of a supposed state are
        not needed again, and each would keep that state in memory.
        """
        made = self._like(inventory, classes, state, self.quirks)
        made._remembers = remembers
        return made

    def _like(
        self,
        inventory: Inventory,
        classes: Mapping[str, JsonView],
        state: AllocatedState,
        quirks: Quirks,
    ) -> "Allocator":
        return Allocator(
            inventory,
            classes,
            state,
            self.features,
            compiler=self.compiler,
            quirks=quirks,
            variant=self.variant,
            bounds=self._bounds,
            prune=self._prune,
        )

    def _remember(self, view: NodeView, key: object, answer: RememberedAnswer) -> None:
        if self._remembers:
            reused_answers.keep(view, key, self.state, answer)

    def _search(self, node: Node, case: Case, attempt: _Attempt) -> Answer:
        """Searches, or reuses the answer of a like node. Raises AttemptAborted."""
        problem = case.problem
        known = None if attempt.like is None else attempt.like.recall_problem(problem)
        results = None
        if known is None:
            try:
                outcome = search.run(problem, prune=self._prune, steps_max=self._bounds.steps_max)
            except StepsExhausted as stop:
                return Failure(
                    node=node,
                    scope=FailureScope.FATAL,
                    text=TIMED_OUT,
                    case=case,
                    steps=stop.steps,
                    timed_out=True,
                )
            attempt.forget_if_grown()
            results = outcome.results
            known = RememberedAnswer(
                picks=None if results is None else picks_of(results), steps=outcome.steps
            )
            if attempt.like is not None:
                attempt.like.keep(problem, known)
        if known.picks is not None:
            if results is None:
                results = takes_of(problem, known.picks)
            result.check_node_selectors(problem, results)
        if attempt.key is not None and reused_answers.may_be_kept(problem):
            self._remember(case.view, attempt.key, known)
        answer = self._answer(node, case, known)
        if isinstance(answer, Allocation):
            answer._results = results
        return answer

    def _answer(self, node: Node, case: Case, answer: RememberedAnswer) -> Answer:
        if answer.picks is not None:
            return Allocation(node=node, case=case, picks=answer.picks, steps=answer.steps)
        if any(pool.state is PoolState.INVALID for pool in case.view.pools):
            return Failure(
                node=node,
                scope=FailureScope.NODE,
                text=INVALID_POOLS,
                case=case,
                steps=answer.steps,
            )
        return DoesNotFit(node=node, case=case, steps=answer.steps)

    def _attempt_for(self, claims: Sequence[JsonView]) -> _Attempt:
        known = self._attempt
        if known is not None and len(known.claims) == len(claims):
            for earlier, claim in zip(known.claims, claims, strict=True):
                if earlier is not claim:
                    break
            else:
                return known
        plans = tuple(
            requests.plan_of(claim, self.classes, self.features, self.variant) for claim in claims
        )
        signature_of_plans = reused_answers.signature(plans) if self._prune else None
        builder = ProblemBuilder(
            plans,
            self.state,
            self.features,
            self.variant,
            self.quirks,
            self.compiler,
            self.inventory,
        )
        key = None
        if signature_of_plans is not None:
            key = self.inventory.token_of(
                (signature_of_plans, self.features, self.variant, self.quirks)
            )
        made = _Attempt(
            claims=tuple(claims),
            plans=plans,
            builder=builder,
            key=key,
            like=None if key is None else LikeNodes(plans, builder, key),
        )
        self._attempt = made
        return made
