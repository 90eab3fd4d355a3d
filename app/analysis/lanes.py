"""The lanes of a question: pods, claims, devices and nodes with their states and marks."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from app.analysis import spans
from app.analysis.chronicle import Chronicle
from app.analysis.spans import Span
from app.domain.log import ObjectKey, Revision
from app.domain.log.doubts import Doubt
from app.domain.values import api_resources, timestamps
from app.domain.values.timestamps import Instant
from projections.timeline import Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneBounds:
    """The bounds of an answer: `lanes_max` lanes with `shapes_max` states and marks in all.

    A lane has at most `states_max` states, where one state may then stand for several short ones,
    and the newest `marks_max` marks.
    """

    lanes_max: int = 40
    shapes_max: int = 550
    states_max: int = 16
    marks_max: int = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class LanesRequest:
    """The lanes wanted: of a namespace, of objects with `name` in their name; empty: all.

    Only lanes with a state between `since` and `until` are shown; None: from the first to the last.
    Nothing after the moment shown is included.
    """

    namespace: str = ""
    name: str = ""
    since: Instant | None = None
    until: Instant | None = None

    def matches(self, key: ObjectKey) -> bool:
        """Whether an object matches by itself."""
        return self.namespace in ("", key.namespace) and self.name in key.name


class LaneState(msgspec.Struct, frozen=True, kw_only=True):
    """A state of a lane; `end` is 0 and `ended` empty while it lasts.

    With a `count` above one, it stands for that many consecutive states, each of which is shorter
    than those that are shown separately.
    """

    state: str
    label: str
    begin: Revision
    began: str
    end: Revision
    ended: str
    count: int = 1


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """An event about the object of a lane."""

    revision: Revision
    time: str
    kind: str
    text: str


class Lane(msgspec.Struct, frozen=True, kw_only=True):
    """One lane; `depth` is 0 for a pod, 1 for its claims, 2 for the claims' devices.

    `earlier` counts the marks before the first of `marks`.
    """

    group: str
    resource: str
    namespace: str
    name: str
    depth: int
    states: tuple[LaneState, ...]
    marks: tuple[Mark, ...]
    earlier: int = 0

    @property
    def key(self) -> ObjectKey:
        """The key of the object; devices have the group and resource `DEVICES`."""
        return ObjectKey(self.group, self.resource, self.namespace, self.name)


class Blind(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch that was not fully recorded."""

    begin: Revision
    began: str
    end: Revision
    ended: str


class Lanes(msgspec.Struct, frozen=True, kw_only=True):
    """The lanes, most recent pods first, each followed by its claims and their devices.

    `begin` and `end` are the instants between which something is shown: the requested ones, or all.
    If something did not fit, they cover the time of the pods and claims that did. `omitted` counts
    the matching pods, claims and nodes that did not fit. `note` says if more of the log is left.
    `certainty` is `sure`, or `unsure` where the recording lacks content; `doubts` are its losses.
    """

    history: str
    revision: Revision
    examined: Revision
    begin: str
    end: str
    lanes: tuple[Lane, ...]
    gaps: tuple[Blind, ...]
    omitted: int = 0
    note: str = ""
    certainty: str = "sure"
    doubts: tuple[Doubt, ...] = ()


def of(
    history: str,
    chronicle: Chronicle,
    until: Revision,
    now: Instant,
    wanted: LanesRequest,
    visible: Callable[[Entry], bool],
    bounds: LaneBounds = LaneBounds(),
) -> Lanes:
    """The lanes up to a revision, whose instant is `now`, without marks that are not `visible`."""
    window = _window(wanted, now)
    if window.begin > window.end:
        return _nothing(history, chronicle, until, window.end)
    lanes: list[Lane] = []
    shapes = visited = 0
    shown: set[ObjectKey] = set()
    is_full = False
    for first in _meant(chronicle, until, wanted, window):
        visited += 1
        # A device that several claims of a pod held in succession is shown with the first claim.
        members: dict[ObjectKey, int] = {}
        for key, depth in _group(chronicle, until, first):
            if key not in shown and _is_within(chronicle, key, until, window):
                members.setdefault(key, depth)
        made = [
            _lane(chronicle, until, visible, bounds, window, key, depth)
            for key, depth in members.items()
        ]
        size = sum(len(lane.states) + len(lane.marks) for lane in made)
        is_full = len(lanes) + len(made) > bounds.lanes_max or shapes + size > bounds.shapes_max
        if is_full and lanes:
            visited -= 1
            break
        lanes += made[: bounds.lanes_max]
        shapes += size
        shown.update(lane.key for lane in made)
        if is_full:
            break
    omitted = _count(chronicle, until, wanted, window) - visited if is_full else 0
    if omitted and wanted.since is None:
        objects = [lane for lane in lanes if lane.key[:2] in _PEOPLE]
        window = _Window(_first_instant(objects or lanes, now), window.end)
        lanes = [
            _lane(chronicle, until, visible, bounds, window, lane.key, lane.depth)
            for lane in lanes
            if _is_within(chronicle, lane.key, until, window)
        ]
    begin = window.begin if window.begin else _first_instant(lanes, now)
    return Lanes(
        history=history,
        revision=until,
        examined=Revision(min(chronicle.revision, until)),
        note=chronicle.unread(until),
        begin=timestamps.micro_text(begin),
        end=timestamps.micro_text(Instant(max(window.end, begin))),
        lanes=tuple(lanes),
        gaps=tuple(_gaps(chronicle, until, window)),
        omitted=omitted,
    )


def in_steps(
    chronicle: Chronicle, until: Revision, now: Instant, wanted: LanesRequest
) -> Iterator[None]:
    """The steps in which the states of the objects are worked out that a filter of `of` reads."""
    if wanted != LanesRequest():
        for _ in _looked_at(chronicle, until, wanted, _window(wanted, now)):
            yield


def _nothing(history: str, chronicle: Chronicle, until: Revision, now: Instant) -> Lanes:
    text = timestamps.micro_text(now)
    examined = Revision(min(chronicle.revision, until))
    return Lanes(
        history=history,
        revision=until,
        examined=examined,
        begin=text,
        end=text,
        lanes=(),
        gaps=(),
        note=chronicle.unread(until),
    )


@dataclass(frozen=True, slots=True)
class _Window:
    """The time that is shown, including both instants."""

    begin: Instant
    end: Instant

    def holds(self, span: Span) -> bool:
        """Whether the state lasted at some time of the window; not if it ended when that began."""
        if span.begin[1] > self.end:
            return False
        return span.end is None or span.end[1] > self.begin or span.begin[1] >= self.begin

    def length(self, span: Span) -> int:
        """The duration of the state within the window."""
        end = self.end if span.end is None else min(self.end, span.end[1])
        return max(0, end - max(self.begin, span.begin[1]))


def _window(wanted: LanesRequest, now: Instant) -> _Window:
    return _Window(
        wanted.since if wanted.since is not None else Instant(0),
        now if wanted.until is None else min(now, wanted.until),
    )


def _gaps(chronicle: Chronicle, until: Revision, window: _Window) -> Iterator[Blind]:
    """The stretches of time within the window that nobody recorded."""
    for gap in chronicle.states.gaps:
        if gap.end[0] <= until and window.begin <= gap.end[1] and gap.begin[1] <= window.end:
            yield Blind(
                begin=gap.begin[0],
                began=timestamps.micro_text(gap.begin[1]),
                end=gap.end[0],
                ended=timestamps.micro_text(gap.end[1]),
            )


def _first_instant(lanes: Sequence[Lane], default: Instant) -> Instant:
    """The instant at which the first of the lanes began."""
    return min(
        (timestamps.parse(state.began) for lane in lanes for state in lane.states[:1]),
        default=default,
    )


_PEOPLE = frozenset((api_resources.PODS, api_resources.RESOURCE_CLAIMS))


def _is_within(chronicle: Chronicle, key: ObjectKey, until: Revision, window: _Window) -> bool:
    """Whether any state of an object lasted at some time of the window."""
    states = chronicle.states.lane(key)
    last = states[-1].end
    if states[0].begin[1] > window.end or (last is not None and last[1] < window.begin):
        return False
    return any(map(window.holds, spans.up_to(states, until)))


def _meant(
    chronicle: Chronicle, until: Revision, wanted: LanesRequest, window: _Window
) -> Iterator[ObjectKey]:
    """The matching pods, the last ones first, then claims without a pod, then nodes.

    A pod also matches when one of its claims or devices does.
    """
    return filter(None, _looked_at(chronicle, until, wanted, window))


def _looked_at(
    chronicle: Chronicle, until: Revision, wanted: LanesRequest, window: _Window
) -> Iterator[ObjectKey | None]:
    """The objects of `_meant`, and None for each that is looked at and does not match."""
    is_timed = wanted.since is not None or wanted.until is not None
    objects = _named if wanted.name else _of_namespace
    for key in objects(chronicle, until, wanted):
        is_shown = key is None or not is_timed or _is_within(chronicle, key, until, window)
        yield key if is_shown else None


def _of_namespace(
    chronicle: Chronicle, until: Revision, wanted: LanesRequest
) -> Iterator[ObjectKey | None]:
    """The pods, claims without a pod and nodes of a namespace, or of all; None for others."""
    folded = chronicle.states
    for place in _PLACES:
        for number in range(folded.count_begun(place, until) - 1, -1, -1):
            key = folded.begun_key(place, number)
            # The claims of a pod are in its namespace; devices are in none.
            yield key if wanted.matches(key) and not folded.pods_of(key, until) else None


def _named(
    chronicle: Chronicle, until: Revision, wanted: LanesRequest
) -> Iterator[ObjectKey | None]:
    """The objects that match by a name, of their own or of a claim or device, in their order."""
    folded = chronicle.states
    meant: dict[ObjectKey, None] = {}
    for place in (*_PLACES, spans.DEVICES):
        for key in filter(wanted.matches, folded.named(place, wanted.name)):
            yield None
            if not _has_begun(chronicle, key, until):
                continue
            holders = folded.holders_of(key, until) if place == spans.DEVICES else (key,)
            for each in holders:
                meant.update(dict.fromkeys(folded.pods_of(each, until) or (each,)))
                yield None
    ordered = [key for key in meant if _has_begun(chronicle, key, until)]
    ordered.sort(key=lambda key: (_PLACES.index(key[:2]), -folded.lane(key)[0].begin[0]))
    yield from ordered


def _has_begun(chronicle: Chronicle, key: ObjectKey, until: Revision) -> bool:
    states = chronicle.states.lane(key)
    return bool(states) and states[0].begin[0] <= until


_PLACES = (api_resources.PODS, api_resources.RESOURCE_CLAIMS, api_resources.NODES)


def _count(chronicle: Chronicle, until: Revision, wanted: LanesRequest, window: _Window) -> int:
    """The number of matching objects."""
    if wanted != LanesRequest():
        return sum(1 for _ in _meant(chronicle, until, wanted, window))
    # For a long history, examining each of its pods would take too long.
    folded = chronicle.states
    begun = sum(folded.count_begun(place, until) for place in _PLACES)
    return begun - folded.count_claimed(until)


def _group(
    chronicle: Chronicle, until: Revision, first: ObjectKey
) -> Iterator[tuple[ObjectKey, int]]:
    """A pod with its claims and their devices, or a claim without a pod with its devices."""
    folded = chronicle.states
    yield first, 0
    if first[:2] == api_resources.RESOURCE_CLAIMS:
        yield from ((device, 1) for device in folded.devices_of(first, until))
    for claim in folded.claims_of(first, until):
        yield claim, 1
        yield from ((device, 2) for device in folded.devices_of(claim, until))


def _lane(
    chronicle: Chronicle,
    until: Revision,
    visible: Callable[[Entry], bool],
    bounds: LaneBounds,
    window: _Window,
    key: ObjectKey,
    depth: int,
) -> Lane:
    states = spans.up_to(chronicle.states.lane(key), until)
    lasted = [span for span in states if window.holds(span)]
    entries = [
        entry
        for entry in chronicle.about(key, until=until)
        if window.begin <= entry.time <= window.end and visible(entry)
    ]
    return Lane(
        group=key.group,
        resource=key.resource,
        namespace=key.namespace,
        name=key.name,
        depth=depth,
        states=tuple(_state(part, window) for part in _parts(lasted, window, bounds.states_max)),
        marks=tuple(
            Mark(
                revision=entry.revision,
                time=timestamps.micro_text(Instant(entry.time)),
                kind=entry.kind,
                text=entry.text,
            )
            for entry in entries[-bounds.marks_max :]
        ),
        earlier=max(0, len(entries) - bounds.marks_max),
    )


def _parts(lasted: Sequence[Span], window: _Window, count_max: int) -> Iterator[Sequence[Span]]:
    """The states of a lane, one by one; if they are too many, short neighbours are joined.

    The longest states stay separate, so that everything between two of them is one part.
    """
    if len(lasted) <= count_max:
        yield from ([span] for span in lasted)
        return
    numbers = sorted(range(len(lasted)), key=lambda number: -window.length(lasted[number]))
    alone = frozenset(numbers[: max(0, (count_max - 1) // 2)])
    part: list[Span] = []
    for number, span in enumerate(lasted):
        if number not in alone:
            part.append(span)
            continue
        if part:
            yield part
            part = []
        yield [span]
    if part:
        yield part


def _state(part: Sequence[Span], window: _Window) -> LaneState:
    first, last = part[0], part[-1]
    state, label = first.state, first.label
    if len(part) > 1:
        lengths: Counter[str] = Counter()
        for span in part:
            lengths[span.state] += window.length(span)
        state, label = SEVERAL, f"{len(part)} states, mostly {lengths.most_common(1)[0][0]}"
    return LaneState(
        state=state,
        label=label,
        begin=first.begin[0],
        began=timestamps.micro_text(first.begin[1]),
        end=last.end[0] if last.end is not None else Revision(0),
        ended=timestamps.micro_text(last.end[1]) if last.end is not None else "",
        count=len(part),
    )


SEVERAL = "several"
"""The state of a part of a lane that stands for several consecutive states."""
