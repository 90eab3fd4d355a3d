"""Compound expressions follow from their parts: match, error, run-time cost and estimate.

The recorded selectors are put together by `&&`, `||`, `!` and `?:` and asked about recorded
devices, most of which they were not recorded on. What must come out follows from the parts alone,
by cel.md 4, 5.1, 5.2 and 6.3.

Seeds come by day.
"""

import json
import re
from functools import lru_cache
from random import Random

import pytest

from app.domain import cel
from tests import draws
from tests.shared_data import shared_is_present, shared_path

RECORDED = ("conformance", "oracle", "cel-random.jsonl")
PAIRS = 1_500
CHUNKS = 4
COST_MAX = 2**64 - 1
PATH = re.compile(r"device(\.\w+|\[[^\]]*\]|\.\?\w+|\[\?[^\]]*\])*")
"""A branch that is a path is charged without its start."""

Told = tuple[bool | None, str | None, int]
"""Match, error, run-time cost."""


@lru_cache
def recorded() -> tuple[tuple[cel.Program, ...], tuple[cel.DeviceInput, ...]]:
    """The selectors that compile, and the devices that can be converted."""
    programs: dict[str, cel.Program] = {}
    devices = []
    with shared_path(*RECORDED).open() as stream:
        for line in stream:
            case = json.loads(line)
            if "compileError" not in case["expected"] and len(case["expression"]) < 160:
                programs[case["expression"]] = cel.compile_expression(case["expression"])
            for tree in case["devices"]:
                given = cel.DeviceInput(
                    driver=case["driver"],
                    attributes=tree.get("attributes") or {},
                    capacity=tree.get("capacity") or {},
                    allow_multiple_allocations=tree.get("allowMultipleAllocations") is True,
                )
                if given.value.failure is None:
                    devices.append(given)
    return tuple(programs.values()), tuple(devices)


def told(program: cel.Program, device: cel.DeviceInput) -> Told:
    found = program.evaluate(device)
    return found.match, found.error, found.cost


def joined(left: Told, right: Told, *, deciding: bool) -> Told:
    """`||` (a true side decides) or `&&` (a false one does)."""
    if left[0] is deciding:
        return deciding, None, left[2]
    cost = left[2] + right[2]
    if right[0] is deciding:
        return deciding, None, cost
    error = left[1] or right[1]
    return (None, error, cost) if error else (not deciding, None, cost)


def chosen(condition: Told, branch: Told, *, is_path: bool) -> Told:
    if condition[1]:
        return condition
    return branch[0], branch[1], condition[2] + branch[2] - is_path


@draws.in_turn("ways")
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_compound_expressions_follow_from_their_parts(chunk: int) -> None:
    if not shared_is_present(*RECORDED):
        shared_path(*RECORDED)
    programs, devices = recorded()
    rng = Random(f"laws-{chunk}")
    compared = 0
    for _ in range(PAIRS // CHUNKS):
        parts = [rng.choice(programs) for _ in range(3)]
        device = rng.choice(devices)
        one, two, three = (told(part, device) for part in parts)
        if any(found[1] and found[1].startswith("CEL result") for found in (one, two, three)):
            continue  # as an operand, what is no bool is another error than as a result
        first, second, third = (part.expression for part in parts)
        costs = [part.max_cost for part in parts]
        branch, taken = (second, two) if one[0] else (third, three)
        rows = (
            (f"({first}) || ({second})", joined(one, two, deciding=True), sum(costs[:2])),
            (f"({first}) && ({second})", joined(one, two, deciding=False), sum(costs[:2])),
            (f"!({first})", (None if one[1] else not one[0], one[1], one[2] + 1), costs[0] + 1),
            (
                f"({first}) ? ({second}) : ({third})",
                chosen(one, taken, is_path=PATH.fullmatch(branch) is not None),
                costs[0] + max(costs[1:]),
            ),
        )
        for text, expected, estimate in rows:
            program = cel.compile_expression(text)
            assert told(program, device) == expected, text
            assert program.max_cost == min(estimate, COST_MAX), text
            compared += 1
    assert compared > PAIRS // CHUNKS, "nearly all triples were left out"
