"""The lanes of a question: which pods, claims, devices and nodes, and what happened to each."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import msgspec

from app.analysis import spans
from app.analysis.chronicle import Chronicle
from app.analysis.spans import Span
from app.domain.log import ObjectKey, Revision
from app.domain.values import api_resources, timestamps
from app.domain.values.timestamps import Instant
from projections.timeline import Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneBounds:
    """An answer has at most `lanes_max` lanes with `shapes_max` states and marks in all."""

    lanes_max: int = 40
    shapes_max: int = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class LanesRequest:
    """Which lanes are wanted: of one namespace, of objects whose name holds `name`; empty: all."""

    namespace: str = ""
    name: str = ""

    def takes(self, key: ObjectKey) -> bool:
        """Whether an object is meant by itself."""
        return self.namespace in ("", key.namespace) and self.name in key.name


class State(msgspec.Struct, frozen=True, kw_only=True):
    """A state of a lane; `end` is 0 and `ended` empty while it lasts."""

    state: str
    label: str
    begin: Revision
    began: str
    end: Revision
    ended: str


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened to the object of a lane."""

    revision: Revision
    time: str
    kind: str
    text: str


class Lane(msgspec.Struct, frozen=True, kw_only=True):
    """One lane; `depth` is 0 for a pod, 1 for its claims, 2 for the devices of these."""

    group: str
    resource: str
    namespace: str
    name: str
    depth: int
    states: tuple[State, ...]
    marks: tuple[Mark, ...]

    @property
    def key(self) -> ObjectKey:
        """The key of the object; devices have the group and resource `DEVICES`."""
        return ObjectKey(self.group, self.resource, self.namespace, self.name)


class Blind(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch that nobody recorded as a whole."""

    begin: Revision
    began: str
    end: Revision
    ended: str


class Lanes(msgspec.Struct, frozen=True, kw_only=True):
    """The lanes, pods that began last first, each followed by its claims and their devices.

    `begin` and `end` are the instants between which something is shown. `omitted` counts the pods,
    claims and nodes that are meant and did not fit.
    """

    history: str
    revision: Revision
    examined: Revision
    begin: str
    end: str
    lanes: tuple[Lane, ...]
    gaps: tuple[Blind, ...]
    omitted: int = 0


def of(
    history: str,
    chronicle: Chronicle,
    until: Revision,
    now: Instant,
    wanted: LanesRequest,
    visible: Callable[[Entry], bool],
    bounds: LaneBounds = LaneBounds(),
) -> Lanes:
    """The lanes up to a revision, whose instant is `now`; marks that are not `visible` are out."""
    lanes: list[Lane] = []
    shapes = omitted = 0
    shown: set[ObjectKey] = set()
    is_full = False
    for first in _meant(chronicle, until, wanted):
        if is_full:
            omitted += 1
            continue
        made = [
            _lane(chronicle, until, visible, *member)
            for member in _group(chronicle, until, first)
            if member[0] not in shown
        ]
        size = sum(len(lane.states) + len(lane.marks) for lane in made)
        is_full = len(lanes) + len(made) > bounds.lanes_max or shapes + size > bounds.shapes_max
        if is_full and lanes:
            omitted += 1
            continue
        lanes += made[: bounds.lanes_max]
        shapes += size
        shown.update(lane.key for lane in made)
    instants = [state.began for lane in lanes for state in lane.states]
    begin = min(instants, default=timestamps.micro_text(now))
    return Lanes(
        history=history,
        revision=until,
        examined=Revision(min(chronicle.revision, until)),
        begin=begin,
        end=max(timestamps.micro_text(now), begin),
        lanes=tuple(lanes),
        gaps=tuple(
            Blind(
                begin=gap.begin[0],
                began=timestamps.micro_text(gap.begin[1]),
                end=gap.end[0],
                ended=timestamps.micro_text(gap.end[1]),
            )
            for gap in chronicle.spans.gaps
            if gap.end[0] <= until
        ),
        omitted=omitted,
    )


def _meant(chronicle: Chronicle, until: Revision, wanted: LanesRequest) -> Iterator[ObjectKey]:
    """Pods, the last ones first, then claims of nobody, then nodes.

    A pod is meant also when one of its claims or devices is.
    """
    folded = chronicle.spans
    is_open = not wanted.namespace and not wanted.name
    for place in (api_resources.PODS, api_resources.RESOURCE_CLAIMS, api_resources.NODES):
        for key in reversed(folded.began.get(place, ())):
            if folded.lanes[key][0].begin[0] > until or key in folded.claimed:
                continue
            if (
                is_open
                or wanted.takes(key)
                or any(wanted.takes(other) for other, _ in _group(chronicle, until, key))
            ):
                yield key


def _group(
    chronicle: Chronicle, until: Revision, first: ObjectKey
) -> Iterator[tuple[ObjectKey, int]]:
    """A pod with its claims and the devices of these, or a claim of nobody with its devices."""
    folded = chronicle.spans
    yield first, 0
    if first[:2] == api_resources.RESOURCE_CLAIMS:
        yield from ((device, 1) for device in _held(chronicle, first, until))
    for claim in folded.claims_of(first):
        if folded.lanes[claim][0].begin[0] <= until:
            yield claim, 1
            yield from ((device, 2) for device in _held(chronicle, claim, until))


def _held(chronicle: Chronicle, claim: ObjectKey, until: Revision) -> Iterator[ObjectKey]:
    folded = chronicle.spans
    for device in folded.devices_of(claim):
        if folded.lanes[device][0].begin[0] <= until:
            yield device


def _lane(
    chronicle: Chronicle,
    until: Revision,
    visible: Callable[[Entry], bool],
    key: ObjectKey,
    depth: int,
) -> Lane:
    return Lane(
        group=key.group,
        resource=key.resource,
        namespace=key.namespace,
        name=key.name,
        depth=depth,
        states=tuple(_state(span) for span in spans.up_to(chronicle.spans.lanes[key], until)),
        marks=tuple(
            Mark(
                revision=entry.revision,
                time=timestamps.micro_text(Instant(entry.time)),
                kind=entry.kind,
                text=entry.text,
            )
            for entry in chronicle.about(key, until=until)
            if visible(entry)
        ),
    )


def _state(span: Span) -> State:
    return State(
        state=span.state,
        label=span.label,
        begin=span.begin[0],
        began=timestamps.micro_text(span.begin[1]),
        end=span.end[0] if span.end is not None else Revision(0),
        ended=timestamps.micro_text(span.end[1]) if span.end is not None else "",
    )
