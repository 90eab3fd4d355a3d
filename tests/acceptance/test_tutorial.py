"""The tutorial is true: its blocks run, and what it says they print is printed."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "tutorial" / "first-steps.md"


def steps() -> list[tuple[str, list[str]]]:
    """Each shell block with the texts that its output must contain."""
    found: list[tuple[str, list[str]]] = []
    for language, body in re.findall(r"```(sh|text)\n(.*?)```", PAGE.read_text(), re.DOTALL):
        if language == "sh":
            found.append((body, []))
        else:
            found[-1][1].extend(line for line in body.splitlines() if line.strip())
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.database
@pytest.mark.slow
@pytest.mark.timeout(180)
def test_tutorial_runs_and_prints_what_it_shows(tmp_path: Path) -> None:
    marker = "=== end of step {number} ==="
    script = ["set -euo pipefail", "set -m"]
    for number, (body, _) in enumerate(steps()):
        # The page's port may be taken on this machine, also by this test in another clone.
        script += [
            body.replace(":18080", f":{free_port()}"),
            f'echo "{marker.format(number=number)}"',
        ]
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "DATA": str(tmp_path / "data"),
        "HOME": str(tmp_path),
    }
    environment.pop("KUBECONFIG", None)
    done = subprocess.run(
        ["bash", "-c", "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n" + "\n".join(script)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=170,
    )
    server = tmp_path / "data.log"
    said = server.read_text() if server.exists() else ""
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n{said}"
    rest = done.stdout
    for number, (body, expected) in enumerate(steps()):
        printed, _, rest = rest.partition(marker.format(number=number))
        squeezed = re.sub(r" +", " ", printed)
        for text in expected:
            assert re.sub(r" +", " ", text.strip()) in squeezed, f"after:\n{body}\ngot:\n{printed}"
