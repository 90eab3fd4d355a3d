"""Forks that fold a history while this process still checks its log.

They are made before the log is read, and read its events from memory that this process fills. Each
folds so far that it will hardly pass the beginning of its part; which part that is, they learn when
the log is checked. A part that does not fit to what was folded gets a fork of its own.
"""

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from app.adapters.shared_events import SharedBytes, SharedEvents
from app.analysis.verify.parts import Division, PartFindings, PartVerifier, VerifiedPart
from app.bootstrap import executors, garbage_collection
from app.bootstrap.deciders import deciders_of
from app.bootstrap.verifying.forks import Forks
from app.domain.controllers import registry
from app.domain.log import Event, EventType, HistoryInfo, Revision
from app.settings import Settings

TELLS_MAX = 64
"""How often forks are told of events. A message has less than 100 bytes, so all of them fit into
what a connection buffers, and a fork that is busy with the first events keeps nobody waiting."""

USUAL = frozenset(("scheduling", "node-lifecycle"))
"""Controllers that decide in nearly every history. To let all follow the log costs twice as much;
those follow besides that have decided something in the events that are read first."""

_NAMES = {registry.actor_of(name).user: name for name in (*registry.DECIDING, "claims")}


@dataclass(frozen=True, slots=True, kw_only=True)
class AheadBounds:
    """The bounds of folding ahead: from how many events on, and how many forks.

    A history with fewer than `events_min` events is read before forks have folded much of it. At
    most `forks_max` forks fold ahead, because a history is hardly ever divided into more than four
    parts; with 0, none does.
    """

    events_min: int = 5_000
    forks_max: int = 3


def bounds_of(settings: Settings) -> AheadBounds:
    """The bounds of the settings."""
    return AheadBounds(
        events_min=settings.verify_ahead_events_min, forks_max=settings.verify_ahead_forks_max
    )


class LogFollowers(NamedTuple):
    """The first message that a fork gets: the controllers that follow the log."""

    names: frozenset[str]


class Assigned(NamedTuple):
    """The last message that a fork gets: where its part is, in the shared memory."""

    span: SharedBytes


class FoldingAhead:
    """The forks that fold ahead, of a history with about so many events.

    Raises OSError when the system has no memory for the events.
    """

    def __init__(
        self,
        running: Forks,
        history: HistoryInfo,
        events: int,
        count: int,
        division: Division,
        bounds: AheadBounds,
    ) -> None:
        """Start up to `count` - 1 forks, for all parts but the first."""
        self._forks = running
        self._shared = shared = SharedEvents()
        numbers = range(1, min(count, bounds.forks_max + 1))
        self._ends = ends = {
            number: Revision(division.fold_ahead(events, number, count)) for number in numbers
        }
        self._step = -(-events // TELLS_MAX)
        self._following: frozenset[str] | None = None
        self._waiting: list[Event] = []

        def work(number: int, messages: Iterator[Any]) -> PartFindings:
            return verify_ahead(history, shared, ends[number], messages)

        running.begin(work, numbers)

    def add(self, events: Sequence[Event]) -> None:
        """Give the next events to the forks. Raises OSError like the beginning."""
        if self._following is None:
            self._following = USUAL | {
                _NAMES[event.stamp.actor.user]
                for event in events
                if event.type is EventType.DECISION_RECORDED and event.stamp.actor.user in _NAMES
            }
            self._forks.send_early(LogFollowers(self._following))
        self._waiting += events
        if len(self._waiting) >= self._step:
            self._send_waiting()

    def assign(self, parts: Sequence[VerifiedPart]) -> dict[int, tuple[int, object]]:
        """By the place of a part, the fork that may verify it and what to tell that fork.

        Raises OSError like the beginning.
        """
        self._send_waiting()
        ends, following = dict(self._ends), self._following or frozenset()
        assigned: dict[int, tuple[int, object]] = {}
        for place, part in enumerate(parts):
            fitting = [number for number, end in ends.items() if part.may_continue(end, following)]
            if fitting:
                number = max(fitting, key=ends.__getitem__)
                span = self._shared.put(pickle.dumps(part, pickle.HIGHEST_PROTOCOL))
                assigned[place] = number, Assigned(span)
                del ends[number]
        return assigned

    def close(self) -> None:
        """Let the memory go; forks that have it keep it."""
        self._shared.close()

    def _send_waiting(self) -> None:
        if self._waiting:
            self._forks.send_early(self._shared.add(self._waiting))
            self._waiting = []


def verify_ahead(
    history: HistoryInfo, shared: SharedEvents, end: Revision, messages: Iterator[Any]
) -> PartFindings:
    """Verify a part that is known last; until then, fold the events up to `end` as they come.

    `messages` are the controllers that follow the log, ranges of frames with events, then the part.
    """
    verifier = PartVerifier.ahead(deciders_of(history), next(messages).names)
    with garbage_collection.one_pass():
        left: list[Iterator[Sequence[Event]]] = []
        for message in messages:
            if isinstance(message, Assigned):
                part = pickle.loads(shared.read(message.span))  # noqa: S301 this program wrote it
                verifier.begin(part)
                return _verify_rest(verifier, part, left)
            frames = shared.frames(message)
            for events in frames if not left else ():
                within = sum(event.revision <= end for event in events)
                for event in events[:within]:
                    verifier.take_sound(event)
                if within < len(events):
                    left.append(iter([events[within:]]))
                    break
            if left:
                left.append(frames)
    raise AssertionError("the last message is a part")


def _verify_rest(
    verifier: PartVerifier, part: VerifiedPart, left: Sequence[Iterator[Sequence[Event]]]
) -> PartFindings:
    """Take what is left of the events up to the end of the part."""
    for frames in left:
        for events in frames:
            for event in events:
                if event.revision > part.until:
                    return verifier.findings()
                verifier.take_sound(event)
            executors.send_message(events[-1].revision)
    return verifier.findings()
