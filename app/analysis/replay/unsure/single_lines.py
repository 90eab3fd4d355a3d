"""Single writes of a run that a recording lacks, and whether later lines would show them.

A line shows the whole object, so it shows what a lost write before it did: unless it overwrites
that. A kubelet or a scheduler patches one condition again and again, and a lost patch between two
others leaves nothing behind but its version.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from app.analysis.replay.facts import (
    ConditionRemoved,
    ConditionSet,
    Fact,
    FieldChanged,
    Nominated,
    NominationEnded,
)
from app.analysis.replay.traces import Step


def missing_of(there: Sequence[Step], here: Sequence[Step]) -> Iterator[tuple[Step, Step | None]]:
    """The steps of a run about an object that the recording lacks, each with the recorded next one.

    Nothing if the recording has a step that the run lacks, or most in another order.
    """
    left = Counter(step.facts for step in there)
    missing, kept = [], []
    for step in here:
        if left[step.facts] > 0:
            left[step.facts] -= 1
            kept.append(step)
        else:
            missing.append((step, len(kept)))
    if left.total() or [step.facts for step in kept] != [step.facts for step in there]:
        return
    for step, place in missing:
        yield step, there[place] if place < len(there) else None


def is_overwritten(step: Step, after: Step) -> bool:
    """Whether the next step sets all that a step sets, and to something else."""
    parts = _parts(step)
    return parts is not None and parts <= (_parts(after) or set())


def is_apart(step: Step, after: Step) -> bool:
    """Whether the two steps change different fields, so that they may come in the other order."""
    parts, others = _parts(step), _parts(after)
    return parts is not None and others is not None and parts.isdisjoint(others)


def _parts(step: Step) -> set[tuple[str, str]] | None:
    """The fields that a step sets, by sort and name; None if it does anything else."""
    parts = [_part(fact) for fact in step.facts]
    return None if None in parts or not parts else {part for part in parts if part is not None}


def _part(fact: Fact) -> tuple[str, str] | None:
    match fact:
        case ConditionSet() | ConditionRemoved():
            return "condition", fact.type
        case Nominated() | NominationEnded():
            return "nomination", ""
        case FieldChanged():
            return "field", fact.path
        case _:
            return None
