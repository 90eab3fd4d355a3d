"""Runs of candidate histories: the remaining outside inputs, decided by the controllers here.

Virtual time jumps from one input to the next. A run does not depend on the clock or on earlier
runs. The steps of a recording that is taken as recorded are sealed again, without decisions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Protocol

import msgspec

from app.analysis.diff.sides import Side
from app.analysis.minimise.material import Candidate, Material
from app.analysis.replay.facts import Fact
from app.analysis.replay.inputs import Input
from app.analysis.replay.recording import Recording
from app.analysis.replay.unsure.lacks import Lacks
from app.analysis.replay.variants import Switches, Variant
from app.analysis.replay.writers import Writers
from app.analysis.verify.invariants.placements import Switches as RuleSwitches
from app.analysis.views import LiveViews
from app.domain.controllers import registry
from app.domain.controllers.plan import Reconciler
from app.domain.errors import TooManyEvents
from app.domain.log import Draft, Event, EventType, HistoryInfo, ObjectKey, Revision, chain
from app.domain.log.event import Head
from app.domain.log.records import BASELINE_VERB
from app.domain.objects import profile as profiles
from app.domain.objects import registry as kinds
from app.domain.objects.rules import Rules
from app.domain.values import timestamps
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from app.ports import UidSource
from app.service.replays.deciding.run import Run
from app.service.replays.verifying import switches_of
from projections.objects import ObjectsProjection


class Engine(Protocol):
    """Makes the parts of a run from the settings of a history, and bounds its events."""

    events_max: int

    def settings_under(
        self, info: HistoryInfo, switches: Switches, off: frozenset[str]
    ) -> HistoryInfo:
        """The history with other settings: switches turned, controllers off."""
        ...

    def rules(self, info: HistoryInfo) -> Rules:
        """The rules of objects under these settings."""
        ...

    def controllers(self, info: HistoryInfo) -> Sequence[Reconciler]:
        """New reconcilers under these settings."""
        ...

    def uids(self, info: HistoryInfo) -> UidSource:
        """A source of uids for objects without a recorded one; the same for each run."""
        ...


class TrialResult(NamedTuple):
    """The result of a run: its events, the inputs that could not be applied, its views at the end.

    A run that was not decided has no views.
    """

    events: Sequence[Event]
    not_done: Mapping[str, int]
    views: LiveViews | None = None


@dataclass(frozen=True, kw_only=True)
class Ran:
    """A history that is run when its events are first read; a `Trial`.

    `info` has the settings by which it is decided. The results under these and other switches are
    kept, because they are read several times. `end` is the instant up to which it is decided.
    """

    info: HistoryInfo
    inputs: Sequence[Input]
    runner: "Runner"
    candidate: Candidate
    end: Instant
    _others: dict[str, Side] = field(default_factory=dict)

    @property
    def events(self) -> Sequence[Event]:
        """The events of the run."""
        return self._made.events

    @property
    def not_done(self) -> Mapping[str, int]:
        """The number of inputs that could not be applied, by reason."""
        return self._made.not_done

    @property
    def views(self) -> LiveViews | None:
        """The views at the end of the run, which nothing may change; None if none were folded."""
        return self._made.views

    @cached_property
    def _made(self) -> TrialResult:
        return self.runner.made(self)

    @property
    def switches(self) -> RuleSwitches:
        """The switches of its release that matter to the invariants."""
        profile = profiles.from_settings(self.info.settings)
        options = registry.options_from(self.info.settings)
        return switches_of(profile, registry.allocator_quirks_of(profile, options))

    def under(self, switches: Switches) -> Side:
        """The same inputs decided under other switches, up to the last event of this run.

        A bundle of this run ends there, so its readers see no later decision.
        """
        settings = self.runner.settings(self.candidate, switches)
        if settings == self.info.settings:
            return self.side
        text = repr(settings)
        if text not in self._others:
            end = self.side.until
            self._others[text] = self.runner.run(self.candidate, switches, end=end).side
        return self._others[text]

    @property
    def side(self) -> Side:
        """The history as a side of a comparison."""
        settings = self.info.settings
        return Side(
            name=self.info.name,
            profile=profiles.from_settings(settings),
            options=registry.options_from(settings),
            events=self.events,
            revision=self.events[-1].revision if self.events else Revision(0),
            until=self.events[-1].stamp.time if self.events else Instant(0),
        )


class Runner:
    """Runs candidates of one material. `info` has the settings of its history."""

    def __init__(self, material: Material, info: HistoryInfo, engine: Engine) -> None:
        self.material = material
        self.info = info
        self._engine = engine

    def run(
        self, candidate: Candidate, switches: Switches = Switches(), *, end: Instant | None = None
    ) -> Ran:
        """The history of a candidate under the switches; it is run when it is read.

        It is decided up to `end`, by default the end of the candidate.
        """
        inputs = self.material.inputs(candidate)
        info = self._engine.settings_under(self.info, switches, candidate.off)
        info = msgspec.structs.replace(info, created=inputs[0].time if inputs else Instant(0))
        if end is None:
            end = self.material.end(candidate)
        return Ran(info=info, inputs=inputs, runner=self, candidate=candidate, end=end)

    def made(self, ran: Ran) -> TrialResult:
        """Run the history of a candidate. Raises TooManyEvents."""
        if self.material.is_recorded:
            return TrialResult(_sealed(ran.info, ran.inputs), {})
        return self._decided(ran.info, ran.inputs, ran.end)

    def settings(self, candidate: Candidate, switches: Switches) -> Mapping[str, object]:
        """The settings under which a candidate is decided."""
        return self._engine.settings_under(self.info, switches, candidate.off).settings

    def is_valid(self, candidate: Candidate) -> bool:
        """Whether the API would accept every write of the objects that the candidate cuts.

        Errors that the whole write has too do not count.
        """
        rules = self._engine.rules(self.info)
        cut = {key for key, *_ in (*candidate.cuts, *candidate.values)}
        whole = {step.number: step for step in self.material.steps}
        for step in self.material.inputs(candidate):
            if step.event.key in cut and step.event.type is not EventType.OBJECT_DELETED:
                errors = _errors(rules, step)
                if errors and not errors <= _errors(rules, whole[step.number]):
                    return False
        return True

    def _decided(self, info: HistoryInfo, inputs: Sequence[Input], end: Instant) -> TrialResult:
        rules = self._engine.rules(info)
        recording = Recording(Writers(()), LiveViews(rules.profile), {}, Lacks(()), rules.schemas)
        recording.inputs = list(inputs)
        recording.made = list(self.material.made)
        recording.untraced = frozenset(
            each.uid for each in (*(one.event for one in inputs), *recording.made)
        )
        begun = [each.time for each in inputs if each.event.stamp.verb == BASELINE_VERB]
        if begun:
            # Controllers start after all existing objects: none may see a claim without its pods.
            recording.starts = dict.fromkeys(registry.NAMES, Instant(max(begun) + 1))
        run = Run(
            recording,
            Variant(is_paced=False),
            rules=rules,
            controllers=self._engine.controllers(info),
            uids=self._engine.uids(info),
            pace=None,
            keep_events=True,
        )
        # Nothing is compared with this trace, and reading facts takes a tenth of a run.
        run.trace.read = _no_facts
        run.timeline.head = Head(hash=chain.genesis_of(info))

        def check_size(event: Event) -> None:
            if event.revision > self._engine.events_max:
                raise TooManyEvents(
                    f"by {timestamps.seconds_text(event.stamp.time)} the run has more than "
                    f"{self._engine.events_max} events",
                    cure="end the history at an earlier moment, or raise REDRA_TRIAL_EVENTS_MAX",
                )

        # Controllers that answer each other write without end at one instant.
        run.timeline.followers.append(check_size)
        for given_input in run.inputs():
            run.take(given_input)
        run.finish(end)
        run.leave()
        return TrialResult(run.timeline.events, run.not_done, run.timeline.views)


def _no_facts(_event: Event, _before: JsonObject | None) -> tuple[Fact, ...]:
    return ()


def _errors(rules: Rules, step: Input) -> frozenset[str]:
    """The validation errors of an object after a write, and of the change.

    A changed status is validated too, as an update; so is that of an object that exists at the
    beginning.
    """
    kind = kinds.find(step.event.key.group, step.event.key.resource)
    if kind is None:
        return frozenset()
    context = rules.context(ObjectsProjection(), step.time)
    tree = dict(step.event.object)
    problems = rules.validate_create(kind, tree, context)
    if step.before is not None and step.event.type is EventType.OBJECT_UPDATED:
        before = dict(step.before)
        problems += rules.validate_update(kind, tree, before, "", context)
        if tree.get("status") != before.get("status"):
            problems += rules.validate_update(kind, tree, before, "status", context)
    if step.event.stamp.verb == BASELINE_VERB and "status" in tree:
        before = {name: part for name, part in tree.items() if name != "status"}
        problems += rules.validate_update(kind, tree, before, "status", context)
    return frozenset(str(problem) for problem in problems)


def _sealed(info: HistoryInfo, inputs: Sequence[Input]) -> list[Event]:
    """The steps as recorded, as the events of a separate chain."""
    head = chain.genesis_of(info)
    events: list[Event] = []
    alive: set[ObjectKey] = set()
    for step in inputs:
        event = step.event
        tree = {**event.object}
        if isinstance(metadata := tree.get("metadata"), dict):
            tree["metadata"] = dict(metadata)
        kind = event.type
        if kind is EventType.OBJECT_UPDATED and event.key not in alive:
            kind = EventType.OBJECT_CREATED
        stamp = msgspec.structs.replace(event.stamp, time=step.time, cause=0, observed=0)
        draft = Draft(type=kind, key=event.key, uid=event.uid, tree=tree, stamp=stamp)
        sealed = chain.seal(draft, Revision(len(events) + 1), head)
        head = sealed.hash
        events.append(sealed)
        if kind is EventType.OBJECT_DELETED:
            alive.discard(event.key)
        else:
            alive.add(event.key)
    return events
