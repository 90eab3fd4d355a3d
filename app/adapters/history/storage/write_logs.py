"""Write-ahead logs: files beside a database that hold its last writes.

A copy of a database that was in use lacks the writes that still stand there alone.
"""

from pathlib import Path

from app.adapters.history.reading import Notes
from app.adapters.history.unpacking import ByteSource
from app.domain.errors import InputError

_SQLITE_MAGIC = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")
_SQLITE_ENDING = "-wal"


def beside(path: Path) -> list[Path]:
    """The path of the log that SQLite keeps beside a database, if there is one."""
    log = path.with_name(path.name + _SQLITE_ENDING)
    return [log] if log.is_file() and log.stat().st_size else []


class WriteLogs:
    """The logs among the files of an import, by their names, and the databases that they are of."""

    def __init__(self) -> None:
        self._logs: dict[str, ByteSource] = {}
        self._used: set[str] = set()

    def note(self, source: ByteSource, head: bytes) -> bool:
        """True for a log, which is kept for its database."""
        if not head.startswith(_SQLITE_MAGIC):
            return False
        self._logs[source.name] = source
        return True

    def of(self, database: str) -> ByteSource | None:
        """The log of the database of this name."""
        name = database + _SQLITE_ENDING
        self._used.add(name)
        return self._logs.get(name)

    def lose_others(self, notes: Notes) -> None:
        """Note as lost what the logs hold that have no database beside them."""
        for name in self._logs.keys() - self._used:
            notes.lose(
                InputError(
                    "it is the write-ahead log of a database of SQLite, which is not beside it",
                    place=name,
                    cure=f"import {Path(name).name.removesuffix(_SQLITE_ENDING)} with it",
                )
            )
