"""The bytes of a source, unpacked within bounds: files, packed streams, entries of zip archives.

Entries of archives are not trusted: absolute names, names with `..` and links are refused before a
byte is read.
"""

import hashlib
import re
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from app.adapters.history import compression, runtime_lines
from app.adapters.history.compression import CHUNK
from app.adapters.history.limits import BoundReached, ImportLimits
from app.domain.errors import InputError

ZIP_MAGIC = b"PK\x03\x04"

UNREADABLE = (OSError, EOFError, zipfile.BadZipFile, zlib.error, RuntimeError)
"""The exceptions of the standard library for damaged, encrypted or unusually packed files;
`zipfile` raises a RuntimeError for an encrypted entry and for a compression it does not know."""


_UNSHOWN = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
"""Characters of names that no text keeps or shows: controls, and bytes that are not UTF-8."""

_DRIVE = re.compile(r"[A-Za-z]:")


def shown_name(name: str) -> str:
    r"""The name of a file as text. Example: a file named by the byte ff becomes `\xff`."""
    return _UNSHOWN.sub(lambda match: f"\\x{ord(match.group()) & 0xFF:02x}", name)


class ByteSource:
    """A source of bytes that can be read from the beginning any number of times.

    `name` is the path relative to the import root, used in messages and in records.
    """

    def __init__(
        self, name: str, open_stream: Callable[[], IO[bytes]], limits: ImportLimits
    ) -> None:
        self.name = shown_name(name)
        self._open = open_stream
        self.limits = limits

    def raw(self) -> IO[bytes]:
        """A stream of the bytes, not unpacked. Raises InputError."""
        try:
            return self._open()
        except UNREADABLE as problem:
            raise self._unreadable(problem) from problem

    def _unreadable(self, problem: Exception) -> InputError:
        text = (problem.strerror if isinstance(problem, OSError) else None) or str(problem)
        return InputError(
            f"it cannot be read: {text}", place=self.name, cure="check path, permissions and copy"
        )

    def _read(self, stream: IO[bytes]) -> bytes:
        try:
            return stream.read(CHUNK)
        except UNREADABLE as problem:
            raise self._unreadable(problem) from problem

    def sha256(self) -> tuple[str, int]:
        """The digest and the length of the bytes, not unpacked."""
        digest = hashlib.sha256()
        size = 0
        with self.raw() as stream:
            while chunk := self._read(stream):
                digest.update(chunk)
                size += len(chunk)
        return digest.hexdigest(), size

    def chunks(self) -> Iterator[bytes]:
        """The unpacked bytes, in pieces; any compression is undone."""
        with self.raw() as stream:
            first = self._read(stream)
            packed = self._read_on(first, stream)
            yield from compression.expand(first, packed, self.name, self.limits)

    def _read_on(self, first: bytes, stream: IO[bytes]) -> Iterator[bytes]:
        chunk = first
        while chunk:
            yield chunk
            chunk = self._read(stream)

    def head(self, size: int) -> bytes:
        """The first `size` unpacked bytes, or fewer when there are no more.

        Damage behind the first of them is left to those who read further.
        """
        beginning = b""
        try:
            for chunk in self.chunks():
                beginning += chunk
                if len(beginning) >= size:
                    break
        except BoundReached:
            raise
        except InputError:
            if not beginning:
                raise
        return beginning[:size]

    def whole(self) -> bytes:
        """All unpacked bytes; raises InputError beyond `document_bytes_max`."""
        content, damage = self.undamaged()
        if damage is not None:
            raise damage
        return content

    def undamaged(self) -> tuple[bytes, InputError | None]:
        """The unpacked bytes before the damage of a packed stream, and the damage if there is any.

        Raises InputError beyond `document_bytes_max`.
        """
        parts: list[bytes] = []
        size = 0
        try:
            for chunk in self.chunks():
                size += len(chunk)
                if size > self.limits.document_bytes_max:
                    raise BoundReached(
                        f"a document of more than {self.limits.document_bytes_max} bytes",
                        place=self.name,
                        cure="split it or raise document_bytes_max",
                    )
                parts.append(chunk)
        except BoundReached:
            raise
        except InputError as problem:
            return b"".join(parts), problem
        return b"".join(parts), None

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """The number and content of each line, without line ends; blank lines are skipped.

        The parts of a line that a container runtime split are one line.
        """
        yield from runtime_lines.joined(self._lines(), self.limits.line_bytes_max)

    def ends_a_line(self) -> bool:
        """True if the source ends with a line end; it is read for that."""
        last = b""
        for chunk in self.chunks():
            last = chunk[-1:] or last
        return last == b"\n"

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        limit = self.limits.line_bytes_max
        rest = b""
        number = 0
        for chunk in self.chunks():
            pieces = (rest + chunk).split(b"\n") if rest else chunk.split(b"\n")
            rest = pieces.pop()
            for piece in pieces:
                number += 1
                if piece and not piece.isspace():
                    yield number, piece
            if len(rest) > limit:
                raise BoundReached(
                    f"line {number + 1} is longer than {limit} bytes",
                    place=self.name,
                    cure="raise line_bytes_max if the file is sound",
                )
        if rest and not rest.isspace():
            yield number + 1, rest


def file_source(path: Path, name: str, limits: ImportLimits) -> ByteSource:
    """A source that reads a file on disk. Raises InputError for a pipe or a device."""
    if path.exists() and not path.is_file():
        raise InputError(
            "it is a pipe or a device, and a recording is read several times",
            place=str(path),
            cure="write what it gives to a file, and name that",
        )
    return ByteSource(name, lambda: path.open("rb"), limits)


def bytes_source(content: bytes, name: str, limits: ImportLimits) -> ByteSource:
    """A source that reads bytes in memory."""
    from io import BytesIO

    return ByteSource(name, lambda: BytesIO(content), limits)


def zip_sources(path: Path, name: str, limits: ImportLimits) -> list[ByteSource]:
    """The files in a zip archive, by name. Raises InputError for an unsafe or broken archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except (OSError, zipfile.BadZipFile) as problem:
        raise InputError(f"the zip archive cannot be read: {problem}", place=name) from problem
    if len(entries) > limits.archive_entries_max:
        raise BoundReached(
            f"{len(entries)} entries, more than {limits.archive_entries_max}",
            place=name,
            cure="raise archive_entries_max if the archive is sound",
        )
    sources: list[ByteSource] = []
    unpacked = 0
    for entry in entries:
        check_entry_name(entry.filename, name, limits)
        if stat.S_ISLNK(entry.external_attr >> 16):
            raise InputError(f"entry {entry.filename!r} is a link", place=name)
        unpacked += entry.file_size
        ratio = entry.file_size // max(1, entry.compress_size)
        if unpacked > limits.unpacked_bytes_max or (
            entry.file_size > limits.ratio_free_bytes and ratio > limits.ratio_max
        ):
            raise BoundReached(
                f"entry {entry.filename!r} would unpack beyond the bounds",
                place=name,
                cure="raise unpacked_bytes_max or ratio_max if the archive is sound",
            )
        if not entry.is_dir():
            inner = f"{name}/{entry.filename}" if name else entry.filename
            sources.append(ByteSource(inner, _entry_opener(path, entry.filename), limits))
    return sorted(sources, key=lambda source: source.name)


def check_entry_name(entry: str, place: str, limits: ImportLimits) -> None:
    """Raise InputError for an entry name that points outside the archive or is too deep."""
    path = entry_path(entry)
    is_absolute = path.is_absolute() or _DRIVE.match(entry) is not None
    if is_absolute or ".." in path.parts or "\x00" in entry:
        raise InputError(
            f"entry {entry!r} points outside the archive",
            place=place,
            cure="do not trust this file",
        )
    if len(path.parts) > limits.path_depth_max:
        raise InputError(f"entry {entry!r} lies deeper than {limits.path_depth_max}", place=place)


def entry_path(entry: str) -> PurePosixPath:
    """The path of an entry; some programs of Windows write backslashes between the folders."""
    return PurePosixPath(entry.replace("\\", "/"))


def _entry_opener(path: Path, entry: str) -> Callable[[], IO[bytes]]:
    def open_entry() -> IO[bytes]:
        archive = zipfile.ZipFile(path)
        try:
            stream = archive.open(entry)
        finally:
            # The stream keeps the file open until it is closed itself.
            archive.close()
        return stream

    return open_entry
