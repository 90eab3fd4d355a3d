"""`redra import` and `redra export`: a recording in, a bundle out and in again."""

import json

import pytest

from tests.command_line import database_running, redra
from tests.unit.history.worlds import CLAIMS, audit, tree, write_lines

pytestmark = [pytest.mark.database, pytest.mark.slow]


@pytest.fixture
def data(tmp_path):
    """A data folder whose database runs."""
    with database_running(tmp_path / "data"):
        yield tmp_path / "data"


def test_recording_goes_in_and_out_and_in_again(data, tmp_path):
    log = write_lines(
        tmp_path / "audit.log",
        [
            audit("create", tree(CLAIMS, "c1", rv=41), second=1),
            audit("update", name="c1", code=409, second=2),
            audit("delete", tree(CLAIMS, "c1", rv=44), name="c1", second=3),
        ],
    )
    code, out, error = redra("import", log, "--history", "one", "-o", "json", data=data)
    assert code == 0, error
    report = json.loads(out)
    assert report["events"] == 5
    (kind,) = report["report"]["kinds"]
    assert kind["ops"] == {"ADDED": 1, "CONTEXT": 1, "DELETED": 1}

    code, _, error = redra("import", log, "--history", "one", data=data)
    assert code == 2
    assert "exists already" in error
    assert len(error.strip().splitlines()) == 1

    bundle = tmp_path / "one.redra"
    assert redra("export", "one", "-o", bundle, data=data)[0] == 0
    code, out, error = redra("import", bundle, "--history", "two", "-o", "json", data=data)
    assert code == 0, error
    assert json.loads(out)["head"] == report["head"]

    broken = tmp_path / "broken.redra"
    content = bytearray(bundle.read_bytes())
    content[len(content) // 2] ^= 0xFF
    broken.write_bytes(content)
    code, _, error = redra("import", broken, "--history", "three", data=data)
    assert code in (1, 2)
    assert len(error.strip().splitlines()) == 1
    assert "three" not in redra("histories", "-o", "json", data=data)[1]


def test_unreadable_recording_imports_nothing_and_says_where(data, tmp_path):
    path = tmp_path / "audit.log"
    line = json.dumps(audit("create", tree(CLAIMS, "c1", rv=41)))
    path.write_text(f"{line}\n{{broken\n")
    code, _, error = redra("import", path, "--history", "one", data=data)
    assert code == 2
    assert "audit.log:2" in error
    assert len(error.strip().splitlines()) == 1
    assert '"one"' not in redra("histories", "-o", "json", data=data)[1]
    words = ("import", path, "--history", "one", "--keep-going", "-o", "json")
    code, out, error = redra(*words, data=data)
    assert code == 0, error
    assert json.loads(out)["report"]["refused"] == 1
