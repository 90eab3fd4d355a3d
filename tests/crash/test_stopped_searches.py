"""A search for the smallest history that is stopped anywhere ends as if it had not been.

Its process gets SIGINT or SIGKILL after a drawn number of results, again and again, and the same
command is run once more.
"""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from subprocess import Popen

import pytest

from app.bootstrap.gallery import incident_files
from tests import draws
from tests.command_line import ROOT, redra
from tests.fuzz import minimal_recordings
from tests.redra_process import RedraProcess

pytestmark = pytest.mark.slow

INCIDENT = "toleration-without-effect"
STOPS = 3
"""The number of times that a search is stopped before its end."""

SENDING = (
    "from app.bootstrap.minimising import sharing; sharing.WORTH_SECONDS = 0;"
    "from app.cli import main; main()"
)
"""A program that is `redra`, but sends each candidate to its workers."""


class Search:
    """The words of a search, and the number of results that it takes without a stop."""

    def __init__(self, folder: Path) -> None:
        recording = minimal_recordings.path_of(INCIDENT, folder)
        case = minimal_recordings.finding_of(incident_files.read(INCIDENT).incident)
        assert case is not None
        self._words = ["minimise", recording, "--keep", case.predicate, "--output", "json", "-o"]
        # The name of the file stands in the bundle.
        alone, self.file = folder / "alone" / "small.zip", folder / "stopped" / "small.zip"
        for file in (alone, self.file):
            file.parent.mkdir()
        self.trials = self._run(alone)
        self._result = alone.read_bytes()

    @property
    def words(self) -> list[str]:
        """The arguments of the command."""
        return [*map(str, self._words), str(self.file)]

    @property
    def kept(self) -> int:
        """The results beside the bundle: its whole lines after the first."""
        file = self.file.with_name(f"{self.file.name}.trials")
        return max(0, file.read_bytes().count(b"\n") - 1) if file.exists() else 0

    @property
    def left(self) -> list[str]:
        """The names of the files in the folder."""
        return [path.name for path in self.file.parent.iterdir()]

    def stop(self, process: Popen[str] | RedraProcess, results: int, number: int) -> None:
        """Sends a signal once so many results are kept; nothing but results is left then."""
        while process.poll() is None and self.kept < results:
            time.sleep(0.001)  # waits: for the next result
        process.send_signal(number)
        _, error = process.communicate(timeout=60)
        assert process.returncode == (130 if number == signal.SIGINT else -number), error
        assert self.left == ["small.zip.trials"]

    def end(self) -> int:
        """Runs the search to its end, which is the same; returns how many results it took."""
        trials = self._run(self.file)
        assert self.file.read_bytes() == self._result
        assert self.left == ["small.zip"]
        return trials

    def _run(self, file: Path) -> int:
        code, out, error = redra(*self._words, file)
        assert code == 0, error
        trials: int = json.loads(out)["trials"]
        return trials


@draws.in_turn("ends")
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_stopped_search_loses_no_result(number: int, seed: int, tmp_path: Path) -> None:
    search = Search(tmp_path)
    chance = random.Random(f"stops {number} {seed}")
    for results in sorted(chance.sample(range(1, search.trials), STOPS)):
        search.stop(RedraProcess(search.words), results, number)
    kept = search.kept
    assert search.end() == search.trials - kept


@draws.ONLY
@pytest.mark.timeout(600)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_stopped_search_with_workers_leaves_none(number: int, tmp_path: Path) -> None:
    """With one worker and then with two: some of their results are of candidates sent in vain."""
    search = Search(tmp_path)
    for workers in (1, 2):
        process = Popen(
            [sys.executable, "-c", SENDING, *search.words, "--workers", str(workers)],
            cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        search.stop(process, search.trials * workers // 3, number)
        deadline = time.monotonic() + 60
        while members := processes_of_session(process.pid):
            assert time.monotonic() < deadline, f"{len(members)} workers stay"
            time.sleep(0.05)  # waits: for the workers to notice
    assert search.end() < search.trials


def processes_of_session(leader: int) -> list[int]:
    """The running processes of a session."""
    numbers = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _parent, _group, session = stat.read_text().rpartition(") ")[2].split()[:4]
            if int(session) == leader and state != "Z":
                numbers.append(int(stat.parent.name))
    return numbers
