"""The page of numbered behaviours names every number, and stories and switches that exist."""

import re
from dataclasses import fields

import pytest

from app.domain.allocation.quirks import NOT_SWITCHES, NUMBERS
from app.domain.controllers import releases
from app.domain.controllers.quirks import NO_SWITCH, ControllerQuirks
from app.domain.objects.profile import Profile
from docs import generate
from tests.scenarios.test_stories import FOLDER
from tests.shared_data import REPOSITORY

ALL = {field.name: field.default for field in fields(ControllerQuirks)}
DEFAULTS = {name: default for name, default in ALL.items() if name.startswith("c")}


def table() -> list[list[str]]:
    """The cells of every row on the page."""
    text = (generate.FOLDER / "behaviours.md").read_text(encoding="utf-8")
    return [re.split(r" *\| *", line.strip("| ")) for line in text.splitlines()]


def rows() -> dict[str, tuple[str, str]]:
    """Number to switch and story."""
    return {row[0]: (row[2], row[3]) for row in table() if re.fullmatch(r"C\d+", row[0])}


def defects() -> dict[str, str]:
    """Number of a defect of the allocator to its switch."""
    return {row[0]: row[2] for row in table() if re.fullmatch(r"Q\d+", row[0])}


def test_every_number_of_the_register_is_there():
    text = (REPOSITORY / "docs" / "parity" / "controllers.md").read_text(encoding="utf-8")
    register = text[text.index("## 9. Quirk register") : text.index("## 10.")]
    assert set(re.findall(r"^\| (C\d+)\b", register, re.MULTILINE)) == set(rows())


@pytest.mark.parametrize("number", rows())
def test_number_has_a_story_or_a_reason_for_none(number):
    _, story = rows()[number]
    if story.startswith("none: "):
        return
    path = FOLDER / f"{story}.story"
    assert path.exists()
    assert number in path.read_text(encoding="utf-8").splitlines()[0]


@pytest.mark.parametrize("number", rows())
def test_switch_is_told_as_it_is(number):
    switch, _ = rows()[number]
    name = number.lower()
    if name in DEFAULTS and name != "c24":
        assert switch.startswith(f"{name}, {'on' if DEFAULTS[name] else 'off'}")
    elif name != "c24":
        assert name in NO_SWITCH


@pytest.mark.parametrize("name", [name for name in DEFAULTS if name != "c24"])
def test_story_shows_both_sides_of_its_switch(name):
    """With the default in one part and the other value in another; c15 goes with the release."""
    _, story = rows()[name.upper()]
    commands = (FOLDER / f"{story}.story").read_text(encoding="utf-8")
    other = "off" if DEFAULTS[name] else "on"
    assert f"{name}={other}" in commands or (name == "c15" and "profile=1.36" in commands)


def test_defects_of_some_releases_are_told_with_their_switch():
    documented = {
        row[0].lower(): row[2].split(",")[0] for row in table() if re.fullmatch(r"R\d+", row[0])
    }
    assert documented == {name: name for name in ALL if name not in DEFAULTS}


def test_every_defect_of_the_allocator_is_there():
    text = (REPOSITORY / "docs" / "parity" / "allocator.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| (Q\d+)\b", text, re.MULTILINE)) == set(defects())


def test_defects_of_the_allocator_are_switches_or_have_a_reason():
    documented = {number.lower(): switch for number, switch in defects().items()}
    newest = releases.allocator_quirks_of(Profile(version="1.37"))
    gone = dict.fromkeys(newest.repaired(), " up to 1.36")
    switches = {name: f"{name}, on{gone.get(name, '')}" for name in NUMBERS}
    assert documented == switches | dict.fromkeys(NOT_SWITCHES, "–")
