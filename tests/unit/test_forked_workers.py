"""Forks of the process with all tests behave as new interpreters do."""

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.forked_workers import NEW_INTERPRETER
from tests.forking_client import write_program

ROOT = Path(__file__).resolve().parent.parent.parent
SERVE = """
import socket, sys
from tests import loaded_tests, redra_process
redra_process.forks().set_forkserver_preload([])
redra_process.begin_forks()
loaded_tests.serve(socket.socket(fileno=int(sys.argv[1])))
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The program of a process that forks, which has loaded no tests; it ends with the tests."""
    folder = tmp_path_factory.mktemp("forks")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "address"))
        listening.listen()
        number = listening.fileno()
        process = subprocess.Popen(
            [sys.executable, "-c", SERVE, str(number)],
            cwd=ROOT, stdin=subprocess.PIPE, pass_fds=[number],
        )  # fmt: skip
    yield write_program(folder / "worker", str(folder / "address"))
    process.communicate()
    assert process.returncode == 0


def run(program: Path, code: str, **options: object) -> tuple[int, str]:
    """The exit status of a fork that runs Python code, and what it printed."""
    words = [program, "-u", "-c", code]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, timeout=60, **options)
    return done.returncode, done.stdout


def test_fork_has_input_environment_folder_and_words_of_the_caller(program, tmp_path):
    shown = "input(), os.environ['A'], 'HOME' in os.environ, os.getcwd(), sys.argv"
    options = {"input": "a line\n", "env": {"A": "b"}, "cwd": tmp_path}
    got = run(program, f"import os, sys; print({shown})", **options)
    assert got == (0, f"a line b False {tmp_path} ['-c']\n")


def test_fork_ends_as_an_interpreter_does(program):
    code = "import atexit, sys; atexit.register(print, 'at the end'); sys.exit(3)"
    assert run(program, code) == (3, "at the end\n")
    assert run(program, "import os; os.kill(os.getpid(), 9)") == (-signal.SIGKILL, "")


def test_forks_draw_different_numbers_and_run_beside_each_other(program):
    code = "import random; print(random.random(), flush=True); input()"
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    both = [subprocess.Popen([program, "-c", code], **options) for _ in range(2)]
    numbers = {one.stdout.readline() for one in both if one.stdout}
    for one in reversed(both):
        one.communicate("\n")
    assert len(numbers) == 2
    assert [one.returncode for one in both] == [0, 0]


def test_interrupt_reaches_the_fork_and_not_the_process_that_forks(program):
    code = "import os, signal; os.kill(os.getppid(), 2); os.kill(os.getpid(), 2)"
    assert run(program, code, stderr=subprocess.DEVNULL)[0] == -signal.SIGINT
    assert run(program, "print(1)") == (0, "1\n")


SERVER = """
import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import forkserver
from tests.redra_process import forks
forkserver.ensure_running()
with ProcessPoolExecutor(1, forks()) as pool:
    print(pool.submit(os.getppid).result())
"""


def test_forks_share_the_process_that_has_loaded_redra(program):
    first, second = (run(program, SERVER, cwd=ROOT) for _ in range(2))
    assert first == second
    assert first[0] == 0
    assert int(first[1])


@pytest.mark.parametrize("address", ["absent", "dead"])
def test_without_that_process_a_new_interpreter_runs(address, tmp_path):
    if address == "dead":
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(tmp_path / address))
    alone = write_program(tmp_path / "worker", str(tmp_path / address), otherwise=NEW_INTERPRETER)
    assert run(alone, "import sys; print(sys.argv, input())", input="x\n") == (0, "['-c'] x\n")
