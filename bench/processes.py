"""CPU time and memory of a measurement: this process or a server, the projector, the database."""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """CPU seconds since a process began, or between two such looks."""

    main: float
    projector: float
    database: float

    def since(self, before: "Usage") -> "Usage":
        """What was spent between that look and this one."""
        return Usage(
            main=self.main - before.main,
            projector=self.projector - before.projector,
            database=self.database - before.database,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Resident MiB; memory shared by the database's processes counts once."""

    main: int
    projector: int
    database: int

    @property
    def total(self) -> int:
        """All processes together."""
        return self.main + self.projector + self.database


def keeps_compiled() -> dict[str, str]:
    """The environment of this process, in which programs are kept when they are compiled.

    Containers often forbid that, and then each start compiles all that it imports anew: more than a
    second of processor time that users with compiled programs do not have.
    """
    return {name: value for name, value in os.environ.items() if name != _UNKEPT}


_UNKEPT = "PYTHONDONTWRITEBYTECODE"


def usage(process: int | None = None) -> Usage:
    """The CPU time up to now of this process, or another one, and of those below it."""
    projector, database = _below(process or os.getpid())
    return Usage(
        main=time.process_time() if process is None else _cpu_seconds(process, ended=False),
        projector=sum(map(_cpu_seconds, projector)),
        database=sum(map(_cpu_seconds, database)),
    )


def memory(process: int | None = None) -> Memory:
    """The memory now of this process, or another one, and of those below it."""
    projector, database = _below(process or os.getpid())
    return Memory(
        main=resident_megabytes(process or "self"),
        projector=sum(map(resident_megabytes, projector)),
        database=sum(map(_share_kilobytes, database)) >> 10,
    )


def forget_peak(process: int) -> None:
    """Begin a new highest resident memory (VmHWM) of a process of this user."""
    Path(f"/proc/{process}/clear_refs").write_text("5")


def resident_megabytes(process: int | str = "self") -> int:
    """The resident memory of a process now, in MiB."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") >> 20


def _below(process: int) -> tuple[list[int], list[int]]:
    """The processes of the projector, and all others that a process has started."""
    projector: list[int] = []
    database: list[int] = []
    for child in _children(process):
        arguments = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
        kind = projector if b"project" in arguments else database
        kind += [child, *_descendants(child)]
    return projector, database


def _descendants(process: int) -> Iterator[int]:
    for child in _children(process):
        yield child
        yield from _descendants(child)


def _children(process: int) -> list[int]:
    try:
        found = [task.read_text() for task in Path(f"/proc/{process}/task").glob("*/children")]
    except OSError:
        return []  # it has ended since it was named
    return [int(child) for text in found for child in text.split()]


def _cpu_seconds(process: int, *, ended: bool = True) -> float:
    """Its own time and, if wanted, that of its children that have `ended`."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return 0.0
    fields = stat.rpartition(")")[2].split()
    return sum(int(ticks) for ticks in fields[11 : 15 if ended else 13]) / _TICK


def _share_kilobytes(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
