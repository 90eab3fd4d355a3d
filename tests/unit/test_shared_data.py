"""Without the shared data the tests that need them are skipped, and nothing else happens."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import draws

ROOT = Path(__file__).resolve().parent.parent.parent


@draws.in_turn("ways")
def test_modules_that_read_recordings_while_they_are_collected_are_skipped(tmp_path):
    """Also one that imports from another one."""
    conformance = ROOT / "tests/conformance"
    files = [conformance / "test_decide_altered.py", conformance / "test_decide_nodes.py"]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-qq", "-rs", *files],
        cwd=ROOT,
        env={**os.environ, "REDRA_SHARED": str(tmp_path), "CI": ""},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, ran.stdout
    assert "SKIPPED [2]" in ran.stdout
