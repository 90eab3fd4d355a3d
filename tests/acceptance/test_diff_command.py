"""`redra diff` at the command line: of a fork and its parent, with its exit code."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.cli import console
from tests.command_line import EXAMPLES, database_running, redra

pytestmark = [pytest.mark.slow]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A data folder with the example cluster as `prod`, and two forks of it."""
    folder = tmp_path_factory.mktemp("diff") / "data"
    with database_running(folder):
        assert redra("import", EXAMPLES, "--history", "prod", data=folder)[0] == 0
        assert redra("fork", "prod", "--history", "same", data=folder)[0] == 0
        patch = 'deviceclass/gpu={"spec": {"selectors": null}}'
        code, _, error = redra(
            "fork", "prod", "--history", "other", "--patch", patch, "--quirk", "c2=off", data=folder
        )
        assert code == 0, error
        yield folder


def test_fork_without_a_change_is_the_same(data: Path) -> None:
    for by in ("decisions", "outcomes", "objects"):
        code, out, error = redra("diff", "prod", "same", "--by", by, "-o", "json", data=data)
        assert code == 0, error
        report = json.loads(out)
        assert (report["outcome"], report["differences"]) == ("same", [])
        assert report["common"] == report["a"]["revision"]
    code, out, _ = redra("diff", "prod", "same", data=data)
    assert code == 0
    assert "every decision is the same: " in out
    assert f" from revision {report['common']} on\n" in out


def test_change_of_an_object_is_one_at_the_end(data: Path) -> None:
    code, out, error = redra("diff", "prod", "other@1000000", data=data)
    assert (code, "--at" in error or "other@1000000" in error) == (2, True)
    code, out, error = redra("diff", "prod", "other", "--by", "objects", "-o", "json", data=data)
    assert code == 1, error
    head = json.loads(redra("histories", "-o", "json", data=data)[1])
    revision = next(row["revision"] for row in head if row["name"] == "other")
    (entry,) = json.loads(out)["differences"]
    assert entry["subject"] == "deviceclasses.resource.k8s.io/gpu"
    code, out, _ = redra("diff", "prod", f"other@{revision}", "-o", "json", data=data)
    report = json.loads(out)
    assert code == 0, "no decision was made after it"
    assert report["settings"] == ["quirk c2: on → off"]
    assert [change["object"] for change in report["changes"]] == [entry["subject"]]
    code, out, _ = redra("diff", "prod", "other", data=data)
    assert code == 0
    assert "B has 1 more event, after" in out


def test_pods_of_manifests_are_placed_when_they_are_decided_again(data: Path) -> None:
    code, out, error = redra("diff", "prod", "--again", "-o", "json", data=data)
    report = json.loads(out)
    assert (code, report["outcome"]) == (0, "same"), "it ended before anything was decided"
    assert report["b"]["history"] == "prod decided again"
    assert report["b"]["eventsAfter"] > 0
    code, out, error = redra("diff", "prod", "--again", "--by", "outcomes", "-o", "json", data=data)
    assert code == 1, error
    ends = {each["subject"]: (each["a"], each["b"]) for each in json.loads(out)["differences"]}
    assert any(b.startswith("runs on") for _, b in ends.values())
    assert all(a.startswith("waits") for a, _ in ends.values())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("prod", "none"), "there is no history 'none'"),
        (("prod@x", "same"), "neither a revision nor an instant"),
        (("prod", "same", "--at", "999999"), "no revision 999999"),
        (("prod",), "name B, or add --again"),
        (("prod", "same", "--again"), "name B, or add --again"),
        (("prod", "same", "--profile", "1.36"), "name B, or add --again"),
        (("prod", "--again", "--profile", "1.1"), "1.1"),
    ],
)
def test_what_cannot_be_compared_is_refused(data: Path, words: tuple[str, ...], said: str) -> None:
    code, out, error = redra("diff", *words, data=data)
    assert (code, out) == (2, "")
    assert said in error


def test_progress_is_told_while_a_history_is_decided_again(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[int, int | None]] = []
    plain = console.ProgressBar.to

    def noted(self: console.ProgressBar, done: int, total: int | None = None) -> None:
        told.append((done, total))
        plain(self, done, total)

    monkeypatch.setattr(console.ProgressBar, "to", noted)
    code, _, error = redra("diff", "prod", "--again", data=data)
    assert code in (0, 1), error
    assert told
    assert all(total is not None and 0 <= done <= total for done, total in told)
