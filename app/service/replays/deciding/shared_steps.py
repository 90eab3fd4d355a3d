"""The steps that runs of one recording have in common, decided once.

Runs that try hypotheses begin alike: each differs from an earlier one only from some step on. What
a step comes to is a function of the rules, of all steps before it, and of its commands and stamp.
So the steps of all runs form a tree. A run that takes a step which an earlier run took at the same
place gets its events from there.

    a ─ b ─ c ─ d     the first run
        └── e ─ f     one that differs from the third step on: a and b are not decided again

Events are never changed, so runs can share them. Views and controllers are those of each run.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TypeAlias

from app.analysis.replay.facts import Fact, facts_of
from app.domain.log import Event, Revision, Stamp
from app.domain.log.chain import canonical_json
from app.domain.objects.rules import Rules
from app.domain.objects.write.commands import Command
from app.domain.values.identifiers import Uid
from app.domain.values.json_tree import JsonObject
from app.service.replays.reconciling import Decide, Decisions

_Content: TypeAlias = bytes
"""The digest of the commands and the stamp of a step."""


@dataclass(slots=True)
class _Step:
    """A step that was decided, with the uids that it drew and the steps that came after it."""

    decisions: Decisions
    uids: Sequence[Uid]
    facts: dict[Revision, tuple[Fact, ...]] = field(default_factory=dict)
    following: "dict[_Content, _Step]" = field(default_factory=dict)


class SharedSteps:
    """The steps of all runs that begin at the same place; at most `events_max` events are kept."""

    def __init__(self, events_max: int) -> None:
        self._events_max = events_max
        self._roots: list[tuple[Rules, _Step]] = []
        self._kept = 0

    def course(self, rules: Rules) -> "RunCourse":
        """The course of a new run under these rules."""
        for known, root in self._roots:
            if known is rules:
                return RunCourse(self, root, rules)
        root = _Step(Decisions((), ()), ())
        self._roots.append((rules, root))
        return RunCourse(self, root, rules)

    def keep(self, events: int) -> bool:
        """Whether a step with this number of events may be kept; then it counts as kept."""
        if self._kept + events > self._events_max:
            return False
        self._kept += events
        return True


class RunCourse:
    """The steps of one run, which are taken from those of earlier runs as long as they agree."""

    def __init__(self, steps: SharedSteps, root: _Step, rules: Rules) -> None:
        self._steps = steps
        self._schemas = rules.schemas
        self._at: _Step | None = root

    def decide(
        self, commands: Sequence[Command], stamp: Stamp, new_uid: Callable[[], Uid], decide: Decide
    ) -> Decisions:
        """The result of the step: that of the earlier run, or the one that `decide` returns."""
        at = self._at
        if at is None:
            return decide(commands, stamp, new_uid)
        content = _content(commands, stamp)
        known = at.following.get(content)
        uids = [] if known is None else [new_uid() for _ in known.uids]
        if known is not None and uids == known.uids:
            self._at = known
            return known.decisions
        # Plans that were refused are no steps, but may have drawn uids.
        drawn: list[Uid] = []

        def draw() -> Uid:
            drawn.append(uids[len(drawn)] if len(drawn) < len(uids) else new_uid())
            return drawn[-1]

        decisions = decide(commands, stamp, draw)
        self._at = None
        if known is None and self._steps.keep(len(decisions.events)):
            self._at = at.following[content] = _Step(decisions, drawn)
        return decisions

    def facts_of(self, event: Event, before: JsonObject | None) -> tuple[Fact, ...]:
        """The facts of an event of the present step, which follow from the steps up to it."""
        if self._at is None:
            return tuple(facts_of(event, before, self._schemas))
        facts = self._at.facts.get(event.revision)
        if facts is None:
            facts = self._at.facts[event.revision] = tuple(facts_of(event, before, self._schemas))
        return facts


def _content(commands: Sequence[Command], stamp: Stamp) -> _Content:
    parts = [[type(command).__name__, command] for command in commands]
    return blake2b(canonical_json([stamp, parts]), digest_size=16).digest()
