"""The index of nodes and their resources in use, updated pod by pod.

A node's `version` grows with every change that can affect whether a pod fits there: of the node
itself, the pods bound to it, and the devices it sees. A verdict about a kind of pod on a node is
valid as long as the version is the same, so that equal pods cost one comparison per node.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from app.domain.controllers.scheduling.framework import amounts
from app.domain.controllers.scheduling.framework.amounts import CPU, MEMORY, PODS
from app.domain.controllers.scheduling.framework.image_locality import ImageIndex
from app.domain.controllers.scheduling.framework.nominations import Nominations
from app.domain.controllers.scheduling.framework.pods_on_nodes import (
    BoundPod,
    Priorities,
    bound_pod,
)
from app.domain.devices.nodes import Node
from app.domain.values import json_tree, well_known
from app.domain.values.fields import core, meta
from app.domain.values.identifiers import NamespacedName, Uid
from app.domain.values.json_tree import JsonObject

DEFAULT_PODS = 110
"""Room on a node that never reported what it has. Differs from upstream, where such a node takes no
pod: without a kubelet nobody would ever report."""

UNLIMITED = 1 << 62

_UNREPORTED = {
    PODS: DEFAULT_PODS,
    CPU: UNLIMITED,
    MEMORY: UNLIMITED,
    "ephemeral-storage": UNLIMITED,
}

TOUCHED_MAX = 10_000
"""The most changes of single nodes that are remembered within one era."""


@dataclass(slots=True, kw_only=True, eq=False)
class NodeInfo:
    """One node, with its allocatable and requested resources."""

    name: str
    node: Node
    uid: Uid
    taints: tuple[JsonObject, ...]
    is_unschedulable: bool
    allocatable: dict[str, int]
    is_reported: bool
    requested: dict[str, int] = field(default_factory=dict)
    scored_cpu: int = 0
    scored_memory: int = 0
    pods: dict[NamespacedName, BoundPod] = field(default_factory=dict)
    version: int = 0

    @property
    def labels(self) -> Mapping[str, str]:
        """The node's labels."""
        return self.node.labels

    @property
    def room(self) -> Mapping[str, int]:
        """The allocatable amounts, those of pods included; a resource that is absent has none."""
        return self.allocatable if self.is_reported else _UNREPORTED

    def has(self, resource: str) -> int:
        """The allocatable amount of a resource."""
        return self.room.get(resource, 0)

    def changed(self, gone: Iterable[BoundPod], come: Iterable[BoundPod]) -> "NodeInfo":
        """A copy of the node without the pods `gone` and with the pods `come`."""
        made = replace(self, requested=dict(self.requested), pods=dict(self.pods))
        for pod in gone:
            drop(made, pod)
        for pod in come:
            take(made, pod)
        return made


class NodeIndex:
    """All nodes in the scheduler's order, and the pods bound to each.

    The order alternates between the zones in the order in which they appeared, and within a zone
    follows the order of creation. Parity: controllers.md 4.4. Pods bound to a node that does not
    exist (yet) are kept and count as soon as it appears.
    """

    def __init__(self) -> None:
        self._nodes: dict[str, NodeInfo] = {}
        self._zones: dict[str, dict[str, None]] = {}
        self._order: list[NodeInfo] | None = None
        self._bound: dict[NamespacedName, BoundPod] = {}
        self._strays: dict[str, dict[NamespacedName, BoundPod]] = {}
        self.keeping_away: dict[NamespacedName, BoundPod] = {}
        self.wishing: dict[NamespacedName, BoundPod] = {}
        self.images = ImageIndex()
        self.priorities = Priorities()
        self.nominations = Nominations()
        self.version = 0
        self.era = 0
        self._touched: list[str] = []
        self._places: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def get(self, name: str) -> NodeInfo | None:
        """The node with that name, or None."""
        return self._nodes.get(name)

    def order(self) -> list[NodeInfo]:
        """All nodes in the order in which attempts check them."""
        if self._order is None:
            self._order = list(self._round_robin())
            self._places = {info.name: place for place, info in enumerate(self._order)}
        return self._order

    @property
    def cursor(self) -> int:
        """The cursor after the last change of a node."""
        return len(self._touched)

    def touched_since(self, cursor: int) -> tuple[list[int], int]:
        """The positions, in the order, of nodes changed since the cursor, and the next cursor.

        Cursors are valid within one `era`; a new era begins when the order or all nodes change.
        """
        self.order()
        places = [self._places[name] for name in self._touched[cursor:]]
        return places, self.cursor

    def put(self, tree: JsonObject) -> None:
        """Adds or updates a node."""
        name = meta.name(tree)
        old = self._nodes.get(name)
        info = _read(tree)
        zone = _zone(info.labels)
        if old is None:
            for bound in self._strays.pop(name, {}).values():
                take(info, bound)
        else:
            info.requested, info.pods = old.requested, old.pods
            info.scored_cpu, info.scored_memory = old.scored_cpu, old.scored_memory
            info.version = old.version
            if _zone(old.labels) != zone:
                self._leave_zone(name, _zone(old.labels))
        self._nodes[name] = info
        self.images.put(name, json_tree.objects(tree, "status", "images"))
        self._zones.setdefault(zone, {}).setdefault(name)
        self._begin_era()
        self._touch(info)

    def remove(self, name: str) -> None:
        """Removes a node; its pods are kept in case it is added again."""
        info = self._nodes.pop(name, None)
        if info is None:
            return
        self.images.remove(name)
        self._leave_zone(name, _zone(info.labels))
        if info.pods:
            self._strays[name] = dict(info.pods)
        self._begin_era()
        self.version += 1

    def counts_as(self, tree: JsonObject) -> bool:
        """True when the pod is counted already and its counted fields have not changed."""
        metadata = tree["metadata"]
        known = self._bound.get((metadata.get("namespace", ""), metadata["name"]))
        return (
            known is not None
            and known.uid == metadata.get("uid")
            and known.generation == metadata.get("generation")
            and known.node == tree["spec"].get("nodeName")
            and known.labels == (metadata.get("labels") or {})
            and known.is_deleting == ("deletionTimestamp" in metadata)
        )

    def bind(self, bound: BoundPod) -> None:
        """Adds a pod to its node, or updates it when it changed."""
        known = self._bound.get(bound.place)
        if known == bound:
            return
        if known is not None:
            self.release(bound.place)
        self._bound[bound.place] = bound
        self.priorities.add(bound.priority)
        if bound.anti_affinity:
            self.keeping_away[bound.place] = bound
        if bound.wishes:
            self.wishing[bound.place] = bound
        info = self._nodes.get(bound.node)
        if info is None:
            self._strays.setdefault(bound.node, {})[bound.place] = bound
            return
        take(info, bound)
        self._touch(info)

    def release(self, place: NamespacedName) -> BoundPod | None:
        """Removes a pod from its node; returns it, or None when it was not counted."""
        bound = self._bound.pop(place, None)
        if bound is None:
            return None
        self.keeping_away.pop(place, None)
        self.wishing.pop(place, None)
        self.priorities.remove(bound.priority)
        info = self._nodes.get(bound.node)
        if info is None:
            strays = self._strays.get(bound.node, {})
            strays.pop(place, None)
            if not strays:
                self._strays.pop(bound.node, None)
            return bound
        drop(info, bound)
        self._touch(info)
        return bound

    def holds(self, place: NamespacedName) -> bool:
        """True when the pod is counted on some node."""
        return place in self._bound

    def bound_pods(self) -> Iterator[BoundPod]:
        """All pods that are counted on a node."""
        return iter(self._bound.values())

    def touch(self, name: str) -> None:
        """Marks a node as changed, because the devices that it sees have changed."""
        if (info := self._nodes.get(name)) is not None:
            self._touch(info)

    def touch_all(self) -> None:
        """Marks all nodes as changed."""
        self.version += 1
        self._begin_era()
        for info in self._nodes.values():
            info.version = self.version

    def _touch(self, info: NodeInfo) -> None:
        self.version += 1
        info.version = self.version
        if len(self._touched) >= TOUCHED_MAX:
            self._begin_era()
        self._touched.append(info.name)

    def _begin_era(self) -> None:
        self.era += 1
        self._order = None
        self._touched.clear()

    def _leave_zone(self, name: str, zone: str) -> None:
        names = self._zones[zone]
        names.pop(name, None)
        if not names:
            del self._zones[zone]

    def _round_robin(self) -> Iterator[NodeInfo]:
        waiting = [iter(names) for names in self._zones.values()]
        while waiting:
            still = []
            for names in waiting:
                name = next(names, None)
                if name is not None:
                    yield self._nodes[name]
                    still.append(names)
            waiting = still


def _read(tree: JsonObject) -> NodeInfo:
    name = meta.name(tree)
    allocatable = amounts.of_tree(core.allocatable(tree))
    return NodeInfo(
        name=name,
        node=Node(name=name, labels=meta.labels(tree)),
        uid=meta.uid(tree),
        taints=tuple(core.taints(tree)),
        is_unschedulable=core.unschedulable(tree),
        allocatable=allocatable,
        is_reported=bool(allocatable),
    )


def take(info: NodeInfo, bound: BoundPod) -> None:
    """Adds a pod to the node, in place."""
    info.pods[bound.place] = bound
    for name, amount in bound.requests.items():
        info.requested[name] = info.requested.get(name, 0) + amount
    info.scored_cpu += bound.scored_cpu
    info.scored_memory += bound.scored_memory


def drop(info: NodeInfo, bound: BoundPod) -> None:
    """Removes a pod from the node, in place."""
    del info.pods[bound.place]
    for name, amount in bound.requests.items():
        info.requested[name] -= amount
    info.scored_cpu -= bound.scored_cpu
    info.scored_memory -= bound.scored_memory


def _zone(labels: Mapping[str, str]) -> str:
    return f"{labels.get(well_known.REGION, '')}:\x00:{labels.get(well_known.ZONE, '')}"


__all__ = ["CPU", "MEMORY", "PODS", "BoundPod", "NodeIndex", "NodeInfo", "bound_pod"]
