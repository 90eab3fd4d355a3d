"""The instants at which others could see each event of a recording, as far as known."""

from collections.abc import Sequence

from app.domain.log import Event, EventType
from app.domain.log.records import Loss
from app.domain.values import api_resources
from app.domain.values.timestamps import SECOND, Instant

_BETWEEN = 2
"""The microseconds between two events of redra that have the same time."""


def known_instants(events: Sequence[Event], begin: Instant | None = None) -> list[Instant]:
    """The instant at which others could see each event, in log order; always rising.

    An answer is given after the write, unless its time is marked as one that contradicts others. So
    a later event in the log that was answered earlier shows that this write had happened by then.
    Events of a source without times that fall into one second are spread over it, in order. A
    history of redra has the time of each event, before which nobody could see it; events of one
    time follow each other by two microseconds: between them lies the instant at which a controller
    had seen the first, but not the second. That something was imported shows nothing of when it was
    written. All instants are after `begin`, where a replay starts; events of that very instant
    follow it one after the other.
    """
    instants: list[Instant] = []
    bound: Instant | None = None
    spread = _spread(events)
    for number, event in zip(range(len(events) - 1, -1, -1), reversed(events), strict=True):
        origin = event.stamp.origin
        answered = spread.get(number, event.stamp.time)
        if origin is not None and origin.answered and event.is_about_object:
            is_odd = Loss.TIMES_CONTRADICT in origin.losses and origin.answered < answered
            answered = answered if is_odd else Instant(min(origin.answered, answered))
        if event.type is not EventType.HISTORY_IMPORTED:
            bound = answered if bound is None else Instant(min(bound - 1, answered))
        instants.append(answered if bound is None else bound)
    instants.reverse()
    for number, event in enumerate(events):
        if event.stamp.origin is None:
            least = instants[number - 1] + _BETWEEN if number else event.stamp.time
            instants[number] = Instant(max(event.stamp.time, least))
    if begin is not None:
        for number, instant in enumerate(instants):
            if instant > begin:
                break
            begin = instants[number] = Instant(begin + 1)
    return instants


def _spread(events: Sequence[Event]) -> dict[int, Instant]:
    """Instants for events whose source has only whole seconds, by their number.

    Example: three events at 7 s, followed by one at 7.6 s, get 7, 7.2 and 7.4 s.
    """
    spread: dict[int, Instant] = {}
    start = 0
    while start < len(events):
        begin = events[start].stamp.time
        end = start + 1
        while end < len(events) and events[end].stamp.time == begin:
            end += 1
        until = (begin // SECOND + 1) * SECOND
        if end < len(events):
            until = min(until, events[end].stamp.time)
        for number in range(start, end):
            if is_derived(events[number]):
                step = (until - begin) * (number - start) // (end - start)
                spread[number] = Instant(begin + step)
        start = end
    return spread


def seen_from(event: Event, known: Instant) -> Instant:
    """The earliest instant at which others can have seen an event; `known` is the latest.

    A write is stored between its request and its answer. A history of redra has its time. A source
    without times of its own has at best the second of the write.
    """
    origin = event.stamp.origin
    if origin is None:
        return Instant(min(event.stamp.time, known))
    first = event.stamp.time // SECOND * SECOND if is_derived(event) else origin.asked or known
    return Instant(min(first, known))


def skew_shown(event: Event) -> int:
    """The least difference between the clocks of two servers that an event shows, in microseconds.

    The time of an event in log order is that of the earliest answer to it or to a later write in
    the store. With a single clock no request has a later time. Writes without a version show
    nothing.
    """
    origin = event.stamp.origin
    if origin is None or not origin.asked or is_derived(event) or not has_version(event):
        return 0
    return max(0, origin.asked - event.stamp.time)


def has_version(event: Event) -> bool:
    """Whether the place of an event in the order is that of its version in the store."""
    origin = event.stamp.origin
    return origin is None or Loss.NO_RV not in origin.losses


def is_derived(event: Event) -> bool:
    """Whether the source has no time for an event, except at best a time in its object."""
    origin = event.stamp.origin
    return origin is not None and origin.time_quality in ("derived", "none")


def has_whole_seconds(event: Event) -> bool:
    """Whether a source that dates each write leaves the fractions of seconds out."""
    origin = event.stamp.origin
    return is_derived(event) and origin is not None and Loss.COARSE_TIME in origin.losses


class Undated:
    """The writes for which a source has no times, and when they may have come.

    `within` has, by the uids of removed objects, the instant at which a replay removes the object,
    and the last one before the next write that is no such removal. Removals of one second have the
    same last one. `nodes` has, by uid and instant, how long after it a write about a node may have
    come: up to the next event, if that is of a later second.
    """

    def __init__(self) -> None:
        self.within: dict[str, tuple[Instant, Instant]] = {}
        self.nodes: dict[tuple[str, Instant], Instant] = {}
        self._open: dict[str, Instant] = {}
        self._node: tuple[str, Instant] | None = None

    def note(self, event: Event, known: Instant) -> None:
        """Notes one event of the recording, which others could see from an instant on."""
        if self._node is not None and known >= self._node[1] + SECOND:
            self.nodes[self._node] = Instant(known - 1)
        is_of_node = event.type is EventType.OBJECT_UPDATED and event.key[:2] == api_resources.NODES
        self._node = (event.uid, known) if is_of_node and is_derived(event) else None
        is_undated = event.type is EventType.OBJECT_DELETED and is_derived(event)
        if not is_undated or known >= max(self._open.values(), default=known) + SECOND:
            for uid, first in self._open.items():
                self.within[uid] = first, Instant(max(first, known - 1))
            self._open.clear()
        if is_undated:
            self._open[event.uid] = known
