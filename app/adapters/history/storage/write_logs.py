"""Write-ahead logs beside databases: which those are, and what that of etcd says.

A copy of a database that was in use lacks the writes that still stand in its log alone.

    state.db          state.db-wal                    kine in SQLite, which joins them itself
    member/snap/db    member/wal/0000000000000000-0000000000000000.wal    etcd

That of etcd has requests, which are decided here as etcd decides them.
Parity: history-formats.md 11.6.
"""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from app.adapters.history.reading import Notes
from app.adapters.history.unpacking import ByteSource
from app.domain.errors import InputError
from app.domain.values.protobuf import ProtobufError, message_fields

_SQLITE_MAGIC = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")
_SQLITE_ENDING = "-wal"
_ETCD_MAGIC = b"\x04\0\0\0\0\0\0\x84\x08\x04\x10"
"""The first record of each file: four bytes and as many of padding, with a checksum."""

_ETCD_FOLDER, _ETCD_ENDING = "wal/", ".wal"


_LENGTH = struct.Struct("<q")
_LENGTH_BITS = 56
_ENTRY, _STATE = 2, 3
_PUT, _DELETE, _TRANSACTION, _GRANT, _REVOKE = 4, 5, 6, 8, 9
"""Field numbers of the requests that write."""

_VERSION, _CREATED, _MODIFIED, _VALUE, _LEASE = range(5)
_TARGET_FIELDS = {4: _VERSION, 5: _CREATED, 6: _MODIFIED, 8: _LEASE}
"""What a comparison is about, by the number of the field that holds the other side."""


class OddRequest(Exception):
    """A message that ends in the middle, or asks for more than is known of a key."""


@dataclass(frozen=True, slots=True)
class EtcdEntry:
    """One write of a store: revision, number within its transaction, key, version, value.

    The value is None for a deletion. The revision is 0 where it is not known. `created` is the
    revision that made the key.
    """

    main: int
    sub: int
    key: str
    version: int
    value: bytes | None
    created: int = 0
    lease: int = 0


@dataclass(slots=True)
class StoredKey:
    """The numbers of a key that exists, about which a comparison may ask."""

    created: int
    modified: int
    version: int
    lease: int


@dataclass(slots=True)
class LoggedRequests:
    """The requests of all files of a log, by their index, which grows.

    What a later leader wrote replaces what stood from its index on.
    """

    committed: int = 0
    by_index: dict[int, bytes] = field(default_factory=dict)

    def read(self, content: bytes) -> None:
        """Add the records of a file, up to the room that is not written yet, or to a cut record."""
        at = 0
        while at + _LENGTH.size <= len(content):
            (packed,) = _LENGTH.unpack_from(content, at)
            length = packed & ((1 << _LENGTH_BITS) - 1)
            padding = (packed >> _LENGTH_BITS) & 7 if packed < 0 else 0
            at += _LENGTH.size
            if not length or at + length > len(content):
                return
            try:
                self._add(content[at : at + length])
            except OddRequest:
                return
            at += length + padding

    def _add(self, record: bytes) -> None:
        parts = numbers_and_texts(record)
        kind, data = _number(parts, 1), _text(parts, 3)
        if kind == _STATE:
            self.committed = max(self.committed, _number(numbers_and_texts(data), 3))
        elif kind == _ENTRY:
            entry = numbers_and_texts(data)
            index = _number(entry, 3)
            while self.by_index and (last := next(reversed(self.by_index))) > index:
                del self.by_index[last]
            # Other types than 0 change the members of etcd.
            self.by_index[index] = b"" if _number(entry, 1) else _text(entry, 4)

    @property
    def uncommitted(self) -> int:
        """The number of requests behind the last that is known to have been committed."""
        return sum(index > self.committed and bool(self.by_index[index]) for index in self.by_index)

    def after(self, applied: int, place: str) -> Iterator[bytes]:
        """The requests after an index, up to the last that is known to have been committed.

        Raises InputError where one is missing.
        """
        for index in range(applied + 1, self.committed + 1):
            if index not in self.by_index:
                raise InputError(
                    f"the log of etcd lacks its entry {index}, and what follows is not known",
                    place=place,
                    cure="copy all files of the folder wal, or take a snapshot (etcdctl snapshot)",
                )
            yield self.by_index[index]


@dataclass(slots=True)
class EtcdKeys:
    """The keys of etcd at a revision, to which requests are applied."""

    revision: int
    keys: dict[str, StoredKey]
    leases: set[int]

    def note(self, entry: EtcdEntry) -> None:
        """Take in a write that the database has."""
        self.revision = max(self.revision, entry.main)
        if entry.value is None:
            self.keys.pop(entry.key, None)
        else:
            made = StoredKey(entry.created, entry.main, entry.version, entry.lease)
            self.keys[entry.key] = made

    def apply(self, request: bytes) -> Iterator[EtcdEntry]:
        """The writes of a request; none where etcd refuses it or it only reads."""
        parts = numbers_and_texts(request)
        changes: list[EtcdEntry] = []
        if put := _text(parts, _PUT):
            self._put(put, changes)
        elif removed := _text(parts, _DELETE):
            self._delete(removed, changes)
        elif transaction := _text(parts, _TRANSACTION):
            self._decide(transaction, changes)
        elif grant := _text(parts, _GRANT):
            self.leases.add(_number(numbers_and_texts(grant), 2))
        elif revoke := _text(parts, _REVOKE):
            lease = _number(numbers_and_texts(revoke), 1)
            self.leases.discard(lease)
            for key in sorted(key for key, each in self.keys.items() if each.lease == lease):
                self._remove(key, changes)
        if changes:
            self.revision += 1
        yield from changes

    def _put(self, request: bytes, changes: list[EtcdEntry]) -> None:
        parts = numbers_and_texts(request)
        key, lease = _key(parts, 1), _number(parts, 3)
        old = self.keys.get(key)
        if _number(parts, 5) or _number(parts, 6):
            raise OddRequest("keeps the value or the lease of a key")
        if lease and lease not in self.leases:
            return
        main = self.revision + 1
        version = old.version + 1 if old is not None else 1
        created = old.created if old is not None else main
        self.keys[key] = StoredKey(created, main, version, lease)
        changes.append(EtcdEntry(main, len(changes), key, version, _text(parts, 2)))

    def _delete(self, request: bytes, changes: list[EtcdEntry]) -> None:
        parts = numbers_and_texts(request)
        for key in self._range(_key(parts, 1), _key(parts, 2)):
            self._remove(key, changes)

    def _remove(self, key: str, changes: list[EtcdEntry]) -> None:
        del self.keys[key]
        changes.append(EtcdEntry(self.revision + 1, len(changes), key, 0, None))

    def _range(self, key: str, end: str) -> list[str]:
        """The keys that exist in a range; an end of a zero byte means all that follow."""
        if not end:
            return [key] if key in self.keys else []
        return sorted(each for each in self.keys if key <= each and (end == "\0" or each < end))

    def _decide(self, transaction: bytes, changes: list[EtcdEntry]) -> None:
        parts = numbers_and_texts(transaction)
        succeeds = all(self._holds(each) for each in parts.get(1, ()) if isinstance(each, bytes))
        for operation in parts.get(2 if succeeds else 3, ()):
            inner = numbers_and_texts(operation if isinstance(operation, bytes) else b"")
            if put := _text(inner, 2):
                self._put(put, changes)
            elif removed := _text(inner, 3):
                self._delete(removed, changes)
            elif nested := _text(inner, 4):
                self._decide(nested, changes)

    def _holds(self, comparison: bytes) -> bool:
        """True if a comparison holds for every key that it is about."""
        parts = numbers_and_texts(comparison)
        result, target = _number(parts, 1), _number(parts, 2)
        key, end = _key(parts, 3), _key(parts, 64)
        keys = self._range(key, end) if end else [key]
        return all(_compares(self.keys.get(key), parts, result, target) for key in keys)


def _compares(
    stored: StoredKey | None, parts: dict[int, list[int | bytes]], result: int, target: int
) -> bool:
    if target == _VALUE:
        raise OddRequest("compares values")
    known = stored or StoredKey(0, 0, 0, 0)
    own = {
        _VERSION: known.version,
        _CREATED: known.created,
        _MODIFIED: known.modified,
        _LEASE: known.lease,
    }
    other = next((_number(parts, each) for each in _TARGET_FIELDS if each in parts), 0)
    less, more = own.get(target, 0) < other, own.get(target, 0) > other
    return (not less and not more, more, less, less or more)[result] if result < 4 else False


def numbers_and_texts(raw: bytes) -> dict[int, list[int | bytes]]:
    """The values of a message by the number of their field. Raises OddRequest for a damaged one."""
    parts: dict[int, list[int | bytes]] = {}
    try:
        for number, _, value in message_fields(raw):
            parts.setdefault(number, []).append(value)
    except ProtobufError as problem:
        raise OddRequest("is damaged") from problem
    return parts


def _number(parts: dict[int, list[int | bytes]], number: int) -> int:
    value = parts.get(number, [0])[-1]
    return value if isinstance(value, int) else 0


def _text(parts: dict[int, list[int | bytes]], number: int) -> bytes:
    value = parts.get(number, [b""])[-1]
    return value if isinstance(value, bytes) else b""


def _key(parts: dict[int, list[int | bytes]], number: int) -> str:
    return _text(parts, number).decode("utf-8", "replace")


def writes(store: EtcdKeys, requests: Iterable[bytes], place: str) -> Iterator[EtcdEntry]:
    """The writes of requests in their order. Raises InputError for a damaged request."""
    for request in requests:
        try:
            yield from store.apply(request)
        except OddRequest as problem:
            raise InputError(
                f"a request in the log of etcd {problem}, and what follows is not known",
                place=place,
                cure="take a snapshot (etcdctl snapshot save)",
            ) from problem


def beside(path: Path) -> list[tuple[str, Path]]:
    """The names and paths of the logs of a database that is imported alone."""
    log = path.with_name(path.name + _SQLITE_ENDING)
    if log.is_file() and log.stat().st_size:
        return [(log.name, log)]
    if path.name != "db" or path.parent.name != "snap":
        return []
    logs = sorted((path.parent.parent / _ETCD_FOLDER).glob(f"*{_ETCD_ENDING}"))
    return [(_ETCD_FOLDER + log.name, log) for log in logs]


class WriteLogs:
    """The logs among the files of an import, by their names, and the databases that they are of."""

    def __init__(self) -> None:
        self._logs: dict[str, ByteSource] = {}
        self._used: set[str] = set()

    def note(self, source: ByteSource, head: bytes) -> bool:
        """True for a log, which is kept for its database."""
        if not head.startswith((*_SQLITE_MAGIC, _ETCD_MAGIC)):
            return False
        self._logs[source.name] = source
        return True

    def of(self, database: str) -> tuple[ByteSource, ...]:
        """The logs of the database of this name, in their order."""
        folder = database.removesuffix("db").removesuffix("snap/") + _ETCD_FOLDER
        names = sorted(
            name
            for name in self._logs
            if name == database + _SQLITE_ENDING
            or (
                database.endswith("db")
                and name.startswith(folder)
                and "/" not in name[len(folder) :]
            )
        )
        self._used.update(names)
        return tuple(self._logs[name] for name in names)

    def lose_others(self, notes: Notes) -> None:
        """Note as lost what the logs hold that have no database beside them."""
        for name in sorted(self._logs.keys() - self._used):
            is_sqlite = name.endswith(_SQLITE_ENDING)
            program = "a database of SQLite" if is_sqlite else "etcd"
            database = Path(name).name.removesuffix(_SQLITE_ENDING) if is_sqlite else "snap/db"
            notes.lose(
                InputError(
                    f"it is the write-ahead log of {program}, whose database is not beside it",
                    place=name,
                    cure=f"import {database} with it",
                )
            )
