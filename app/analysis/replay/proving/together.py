"""Hypotheses that share a run: the differences that they explain, and those that they cause."""

from collections.abc import Collection, Mapping

from app.analysis.replay.classes import Judgement
from app.analysis.replay.differences import DifferenceKey
from app.analysis.replay.hypotheses import Hypothesis
from app.analysis.replay.races import Races
from app.analysis.replay.traces import Trace

Chosen = Mapping[DifferenceKey, Hypothesis]
"""The hypotheses of one run, each with the difference that it may explain."""


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
