"""Folders in memory for the files of databases, where there is room.

Each database is three hundred files, which are soon deleted. For five seconds ext4 gives no deleted
inode to a new file, and looks for another one: half a second of CPU time for each database, instead
of a twentieth.
"""

import os
import shutil
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")
BYTES_MIN = 2 << 30
"""The room in memory with which databases are there: a shared server takes up to 300 MB, and so do
the data folders of a module; each process of a run has both."""


def new_folder() -> Path | None:
    """A new folder in memory, which the caller removes; None without room."""
    try:
        room = shutil.disk_usage(MEMORY).free >= BYTES_MIN
    except OSError:
        room = False
    if not room:
        return None
    # What killed runs left would stay in memory.
    for left in MEMORY.glob("redra-tests-*-*"):
        if not Path("/proc", left.name.split("-")[2]).exists():
            shutil.rmtree(left, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"redra-tests-{os.getpid()}-", dir=MEMORY))


def runs_programs() -> bool:
    """False where the system executes no file in memory, as in many containers."""
    try:
        return not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC
    except OSError:
        return False
