"""The reading of two histories for a comparison: from their divergence up to comparable ends."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeVar

from anyio import lowlevel

from app.analysis.diff import causes, compare, forks, outcomes, rivals
from app.analysis.diff.forks import ComparedFork, ForkReport
from app.analysis.diff.outcomes import EndReport
from app.analysis.diff.report import DiffReport
from app.analysis.diff.rivals import Contest
from app.analysis.diff.sides import DiffBounds, Side
from app.analysis.explain.pods import Steps
from app.analysis.recordings import recorded_gates
from app.domain.controllers import registry
from app.domain.errors import InputError
from app.domain.log import Event, EventType, HistoryId, HistoryInfo, ObjectKey, Revision
from app.domain.log.doubts import Doubt
from app.domain.log.event import EVENTS_PAGE
from app.domain.log.forks import INPUTS_END
from app.domain.objects import profile as profiles
from app.domain.objects.schema.structural import Schemas
from app.domain.values import timestamps
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from app.ports import EventLog
from app.service import moments, past_views, recorded_doubts
from app.service.forking import MadeFork, as_recorded
from app.service.replays.deciding.replay import DecidedAgain

ResultT = TypeVar("ResultT")


class ComparisonAspect(StrEnum):
    """The aspect that is compared."""

    DECISIONS = "decisions"
    OBJECTS = "objects"
    OUTCOMES = "outcomes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The request for a comparison. `events_max` bounds the events of one side.

    `schemas` define which notations of a value are equal, such as `5G` and `5000000000`.
    """

    by: ComparisonAspect
    schemas: Schemas
    bounds: DiffBounds = DiffBounds()
    events_max: int = 500_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """One side of a comparison: the history, and the moment where it ends, if one is given."""

    history: HistoryInfo
    moment: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSide:
    """One side with its end: it is read up to `revision`, which is at the instant `until`.

    `history` has the settings that count. `is_open` is whether no moment was given, so that what
    comes after the end may be read, too.
    """

    history: HistoryInfo
    revision: Revision
    until: Instant
    is_open: bool
    is_recorded: bool
    is_fork: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonPlan:
    """The input of a comparison: both sides, from the last common revision on.

    `shift` is subtracted from the instants of B. `doubts` are those of both histories.
    """

    a: PlannedSide
    b: PlannedSide
    common: Revision
    shift: int
    doubts: tuple[Doubt, ...]

    @property
    def events(self) -> int:
        """The number of events that are compared."""
        return self.a.revision + self.b.revision - 2 * self.common


async def compare_histories(
    log: EventLog, a: Ending, b: Ending, comparison: Comparison
) -> DiffReport | EndReport:
    """The differences of two histories. Raises InputError, RevisionTooLarge."""
    planned = await plan(log, a, b, comparison.by, events_max=comparison.events_max)
    return await carry_out(log, planned, comparison)


async def plan(
    log: EventLog, a: Ending, b: Ending, by: ComparisonAspect, *, events_max: int
) -> ComparisonPlan:
    """The input of a comparison. Raises InputError for too long histories, RevisionTooLarge.

    Where no moment is given, decisions, and two recordings, are compared up to the earlier of the
    ends. Histories without common events whose times do not overlap are compared from their
    beginnings.
    """
    infos = {info.id: info for info in await log.histories()}
    ends = [await _end(log, each) for each in (a, b)]
    common = _common(a.history, b.history, infos)
    common = Revision(min(common, *(revision for revision, _ in ends)))
    firsts = [await _first(log, each.history) for each in (a, b)]
    shift = 0
    is_apart = ends[0][1] < firsts[1] or ends[1][1] < firsts[0]
    if not common and is_apart:
        shift = firsts[1] - firsts[0]
    are_recordings = a.history.is_recorded and b.history.is_recorded
    is_timed = by is ComparisonAspect.DECISIONS or are_recordings
    if is_timed and not a.moment and not b.moment:
        ends = await _together(log, (a, b), ends, shift, common)
    left, right = [
        await moments.history_at(log, each.history, revision)
        for each, (revision, _) in zip((a, b), ends, strict=True)
    ]
    sides = [
        PlannedSide(
            history=shown,
            revision=revision,
            until=until,
            is_open=is_timed and not each.moment,
            is_recorded=each.history.is_recorded,
            is_fork=each.history.is_fork,
        )
        for each, shown, (revision, until) in zip(
            (a, b), (as_recorded(left, right), as_recorded(right, left)), ends, strict=True
        )
    ]
    for side in sides:
        _check_length(side, common, events_max)
    doubts = [await recorded_doubts.doubts_of(log, each.history) for each in (a, b)]
    return ComparisonPlan(
        a=sides[0],
        b=sides[1],
        common=common,
        shift=shift,
        doubts=tuple(dict.fromkeys((*doubts[0], *doubts[1]))),
    )


async def carry_out(
    log: EventLog, planned: ComparisonPlan, comparison: Comparison
) -> DiffReport | EndReport:
    """The differences of the histories of a plan, which are in this log."""
    events_max = comparison.events_max
    left = await _read(log, planned.a, planned.common)
    right = replace(await _read(log, planned.b, planned.common), shift=planned.shift)
    if planned.a.is_recorded and planned.b.is_recorded and not planned.common:
        left = await _beyond(log, planned.a, left, events_max)
        right = await _beyond(log, planned.b, right, events_max)
    elif planned.common:
        left = await _finishing(log, planned.a, left, events_max)
        right = await _finishing(log, planned.b, right, events_max)
    report = await _compared(left, right, comparison)
    if isinstance(report, EndReport):
        return report
    contests: list[Contest] = []
    for each, side in ((planned.a, left), (planned.b, right)):
        is_begun_here = each.is_fork and each.history.parent_revision == planned.common
        if is_begun_here and (report.changes or report.switches):
            contests += await drive(rivals.contests(side, comparison.bounds))
    return replace(report, doubts=planned.doubts, contests=tuple(contests))


async def report_of_fork(
    log: EventLog,
    parent: HistoryInfo,
    made: MadeFork,
    comparison: Comparison,
    compared: Callable[[ComparisonPlan], Awaitable[ComparedFork]] | None = None,
) -> ForkReport | None:
    """The report of a fork: the result of recorded inputs, and the decisions that differ.

    `compared` carries out a plan elsewhere; without it, the work is done here. None when no inputs
    continue in the fork.
    """
    continued, fork = made.continued, made.info
    if continued is None:
        return None
    diff, problem = None, ""
    try:
        sides = Ending(history=parent), Ending(history=fork)
        planned = await plan(log, *sides, comparison.by, events_max=comparison.events_max)
        if compared is not None:
            diff = await compared(planned)
        else:
            report = await carry_out(log, planned, comparison)
            assert isinstance(report, DiffReport), "decisions are compared"
            diff = forks.compared_of(report)
    except InputError as refusal:
        # The fork is finished; it stays when it is too long to be compared.
        problem = str(refusal)
    return ForkReport(
        source=parent.name,
        fork=fork.name,
        inputs=continued.inputs,
        unapplied=continued.unapplied,
        unlike=continued.unlike,
        switches=continued.switches,
        diff=diff,
        problem=problem,
    )


async def compare_again(
    log: EventLog,
    history: HistoryInfo,
    decided_as: HistoryInfo,
    again: DecidedAgain,
    comparison: Comparison,
) -> DiffReport | EndReport:
    """The differences when a history is decided again, with the settings of `decided_as`."""
    left = side_of(history, again.recorded, history.name)
    events = again.events
    if comparison.by is ComparisonAspect.DECISIONS:
        # Work in progress at the end of the history continues here, and is no difference.
        until = left.until + comparison.bounds.within
        events = [event for event in events if event.stamp.time <= until]
    right = side_of(decided_as, events, f"{history.name} decided again")
    right = replace(right, left_out=len(again.events) - len(events))
    report = await _compared(left, right, comparison)
    if isinstance(report, EndReport):
        return report
    causes.judge(report.differences, again.judged)
    doubts = await recorded_doubts.doubts_of(log, history)
    return replace(
        report,
        not_done=again.not_done,
        doubts=doubts,
        unexplained=causes.unexplained(report.differences),
    )


async def _compared(a: Side, b: Side, comparison: Comparison) -> DiffReport | EndReport:
    bounds = comparison.bounds
    match comparison.by:
        case ComparisonAspect.OUTCOMES:
            return await drive(outcomes.pods(a, b, bounds))
        case ComparisonAspect.OBJECTS:
            return await drive(outcomes.objects(a, b, comparison.schemas, bounds))
        case ComparisonAspect.DECISIONS:
            return await drive(compare.compare(a, b, bounds))


def side_of(info: HistoryInfo, events: Sequence[Event], name: str) -> Side:
    """A side of a comparison from events in memory."""
    settings = _settings(info, events)
    return Side(
        name=name,
        profile=profiles.from_settings(settings),
        options=registry.options_from(settings),
        events=events,
        revision=events[-1].revision if events else Revision(0),
        until=events[-1].stamp.time if events else Instant(0),
        was_decided_elsewhere=info.was_decided_elsewhere,
    )


def _settings(info: HistoryInfo, events: Iterable[Event]) -> JsonObject:
    """The settings of a history; with the gate of rules on for a cluster that served rules."""
    if recorded_gates.leave_rules_open(info.settings) and recorded_gates.hold_rules(events):
        return recorded_gates.served_rules(info.settings)
    return info.settings


async def same_moment(log: EventLog, moment: str, a: HistoryInfo, b: HistoryInfo) -> str:
    """The moment of history B that is the same as a moment of history A; empty: the end of B.

    A revision up to which both have the same events is the same in both. A later one is the
    number of another event in B, so the moment is the instant of A's event. In histories without
    common events whose times do not overlap, the time since their beginnings counts. Raises
    InputError, RevisionTooLarge.
    """
    if not moments.is_revision(moment):
        return moment
    revision = await moments.find_revision(log, a, moment)
    common = _common(a, b, {info.id: info for info in await log.histories()})
    if revision <= common:
        return moment
    instant = await moments.time_of(log, a, revision)
    ends = [(await log.head(each.id)).time for each in (a, b)]
    if common:
        # Events of one instant are a microsecond apart in a fork, see `_together`.
        instant = Instant(instant + revision - common)
    else:
        firsts = [await _first(log, each) for each in (a, b)]
        if ends[0] < firsts[1] or ends[1] < firsts[0]:
            instant = Instant(instant + firsts[1] - firsts[0])
    return timestamps.micro_text(instant) if instant < ends[1] else ""


async def drive(steps: Steps[ResultT]) -> ResultT:
    """Run all steps, yielding to the loop after each."""
    try:
        while True:
            next(steps)
            await lowlevel.checkpoint()
    except StopIteration as done:
        result: ResultT = done.value
        return result


async def _end(log: EventLog, ending: Ending) -> tuple[Revision, Instant]:
    """The revision and the instant up to which a side is compared."""
    info = ending.history
    if not ending.moment:
        head = await log.head(info.id)
        return head.revision, head.time
    revision = await moments.find_revision(log, info, ending.moment)
    return revision, await moments.find_time(log, info, ending.moment, revision)


async def _together(
    log: EventLog,
    sides: tuple[Ending, Ending],
    ends: list[tuple[Revision, Instant]],
    shift: int,
    common: Revision,
) -> list[tuple[Revision, Instant]]:
    """Both ends, brought to the earlier instant of the two.

    Events that were recorded at one instant continue in a fork one after the other, a microsecond
    apart, so the fork may end later by that much.
    """
    until = min(ends[0][1], ends[1][1] - shift)
    if common:
        until += min(revision for revision, time in ends if time == until) - common
    common_ends: list[tuple[Revision, Instant]] = []
    for side, end, moved in zip(sides, ends, (0, shift), strict=True):
        instant = Instant(until + moved)
        if instant < end[1]:
            common_ends.append((await log.revision_at(side.history.id, instant), instant))
        else:
            common_ends.append(end)
    return common_ends


async def _beyond(log: EventLog, planned: PlannedSide, side: Side, events_max: int) -> Side:
    """A side with its events after the other recording's end, if there are any.

    When there are too many, it has the first of them.
    """
    if not planned.is_open or not side.left_out:
        return side
    events: list[Event] = []
    after = side.revision
    while len(events) < events_max and (
        page := await log.read(planned.history.id, after=after, limit=EVENTS_PAGE)
    ):
        events += page
        after = page[-1].revision
    return replace(side, beyond=events)


async def _finishing(log: EventLog, planned: PlannedSide, side: Side, events_max: int) -> Side:
    """A fork with recorded inputs, extended by the work in progress when these inputs ended."""
    if not planned.is_open or not side.left_out or not planned.is_fork:
        return side
    events: list[Event] = []
    after = side.revision
    while len(events) < events_max and (
        page := await log.read(planned.history.id, after=after, limit=EVENTS_PAGE)
    ):
        for event in page:
            if event.type is EventType.CLOCK_ADVANCED and event.object == INPUTS_END:
                left_out = side.left_out - len(events) - 1
                return replace(
                    side,
                    revision=events[-1].revision if events else side.revision,
                    beyond=events,
                    is_finishing=True,
                    left_out=left_out,
                )
            events.append(event)
        after = page[-1].revision
    return side


async def _first(log: EventLog, info: HistoryInfo) -> Instant:
    events = await log.read(info.id, after=Revision(0), limit=1)
    return events[0].stamp.time if events else Instant(0)


def _common(a: HistoryInfo, b: HistoryInfo, infos: dict[HistoryId, HistoryInfo]) -> Revision:
    """The last revision up to which both histories have the same events."""
    left, right = _line(a, infos), _line(b, infos)
    shared = [min(left[each], right[each]) for each in left if each in right]
    return max(shared, default=Revision(0))


def _line(info: HistoryInfo, infos: dict[HistoryId, HistoryInfo]) -> dict[HistoryId, Revision]:
    """The histories whose events a history reads, with the last revision read of each."""
    untils: dict[HistoryId, Revision] = {info.id: Revision(2**62)}
    until = Revision(2**62)
    here: HistoryInfo | None = info
    while here is not None and here.is_fork and here.parent is not None:
        until = Revision(min(until, here.parent_revision))
        untils[here.parent] = until
        here = infos.get(here.parent)
    return untils


def _check_length(side: PlannedSide, common: Revision, events_max: int) -> None:
    """Raise InputError for a side with more events."""
    if side.revision - common > events_max:
        raise InputError(
            f"history {side.history.name} has {side.revision - common} events to compare, more "
            f"than {events_max}",
            cure="compare up to an earlier moment, or raise REDRA_DIFF_EVENTS_MAX",
        )


async def _read(log: EventLog, planned: PlannedSide, common: Revision) -> Side:
    info, revision = planned.history, planned.revision
    start = await _objects(log, info, common) if common else []
    events: list[Event] = []
    after = common
    while page := await log.read(info.id, after=after, limit=EVENTS_PAGE, until=revision):
        events += page
        after = page[-1].revision
    settings = _settings(info, (*start, *events))
    return Side(
        name=info.name,
        profile=profiles.from_settings(settings),
        options=registry.options_from(settings),
        start=start,
        created=await past_views.creations(log, info, start),
        common=common,
        events=events,
        revision=revision,
        until=planned.until,
        left_out=(await log.head(info.id)).revision - revision,
        was_decided_elsewhere=info.was_decided_elsewhere,
    )


async def _objects(log: EventLog, info: HistoryInfo, revision: Revision) -> list[Event]:
    objects: list[Event] = []
    after: ObjectKey | None = None
    while page := await log.objects_at(info.id, revision, after=after, limit=EVENTS_PAGE):
        objects += page
        after = page[-1].key
    return objects
