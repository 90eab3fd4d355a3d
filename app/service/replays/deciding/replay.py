"""Decide replay: keeps the writes from outside, decides the rest again, compares, and proves.

The recording is read once. Each write from outside is put into a new history in memory at its own
instant of virtual time. There redra's reconcilers do the work of the recorded controllers. The
trace of the recording and the trace of the run are compared; each difference has a class, which
runs of variants prove. Nothing is written to a history. Parity: design 8, controllers.md 7.
"""

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property, partial
from types import MappingProxyType
from typing import Protocol

from anyio import lowlevel

from app.analysis.replay import authors, differences, judgements, report, tolerances
from app.analysis.replay.beginning import Beginning
from app.analysis.replay.classes import End, Judgement, Sought
from app.analysis.replay.differences import Aspect, Compared
from app.analysis.replay.instants import known_instants
from app.analysis.replay.lateness import Delay, PacedRun, queued_since
from app.analysis.replay.pace import RecordedPace
from app.analysis.replay.proving.budget import Budget
from app.analysis.replay.proving.evidence import Evidence, Switched, possible
from app.analysis.replay.proving.prover import Prover
from app.analysis.replay.proving.runs import IsOver, MadeRun
from app.analysis.replay.races import Races
from app.analysis.replay.recording import Recording
from app.analysis.replay.report import DecideReport
from app.analysis.replay.steering import FirstTurns, SteeredPace
from app.analysis.replay.traces import Trace, profiles_bound
from app.analysis.replay.unsure.earliness import Early, early_acts
from app.analysis.replay.unsure.implied import Implied
from app.analysis.replay.unsure.lacks import Lacks
from app.analysis.replay.variants import Switches, Variant
from app.analysis.replay.writers import Writers
from app.analysis.verify.parts import Deciders
from app.analysis.views import LiveViews
from app.domain.controllers.pacing import Pace
from app.domain.controllers.plan import Reconciler
from app.domain.controllers.scheduling.scheduling_cycle.attempt import BindDelay, TieBreak
from app.domain.errors import InputError
from app.domain.log import Event, HistoryInfo, ObjectKey, Revision
from app.domain.log.doubts import Doubt
from app.domain.objects.rules import Rules
from app.domain.values import timestamps
from app.domain.values.timestamps import Instant
from app.ports import EventLog, UidSource
from app.service import recorded_doubts
from app.service.replays.deciding.altered import Alteration
from app.service.replays.deciding.circumstances import RecordedTies, starts_of
from app.service.replays.deciding.first_run import first_run
from app.service.replays.deciding.paces import Paces
from app.service.replays.deciding.run import Run
from app.service.replays.deciding.shared_steps import SharedSteps
from app.service.replays.deciding.violations import delays_of, judged, sure_of, violations_of
from app.service.replays.replaying import Progress, ReplayBounds, silent

_LOOKS = 7
"""The number of checks whether a run is over: after half of its inputs, a quarter, and so on."""


class Pacing(StrEnum):
    """The instants at which controllers act in a decide replay."""

    RECORDED = "recorded"
    """At the instants at which they acted in the recording."""
    VIRTUAL = "virtual"
    """As soon as there is work; bindings take no time."""


class ControlPlane(Protocol):
    """Makes the rules, controllers and uids of a run, with some switches changed."""

    def rules(self, switches: Switches) -> Rules:
        """The rules of objects under these switches."""

    def controllers(
        self,
        switches: Switches,
        tie_break: TieBreak,
        pace: Pace | None,
        bind_delay: BindDelay | None,
        profiles: frozenset[str] = frozenset(),
    ) -> Sequence[Reconciler]:
        """New reconcilers under these switches; the scheduler has further `profiles`."""

    def uids(self) -> UidSource:
        """The uids for objects without a recorded one; they are the same in each run."""


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


@dataclass
class Runs:
    """Makes runs of one recording; with `seals` off, their events get no hash."""

    recording: Recording
    plane: ControlPlane
    writers: Writers
    until: Revision
    last: Instant
    progress: Progress
    bounds: ReplayBounds
    doubts: tuple[Doubt, ...] = ()
    beginning: Beginning | None = None
    ties: set[str] = field(default_factory=set)
    step: str = "deciding again"
    seals: bool = True
    made: list[tuple[Variant, PacedRun, Sequence[Early]]] = field(default_factory=list)

    @cached_property
    def _shared(self) -> SharedSteps:
        decoded = len(self.recording.inputs) * self.recording.stays_decoded
        return SharedSteps(self.bounds.shared_events_max - decoded)

    @cached_property
    def _paces(self) -> Paces:
        return Paces(self.recording, self.writers.names, self.beginning)

    @cached_property
    def end(self) -> End:
        """The end of the comparison."""
        one = self.recording
        queued = queued_since(one.acts, one.refusals, one.last)
        return End(at=one.last, later=one.later, is_of_recording=not one.is_over, queued=queued)

    def pace(self, variant: Variant = Variant()) -> RecordedPace:
        """A new recorded pace for a variant, at its beginning."""
        return self._paces.of(variant)

    async def run(
        self,
        variant: Variant,
        until: Instant | None = None,
        *,
        keep_events: bool = False,
        plane: ControlPlane | None = None,
        alteration: Alteration | None = None,
        is_over: IsOver | None = None,
    ) -> Run:
        """Makes one run, up to the instant `until` if it is given, and until `is_over`.

        `plane` replaces the control plane. With an `alteration` the run is in a changed world.
        """
        is_of_recording = plane is None and alteration is None
        plane = plane or self.plane
        rules = plane.rules(variant.switches)
        recording = self.recording
        profiles = profiles_bound(recording.trace, recording.ranks)
        pace = None
        if variant.is_paced:
            control = None if alteration is None else alteration.control
            keys, starts = recording.trace.keys, starts_of(recording, self.beginning)
            turns = None if recording.lacks.is_any else FirstTurns()
            pace = SteeredPace(self.pace(variant), variant, keys, control, starts, turns)
            pace.busy_until = recording.busy_until
        nodes = differences.nodes(recording.later) | differences.nodes(recording.trace)
        ties = RecordedTies(nodes, pace)
        run = Run(
            recording,
            variant,
            rules=rules,
            controllers=plane.controllers(
                variant.switches, ties, pace, None if pace is None else pace.bind_delay, profiles
            ),
            uids=plane.uids(),
            pace=pace,
            keep_events=keep_events,
            beginning=self.beginning,
            alteration=alteration,
        )
        if not self.seals:
            run.timeline.seal_nothing()
        run.timeline.followers.append(partial(self._check_size, run))
        if is_of_recording:
            run.share(self._shared.course(rules))
        looks = {len(recording.inputs) >> step for step in range(_LOOKS)}
        for number, given_input in enumerate(run.inputs()):
            if is_over is not None and number in looks and is_over(run.trace, run.timeline.now):
                run.is_cut_short = True
                return run
            if until is not None and given_input.time > until:
                break
            run.take(given_input)
            if number % 200 == 0:
                self.progress(self.step, given_input.event.revision, self.until)
            # Deciding is pure computation; this lets other tasks run.
            await lowlevel.checkpoint()
        last = self.last if until is None else min(until, self.last)
        run.finish(last)
        self.ties = ties.taken
        if pace is not None:
            pace.run.note_due(run.trace, self.end.since(Aspect.WRITES))
        if pace is not None and alteration is None and until is None:
            pace.run.keep_written(run.trace)
            early = early_acts(pace.run, recording.trace, run.trace, recording.acts, self._known)
            self.made.append((variant, pace.run, tuple(early)))
        return run

    def mistimed(self, variant: Variant) -> Sequence[Delay | Early]:
        """Acts of the run with this variant that were recorded too late, or before their reason.

        Empty for a variant without a pace.
        """
        for each, made, early in self.made:
            if each == variant:
                delays = delays_of(self.recording, self.pace(), made)
                return (*delays, *sure_of(self.recording, early))
        return ()

    @cached_property
    def _known(self) -> Mapping[Instant, Event]:
        """The recorded events by the instants at which others could see them."""
        inputs = ((each.time, each.event) for each in self.recording.inputs)
        return {**dict(inputs), **{act.known: act.event for act in self.recording.acts}}

    def _check_size(self, run: Run, last: Event) -> None:
        if run.made > self.bounds.events_max:
            raise InputError(
                f"by {timestamps.seconds_text(last.stamp.time)} the history that is decided again "
                f"has more than {self.bounds.events_max} events of its own",
                cure="end it at an earlier moment, or raise REDRA_DECIDE_EVENTS_MAX",
            )


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
    compare = partial(differences.compare, schemas=rules.schemas)
    variant, run, compared = await first_run(
        runs.run, variant, compare, recorded, runs.end, omissions.controllers
    )
    recording.note_unseen_writers(variant.unstarted)
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
    prover = prover_of(runs, compare, proofs, variant, impossible)
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
        not_comparable=dict(recording.not_comparable),
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
    be applied, by reason. `judged` has, by uid of a pod, the judgement about its differences from
    the recording.
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

    This is the plain run of `decide`. If `proofs` allows further runs, they judge the differences
    of the pods.
    """
    runs = await runs_of(log, history, until, plane, bounds, progress)
    variant = Variant(is_paced=pace is Pacing.RECORDED)
    run = await runs.run(variant, keep_events=True)
    compare = partial(differences.compare, schemas=plane.rules(variant.switches).schemas)
    different = compare(runs.recording.trace, run.trace).different
    judged: Mapping[str, Judgement] = {}
    if different and proofs.runs_max:
        prover = prover_of(runs, compare, proofs, variant)
        await prover.judge(run.trace, different)
        judged = judgements.of_pods(prover.judgements, runs.recording.trace, run.trace)
    recorded = [
        event
        async for page in _pages(log, history, bounds)
        for event in page
        if event.revision <= until
    ]
    return DecidedAgain(
        recorded=recorded,
        events=run.timeline.events,
        not_done=dict(run.not_done),
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
    recording = Recording(Writers(running), LiveViews(rules.profile), acting, lacks, rules.schemas)
    if beginning is not None:
        recording.begin(beginning)
    return _sorted_out(recording, events, until, beginning, bounds.shared_events_max // 2)


def prover_of(
    runs: Runs,
    compare: Callable[[Trace, Trace], Compared],
    proofs: Proofs,
    variant: Variant,
    impossible: Mapping[ObjectKey, str] = MappingProxyType({}),
) -> Prover:
    """Makes the prover of the plain run's differences; `impossible` is as in `Evidence`."""
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
            chosen=tuple(possible(proofs.chosen, recording.gates_shown)),
            others=tuple(possible(proofs.others, recording.gates_shown, recording.minors_shown)),
            rules_seen=proofs.rules_seen,
            lacks=recording.lacks,
            impossible=impossible,
            paired_by_time=pace.paired_by_time,
            waits=pace.waits,
        ),
        races=Races(recording.trace, pace),
        run=made,
        compare=compare,
        variant=variant,
        budget=budget,
    )


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
    recording.stays_decoded = len(events) <= decoded_max
    for event in events:
        recording.release(event)
    return recording


async def _pages(
    log: EventLog, history: HistoryInfo, bounds: ReplayBounds, after: Revision = Revision(0)
) -> AsyncIterator[list[Event]]:
    while page := await log.read(history.id, after=after, limit=bounds.page_max):
        yield page
        after = page[-1].revision
