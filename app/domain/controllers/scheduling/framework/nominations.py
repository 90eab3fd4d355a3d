"""Nominated pods, which have a nominated node and are not bound yet.

Such a pod has evicted others, or its claims are being written, or another client has set its
nominated node. Until it is bound, pods of equal or lower priority are placed as if it were on that
node. Parity: kube-scheduler's nominator; controllers.md 4.4 and 4.6 for `nominatedNodeName`.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from app.domain.controllers.scheduling.framework.pods_on_nodes import BoundPod
from app.domain.values.identifiers import NamespacedName, Uid

Rivals: TypeAlias = Mapping[str, tuple[BoundPod, ...]]
"""The nominated pods that a pod has to leave room for, by node."""

NO_RIVALS: Rivals = {}


class Nominations:
    """The nominated pods by node, in the order in which they were nominated."""

    def __init__(self) -> None:
        self._nodes: dict[NamespacedName, str] = {}
        self._pods: dict[str, dict[NamespacedName, BoundPod]] = {}

    def follow(
        self, place: NamespacedName, node: str, make: Callable[[], BoundPod]
    ) -> BoundPod | None:
        """Updates the nomination of a waiting pod; returns the nomination that it has lost.

        `make` returns the pod as it would be on the node; it is called only for a nominated pod.
        """
        before = self._nodes.get(place, "")
        if not node and not before:
            return None
        lost = self.forget(place) if before != node else None
        if node:
            self._nodes[place] = node
            self._pods.setdefault(node, {})[place] = make()
        return lost

    def forget(self, place: NamespacedName) -> BoundPod | None:
        """Removes the nomination of a bound or deleted pod and returns it, or None."""
        node = self._nodes.pop(place, "")
        if not node:
            return None
        pods = self._pods[node]
        lost = pods.pop(place)
        if not pods:
            del self._pods[node]
        return lost

    def on(self, node: str) -> tuple[BoundPod, ...]:
        """The pods nominated for the node."""
        return tuple(self._pods.get(node, {}).values())

    def rivals(
        self, uid: Uid, priority: int, is_placed: Callable[[NamespacedName], bool]
    ) -> Rivals:
        """The nominated pods of at least this priority, other than the pod itself.

        Pods that already count on a node (`is_placed`) are left out.
        """
        if not self._nodes:
            return NO_RIVALS
        rivals_of: dict[str, tuple[BoundPod, ...]] = {}
        for node, pods in self._pods.items():
            rivals = tuple(
                pod
                for place, pod in pods.items()
                if pod.priority >= priority and pod.uid != uid and not is_placed(place)
            )
            if rivals:
                rivals_of[node] = rivals
        return rivals_of

    def __iter__(self) -> Iterator[tuple[NamespacedName, str]]:
        return iter(self._nodes.items())
