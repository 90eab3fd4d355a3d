"""Random selectors on random devices, answered by the reference: 600 scenarios.

Match, error text, estimate and run-time cost are compared exactly, apart from what the recording
says varies (`*` as error, no `cost`). Masks must give the same answers as single evaluations, and
every run-time error must be traceable to a part of the expression.
"""

import json
from functools import lru_cache

import pytest

from app.domain import cel
from tests import draws
from tests.shared_data import shared_is_present, shared_path
from tests.together import together

_FILE = ("conformance", "oracle", "cel-random.jsonl")


@lru_cache(maxsize=1)
def _scenarios():
    if not shared_is_present(*_FILE):
        return {}
    lines = shared_path(*_FILE).read_text().splitlines()
    return {scenario["name"]: scenario for scenario in map(json.loads, lines)}


def _devices(scenario):
    return [
        cel.DeviceInput(
            driver=scenario["driver"],
            attributes=device.get("attributes") or {},
            capacity=device.get("capacity") or {},
            allow_multiple_allocations=device.get("allowMultipleAllocations", False),
        )
        for device in scenario["devices"]
    ]


def _check_outcome(outcome, expected):
    assert outcome.match == expected.get("match")
    if expected.get("error") == "*":
        assert outcome.error is not None
    else:
        assert outcome.error == expected.get("error")
    if "cost" in expected:
        assert outcome.cost == expected["cost"]


@draws.BY_DAY
@together(sorted(_scenarios()), str, absent=lambda: shared_path(*_FILE))
def test_random_scenario_is_reproduced(name):
    scenario = _scenarios()[name]
    expected = scenario["expected"]
    if "compileError" in expected:
        with pytest.raises(cel.CompileError) as caught:
            cel.compile_expression(scenario["expression"])
        assert str(caught.value) == expected["compileError"]
        return
    program = cel.compile_expression(scenario["expression"])
    assert program.max_cost == expected.get("maxCost", 0)
    devices = _devices(scenario)
    outcomes = [program.evaluate(device) for device in devices]
    for outcome, wanted in zip(outcomes, expected["devices"], strict=True):
        _check_outcome(outcome, wanted)
    assert cel.mask(program, devices).outcomes() == outcomes
    for device, outcome in zip(devices, outcomes, strict=True):
        found = cel.trace(program, device)
        assert found.outcome == outcome
        is_failure = outcome.error is not None and "could not be converted" not in outcome.error
        assert (found.origin is not None) is is_failure


def test_all_scenarios_are_there():
    shared_path(*_FILE)
    assert len(_scenarios()) == 600
