"""Stored events of every earlier format, read as events of the present format.

An event is written once and stays readable. When the stored form changes, `FORMAT_VERSION` grows,
and the old form gets an upcaster here and a golden file under `tests/unit/log/golden`.

The hash of an event covers the form in which it was written. Events of the present format are
checked as they are; events of an older format are checked before they are upcast.
"""

import hashlib
from collections.abc import Callable, Mapping

import msgspec

from app.domain.errors import ChainBroken, WrongDatabase
from app.domain.log import chain
from app.domain.log.event import FORMAT_VERSION, Event, EventType, ObjectKey, Revision, Stamp
from app.domain.values.identifiers import Uid
from app.domain.values.timestamps import Instant


class StoredEvent(msgspec.Struct, frozen=True, kw_only=True):
    """The stored form of an event: scalars, and two JSON texts.

    `stamp` is JSON with the fields of a Stamp; its time is a number of microseconds.
    """

    format: int
    revision: Revision
    type: str
    key: ObjectKey
    uid: Uid
    stamp: bytes
    object: bytes
    hash: bytes


class StoredRow(msgspec.Struct, frozen=True, kw_only=True):
    """A stored event and the columns that are derived from it.

    `time` is the time of the stamp, `clock` the greatest time so far; None when it is no instant.
    """

    event: StoredEvent
    time: Instant | None
    clock: Instant | None


Upcaster = Callable[[StoredEvent], StoredEvent]

UPCASTERS: Mapping[int, Upcaster] = {}
"""For each old format, the step to the next one. Format 1 is the first: nothing precedes it."""

encode_stamp = msgspec.json.Encoder(order="deterministic").encode
_decode_stamp = msgspec.json.Decoder(Stamp).decode
_types = {str(known): known for known in EventType}


def to_stored(event: Event) -> StoredEvent:
    """The stored form of an event of the present format."""
    return StoredEvent(
        format=event.format,
        revision=event.revision,
        type=str(event.type),
        key=event.key,
        uid=event.uid,
        stamp=encode_stamp(event.stamp),
        object=event.body,
        hash=event.hash,
    )


def from_stored(
    stored: StoredEvent,
    upcasters: Mapping[int, Upcaster] = UPCASTERS,
    *,
    stamp: Stamp | None = None,
) -> Event:
    """The event, upcast step by step when its format is old.

    `stamp` is the stamp of `stored`, if it is decoded already. Raises WrongDatabase for a format or
    type that only a newer program knows, ChainBroken for a stamp that cannot be read.
    """
    written = stored
    while stored.format != FORMAT_VERSION:
        step = upcasters.get(stored.format)
        if step is None:
            raise WrongDatabase(
                f"event {stored.revision} has format {stored.format}, this program reads up to "
                f"{FORMAT_VERSION}: a newer redra wrote it, use that one"
            )
        stored = step(stored)
    return Event(
        revision=stored.revision,
        type=type_of(stored.type, stored.revision),
        key=stored.key,
        uid=stored.uid,
        body=stored.object,
        stamp=stamp if stamp is not None and stored is written else stamp_of(stored),
        hash=stored.hash,
        format=stored.format,
    )


def type_of(stored: str, revision: Revision) -> EventType:
    """The type of an event. Raises WrongDatabase for one that only a newer program knows."""
    known = _types.get(stored)
    if known is None:
        raise WrongDatabase(
            f"event {revision} is a {stored!r}, which this program does not know: "
            "a newer redra wrote it, use that one"
        )
    return known


def stamp_of(stored: StoredEvent) -> Stamp:
    """The stamp of a stored event. Raises ChainBroken when it cannot be read."""
    try:
        return _decode_stamp(stored.stamp)
    except (msgspec.DecodeError, RecursionError) as problem:
        raise ChainBroken(stored.revision, f"its stamp cannot be read: {problem}") from problem


def hash_of(stored: StoredEvent, stamp: Stamp, previous: bytes) -> bytes:
    """The hash that a stored event with this stamp has after the one whose hash is `previous`.

    Raises ChainBroken when its stamp is not in the form in which stamps are written.
    """
    if encode_stamp(stamp) != stored.stamp:
        # A reader of the database sees the whole stamp, of which only some fields are hashed.
        raise ChainBroken(stored.revision, "its stamp is not in the form in which it is written")
    covered = chain.canonical_parts(
        stored.format,
        stored.key,
        stored.uid,
        stored.object,
        stored.revision,
        chain.stamp_json(stamp),
        stored.type,
    )
    return hashlib.sha256(previous + covered).digest()
