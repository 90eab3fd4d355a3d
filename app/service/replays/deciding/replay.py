"""Decide replay: keeps the writes from outside, decides the rest again, compares, and proves.

The recording is read once. Each write from outside is put into a new history in memory at its own
instant of virtual time. There redra's reconcilers do the work of the recorded controllers. The
trace of the recording and the trace of the run are compared; each difference has a class, which
runs of variants prove. Nothing is written to a history. Parity: design 8, controllers.md 7.
"""

from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from types import MappingProxyType

from app.analysis.replay import authors, differences, report, tolerances
from app.analysis.replay.beginning import Beginning
from app.analysis.replay.classes import End, Judgement, Sought
from app.analysis.replay.differences import Compared
from app.analysis.replay.instants import known_instants
from app.analysis.replay.proving.budget import Budget
from app.analysis.replay.proving.earlier_states import (
    EarlierStates,
    MakeAgain,
    SeenAttempt,
    in_flight,
)
from app.analysis.replay.proving.evidence import Evidence, Switched, possible
from app.analysis.replay.proving.prover import Prover
from app.analysis.replay.proving.runs import IsOver, MadeRun
from app.analysis.replay.races import Races
from app.analysis.replay.recording import Recording
from app.analysis.replay.report import DecideReport
from app.analysis.replay.traces import Trace, is_event_object
from app.analysis.replay.unsure import ending
from app.analysis.replay.unsure.implied import Implied
from app.analysis.replay.unsure.lacks import Lacks
from app.analysis.replay.variants import Switches, Variant
from app.analysis.replay.writers import Writers, foreign_schedulers, foreign_users, short_name
from app.analysis.verify.parts import Deciders
from app.analysis.views import LiveViews
from app.domain.log import Event, HistoryInfo, ObjectKey, Revision
from app.domain.objects.rules import Rules
from app.domain.values.timestamps import Instant
from app.ports import EventLog
from app.service import recorded_doubts
from app.service.replays.deciding.circumstances import RecordedTies
from app.service.replays.deciding.run import Run
from app.service.replays.deciding.runs import ControlPlane, Runs
from app.service.replays.deciding.violations import judged, unsure_of, violations_of
from app.service.replays.replaying import Progress, ReplayBounds, silent


class Pacing(StrEnum):
    """The instants at which controllers act in a decide replay."""

    RECORDED = "recorded"
    """At the instants at which they acted in the recording."""
    VIRTUAL = "virtual"
    """As soon as there is work; bindings take no time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proofs:
    """The switches and runs that may be tried to prove classes of differences.

    `chosen` are the switches that were set for this replay, reversed; `others` are those that the
    recorded control plane may have had. `rules_seen` reverses the switch that decides whether the
    scheduler sees DeviceTaintRules (C24); None for a release without this defect. At
    most `runs_max` runs are made, with `events_max` events in all. `deciders` judge the recorded
    facts of a recording with lacks.
    """

    chosen: Sequence[Switched] = ()
    others: Sequence[Switched] = ()
    rules_seen: Switched | None = None
    runs_max: int = 0
    events_max: int = 1_000_000
    deciders: Callable[[], Deciders] | None = None


async def decide(
    log: EventLog,
    history: HistoryInfo,
    *,
    until: Revision,
    plane: ControlPlane,
    bounds: ReplayBounds,
    proofs: Proofs = Proofs(),
    pace: Pacing = Pacing.RECORDED,
    progress: Progress = silent,
    sought: Sought | None = None,
) -> DecideReport:
    """Decides the history again up to `until`; the module's docstring describes how.

    Among equally good nodes the recorded one is chosen; names and uids are the recorded ones too.
    `pace` sets when controllers act. With `sought`, no more runs are made once such a difference is
    proved, and the report has the differences that were judged until then.
    """
    variant = Variant(is_paced=pace is Pacing.RECORDED)
    rules = plane.rules(variant.switches)
    runs = await runs_of(log, history, until, plane, bounds, progress)
    # Only what the runs come to is compared: no event of theirs is stored.
    runs.seals = False
    recording = runs.recording
    recorded, omissions = recording.trace, recording.lacks.omissions
    variant = replace(variant, imposed=recording.imposed)
    compare = partial(differences.compare, schemas=rules.schemas, with_dates=True)
    own, left_out = not history.was_decided_elsewhere, omissions.controllers
    variant, run, compared = await first_run(
        runs.run, variant, compare, recorded, runs.end, left_out, is_own=own
    )
    recording.note_unseen_writers(variant.unstarted, variant.absent)
    ties_taken = len(runs.ties)
    facts = None
    has_lacks = recording.lacks.is_any
    if proofs.deciders is not None and (not sought or (has_lacks and compared.different)):
        # Impossible states count even where nothing differs, because a gap hides the difference or
        # a run at the recorded pace does the same, and where a class reproduces it. Without a gap,
        # allocations need not be decided once more: the run does that.
        judge = partial(judged, log, history, until, proofs.deciders(), bounds, recording.lacks)
        facts = await judge(rules.profile, only_invariants=not has_lacks)
        omissions.lacks_rules = facts.lacks_rules
        if omissions.lacks_rules and not has_lacks:
            has_lacks = True
            facts = await judge(rules.profile, only_invariants=False)
    impossible = facts.problems() if facts is not None and has_lacks else {}
    make_again = None if sought else partial(_made_again, log, history, runs)
    prover = prover_of(runs, compare, proofs, variant, impossible, make_again)
    await prover.judge(run.trace, compared.different, sought)
    progress("deciding again", until, until)
    if facts is not None and prover.variant.switches != variant.switches:
        # With the switches of the recorded control plane, other facts may be possible.
        facts = await judge(plane.rules(prover.variant.switches).profile, only_invariants=True)
    proved = prover.judgements
    compared.different = {key: sides for key, sides in compared.different.items() if key in proved}
    mistimed = () if sought else runs.mistimed(prover.variant)
    return DecideReport(
        history=history.name,
        revision=until,
        inputs=recording.counts,
        aspects=report.aspect_counts(compared, proved),
        differences=report.listed(compared.different, proved, recorded, run.trace, recording.users),
        not_comparable={**recording.not_comparable, **unsure_of(facts, mistimed)},
        not_done=dict(run.not_done),
        violations=violations_of(recording, facts, mistimed),
        written_by=recording.written_by,
        ties=ties_taken,
        doubts=runs.doubts,
        runs=prover.budget.runs,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidedAgain:
    """A history that was decided again: its events, and the inputs that could not be applied.

    `recorded` are the events of the original history. `not_done` counts the inputs that could not
    be applied, by reason, and names a scheduler that is left out. `judged` has, by uid of a pod,
    the judgement about its differences from the recording.
    """

    recorded: Sequence[Event]
    events: Sequence[Event]
    not_done: Mapping[str, int]
    judged: Mapping[str, Judgement] = field(default_factory=dict)


async def decide_again(
    log: EventLog,
    history: HistoryInfo,
    *,
    until: Revision,
    plane: ControlPlane,
    bounds: ReplayBounds,
    pace: Pacing = Pacing.RECORDED,
    proofs: Proofs = Proofs(),
    progress: Progress = silent,
) -> DecidedAgain:
    """Decides the history again up to `until`, and returns the events of the run.

    This is the plain run of `decide`, without a scheduler that was not at work. If `proofs` allows
    further runs, they judge the differences of the pods.
    """
    runs = await runs_of(log, history, until, plane, bounds, progress)
    variant = Variant(is_paced=pace is Pacing.RECORDED)
    run = await runs.run(variant, keep_events=True)
    own = not history.was_decided_elsewhere
    absent = ending.absent(runs.recording.trace, run.trace, runs.end) if own else frozenset()
    if absent:
        variant = replace(variant, absent=absent)
        run = await runs.run(variant, keep_events=True)
    compare = partial(differences.compare, schemas=plane.rules(variant.switches).schemas)
    different = compare(runs.recording.trace, run.trace).different
    judged: Mapping[str, Judgement] = {}
    if different and proofs.runs_max:
        prover = prover_of(runs, compare, proofs, variant)
        await prover.judge(run.trace, different)
        judged = report.judgements_of_pods(prover.judgements, runs.recording.trace, run.trace)
    recorded = [
        event
        async for page in _pages(log, history, bounds)
        for event in page
        if event.revision <= until
    ]
    return DecidedAgain(
        recorded=recorded,
        events=run.timeline.events,
        not_done={
            **run.not_done,
            **{f"all that redra's {name} does, which was not at work in A": 1 for name in absent},
        },
        judged=judged,
    )


async def runs_of(
    log: EventLog,
    history: HistoryInfo,
    until: Revision,
    plane: ControlPlane,
    bounds: ReplayBounds,
    progress: Progress,
    beginning: Beginning | None = None,
) -> Runs:
    """Reads a recording and prepares it for runs.

    With a `beginning`, it is read from there on.
    """
    rules = plane.rules(Switches())
    made = plane.controllers(Switches(), RecordedTies({}), None, None)
    running = [controller.name for controller in made]
    lacks = await recorded_doubts.doubts_of(log, history)
    recording = await recording_of(
        log,
        history,
        until=until,
        rules=rules,
        running=running,
        bounds=bounds,
        beginning=beginning,
    )
    writers = Writers(running)
    # A run completes the work that was under way at the end of the recording. When `until` is
    # inside the recording, the later events are known and left out.
    rest = tolerances.TABLE.sure_after if recording.is_over else tolerances.TABLE.afterwards
    last = Instant(recording.last + rest)
    return Runs(
        recording, plane, writers, until, last, progress, bounds, doubts=lacks, beginning=beginning
    )


async def recording_of(
    log: EventLog,
    history: HistoryInfo,
    *,
    until: Revision,
    rules: Rules,
    running: Collection[str],
    bounds: ReplayBounds,
    beginning: Beginning | None = None,
) -> Recording:
    """Reads a history; separates inputs from outside from acts of the `running` controllers.

    With a `beginning`, it is read from there on. In a history of redra's own, names tell who wrote:
    an administrator who allocates is no scheduler.
    """
    lacks = Lacks(await recorded_doubts.doubts_of(log, history))
    after = Revision(0) if beginning is None else beginning.after
    events = [event async for page in _pages(log, history, bounds, after) for event in page]
    begun = () if beginning is None else beginning.objects
    acting = authors.acting(events, begun) if history.was_decided_elsewhere else {}
    is_elsewhere = history.was_decided_elsewhere
    foreign = foreign_schedulers(events) if is_elsewhere else frozenset()
    writers = Writers(running, foreign, foreign_users(events, foreign))
    recording = Recording(writers, LiveViews(rules.profile), acting, lacks, rules.schemas)
    if beginning is not None:
        recording.begin(beginning)
    return _sorted_out(recording, events, until, beginning, bounds.shared_events_max // 2)


def prover_of(
    runs: Runs,
    compare: Callable[[Trace, Trace], Compared],
    proofs: Proofs,
    variant: Variant,
    impossible: Mapping[ObjectKey, str] = MappingProxyType({}),
    make_again: MakeAgain | None = None,
) -> Prover:
    """Makes the prover of the plain run's differences; the last two are as in `Evidence`."""
    recording = runs.recording
    pace = runs.pace()

    budget = Budget(runs_max=proofs.runs_max, events_max=proofs.events_max)

    async def made(changed: Variant, moment: Instant | None, is_over: IsOver | None) -> MadeRun:
        runs.step = f"proving differences, run {budget.runs + 1} of at most {budget.runs_max}"
        run = await runs.run(changed, moment, is_over=is_over)
        return MadeRun(trace=run.trace, events=run.made, is_cut_short=run.is_cut_short)

    return Prover(
        recorded=recording.trace,
        end=runs.end,
        evidence=Evidence(
            overused=recording.overused,
            forbidden=recording.violations(pace),
            chosen=tuple(possible(proofs.chosen, recording.shown.found)),
            others=tuple(
                possible(
                    proofs.others,
                    recording.shown.found,
                    recording.minors_shown,
                    recording.shown.oldest,
                )
            ),
            rules_seen=proofs.rules_seen,
            lacks=recording.lacks,
            impossible=impossible,
            paired_by_time=pace.paired_by_time,
            waits=pace.waits,
            scheduler=runs.process_of("scheduling"),
            manager=runs.process_of("rule-status"),
            make_again=make_again,
        ),
        races=Races(recording.trace, pace),
        run=made,
        compare=compare,
        variant=variant,
        budget=budget,
    )


async def _made_again(
    log: EventLog, history: HistoryInfo, runs: Runs, attempts: Sequence[SeenAttempt]
) -> tuple[bool, int]:
    """Makes attempts again, each with its recorded node among equally good ones."""
    nodes = {each.uid: each.node for each in attempts}
    scheduler = runs.scheduler(RecordedTies(nodes))
    if scheduler is None:
        return False, 0
    profile = runs.plane.rules(Switches()).profile
    flying = in_flight(runs.recording.trace, runs.pace().waits)
    states = EarlierStates(profile, scheduler, attempts, flying)
    async for page in _pages(log, history, runs.bounds):
        states.follow(page)
        if states.is_over:
            break
    states.end()
    return states.agree, states.work


def _sorted_out(
    recording: Recording,
    events: Sequence[Event],
    until: Revision,
    beginning: Beginning | None,
    decoded_max: int,
) -> Recording:
    instants = known_instants(events, None if beginning is None else beginning.head.time)
    implied = Implied((*(() if beginning is None else beginning.objects), *events))
    for event, known in zip(events, instants, strict=True):
        recording.is_over = event.revision > until
        for each in () if recording.is_over else implied.before(event):
            recording.take_implied(each, known)
        recording.take(event, known)
    recording.finish()
    recording.trace.refused_reports = refused_reports(recording)
    recording.stays_decoded = len(events) <= decoded_max
    for event in events:
        recording.release(event)
    return recording


def refused_reports(recording: Recording) -> Mapping[str, Sequence[tuple[str, Instant]]] | None:
    """The names and instants of new Events of the scheduler that were refused, by namespace.

    None where a recording may lack them: it has no failed request, no request of an Event of the
    scheduler (Events come from another source), or has lost lines.
    """
    has_requests = any(
        act.user == authors.SCHEDULER
        and is_event_object(act.event.key)
        and act.event.stamp.origin is not None
        and act.event.stamp.origin.asked
        for act in recording.acts
    )
    has_failed = any(each.is_rejected for each in recording.refusals)
    if not (has_requests and has_failed) or recording.lacks.omissions.lost.has_any:
        return None
    users = {authors.SCHEDULER, *recording.written_by.get(short_name(authors.SCHEDULER), ())}
    refused: dict[str, list[tuple[str, Instant]]] = defaultdict(list)
    for each in recording.refusals:
        if each.is_unmade and each.user in users and is_event_object(each.key):
            refused[each.key.namespace].append((each.key.name, each.at))
    return refused


async def _pages(
    log: EventLog, history: HistoryInfo, bounds: ReplayBounds, after: Revision = Revision(0)
) -> AsyncIterator[list[Event]]:
    while page := await log.read(history.id, after=after, limit=bounds.page_max):
        yield page
        after = page[-1].revision


async def first_run(
    run: Callable[[Variant], Awaitable[Run]],
    variant: Variant,
    compare: Callable[[Trace, Trace], Compared],
    recorded: Trace,
    end: End,
    left_out: Set[str] = frozenset(),
    *,
    is_own: bool = False,
) -> tuple[Variant, Run, Compared]:
    """The run with which the recording is compared, with its variant and the comparison.

    Controllers that the recording never shows at work may not have run, and others may be left out
    of it (`left_out`). If there are any, a second run is made without them, and used if it leaves
    fewer differences to explain. In a history of redra's own (`is_own`), a scheduler that was not
    at work is left out.
    """
    plain = await run(variant)
    if is_own and (absent := ending.absent(recorded, plain.trace, end)):
        variant = replace(variant, absent=absent)
        return variant, (run_without := await run(variant)), compare(recorded, run_without.trace)
    compared = compare(recorded, plain.trace)
    late = ending.unstarted(recorded, plain.trace, end) | left_out & ending.writers(plain.trace)
    if not late:
        return variant, plain, compared
    later = replace(variant, unstarted=late)
    without = await run(later)
    left = compare(recorded, without.trace)
    still = ending.undecided(left, without.trace, recorded, end)
    if still < ending.undecided(compared, plain.trace, recorded, end):
        return later, without, left
    return variant, plain, compared
