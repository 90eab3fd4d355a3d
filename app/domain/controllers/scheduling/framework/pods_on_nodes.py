"""Pods that use resources on a node, and the priorities of the pods on all nodes."""

from collections.abc import Mapping
from functools import lru_cache
from sys import intern
from typing import Any

import msgspec

from app.domain.controllers.scheduling.framework import amounts, pod_spec
from app.domain.controllers.scheduling.framework.amounts import Amounts
from app.domain.controllers.scheduling.framework.pod_spec import AffinityTerm, HostPort, Wish
from app.domain.values.fields import core, meta
from app.domain.values.identifiers import NamespacedName, Uid
from app.domain.values.json_tree import JsonView

ALIKE_MAX = 4_096
"""The sets of labels and of requests that are kept for the next pod with the same."""


class BoundPod(msgspec.Struct, frozen=True, kw_only=True):
    """A pod that uses resources on a node. `wishes` are its terms that score other pods."""

    place: NamespacedName
    uid: Uid
    node: str
    requests: Amounts
    scored_cpu: int
    scored_memory: int
    labels: Mapping[str, str]
    ports: tuple[HostPort, ...]
    anti_affinity: tuple[AffinityTerm, ...]
    wishes: tuple[Wish, ...] = ()
    priority: int = 0
    is_deleting: bool = False
    generation: int = 0


@lru_cache(ALIKE_MAX)
def _shared(*entries: tuple[str, Any]) -> Any:
    """A map that pods with the same entries share."""
    return dict(entries)


def bound_pod(tree: JsonView) -> BoundPod:
    """Reads the fields of a bound pod that matter to other pods on its node."""
    spec = meta.spec(tree)
    wanted = amounts.of_pod(spec)
    namespace, name = meta.place(tree)
    return BoundPod(
        place=(intern(namespace), name),
        uid=meta.uid(tree),
        node=intern(core.node_name(tree)),
        requests=_shared(*wanted.requests.items()),
        scored_cpu=wanted.scored_cpu,
        scored_memory=wanted.scored_memory,
        labels=_shared(*meta.labels(tree).items()),
        ports=pod_spec.host_ports(spec),
        anti_affinity=pod_spec.anti_affinity_of(tree),
        wishes=pod_spec.wishes_of(tree),
        priority=core.priority(tree) or 0,
        is_deleting=meta.is_deleting(tree),
        generation=meta.generation(tree) or 0,
    )


class Priorities:
    """The number of pods on nodes by priority, and the lowest of these priorities."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self.lowest: int | None = None

    def add(self, priority: int) -> None:
        """Counts one more pod with this priority."""
        self._counts[priority] = self._counts.get(priority, 0) + 1
        if self.lowest is None or priority < self.lowest:
            self.lowest = priority

    def remove(self, priority: int) -> None:
        """Counts one pod less with this priority."""
        left = self._counts[priority] - 1
        if left:
            self._counts[priority] = left
            return
        del self._counts[priority]
        if priority == self.lowest:
            self.lowest = min(self._counts, default=None)
