"""Moments in a history for navigation: activity over time, and the nearest moments of each sort."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

import msgspec

from app.analysis.chronicle import Chronicle
from app.domain.log import EventType, Revision
from app.domain.values.timestamps import Instant
from projections import timeline_kinds

CONFLICT = EventType.CONFLICT_OBSERVED.value
"""The kind of an entry for a conflict of a paced replay with writes of clients."""

TROUBLES = frozenset(
    (
        "PodUnschedulable",
        "AttemptFailed",
        "KubeletFailed",
        "PodEvicted",
        timeline_kinds.WARNING,
        "GapObserved",
        CONFLICT,
        "NodeNotReady",
    )
)
"""The kinds of entries that need attention."""

DECISIONS = frozenset((timeline_kinds.DECISION,))

CLAIMS = frozenset(
    (
        "ClaimAllocated",
        "ClaimDeallocated",
        "ClaimReallocated",
        "ClaimReserved",
        "ClaimReleased",
    )
)
"""The kinds of entries at which devices are allocated or released."""


class Stretch(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of time: its last revision, and the number of entries of each sort.

    `findings` is the number of findings that began in it.
    """

    revision: Revision
    entries: int
    claims: int
    decisions: int
    troubles: int
    findings: int = 0


class Density(msgspec.Struct, frozen=True, kw_only=True):
    """The activity between two instants, in stretches of equal length."""

    begin: Instant
    end: Instant
    stretches: tuple[Stretch, ...]

    def place(self, time: Instant) -> float:
        """The position of an instant, from 0 at the beginning to 1 at the end."""
        length = self.end - self.begin
        return min(1.0, max(0.0, (time - self.begin) / length)) if length else 1.0


def density(chronicle: Chronicle, stretches: int, findings: Iterable[Revision] = ()) -> Density:
    """The activity over the whole history, as far as it has been read.

    `findings` are the revisions of findings besides broken invariants.
    """
    times = chronicle.times
    if not times:
        return Density(begin=Instant(0), end=Instant(0), stretches=())
    begin, end = times[0], times[-1]
    length = max(1, end - begin)
    ends = [
        bisect_right(times, begin + length * number // stretches)
        for number in range(1, stretches + 1)
    ]
    ends[-1] = len(times)
    claims = _counts(chronicle, CLAIMS, ends)
    decisions = _counts(chronicle, DECISIONS, ends)
    troubles = _counts(chronicle, TROUBLES, ends)
    broken = [each.begin.revision for each in chronicle.violations(until=chronicle.revision)]
    marks = [0] * len(ends)
    for revision in {*broken, *findings}:
        # Findings after the last entry belong to the last stretch.
        marks[min(bisect_left(ends, chronicle.until(revision)), len(ends) - 1)] += 1
    made = []
    first = 0
    for place, last in enumerate(ends):
        made.append(
            Stretch(
                revision=chronicle.revisions[last - 1] if last else Revision(0),
                entries=last - first,
                claims=claims[place],
                decisions=decisions[place],
                troubles=troubles[place],
                findings=marks[place],
            )
        )
        first = last
    return Density(begin=begin, end=end, stretches=tuple(made))


def nearest(
    chronicle: Chronicle, revision: Revision, kinds: Iterable[str] | None = None
) -> tuple[Revision, Revision]:
    """The revisions of the last entry before and of the first after; 0 where there is none.

    Considers all entries, or those of some kinds.
    """
    if kinds is None:
        return around(chronicle, revision, range(len(chronicle.revisions)))
    sorts = [around(chronicle, revision, chronicle.numbers(kind=kind) or ()) for kind in kinds]
    earlier = max((before for before, _ in sorts), default=Revision(0))
    later = min((after for _, after in sorts if after), default=Revision(0))
    return earlier, later


def around(
    chronicle: Chronicle, revision: Revision, numbers: Sequence[int]
) -> tuple[Revision, Revision]:
    """Like `nearest`, for the entries with these numbers."""
    revisions = chronicle.revisions
    before = bisect_left(numbers, chronicle.until(Revision(revision - 1)))
    after = bisect_left(numbers, chronicle.until(revision))
    return (
        revisions[numbers[before - 1]] if before else Revision(0),
        revisions[numbers[after]] if after < len(numbers) else Revision(0),
    )


def _counts(chronicle: Chronicle, kinds: Iterable[str], ends: list[int]) -> list[int]:
    """The number of entries of the kinds in each stretch."""
    counts = [0] * len(ends)
    for kind in kinds:
        numbers = chronicle.numbers(kind=kind) or ()
        first = 0
        for place, end in enumerate(ends):
            last = bisect_left(numbers, end)
            counts[place] += last - first
            first = last
    return counts
