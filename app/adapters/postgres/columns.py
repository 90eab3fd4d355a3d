"""Columns of rows as parameters of statements: the values of a column are sent as one text.

The driver checks of each element of an array whether it is an array itself, against abstract base
classes, which takes longer than all else that it does for the element. A joined column is one text
that the server splits.

    ("a", None, "b")  ──joined──▶  "a␟␞␟b"  ──split──▶  {a,NULL,b}

A text that contains a mark cannot be sent in this way; the caller then sends the values one by one.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate, islice

from app.domain.log import Event
from app.domain.log.upcasting import encode_stamp
from app.domain.values import timestamps
from app.domain.values.timestamps import Instant

SEPARATOR = "\x1f"
ABSENT = "\x1e"
"""The marks between values, and for NULL: characters that no name, number or JSON text contains."""

HASH_BYTES = 32
"""The length of a hash; those of a batch are sent as one value."""

MOMENTS_MAX = 4_096
"""Instants whose text is cached: the rows of a batch share them."""


def of_events(events: Iterable[Event], clock: Instant) -> list[tuple[object, ...]]:
    """The columns of each event from `time` to `hash`; `clock` is the time of the head."""
    rows: list[tuple[object, ...]] = []
    to_datetime = timestamps.to_datetime
    for event in events:
        time = event.stamp.time
        moment = to_datetime(time)
        if time >= clock:
            clock, clock_moment = time, moment
        else:
            clock_moment = to_datetime(clock)
        group, resource, namespace, name = event.key
        rows.append(
            (
                *(moment, clock_moment, event.type.value),
                *(group, resource, namespace, name, event.uid),
                *(encode_stamp(event.stamp), event.body, event.hash),
            )
        )
    return rows


def joined_events(events: Sequence[Event], clock: Instant) -> tuple[object, ...] | None:
    """The same by columns, as APPEND takes them; None where a text cannot be joined."""
    times = [event.stamp.time for event in events]
    texts = (
        list(map(moment, times)),
        list(map(moment, islice(accumulate(times, max, initial=clock), 1, None))),
        [event.type.value for event in events],
        *map(list, zip(*(event.key for event in events), strict=True)),
        [event.uid for event in events],
        [encode_stamp(event.stamp).decode() for event in events],
    )
    arguments = [joined(values) for values in texts]
    hashes = b"".join([event.hash for event in events])
    if None in arguments or len(hashes) != len(events) * HASH_BYTES:
        return None
    return (*arguments, [event.body for event in events], hashes)


def joined(values: Sequence[str | None]) -> str | None:
    """The values as one text, or None where `split` would not give these values back."""
    # Searching a text is many times quicker than counting in it.
    present = "".join([value for value in values if value is not None])
    if SEPARATOR in present or ABSENT in present:
        return None
    # An empty text is split into no value at all.
    return SEPARATOR.join([ABSENT if value is None else value for value in values]) or None


def split(parameter: str, sql_type: str) -> str:
    """The SQL expression for a joined column as an array of a type."""
    texts = f"string_to_array({parameter}::text, E'\\x1f', E'\\x1e')"
    return texts if sql_type == "text" else f"{texts}::{sql_type}[]"


@lru_cache(maxsize=MOMENTS_MAX)
def moment(instant: Instant) -> str:
    """The text that the server reads as the instant."""
    return timestamps.to_datetime(instant).isoformat()
