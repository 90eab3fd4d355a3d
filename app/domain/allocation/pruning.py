"""Cutting branches of the search that provably hold no solution.

The search must give the answer of the exhaustive first-fit search. A branch may therefore be cut
only if the exhaustive search would leave it with FAIL, without an abort, and without leaving a
trace that later branches could notice. A trace is the effect that a failed attempt leaves behind
with quirks q1, q2, q5, q6, q7, q8 (`analysis` finds the rows from which on none can arise); with
q3, q12 and q20 traces can persist beyond the node. From a row on from which no trace can arise, the
search is a plain backtracking over a feasibility predicate on *sets* of takes: counters,
constraints and capacity depend on the taken devices, not on their order. Then three cuts are sound.

**Interchangeable devices.** Two devices are of one class when every row of the problem treats them
alike: same candidate bits, same facts for every constraint, same counters of the same pool, same
rooms. Let device i have failed at a choice point and j > i be of its class, neither taken as a
whole, and both shared to the same amounts so far. Suppose the branch of j had a solution S. If S
does not contain i, replace j by i; otherwise exchange i and j. The result is again a solution.
Within the request at hand the devices after j are also after i, and other requests try devices from
the beginning, so the exhaustive search of the branch of i would have met it; it did not, so S does
not exist. An abort in the branch of j would by the same exchange have happened in that of i, except
where a list of mode All meets constraints: there the order of the list decides whether the device
is in use before the refusal; such rows switch the cut off.

**Remembered failures.** A choice point is described by its row, the number of devices chosen for
the row, the results of the claim so far, the devices still to be tried, and all state that this and
later rows can notice or change (`Usage.key`). Equal descriptions have equal futures, aborts
included. A choice that failed once is not tried again.

**Bounds.** Necessary conditions for a solution of the remaining rows: enough devices for this row
and for each later one of the claim under the constraints as they stand, enough of them together,
also for later claims (Hall's condition, by matching), enough of each counter, and enough devices
over all groups of counter sets (`bounds.groups_suffice`). A cut by a bound skips looking at
devices, so it is used only when no row from here on can abort.

Where devices have counters, the choice point of a branch that a bound has cut is asked for the same
bounds with the devices that it has left, and so on upwards. The devices that failed there are in no
solution of this choice point, so the ones that are left are all that a solution can take for the
row. A search thus leaves at once what a first take has made impossible, such as a whole card.

**Bookings that stay behind** (q1) end when there is nothing left to book: see `_are_spent`. From
then on, until takes that stood are undone, rows count as clean if nothing else leaves traces. What
failed before that failed with fewer bookings in its way, so it fails all the more.

**Where traces can arise**, one cut remains: remembered failures. If the description of a choice
point after its failure is what it was before, its branch left no trace, and the same description
will fail again without one. That also holds while it matters which pool is asked first (q3, q12):
the description counts the pools that have been. Nothing is cut where checking enlarges requests
(q20) or where an amount is negative.

LIMIT needs no care: it depends on the numbers of devices alone, so within one choice of
alternatives it comes for all devices or for none, and neither outcome holds a solution.
"""

from typing import TypeAlias

from app.domain.allocation import bounds
from app.domain.allocation.analysis import Analysis
from app.domain.allocation.bounds import Demand
from app.domain.allocation.problem import Problem, RequestRow
from app.domain.allocation.usage import Usage

MATCHING_AFTER = 24
"""Failures after which the costlier bounds (matching, counters) are computed."""

MEMORY_MAX = 200_000
"""The most failures remembered per search; further failures are not remembered."""

SPENT_AFTER = 48
"""Failures after which the pruner checks whether devices can still leave bookings behind."""

SPENT_EVERY = 4
"""The check runs at every so many choice points, and at each one once it has succeeded."""

TRACED_AFTER = 128
"""Failures after which choice points are remembered where traces can arise."""

TRACED_TRIED = 4_000
"""Choice points after which this stops if fewer than one in fifty has occurred again."""


Key: TypeAlias = tuple[int, int, int, int, object]
"""The row, devices chosen for it, results of the claim, devices still to be tried, state."""


class Pruner:
    """Decides which devices a search can skip. It becomes active at the first failure."""

    def __init__(self, problem: Problem, usage: Usage) -> None:
        self._problem = problem
        self._usage = usage
        self._failures = 0
        self._active = False
        self._failed: set[object] = set()
        self._settled = False
        self._spent_at: int | None = None
        self._spent_asked = 0
        self._was_spent = False
        self._traced_asked = 0
        self._traced_met = 0
        self._bound_cut = False
        self._analysis: Analysis | None = None

    def prepare(self, row: RequestRow, number: int, pending: int) -> tuple[int, Key | None] | None:
        """The devices to try and the description of the choice point; None if it must fail.

        `pending` are the remaining candidates; `number` devices of the row are already chosen.
        """
        if not self._active:
            return pending, None
        analysis = self._analysis
        assert analysis is not None
        usage = self._usage
        if not self._is_clean(row):
            return self._with_traces(row, number, pending)
        pending &= ~usage.blocked(row)
        if analysis.bounds_hold[row.index]:
            left = self._bounded(analysis, row, number, pending)
            if left is None:
                self._bound_cut = bool(self._problem.consuming)
                return None
            pending = left
        key = self._key(row, number, pending)
        return None if key in self._failed else (pending, key)

    def after_failure(self, row: RequestRow, number: int, device: int, pending: int) -> int:
        """The devices of `pending` that remain to be tried after the branch of `device` failed.

        `number` devices of the row are already chosen.
        """
        self._failures += 1
        if self._analysis is None:
            self._analysis = Analysis(self._problem)
            self._active = not self._analysis.outlasting
        if not self._active:
            return pending
        analysis, bound_cut = self._analysis, self._bound_cut
        self._bound_cut = False
        if not self._is_clean(row):
            return pending
        if analysis.exchange_holds[row.index]:
            pending &= ~self._usage.alike_now(device, analysis.alike(device))
        if bound_cut and analysis.bounds_hold[row.index]:
            left = self._bounded(
                analysis, row, number, pending & ~self._usage.blocked(row), thorough=True
            )
            self._bound_cut = left is None
            return left or 0
        return pending

    def failed(self, row: RequestRow, key: Key | None) -> None:
        """Remembers that a choice point failed, unless the failure has left a trace."""
        if key is None or len(self._failed) >= MEMORY_MAX:
            return
        assert self._analysis is not None
        if not self._analysis.clean[row.index]:
            state = self._usage.key(row.claim, self._analysis.relevant[row.index])
            if state != key[-1]:
                return
        self._failed.add(key)

    def _key(self, row: RequestRow, number: int, pending: int) -> Key:
        assert self._analysis is not None
        usage = self._usage
        state = usage.key(row.claim, self._analysis.relevant[row.index])
        return (row.index, number, len(usage.results[row.claim]), pending, state)

    def _is_clean(self, row: RequestRow) -> bool:
        """Whether no failed attempt from the row on can leave a trace in the current state."""
        analysis = self._analysis
        assert analysis is not None
        if not self._counters_settled():
            return False
        if analysis.clean[row.index]:
            return True
        if not analysis.clean_but_bookings[row.index] or self._failures < SPENT_AFTER:
            return False
        usage = self._usage
        if self._spent_at is not None and usage.lowest >= self._spent_at:
            return True
        self._spent_at = None
        self._spent_asked += 1
        if self._was_spent or self._spent_asked % SPENT_EVERY == 0:
            self._was_spent = self._are_spent(row)
            if self._was_spent:
                self._spent_at = usage.lowest = usage.depth
                return True
        return False

    def _are_spent(self, row: RequestRow) -> bool:
        """Whether none of the devices that could leave a booking behind can still be booked.

        A device leaves a booking behind (quirk q1) when it is refused for a taint or a constraint
        after its counters were booked. While the current takes stand, bookings only grow, so a
        device that cannot be booked now cannot be booked later. A device is also harmless when all
        constraints of the row accept it in any case, because they match a value that is already
        fixed.
        """
        analysis = self._analysis
        assert analysis is not None
        ledger = self._usage.ledger()
        checked = 0
        for later in analysis.rows_from(row):
            pending = later.candidates & self._problem.consuming
            if not later.constraints:
                pending &= later.tainted
            else:
                pending &= ~(self._accepted(later, row) & ~later.tainted)
            pending &= ~checked
            checked |= pending
            while pending:
                low = pending & -pending
                pending ^= low
                if ledger.may_book(low.bit_length() - 1):
                    return False
        return True

    def _accepted(self, later: RequestRow, row: RequestRow) -> int:
        """The devices that all constraints of a later row certainly accept."""
        if later.claim != row.claim:
            return 0
        accepted = -1
        states = self._usage.constraint_states(row.claim)
        analysis = self._analysis
        assert analysis is not None
        for number in later.constraints:
            groups = analysis.groups(row.claim, number)
            reference = states[number].reference()
            if groups is None or reference is None:
                return 0
            matching = 0
            for facts, mask in groups.items():
                if reference in (facts, facts.values):
                    matching |= mask
            accepted &= matching
        return accepted

    def _counters_settled(self) -> bool:
        """Whether the available counters no longer depend on which pool is read first."""
        if not self._settled:
            self._settled = self._problem.plain_counters or self._usage.ledger().is_settled(
                self._problem.counting_pools
            )
        return self._settled

    def _with_traces(
        self, row: RequestRow, number: int, pending: int
    ) -> tuple[int, Key | None] | None:
        """Applies remembered failures in long searches, the only cut when traces can arise."""
        if self._failures < TRACED_AFTER:
            return pending, None
        self._traced_asked += 1
        if self._traced_asked > TRACED_TRIED and self._traced_met * 50 < self._traced_asked:
            return pending, None
        key = self._key(row, number, pending)
        if key in self._failed:
            self._traced_met += 1
            return None
        return pending, key

    def _bounded(
        self,
        analysis: Analysis,
        row: RequestRow,
        number: int,
        pending: int,
        *,
        thorough: bool = False,
    ) -> int | None:
        """The devices that the bounds allow; None when no solution can remain.

        With `thorough` the costlier bounds are asked in any case.
        """
        usage = self._usage
        need = row.count - number
        pending &= ~row.tainted
        demands = [Demand(row=row, need=need, mask=pending)]
        for later in analysis.later_in_claim[row.index]:
            mask = 0
            for alternative in later:
                mask |= _open(usage, alternative)
            least = min(alternative.count for alternative in later)
            demands.append(Demand(row=later[0] if len(later) == 1 else None, need=least, mask=mask))
        for constraint_number, state in enumerate(usage.constraint_states(row.claim)):
            groups = analysis.groups(row.claim, constraint_number)
            if groups is not None:
                bounds.restrict(
                    demands, constraint_number, groups, state.reference(), self._problem.multi
                )
        pending = demands[0].mask
        if any(demand.mask.bit_count() < demand.need for demand in demands):
            return None
        if self._failures < MATCHING_AFTER:
            return pending
        if thorough or number == 0 or self._failures % 4 == 0:
            demands += self._of_later_claims(analysis, row)
            if any(demand.mask.bit_count() < demand.need for demand in demands):
                return None
            problem = self._problem
            if problem.multi:
                return pending if bounds.shares_suffice(demands, problem, usage) else None
            if not bounds.can_match(demands):
                return None
            if problem.consuming and not (
                bounds.counters_suffice(demands, problem, usage)
                and bounds.groups_suffice(demands, problem, usage, analysis.counter_groups())
            ):
                return None
        return pending

    def _of_later_claims(self, analysis: Analysis, row: RequestRow) -> list[Demand]:
        """The minimum demands of later claims; admin rows may share devices and are left out.

        Devices taken by an admin row of this claim are in use for later claims only with quirk q9.
        """
        if row.admin and not self._problem.quirks.q9:
            return []
        demands = []
        for claim in analysis.requests[row.claim + 1 :]:
            for request in claim:
                if any(alternative.admin for alternative in request):
                    continue
                mask = 0
                for alternative in request:
                    mask |= _open(self._usage, alternative)
                least = min(alternative.count for alternative in request)
                single = request[0] if len(request) == 1 else None
                demands.append(Demand(row=single, need=least, mask=mask))
        return demands


def _open(usage: Usage, row: RequestRow) -> int:
    """The devices that the row could still take, without tainted devices."""
    return row.candidates & ~(usage.blocked(row) | row.tainted)
