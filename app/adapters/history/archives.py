"""The files in tar and zip archives, including nested archives, within bounds.

Entries are copied into a temporary folder under sequential numbers, so that a name in an archive
never becomes a path on disk. Entries with an unsafe name, links, devices and damaged entries are
left out and noted. A truncated archive yields the entries before the cut: a zip archive has its
list of entries at its end, so those of a truncated one are found by the header before each of them.
"""

import io
import stat
import struct
import tarfile
import zipfile
import zlib
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, cast

from app.adapters.history import compression, unpacking
from app.adapters.history.compression import CHUNK
from app.adapters.history.limits import BoundReached, ImportLimits
from app.adapters.history.reading import Notes
from app.adapters.history.unpacking import UNREADABLE, ZIP_MAGIC, ByteSource
from app.adapters.private_folders import PrivateFolder
from app.domain.errors import InputError

TAR_MAGIC = b"ustar"
TAR_MAGIC_AT = 257

ZIP_LIST_MAGIC = b"PK\x01\x02"
"""The beginning of the list of entries, behind the last of them."""

_HEADER = struct.Struct("<4s5H3I2H")
_DESCRIPTOR_MAGIC = b"PK\x07\x08"
_DESCRIPTOR_SIZES = (16, 24, 12, 20)
"""The sizes of what follows an entry that was written as a stream: with its magic and without it,
each with sizes of four and of eight bytes."""

_ENCRYPTED, _STREAMED, _UTF8 = 0x01, 0x08, 0x800
_UNKNOWN_SIZE = 0xFFFFFFFF


class Unpacked:
    """The unpacked entries of the archives of one import.

    Use as a context manager: leaving removes the copies.
    """

    def __init__(self, limits: ImportLimits, notes: Notes) -> None:
        self._limits = limits
        self._notes = notes
        self._folder: PrivateFolder | None = None
        self._entries = 0
        self._bytes = 0
        self._files = 0

    def __enter__(self) -> "Unpacked":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    def zip_entries(self, source: ByteSource) -> Iterator[ByteSource]:
        """The files of a zip archive, by name. Raises InputError when it cannot be read at all."""
        path = self.path_of(source)
        if not zipfile.is_zipfile(path):
            yield from self._before_cut(path, source.name)
            return
        try:
            with zipfile.ZipFile(path) as archive:
                infos = archive.infolist()
                for info in sorted(infos, key=lambda entry: entry.filename):
                    if _is_folder(info.filename):
                        continue
                    is_link = stat.S_ISLNK(info.external_attr >> 16)
                    if self._is_safe(info.filename, source.name, is_link=is_link):
                        yield from self._zip_entry(archive, info, source.name)
        except (OSError, zipfile.BadZipFile) as problem:
            raise InputError(
                f"the zip archive cannot be read: {problem}", place=source.name
            ) from problem

    def _zip_entry(
        self, archive: zipfile.ZipFile, info: zipfile.ZipInfo, archive_name: str
    ) -> Iterator[ByteSource]:
        name = _inner(archive_name, info.filename)
        size = compression.UnpackedSize(name, self._limits, max(1, info.compress_size))
        try:
            with archive.open(info) as stream:
                yield self._kept(stream, name, size)
        # zipfile raises NotImplementedError for a compression or encryption that it cannot undo.
        except (*UNREADABLE, NotImplementedError) as problem:
            self._notes.lose(InputError(f"the entry cannot be read: {problem}", place=name))

    def _before_cut(self, path: Path, archive: str) -> Iterator[ByteSource]:
        """The files of a zip archive that has no end, in its order."""
        count = 0
        with path.open("rb") as file:
            while (header := file.read(_HEADER.size)).startswith(ZIP_MAGIC):
                name = archive
                try:
                    entry = _StreamedEntry.read(header, file)
                    name = _inner(archive, entry.name)
                    pieces = entry.pieces(file, name, self._limits)
                    is_folder = _is_folder(entry.name)
                    if not is_folder and self._is_safe(entry.name, archive, is_link=False):
                        yield self._kept(_Chunks(pieces), name)
                    else:
                        deque(pieces, maxlen=0)
                    count += 1
                except zipfile.BadZipFile as problem:
                    self._notes.lose(InputError(str(problem), place=name))
                except _EndUnknownError as problem:
                    unread = InputError(f"{problem}, and no file behind it is found", place=name)
                    if not count:
                        raise unread from problem
                    self._notes.lose(unread)
                    return
                except (OSError, EOFError, zlib.error) as problem:
                    if not count:
                        raise InputError(
                            "the zip archive is cut before the end of its first file",
                            place=archive,
                            cure="copy it again",
                        ) from problem
                    cut = "the zip archive is cut here, and what follows is missing"
                    self._notes.lose(InputError(cut, place=name, cure="copy it again"))
                    return
        if header.startswith(ZIP_LIST_MAGIC):
            self._notes.add(f"{archive}: the end of the zip archive is missing, none of its files")
        elif count:
            cut = f"the zip archive is cut after {count} files"
            self._notes.lose(InputError(cut, place=archive, cure="copy it again"))
        else:
            raise InputError("it is no zip archive that can be read", place=archive)

    def tar_entries(self, source: ByteSource) -> Iterator[ByteSource]:
        """The files of a tar archive, in its order.

        A damaged archive yields the files before the damage.
        """
        try:
            chunks = _Chunks(source.chunks())
            with tarfile.open(fileobj=chunks, mode="r|") as archive:
                for info in archive:
                    if info.isdir():
                        continue
                    if not self._is_safe(info.name, source.name, is_link=not info.isreg()):
                        continue
                    stream = archive.extractfile(info)
                    if stream is None:
                        continue
                    name = _inner(source.name, info.name)
                    entry = self._kept(stream, name, _sparse_size(info, name, self._limits))
                    if entry.sha256()[1] != info.size:
                        raise EOFError(f"{info.name} ends in the middle")
                    yield entry
            if chunks.tail.strip(b"\0"):
                raise EOFError("it has no end")
        except BoundReached:
            raise
        except InputError as problem:
            self._notes.lose(problem)
        except (*UNREADABLE, tarfile.TarError, ValueError) as problem:
            self._notes.lose(
                InputError(f"the tar archive is damaged or cut: {problem}", place=source.name)
            )

    def path_of(self, source: ByteSource) -> Path:
        """The path of a temporary copy that holds the unpacked bytes of a source."""
        with _Chunks(source.chunks()) as stream:
            return self._copy(stream, source.name)

    def _is_safe(self, entry: str, archive: str, *, is_link: bool) -> bool:
        try:
            unpacking.check_entry_name(entry, archive, self._limits)
        except InputError as problem:
            self._notes.lose(problem)
            return False
        if is_link:
            self._notes.pass_over(_inner(archive, entry), "it is a link, or not a plain file")
            return False
        return True

    def _kept(
        self,
        stream: IO[bytes] | io.RawIOBase,
        name: str,
        size: compression.UnpackedSize | None = None,
    ) -> ByteSource:
        self._entries += 1
        if self._entries > self._limits.archive_entries_max:
            raise BoundReached(
                f"more than {self._limits.archive_entries_max} entries in archives",
                place=name,
                cure="raise import_entries_max if the archive is sound",
            )
        return unpacking.file_source(self._copy(stream, name, size), name, self._limits)

    def _copy(
        self,
        stream: IO[bytes] | io.RawIOBase,
        name: str,
        size: compression.UnpackedSize | None = None,
    ) -> Path:
        """The path of a copy; `size` counts what is unpacked of it, and has its own bounds."""
        if self._folder is None:
            self._folder = PrivateFolder()
        self._files += 1
        path = Path(self._folder.name) / str(self._files)
        with path.open("wb") as file:
            while piece := stream.read(CHUNK):
                self._bytes += len(piece)
                if size is not None:
                    size.add(piece)
                if self._bytes > self._limits.unpacked_bytes_max:
                    raise BoundReached(
                        f"the archives unpack to more than {self._limits.unpacked_bytes_max} bytes",
                        place=name,
                        cure="raise import_bytes_max if the archive is sound",
                    )
                file.write(piece)
        return path


class _EndUnknownError(Exception):
    """An entry of a zip archive whose end cannot be found without the list of entries."""


def _sparse_size(
    info: tarfile.TarInfo, name: str, limits: ImportLimits
) -> compression.UnpackedSize | None:
    """The count of a file whose bytes of zero are left out of the archive; None for others."""
    # The places and lengths of what is stored; typeshed has another type for them.
    parts = cast("list[tuple[int, int]] | None", info.sparse)
    if parts is None:
        return None
    stored = sum(length for _, length in parts)
    return compression.UnpackedSize(name, limits, max(1, stored))


@dataclass(frozen=True, slots=True)
class _StreamedEntry:
    """An entry of a zip archive, known by the header before it. `size` is that of the packed bytes,
    None if it is known only at their end.
    """

    name: str
    flags: int
    method: int
    crc: int
    size: int | None

    @classmethod
    def read(cls, header: bytes, file: IO[bytes]) -> "_StreamedEntry":
        """The entry of a header. Raises EOFError if the file ends in it."""
        if len(header) < _HEADER.size:
            raise EOFError
        _, _, flags, method, _, _, crc, size, _, name_size, extra_size = _HEADER.unpack(header)
        name, extra = file.read(name_size), file.read(extra_size)
        if len(name) + len(extra) < name_size + extra_size:
            raise EOFError
        is_unknown = flags & _STREAMED or size == _UNKNOWN_SIZE
        text = name.decode("utf-8" if flags & _UTF8 else "cp437", "replace")
        return cls(text, flags, method, crc, None if is_unknown else size)

    def pieces(self, file: IO[bytes], place: str, limits: ImportLimits) -> Iterator[bytes]:
        """The unpacked bytes; the file then stands behind the entry.

        Raises EOFError if the file ends before, BadZipFile for a wrong checksum, and
        _EndUnknownError for an entry that is encrypted or compressed by another method.
        """
        if self.flags & _ENCRYPTED:
            raise _EndUnknownError("the entry is encrypted")
        if self.method == zipfile.ZIP_STORED and self.size is not None:
            pieces = _stored(file, self.size)
        elif self.method == zipfile.ZIP_DEFLATED:
            pieces = _inflated(file, place, limits)
        else:
            raise _EndUnknownError(f"the entry is compressed by method {self.method}")
        crc = 0
        for piece in pieces:
            crc = zlib.crc32(piece, crc)
            yield piece
        expected = _described(file) if self.flags & _STREAMED else self.crc
        if expected is not None and crc != expected:
            raise zipfile.BadZipFile("the entry cannot be read: its checksum is wrong")


def _stored(file: IO[bytes], size: int) -> Iterator[bytes]:
    while size:
        piece = file.read(min(size, CHUNK))
        if not piece:
            raise EOFError
        size -= len(piece)
        yield piece


def _inflated(file: IO[bytes], place: str, limits: ImportLimits) -> Iterator[bytes]:
    stream = zlib.decompressobj(-zlib.MAX_WBITS)
    size = compression.UnpackedSize(place, limits)
    while not stream.eof:
        pending = stream.unconsumed_tail or file.read(CHUNK)
        if not pending:
            raise EOFError
        size.packed += 0 if stream.unconsumed_tail else len(pending)
        piece = stream.decompress(pending, CHUNK)
        size.add(piece)
        if piece:
            yield piece
    file.seek(-len(stream.unused_data), io.SEEK_CUR)


def _described(file: IO[bytes]) -> int | None:
    """The checksum behind an entry that was written as a stream; None if the file ends before."""
    tail = file.read(max(_DESCRIPTOR_SIZES) + 2)
    for size in _DESCRIPTOR_SIZES:
        if tail[size : size + 2] == ZIP_MAGIC[:2]:
            file.seek(size - len(tail), io.SEEK_CUR)
            begin = len(_DESCRIPTOR_MAGIC) if tail.startswith(_DESCRIPTOR_MAGIC) else 0
            return int.from_bytes(tail[begin : begin + 4], "little")
    file.seek(0, io.SEEK_END)
    return None


class _Chunks(io.RawIOBase):
    """A file object that reads an iterator of byte chunks once."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = memoryview(b"")
        self._problem: InputError | None = None
        self.tail = b""
        """The last block read. A tar archive ends with blocks of zeros."""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        parts: list[bytes] = []
        while size != 0:
            if not self._rest:
                self._rest = memoryview(self._next(is_first=not parts))
                if not self._rest:
                    break
            step = len(self._rest) if size < 0 else min(size, len(self._rest))
            parts.append(bytes(self._rest[:step]))
            self._rest = self._rest[step:]
            size -= step if size > 0 else 0
        piece = b"".join(parts)
        self.tail = (self.tail + piece)[-tarfile.BLOCKSIZE :]
        return piece

    def _next(self, *, is_first: bool) -> bytes:
        """The next chunk. What was read before damage is returned before the damage is raised."""
        if self._problem is not None:
            raise self._problem
        try:
            return next(self._chunks, b"")
        except BoundReached:
            raise
        except InputError as problem:
            if is_first:
                raise
            self._problem = problem
            return b""


def _is_folder(entry: str) -> bool:
    return entry.endswith(("/", "\\"))


def _inner(archive: str, entry: str) -> str:
    return f"{archive}/{unpacking.entry_path(entry)}"


def is_tar(head: bytes) -> bool:
    """True when the unpacked bytes have the magic of a tar archive."""
    return head[TAR_MAGIC_AT : TAR_MAGIC_AT + len(TAR_MAGIC)] == TAR_MAGIC
