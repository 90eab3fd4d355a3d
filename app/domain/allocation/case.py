"""One case of the allocator: the node and the claims, and the picks that solve it.

Results as API objects, reasons and the check can be derived later from a case. The compiled
problem, which is expensive, is built again on demand from the same inputs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from app.domain.allocation import capacity
from app.domain.allocation.capacity import Amount
from app.domain.allocation.problem import Problem, ProblemBuilder, RequestRow
from app.domain.allocation.requests import ClaimPlan
from app.domain.allocation.usage import Taken
from app.domain.devices.node_views import NodeView

Pick: TypeAlias = tuple[int, int, bool]
"""The number of the row, the number of the device, and whether its counters were booked."""

Picks: TypeAlias = tuple[tuple[Pick, ...], ...]
"""The picks per claim: a solution without names, valid on every node with an equal problem."""


@dataclass(slots=True, kw_only=True, eq=False)
class Case:
    """The claims of an attempt on one node.

    Inventory and state are those of the attempt: a case must be used before they change, or with
    the same revision of them.
    """

    view: NodeView
    plans: Sequence[ClaimPlan]
    builder: ProblemBuilder
    _problem: Problem | None = field(default=None)

    @property
    def problem(self) -> Problem:
        """The compiled problem, built on first use."""
        if self._problem is None:
            self._problem = self.builder.build(self.view)
        return self._problem

    def keep(self, problem: Problem) -> None:
        """Sets the problem when it is already compiled."""
        self._problem = problem


def picks_of(results: Sequence[Sequence[Taken]]) -> Picks:
    """The picks of a search's takes."""
    return tuple(
        tuple((each.row.index, each.device, each.booked) for each in claim) for claim in results
    )


def takes_of(problem: Problem, picks: Picks) -> tuple[tuple[Taken, ...], ...]:
    """The takes for picks from this or a like problem; valid without grown requests."""
    rows = {row.index: row for claim in problem.rows for request in claim for row in request}
    return tuple(
        tuple(
            Taken(
                row=rows[number],
                device=device,
                booked=booked,
                amounts=_amounts(problem, rows[number], device),
            )
            for number, device, booked in claim
        )
        for claim in picks
    )


def _amounts(problem: Problem, row: RequestRow, device: int) -> Mapping[str, Amount] | None:
    if not problem.multi >> device & 1:
        return None
    return capacity.amounts(row.requested, problem.view.devices[device].capacity)
