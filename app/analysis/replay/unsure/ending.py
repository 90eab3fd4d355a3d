"""What the end of a recording leaves open: which controllers had begun to work by then."""

from collections.abc import Iterator

from app.analysis.replay.classes import End, seen_in_traces
from app.analysis.replay.differences import Compared, DifferenceKey
from app.analysis.replay.traces import Step, Trace
from app.analysis.verify.invariants.violations import LATE_AFTER


def unstarted(recorded: Trace, again: Trace, end: End) -> frozenset[str]:
    """The writers that the recording never shows, and that had nothing to do here until its end.

    In a control plane that has just started, a controller may begin to work after the end: the
    manager's instances elect a leader first. One that had work for longer is not among them.
    """
    if not end.is_of_recording:
        return frozenset()
    seen = {step.writer for step in _steps(recorded)}
    begun: dict[str, int] = {}
    for step in _steps(again):
        begun[step.writer] = min(step.time, begun.get(step.writer, step.time))
    return frozenset(
        writer
        for writer, at in begun.items()
        if writer not in seen and end.at - LATE_AFTER <= at <= end.at
    )


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
