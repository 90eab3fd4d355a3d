"""Asks the product and the literal allocator the same question; reports the first difference."""

from __future__ import annotations

import json

from app.domain.allocation import (
    AllocatedState,
    Allocator,
    AllocatorVariant,
    Bounds,
    Features,
    Quirks,
    scenarios,
)
from app.domain.allocation.checking import Case
from app.domain.allocation.quirks import NUMBERS
from app.domain.allocation.selections import Selections
from app.domain.devices.cel_selectors import CelCompiler
from app.domain.devices.inventory import Inventory
from app.domain.values.json_tree import JsonObject
from tests.worlds import literal_scenarios
from tests.worlds.literal_search import TooLong
from tests.worlds.plain_selectors import PlainCompiler

LITERAL_STEPS_MAX = 3_000
PLAIN_STEPS_MAX = 30_000
TOO_LONG = "too long"
COMPILER = CelCompiler(detailed_errors=True)
SELECTS = Selections()
IGNORED = ("steps", "allocateOneInvocations")


def inventory_of(given: dict, features: Features) -> Inventory:
    """The inventory of a scenario's input."""
    found = Inventory()
    for index, tree in enumerate(given["slices"]):
        found.put_slice(tree, key=f"{index:08d}")
    if features.device_taints:
        for rule in given.get("deviceTaintRules", ()):
            found.put_rule(rule)
    return found


def allocator_of(
    given: dict,
    *,
    variant: AllocatorVariant = AllocatorVariant.EXPERIMENTAL,
    quirks: Quirks | None = None,
    prune: bool = True,
    compiler: object = None,
) -> Allocator:
    """An allocator for a scenario's input."""
    features = Features.of_gates(given["features"])
    return Allocator(
        inventory_of(given, features),
        {found["metadata"]["name"]: found for found in given["classes"]},
        AllocatedState.of_claims(
            given.get("allocatedClaims", ()), consumable_capacity=features.consumable_capacity
        ),
        features,
        compiler=compiler or PlainCompiler(),
        variant=variant,
        quirks=quirks or Quirks(),
        prune=prune,
    )


def difference(
    world: dict,
    *,
    variant: AllocatorVariant = AllocatorVariant.EXPERIMENTAL,
    quirks: Quirks | None = None,
    steps_max: int = LITERAL_STEPS_MAX,
) -> str | None:
    """The first difference between the answers; None when there is none.

    When the literal search takes too long, the answers with and without pruning are compared;
    TOO_LONG when that takes too long as well.
    """
    how = {"variant": variant, "quirks": quirks or Quirks()}
    pruned = answers(world, prune=True, **how)
    plain = answers(world, prune=False, **how)
    try:
        expected = literal_scenarios.run(world, steps_max=steps_max, **how)
    except TooLong:
        if "context deadline exceeded" in json.dumps(plain):
            return TOO_LONG
        return _first("pruned", bare(pruned), bare(plain))
    found = _first("pruned", bare(pruned), bare(expected)) or _first(
        "plain", bare(plain), bare(expected)
    )
    if found is None and '"errorScope":"fatal"' not in json.dumps(plain, separators=(",", ":")):
        steps = sum(node["allocateOneInvocations"] for node in nodes_of(expected))
        if plain["steps"] != steps:
            return f"{plain['steps']} steps, not {steps}"
    return found


def case_of(
    given: dict,
    node: dict,
    *,
    quirks: Quirks | None = None,
    variant: AllocatorVariant = AllocatorVariant.EXPERIMENTAL,
) -> Case:
    """The input of the checker for a node of a scenario."""
    return Case(
        node=node,
        claims=given["claims"],
        classes={found["metadata"]["name"]: found for found in given["classes"]},
        slices=given["slices"],
        rules=given.get("deviceTaintRules") or (),
        held=given.get("allocatedClaims") or (),
        gates=given["features"],
        variant=variant.value,
        quirks=frozenset(NUMBERS) - frozenset((quirks or Quirks()).repaired()),
        selects=SELECTS,
    )


def answers(
    world: dict,
    *,
    prune: bool,
    variant: AllocatorVariant,
    quirks: Quirks,
    on_answer: scenarios.OnAnswer | None = None,
) -> JsonObject:
    """The answer of the product to a scenario."""
    settings = scenarios.ScenarioSettings(
        compiler=COMPILER,
        quirks=quirks,
        variant=variant,
        prune=prune,
        on_answer=on_answer,
        bounds=Bounds() if prune else Bounds(steps_max=PLAIN_STEPS_MAX),
    )
    return scenarios.run(world, settings)


def nodes_of(answer: dict) -> list[dict]:
    """The answers per node, of all pods."""
    if "results" in answer:
        return answer["results"]
    return [found for pod in answer["pods"] for found in pod["results"]]


def bare(tree: object) -> object:
    """The answer without steps, and with share ids reduced to their presence."""
    if isinstance(tree, dict):
        return {
            name: bool(value) if name == "shareID" else bare(value)
            for name, value in tree.items()
            if name not in IGNORED
        }
    return [bare(item) for item in tree] if isinstance(tree, list) else tree


def _first(name: str, found: object, expected: object, place: str = "") -> str | None:
    """The first place at which two answers differ."""
    if isinstance(found, dict) and isinstance(expected, dict) and found.keys() == expected.keys():
        parts = [(f"{place}.{key}", found[key], expected[key]) for key in found]
    elif isinstance(found, list) and isinstance(expected, list) and len(found) == len(expected):
        parts = [
            (f"{place}[{index}]", one, other)
            for index, (one, other) in enumerate(zip(found, expected, strict=True))
        ]
    else:
        return None if found == expected else f"{name}{place}: {found!r:.400} not {expected!r:.400}"
    return next((told for part in parts if (told := _first(name, part[1], part[2], part[0]))), None)
