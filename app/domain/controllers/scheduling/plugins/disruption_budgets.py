"""Disruption budgets as far as pre-emption respects them: it would rather not, but does.

A budget whose status a disruption controller has filled is believed, as upstream believes it.
Without its numbers those of the moment are counted from the pods: in a history whose controller is
off, or that is from before there was one.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from app.domain.controllers.scheduling.framework.pods_on_nodes import BoundPod
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.write import eviction
from app.domain.values import api_groups, json_tree, selectors
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonView
from app.domain.values.selectors import LabelSelector, SelectorError


@dataclass(slots=True, kw_only=True)
class Budget:
    """How many pods of a kind may be disturbed; `counted` are names that it has counted already.

    Without a number from a disruption controller `allowed` is counted from the pods, when a pod
    that the budget selects is about to go, and then once.
    """

    namespace: str
    selector: LabelSelector
    counted: frozenset[str]
    count: Callable[[], int]
    _allowed: int | None = None

    @property
    def allowed(self) -> int:
        """How many pods may be disturbed now."""
        if self._allowed is None:
            self._allowed = self.count()
        return self._allowed


def read(objects: ObjectsReader) -> tuple[Budget, ...]:
    """All budgets that protect anybody from pre-emption."""
    budgets: list[Budget] = []
    for key in objects.keys(api_groups.POLICY, "poddisruptionbudgets"):
        tree = objects.get(key)
        wanted = None if tree is None else json_tree.get(tree, "spec", "selector")
        if tree is None or not isinstance(wanted, dict):
            continue
        try:
            selector = selectors.label_selector_of(wanted)
        except SelectorError:
            continue
        if not selector.requirements:
            # Parity: controllers.md 3.5; the scheduler takes an empty selector for one that selects
            # nothing.
            continue
        status = meta.status(tree)
        is_filled = "observedGeneration" in status
        budgets.append(
            Budget(
                namespace=key.namespace,
                selector=selector,
                counted=frozenset(json_tree.mapping(status, "disruptedPods")),
                count=partial(_told, status)
                if is_filled
                else partial(eviction.disruptions_allowed, objects, tree),
            )
        )
    return tuple(budgets)


def split(
    pods: Iterable[BoundPod], protected: Sequence[Budget]
) -> tuple[list[BoundPod], list[BoundPod]]:
    """The pods whose eviction would violate a budget, and the others; both in the given order.

    Each pod uses up one disruption of every budget that selects it, so the first ones are free.
    """
    used = [0] * len(protected)
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
            used[number] += 1
            violates |= used[number] > budget.allowed
        (guarded if violates else free).append(pod)
    return guarded, free


def _told(status: JsonView) -> int:
    return json_tree.integer(status, "disruptionsAllowed") or 0
