"""Disruption budgets for pre-emption, which avoids violating them but may do so.

When a disruption controller has filled the status of a budget, the numbers in it are used, as
upstream uses them. Otherwise the current numbers are counted from the pods: in a history whose
disruption controller is off, or that is older than that controller.
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
class DisruptionBudget:
    """A disruption budget; `counted` are the names of pods in its `disruptedPods`.

    `count` computes the number of allowed disruptions. It is called once, when `allowed` is first
    read.
    """

    namespace: str
    selector: LabelSelector
    counted: frozenset[str]
    count: Callable[[], int]
    _allowed: int | None = None

    @property
    def allowed(self) -> int:
        """The number of pods that may be disrupted now."""
        if self._allowed is None:
            self._allowed = self.count()
        return self._allowed


def read(objects: ObjectsReader) -> tuple[DisruptionBudget, ...]:
    """Reads all budgets that can protect pods from pre-emption."""
    budgets: list[DisruptionBudget] = []
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
            # Parity: controllers.md 3.5; for the scheduler an empty selector selects nothing.
            continue
        status = meta.status(tree)
        is_filled = "observedGeneration" in status
        budgets.append(
            DisruptionBudget(
                namespace=key.namespace,
                selector=selector,
                counted=frozenset(json_tree.mapping(status, "disruptedPods")),
                count=partial(_disruptions_allowed, status)
                if is_filled
                else partial(eviction.disruptions_allowed, objects, tree),
            )
        )
    return tuple(budgets)


def split(
    pods: Iterable[BoundPod], protected: Sequence[DisruptionBudget]
) -> tuple[list[BoundPod], list[BoundPod]]:
    """Splits pods into those whose eviction would violate a budget and the others, in given order.

    Each pod uses one disruption of every budget that selects it and has not counted it yet. A pod
    violates a budget when more disruptions are used than the budget allows.
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


def _disruptions_allowed(status: JsonView) -> int:
    return json_tree.integer(status, "disruptionsAllowed") or 0
