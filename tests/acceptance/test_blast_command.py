"""`redra blast` as a person at a terminal meets it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command_line import EXAMPLES, database_running, redra

pytestmark = [pytest.mark.slow]

RULE = """\
apiVersion: resource.k8s.io/v1
kind: DeviceTaintRule
metadata: {name: proposed}
spec:
  deviceSelector: {driver: gpu.example.com}
  taint: {key: example.com/bad, effect: %s}
"""


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    """A data folder whose database runs."""
    with database_running(tmp_path / "data"):
        yield tmp_path / "data"


def test_proposal_is_told_refused_and_never_written(data: Path, tmp_path: Path) -> None:
    code, _, error = redra("import", EXAMPLES, "--history", "examples", data=data)
    assert code == 0, error
    about = ("--history", "examples")
    code, out, error = redra("blast", "-f", "-", *about, data=data, stdin=RULE % "NoExecute")
    assert code == 0, error
    assert out.startswith("DeviceTaintRule proposed: would be created\n")
    assert len(out.splitlines()) < 50
    code, out, _ = redra(
        "blast", "-f", "-", *about, "-o", "json", data=data, stdin=RULE % "NoExecute"
    )
    assert code == 0
    assert json.loads(out)["totals"]["devices_tainted"] > 0
    file = tmp_path / "bad.yaml"
    file.write_text("# a comment\n---\n" + RULE % "Nonsense")
    code, _, error = redra("blast", "-f", file, *about, data=data)
    assert code == 2
    assert f'{file}:2: DeviceTaintRule.resource.k8s.io "proposed" is invalid' in error
    code, _, error = redra("blast", "examples", "-f", file, "--at", "99999", data=data)
    assert code == 2
    assert "--at: history 'examples' has no revision 99999: it ends at " in error
    code, _, error = redra("blast", "--delete", "devicetaintrule/proposed", *about, data=data)
    assert code == 2
    assert '"proposed" not found' in error


def test_nothing_proposed_ends_with_2(tmp_path: Path) -> None:
    code, _, error = redra("blast", data=tmp_path)
    assert code == 2
    assert "no change is proposed" in error
    empty = tmp_path / "empty.yaml"
    empty.write_text("# nothing\n---\n")
    code, _, error = redra("blast", "-f", empty, data=tmp_path)
    assert (code, error) == (2, f"redra: {empty}: it holds no object\n")
    code, _, error = redra("blast", "-f", tmp_path / "missing.yaml", data=tmp_path)
    assert code == 2
    assert "missing.yaml: No such file" in error
