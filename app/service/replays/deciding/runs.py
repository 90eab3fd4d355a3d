"""Runs of one recording under its variants, each by a control plane that is made for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Protocol

from anyio import lowlevel

from app.analysis.replay import differences
from app.analysis.replay.authors import SCHEDULER
from app.analysis.replay.beginning import Beginning
from app.analysis.replay.classes import End
from app.analysis.replay.differences import Aspect
from app.analysis.replay.lateness import Delay, PacedRun, Process
from app.analysis.replay.overtaken import PassedOver, WaitingPods
from app.analysis.replay.pace import RecordedPace
from app.analysis.replay.proving.runs import IsOver
from app.analysis.replay.readiness import FirstTurns, Readiness
from app.analysis.replay.recording import Recording
from app.analysis.replay.steering import SteeredPace
from app.analysis.replay.traces import profiles_bound
from app.analysis.replay.unsure import ending
from app.analysis.replay.unsure.earliness import Early, early_acts
from app.analysis.replay.variants import Switches, Variant
from app.analysis.replay.writers import Writers, short_name
from app.domain.controllers.pacing import Pace
from app.domain.controllers.plan import Reconciler
from app.domain.controllers.scheduling.reconciler import SchedulingReconciler
from app.domain.controllers.scheduling.scheduling_cycle.attempt import BindDelay, TieBreak
from app.domain.errors import InputError
from app.domain.log import Event, Revision
from app.domain.log.doubts import Doubt
from app.domain.objects.rules import Rules
from app.domain.values import timestamps
from app.domain.values.timestamps import Instant
from app.ports import UidSource
from app.service.replays.deciding.altered import Alteration
from app.service.replays.deciding.circumstances import RecordedTies, starts_of
from app.service.replays.deciding.paces import Paces
from app.service.replays.deciding.run import Run
from app.service.replays.deciding.shared_steps import SharedSteps
from app.service.replays.deciding.violations import delays_of, sure_of
from app.service.replays.replaying import Progress, ReplayBounds

_LOOKS = 7
"""The number of checks whether a run is over: after half of its inputs, a quarter, and so on."""


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
    made: list[tuple[Variant, PacedRun, Sequence[Early], WaitingPods]] = field(default_factory=list)

    @cached_property
    def _shared(self) -> SharedSteps:
        decoded = len(self.recording.inputs) * self.recording.stays_decoded
        return SharedSteps(self.bounds.shared_events_max - decoded)

    @cached_property
    def _paces(self) -> Paces:
        return Paces(self.recording, self.writers.names, self.beginning)

    def scheduler(self, ties: TieBreak) -> SchedulingReconciler | None:
        """A new scheduler, which is in no run; None where it is switched off."""
        profiles = profiles_bound(self.recording.trace, self.recording.ranks)
        made = self.plane.controllers(Switches(), ties, None, None, profiles)
        return next((each for each in made if isinstance(each, SchedulingReconciler)), None)

    def process_of(self, controller: str) -> Process:
        """The process that runs a controller, as the recording shows it at work."""
        return self._paces.timers.processes.get(controller, Process(()))

    @cached_property
    def end(self) -> End:
        """The end of the comparison."""
        one = self.recording
        known = self._paces.by_user
        processes = {user: known.get(user, Process(())) for user in self.writers.names}
        return End(
            at=one.last,
            later=one.later,
            is_of_recording=not one.is_over,
            queued=ending.queued_since(one.acts, one.refusals, one.last),
            undone=ending.undone_since(one.acts, one.refusals, one.last, processes),
        )

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
        is_control: bool = False,
    ) -> Run:
        """Makes one run, up to the instant `until` if it is given, and until `is_over`.

        `plane` replaces the control plane. With an `alteration` the run is in a changed world,
        which is compared with that of a run with `is_control`.
        """
        is_of_recording = plane is None and alteration is None
        plane = plane or self.plane
        rules = plane.rules(variant.switches)
        recording = self.recording
        profiles = profiles_bound(recording.trace, recording.ranks)
        pace = None
        control = None if alteration is None else alteration.control
        if variant.is_paced:
            pace = self._steered(variant, control, is_control=is_control)
        nodes = differences.nodes(recording.later) | differences.nodes(recording.trace)
        ties = RecordedTies(nodes, pace, control)
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
            pace.run.note_due(run.trace, self.end.since(Aspect.WRITES), self.end.earliest)
        if pace is not None and alteration is None and until is None:
            pace.run.keep_written(run.trace)
            early = early_acts(pace.run, recording.trace, run.trace, recording.acts, self._known)
            self.made.append((variant, pace.run, tuple(early), pace.waiting))
        return run

    def _steered(
        self, variant: Variant, control: Readiness | None, *, is_control: bool
    ) -> SteeredPace:
        recording = self.recording
        pace = SteeredPace(
            self.pace(variant),
            variant,
            recording.trace.keys,
            control,
            starts_of(recording, self.beginning),
            None if recording.lacks.is_any else FirstTurns(),
            self._paces.timers,
            is_control=is_control,
        )
        pace.busy_until = recording.busy_until
        return pace

    def mistimed(self, variant: Variant) -> Sequence[Delay | Early | PassedOver]:
        """Acts of the run with this variant that were recorded too late, or before their reason.

        So are attempts that cannot have come after those for other pods. Empty for a variant
        without a pace.
        """
        for each, made, early, waiting in self.made:
            if each == variant:
                is_whole = not self.recording.lacks.is_any
                at = self.end.at
                queued = self.end.queued.get(short_name(SCHEDULER), at)
                seconds = waiting.second_attempts(at, queued) if is_whole else {}
                unmade = waiting.unmade.late if is_whole else ()
                delays = delays_of(self.recording, self.pace(), made, seconds, unmade)
                passed_over = waiting.passed_over if is_whole else ()
                return (*delays, *sure_of(self.recording, early), *passed_over)
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
