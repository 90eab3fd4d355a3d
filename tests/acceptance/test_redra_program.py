"""The program of the tests' shells (`tests/redra_program.py`) does what the installed one does."""

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import draws
from tests.prepared_data import prepare
from tests.redra_program import write_program

pytestmark = pytest.mark.database

INSTALLED = Path(sys.executable).parent / "redra"
LINES = {
    "answer": ("incidents", "show", "rules-not-seen"),
    "refusal": ("why", "pot/x", "--server", "http://127.0.0.1:1"),
    "input": ("allocate", "-"),
}


@pytest.fixture(scope="module")
def forked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_program(tmp_path_factory.mktemp("program") / "redra")


@draws.in_turn("ways")
@pytest.mark.parametrize("name", LINES)
def test_program_says_what_the_installed_one_says(forked: Path, tmp_path: Path, name: str) -> None:
    answers = [
        subprocess.run(
            [program, *LINES[name]], cwd=tmp_path, input=b"{}\n", capture_output=True, check=False
        )
        for program in (INSTALLED, forked)
    ]
    first, second = [(each.returncode, each.stdout, each.stderr) for each in answers]
    assert first == second
    assert first[1] + first[2]


def test_environment_and_terminal_are_those_of_the_caller(forked: Path) -> None:
    controller, terminal = pty.openpty()
    done = subprocess.run(
        [forked, "incidents", "list"],
        env=os.environ | {"PAGER": "sed s/^/|/"}, stdin=subprocess.DEVNULL, stdout=terminal,
        stderr=subprocess.PIPE, check=True,
    )  # fmt: skip
    assert done.stderr == b""
    assert os.read(controller, 1) == b"|"
    os.close(controller)
    os.close(terminal)


@draws.in_turn("ends")
def test_signal_ends_the_command_and_its_program(forked: Path, tmp_path: Path) -> None:
    prepare(tmp_path / "data")
    words = ["up", "--data", tmp_path / "data", "--listen", "127.0.0.1:0"]
    environment = os.environ | {"REDRA_PROJECTOR": "off"}
    with subprocess.Popen(
        [forked, *words], stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        assert "http" in process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
