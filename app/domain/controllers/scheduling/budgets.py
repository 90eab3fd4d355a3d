"""Disruption budgets as far as pre-emption respects them: it would rather not, but does.

A budget whose status a disruption controller has filled is believed, as upstream believes it. No
such controller runs here; without its numbers those of the moment are counted from the pods.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.domain.controllers.scheduling.pods_on_nodes import BoundPod
from app.domain.objects import eviction
from app.domain.objects.reader import ObjectsReader
from app.domain.values import json_tree, selectors
from app.domain.values.selectors import LabelSelector, SelectorError


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How many pods of a kind may be disturbed; `counted` are names that it has counted already."""

    namespace: str
    selector: LabelSelector
    allowed: int
    counted: frozenset[str]


def read(objects: ObjectsReader) -> tuple[Budget, ...]:
    """All budgets that protect anybody from pre-emption."""
    found: list[Budget] = []
    for key in objects.keys("policy", "poddisruptionbudgets"):
        tree = objects.get(key)
        wanted = None if tree is None else json_tree.get(tree, "spec", "selector")
        if tree is None or not isinstance(wanted, dict):
            continue
        try:
            selector = selectors.label_selector_of(wanted)
        except SelectorError:
            continue
        if not selector.requirements:
            # Parity: the scheduler takes an empty selector for one that selects nothing.
            continue
        status = json_tree.mapping(tree, "status")
        allowed = json_tree.integer(status, "disruptionsAllowed")
        if allowed is None or "observedGeneration" not in status:
            allowed = eviction.disruptions_allowed(objects, tree)
        found.append(
            Budget(
                namespace=key.namespace,
                selector=selector,
                allowed=allowed,
                counted=frozenset(json_tree.mapping(status, "disruptedPods")),
            )
        )
    return tuple(found)


def split(
    pods: Iterable[BoundPod], protected: Sequence[Budget]
) -> tuple[list[BoundPod], list[BoundPod]]:
    """The pods whose eviction would violate a budget, and the others; both in the given order.

    Each pod uses up one disruption of every budget that selects it, so the first ones are free.
    """
    left = [budget.allowed for budget in protected]
    guarded: list[BoundPod] = []
    free: list[BoundPod] = []
    for pod in pods:
        violates = False
        namespace, name = pod.place
        for number, budget in enumerate(protected):
            if (
                budget.namespace != namespace
                or not pod.labels
                or name in budget.counted
                or not budget.selector.matches(pod.labels)
            ):
                continue
            left[number] -= 1
            violates |= left[number] < 0
        (guarded if violates else free).append(pod)
    return guarded, free
