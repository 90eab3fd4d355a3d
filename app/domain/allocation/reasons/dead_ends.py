"""The dead ends of a search: the takes at each point where no device was left for a request.

The plain search does not record them. On demand, it is run again with an observer for a bounded
number of steps; the states are then rebuilt by taking the same devices. There is no result when the
second search would leave traces that the first did not (grown requests, quirk q20, and counters
that depend on the order of queries).
"""

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeAlias

from app.domain.allocation import search
from app.domain.allocation.problem import Problem, RequestRow
from app.domain.allocation.requests import AttemptAborted
from app.domain.allocation.search import StepsExhausted
from app.domain.allocation.usage import Usage

FIRST_MAX = 3
"""The number of dead ends kept from the beginning of a search, as examples."""

PREFIXES_MAX = 1_024
"""The most states that are remembered with the first dead end after them."""

Takes: TypeAlias = tuple[tuple[int, int], ...]
"""The number of the row and of the device of each take, in the order of the search."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadEnd:
    """A dead end: the current takes when no device was left for a row."""

    takes: Takes
    row: RequestRow


@dataclass(slots=True, kw_only=True, eq=False)
class DeadEnds:
    """The dead ends of a search: their count, the first ones, and the one with most takes."""

    count: int = 0
    first: list[DeadEnd] = field(default_factory=list)
    deepest: DeadEnd | None = None
    is_whole: bool = False
    _behind: dict[Takes, DeadEnd] = field(default_factory=dict)

    def stuck(self, row: RequestRow, number: int, usage: Usage) -> None:
        """Records a dead end."""
        self.count += 1
        depth = sum(map(len, usage.results))
        is_deeper = self.deepest is None or depth > len(self.deepest.takes)
        if not is_deeper and self.count > PREFIXES_MAX:
            return
        takes = tuple((take.row.index, take.device) for claim in usage.results for take in claim)
        made = DeadEnd(takes=takes, row=row)
        if is_deeper:
            self.deepest = made
        if len(self.first) < FIRST_MAX:
            self.first.append(made)
        for length in range(depth, 0, -1):
            prefix = takes[:length]
            if prefix in self._behind or len(self._behind) >= PREFIXES_MAX:
                break
            self._behind[prefix] = made

    def behind(self, takes: Takes) -> DeadEnd | None:
        """The first dead end that the search met after these takes."""
        return self._behind.get(takes)


def find(problem: Problem, effort_steps: int) -> DeadEnds:
    """The dead ends within the effort; empty when a second search would leave traces."""
    dead_ends = DeadEnds()
    grows = any(row.grows for claim in problem.rows for request in claim for row in request)
    if grows or not problem.plain_counters or effort_steps <= 0:
        return dead_ends
    with suppress(StepsExhausted, AttemptAborted):
        search.run(problem, prune=False, steps_max=effort_steps, observer=dead_ends)
        dead_ends.is_whole = True
    return dead_ends


def usage_after(problem: Problem, takes: Takes) -> Usage:
    """The books after these takes."""
    usage = Usage(problem)
    rows = {row.index: row for claim in problem.rows for request in claim for row in request}
    for number, device in takes:
        usage.take(rows[number], device, must=rows[number].takes_all)
    return usage
