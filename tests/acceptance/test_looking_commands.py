"""Commands that show what pages show: `redra report`."""

import json
from pathlib import Path

import pytest

from tests.command_line import ROOT, database_running, redra
from tests.web.reading import read

RECORDING = ROOT / "examples" / "recordings" / "maintenance"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A data folder with a recording, whose database runs."""
    folder = tmp_path_factory.mktemp("looking") / "data"
    with database_running(folder):
        code, _, error = redra("import", RECORDING, "--history", "maintenance", data=folder)
        assert code == 0, error
        yield folder


@pytest.mark.database
def test_report_is_written_as_one_file(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "incident.html"
    code, out, error = redra("report", "maintenance", "-o", file, data=data)
    assert (code, error) == (0, "")
    size = file.stat().st_size
    assert out == f"{file}: {size} bytes, history maintenance\n"
    assert size <= 5_000_000
    root = read(file.read_text())
    assert root.one("ol", "findings").all("a", "why")
    assert not root.all("script")


@pytest.mark.database
def test_trace_of_a_moment_goes_to_standard_output(data: Path) -> None:
    words = ("report", "maintenance", "--format", "perfetto", "--at", "100", "-o", "-")
    code, out, error = redra(*words, data=data)
    assert (code, error) == (0, "")
    trace = json.loads(out)
    assert trace["otherData"]["revision"] == 100
    assert max(one["args"].get("revision", 0) for one in trace["traceEvents"]) == 100


@pytest.mark.database
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nowhere",), "there is no history 'nowhere'"),
        (("maintenance", "--at", "99999"), "--at: history 'maintenance' has no revision 99999"),
        (("maintenance", "--at", "yesterday"), "'yesterday' is neither a revision nor an instant"),
        (("maintenance", "-o", "/no/such/folder/x.html"), "the file cannot be written"),
    ],
)
def test_report_that_cannot_be_made_is_refused_in_a_sentence(
    data: Path, words: tuple[str, ...], message: str
) -> None:
    code, out, error = redra("report", *words, data=data)
    assert (code in (1, 2), out, error.count("\n")) == (True, "", 1)
    assert message in error
