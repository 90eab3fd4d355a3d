"""Runs of stories, with the outcomes that tests assert."""

from collections.abc import Mapping, Sequence

from app.analysis.diff.courses import Course, Courses
from app.analysis.handover import outcomes, stories
from app.analysis.handover.outcomes import Outcomes
from app.analysis.minimise import predicates
from app.analysis.minimise.difference_predicate import DifferencePredicate
from app.analysis.minimise.material import Candidate
from app.analysis.minimise.predicates import CommandPredicate
from app.analysis.verify.invariants import InvariantWatch
from app.bootstrap.engines import Engines
from app.domain.errors import InputError
from app.domain.log import HistoryId, HistoryInfo
from app.service.replays.trials import Ran, Runner


class StoryRun:
    """A history decided again by the controllers of this program."""

    def __init__(self, ran: Ran) -> None:
        self._ran = ran

    def shows(self, predicate: str, place: str = "") -> str:
        """The first sighting of the predicate, as text; empty when the history does not show it.

        Raises InputError. `place` says where the predicate is written, for errors. Predicates are
        those of `redra minimise`, except commands and decide replays.
        """
        parsed = predicates.parse(predicate, place)
        if isinstance(parsed, DifferencePredicate | CommandPredicate):
            raise InputError(f"a test cannot ask for {predicate!r}", place=place)
        return next((each.text for each in parsed.sightings(self._ran)), "")

    @property
    def pods(self) -> Outcomes:
        """The outcome of each pod by namespace and name: its node and devices, or that it waits."""
        return Outcomes(outcomes.pods(self._courses()))

    @property
    def evictions(self) -> Outcomes:
        """The reason, the second and the message of each pod's eviction."""
        return Outcomes(outcomes.evictions(self._courses()))

    @property
    def refusals(self) -> Outcomes:
        """The scheduler's messages for each pod that it refused, also if it was placed later."""
        return Outcomes(outcomes.refusals(self._courses()))

    @property
    def claims(self) -> Outcomes:
        """The outcome of each claim: its devices, their status, and its consumers.

        A claim that a controller made is named by its pod and the pod's entry, with a number when
        there are several.
        """
        return Outcomes(outcomes.claims(self._ran.events))

    @property
    def rules(self) -> Outcomes:
        """The final conditions of each DeviceTaintRule and of each patch of slices."""
        return Outcomes(outcomes.conditions(self._ran.events))

    @property
    def messages(self) -> Outcomes:
        """The scheduler's message for each pod that waits at the end."""
        return Outcomes(outcomes.messages(self._ran.events))

    @property
    def violations(self) -> Sequence[str]:
        """The invariants that do not hold, including known defects of the release."""
        watch = InvariantWatch(self._ran.switches)
        watch.follow(self._ran.events)
        return sorted({each.rule for each in watch.violations()})

    @property
    def decisions(self) -> list[str]:
        """The decisions of controllers, in order."""
        return [
            f"{event.object['controller']} {event.key.namespace}/{event.key.name}: "
            f"{event.object['outcome']}"
            for event in self._ran.events
            if event.type == "DecisionRecorded"
        ]

    def _courses(self) -> Sequence[Course]:
        return Courses(self._ran.side).all()


def run(tree: object, changes: Mapping[str, object] | None = None) -> StoryRun:
    """Run a story, with `changes` of its settings. Raises InputError for an invalid one.

    Gates, quirks and controllers that the changes do not name stay those of the story.
    """
    story = stories.read(tree)
    settings = {**story.settings}
    for name, value in (changes or {}).items():
        own = settings.get(name)
        if isinstance(own, dict) and isinstance(value, Mapping):
            settings[name] = {**own, **value}
        else:
            settings[name] = value
    info = HistoryInfo(id=HistoryId(0), name="story", seed=story.seed, settings=settings)
    candidate = Candidate(kept=frozenset(range(len(story.material.steps))), until=story.end)
    return StoryRun(Runner(story.material, info, Engines()).run(candidate))
