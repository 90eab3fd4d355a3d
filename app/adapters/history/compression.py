"""Decompression of streams in pieces and within bounds: gzip, xz, lzma, bzip2, zstandard.

The compression is detected by the first bytes, not by the file name. Consecutive members form one
stream, as in the tools that write them.
"""

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Protocol

import zstandard

from app.adapters.history.limits import BoundReached, ImportLimits
from app.domain.errors import InputError

CHUNK = 256 * 1024
"""Bytes read or unpacked in one step."""

GZIP_MAGIC = b"\x1f\x8b"
XZ_MAGIC = b"\xfd7zXZ\x00"
LZMA_MAGIC = b"\x5d\0\0"
"""The usual properties of the form before xz, which has no mark of its own, and a size in 64 kB."""

BZIP2_MAGIC = b"BZh"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"

WINDOW_BYTES_MAX = 128 * 1024 * 1024
"""Bytes of memory that the decompression of one stream may use, regardless of its header."""


ZSTD_STEP = 1024
"""Packed bytes of a zstandard stream per step: a block of a few bytes may unpack to 128 KiB."""


class _Member(Protocol):
    """The interface of one packed member, as `lzma` and `bz2` share it."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class _GzipMember:
    """A gzip member with the interface of `_Member`."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(wbits=31)

    @property
    def eof(self) -> bool:
        return self._member.eof

    @property
    def needs_input(self) -> bool:
        return not self._member.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._member.unused_data

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        return self._member.decompress(self._member.unconsumed_tail + data, max_length)


class _ZstdMember:
    """A zstandard frame with the interface of `_Member`.

    The library does not bound its output, so it receives the input in small steps.
    """

    def __init__(self) -> None:
        self._frame = zstandard.ZstdDecompressor(max_window_size=WINDOW_BYTES_MAX).decompressobj()
        self._rest = b""

    @property
    def eof(self) -> bool:
        return self._frame.eof

    @property
    def needs_input(self) -> bool:
        return not self._rest

    @property
    def unused_data(self) -> bytes:
        return self._frame.unused_data + self._rest

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        data = self._rest + data
        step = ZSTD_STEP if max_length >= 0 else len(data)
        self._rest = data[step:]
        return self._frame.decompress(data[:step])


def _xz_member() -> _Member:
    return lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=WINDOW_BYTES_MAX)


def _lzma_member() -> _Member:
    return lzma.LZMADecompressor(format=lzma.FORMAT_ALONE, memlimit=WINDOW_BYTES_MAX)


_MEMBERS: tuple[tuple[bytes, str, Callable[[], _Member]], ...] = (
    (GZIP_MAGIC, "gzip", _GzipMember),
    (XZ_MAGIC, "xz", _xz_member),
    (LZMA_MAGIC, "lzma", _lzma_member),
    (BZIP2_MAGIC, "bzip2", bz2.BZ2Decompressor),
    (ZSTD_MAGIC, "zstd", _ZstdMember),
)
_DAMAGED = (zlib.error, lzma.LZMAError, OSError, EOFError, ValueError, zstandard.ZstdError)


def expand(
    first: bytes, chunks: Iterator[bytes], name: str, limits: ImportLimits, layers: int = 0
) -> Iterator[bytes]:
    """The unpacked bytes of a stream that begins with `first`, which is the first of `chunks`.

    Nested compression is undone layer by layer; an uncompressed stream is returned as it is. Raises
    InputError for damage, BoundReached beyond `unpacked_bytes_max`, `ratio_max` and
    `archive_depth_max`.
    """
    for magic, packing, make in _MEMBERS:
        if first.startswith(magic):
            if layers >= limits.archive_depth_max:
                raise BoundReached(
                    f"it is packed more than {layers} times",
                    place=name,
                    cure="unpack it, or raise import_archive_depth_max if it is sound",
                )
            unpacked = _members(chunks, make, packing, name, limits)
            inner = next(unpacked, b"")
            return expand(inner, chain((inner,), unpacked), name, limits, layers + 1)
    return _plain(chunks, name, limits)


def _plain(chunks: Iterator[bytes], name: str, limits: ImportLimits) -> Iterator[bytes]:
    size = UnpackedSize(name, limits)
    for chunk in chunks:
        size.add(chunk)
        yield chunk


def _members(
    chunks: Iterator[bytes],
    make: Callable[[], _Member],
    packing: str,
    name: str,
    limits: ImportLimits,
) -> Iterator[bytes]:
    member = make()
    size = UnpackedSize(name, limits)
    for chunk in chunks:
        size.packed += len(chunk)
        pending = chunk
        while pending or not (member.eof or member.needs_input):
            if member.eof:
                if not pending.strip(b"\0"):
                    break
                member = make()
            try:
                piece = member.decompress(pending, CHUNK)
            except _DAMAGED as problem:
                raise InputError(
                    f"the {packing} stream is damaged: {problem}", place=name, cure="copy it again"
                ) from problem
            size.add(piece)
            pending = member.unused_data if member.eof else b""
            if piece:
                yield piece
    if size.packed and not member.eof:
        raise InputError(
            f"the {packing} stream ends in the middle",
            place=name,
            cure="copy it again",
        )


@dataclass(slots=True)
class UnpackedSize:
    """The size of what is unpacked, beside the bytes that it was packed into, 0 for a plain source.

    Bytes of zero are counted where a whole piece has no others.
    """

    name: str
    limits: ImportLimits
    packed: int = 0
    unpacked: int = 0
    zeros: int = 0

    def add(self, piece: bytes) -> None:
        """Count a piece. Raises BoundReached beyond the bounds on size and ratio."""
        limits = self.limits
        self.unpacked += len(piece)
        if not piece.strip(b"\0"):
            self.zeros += len(piece)
        if self.unpacked > limits.unpacked_bytes_max:
            raise BoundReached(
                f"it unpacks to more than {limits.unpacked_bytes_max} bytes",
                place=self.name,
                cure="split it or raise import_bytes_max",
            )
        counted = self.unpacked - min(self.zeros, limits.zeros_free_bytes)
        if (
            self.packed
            and counted > limits.ratio_free_bytes
            and counted > self.packed * limits.ratio_max
        ):
            raise BoundReached(
                f"it unpacks to more than {limits.ratio_max} times its size",
                place=self.name,
                cure="raise import_ratio_max if the file is sound",
            )
