"""When each event of a recording could be seen by others, as far as its source tells."""

from collections.abc import Sequence

from app.domain.log import Event
from app.domain.values.timestamps import SECOND, Instant


def known_instants(events: Sequence[Event], begin: Instant | None = None) -> list[Instant]:
    """When each event, in the order of the log, could be seen by others; always rising.

    An answer is given after the write, so what comes later in the log and was answered earlier
    shows that this write had happened by then. What a source without times has in one second is
    spread over it, in its order. All come after `begin`, where a replay starts: with what happened
    at the very instant still to come, one after the other.
    """
    instants: list[Instant] = []
    bound: Instant | None = None
    spread = _spread(events)
    for number, event in zip(range(len(events) - 1, -1, -1), reversed(events), strict=True):
        origin = event.stamp.origin
        answered = spread.get(number, event.stamp.time)
        if origin is not None and origin.answered and event.is_about_object:
            answered = Instant(min(origin.answered, answered))
        bound = answered if bound is None else Instant(min(bound - 1, answered))
        instants.append(bound)
    instants.reverse()
    if begin is not None:
        for number, instant in enumerate(instants):
            if instant > begin:
                break
            begin = instants[number] = Instant(begin + 1)
    return instants


def _spread(events: Sequence[Event]) -> dict[int, Instant]:
    """Instants for events whose source has only seconds, by their number.

    Example: three events that all tell 7 s, and the next one 7.6 s, get 7, 7.2 and 7.4 s.
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


def is_derived(event: Event) -> bool:
    """Whether the source has no time of an event: at best what its object tells of itself."""
    origin = event.stamp.origin
    return origin is not None and origin.time_quality in ("derived", "none")
