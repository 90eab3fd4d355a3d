"""Pods that have been promised a node and are not bound yet.

Such a pod has evicted others, or its claims are being written, or somebody else has named a node
for it. Until it is bound it counts on that node for pods of equal or lower priority, as if it were
there. Parity: kube-scheduler's nominator; controllers.md 4.4 and 4.6 for `nominatedNodeName`.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from app.domain.controllers.scheduling.framework.pods_on_nodes import BoundPod, PodPlace

Rivals: TypeAlias = Mapping[str, tuple[BoundPod, ...]]
"""By node, the nominated pods that a pod has to leave room for."""

NO_RIVALS: Rivals = {}


class Nominations:
    """The nominated pods by node, in the order in which they were nominated."""

    def __init__(self) -> None:
        self._nodes: dict[PodPlace, str] = {}
        self._pods: dict[str, dict[PodPlace, BoundPod]] = {}

    def follow(self, place: PodPlace, node: str, make: Callable[[], BoundPod]) -> BoundPod | None:
        """Take over what a waiting pod says; returns the nomination that it had and has no more.

        `make` gives the pod as it would be on the node; it is asked when a node is named.
        """
        before = self._nodes.get(place, "")
        if not node and not before:
            return None
        lost = self.forget(place) if before != node else None
        if node:
            self._nodes[place] = node
            self._pods.setdefault(node, {})[place] = make()
        return lost

    def forget(self, place: PodPlace) -> BoundPod | None:
        """The pod is bound or gone; returns the nomination that it had."""
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

    def rivals(self, uid: str, priority: int, is_placed: Callable[[PodPlace], bool]) -> Rivals:
        """The nominated pods of at least this priority, other than the pod itself.

        Those that count on a node already (`is_placed`) are not counted a second time.
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

    def __iter__(self) -> Iterator[tuple[PodPlace, str]]:
        return iter(self._nodes.items())
