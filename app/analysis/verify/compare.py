"""Comparison of recorded values with recomputed ones: first difference, tallies, examples.

Values only; everything can be converted to JSON for reports.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, assert_never

from app.analysis.verify.excuses import Excuse
from app.domain.values.json_tree import JsonObject

EXAMPLES_MAX = 20
"""The number of differences of each kind that a tally keeps; all are counted."""


class ComparisonResult(StrEnum):
    """The result of one comparison.

    `CONCURRENT` is the same under the assumption that allocations which were written a little later
    had already been chosen, that releases or changes of devices had not been seen yet, or that pods
    which were deleted meanwhile had devices: the recording does not show which. `EFFECT` is an
    allocation that was compared as the effect of a decision of ours.
    """

    SAME = "same"
    EFFECT = "compared as effects"
    CONCURRENT = "same if others were in flight"
    DIFFERENT = "different"
    NOT_COMPARABLE = "not comparable"


class DifferenceKind(StrEnum):
    """The meaning of a difference for the recorded decision.

    `OTHER_CHOICE` is an allocation that keeps every rule where redra would choose other devices,
    `VIOLATION` one that breaks a rule. `DIFFERENT` says neither: a decision or effect of redra, or
    an allocation that cannot be judged alone.
    """

    OTHER_CHOICE = "other choice"
    VIOLATION = "violation"
    DIFFERENT = "different"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The first place where two trees differ, with both trees.

    `subject` is the object of the decision, `path` the place (`summary.reasons[2].count`),
    `recorded` and `again` the two values there; a missing value is None. `broken` are the rules
    that a violation breaks, as sentences, or another choice, if known issues may break them.
    `objects` are the objects that were written.
    """

    revision: int
    subject: str
    path: str
    recorded: Any
    again: Any
    recorded_tree: Any
    again_tree: Any
    kind: DifferenceKind = DifferenceKind.DIFFERENT
    broken: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()

    @property
    def judgement(self) -> str:
        """The words about the recorded value; empty if nothing but the difference is known."""
        match self.kind:
            case DifferenceKind.OTHER_CHOICE:
                if self.broken:
                    return (
                        "another choice than redra's, which only a known issue may allow: "
                        f"{'; '.join(self.broken)}"
                    )
                return "allowed, but another choice than redra's"
            case DifferenceKind.VIOLATION:
                return f"violates: {'; '.join(self.broken)}"
            case DifferenceKind.DIFFERENT:
                return ""
        assert_never(self.kind)

    def to_json(self) -> JsonObject:
        """The difference as JSON for reports."""
        return {
            "revision": self.revision,
            "subject": self.subject,
            "path": self.path,
            "recorded": self.recorded,
            "again": self.again,
            "recordedTree": self.recorded_tree,
            "againTree": self.again_tree,
            "kind": self.kind.value,
            "broken": list(self.broken),
            "judgement": self.judgement,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonCounts:
    """The number of comparisons per result, and examples of differences.

    `reasons` counts, by reason and author, why something was not comparable. `authors` counts the
    authors of the compared objects that were not written by redra's controllers. `kinds` counts
    the differences by kind. `excuses` are of agreements that are still to be judged together.
    """

    counts: Mapping[ComparisonResult, int]
    differences: tuple[Difference, ...]
    reasons: Mapping[str, Mapping[str, int]]
    authors: Mapping[str, int] = field(default_factory=dict)
    kinds: Mapping[DifferenceKind, int] = field(default_factory=dict)
    excuses: tuple[Excuse, ...] = ()

    @property
    def agrees(self) -> bool:
        """True when nothing differs."""
        return not self.counts.get(ComparisonResult.DIFFERENT, 0)

    @property
    def is_complete(self) -> bool:
        """True when everything could be compared."""
        return not self.counts.get(ComparisonResult.NOT_COMPARABLE, 0)

    @property
    def total(self) -> int:
        """The number of comparisons that were tried."""
        return sum(self.counts.values())

    def to_json(self) -> JsonObject:
        """The counts as JSON for reports: every result with its count, in a fixed order."""
        return {
            "counts": {verdict.value: self.counts.get(verdict, 0) for verdict in ComparisonResult},
            "differences": [difference.to_json() for difference in self.differences],
            "differencesByKind": {kind.value: self.kinds.get(kind, 0) for kind in DifferenceKind},
            "authors": dict(sorted(self.authors.items())),
            "notComparable": {
                reason: dict(sorted(authors.items()))
                for reason, authors in sorted(self.reasons.items())
            },
        }


@dataclass(slots=True)
class Tally:
    """Counts the results of comparisons as they arrive."""

    counts: Counter[ComparisonResult] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)
    reasons: dict[str, Counter[str]] = field(default_factory=dict)
    authors: Counter[str] = field(default_factory=Counter)
    kinds: Counter[DifferenceKind] = field(default_factory=Counter)
    excuses: list[Excuse] = field(default_factory=list)

    def same(self) -> None:
        """Count an agreement."""
        self.counts[ComparisonResult.SAME] += 1

    def effect(self) -> None:
        """Count an allocation that is compared as the effect of a decision."""
        self.counts[ComparisonResult.EFFECT] += 1

    def concurrent(self) -> None:
        """Count an agreement under the assumption of concurrency."""
        self.counts[ComparisonResult.CONCURRENT] += 1

    def different(self, difference: Difference) -> None:
        """Count a difference, and keep it if it is one of the first of its kind."""
        self.counts[ComparisonResult.DIFFERENT] += 1
        self.kinds[difference.kind] += 1
        if self.kinds[difference.kind] <= EXAMPLES_MAX:
            self.differences.append(difference)

    def not_comparable(self, reason: str, author: str) -> None:
        """Count an item that cannot be compared, by reason and author."""
        self.counts[ComparisonResult.NOT_COMPARABLE] += 1
        self.reasons.setdefault(reason, Counter())[author] += 1

    def result(self) -> ComparisonCounts:
        """The counts so far."""
        return ComparisonCounts(
            counts=dict(self.counts),
            differences=tuple(self.differences),
            reasons={reason: dict(authors) for reason, authors in self.reasons.items()},
            authors=dict(self.authors),
            kinds=dict(self.kinds),
            excuses=tuple(self.excuses),
        )


def first_of_each_kind(differences: Iterable[Difference]) -> tuple[Difference, ...]:
    """The differences that a tally keeps of these, in their order."""
    kinds: Counter[DifferenceKind] = Counter()
    kept = []
    for difference in differences:
        kinds[difference.kind] += 1
        if kinds[difference.kind] <= EXAMPLES_MAX:
            kept.append(difference)
    return tuple(kept)


def first_difference(recorded: Any, again: Any) -> tuple[str, Any, Any] | None:
    """The path and both values of the first difference; None when the trees are equal.

    Keys are compared in sorted order. Example: `{"a": [1, 2]}` and `{"a": [1, 3]}` differ at `a[1]`
    with 2 and 3.
    """
    difference = _difference(recorded, again, "")
    return None if difference is None else (difference[0].lstrip("."), difference[1], difference[2])


def _difference(recorded: Any, again: Any, path: str) -> tuple[str, Any, Any] | None:
    if isinstance(recorded, dict) and isinstance(again, dict):
        for key in sorted(recorded.keys() | again.keys()):
            if key not in recorded or key not in again:
                return f"{path}.{key}", recorded.get(key), again.get(key)
            difference = _difference(recorded[key], again[key], f"{path}.{key}")
            if difference is not None:
                return difference
        return None
    if isinstance(recorded, list) and isinstance(again, list):
        for index, (left, right) in enumerate(zip(recorded, again, strict=False)):
            difference = _difference(left, right, f"{path}[{index}]")
            if difference is not None:
                return difference
        if len(recorded) != len(again):
            index = min(len(recorded), len(again))
            left = recorded[index] if index < len(recorded) else None
            right = again[index] if index < len(again) else None
            return f"{path}[{index}]", left, right
        return None
    if type(recorded) is type(again) and recorded == again:
        return None
    return path, recorded, again
