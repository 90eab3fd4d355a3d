"""Assumed pods, which are placed in this step and not yet in the log.

Later pods of the same step are decided as if the earlier ones had been bound already: their
resources on the node and their devices count, and the claims that they reserve are in the state
that they write. The same holds for claims in flight, when bindings take time. The assumptions are
put into the views for the time of a decision and are removed afterwards.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import msgspec

from app.domain.allocation import AllocatedState
from app.domain.controllers import pods
from app.domain.controllers.resources import is_of
from app.domain.controllers.scheduling.framework.nodes import BoundPod, NodeIndex
from app.domain.controllers.scheduling.framework.pod_spec import PodSpec
from app.domain.controllers.scheduling.plugins.dynamic_resources.device_map import DeviceIndex
from app.domain.controllers.scheduling.scheduling_cycle.attempt import Attempt
from app.domain.log import ObjectKey
from app.domain.objects.write.commands import Command, UpdateObject
from app.domain.values import api_resources
from app.domain.values.identifiers import NamespacedName
from app.domain.values.json_tree import JsonObject


class Assumption(msgspec.Struct, frozen=True, kw_only=True):
    """One placed pod, the claims that it allocates, and all claims that it writes.

    `claims` are pairs of a claim and its new allocation.
    """

    pod: BoundPod
    claims: tuple[tuple[JsonObject, JsonObject], ...]
    written: Mapping[ObjectKey, JsonObject]


class Assumptions:
    """The pods that the plans of one step have placed, in order.

    `written` are the claims as the plans in force write them; it is empty when none is in force.
    """

    def __init__(self, nodes: NodeIndex, devices: DeviceIndex) -> None:
        self._nodes = nodes
        self._devices = devices
        self.written: dict[ObjectKey, JsonObject] = {}
        self._touched: set[ObjectKey] = set()
        self._held: list[Assumption] = []
        self._in_flight: dict[NamespacedName, list[tuple[JsonObject, JsonObject]]] = {}
        self._put_in = 0
        self._into: AllocatedState | None = None
        self._stays = False

    def __len__(self) -> int:
        return len(self._held)

    def clear(self) -> None:
        """Begins a new step: removes the assumptions of the last one."""
        self.rest()
        self._held.clear()
        self._touched.clear()

    def note(self, keys: Iterable[ObjectKey]) -> None:
        """Notes that a plan of this step changes these objects, with a result that is not known."""
        self._touched.update(keys)

    def allows(self, claims: Iterable[ObjectKey]) -> bool:
        """True when the plans of this step permit one more pod with these claims.

        Each claim that these plans change must be known in its new state, and have room for one
        more reservation.
        """
        written = self.written
        return all(
            pods.has_room(written[key]) if key in written else key not in self._touched
            for key in claims
        )

    @contextmanager
    def in_force(self, allocated: AllocatedState, first: int | None = None) -> Iterator[None]:
        """Inside, the assumptions count: all, or the `first` ones. Outside, none of them does."""
        self.enforce(allocated, first)
        try:
            yield
        finally:
            if not self._stays:
                self.rest()

    def enforce(self, allocated: AllocatedState, first: int | None = None) -> None:
        """Makes the assumptions count, all or the `first` ones; call it inside `staying`.

        They count until `staying` ends. A step that tries no pod never calls this, and leaves the
        views as they are.
        """
        if self._into is None:
            self._into = allocated
            for claims in self._in_flight.values():
                for claim, allocation in claims:
                    allocated.add_in_flight(claim, allocation)
        wanted = len(self._held) if first is None else first
        if self._put_in != wanted:
            self._count_first(allocated, wanted)

    @contextmanager
    def staying(self) -> Iterator[None]:
        """Inside, assumptions stay in force from one decision to the next.

        This saves work for consecutive decisions between which nothing is folded: each of them
        would otherwise put the same assumptions into the views again.
        """
        self._stays = True
        try:
            yield
        finally:
            self._stays = False
            self.rest()

    def rest(self) -> None:
        """Removes all assumptions and claims in flight from the views."""
        allocated = self._into
        if allocated is None:
            return
        self._count_first(allocated, 0)
        for claims in self._in_flight.values():
            for claim, _ in claims:
                allocated.remove_in_flight(claim)
        self._into = None

    def _count_first(self, allocated: AllocatedState, wanted: int) -> None:
        """Adds or removes assumptions, so that the first `wanted` ones count."""
        wanted = min(wanted, len(self._held))
        if self._put_in > wanted:
            for assumption in reversed(self._held[wanted : self._put_in]):
                self._nodes.release(assumption.pod.place)
                for claim, allocation in assumption.claims:
                    allocated.remove_in_flight(claim)
                    self._devices.touch_pools_of(allocation)
            self.written.clear()
            for assumption in self._held[:wanted]:
                self.written.update(assumption.written)
        for assumption in self._held[self._put_in : wanted]:
            self._put(assumption, allocated)
        self._put_in = wanted

    def hold(self, place: NamespacedName, claims: list[tuple[JsonObject, JsonObject]]) -> None:
        """Adds the claims in flight of a pod: its decision is in the log, its claims are not."""
        if claims:
            self._in_flight[place] = claims
            for _, allocation in claims:
                self._devices.touch_pools_of(allocation)

    def let_go(self, place: NamespacedName) -> None:
        """Removes the claims in flight of a pod, which are written or given up."""
        for _, allocation in self._in_flight.pop(place, ()):
            self._devices.touch_pools_of(allocation)

    def add(
        self,
        pod: PodSpec,
        result: Attempt,
        allocated: AllocatedState,
        commands: Iterable[Command] = (),
    ) -> None:
        """Assumes one more pod, and the writes of `commands`; call it inside `in_force`."""
        fresh = [claim.tree for claim in result.claims if claim.allocation is None]
        if result.extended is not None:
            fresh.append(result.extended.tree)
        assumption = Assumption(
            pod=bound_as(pod, result.node),
            claims=tuple(zip(fresh, result.allocations, strict=True)),
            written=_written(commands),
        )
        self._held.append(assumption)
        self.note(claim.key for claim in result.claims)
        self._put(assumption, allocated)
        self._put_in += 1

    def _put(self, assumption: Assumption, allocated: AllocatedState) -> None:
        self._nodes.bind(assumption.pod)
        self.written.update(assumption.written)
        for claim, allocation in assumption.claims:
            allocated.add_in_flight(claim, allocation)
            # Devices attached to the network are visible from other nodes too.
            self._devices.touch_pools_of(allocation)


def _written(commands: Iterable[Command]) -> dict[ObjectKey, JsonObject]:
    """The claims as the commands leave them, without resourceVersion, which is not known yet."""
    trees: dict[ObjectKey, JsonObject] = {}
    for command in commands:
        if isinstance(command, UpdateObject) and is_of(command.key, api_resources.RESOURCE_CLAIMS):
            metadata = dict(command.tree["metadata"])
            metadata.pop("resourceVersion", None)
            trees[command.key] = {**command.tree, "metadata": metadata}
    return trees


def bound_as(pod: PodSpec, node: str) -> BoundPod:
    """The pod as if it were bound to the node."""
    return BoundPod(
        place=(pod.facts.namespace, pod.facts.name),
        uid=pod.facts.uid,
        node=node,
        requests=pod.amounts.requests,
        scored_cpu=pod.amounts.scored_cpu,
        scored_memory=pod.amounts.scored_memory,
        labels=pod.labels,
        ports=pod.ports,
        anti_affinity=pod.anti_affinity,
        priority=pod.priority,
    )
