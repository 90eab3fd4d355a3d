"""The analysis of a problem before its search: traces, aborts, classes of devices.

`pruning` uses it to cut branches; the proof that each cut is sound is there.
"""

from collections.abc import Sequence

from app.domain.allocation import bounds
from app.domain.allocation.bounds import CounterGroup
from app.domain.allocation.constraints import Facts
from app.domain.allocation.features import AllocatorVariant
from app.domain.allocation.problem import Problem, RequestRow


class Analysis:
    """The analysis of a problem; computed once, at the first failure of its search.

    Each list has an entry per row, about the search from that row on: `clean` when no failed
    attempt can leave a trace, `clean_but_bookings` when none can except by quirk q1, `bounds_hold`
    when none can abort, `exchange_holds` when like devices may be exchanged, `relevant` the devices
    that matter, `later_in_claim` the requests that follow. With `outlasting` none of this is known.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self.requests = problem.rows
        self._rows = [row for claim in problem.rows for request in claim for row in request]
        self.outlasting = _outlast(problem, self._rows)
        self._groups: dict[tuple[int, int], dict[Facts, int] | None] = {}
        self._alike: dict[object, int] = {}
        self._classes: list[object] = []
        self._counter_groups: tuple[CounterGroup, ...] | None = None
        self.relevant: list[int] = []
        self.bounds_hold: list[bool] = []
        self.exchange_holds: list[bool] = []
        self.later_in_claim: list[list[list[RequestRow]]] = []
        self.clean: list[bool] = []
        self.clean_but_bookings: list[bool] = []
        if not self.outlasting:
            bookings = _booking_rows(problem, self._rows)
            self._look_ahead(bookings, _tracing_rows(problem, self._rows))

    def rows_from(self, row: RequestRow) -> Sequence[RequestRow]:
        """The row and all rows after it: later requests, and later alternatives to the row."""
        return self._rows[row.index :]

    def alike(self, device: int) -> int:
        """The devices in the same class as `device`."""
        if not self._classes:
            self._classify()
        return self._alike[self._classes[device]]

    def groups(self, claim: int, number: int) -> dict[Facts, int] | None:
        """The devices per attribute value; None unless the constraint requires only equality."""
        known = self._groups.get((claim, number), False)
        if known is not False:
            assert known is None or isinstance(known, dict)
            return known
        constraint = self._problem.constraint(claim, number)
        groups: dict[Facts, int] | None = {}
        assert groups is not None
        for index, facts in enumerate(self._problem.facts[claim][number]):
            if facts is None:
                continue
            if not _is_plain(facts):
                groups = None
                break
            groups[facts] = groups.get(facts, 0) | 1 << index
        if not constraint.matching:
            groups = None
        self._groups[claim, number] = groups
        return groups

    def counter_groups(self) -> tuple[CounterGroup, ...]:
        """The groups of devices that draw from the same counter sets."""
        if self._counter_groups is None:
            self._counter_groups = bounds.groups_of_counters(self._problem)
        return self._counter_groups

    def _look_ahead(self, bookings: set[int], tracing: set[int]) -> None:
        """Computes the lists per row: relevant devices, aborts, later rows."""
        problem = self._problem
        relevant, aborts, exchange, clean, nearly = 0, False, True, True, True
        for claim in reversed(problem.rows):
            later: list[list[RequestRow]] = []
            for request in reversed(claim):
                behind, behind_aborts, behind_exchange = relevant, aborts, exchange
                behind_clean, behind_nearly = clean, nearly
                for row in reversed(request):
                    lists = row.takes_all and bool(row.constraints)
                    may_abort = bool(row.faults) or bool(row.postponed) or lists
                    relevant |= row.candidates
                    aborts = aborts or may_abort
                    exchange = exchange and not lists
                    self.relevant.append(behind | row.candidates)
                    self.bounds_hold.append(not (behind_aborts or may_abort))
                    self.exchange_holds.append(behind_exchange)
                    self.later_in_claim.append(list(later))
                    traced = row.index in tracing
                    leaking = traced or row.index in bookings
                    self.clean.append(behind_clean and not leaking)
                    self.clean_but_bookings.append(behind_nearly and not traced)
                    clean, nearly = clean and not leaking, nearly and not traced
                later.append(request)
        for listing in (
            self.relevant,
            self.bounds_hold,
            self.exchange_holds,
            self.later_in_claim,
            self.clean,
            self.clean_but_bookings,
        ):
            listing.reverse()

    def _classify(self) -> None:
        problem = self._problem
        view = problem.view
        for index, device in enumerate(view.devices):
            bit = 1 << index
            rows = tuple(
                (
                    bool(row.candidates & bit),
                    bool(row.tainted & bit),
                    row.rooms.get(index),
                    row.faults.get(index) is not None,
                )
                for row in self._rows
            )
            facts = tuple(
                constraint_facts[index] for claim in problem.facts for constraint_facts in claim
            )
            counters = (view.pool_index[index], device.consumes) if device.consumes else None
            status = (problem.dedicated & bit, problem.held & bit, problem.multi & bit)
            self._classes.append((rows, facts, counters, tuple(map(bool, status))))
        for index, number in enumerate(self._classes):
            self._alike[number] = self._alike.get(number, 0) | 1 << index


def _outlast(problem: Problem, rows: Sequence[RequestRow]) -> bool:
    """Whether the search enlarges requests (quirk q20), an effect that persists after it.

    Also true where an amount is negative: a device may have room only after another was taken, so
    more is feasible than the bounds allow. Also true without quirk q9 when admin rows exist: the
    devices of one attempt then need not differ, but the bounds rely on that. Also true without q18
    when there are alternatives: traces then end with the alternative, but remembered failures rely
    on traces that only grow.
    """
    quirks = problem.quirks
    return any(
        row.grows
        or row.lowers
        or (row.admin and not quirks.q9)
        or (row.request.alternative is not None and not quirks.q18)
        for row in rows
    )


def _booking_rows(problem: Problem, rows: Sequence[RequestRow]) -> set[int]:
    """The rows in which a refused device may leave its counters booked (quirk q1)."""
    if not problem.quirks.q1:
        return set()
    consuming = _consuming(problem)
    return {
        row.index
        for row in rows
        if row.candidates & consuming
        and (row.constraints or row.candidates & consuming & row.tainted)
    }


def _consuming(problem: Problem) -> int:
    """The devices whose counters are booked."""
    return problem.consuming if problem.features.partitionable_devices else 0


def _tracing_rows(problem: Problem, rows: Sequence[RequestRow]) -> set[int]:
    """The rows in which a failed attempt can leave another trace that affects later attempts.

    Conservative: a row is included when its devices make a trace possible.
    """
    quirks = problem.quirks
    numbers: set[int] = set()
    consuming = _consuming(problem)
    for row in rows:
        shares = row.candidates & problem.multi
        if (shares & consuming and (quirks.q2 or quirks.q7 or quirks.q17)) or (
            row.takes_all and shares and quirks.q8
        ):
            numbers.add(row.index)
    sets = problem.features.list_attributes and problem.variant is AllocatorVariant.EXPERIMENTAL
    for claim, plan in enumerate(problem.plans):
        for number, constraint in enumerate(plan.constraints):
            concerned = [row for row in rows if row.claim == claim and number in row.constraints]
            if not constraint.matching:
                if quirks.q6:
                    numbers.update(row.index for row in concerned if row.count > 1)
            elif sets and quirks.q5 and _has_wide(problem, concerned, number):
                numbers.update(row.index for row in concerned)
    return numbers


def _has_wide(problem: Problem, concerned: Sequence[RequestRow], number: int) -> bool:
    """Whether a device of the rows has several values, so that intersections can narrow."""
    mask = 0
    for row in concerned:
        mask |= row.candidates
    return any(
        facts is not None
        and mask >> index & 1
        and facts.values is not None
        and len(facts.values[1]) > 1
        for index, facts in enumerate(
            problem.facts[concerned[0].claim][number] if concerned else ()
        )
    )


def _is_plain(facts: Facts) -> bool:
    """Whether the attribute is one scalar, so that matching is equality."""
    return len(facts.scalars) == 1 and facts.values is not None and len(facts.values[1]) == 1
