"""`redra allocate` on scenarios of the reference, as a scheduler developer runs it."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
DATA = ROOT / "tests" / "conformance" / "data" / "allocator-scenarios.jsonl.gz"

pytestmark = [pytest.mark.slow]


def test_explained_answers_name_the_defects_that_decided(tmp_path: Path) -> None:
    with gzip.open(DATA, "rt") as stream:
        known = [json.loads(line) for line in stream]
    marked = [one for one in known if one.get("upstreamQuirks")][:3]
    plain = [one for one in known if not one.get("upstreamQuirks")][:3]
    assert marked
    assert plain
    file = tmp_path / "scenarios.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in (*marked, *plain)))
    command = [sys.executable, "-m", "app.cli", "allocate", str(file), "--explain"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["name"] for answer in answers] == [one["name"] for one in (*marked, *plain)]
    found = [answer.get("upstreamQuirks", []) for answer in answers]
    assert found == [sorted(one.get("upstreamQuirks", [])) for one in (*marked, *plain)]
