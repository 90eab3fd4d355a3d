"""The forms in which a chronicle is kept: a present state, and a part for each stretch of the log.

A stretch is kept once. So what is written does not grow with the length of the history, and what is
read of a stretch is not interpreted before a question needs it.
"""

import zlib
from array import array

import msgspec

from app.analysis.keeping.graphs import UnknownForm
from app.analysis.keeping.span_changes import Moment
from app.analysis.keeping.subjects import KeptSubjects
from app.analysis.keeping.topics import KeptTopics
from app.domain.log import Revision
from projections.packed import Block


class KeptState(msgspec.Struct, frozen=True, kw_only=True, gc=False, array_like=True):
    """The state after an event without the parts.

    `conditions` is what a chronicle was begun with, `stretches` the last revision of each stretch
    with the hash of its event, `count` the number of entries, `last` the moment of the last event.
    `watch` is compressed, of `watch_bytes`.
    """

    conditions: str
    count: int
    stretches: tuple[tuple[Revision, bytes], ...]
    last: Moment
    timeline: bytes
    watch: bytes
    watch_bytes: int


class KeptEntries(msgspec.Struct, frozen=True, kw_only=True, gc=False, array_like=True):
    """The timeline of a stretch: its entries, and where those of a kind and of an object are.

    `after` is the last revision of the stretch before, and `count` the entries up to there.
    """

    after: Revision
    count: int
    entries: list[Block]
    revisions: bytes
    times: bytes
    kinds: dict[str, bytes]
    subjects: KeptSubjects


class KeptChanges(msgspec.Struct, frozen=True, kw_only=True, gc=False, array_like=True):
    """The changes of states over time in a stretch after a revision, with their topics."""

    after: Revision
    changes: list[Block]
    topics: KeptTopics


class KeptStretch(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The kept part of a stretch."""

    entries: KeptEntries
    changes: KeptChanges


def compressed(data: bytes) -> bytes:
    """The bytes of a state, compressed."""
    return zlib.compress(data, 1)


def decompressed(data: bytes) -> bytes:
    """The bytes that were compressed. Raises UnknownForm."""
    try:
        return zlib.decompress(data)
    except zlib.error as problem:
        raise UnknownForm(f"the kept bytes cannot be read: {problem}") from problem


def packed(numbers: "array[int]") -> bytes:
    """The bytes of numbers, compressed."""
    return compressed(numbers.tobytes())


def unpacked(code: str, data: bytes) -> "array[int]":
    """The numbers that were compressed. Raises UnknownForm."""
    numbers = array(code)
    try:
        numbers.frombytes(decompressed(data))
    except ValueError as problem:
        raise UnknownForm(f"the kept numbers cannot be read: {problem}") from problem
    return numbers


def dump(kept: KeptState | KeptEntries | KeptChanges) -> bytes:
    """The bytes of a state or of a part of a stretch."""
    return _encode(kept)


def state_of(data: bytes) -> KeptState:
    """The state that was dumped. Raises UnknownForm."""
    try:
        return _state(data)
    except msgspec.MsgspecError as problem:
        raise UnknownForm(f"the kept state cannot be read: {problem}") from problem


def entries_of(data: bytes) -> KeptEntries:
    """The timeline of a stretch that was dumped. Raises UnknownForm."""
    try:
        return _entries(data)
    except msgspec.MsgspecError as problem:
        raise UnknownForm(f"the kept entries cannot be read: {problem}") from problem


def changes_of(data: bytes) -> KeptChanges:
    """The changes of a stretch that were dumped. Raises UnknownForm."""
    try:
        return _changes(data)
    except msgspec.MsgspecError as problem:
        raise UnknownForm(f"the kept changes cannot be read: {problem}") from problem


_encode = msgspec.msgpack.Encoder().encode
_state = msgspec.msgpack.Decoder(KeptState).decode
_entries = msgspec.msgpack.Decoder(KeptEntries).decode
_changes = msgspec.msgpack.Decoder(KeptChanges).decode
