"""The form in which the last events of objects are kept as a state, and read again.

This module is not a view. Compressed events are kept as they are, with what is known of them: a
start of a large cluster neither decodes nor compresses them. All others are kept as events.

    state   revision, number of objects, samples, parts of compressed events, parts of others
    part    up to AT_ONCE entries, as bytes
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from app.domain.log import Event, ObjectKey, Revision
from app.domain.values.identifiers import Uid
from projections.last_events import LastEvent, LastEvents, Marks, PackedEvent
from projections.packed import Packed

AT_ONCE = 1_000
"""Entries in one part of a state."""

Created = Mapping[ObjectKey, int]
"""The revisions at which objects were created."""


class _PackedEntry(NamedTuple):
    """A compressed event. `sample` is the number of the sample that it was compressed with."""

    created: int
    group: str
    resource: str
    namespace: str
    name: str
    uid: Uid
    revision: Revision
    marks: Marks
    sample: int
    data: bytes


class KeptObjects:
    """A kept state; each part is decoded when it is read."""

    def __init__(self, state: bytes) -> None:
        """Raises msgspec.DecodeError for bytes that are no state."""
        self.revision, self.count, self._samples, self._packed, self._plain = _decode_state(state)

    def packed(self) -> Iterator[list[tuple[int, PackedEvent]]]:
        """The compressed events with the revisions of creation, sorted by key; a part at a time."""
        place = ObjectKey("", "", "", "")
        for part in self._packed:
            events = []
            for entry in _decode_entries(part):
                # One text for the group, resource and namespace of all objects there.
                if entry[1:4] == place[:3]:
                    place = ObjectKey(*place[:3], entry.name)
                else:
                    place = ObjectKey(*entry[1:5])
                packed = Packed(entry.data, self._samples[entry.sample])
                event = PackedEvent(place, entry.uid, entry.revision, _one(entry.marks), packed)
                events.append((entry.created, event))
            yield events

    def plain(self) -> Iterator[list[tuple[int, Event]]]:
        """The other events with the revisions of creation, sorted by key; a part at a time."""
        place = ObjectKey("", "", "", "")
        for part in self._plain:
            events = []
            for created, event in _decode_events(part):
                if event.key[:3] == place[:3]:
                    event.key = place._replace(name=event.key.name)
                place = event.key
                events.append((created, event))
            yield events


def as_events(
    revision: Revision, created: Created, events: Sequence[tuple[ObjectKey, LastEvent]]
) -> Iterator[bytes]:
    """The state in which no event is compressed: equal for equal objects.

    Raises ValueError where a compressed event is not the one that it is kept as.
    """
    yield _head(revision, len(events), ()) + _length(()) + _length(events)
    for some in _in_parts(events):
        for _, event in some:
            if isinstance(event, PackedEvent):
                event.check()
        yield _plain_part(created, [(key, _encoded(event)) for key, event in some])


def as_kept(
    revision: Revision,
    created: Created,
    events: Sequence[tuple[ObjectKey, LastEvent]],
    last: LastEvents,
) -> Iterator[bytes]:
    """The state with those events compressed that are; `last` holds the encoded form of others."""
    packed = [(key, event) for key, event in events if isinstance(event, PackedEvent)]
    plain = [(key, event) for key, event in events if isinstance(event, Event)]
    samples: dict[bytes, int] = {}
    for _, event in packed:
        samples.setdefault(event.packed.sample, len(samples))
    yield _head(revision, len(events), samples) + _length(packed)
    for some in _in_parts(packed):
        entries = [
            (
                created[key],
                *key,
                event.uid,
                event.revision,
                event.marks,
                samples[event.packed.sample],
                event.packed.data,
            )
            for key, event in some
        ]
        yield _encode(_encode(entries))
    yield _length(plain)
    for others in _in_parts(plain):
        yield _plain_part(created, [(key, last.encoded(event)) for key, event in others])


def _plain_part(created: Created, events: Sequence[tuple[ObjectKey, bytes]]) -> bytes:
    return _encode(_encode([(created[key], msgspec.Raw(encoded)) for key, encoded in events]))


def _encoded(event: LastEvent) -> bytes:
    if isinstance(event, PackedEvent):
        return event.encoded
    return _encode(event.undecoded())


def _in_parts(events: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (events[first : first + AT_ONCE] for first in range(0, len(events), AT_ONCE))


def _head(revision: Revision, count: int, samples: Iterable[bytes]) -> bytes:
    # MessagePack writes an array of five as 0x95, a list as 0xdd and its length, then the items.
    return b"\x95" + _encode(revision) + _encode(count) + _encode(list(samples))


def _length(events: Sequence[Any]) -> bytes:
    """The beginning of a list of the parts of so many events."""
    return b"\xdd" + (-(-len(events) // AT_ONCE)).to_bytes(4, "big")


def _one(marks: Marks) -> Marks:
    """The marks as a value that all events with equal marks share."""
    return _MARKS[marks.names_owners][marks.is_unusual]


_MARKS = tuple(
    tuple(Marks(owners, unusual) for unusual in (False, True)) for owners in (False, True)
)

_encode = msgspec.msgpack.Encoder().encode
_decode_state = msgspec.msgpack.Decoder(
    tuple[Revision, int, list[bytes], list[bytes], list[bytes]]
).decode
_decode_entries = msgspec.msgpack.Decoder(list[_PackedEntry]).decode
_decode_events = msgspec.msgpack.Decoder(list[tuple[int, Event]]).decode
