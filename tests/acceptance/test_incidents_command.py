"""`redra incidents` at the command line."""

import json
from pathlib import Path

import pytest

from app.bootstrap.gallery import incident_files
from tests.command_line import EXAMPLES, database_running, redra


def test_list_has_every_incident() -> None:
    code, out, error = redra("incidents", "list", "-o", "json")
    assert (code, error) == (0, "")
    assert [each["name"] for each in json.loads(out)] == incident_files.names()
    _, text, _ = redra("incidents", "list")
    assert text.splitlines()[0].split() == ["NAME", "KIND", "NUMBER", "FIXED", "IN", "WHAT"]
    assert len(text.splitlines()) == len(incident_files.names()) + 1


def test_story_is_shown_with_its_facts() -> None:
    code, out, _ = redra("incidents", "show", "rules-not-seen")
    assert code == 0
    assert out.startswith("# The scheduler does not see DeviceTaintRules\n")
    assert "To be seen:\n  pod web is evicted\n" in out


def test_run_judges_both_variants() -> None:
    code, out, _ = redra("incidents", "run", "rules-not-seen", "-o", "json")
    rows = json.loads(out)
    assert code == 0
    assert [(row["variant"], row["holds"]) for row in rows] == [
        ("broken", True),
        ("repaired", True),
    ]


@pytest.mark.parametrize("verb", ["show", "run"])
def test_unknown_incident_is_refused_in_one_sentence(verb: str) -> None:
    code, out, error = redra("incidents", verb, "no-such-thing")
    assert (code, out) == (2, "")
    assert error == (
        "redra: there is no incident 'no-such-thing'; `redra incidents list` lists all names\n"
    )


RULE = """\
apiVersion: resource.k8s.io/v1
kind: DeviceTaintRule
metadata: {name: forgotten, labels: {team: blue}}
spec:
  taint: {key: example.com/bad, effect: NoExecute}
---
apiVersion: resource.k8s.io/v1
kind: DeviceTaintRule
metadata: {name: meant, labels: {team: red}}
spec:
  deviceSelector: {driver: gpu.example.com}
  taint: {key: example.com/bad, effect: NoExecute}
"""


@pytest.mark.database
def test_scan_names_what_a_history_shows(tmp_path: Path) -> None:
    data, manifest = tmp_path / "data", tmp_path / "rule.yaml"
    manifest.write_text(RULE)
    with database_running(data):
        assert redra("import", EXAMPLES, "--history", "sound", data=data)[0] == 0
        assert redra("import", manifest, "--history", "trap", data=data)[0] == 0
        assert redra("scan", "sound", data=data) == (
            0,
            "none of the incidents that the scan looks for occurs\n",
            "",
        )
        code, out, _ = redra("scan", "trap", data=data)
        assert code == 1
        assert out.startswith("rule-without-selector (certain), once: ")
        assert "what to do: Give each rule a selector" in out
        code, out, _ = redra("scan", "trap", "-o", "json", data=data)
        (row,) = json.loads(out)
        assert (code, row["incident"], row["certainty"], row["times"]) == (
            1, "rule-without-selector", "certain", 1,
        )  # fmt: skip
        assert row["objects"] == ["devicetaintrules.resource.k8s.io/forgotten"]
        of_team = redra("scan", "trap", "-l", "team=blue", "-o", "json", data=data)
        assert (of_team[0], json.loads(of_team[1])) == (1, [row])
        assert redra("scan", "trap", "-l", "team=red", data=data) == (
            0,
            "none of the incidents that the scan looks for occurs at objects with the labels "
            "team=red\n",
            "",
        )
        for unknown in ("team=bleu", "team in (blue"):
            code, out, error = redra("scan", "trap", "-l", unknown, data=data)
            assert (code, out, error.count("\n")) == (2, "", 1)
            assert f"label selector {unknown!r}" in error
        code, out, error = redra("scan", "no-such", data=data)
        assert (code in (1, 2), out, error.count("\n")) == (True, "", 1)
