"""A reader of the pages of a bbolt file: buckets, and their key-value pairs in order.

Data is read directly from a memory map or bytes. No data is trusted: page numbers, counts and
offsets are checked, and each page is visited at most once. Parity: history-formats.md 11.2.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from mmap import mmap
from typing import TypeAlias

from app.domain.errors import InputError

Buffer: TypeAlias = bytes | mmap

MAGIC = 0xED0CDAED
VERSION = 2
_PAGE_HEADER = struct.Struct("<QHHI")
_META = struct.Struct("<IIIIQQQQQQ")
_BRANCH_ELEMENT = struct.Struct("<IIQ")
_LEAF_ELEMENT = struct.Struct("<IIII")
_BUCKET = struct.Struct("<QQ")
_BRANCH, _LEAF = 1, 2
_IS_BUCKET = 1
_META_PAGE_SIZES = (4096, 512, 1024, 2048, 8192, 16384, 32768, 65536)
_FNV_OFFSET = 0xCBF29CE484222325
_FNV_PRIME = 0x100000001B3
_SUM_BYTES = 56


@dataclass(frozen=True, slots=True)
class _Meta:
    page_size: int
    root: int
    high_page: int
    transaction: int


class BoltFile:
    """An open bbolt file of `size` bytes. Raises InputError for a damaged file."""

    def __init__(self, buffer: Buffer, size: int, place: str) -> None:
        self._buffer = buffer
        self._size = size
        self._place = place
        self._meta = self._newest_meta()

    def bucket(self, name: bytes) -> Iterator[tuple[bytes, bytes]]:
        """The pairs of a top-level bucket, in order of keys; empty if it does not exist."""
        for key, value, flags in self._pairs(self._meta.root):
            if key == name and flags & _IS_BUCKET:
                yield from self._bucket_pairs(value)
                return

    def _bucket_pairs(self, value: bytes) -> Iterator[tuple[bytes, bytes]]:
        if len(value) < _BUCKET.size:
            raise self._damaged("a bucket without its header")
        root, _ = _BUCKET.unpack_from(value)
        if root == 0:
            # A small bucket is stored inside the value, with its own page header.
            inline = value[_BUCKET.size :]
            pairs = self._elements(inline, 0, len(inline), _LEAF)
        else:
            pairs = self._pairs(root)
        for key, content, flags in pairs:
            if not flags & _IS_BUCKET:
                yield key, content

    def _pairs(self, root: int) -> Iterator[tuple[bytes, bytes, int]]:
        """Walk a tree depth-first. A page that is reached twice is reported as damage."""
        visited: set[int] = set()
        pending = [root]
        while pending:
            page = pending.pop()
            if page in visited:
                raise self._damaged(f"page {page} is reached twice")
            visited.add(page)
            start, end, flags = self._page(page)
            if flags & _BRANCH:
                pending.extend(reversed(self._children(start, end)))
            elif flags & _LEAF:
                yield from self._elements(self._buffer, start, end, _LEAF)
            else:
                raise self._damaged(f"page {page} is neither branch nor leaf")

    def _page(self, page: int) -> tuple[int, int, int]:
        """The start, end and flags of a page, including its overflow."""
        if page >= self._meta.high_page:
            raise self._damaged(f"page {page} lies beyond the last")
        start = page * self._meta.page_size
        if start + _PAGE_HEADER.size > self._size:
            raise self._damaged(f"page {page} lies beyond the end of the file")
        number, flags, _, overflow = _PAGE_HEADER.unpack_from(self._buffer, start)
        if number != page:
            raise self._damaged(f"page {page} says that it is {number}")
        end = start + (overflow + 1) * self._meta.page_size
        if end > self._size:
            raise self._damaged(f"page {page} runs over the end of the file")
        return start, end, flags

    def _children(self, start: int, end: int) -> list[int]:
        count = _PAGE_HEADER.unpack_from(self._buffer, start)[2]
        first = start + _PAGE_HEADER.size
        if first + count * _BRANCH_ELEMENT.size > end:
            raise self._damaged("a branch page holds more children than fit")
        return [
            _BRANCH_ELEMENT.unpack_from(self._buffer, first + index * _BRANCH_ELEMENT.size)[2]
            for index in range(count)
        ]

    def _elements(
        self, buffer: Buffer, start: int, end: int, expected: int
    ) -> Iterator[tuple[bytes, bytes, int]]:
        if start + _PAGE_HEADER.size > end:
            raise self._damaged("a page without its header")
        _, flags, count, _ = _PAGE_HEADER.unpack_from(buffer, start)
        if not flags & expected:
            raise self._damaged("an inline bucket that is no leaf")
        first = start + _PAGE_HEADER.size
        if first + count * _LEAF_ELEMENT.size > end:
            raise self._damaged("a leaf page holds more pairs than fit")
        for index in range(count):
            at = first + index * _LEAF_ELEMENT.size
            element_flags, position, key_size, value_size = _LEAF_ELEMENT.unpack_from(buffer, at)
            key_at = at + position
            value_at = key_at + key_size
            if value_at + value_size > end:
                raise self._damaged("a pair runs over the end of its page")
            key = bytes(buffer[key_at:value_at])
            yield key, bytes(buffer[value_at : value_at + value_size]), element_flags

    def _newest_meta(self) -> _Meta:
        metas: list[_Meta] = []
        for page_size in _META_PAGE_SIZES:
            for page in (0, 1):
                meta = self._read_meta(page * page_size + _PAGE_HEADER.size)
                if meta is not None and meta.page_size == page_size:
                    metas.append(meta)
            if metas:
                return max(metas, key=lambda meta: meta.transaction)
        raise self._damaged("no valid meta page")

    def _read_meta(self, at: int) -> _Meta | None:
        if at + _META.size > self._size:
            return None
        magic, version, page_size, _, root, _, _, high, transaction, checksum = _META.unpack_from(
            self._buffer, at
        )
        if magic != MAGIC or version != VERSION:
            return None
        if checksum != _fnv1a(bytes(self._buffer[at : at + _SUM_BYTES])):
            return None
        return _Meta(page_size, root, high, transaction)

    def _damaged(self, problem: str) -> InputError:
        return InputError(
            f"the database file is damaged: {problem}", place=self._place, cure="take it again"
        )


def _fnv1a(content: bytes) -> int:
    digest = _FNV_OFFSET
    for byte in content:
        digest = ((digest ^ byte) * _FNV_PRIME) & 0xFFFFFFFFFFFFFFFF
    return digest
