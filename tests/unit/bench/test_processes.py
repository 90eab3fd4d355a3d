"""Processes of measurements: a start that is measured does not compile what it imports."""

import subprocess
import sys

from bench import processes

IMPORTS = "import sys; sys.path.insert(0, sys.argv[1]); import imported"


def test_the_second_start_of_a_program_finds_it_compiled(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("OF_THE_PROGRAM", "kept")
    (tmp_path / "imported.py").write_text("import os\nprint(os.environ['OF_THE_PROGRAM'])\n")
    command = [sys.executable, "-c", IMPORTS, str(tmp_path)]
    environment = processes.keeps_compiled() | {"PYTHONPYCACHEPREFIX": str(tmp_path / "compiled")}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert run.stdout == "kept\n"
    assert list((tmp_path / "compiled").rglob("imported.*.pyc"))
