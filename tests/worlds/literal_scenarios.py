"""Scenarios in conformance form, answered by the literal allocator."""

from __future__ import annotations

from app.domain.allocation import AllocatorVariant, Features, Quirks
from tests.worlds.literal_cluster import Cluster, State
from tests.worlds.literal_search import Literal


def run(scenario, *, quirks=None, variant=AllocatorVariant.EXPERIMENTAL, steps_max=3_000):
    """As `scenarios.run`, with the steps per node in `allocateOneInvocations`.

    Raises TooLong when a node takes more steps than `steps_max`.
    """
    given = scenario["input"]
    features = Features.of_gates(given["features"])
    cluster = Cluster(
        given,
        features,
        quirks or Quirks(),
        stable=variant is AllocatorVariant.STABLE,
        scalars=variant is not AllocatorVariant.EXPERIMENTAL,
    )
    state = State(features.consumable_capacity)
    for claim in given.get("allocatedClaims") or []:
        state.add(claim)
    classes = {found["metadata"]["name"]: found for found in given["classes"]}

    def attempt(claims, *, stop):
        literal = Literal(claims, classes, cluster, state, steps_max)
        for node in given["nodes"]:
            shown = literal.allocate(node)
            yield {**shown, "allocateOneInvocations": literal.steps}
            if stop and shown.get("errorScope") == "fatal":
                return

    answer = {"name": scenario["name"]}
    if given.get("pods") is None:
        return answer | {"results": list(attempt(given["claims"], stop=False))}
    answer["pods"] = []
    for pod in given["pods"]:
        results = list(attempt(pod["claims"], stop=True))
        fitting = next((found for found in results if found["allocations"] is not None), None)
        if any(found.get("errorScope") == "fatal" for found in results):
            fitting = None
        shown = {"pod": pod["name"]}
        if fitting:
            shown["node"] = fitting["node"]
            for claim, allocation in zip(pod["claims"], fitting["allocations"], strict=True):
                state.add({**claim, "status": {"allocation": allocation}})
        answer["pods"].append({**shown, "results": results})
    return answer
