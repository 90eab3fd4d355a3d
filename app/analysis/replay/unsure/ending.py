"""The end of a recording: controllers that may not have begun to work by then."""

from collections.abc import Iterator

from app.analysis.replay.classes import End, seen_in_traces
from app.analysis.replay.differences import Compared, DifferenceKey
from app.analysis.replay.traces import Step, Trace
from app.analysis.replay.writers import MANAGED, short_name
from app.analysis.verify.invariants.violations import IN_FLIGHT, LATE_AFTER

_MANAGED = frozenset(short_name(user) for user in MANAGED)


def unstarted(recorded: Trace, again: Trace, end: End) -> frozenset[str]:
    """The writers that the recording never shows, and that had nothing to do here until its end.

    In a control plane that has just started, a controller may begin to work after the end: the
    manager's instances elect a leader first. Left out are controllers that had work for
    longer, and those whose manager was at work long before the end.
    """
    if not end.is_of_recording:
        return frozenset()
    seen = writers(recorded)
    managed = [step.time for step in _steps(recorded) if step.writer in _MANAGED]
    up = min(managed, default=end.at) + IN_FLIGHT
    begun: dict[str, int] = {}
    for step in _steps(again):
        due = again.due_at(step)
        begun[step.writer] = min(due, begun.get(step.writer, due))
    return frozenset(
        writer
        for writer, at in begun.items()
        if writer not in seen
        and end.at - LATE_AFTER <= at <= end.at
        and not (writer in _MANAGED and end.at > up)
    )


def writers(trace: Trace) -> frozenset[str]:
    """The writers of a trace, by the short names of their users."""
    return frozenset(step.writer for step in _steps(trace))


def undecided(compared: Compared, again: Trace, recorded: Trace, end: End) -> set[DifferenceKey]:
    """The differences of a run that the two traces alone do not explain."""
    return {
        key
        for key, sides in compared.different.items()
        if seen_in_traces(sides, recorded, again, end) is None
    }


def _steps(trace: Trace) -> Iterator[Step]:
    for steps in (*trace.writes.values(), *trace.said.values()):
        yield from steps
