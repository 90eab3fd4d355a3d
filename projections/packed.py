"""Compressed values of which a view has very many, and of which few are read again.

This module is not a view. Values of one kind are much alike, so that one compresses well with
another one as dictionary, or with its neighbours in a list.
"""

import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar, overload

import msgspec

T = TypeVar("T")

SAMPLE_USES_MAX = 1_000
"""Values that are compressed with one dictionary; the next one takes its place."""

BLOCK = 128
"""The items of a list that are compressed together, or fewer where a part of it was kept."""

Block = tuple[int, bytes]
"""The number of items that are compressed together, and their bytes."""

BLOCKS_MAX = 16
"""The decoded blocks that a list keeps."""

_WINDOW = -zlib.MAX_WBITS
"""Compressed data without header and checksum."""


class Packed(msgspec.Struct, frozen=True, gc=False):
    """Bytes compressed with others as dictionary."""

    data: bytes
    sample: bytes

    @property
    def plain(self) -> bytes:
        """The bytes as they were."""
        return zlib.decompressobj(_WINDOW, self.sample).decompress(self.data)


class Packer:
    """Compresses values of one kind, each with an earlier one as dictionary."""

    def __init__(self) -> None:
        self._sample = b""
        self._uses = SAMPLE_USES_MAX

    def pack(self, plain: bytes) -> Packed:
        """A compressed value."""
        if self._uses >= SAMPLE_USES_MAX:
            self._sample, self._uses = plain, 0
        self._uses += 1
        packer = zlib.compressobj(1, zlib.DEFLATED, _WINDOW, zdict=self._sample)
        return Packed(packer.compress(plain) + packer.flush(), self._sample)


class PackedList(Sequence[T], Generic[T]):
    """A list that only grows, of which the items before the last `plain_max` are compressed.

    Items must be encodable as MessagePack. They are compressed in blocks, of which some are kept
    decoded: reading in order costs a microsecond an item, any other item a block. A thread may read
    while another one appends.
    """

    def __init__(self, form: type[T], plain_max: int) -> None:
        self._plain_max = plain_max
        self._blocks: list[bytes] = []
        self._ends: list[int] = []
        # The number of blocks and the items after them: replaced together, so that readers in
        # other threads always find both as they belong together.
        self._parts: tuple[int, list[T]] = (0, [])
        self._decoded: dict[int, list[T]] = {}
        self._decode = msgspec.msgpack.Decoder(list[form]).decode  # type: ignore[valid-type]  # a form made here

    def extend(self, items: Iterable[T]) -> None:
        """Appends items."""
        plain = self._parts[1]
        plain += items
        if len(plain) >= self._plain_max + BLOCK:
            self._pack((len(plain) - self._plain_max) // BLOCK * BLOCK)

    def seal(self) -> int:
        """Compresses all items; returns the number of blocks."""
        self._pack(len(self._parts[1]))
        return len(self._blocks)

    def blocks(self, first: int) -> list[Block]:
        """The blocks from a number on."""
        starts = [0, *self._ends]
        return [
            (self._ends[number] - starts[number], self._blocks[number])
            for number in range(first, len(self._blocks))
        ]

    def extend_packed(self, blocks: Iterable[Block]) -> None:
        """Appends the items of blocks, of which none is decompressed; all others are sealed."""
        assert not self._parts[1], "items before a block are sealed"
        for count, block in blocks:
            self._ends.append((self._ends[-1] if self._ends else 0) + count)
            self._blocks.append(block)
        self._parts = (len(self._blocks), [])

    def _pack(self, count: int) -> None:
        """Compresses the first items that are not compressed."""
        plain = self._parts[1]
        for first in range(0, count, BLOCK):
            items = plain[first : min(first + BLOCK, count)]
            self._ends.append((self._ends[-1] if self._ends else 0) + len(items))
            self._blocks.append(zlib.compress(_encode(items), 1))
        self._parts = (len(self._blocks), plain[count:])

    def __len__(self) -> int:
        blocks, plain = self._parts
        return self._count(blocks) + len(plain)

    def __iter__(self) -> Iterator[T]:
        blocks, plain = self._parts
        for number in range(blocks):
            yield from self._block(number)
        yield from plain

    def pieces(self, first: int) -> Iterator[list[T]]:
        """The items from a number on, as many at a time as are compressed together.

        Items that are appended meanwhile may be left out.
        """
        blocks, plain = self._parts
        for number in range(bisect_right(self._ends, first, 0, blocks), blocks):
            begin = self._count(number)
            yield self._block(number)[max(0, first - begin) :]
        yield plain[max(0, first - self._count(blocks)) :]

    @overload
    def __getitem__(self, number: int) -> T: ...
    @overload
    def __getitem__(self, number: slice) -> list[T]: ...
    def __getitem__(self, number: int | slice) -> T | list[T]:
        if isinstance(number, slice):
            return [self[each] for each in range(*number.indices(len(self)))]
        blocks, plain = self._parts
        packed = self._count(blocks)
        if number < 0:
            number += packed + len(plain)
        if number >= packed:
            return plain[number - packed]
        if number < 0:
            raise IndexError("list index out of range")
        block = bisect_right(self._ends, number, 0, blocks)
        return self._block(block)[number - self._count(block)]

    def _count(self, blocks: int) -> int:
        """The number of items in the first blocks."""
        return self._ends[blocks - 1] if blocks else 0

    def _block(self, number: int) -> list[T]:
        block = self._decoded.get(number)
        if block is None:
            block = self._decode(zlib.decompress(self._blocks[number]))
            if len(self._decoded) >= BLOCKS_MAX:
                self._decoded = {}
            self._decoded[number] = block
        return block


_encode: Any = msgspec.msgpack.Encoder().encode
