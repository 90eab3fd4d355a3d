"""Prints the fastest Python on this machine: `python3 bench/interpreter.py`.

`make install` asks it which Python the virtual environment is made of. How an interpreter was
built decides up to a third of its speed, and its settings do not say it reliably, so each one runs
a short loop. Only the standard library is used, because nothing is installed yet.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

OLDEST = (3, 11)
NEWEST = (3, 14)
"""The releases that are looked for under names such as `python3.12`."""

FASTER = 0.9
"""Another Python than `python3` is chosen only if it needs less than this part of its time."""

ROUNDS = 15
STEPS = 10_000
PATIENCE_SECONDS = 30.0

TIMED = "--timed"
"""The argument with which an interpreter times itself."""


class Row:
    """What the loop makes and reads: an object with a dictionary."""

    __slots__ = ("fields", "name")

    def __init__(self, name: str, fields: dict[str, int]) -> None:
        self.name = name
        self.fields = fields

    def size(self) -> int:
        """The number of fields."""
        return len(self.fields)


def work() -> int:
    """The loop: calls, objects and dictionaries, as in most of redra's code."""
    total = 0
    for number in range(STEPS):
        row = Row("row", {"number": number, "other": 1})
        total += row.size() + row.fields["number"]
        if row.name == "row" and row.fields.get("absent") is None:
            total -= 1
    return total


def timed() -> float:
    """The least processor time of some rounds: other processes hardly change it."""
    least = float("inf")
    for _ in range(ROUNDS):
        started = time.process_time()
        work()
        least = min(least, time.process_time() - started)
    return least


def names() -> Iterator[str]:
    """Where interpreters are looked for, `python3` first, Debian's own beside those of the path."""
    releases = [f"python3.{minor}" for minor in range(OLDEST[1], NEWEST[1] + 1)]
    for name in ("python3", *releases):
        for path in (shutil.which(name), f"/usr/bin/{name}"):
            if path is not None and os.access(path, os.X_OK):
                yield path


def seconds_of(path: str) -> float | None:
    """The time of an interpreter's loop; None if it is too old or can make no environments."""
    try:
        done = subprocess.run(
            [path, str(Path(__file__).resolve()), TIMED],
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )
        return float(done.stdout) if done.returncode == 0 else None
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None


def fastest(paths: Sequence[str]) -> str:
    """The first of the paths, unless another one is clearly faster. Needs a first one."""
    different = {os.path.realpath(path): path for path in reversed(paths)}
    others = [path for path in reversed(different.values()) if path != paths[0]]
    if not others:
        return paths[0]
    times = {path: seconds_of(path) for path in (paths[0], *others)}
    usable = {path: seconds for path, seconds in times.items() if seconds is not None}
    if not usable:
        return paths[0]
    best = min(usable, key=lambda path: usable[path])
    usual = usable.get(paths[0])
    return best if usual is None or usable[best] < FASTER * usual else paths[0]


def main(arguments: Sequence[str] = ()) -> None:
    """Print the path, or with `--timed` the seconds of this interpreter."""
    parser = argparse.ArgumentParser(prog="bench.interpreter", description=__doc__)
    parser.add_argument(TIMED, action="store_true", help="print the time of this interpreter")
    if parser.parse_args(arguments).timed:
        check_usable()
        print(timed())
        return
    paths = list(names())
    print(fastest(paths) if paths else sys.executable)


def check_usable() -> None:
    """End the process with an error if this interpreter is too old or makes no environments."""
    import ensurepip  # noqa: F401 - Debian has it in a package of its own
    import venv  # noqa: F401

    if sys.version_info < OLDEST:
        raise SystemExit(f"Python {'.'.join(map(str, OLDEST))} or newer is needed")


if __name__ == "__main__":
    main(sys.argv[1:])
