"""The order in which the files of a run begin: the processes of a run take them one by one.

Files that wait for other processes come evenly among those that compute, so that neither all
processes wait nor all compute. Files that take few seconds each come last, so that no process works
alone at the end.
"""

from collections.abc import Sequence
from pathlib import PurePosixPath

WAITING = frozenset({"acceptance", "contracts", "crash", "recording", "web"})
"""Folders whose tests wait for servers, clients and browsers much of their time."""

SMALL = frozenset({"api", "architecture", "mutants", "unit"})
"""Folders whose files take few seconds each."""


def in_order(files: Sequence[str]) -> list[str]:
    """The files of a run, as paths below its root, in the order in which they begin."""
    parts: tuple[list[str], list[str], list[str]] = ([], [], [])
    for file in files:
        folder = PurePosixPath(file).parts[1]
        parts[0 if folder in WAITING else 2 if folder in SMALL else 1].append(file)
    places = {
        file: (number + 0.5) / len(part) for part in parts[:2] for number, file in enumerate(part)
    }
    return [*sorted(places, key=places.__getitem__), *parts[2]]
