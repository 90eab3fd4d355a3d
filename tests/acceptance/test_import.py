"""`redra import` and `redra export` as processes: a recording in, a bundle out and in again."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.history.worlds import CLAIMS, audit, tree, write_lines

pytestmark = [pytest.mark.database, pytest.mark.slow]

REPOSITORY = Path(__file__).resolve().parents[2]


def redra(data: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "app.cli", *map(str, arguments), "--data", str(data)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


def test_recording_goes_in_and_out_and_in_again(tmp_path):
    data = tmp_path / "data"
    log = write_lines(
        tmp_path / "audit.log",
        [
            audit("create", tree(CLAIMS, "c1", rv=41), second=1),
            audit("update", name="c1", code=409, second=2),
            audit("delete", tree(CLAIMS, "c1", rv=44), name="c1", second=3),
        ],
    )
    first = redra(data, "import", log, "--history", "one", "-o", "json")
    assert first.returncode == 0, first.stderr
    report = json.loads(first.stdout)
    assert report["events"] == 5
    (kind,) = report["report"]["kinds"]
    assert kind["ops"] == {"ADDED": 1, "CONTEXT": 1, "DELETED": 1}

    again = redra(data, "import", log, "--history", "one")
    assert again.returncode == 2
    assert "exists already" in again.stderr
    assert len(again.stderr.strip().splitlines()) == 1

    bundle = tmp_path / "one.redra"
    assert redra(data, "export", "one", "-o", bundle).returncode == 0
    second = redra(data, "import", bundle, "--history", "two", "-o", "json")
    assert second.returncode == 0, second.stderr
    assert json.loads(second.stdout)["head"] == report["head"]

    broken = tmp_path / "broken.redra"
    content = bytearray(bundle.read_bytes())
    content[len(content) // 2] ^= 0xFF
    broken.write_bytes(content)
    refused = redra(data, "import", broken, "--history", "three")
    assert refused.returncode in (1, 2)
    assert len(refused.stderr.strip().splitlines()) == 1
    listed = redra(data, "histories", "-o", "json")
    assert "three" not in listed.stdout


def test_unreadable_recording_imports_nothing_and_says_where(tmp_path):
    data = tmp_path / "data"
    path = tmp_path / "audit.log"
    line = json.dumps(audit("create", tree(CLAIMS, "c1", rv=41)))
    path.write_text(f"{line}\n{{broken\n")
    failed = redra(data, "import", path, "--history", "one")
    assert failed.returncode == 2
    assert "audit.log:2" in failed.stderr
    assert len(failed.stderr.strip().splitlines()) == 1
    assert '"one"' not in redra(data, "histories", "-o", "json").stdout
    kept = redra(data, "import", path, "--history", "one", "--keep-going", "-o", "json")
    assert kept.returncode == 0, kept.stderr
    assert json.loads(kept.stdout)["report"]["refused"] == 1
