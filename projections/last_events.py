"""The last events of objects, of which those that nobody has read for long are compressed.

This module is not a view. A cluster of 5,000 nodes and 50,000 pods has some 170,000 objects, which
take 1.7 KB each as events. Objects of one kind are much alike: compressed with another one of their
kind as dictionary, an object takes a sixth of that. It costs some 15 microseconds to compress an
event, and 4 to read it; small clusters are left as they are.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, overload

import msgspec

from app.domain.log import Event, ObjectKey, Revision
from app.domain.values.identifiers import GroupResource, Uid
from projections import outlines
from projections.packed import Packed, Packer

PLAIN_MAX = 20_000
"""Objects from which on older events are compressed, unless a caller says another number."""

_NORMAL = b'"type":"Normal"'
"""What the text of each Event has that is no warning; the type of some is not known."""


class Marks(NamedTuple):
    """The facts that the text of an event shows without being decoded.

    Whether its object may have owners, and whether it is an Event that may be a warning.
    """

    names_owners: bool
    is_unusual: bool

    @classmethod
    def of(cls, event: Event) -> "Marks":
        """Searches the body of an event."""
        is_unusual = event.key.resource == "events" and _NORMAL not in event.body
        return cls(outlines.names_owners(event.body), is_unusual)


class PackedEvent(msgspec.Struct, frozen=True, gc=False):
    """An event compressed with another event of the kind; both are encoded as in a dump.

    Each decoded event has this key and uid, so that all who keep parts of them share the texts.
    """

    key: ObjectKey
    uid: Uid
    revision: Revision
    marks: Marks
    packed: Packed

    @property
    def encoded(self) -> bytes:
        """The event as it is in a dump."""
        return self.packed.plain

    def event(self) -> Event:
        """The event, decoded anew each time."""
        event = _decode(self.encoded)
        event.key, event.uid = self.key, self.uid
        return event

    def check(self) -> None:
        """Raises ValueError unless all that is known here is what the compressed event says."""
        event = _decode(self.encoded)
        said = (event.key, event.uid, event.revision, Marks.of(event))
        if said != (self.key, self.uid, self.revision, self.marks):
            raise ValueError(f"{self.key} is kept as another object")


LastEvent = Event | PackedEvent
"""An event that is kept, in either form."""


def plain(kept: LastEvent) -> Event:
    """The event of either form."""
    return kept.event() if isinstance(kept, PackedEvent) else kept


class HeldEvents(Sequence[Event]):
    """Events in the form in which they are kept; each is decoded when it is read."""

    def __init__(self, kept: Iterable[LastEvent]) -> None:
        self._kept = tuple(kept)

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[Event]:
        return map(plain, self._kept)

    @overload
    def __getitem__(self, number: int) -> Event: ...
    @overload
    def __getitem__(self, number: slice) -> "HeldEvents": ...
    def __getitem__(self, number: int | slice) -> "Event | HeldEvents":
        if isinstance(number, slice):
            return HeldEvents(self._kept[number])
        return plain(self._kept[number])


class LastEvents:
    """The last event of each object that exists, by its key.

    With more than `plain_max` objects, `pack` compresses an event; it stays so until the object is
    written again or `get` is called. Without `plain_max`, nothing is compressed.
    """

    def __init__(self, plain_max: int | None = None) -> None:
        self.held: dict[ObjectKey, LastEvent] = {}
        self._plain_max = plain_max
        self._expected = 0
        self._packers: defaultdict[GroupResource, Packer] = defaultdict(Packer)
        # The compressed form of events that were read since: it serves again if they do not change.
        self._read: dict[ObjectKey, tuple[Event, PackedEvent]] = {}

    def __len__(self) -> int:
        return len(self.held)

    def __iter__(self) -> Iterator[ObjectKey]:
        return iter(self.held)

    def __getitem__(self, key: ObjectKey) -> Event:
        return plain(self.held[key])

    def get(self, key: ObjectKey) -> Event | None:
        """The event of an object, which stays as it is from now on; None without the object."""
        kept = self.held.get(key)
        if isinstance(kept, PackedEvent):
            event = self.held[key] = kept.event()
            self._read[key] = event, kept
            return event
        return kept

    def look(self, key: ObjectKey) -> Event | None:
        """Like `get`, but the event stays compressed: for a reader of many events."""
        kept = self.held.get(key)
        return None if kept is None else plain(kept)

    def encoded(self, kept: LastEvent) -> bytes:
        """An event of either form as it is in a dump; packs what nobody has read."""
        if isinstance(kept, PackedEvent):
            return kept.encoded
        if kept.tree is None and (before := self._packed_before(kept)) is not None:
            return before.encoded
        data = _encode(kept.undecoded())
        if kept.tree is None and self._may_pack(kept):
            self._pack(kept, data)
        return data

    def pack(self, event: Event) -> None:
        """Compresses an event, if it is the last one of its object and there are many objects."""
        if self._packed_before(event) is None and self._may_pack(event):
            self._pack(event, _encode(event.undecoded()))

    @property
    def packs(self) -> bool:
        """Whether `pack` may compress an event; False as long as there are few objects."""
        return bool(self._read) or self._is_large

    @contextmanager
    def loading(self, count: int) -> Iterator[None]:
        """Events are packed as if all of the `count` objects were there already."""
        self._expected = count
        try:
            yield
        finally:
            self._expected = 0

    def _packed_before(self, event: Event) -> PackedEvent | None:
        """The compressed form from which an event was read, which takes its place again."""
        read, packed = self._read.get(event.key, _NOT_READ)
        if read is not event or packed is None:
            return None
        del self._read[event.key]
        if self.held.get(event.key) is not event:
            return None
        self.held[event.key] = packed
        return packed

    @property
    def _is_large(self) -> bool:
        count = max(len(self.held), self._expected)
        return self._plain_max is not None and count > self._plain_max

    def _may_pack(self, event: Event) -> bool:
        return self._is_large and self.held.get(event.key) is event

    def _pack(self, event: Event, data: bytes) -> None:
        key = event.key
        self.held[key] = PackedEvent(
            key, event.uid, event.revision, Marks.of(event), self._packers[key[:2]].pack(data)
        )


_NOT_READ = (None, None)

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Event).decode
