"""`redra import` and `redra export`: a recording in, a bundle out and in again."""

import gzip
import importlib
import json
import zipfile

import pytest

from app.domain.log.doubts import MEANINGS, Affects
from tests import draws
from tests.command_line import database_running, redra
from tests.shared_data import shared_path
from tests.unit.history.worlds import CLAIMS, audit, tree, write_lines

pytestmark = [pytest.mark.database, pytest.mark.slow]


@pytest.fixture
def data(tmp_path):
    """A data folder whose database runs."""
    with database_running(tmp_path / "data"):
        yield tmp_path / "data"


@draws.in_turn("ways")
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
    assert "already exists" in error
    assert len(error.strip().splitlines()) == 1

    bundle = tmp_path / "one.redra"
    assert redra("export", "one", "-o", bundle, data=data)[0] == 0
    code, out, error = redra("import", bundle, "--history", "two", "-o", "json", data=data)
    assert code == 0, error
    assert json.loads(out)["head"] == report["head"]

    said = {}
    for form in ("audit", "watch", "objects", "k8shark"):
        code, said[form], error = redra(
            "export", "one", "--as", form, "-o", tmp_path / form, data=data
        )
        assert code == 0, error
        assert redra("export", "one", "--as", form, "-o", tmp_path / form, data=data)[0] == 2
    assert [words.partition(": ")[2] for words in said.values()] == [
        "3 lines of history one\n",
        "1 file, 4 lines of history one\n",
        "0 objects of history one\n",
        "3 records of history one\n",
    ]
    code, out, error = redra(
        "export", "one@2020-01-01T00:00:00Z", "--as", "objects", "-o", tmp_path / "l", data=data
    )
    assert (code, out) == (2, ""), error
    assert "there are no events up to" in error

    broken = tmp_path / "broken.redra"
    content = bytearray(bundle.read_bytes())
    content[len(content) // 2] ^= 0xFF
    broken.write_bytes(content)
    code, _, error = redra("import", broken, "--history", "three", data=data)
    assert code in (1, 2)
    assert len(error.strip().splitlines()) == 1
    with zipfile.ZipFile(bundle) as whole, zipfile.ZipFile(broken, "w") as swapped:
        for entry in whole.namelist():
            lines = whole.read(entry).splitlines(keepends=True)
            if entry == "events.jsonl":
                lines[1], lines[2] = lines[2], lines[1]
            swapped.writestr(entry, b"".join(lines))
    code, _, error = redra("import", broken, "--history", "three", data=data)
    assert (code, "broken.redra: the hash chain breaks at revision 3" in error) == (2, True), error
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


@draws.in_turn("ways")
def test_interrupted_import_makes_no_history_and_says_so(data, tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    log = write_lines(tmp_path / "audit.log", [audit("create", tree(CLAIMS, "c1", rv=41))])
    monkeypatch.setattr("app.adapters.history.opening.open_history", interrupt)
    code, out, error = redra("import", log, "--history", "one", data=data)
    assert (code, out, error) == (130, "", "interrupted: history one is not made\n")
    assert "one" not in redra("histories", data=data)[1]


def test_what_a_recording_lacks_can_be_asked_in_sql(data, tmp_path):
    """Who touched a claim was recorded, not what was written; everything else is whole."""
    path = shared_path("histories", "a-quickstart", "audit.jsonl.gz")
    lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    bare = [line for line in lines if line["objectRef"]["resource"] == "resourceclaims"]
    for line in bare:
        line.update(level="Metadata", requestObject=None, responseObject=None)
    allocated = {
        (line["objectRef"]["namespace"], line["objectRef"]["name"])
        for line in bare
        if line["objectRef"].get("subresource") == "status"
    }
    files = {"whole": path, "bare": write_lines(tmp_path / "audit.log", lines)}
    for name, file in files.items():
        code, _, error = redra("import", file, "--history", name, data=data)
        assert code == 0, error

    def ask(question):
        code, out, error = redra("sql", question, "-o", "json", data=data)
        assert code == 0, error
        return json.loads(out), error

    rows, error = ask(
        "SELECT history, namespace, name, type FROM losses "
        "WHERE unsure AND resource = 'resourceclaims'"
    )
    assert {(row["history"], row["type"]) for row in rows} == {("bare", "GapObserved")}
    assert len(allocated) > 5
    assert allocated <= {(row["namespace"], row["name"]) for row in rows}
    (note,) = [line for line in error.splitlines() if "unsure" in line]
    assert note.startswith("note: the recording bare is incomplete")
    assert "resourceclaims: " in note
    assert ask("SELECT 1 FROM losses WHERE unsure AND history = 'whole'")[0] == []
    redra("rebuild", "whole", data=data)
    joined, _ = ask(
        "SELECT count(*) AS objects, count(*) FILTER (WHERE unsure) AS unsure "
        "FROM view_objects JOIN histories AS h USING (history) "
        "LEFT JOIN losses ON losses.history = h.name AND losses.revision = view_objects.revision"
    )
    assert joined[0]["objects"] > 10
    assert joined[0]["unsure"] == 0


def test_losses_that_make_content_unsure_are_those_of_answers():
    """A loss that is new in the code needs a migration that tells the view of it."""
    view = importlib.import_module("migrations.versions.m0011_immutable_losses")
    content = {loss for loss, (affects, _) in MEANINGS.items() if affects is Affects.CONTENT}
    assert {loss.value for loss in content} == set(view.CONTENT)
