"""The pages that promise it are true: their blocks run and print what they show.

Their `redra` is a fork of a process that has loaded it; with more draws, the installed program.
"""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from app.settings import Settings
from tests import draws
from tests.prepared_data import prepare
from tests.redra_program import write_program

ROOT = Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "docs"

SECONDS_MAX = 560
"""Far more than a page needs; a machine may be busy with other things."""

ELISION_MAX = 60
"""The characters of the output that `…` in a page may stand for."""

pytestmark = [pytest.mark.database, pytest.mark.slow]


def steps(page: Path) -> list[tuple[str, list[str]]]:
    """Each shell block with the texts that its output must contain."""
    found: list[tuple[str, list[str]]] = []
    for language, body in re.findall(r"```(sh|text)\n(.*?)```", page.read_text(), re.DOTALL):
        if language == "sh":
            found.append((body, []))
        else:
            found[-1][1].extend(line for line in body.splitlines() if line.strip())
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def end_session(leader: int) -> None:
    """End the shell and all that it has started; with job control these are groups of their own."""
    found = subprocess.run(
        ["ps", "-o", "pid=", "-s", str(leader)], capture_output=True, text=True, check=False
    )
    for pid in found.stdout.split():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGTERM)


def check_page(page: Path, *, folder: Path, log: Path, **environment: str) -> None:
    """Run the blocks of a page in a folder, one after the other in one shell."""
    marker = "=== end of step {number} ==="
    script = ["set -euo pipefail", "set -m"]
    # The page's port may be taken on this machine, also by this test in another clone.
    port = free_port()
    for number, (body, _) in enumerate(steps(page)):
        script += [
            body.replace(":18080", f":{port}"),
            f'echo "{marker.format(number=number)}"',
        ]
    programs = [str(Path(sys.executable).parent), os.environ["PATH"]]
    if not draws.WHOLE:
        programs.insert(0, str(write_program(log.with_name("bin") / "redra").parent))
    surroundings = os.environ | {
        "PATH": os.pathsep.join(programs),
        **environment,
    }
    surroundings.pop("KUBECONFIG", None)
    shell = subprocess.Popen(
        ["bash", "-c", "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n" + "\n".join(script)],
        cwd=folder,
        env=surroundings,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        rest, errors = shell.communicate(timeout=SECONDS_MAX)
    except subprocess.TimeoutExpired:
        end_session(shell.pid)
        raise
    said = log.read_text() if log.exists() else ""
    assert shell.returncode == 0, f"{rest}\n{errors}\n{said}"
    for number, (body, expected) in enumerate(steps(page)):
        printed, _, rest = rest.partition(marker.format(number=number))
        squeezed = re.sub(r"[ \n│├└─]+", " ", printed)
        for text in expected:
            parts = re.sub(r"[ │├└─]+", " ", text).strip().split("…")
            pattern = f".{{0,{ELISION_MAX}}}?".join(re.escape(part.strip()) for part in parts)
            assert re.search(pattern, squeezed), f"{text}\nafter:\n{body}\ngot:\n{printed}"


@draws.in_turn("ways")
def test_tutorial_runs_and_prints_what_it_shows(tmp_path: Path) -> None:
    prepare(tmp_path / "data")
    check_page(
        DOCS / "tutorial" / "first-steps.md",
        folder=ROOT,
        log=tmp_path / "data.log",
        DATA=str(tmp_path / "data"),
        HOME=str(tmp_path),
    )


@draws.in_turn("ways")
def test_page_for_incidents_runs_and_prints_what_it_shows(tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    prepare(tmp_path / Settings().data)
    # The clone's package, whatever is installed: the commands run in another folder.
    check_page(
        DOCS / "how-to" / "incident.md",
        folder=tmp_path,
        log=tmp_path / "up.log",
        HOME=str(tmp_path),
        PYTHONPATH=str(ROOT),
    )
