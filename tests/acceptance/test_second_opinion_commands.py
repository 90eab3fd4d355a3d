"""`redra cel --second-opinion` and `redra replay --mode verify --second-opinion` at a terminal."""

import json
from pathlib import Path

import pytest

from app.bootstrap import opinions
from app.ports import Match, Opinion
from tests import draws
from tests.command_line import redra
from tests.shared_data import shared_path

SLICES = Path(__file__).resolve().parents[2] / "examples" / "cluster" / "03-gpu-slices.yaml"
MODEL = 'device.attributes["gpu.example.com"].model'


class Contrary:
    """Says that everything matches."""

    name = "contrary"

    def ask(self, expression, **device):
        return Opinion(answer=Match.MATCH)


def verify(*options, env=None):
    path = shared_path("histories", "a-quickstart", "audit.jsonl.gz")
    options = ("--processes", 1, *options)
    return redra("replay", path, "--mode", "verify", "--second-opinion", *options, **(env or {}))


def test_selector_is_shown_with_its_second_opinion():
    code, out, _ = redra(
        "cel", "device.driver != ''", "--slices", SLICES, "--second-opinion", "-o", "json"
    )
    assert code == 0
    assert {row["secondOpinion"] for row in json.loads(out)["devices"]} == {"agrees: match"}


def test_selector_of_which_there_is_no_second_opinion_says_why():
    expression = f"{MODEL}.split('-').size() > 0"
    code, out, _ = redra("cel", expression, "--slices", SLICES, "--second-opinion", "-o", "json")
    assert code == 0
    reasons = {row["secondOpinion"] for row in json.loads(out)["devices"]}
    assert reasons == {"none: it does not know: the function split"}


def test_selector_about_which_opinions_differ_ends_with_3(monkeypatch):
    monkeypatch.setattr(opinions, "second_opinion", Contrary)
    code, out, _ = redra("cel", "device.driver == ''", "--slices", SLICES, "--second-opinion")
    assert code == 3
    assert "DISAGREES: match" in out


def test_cases_of_a_file_have_second_opinions(tmp_path):
    cases = tmp_path / "cases.jsonl"
    device = {"attributes": {"x": {"int": 1}}}
    case = {"name": "a", "driver": "d", "expression": "device.driver == 'd'", "devices": [device]}
    cases.write_text(json.dumps(case) + "\n")
    target = tmp_path / "answers.jsonl"
    code, _, _ = redra("cel", cases, "--second-opinion", "-o", target)
    assert code == 0
    assert json.loads(target.read_text())["devices"][0]["secondOpinion"] == "agrees: match"


@draws.in_turn("ways")
def test_recording_is_verified_with_a_second_opinion():
    code, out, _ = verify()
    assert code == 0
    assert "second opinion by cel-python: 2 expressions, 8 devices, 16 agree, 0 disagree" in out
    assert "verified: everything that is judged was compared and agrees" in out


@draws.in_turn("ways")
def test_pairs_beyond_the_bound_are_said_and_leave_it_verified_in_part():
    code, out, _ = verify(env={"REDRA_SECOND_OPINION_EVALUATIONS_MAX": "5"})
    assert code == 3
    assert "not asked, 11: beyond the bound" in out


@pytest.mark.parametrize("form", ["text", "json"])
def test_disagreement_is_listed_and_ends_with_3(form, monkeypatch):
    monkeypatch.setattr(opinions, "second_opinion", Contrary)
    code, out, _ = verify("-o", form)
    assert code == 3
    if form == "text":
        assert "redra: error (no such key: noSuchAttribute), contrary: match" in out
        assert "verified in part: the second opinion disagrees" in out
        return
    report = json.loads(out)
    assert report["outcome"] == "verified in part"
    opinion = report["secondOpinion"]
    assert opinion["disagreed"] == len(opinion["disagreements"]) > 0
    assert {each["redra"] for each in opinion["disagreements"]} <= {"no match", "error"}


def test_second_opinion_of_another_mode_is_refused():
    code, _, problem = redra("replay", SLICES, "--second-opinion")
    assert code != 0
    assert "--second-opinion" in str(problem)
