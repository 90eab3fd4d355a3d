"""Reports that a recording lacks: a controller sends an Event once and goes on without an answer.

A client drops Events when its queue is full or a filter holds them back, so one may be missing
without a trace, its version included, and no decision rests on any. A controller that never gives a
report of a sort does not drop them, nor does a scheduler that reports nothing under its name.
"""

from collections.abc import Iterator
from itertools import groupby

from app.analysis.replay.authors import SCHEDULER
from app.analysis.replay.differences import Aspect, Sides
from app.analysis.replay.facts import EventSeen
from app.analysis.replay.traces import Step, Trace
from app.analysis.replay.writers import short_name

_SCHEDULER = short_name(SCHEDULER)
_NOBODY = ""
"""The writer of each Event of a watch stream, which names none."""

LOST_REPORT = "an Event may be lost: clients send Events at best effort, and nothing rests on them"


def lost_report(sides: Sides, recorded: Trace, again: Trace) -> str:
    """The reason why Events about an object that only a run has do not count, or empty.

    The recording has nothing but them, in their order, and Events of the same sorts about others.
    Where the run reports a sort about this object alone, the recording need not show another one.
    """
    if sides.aspect is not Aspect.SAID or not _is_part(sides, recorded):
        return ""
    if any(step.writer == _SCHEDULER for step in sides.only_again) and not _reports(
        recorded.schedulers.get(sides.uid), recorded
    ):
        return ""
    known = {sort for steps in recorded.said.values() for step in steps for sort in _sorts(step)}
    missing = {
        (writer, reason)
        for step in sides.only_again
        for writer, reason in _sorts(step)
        if known.isdisjoint(((writer, reason), (_NOBODY, reason)))
    }
    for step in sides.only_again:
        if _is_hushed_up(step, sides.uid, recorded, again) or _is_told(step, sides.uid, recorded):
            return ""
    others = (steps for uid, steps in again.said.items() if uid != sides.uid)
    made = {sort for steps in others for step in steps for sort in _sorts(step)}
    return LOST_REPORT if missing.isdisjoint(made) else ""


def _reports(scheduler: str | None, recorded: Trace) -> bool:
    """Whether the recording has any Event of the scheduler of this name."""
    return any(
        step.writer in (_SCHEDULER, _NOBODY)
        for uid, steps in recorded.said.items()
        if recorded.schedulers.get(uid) == scheduler
        for step in steps
    )


def _is_part(sides: Sides, recorded: Trace) -> bool:
    """Whether the recording has what the run has, in its order, without some of it.

    An Event without the line of its creation shows in a later one: when it was sent is not known.
    """
    if sides.only_recorded:
        return False
    here = iter(sides.again)
    there = (
        step.text
        for step in recorded.said.get(sides.uid, ())
        if step.revision not in recorded.unmade
    )
    return all(text in here for text, _ in groupby(there))


def _is_hushed_up(report: Step, uid: str, recorded: Trace, again: Trace) -> bool:
    """Whether a report is said again and again, and never in the recording.

    Of a lost Event the next one would be made anew.
    """
    there, here = (
        sum(step.text == report.text for step in trace.said.get(uid, ()))
        for trace in (recorded, again)
    )
    return here > 1 and not there


def _is_told(report: Step, uid: str, recorded: Trace) -> bool:
    """Whether the recording has the report, about an object of the same name that was gone."""
    key = recorded.keys.get(uid)
    return any(
        step.text == report.text and gone < step.time
        for other, gone in recorded.removed.items()
        if other != uid and recorded.keys.get(other) == key
        for step in recorded.said.get(other, ())
    )


def _sorts(step: Step) -> Iterator[tuple[str, str]]:
    """The controller and the reason of each report."""
    for fact in step.facts:
        if isinstance(fact, EventSeen):
            yield step.writer, fact.reason
