"""Write-ahead logs: files beside a database that hold its last writes.

A copy of a database that was in use lacks the writes that still stand there alone.

    state.db          state.db-wal                    kine in SQLite
    member/snap/db    member/wal/0000000000000000-0000000000000000.wal    etcd
"""

from pathlib import Path

from app.adapters.history.reading import Notes
from app.adapters.history.unpacking import ByteSource
from app.domain.errors import InputError

_SQLITE_MAGIC = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")
_SQLITE_ENDING = "-wal"
_ETCD_MAGIC = b"\x04\0\0\0\0\0\0\x84\x08\x04\x10"
"""The first record of each file: four bytes and as many of padding, with a checksum."""

_ETCD_FOLDER, _ETCD_ENDING = "wal/", ".wal"


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
