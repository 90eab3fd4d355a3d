"""Hypotheses that share a run: the next ones, what they explain, and differences they cause."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from app.analysis.replay.classes import Judgement
from app.analysis.replay.differences import DifferenceKey, Sides
from app.analysis.replay.hypotheses.hypothesis import Hypothesis
from app.analysis.replay.hypotheses.proposals import Proposals
from app.analysis.replay.races import Races
from app.analysis.replay.traces import Trace

Chosen = Mapping[DifferenceKey, Hypothesis]
"""The hypotheses of one run, each with the difference that it may explain."""


class Untried:
    """The hypotheses about single objects that are still to try.

    What holds for another difference may explain a part of this one: the rest has new hypotheses.
    """

    def __init__(self, proposals: Proposals) -> None:
        self._proposals = proposals
        self._sides: dict[DifferenceKey, Sides] = {}
        self._left: dict[DifferenceKey, list[Hypothesis]] = {}

    def next(
        self, differences: Mapping[DifferenceKey, Sides], again: Trace
    ) -> dict[DifferenceKey, Hypothesis]:
        """The next hypothesis about each difference that has one left."""
        for key, sides in differences.items():
            if key not in self._sides or self._sides[key].again != sides.again:
                self._sides[key] = sides
                self._left[key] = list(self._proposals.local(sides, again))
        return {key: self._left[key][0] for key in differences if self._left[key]}

    def drop(self, failed: Iterable[DifferenceKey]) -> None:
        """Drops the hypotheses that failed; those that hold settle their differences."""
        for key in failed:
            self._left[key].pop(0)


def reasons(
    chosen: Chosen, unexplained: Collection[DifferenceKey], races: Races, again: Trace
) -> dict[DifferenceKey, Judgement]:
    """The judgements of these differences, and of others of the same pods and claims."""
    judged = {
        key: Judgement(reason=each.reason, detail=each.detail) for key, each in chosen.items()
    }
    by_subject = {key[1]: reason for key, reason in judged.items()}
    for key in unexplained:
        related = races.related(key[1], again) & by_subject.keys()
        if key not in judged and related:
            judged[key] = by_subject[min(related)]
    return judged


def spoilers(
    groups: Mapping[DifferenceKey, str], subjects: Collection[str], races: Races, again: Trace
) -> set[DifferenceKey]:
    """The hypotheses about objects that are related to the subjects of new differences.

    `groups` has the group of the difference of each hypothesis.
    """
    related = set(subjects)
    for uid in subjects:
        related |= races.related(uid, again)
    return {key for key, group in groups.items() if group in related}


def parts(
    chosen: Mapping[DifferenceKey, Hypothesis],
) -> Sequence[Mapping[DifferenceKey, Hypothesis]]:
    """Two parts of hypotheses with different changes; equal changes stay together."""
    wide = {each.change for each in chosen.values() if not each.is_local}
    first = {each.change: None for each in chosen.values() if each.is_local}
    if not (wide and first):
        changes = list(wide or first)
        first = dict.fromkeys(changes[: len(changes) // 2])
    return (
        {key: each for key, each in chosen.items() if each.change in first},
        {key: each for key, each in chosen.items() if each.change not in first},
    )
