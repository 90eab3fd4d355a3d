"""The order in which the files of a run begin: the processes of a run take them one by one.

Files that wait for other processes come evenly among those that compute, so that neither all
processes wait nor all compute. Files that take few seconds each come last, so that no process works
alone at the end.
"""

from collections.abc import Sequence
from pathlib import PurePosixPath

from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

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


TOGETHER = ("tests/architecture/",)
"""Folders whose files one process runs: they share what it parsed."""


class FileScheduling(LoadFileScheduling):  # type: ignore[misc]  # xdist's classes have no types
    """xdist's distribution of files, without its searches; some folders are as one file.

    After each test xdist counts all that its process was given so far, and it looks each test up
    in the list of all: 4 CPU seconds for 17,000 tests.
    """

    def _split_scope(self, nodeid: str) -> str:
        """The file of a test, or its folder: what one process runs."""
        for folder in TOGETHER:
            if nodeid.startswith(folder):
                return folder
        scope: str = super()._split_scope(nodeid)
        return scope

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        """Takes the tests that a process has collected."""
        super().add_node_collection(node, collection)
        if node in self.registered_collections:
            self.registered_collections[node] = _Indexed(collection)

    def _pending_of(self, workload: dict[str, dict[str, bool]]) -> int:
        """The number of tests that a process has still to run: of the last files that it got."""
        pending = 0
        for tests in reversed(workload.values()):
            left = list(tests.values()).count(False)
            if not left:
                break
            pending += left
        return pending


class _Indexed(list[str]):
    """A list of different names that knows the place of each."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(names)
        self._places = {name: place for place, name in enumerate(names)}

    def index(self, name: str, *_: object) -> int:  # type: ignore[override]  # whole lists are asked
        return self._places[name]
