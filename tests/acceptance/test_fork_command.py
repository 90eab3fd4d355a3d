"""`redra fork` at the command line, as its how-to page has it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import draws
from tests.command_line import EXAMPLES, database_running, redra
from tests.shared_data import shared_path

pytestmark = [pytest.mark.slow]

EXTRA = """
apiVersion: v1
kind: Namespace
metadata: {name: extra}
"""

LABELLED = '{"metadata": {"labels": {"a": "b"}}}'


@contextmanager
def examples(data: Path) -> Iterator[Path]:
    """A data folder whose database runs, with the example cluster as the history `prod`."""
    with database_running(data):
        assert redra("import", EXAMPLES, "--history", "prod", data=data)[0] == 0
        yield data


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    """One that the test may change."""
    with examples(tmp_path / "data") as found:
        yield found


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One for all that is refused."""
    with examples(tmp_path_factory.mktemp("unchanged") / "data") as found:
        yield found


def histories(data: Path) -> dict[str, dict[str, object]]:
    code, out, error = redra("histories", "-o", "json", data=data)
    assert code == 0, error
    return {row["name"]: row for row in json.loads(out)}


@draws.in_turn("ways")
def test_fork_is_made_with_its_edits_and_verifies(data: Path) -> None:
    before = histories(data)["prod"]
    code, out, error = redra(
        "fork", "prod", "--history", "what-if", "--profile", "1.36", "--quirk", "q3=off",
        "--apply", "-", "--patch", f"deviceclass/gpu={LABELLED}",
        data=data, stdin=EXTRA,
    )  # fmt: skip
    assert code == 0, error
    assert out == (
        f"history what-if continues after revision {before['revision']} of history prod, with "
        "2 more events\n"
    )
    after = histories(data)
    assert after["prod"] == before
    assert after["what-if"]["revision"] == before["revision"] + 3
    assert after["what-if"]["profile"] == "1.36"
    code, out, error = redra("verify", "what-if", "-o", "json", data=data)
    report = json.loads(out)
    assert (report["agrees"], report["chain"]["problems"]) == (True, []), error
    assert report["judgedAfter"] == before["revision"] + 1
    code, out, _ = redra("log", "what-if", data=data)
    types = [json.loads(line)["type"] for line in out.splitlines()[-3:]]
    assert types == ["HistoryForked", "ObjectUpdated", "ObjectCreated"]


def assert_verified(data: Path, place: str) -> None:
    _, out, error = redra("verify", place, "-o", "json", data=data)
    report = json.loads(out)
    assert (report["agrees"], report["chain"]["problems"]) == (True, []), (place, report, error)


@draws.in_turn("ways")
def test_recorded_inputs_go_on_in_a_fork(data: Path) -> None:
    before = histories(data)["prod"]
    code, out, error = redra(
        "fork", "prod@5", "--history", "same", "--inputs", "recorded", data=data
    )
    assert code == 0, error
    assert "recorded inputs were used, 0 of them do not apply there" in out
    assert "compared with prod: every decision is the same" in out
    code, out, error = redra(
        "fork", "prod@5", "--history", "other", "--inputs", "recorded", "--apply", "-",
        "-o", "json", data=data, stdin=EXTRA,
    )  # fmt: skip
    assert code == 0, error
    report = json.loads(out)
    assert (report["source"], report["history"], report["revision"]) == ("prod", "other", 5)
    assert report["inputsLeftOut"] == []
    assert report["diff"]["outcome"] == "same"
    assert histories(data)["prod"] == before
    assert_verified(data, "same")
    assert redra("fork", "same", "--history", "older", "--profile", "1.34", data=data)[0] == 0
    middle = (histories(data)["same"]["revision"] + 5) // 2
    assert redra("histories", "copy", f"same@{middle}", "half", data=data)[0] == 0
    for place in (f"same@{middle}", "half", f"older@{middle}"):
        assert_verified(data, place)


@draws.in_turn("ways")
def test_forks_keep_their_parent_and_are_deleted_first(data: Path) -> None:
    assert redra("fork", "prod@3", "--history", "early", data=data)[0] == 0
    assert redra("fork", "early", "--history", "later", data=data)[0] == 0
    for parent, forks in (("prod", "early"), ("early", "later")):
        code, _, error = redra("histories", "delete", parent, "--yes", data=data)
        assert (code, f"the events of {forks} begin with its own" in error) == (2, True), error
    for name in ("later", "early", "prod"):
        assert redra("histories", "delete", name, "--yes", data=data)[0] == 0
    assert histories(data) == {}


@draws.in_turn("ways")
def test_bundle_of_a_fork_is_a_history_of_its_own(data: Path, tmp_path: Path) -> None:
    assert redra("fork", "prod", "--history", "early", "--profile", "1.35", data=data)[0] == 0
    bundle = tmp_path / "early.redra"
    assert redra("export", "early", "-o", bundle, data=data)[0] == 0
    code, _, error = redra("import", bundle, "--history", "again", data=data)
    assert code == 0, error
    rows = histories(data)
    assert rows["again"]["head"] == rows["early"]["head"]
    assert rows["again"]["profile"] == "1.35"
    code, out, error = redra("verify", "again", "-o", "json", data=data)
    report = json.loads(out)
    assert (report["agrees"], report["chain"]["problems"]) == (True, []), error
    assert report["judgedAfter"] == rows["prod"]["revision"] + 1


@draws.in_turn("rows of refusals")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("prod@99999", "--history", "x"), "has no revision 99999"),
        (
            ("prod@0", "--history", "x"),
            "there are no events before that time: history prod begins at 20",
        ),
        (
            ("prod@2001-01-01T00:00:00Z", "--history", "x"),
            "there are no events before that time: history pr",
        ),
        (("prod@2099-01-01T00:00:00Z", "--history", "x"), "history 'prod' ends at "),
        (("prod@soon", "--history", "x"), "soon"),
        (("prod@", "--history", "x"), "there is no moment behind the @ of 'prod@'"),
        (("nope", "--history", "x"), "there is no history 'nope'"),
        (("prod", "--history", "prod"), "already exists"),
        (("prod", "--history", "Big"), "is not a valid name of a history"),
        (("prod", "--history", "x", "--profile", "1.2"), "there is no profile '1.2'"),
        (("prod", "--history", "x", "--gate", "Nope=true"), "no feature gate 'Nope'"),
        (("prod", "--history", "x", "--quirk", "q99=on"), "q99"),
        (
            ("prod", "--history", "x", "--quirk", "q6=on", "--quirk", "Q6=off"),
            "--quirk: q6 is switched both on and off; name it once",
        ),
        (
            ("prod", "--history", "x", "--gate", "DRAAdminAccess=on,DRAAdminAccess=false"),
            "--gate: DRAAdminAccess is switched both on and off; name it once",
        ),
        (("prod", "--history", "x", "--delete", "node/none"), "does not exist at that moment"),
        (("prod", "--history", "x", "--patch", "node/none"), "there is no patch"),
        (
            ("prod", "--history", "x", "--patch", 'deviceclass/gpu={"spec":{"selectors":"none"}}'),
            "deviceclasses.resource.k8s.io/gpu cannot be patched: patch: Invalid value",
        ),
        (
            ("prod", "--history", "x", "--patch", "deviceclass/gpu", '{"spec":{"selectors":"no"}}'),
            "deviceclasses.resource.k8s.io/gpu cannot be patched: patch: Invalid value",
        ),
        (
            ("--patch", "deviceclass/gpu", "{bad", "prod", "--history", "x"),
            "--patch deviceclass/gpu",
        ),
        (("prod", "--history", "x", "-f", "/none.yaml"), "No such file"),
        (("prod@5", "--history", "x", "--until", "9"), "the fork has none"),
        (
            ("prod", "--history", "x", "--inputs", "recorded"),
            "there are no inputs after revision",
        ),
        (("prod@5", "--history", "x", "--inputs", "recorded", "--until", "3"), "no inputs after"),
        (("prod@5", "--history", "x", "--inputs", "recorded", "--until", "99999"), "99999"),
        (
            ("prod@5", "--history", "x", "--inputs", "recorded", "--until", "2099-01-01T00:00:00Z"),
            "--until: history 'prod' ends at ",
        ),
        (
            ("prod@5", "--history", "x", "--inputs", "recorded", "--delete", "node/none"),
            "does not exist at that moment",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_in_words(
    unchanged: Path, arguments: tuple[str, ...], said: str
) -> None:
    code, out, error = redra("fork", *arguments, data=unchanged)
    assert (code, out) == (2, "")
    assert said in error
    assert len(error.strip().splitlines()) == 1
    assert list(histories(unchanged)) == ["prod"]


def scanned(data: Path, name: str) -> list[object]:
    code, out, error = redra("scan", name, "-o", "json", data=data)
    assert code in (0, 1), error
    sightings: list[object] = json.loads(out)
    return sightings


def problems(data: Path, name: str) -> list[object]:
    code, out, error = redra("findings", name, "-o", "json", data=data)
    assert code in (0, 1), error
    answer = json.loads(out)
    parts = ("kind", "severity", "text", "count", "present", "first")
    return [[item[part] for part in parts] for item in answer["items"]]


def overseen(data: Path, name: str) -> list[object]:
    """The known defects that `redra watch-over` reports."""
    moment = f"{name}@{histories(data)[name]['revision']}"
    code, out, error = redra("watch-over", moment, "-o", "json", data=data)
    assert code in (0, 1), error
    lines = [json.loads(line) for line in out.splitlines()]
    parts = ("name", "kind", "revision", "message", "objects")
    return [[line[part] for part in parts] for line in lines if line["judge"] == "incident"]


@draws.in_turn("ways")
@pytest.mark.parametrize(
    ("source", "fork", "is_named"),
    [
        # The source ignored rules; a fork of a release without rules shows that all the same.
        ("1.36.2", "1.34", True),
        # The source had no rules; a fork that has some does not make it ignore them.
        ("1.34", "1.37", False),
    ],
)
def test_events_before_a_fork_are_judged_by_the_settings_of_the_source(
    tmp_path: Path, source: str, fork: str, is_named: bool
) -> None:
    recording = shared_path("histories/e-taints-rules-ignored/audit.jsonl.gz")
    data = tmp_path / "data"
    with database_running(data):
        redra("import", recording, "--history", "source", "--profile", source, data=data)
        redra("fork", "source", "--history", "fork", "--profile", fork, data=data)
        sightings = scanned(data, "fork")
        assert sightings == scanned(data, "source")
        assert ("rules-not-seen" in str(sightings)) is is_named
        assert problems(data, "fork") == problems(data, "source")
        incidents = overseen(data, "fork")
        assert incidents == overseen(data, "source")
        assert ("rules-not-seen" in str(incidents)) is is_named
