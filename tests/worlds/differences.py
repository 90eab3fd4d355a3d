"""Ask the product and the literal search the same question and report the first difference."""

from __future__ import annotations

from app.domain.allocation import (
    AllocatedState,
    Allocation,
    Allocator,
    Failure,
    Features,
    Quirks,
    Variant,
)
from app.domain.allocation.result import amounts_text
from app.domain.devices import nodes
from app.domain.devices.inventory import Inventory
from tests.worlds.literal_search import Literal, TooLong
from tests.worlds.plain_selectors import PlainCompiler

LITERAL_STEPS_MAX = 3_000


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
    variant: Variant = Variant.EXPERIMENTAL,
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


def shown(answer: object) -> tuple:
    """An answer in the form in which the literal search gives its own."""
    if isinstance(answer, Allocation):
        devices = answer.problem.view.devices
        takes = [
            [
                (
                    taken.row.request.result_name,
                    devices[taken.device].id,
                    None if taken.amounts is None else amounts_text(taken.amounts),
                )
                for taken in claim
            ]
            for claim in answer.results
        ]
        return takes, None, None
    if isinstance(answer, Failure):
        return None, answer.text, answer.scope.value
    return None, None, None


def difference(
    world: dict,
    *,
    variant: Variant = Variant.EXPERIMENTAL,
    quirks: Quirks | None = None,
) -> str | None:
    """The first difference on any node, None when there is none; "too long" when unknown."""
    given = world["input"]
    pruned = allocator_of(given, variant=variant, quirks=quirks)
    plain = allocator_of(given, variant=variant, quirks=quirks, prune=False)
    literal = Literal(
        given["claims"],
        pruned.classes,
        pruned.state,
        pruned.features,
        variant,
        pruned.quirks,
        pruned.compiler,
        LITERAL_STEPS_MAX,
    )
    for tree in given["nodes"]:
        node = nodes.node_of(tree)
        view = pruned.inventory.node_view(node, pruned.reading)
        try:
            expected = literal.allocate(view)
        except TooLong:
            return "too long"
        for name, allocator in (("pruned", pruned), ("plain", plain)):
            answer = allocator.allocate(node, given["claims"])
            if shown(answer) != expected:
                return f"{world['name']} {node.name} {name}: {shown(answer)} not {expected}"
        if not isinstance(answer, Failure) and answer.steps != literal.steps:
            return f"{world['name']} {node.name}: {answer.steps} steps, not {literal.steps}"
    return None
