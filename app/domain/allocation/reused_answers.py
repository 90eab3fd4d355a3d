"""Answers that are reused for the same node in later attempts.

An answer is a function of the claims' signature (all parts of the plans except names that only
appear in texts), the view of the node, and the allocated devices in its pools. Views are compared
by identity, allocated devices by the stamps of the pools, so an earlier answer is reused until one
of these changes. Three kinds of answers are not remembered: errors (their texts name claims),
answers with requests that may grow or have grown on an earlier node (q20), and answers of nodes on
which the available counters depend on the order of queries (q3, q12).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from app.domain.allocation import eligibility
from app.domain.allocation.case import Picks
from app.domain.allocation.problem import Problem
from app.domain.allocation.requests import ClaimPlan, Request
from app.domain.allocation.state import AllocatedState
from app.domain.devices.node_views import NodeView
from app.domain.values.bounded import Bounded

Signature: TypeAlias = object
"""The requests and constraints of claims as a comparable and hashable value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberedAnswer:
    """An answer without names: picks, or None when nothing fits; and the steps it took."""

    picks: Picks | None
    steps: int


class _Earlier(msgspec.Struct, frozen=True, kw_only=True):
    """An answer with the state and stamps for which it was computed."""

    state: AllocatedState
    stamps: tuple[int, ...]
    answer: RememberedAnswer


class _NodeAnswers(Bounded[object, _Earlier]):
    """The answers of one node, by question."""

    def __init__(self) -> None:
        super().__init__(eligibility.MEMORY_MAX)


def signature(plans: Sequence[ClaimPlan]) -> Signature:
    """The signature of the claims; None for claims whose plans end in an error."""
    if any(plan.request_error or plan.constraint_error for plan in plans):
        return None
    return tuple(
        (
            tuple(tuple(map(_request, alternatives)) for alternatives in plan.requests),
            plan.constraints,
        )
        for plan in plans
    )


def recall(view: NodeView, key: object, state: AllocatedState) -> RememberedAnswer | None:
    """The answer of an earlier attempt if nothing has changed since, else None."""
    kept = view.part(_NodeAnswers).get(key)
    if kept is None or kept.state is not state:
        return None
    return kept.answer if kept.stamps == _stamps(view, state) else None


def keep(view: NodeView, key: object, state: AllocatedState, answer: RememberedAnswer) -> None:
    """Remembers an answer with the view."""
    stamps = _stamps(view, state)
    view.part(_NodeAnswers)[key] = _Earlier(state=state, stamps=stamps, answer=answer)


def may_be_kept(problem: Problem) -> bool:
    """Whether the answer depends only on the signature, the view and the stamps."""
    return problem.plain_counters and not any(
        row.grows for claim in problem.rows for request in claim for row in request
    )


def _stamps(view: NodeView, state: AllocatedState) -> tuple[int, ...]:
    return tuple([state.stamp_of(pool.id) for pool in view.usable])


def _request(request: Request) -> object:
    return (
        request.main,
        request.result_name,
        request.selectors,
        request.takes_all,
        request.count,
        request.admin,
        request.alternative,
        tuple(
            (toleration.key, toleration.operator, toleration.value, toleration.effect)
            for toleration in request.tolerations
        ),
        tuple(
            sorted(
                (name, amount.nanos, amount.compact) for name, amount in request.capacity.items()
            )
        ),
    )
