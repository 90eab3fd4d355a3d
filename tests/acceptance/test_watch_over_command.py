"""`redra watch-over` says of a recording what `redra verify` and `redra scan` say of it."""

import json

import pytest

from tests.command_line import ROOT, database_running, redra

pytestmark = [pytest.mark.database, pytest.mark.slow, pytest.mark.timeout(180)]

RECORDING = ROOT / "examples" / "recordings" / "maintenance"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("watched") / "data"
    with database_running(folder):
        code, _, said = redra(
            "import", RECORDING, "--history", "night", "--keep-going", data=folder
        )
        assert code == 0, said
        yield folder


def test_recording_is_told_as_verify_and_scan_tell_it(data):
    _, listed, _ = redra("histories", "-o", "json", data=data)
    (night,) = [each for each in json.loads(listed) if each["name"] == "night"]
    code, out, said = redra(
        "watch-over", "night", "--until", night["revision"], "-o", "json", data=data
    )
    lines = [json.loads(line) for line in out.splitlines()]
    _, scanned, _ = redra("scan", "night", "-o", "json", data=data)
    sightings = json.loads(scanned)
    incidents = {(each["name"], each["revision"]) for each in lines if each["judge"] == "incident"}
    assert incidents == {(each["incident"], each["revision"]) for each in sightings}
    _, verified, _ = redra("verify", "night", "-o", "json", data=data)
    kinds = json.loads(verified)["invariants"]["kinds"]
    assert sum(each["judge"] == "invariant" for each in lines) == sum(kinds.values())
    assert code == (1 if any(each["failure"] for each in lines) else 0)
    assert f"history night up to revision {night['revision']}" in said


def test_text_names_revision_judge_and_objects(data):
    code, out, _ = redra("watch-over", "night", "--until", "5", data=data)
    assert (code, out) == (0, "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nowhere",), "there is no history 'nowhere'"),
        (("night", "--until", "99999"), "has no revision 99999"),
        (("night", "--until", "soon"), "neither a revision nor an instant"),
    ],
)
def test_what_cannot_be_watched_is_refused(data, words, said):
    code, out, error = redra("watch-over", *words, data=data)
    assert (code, out) == (2, "")
    assert said in error
