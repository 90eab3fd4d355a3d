"""Events of one history in a temporary file, for processes that read them at their own pace.

The file has no name: it is gone when the last process that holds it has ended, however that ended.
Others get its descriptor and read by position. Each run of events is a frame: eight bytes with its
length, then the events as MessagePack.
"""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress

import msgspec

from app.domain.log import Event

FRAME_MAX = 500
"""Events in one frame."""

_LENGTH = 8

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Event]).decode


class EventSpool:
    """Takes events, in order; what was added can be read at once. OSError when there is no room."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="redra-events-")  # noqa: SIM115 held until close
        self.size = 0

    @property
    def descriptor(self) -> int:
        """To be passed on to processes that read."""
        return self._file.fileno()

    def add(self, events: Sequence[Event]) -> None:
        """Add events that follow the ones before."""
        for first in range(0, len(events), FRAME_MAX):
            frame = _encode(events[first : first + FRAME_MAX])
            self._file.write(len(frame).to_bytes(_LENGTH, "big"))
            self._file.write(frame)
            self.size += _LENGTH + len(frame)
        self._file.flush()

    def close(self) -> None:
        """Let the file go."""
        with suppress(OSError):  # what could not be written is not wanted any more
            self._file.close()


def read(descriptor: int) -> Iterator[list[Event]]:
    """All events of a spool, a frame at a time."""
    place = 0
    while length := os.pread(descriptor, _LENGTH, place):
        place += _LENGTH
        size = int.from_bytes(length, "big")
        yield _decode(_read_whole(descriptor, size, place))
        place += size


def _read_whole(descriptor: int, size: int, place: int) -> bytes:
    """So many bytes; a single read may give fewer."""
    parts: list[bytes] = []
    while size:
        part = os.pread(descriptor, size, place)
        if not part:
            raise EOFError("the spool of events ends within a frame")
        parts.append(part)
        size -= len(part)
        place += len(part)
    return b"".join(parts)
