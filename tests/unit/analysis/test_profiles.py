"""The facts about profiles that the reference page and `redra profiles` print."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.analysis import behaviours, profiles
from app.analysis.diff.text import _described
from app.cli.application import root
from app.domain.allocation.quirks import NOT_SWITCHES
from app.domain.controllers.quirks import NO_SWITCH
from app.domain.errors import InputError

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "profiles.md"


def test_profiles_stand_in_the_order_of_their_releases() -> None:
    assert profiles.names() == ("1.34", "1.35", "1.36", "1.36.0", "1.36.1", "1.36.2", "1.37")


def test_each_quirk_has_words() -> None:
    assert profiles.WORDS.keys() == profiles.facts_of("1.36").quirks.keys()
    said = CliRunner().invoke(root, ["profiles", "C15"]).output
    assert said.splitlines() == [
        "c15: Deleting a claim wakes no pod",
        "on in: 1.34, 1.35, 1.36, 1.36.0, 1.36.1, 1.36.2",
    ]


def test_each_numbered_behaviour_has_words_and_a_row_of_the_reference_page() -> None:
    text = PAGE.with_name("behaviours.md").read_text(encoding="utf-8")
    numbers = set(re.findall(r"^\| ([CRQ]\d+) \|", text, re.MULTILINE))
    rows = behaviours.behaviours({"profile": "1.37", "quirks": {"q3": False}})
    assert {row.number for row in rows} == numbers
    assert profiles.WITHOUT_SWITCH.keys() == NO_SWITCH.keys() | NOT_SWITCHES.keys()
    states = {row.number: (row.is_on, row.releases) for row in rows}
    assert states["Q1"] == (False, ("1.34", "1.35", "1.36", "1.36.0", "1.36.1", "1.36.2"))
    assert states["Q3"] == (False, profiles.names())
    assert states["Q4"] == (True, profiles.names())
    assert states["C10"] == (None, ())


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        ("q6", "Q6 (distinctAttribute remembers one value per request, the last)"),
        ("r1", "R1 (DynamicResources does not score nodes)"),
        ("c15", "C15 (deleting a claim wakes no pod)"),
        (
            "counter-leak",
            "Q1 (counters stay booked when a device is refused for a taint or a constraint) or Q2 "
            "(a shared device that is tried in vain does not give its counters back)",
        ),
    ],
)
def test_defect_is_named_by_number_and_words(mark: str, words: str) -> None:
    assert profiles.described(mark) == words


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        (
            "quirk c15: on → off",
            "a behaviour of upstream, in 1.34, 1.35, 1.36: deleting a claim wakes no pod",
        ),
        (
            "quirk r2: off → on",
            "a behaviour of upstream, in 1.35, 1.36.0, 1.36.1: scoring fails for a pod with "
            "allocated and unallocated claims",
        ),
        (
            "quirk c22: off → on",
            "a behaviour of upstream, off in every profile: a finished pod gets a second claim, "
            "which is deleted at once",
        ),
        (
            "rule configurations: off → on",
            "Kubernetes has it since 1.37: configurations for a whole claim list no requests",
        ),
        ("gate DRADeviceTaints: true → false", ""),
        ("profile: 1.36 → 1.37", ""),
    ],
)
def test_changed_setting_is_told_with_what_it_does_and_whose_it_is(
    setting: str, words: str
) -> None:
    assert profiles.setting_described(setting) == words


def test_comparison_describes_few_settings() -> None:
    few = ["profile: 1.36 → 1.37", "quirk q3: on → off", "rule pools: off → on (known)"]
    shown = _described("; ".join(few))
    assert shown.count("(") == 2
    assert "q3: on → off (a behaviour of upstream, in every profile: counters are booked" in shown
    many = "; ".join(f"quirk q{number}: on → off" for number in range(3, 8))
    assert _described(many) == many


def test_patch_release_has_gates_and_versions_of_its_minor_release_and_quirks_of_its_own() -> None:
    minor, patch = profiles.facts_of("1.36"), profiles.facts_of("1.36.2")
    assert (patch.release, patch.gates, patch.versions) == ("1.36", minor.gates, minor.versions)
    differing = {name for name in patch.quirks if patch.quirks[name] != minor.quirks[name]}
    assert differing == {"c24"}


@pytest.mark.parametrize(
    ("name", "versions"),
    [
        ("1.34", ("v1alpha3",)),
        ("1.36", ("v1beta2", "v1alpha3")),
        ("1.37", ("v1", "v1beta2", "v1alpha3")),
    ],
)
def test_taint_rules_are_served_in_the_versions_of_the_release(
    name: str, versions: tuple[str, ...]
) -> None:
    assert profiles.facts_of(name).versions["DeviceTaintRule"] == versions


def test_unknown_profile_is_refused_with_those_there_are() -> None:
    with pytest.raises(InputError, match=r"no profile '9\.9'; choose one of 1\.34"):
        profiles.facts_of("9.9")


def test_command_prints_the_rows_of_the_reference_page() -> None:
    shown = CliRunner().invoke(root, ["profiles", "1.37"])
    assert shown.exit_code == 0
    columns = [re.split(" {3,}", line) for line in shown.stdout.splitlines() if line]
    printed = {cells[0]: cells[1] for cells in columns if cells[0] not in ("QUIRK", "GATE", "KIND")}
    rows = [line.strip("| ").split(" | ") for line in PAGE.read_text().splitlines()]
    page = {
        cells[0]: cells[-1]
        for cells in rows
        if len(cells) > 2 and cells[0] not in ("quirk", "gate", "kind")
    }
    assert page
    assert printed == page


def test_command_gives_json_for_a_program() -> None:
    shown = CliRunner().invoke(root, ["profiles", "1.36.1", "-o", "json"])
    (facts,) = json.loads(shown.stdout)
    assert (facts["name"], facts["release"], facts["is_default"]) == ("1.36.1", "1.36", False)
    assert (facts["quirks"]["r2"], facts["gates"]["DRADeviceTaintRules"]) == (True, False)
