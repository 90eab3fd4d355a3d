"""Rounding and request policies agree with upstream's table."""

import json
from functools import lru_cache

import pytest

from app.domain.allocation import capacity
from app.domain.allocation.capacity import Requested
from app.domain.devices import compiling
from app.domain.values import quantity
from tests.shared_data import shared_is_present, shared_path

FILE = ("conformance", "upstream", "consumable-capacity.json")


@lru_cache
def cases() -> list[dict]:
    return json.loads(shared_path(*FILE).read_text())["cases"] if shared_is_present(*FILE) else []


def requested(text: str | None) -> Requested | None:
    return None if text is None else Requested(amount=quantity.parse(text))


@pytest.mark.parametrize(
    "case", cases() or [None], ids=lambda case: f"{case['function']}-{case['name']}" if case else ""
)
def test_capacity_function_answers_as_upstream(case: dict | None) -> None:
    if case is None:
        shared_path(*FILE)
    given, expected = case["input"], case["expected"]
    match case["function"]:
        case "calculateConsumedCapacity":
            found = compiling.capacity_of({"x": given["capacity"]}, "")["x"]
            amount = capacity.amount_of(requested(given["requested"]), found)
            assert str(amount.value) == expected["consumed"]
        case "violatesPolicy":
            policy = compiling.policy_of({"requestPolicy": given["requestPolicy"]}, "")
            amount = quantity.parse(given["requested"])
            assert capacity.violates(amount, policy) is expected["violates"]
        case "consumedCapacityFromRequest":
            asked = {name: requested(text) for name, text in given["request"]["requests"].items()}
            found = capacity.amounts(asked, compiling.capacity_of(given["capacity"], ""))
            assert {n: str(a.value) for n, a in found.items()} == expected["consumed"]
        case other:
            pytest.fail(f"unknown function {other}")
