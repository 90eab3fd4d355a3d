"""Cutting branches of the search that provably hold no solution.

The search must give the answer of the exhaustive first-fit search. A branch may therefore be cut
only if the exhaustive search would leave it with FAIL, without an abort, and without leaving a
trace that later branches could notice. Where failed attempts leave traces (quirks q1, q2, q3, q5,
q6, q7, q8, q20) nothing is cut at all; `leaves_traces` decides that from the problem alone. Without
traces the search is a plain backtracking over a feasibility predicate on *sets* of takes: counters,
constraints and capacity ask what is taken, not in which order. Then three cuts are sound.

**Interchangeable devices.** Two devices are of one class when every row of the problem treats them
alike: same candidate bits, same facts for every constraint, same counters of the same pool, same
rooms. Let device i have failed at a choice point and j > i be of its class, both untouched. Suppose
the branch of j had a solution S. If S does not contain i, replace j by i; otherwise exchange i and
j. The result is again a solution. Within the request at hand the devices after j are also after i,
and other requests try devices from the beginning, so the exhaustive search of the branch of i would
have met it; it did not, so S does not exist. An abort in the branch of j would by the same exchange
have happened in that of i, except where a list of mode All meets constraints: there the order of
the list decides whether the device is in use before the refusal; such rows switch the cut off.

**Remembered failures.** A choice point is described by its row, the number of devices chosen for
the row, the results of the claim so far, the devices still to be tried, and all state that devices
of this and later rows can notice (`Usage.key`). Equal descriptions have equal futures, aborts
included. What failed once is not tried again.

**Bounds.** Necessary conditions for a solution of the remaining rows: enough devices for this row
and for each later one of the claim under the constraints as they stand, enough of them together,
also for later claims (Hall's condition, by matching), and enough of each counter. A cut by a bound
skips looking at devices, so it is used only when no row from here on can abort.

LIMIT needs no care: it depends on the numbers of devices alone, so within one choice of
alternatives it comes for all devices or for none, and neither outcome holds a solution.
"""

from app.domain.allocation import bounds
from app.domain.allocation.bounds import Demand
from app.domain.allocation.constraints import Facts
from app.domain.allocation.features import Variant
from app.domain.allocation.problem import Problem, Row
from app.domain.allocation.usage import Usage

MATCHING_AFTER = 24
"""Failures after which the costlier bounds (matching, counters) are computed."""

MEMORY_MAX = 200_000
"""Failures remembered per search; when there are more, no further ones are."""


class Pruner:
    """Decides for one search what need not be tried. Wakes up with the first failure."""

    def __init__(self, problem: Problem, usage: Usage) -> None:
        self._problem = problem
        self._usage = usage
        self._failures = 0
        self._active = False
        self._failed: set[object] = set()
        self._analysis: _Analysis | None = None

    def prepare(self, row: Row, number: int, pending: int, start: int) -> tuple[int, object] | None:
        """The devices worth trying with the description of the choice point, or None.

        `pending` are the candidates from `start` on; `number` devices of the row are chosen.
        """
        if not self._active:
            return pending, None
        analysis = self._analysis
        assert analysis is not None
        usage = self._usage
        pending &= ~usage.blocked(row)
        if analysis.bounds_hold[row.index]:
            left = self._bounded(analysis, row, number, pending)
            if left is None:
                return None
            pending = left
        key = (
            row.index,
            number,
            len(usage.results[row.claim]),
            pending,
            usage.key(row.claim, analysis.relevant[row.index]),
        )
        if key in self._failed:
            return None
        return pending, key

    def after_failure(self, row: Row, device: int, pending: int) -> int:
        """What is worth trying of `pending` after the branch of `device` failed."""
        self._failures += 1
        if self._analysis is None:
            self._analysis = _Analysis(self._problem)
            self._active = not self._analysis.traces
        if not self._active or not self._analysis.exchange_holds[row.index]:
            return pending
        touched = self._usage.touched()
        if touched >> device & 1:
            return pending
        return pending & ~(self._analysis.alike(device) & ~touched)

    def failed(self, key: object) -> None:
        """Remember that a choice point failed."""
        if key is not None and len(self._failed) < MEMORY_MAX:
            self._failed.add(key)

    def _bounded(self, analysis: "_Analysis", row: Row, number: int, pending: int) -> int | None:
        """The devices that the bounds leave, None when no solution can be left."""
        usage = self._usage
        need = row.count - number
        pending &= ~row.tainted
        demands = [Demand(row=row, need=need, mask=pending)]
        for later in analysis.later_in_claim[row.index]:
            mask = 0
            for alternative in later:
                mask |= alternative.candidates & ~usage.blocked(alternative)
            least = min(alternative.count for alternative in later)
            demands.append(Demand(row=later[0] if len(later) == 1 else None, need=least, mask=mask))
        for constraint_number, state in enumerate(usage.constraint_states(row.claim)):
            groups = analysis.groups(row.claim, constraint_number)
            if groups is not None:
                bounds.restrict(demands, constraint_number, groups, state.key())
        pending = demands[0].mask
        if any(demand.mask.bit_count() < demand.need for demand in demands):
            return None
        if self._failures < MATCHING_AFTER:
            return pending
        if number == 0 or self._failures % 4 == 0:
            demands += self._of_later_claims(analysis, row)
            if any(demand.mask.bit_count() < demand.need for demand in demands):
                return None
            if not self._problem.multi and not bounds.can_match(demands):
                return None
            if self._problem.consuming and not bounds.counters_suffice(
                demands, self._problem, usage
            ):
                return None
        return pending

    def _of_later_claims(self, analysis: "_Analysis", row: Row) -> list[Demand]:
        """What later claims need at least; admin rows may share and are left out.

        What an admin row of the claim at hand takes is in use for later claims with quirk q9 only.
        """
        if row.admin and not self._problem.quirks.q9:
            return []
        found = []
        for claim in analysis.requests[row.claim + 1 :]:
            for request in claim:
                if any(alternative.admin for alternative in request):
                    continue
                mask = 0
                for alternative in request:
                    mask |= alternative.candidates & ~self._usage.blocked(alternative)
                least = min(alternative.count for alternative in request)
                single = request[0] if len(request) == 1 else None
                found.append(Demand(row=single, need=least, mask=mask))
        return found


class _Analysis:
    """What a problem allows; computed once, with the first failure of its search."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self.requests = problem.rows
        self._rows = [row for claim in problem.rows for request in claim for row in request]
        self.traces = leaves_traces(problem, self._rows)
        self._groups: dict[tuple[int, int], dict[Facts, int] | None] = {}
        self._alike: dict[object, int] = {}
        self._classes: list[object] = []
        self.relevant: list[int] = []
        self.bounds_hold: list[bool] = []
        self.exchange_holds: list[bool] = []
        self.later_in_claim: list[list[list[Row]]] = []
        if not self.traces:
            self._look_ahead()

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

    def _look_ahead(self) -> None:
        """Per row, what holds from it on: devices that matter, aborts, later rows."""
        problem = self._problem
        relevant, aborts, exchange = 0, False, True
        for claim in reversed(problem.rows):
            later: list[list[Row]] = []
            for request in reversed(claim):
                behind, behind_aborts, behind_exchange = relevant, aborts, exchange
                for row in reversed(request):
                    may_abort = bool(row.faults) or (row.takes_all and bool(row.constraints))
                    relevant |= row.candidates
                    aborts = aborts or may_abort
                    exchange = exchange and not (row.takes_all and bool(row.constraints))
                    self.relevant.append(behind | row.candidates)
                    self.bounds_hold.append(not (behind_aborts or may_abort))
                    self.exchange_holds.append(behind_exchange)
                    self.later_in_claim.append(list(later))
                later.append(request)
        for listing in (
            self.relevant,
            self.bounds_hold,
            self.exchange_holds,
            self.later_in_claim,
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


def leaves_traces(problem: Problem, rows: list[Row]) -> bool:
    """Whether a failed attempt can change what a later one sees.

    Conservative: true whenever the devices and rows make it possible, whether or not it happens.
    """
    quirks = problem.quirks
    if any(row.grows for row in rows) or not problem.plain_counters:
        return True
    if not quirks.q9 and any(row.admin for row in rows):
        return True  # no trace, but devices of one claim need no longer differ
    consuming = problem.consuming if problem.features.partitionable_devices else 0
    for row in rows:
        counted = row.candidates & consuming
        if counted and quirks.q1 and (row.constraints or counted & row.tainted):
            return True
        if counted & problem.multi and (quirks.q2 or quirks.q7 or quirks.q17):
            return True
        if row.takes_all and row.candidates & problem.multi and quirks.q8:
            return True
    sets = problem.features.list_attributes and problem.variant is Variant.EXPERIMENTAL
    for claim, plan in enumerate(problem.plans):
        for number, constraint in enumerate(plan.constraints):
            concerned = [row for row in rows if row.claim == claim and number in row.constraints]
            if not constraint.matching:
                if quirks.q6 and any(row.count > 1 for row in concerned):
                    return True
            elif sets and quirks.q5:
                mask = 0
                for row in concerned:
                    mask |= row.candidates
                for index, facts in enumerate(problem.facts[claim][number]):
                    if facts is not None and mask >> index & 1 and _is_wide(facts):
                        return True
    return False


def _is_wide(facts: Facts) -> bool:
    """Whether the attribute has several values, so that intersections can narrow."""
    return facts.values is not None and len(facts.values[1]) > 1


def _is_plain(facts: Facts) -> bool:
    """Whether the attribute is one scalar, so that matching is equality."""
    return len(facts.scalars) == 1 and facts.values is not None and len(facts.values[1]) == 1
