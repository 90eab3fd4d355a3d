"""The consistency of single events: does each one fit its own object and the log before it?

The hash chain proves that a log is the one that was hashed. A person who can write the database can
compute hashes, too. This check knows nothing of them: it compares the parts of an event with each
other, and with what redra's own writer can have stored at that place.

| rule | where |
|---|---|
| key and uid are those of the object, `metadata.resourceVersion` is the revision | every object |
| the stamp names only earlier revisions | every event |
| the type fits the key; a decision fits its key, its author and the cause of its append | every |
| | other event |
| the type is one that such a history has | after the last fork |
| created once, changed and deleted only while it exists, with the same uid; the kind is that of |
| the resource; the object is written as redra writes it; its creation time stays, its generation |
| never falls, its deletion is not taken back, and it goes only without finalizers | the same, but |
| | for recordings and paced replays, in which events may be missing |
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from operator import itemgetter

import msgspec

from app.domain.controllers import registry
from app.domain.log import DECISION, Event, EventType, HistoryInfo, ObjectKey, Revision
from app.domain.log.chain import canonical_json
from app.domain.log.event import CLOCKS, REPLAYS
from app.domain.log.forks import FORK
from app.domain.log.replays import CONFLICTS
from app.domain.objects import registry as kinds
from app.domain.values.identifiers import Uid

KEPT_MAX = 100
"""The most problems of a section that are kept: a report names no more."""

_OBJECT = frozenset({EventType.OBJECT_CREATED, EventType.OBJECT_UPDATED, EventType.OBJECT_DELETED})
_RECORDED = _OBJECT | {
    EventType.HISTORY_IMPORTED,
    EventType.GAP_OBSERVED,
    EventType.REQUEST_OBSERVED,
}
_PACED = _RECORDED | {
    EventType.HISTORY_FORKED,
    EventType.REPLAY_SOUGHT,
    EventType.CONFLICT_OBSERVED,
}
_LIVE = _OBJECT | {
    EventType.DECISION_RECORDED,
    EventType.CONTROLLER_RESTARTED,
    EventType.CLOCK_ADVANCED,
    EventType.HISTORY_FORKED,
}

_PLACES: Mapping[EventType, tuple[str, str]] = {
    EventType.DECISION_RECORDED: DECISION[:2],
    EventType.HISTORY_IMPORTED: ("redra", "imports"),
    EventType.CLOCK_ADVANCED: CLOCKS[:2],
    EventType.CONTROLLER_RESTARTED: ("redra", "controllers"),
    EventType.HISTORY_FORKED: FORK[:2],
    EventType.REPLAY_SOUGHT: REPLAYS[:2],
    EventType.CONFLICT_OBSERVED: CONFLICTS[:2],
}
"""The group and resource of events that are not about an object; gaps and requests have others."""


_DELETIONS = frozenset(("delete", "deletecollection"))
_REPEATED = ("group", "namespace", "name", "uid", "revision")
"""The parts of an object that its event repeats."""


class _RepeatedMetadata(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The parts of an object's metadata that its event repeats."""

    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None


class _Named(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The parts of an object that its event repeats."""

    api_version: str
    kind: str
    metadata: _RepeatedMetadata


class _Subject(msgspec.Struct, frozen=True, gc=False):
    """The parts of a decision that its key repeats."""

    controller: str
    namespace: str
    name: str
    cause: int


class _Course(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The parts of an object's metadata that no write takes back."""

    creation_timestamp: str | None = None
    generation: int = 0
    deletion_timestamp: str | None = None
    finalizers: tuple[str, ...] | None = None


class _Following(msgspec.Struct, frozen=True, gc=False):
    metadata: _Course


class _AllMetadata(_RepeatedMetadata, frozen=True, gc=False, rename="camel"):
    """The parts of both, which are read at once where both can be read."""

    creation_timestamp: str | None = None
    generation: int = 0
    deletion_timestamp: str | None = None
    finalizers: tuple[str, ...] | None = None

    @property
    def course(self) -> _Course:
        """The parts that no write takes back."""
        return _Course(
            self.creation_timestamp, self.generation, self.deletion_timestamp, self.finalizers
        )


class _Whole(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    api_version: str
    kind: str
    metadata: _AllMetadata


_whole = msgspec.json.Decoder(_Whole).decode
_named = msgspec.json.Decoder(_Named).decode
_following = msgspec.json.Decoder(_Following).decode
_subject = msgspec.json.Decoder(_Subject).decode


@dataclass(slots=True)
class ConsistencyWatch:
    """Follows the events of one history in order, from the first one on.

    `info` has the stored settings of the history. Problems of a section that a fork ends are
    dropped: its settings are those of another history, which is verified by itself. The form of
    objects (`form_problems`) is checked where each object is decoded anyway, and given to `end`.
    """

    info: HistoryInfo
    _uids: dict[ObjectKey, Uid] = field(default_factory=dict)
    _courses: dict[ObjectKey, _Course] = field(default_factory=dict)
    _section: list[tuple[Revision, str]] = field(default_factory=list)
    _is_forked: bool = False
    _is_imported: bool = False
    _is_decided_elsewhere: bool = False
    _before: Event | None = None
    _decider: str = ""

    def __post_init__(self) -> None:
        """Note what the settings say of all events."""
        self._is_decided_elsewhere = self.info.is_decided_elsewhere

    def take(self, event: Event) -> list[str]:
        """Follow one event; returns its problems that hold in every history, as sentences."""
        if event.type is EventType.HISTORY_FORKED and self.info.beginning is not None:
            self._section.clear()
            # A recorded state may lack what a later one has.
            self._courses.clear()
            self._is_forked = True
        whole = _read(event)
        # Nearly all events fit, and sentences are for those that do not.
        fits = whole is not None and _is_earlier(event) and _repeated_by(event) == _own_of(whole)
        problems = [] if fits else [_at(event, problem) for problem in _problems(event, whole)]
        for problem in self._own_problems(event, whole):
            if len(self._section) < KEPT_MAX:
                self._section.append((event.revision, _at(event, problem)))
        self._before = event
        return problems

    @property
    def is_live(self) -> bool:
        """Whether redra's own writer wrote the objects of the history's present section."""
        has_own = self._is_forked or not self._is_imported
        return has_own and not self._is_decided_elsewhere

    def end(self, malformed: Sequence[tuple[Revision, str]] = ()) -> list[str]:
        """The problems of the history's own events, in order; the first ones of many.

        `malformed` are those that `form_problems` returned, with their revisions.
        """
        if not self._is_forked and self.info.beginning is not None:
            return []
        problems = sorted([*self._section, *malformed], key=itemgetter(0))
        return [problem for _, problem in problems[:KEPT_MAX]]

    def _own_problems(self, event: Event, whole: _Whole | None) -> Iterator[str]:
        info = self.info
        if event.revision == 1:
            # Programs that came before the setting imported recordings without it.
            self._is_imported = event.type is EventType.HISTORY_IMPORTED
        is_live = self.is_live
        if not event.is_about_object:
            allowed = _LIVE if is_live else _PACED if info.is_paced else _RECORDED
            if event.type not in allowed:
                kind = (
                    "a history" if is_live else "a paced replay" if info.is_paced else "a recording"
                )
                yield f"no {event.type} is stored in {kind} like this one"
            if event.type is EventType.DECISION_RECORDED:
                yield from self._cause_problems(event)
            return
        known = self._uids.get(event.key)
        if is_live:
            yield from _course_problems(event, known)
            course = _course_of(event, whole)
            if course is not None:
                yield from _back_problems(event, self._courses.get(event.key), course)
                self._courses[event.key] = course
        if event.type is EventType.OBJECT_DELETED:
            self._uids.pop(event.key, None)
            self._courses.pop(event.key, None)
        else:
            self._uids[event.key] = event.uid

    def _cause_problems(self, event: Event) -> Iterator[str]:
        """The first decision of an append has the cause of the append.

        Controllers that share an account may append one after the other at one instant.
        """
        with suppress(msgspec.DecodeError, RecursionError):
            subject = _subject(event.body)
            before = None if self._before is None else _append_of(self._before)
            is_first = before != _append_of(event) or self._decider != subject.controller
            if is_first and subject.cause != event.stamp.cause:
                yield "the cause of the decision is not that of its append"
            self._decider = subject.controller


def _read(event: Event) -> _Whole | None:
    """The parts of an object; None where one of them cannot be read, so that each is tried."""
    if not event.is_about_object:
        return None
    try:
        return _whole(event.body)
    except (msgspec.DecodeError, RecursionError):
        return None


def _course_of(event: Event, whole: _Whole | None) -> _Course | None:
    """The parts that no write takes back; None where they cannot be read, as is said elsewhere."""
    if whole is not None:
        return whole.metadata.course
    try:
        return _following(event.body).metadata
    except (msgspec.DecodeError, RecursionError):
        return None


def _is_earlier(event: Event) -> bool:
    """Whether the revisions that the stamp names are before the event."""
    stamp = event.stamp
    return 0 <= stamp.cause < event.revision and 0 <= stamp.observed < event.revision


def _repeated_by(event: Event) -> tuple[str, ...]:
    """The values of `_REPEATED` that an event repeats of its object."""
    key = event.key
    return key.group, key.namespace, key.name, event.uid, str(event.revision)


def _own_of(named: _Named | _Whole) -> tuple[str, ...]:
    """The same as the object states it."""
    metadata = named.metadata
    return (
        named.api_version.rpartition("/")[0],
        metadata.namespace or "",
        metadata.name or "",
        metadata.uid or "",
        metadata.resource_version or "",
    )


def _problems(event: Event, whole: _Whole | None) -> Iterator[str]:
    """The faults of an event that are faults in every history."""
    stamp = event.stamp
    for name, number in (("cause", stamp.cause), ("observed revision", stamp.observed)):
        if not 0 <= number < event.revision:
            yield f"the {name} in its stamp, {number}, is no earlier revision"
    if event.is_about_object:
        yield from _object_problems(event, whole)
        return
    if not event.body.startswith(b"{"):
        yield "its payload is no JSON object"
    place = _PLACES.get(event.type)
    if place is not None and event.key[:2] != place:
        yield f"it is a {event.type} with the key of something else, {event.key}"
    elif place is None and event.key[:2] in _PLACES.values() and event.key[:2] != CLOCKS[:2]:
        yield f"it is a {event.type} with the key of another type of event, {event.key}"
    if place is not None and event.uid:
        yield f"a {event.type} has no uid, and this one has {event.uid!r}"
    if event.type is EventType.DECISION_RECORDED:
        yield from _decision_problems(event)


def _object_problems(event: Event, whole: _Whole | None) -> Iterator[str]:
    """The fields in which an event contradicts its own object."""
    try:
        named = _named(event.body) if whole is None else whole
    except (msgspec.DecodeError, RecursionError):
        yield "its object has no readable metadata"
        return
    ours, theirs = _repeated_by(event), _own_of(named)
    if ours != theirs:
        for part, mine, its in zip(_REPEATED, ours, theirs, strict=True):
            if mine != its:
                yield f"its {part} is {mine!r}, and that of its object {its!r}"


def _decision_problems(event: Event) -> Iterator[str]:
    try:
        subject = _subject(event.body)
    except (msgspec.DecodeError, RecursionError):
        yield "its decision cannot be read"
        return
    if (subject.namespace, subject.name) != (event.key.namespace, event.key.name):
        yield f"its key is {event.key}, and its decision is about another object"
    if event.stamp.verb != "decide":
        yield f"the verb of a decision is {event.stamp.verb!r}"
    user = event.stamp.actor.user
    if subject.controller in registry.NAMES and registry.actor_of(subject.controller).user != user:
        yield f"it is a decision of {subject.controller!r} that {user!r} wrote"


def _course_problems(event: Event, known: Uid | None) -> Iterator[str]:
    """The parts that redra's writer cannot have stored after the events before."""
    if event.type is EventType.OBJECT_CREATED:
        if known is not None:
            yield f"it creates {event.key}, which exists"
        if event.stamp.uid and event.stamp.uid != event.uid:
            yield "the uid of a new object is not that of its stamp"
    elif known is None:
        yield f"it is an {event.type} of {event.key}, which does not exist"
    elif known != event.uid:
        yield f"it is an {event.type} of {event.key} with another uid than the object has"


def _back_problems(event: Event, before: _Course | None, course: _Course) -> Iterator[str]:
    """The values that a write takes back although no server allows that."""
    # A write that removes the last finalizer removes the object, with the state before it.
    if (
        event.type is EventType.OBJECT_DELETED
        and event.stamp.verb in _DELETIONS
        and course.finalizers
    ):
        yield f"it deletes {event.key}, which has finalizers"
    if before is None or event.type is EventType.OBJECT_CREATED:
        return
    if before.creation_timestamp != course.creation_timestamp:
        yield f"it changes the creation time of {event.key}"
    if course.generation < before.generation:
        yield f"it sets the generation of {event.key} from {before.generation} back"
    if before.deletion_timestamp is not None and course.deletion_timestamp is None:
        yield f"it takes the deletion of {event.key} back"


def form_problems(event: Event) -> list[str]:
    """The places where an object is not written as redra writes it; decodes the object."""
    try:
        tree = event.object
        is_canonical = canonical_json(tree) == event.body
    except (msgspec.DecodeError, RecursionError):
        return []  # said of every history
    problems = []
    if not is_canonical:
        problems.append("its object is not in the form in which objects are written")
    kind = kinds.find(event.key.group, event.key.resource)
    if kind is not None and isinstance(tree, dict) and tree.get("kind") != kind.kind:
        written = tree.get("kind")
        problems.append(f"it is about {event.key.resource}, and its object is a {written!r}")
    return [_at(event, problem) for problem in problems]


def _append_of(event: Event) -> tuple[object, ...]:
    """The common values of the events of one append by a controller."""
    stamp = event.stamp
    return stamp.actor, stamp.cause, stamp.observed, stamp.time


def _at(event: Event, problem: str) -> str:
    return f"revision {event.revision}: {problem}"
