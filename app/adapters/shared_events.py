"""Events that forks of this process read while it still reads the log.

They are in a file that is only in memory (`memfd_create`, on Linux). Each run of events is a frame:
eight bytes with its length, then MessagePack. Not compressed: this process writes frames between
two pages of the log, and nobody keeps them for long. After the frames, other bytes may follow.
"""

import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from app.domain.log import Event

FRAME_MAX = 500
"""Events in one frame."""

_LENGTH = 8

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Event]).decode


class SharedBytes(NamedTuple):
    """A range of bytes in the file."""

    begin: int
    end: int


class SharedEvents:
    """The file. This process appends; its forks, which inherit it, read the parts that it names.

    Raises OSError when the system has no memory for it.
    """

    def __init__(self) -> None:
        self._file = os.memfd_create("redra-events")
        self._size = 0

    def add(self, events: Sequence[Event]) -> SharedBytes:
        """Append events that follow the events added before, as frames."""
        begin = self._size
        for first in range(0, len(events), FRAME_MAX):
            frame = _encode([event.undecoded() for event in events[first : first + FRAME_MAX]])
            self.put(len(frame).to_bytes(_LENGTH, "big") + frame)
        return SharedBytes(begin, self._size)

    def put(self, content: bytes) -> SharedBytes:
        """Append bytes."""
        view, begin = memoryview(content), self._size
        while view:
            written = os.write(self._file, view)
            self._size += written
            view = view[written:]
        return SharedBytes(begin, self._size)

    def read(self, span: SharedBytes) -> bytes:
        """The bytes of a range. Reading moves no position that others share."""
        parts, at = [], span.begin
        while at < span.end:
            part = os.pread(self._file, span.end - at, at)
            assert part, "the range was written before anybody was told of it"
            parts.append(part)
            at += len(part)
        return b"".join(parts)

    def frames(self, span: SharedBytes) -> Iterator[list[Event]]:
        """The events of a range of whole frames, one frame at a time."""
        at = span.begin
        while at < span.end:
            begin = at + _LENGTH
            at = begin + int.from_bytes(self.read(SharedBytes(at, begin)), "big")
            yield _decode(self.read(SharedBytes(begin, at)))

    def close(self) -> None:
        """Let the memory go; forks that have the file keep it."""
        os.close(self._file)
