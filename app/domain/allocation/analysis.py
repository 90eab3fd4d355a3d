"""What can be said of a problem before it is searched: traces, aborts, classes of devices.

`pruning` cuts branches on the strength of this; what makes each cut sound is proven there.
"""

from collections.abc import Sequence

from app.domain.allocation.constraints import Facts
from app.domain.allocation.features import Variant
from app.domain.allocation.problem import Problem, Row


class Analysis:
    """What a problem allows; computed once, with the first failure of its search.

    Lists have an entry per row, about the search from that row on: `clean` when no failed attempt
    can leave a trace, `bounds_hold` when none can abort, `exchange_holds` when like devices may be
    exchanged, `relevant` the devices that matter, `later_in_claim` the requests that follow. With
    `outlasting` nothing of this is known.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self.requests = problem.rows
        self._rows = [row for claim in problem.rows for request in claim for row in request]
        self.outlasting = _outlast(problem, self._rows)
        self._groups: dict[tuple[int, int], dict[Facts, int] | None] = {}
        self._alike: dict[object, int] = {}
        self._classes: list[object] = []
        self.relevant: list[int] = []
        self.bounds_hold: list[bool] = []
        self.exchange_holds: list[bool] = []
        self.later_in_claim: list[list[list[Row]]] = []
        self.clean: list[bool] = []
        if not self.outlasting:
            self._look_ahead(_tracing_rows(problem, self._rows))

    def alike(self, device: int) -> int:
        """The devices of the class of `device`."""
        if not self._classes:
            self._classify()
        return self._alike[self._classes[device]]

    def groups(self, claim: int, number: int) -> dict[Facts, int] | None:
        """The devices per attribute value, None unless equality is all that the constraint asks."""
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

    def _look_ahead(self, tracing: set[int]) -> None:
        """Per row, what holds from it on: devices that matter, aborts, later rows."""
        problem = self._problem
        relevant, aborts, exchange, clean = 0, False, True, True
        for claim in reversed(problem.rows):
            later: list[list[Row]] = []
            for request in reversed(claim):
                behind, behind_aborts, behind_exchange = relevant, aborts, exchange
                behind_clean = clean
                for row in reversed(request):
                    may_abort = bool(row.faults) or (row.takes_all and bool(row.constraints))
                    relevant |= row.candidates
                    aborts = aborts or may_abort
                    exchange = exchange and not (row.takes_all and bool(row.constraints))
                    self.relevant.append(behind | row.candidates)
                    self.bounds_hold.append(not (behind_aborts or may_abort))
                    self.exchange_holds.append(behind_exchange)
                    self.later_in_claim.append(list(later))
                    self.clean.append(behind_clean and row.index not in tracing)
                    clean = clean and row.index not in tracing
                later.append(request)
        for listing in (
            self.relevant,
            self.bounds_hold,
            self.exchange_holds,
            self.later_in_claim,
            self.clean,
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
            facts = tuple(found[index] for claim in problem.facts for found in claim)
            counters = (view.pool_index[index], device.consumes) if device.consumes else None
            status = (problem.dedicated & bit, problem.held & bit, problem.multi & bit)
            self._classes.append((rows, facts, counters, tuple(map(bool, status))))
        for index, found in enumerate(self._classes):
            self._alike[found] = self._alike.get(found, 0) | 1 << index


def _outlast(problem: Problem, rows: Sequence[Row]) -> bool:
    """Whether the search enlarges requests (quirk q20), which outlasts it.

    Also true without quirk q9 where admin rows exist: then devices of one claim need not differ,
    which the bounds rely on.
    """
    return any(row.grows or (row.admin and not problem.quirks.q9) for row in rows)


def _tracing_rows(problem: Problem, rows: Sequence[Row]) -> set[int]:
    """The rows of which a failed attempt can leave a trace that later ones see.

    Conservative: a row is listed when its devices make a trace possible, whether or not it happens.
    """
    quirks = problem.quirks
    found: set[int] = set()
    consuming = problem.consuming if problem.features.partitionable_devices else 0
    for row in rows:
        counted = row.candidates & consuming
        if (
            (counted and quirks.q1 and (row.constraints or counted & row.tainted))
            or (counted & problem.multi and (quirks.q2 or quirks.q7 or quirks.q17))
            or (row.takes_all and row.candidates & problem.multi and quirks.q8)
        ):
            found.add(row.index)
    sets = problem.features.list_attributes and problem.variant is Variant.EXPERIMENTAL
    for claim, plan in enumerate(problem.plans):
        for number, constraint in enumerate(plan.constraints):
            concerned = [row for row in rows if row.claim == claim and number in row.constraints]
            if not constraint.matching:
                if quirks.q6:
                    found.update(row.index for row in concerned if row.count > 1)
            elif sets and quirks.q5 and _has_wide(problem, concerned, number):
                found.update(row.index for row in concerned)
    return found


def _has_wide(problem: Problem, concerned: Sequence[Row], number: int) -> bool:
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
