"""The checker accepts every recorded answer and refuses spoilt ones.

The recorded answers come from the reference, so a finding without a quirk would be a mistake of
the checker; findings that name a quirk are the defects which the reference really has.
"""

import json

import pytest

from app.domain.allocation import Allocation, checking
from app.domain.devices import nodes
from app.domain.devices.cel_selectors import CelCompiler
from tests.conformance.test_allocator_oracle import own
from tests.worlds import differences, random_worlds

COMPILER = CelCompiler()


def single() -> list[dict]:
    return [found for found in own() if "claims" in found["input"]]


@pytest.mark.parametrize("scenario", single(), ids=lambda found: found["name"])
def test_checker_accepts_what_the_reference_answered(scenario: dict) -> None:
    given = scenario["input"]
    allocator = differences.allocator_of(given, compiler=COMPILER)
    for node, expected in zip(given["nodes"], scenario["expected"]["results"], strict=True):
        if expected["allocations"] is None:
            continue
        answer = allocator.allocate(nodes.node_of(node), given["claims"])
        assert isinstance(answer, Allocation)
        findings = checking.check_answer(allocator, answer, expected["allocations"])
        assert not [found for found in findings if not found.quirk], findings


def spoilt(allocations: list, seed: int) -> list | None:
    """The allocations with one thing changed, or None where there is nothing to change."""
    copied = json.loads(json.dumps(allocations))
    results = [r for a in copied for r in a["devices"].get("results", ())]
    if not results:
        return None
    victim = results[seed % len(results)]
    match seed % 4:
        case 0:
            victim["device"] = "no-such-device"
        case 1:
            victim["request"] = "no-such-request"
        case 2:
            owner = next(a for a in copied if victim in a["devices"].get("results", ()))
            owner["devices"]["results"].remove(victim)
        case 3:
            owner = next(a for a in copied if victim in a["devices"].get("results", ()))
            owner["devices"]["results"].append(dict(victim))
    return copied


def test_checker_accepts_all_answers_in_random_worlds_and_refuses_spoilt_ones() -> None:
    refused = 0
    for seed in range(1500):
        given = random_worlds.world(seed)["input"]
        allocator = differences.allocator_of(given)
        answer = allocator.allocate(nodes.node_of(given["nodes"][0]), given["claims"])
        if not isinstance(answer, Allocation):
            continue
        found = answer.allocation_results(lambda: "share")
        findings = checking.check_answer(allocator, answer, found)
        assert not [one for one in findings if not one.quirk], (seed, findings)
        worse = spoilt(found, seed)
        if worse is not None:
            assert checking.check_answer(allocator, answer, worse), seed
            refused += 1
    assert refused > 200
