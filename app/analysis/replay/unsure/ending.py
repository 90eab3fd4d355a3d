"""The end of a recording: what controllers may not have done by then, or not begun to do."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from app.analysis.replay import tolerances
from app.analysis.replay.acts import Act, RefusedRequest
from app.analysis.replay.authors import SCHEDULER
from app.analysis.replay.classes import End, seen_in_traces
from app.analysis.replay.differences import Compared, DifferenceKey
from app.analysis.replay.lags import Waits
from app.analysis.replay.lateness import Process
from app.analysis.replay.traces import Step, Trace
from app.analysis.replay.writers import MANAGED, short_name
from app.analysis.verify.invariants.violations import IN_FLIGHT, LATE_AFTER
from app.domain.values.timestamps import Instant

_SCHEDULER = short_name(SCHEDULER)
_MANAGED = frozenset(short_name(user) for user in MANAGED)


def queued_since(
    acts: Iterable[Act], refusals: Iterable[RefusedRequest], end: Instant
) -> Mapping[str, Instant]:
    """By writer, since when a request may have waited for its client's rate limit at `end`.

    Clients that sent nothing shortly before are left out: none of their requests waited.
    """
    return {
        short_name(user): Waits((), instants).longest(end)
        for user, instants in _sent(acts, refusals).items()
        if instants[-1] >= end - tolerances.TABLE.sure_after
    }


def undone_since(
    acts: Iterable[Act],
    refusals: Iterable[RefusedRequest],
    end: Instant,
    processes: Mapping[str, Process],
) -> Mapping[str, Instant]:
    """By writer, since when what was due may be undone at the end; `processes` are those of users.

    An act that comes soon after the end would not be too late (`late_acts`): its process has shown
    nothing of itself, or its controller has done nothing else.
    """
    sent = _sent(acts, refusals)
    undone: dict[str, Instant] = {}
    for user, process in processes.items():
        alone = Process(sent.get(user, ()), is_led=process.is_led)
        since = (process.undone_since(end, LATE_AFTER), alone.undone_since(end, IN_FLIGHT))
        undone[short_name(user)] = min(since)
    return undone


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


def absent(recorded: Trace, again: Trace, end: End) -> frozenset[str]:
    """The scheduler, if it had work in a history of redra's own and is nowhere in it.

    Each of its attempts leaves a decision or an Event there. Only `redra up --without` leaves it
    out in this way: of a controller that was switched off, the log says so.
    """
    due = (again.due_at(step) for step in _steps(again) if step.writer == _SCHEDULER)
    had_work = min(due, default=end.at) < end.at - LATE_AFTER
    return frozenset((_SCHEDULER,) if had_work else ()) - writers(recorded)


def _sent(
    acts: Iterable[Act], refusals: Iterable[RefusedRequest]
) -> Mapping[str, Sequence[Instant]]:
    """The times of requests of users that write for controllers here, in order."""
    sent: dict[str, list[Instant]] = defaultdict(list)
    for act in acts:
        sent[act.user].append(act.requested)
    for refusal in refusals:
        if refusal.user in sent:
            sent[refusal.user].append(refusal.at)
    return {user: sorted(instants) for user, instants in sent.items()}


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
