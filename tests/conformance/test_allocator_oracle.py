"""Random scenarios get the answer that the reference allocator gave."""

import gzip
import json
from functools import lru_cache
from operator import itemgetter
from pathlib import Path

import pytest

from app.domain.allocation import Quirks, scenarios
from app.domain.devices.cel_selectors import CelCompiler
from tests import draws
from tests.conformance.scenario_answers import comparable
from tests.shared_data import shared_is_present, shared_path
from tests.together import together

OWN = Path(__file__).parent / "data" / "allocator-scenarios.jsonl.gz"
RANDOM = ("conformance", "oracle", "allocator-random.jsonl")
REPAIRED = ("conformance", "oracle", "allocator-quirk-repaired.jsonl")
COMPILER = CelCompiler(detailed_errors=True)


@lru_cache
def lines(*parts: str) -> list[dict]:
    if not shared_is_present(*parts):
        return []
    with shared_path(*parts).open() as stream:
        return [json.loads(line) for line in stream]


@lru_cache
def own() -> list[dict]:
    with gzip.open(OWN, "rt") as stream:
        return [json.loads(line) for line in stream]


def answer(scenario: dict, *, quirks: Quirks | None = None, prune: bool = True) -> dict:
    settings = scenarios.ScenarioSettings(compiler=COMPILER, quirks=quirks or Quirks(), prune=prune)
    return comparable(scenarios.run(scenario, settings))


@together(own(), itemgetter("name"))
def test_scenario_of_ours_has_the_recorded_answer(scenario: dict) -> None:
    assert answer(scenario) == comparable(scenario["expected"])


@together(lines(*RANDOM), itemgetter("name"), absent=lambda: shared_path(*RANDOM))
def test_scenario_has_the_recorded_answer(scenario: dict) -> None:
    assert answer(scenario) == comparable(scenario["expected"])


@draws.BY_DAY
@pytest.mark.parametrize(
    "scenario", lines(*RANDOM) or [None], ids=lambda found: found["name"] if found else "absent"
)
def test_defects_that_decide_are_those_of_the_marks(scenario: dict | None) -> None:
    if scenario is None:
        shared_path(*RANDOM)
    settings = scenarios.ScenarioSettings(compiler=COMPILER)
    found = scenarios.marks_that_matter(scenario, settings)
    assert found == sorted(scenario.get("upstreamQuirks", ()))


@pytest.mark.parametrize(
    "row",
    lines(*REPAIRED) or [None],
    ids=lambda found: f"{found['name']}-{found['repaired']}" if found else "absent",
)
def test_repaired_quirk_changes_the_answer_as_recorded(row: dict | None) -> None:
    if row is None:
        shared_path(*REPAIRED)
    scenario = next(found for found in lines(*RANDOM) if found["name"] == row["name"])
    repaired = answer(scenario, quirks=Quirks.named(row["repaired"]))
    assert repaired == comparable(row["expected"])
    assert repaired != answer(scenario)
