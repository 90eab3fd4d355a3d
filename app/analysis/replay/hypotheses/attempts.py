"""Hypotheses about the attempts of a pod."""

from collections.abc import Iterator

from app.analysis.replay import tolerances
from app.analysis.replay.authors import SCHEDULER
from app.analysis.replay.classes import DifferenceClass
from app.analysis.replay.differences import PLACEMENTS, Sides
from app.analysis.replay.facts import is_failed_attempt, is_skip, meets_claim_in_flight
from app.analysis.replay.hypotheses.hypothesis import Hypothesis
from app.analysis.replay.traces import Step, Trace
from app.analysis.replay.writers import short_name

SCHEDULER_NAME = short_name(SCHEDULER)

_TRIED = (
    ("tried", "the pod was tried at the instant of each recorded attempt"),
    ("apart", "the pod was tried once more than its reports show"),
    (
        "apart+tried",
        "the pod was tried at each recorded attempt, and once more than its reports show",
    ),
    (
        "tried+repeated",
        "the pod was tried at each recorded attempt, and a repeated report was sent when recorded",
    ),
)
"""Fields of a variant that change the attempts of a pod, and the details of their hypotheses."""


def of_pod(sides: Sides, uid: str, recorded: Trace, *, is_apart: bool) -> Iterator[Hypothesis]:
    """Hypotheses about when a pod was tried.

    With `is_apart`, only its instant assigns one of the pod's conditions to an attempt.
    """
    theirs, ours = list(sides.facts("recorded")), list(sides.facts("again"))
    if any(is_skip(fact) for fact in theirs):
        yield Hypothesis(
            reason=DifferenceClass.TIMING,
            detail="the pod was tried between the two revisions of its removal",
            field="skipped",
            target=uid,
        )
    if is_tried_more(sides):
        for name, detail in _TRIED:
            if name.startswith("apart") and not is_apart:
                continue
            yield Hypothesis(
                reason=_reason_of_attempts(sides), detail=detail, field=name, target=uid
            )
        if sides.aspect not in PLACEMENTS and all(map(is_failed_attempt, ours)):
            yield Hypothesis(
                reason=_reason_of_attempts(sides),
                detail="the pod was tried at each recorded attempt, and at no other",
                field="tried+untried",
                target=uid,
            )
    is_failure = not theirs and ours and all(is_failed_attempt(fact) for fact in ours)
    if is_failure and not _is_passed_over(sides, uid, recorded):
        yield Hypothesis(
            reason=_reason_of_attempts(sides),
            detail="the pod was not tried when the recording shows no attempt",
            field="untried",
            target=uid,
        )


def is_tried_more(sides: Sides) -> bool:
    """Whether only the recording has a failed attempt."""
    return any(is_failed_attempt(fact) and not is_skip(fact) for fact in sides.facts("recorded"))


def _reason_of_attempts(sides: Sides) -> DifferenceClass:
    only = list(sides.facts())
    if any(meets_claim_in_flight(fact) for fact in only):
        return DifferenceClass.IN_FLIGHT
    others = {str(text) for text in (sides.again if sides.only_recorded else sides.recorded)}
    is_repeated = any(step.text in others for step in (*sides.only_recorded, *sides.only_again))
    return DifferenceClass.RACE if is_repeated else DifferenceClass.TIMING


def _is_passed_over(sides: Sides, uid: str, recorded: Trace) -> bool:
    """Whether a pod was never tried while it was, and one that came later was.

    Parity: controllers.md 4.1, the queue gives pods of one priority in the order in which they came
    into it. So a scheduler that tries the younger one has taken the older one before.
    """
    if any(map(_is_scheduler, (*recorded.of_pod[uid], *recorded.said[uid]))):
        return False
    since = min(step.time for step in sides.only_again) + tolerances.TABLE.act_after
    until = recorded.removed.get(uid)
    return any(
        steps[0].time > since
        and any(_is_scheduler(step) and (until is None or step.time < until) for step in steps)
        and recorded.schedulers.get(other) == recorded.schedulers.get(uid)
        and recorded.priorities.get(other) == recorded.priorities.get(uid)
        for other, steps in list(recorded.of_pod.items())
        if steps
    )


def _is_scheduler(step: Step) -> bool:
    return step.writer == SCHEDULER_NAME
