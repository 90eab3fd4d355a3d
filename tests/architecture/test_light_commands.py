"""Commands begin fast: what one of them needs is not loaded for all."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def test_the_command_line_loads_no_service_before_a_command_runs():
    shown = "import sys, app.cli.application; print(*sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", shown], cwd=ROOT, capture_output=True, text=True, check=True
    )
    heavy = ("app.service", "app.api", "app.adapters", "app.domain.controllers", "sqlalchemy")
    loaded = done.stdout.split()
    assert [name for name in loaded if name.startswith(heavy)] == []
