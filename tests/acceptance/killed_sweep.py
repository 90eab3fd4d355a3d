"""`redra sweep` in a process that dies at a write of a file: `python -m … WRITES WHEN WORDS…`.

It is killed at the write with that number, when nothing of it, half of it, or all of it is there.
"""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from unittest import mock

from app.adapters import whole_files
from app.cli import main

WHEN = ("before", "within", "after")


def run(last: int, when: str, words: list[str]) -> None:
    """Runs the command, which dies unless it has fewer writes."""
    numbers, replacing = count(1), whole_files.replacing

    @contextmanager
    def mortal(path: Path) -> Iterator[Path]:
        is_last = next(numbers) == last
        if is_last and when == "before":
            die()
        with replacing(path) as partial:
            yield partial
            if is_last and when == "within":
                with partial.open("r+b") as file:
                    file.truncate(partial.stat().st_size // 2)
                die()
        if is_last:
            die()

    with mock.patch.object(whole_files, "replacing", mortal):
        sys.argv = ["redra", *words]
        main()


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    run(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
