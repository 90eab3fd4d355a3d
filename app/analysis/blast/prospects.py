"""The waiting pods that would be placed if they were tried now, one after the other.

The scheduler's own attempts are used, on any views: later pods see the room and devices of earlier
ones as taken. Nothing is written and no pod is evicted for another.
"""

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass

from app.domain.controllers import pods
from app.domain.controllers.plan import DeviceViews
from app.domain.controllers.resources import pod_key
from app.domain.controllers.scheduling.binding_cycle import writes
from app.domain.controllers.scheduling.framework import pod_spec
from app.domain.controllers.scheduling.framework.nodes import NodeIndex, bound_pod
from app.domain.controllers.scheduling.framework.pod_spec import PodSpec
from app.domain.controllers.scheduling.plugins.dynamic_resources import pod_claims
from app.domain.controllers.scheduling.plugins.dynamic_resources.device_map import DeviceIndex
from app.domain.controllers.scheduling.plugins.dynamic_resources.pod_claims import ClaimsNotReady
from app.domain.controllers.scheduling.queue import hints
from app.domain.controllers.scheduling.scheduling_cycle.assuming import Assumptions, bound_as
from app.domain.controllers.scheduling.scheduling_cycle.attempt import (
    Attempt,
    SchedulerRules,
    attempt,
)
from app.domain.controllers.scheduling.scheduling_cycle.verdicts import Verdicts
from app.domain.log import Event
from app.domain.objects.kinds import extended_resources
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.write.commands import Command
from app.domain.values import api_resources
from app.domain.values.fields import core, meta
from app.domain.values.identifiers import NamespacedName
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedPod:
    """The node that a pod would get, and the allocations of its claims there.

    `extended` is the allocation for its extended resources.
    """

    node: str
    allocations: tuple[JsonView, ...]
    extended: JsonView | None = None


def waiting_pods(objects: ObjectsReader, profiles: Set[str] = frozenset()) -> list[PodSpec]:
    """The pods that wait for a node and request devices, in the order of the active queue.

    `profiles` are further ones of the scheduler. Pods of other schedulers, with scheduling gates,
    or with unusable claims are left out, and those whose node is chosen: their claims are reserved,
    and they wait for their binding.
    """
    waiting: list[tuple[int, int, PodSpec]] = []
    for event in _events(objects, api_resources.PODS):
        tree = event.object
        if core.needs_no_node(tree) or not pod_spec.is_ours(tree, profiles):
            continue
        spec = pod_spec.read(tree)
        facts = spec.facts
        asks = facts.entries or any(map(extended_resources.is_extended, spec.amounts.requests))
        if facts.is_done or facts.is_deleting or spec.is_gated or not asks:
            continue
        if pod_claims.are_there(objects, facts) and not _is_being_bound(objects, spec, tree):
            waiting.append((-spec.priority, event.revision, spec))
    waiting.sort(key=lambda item: item[:2])
    return [spec for _, _, spec in waiting]


def _is_being_bound(objects: ObjectsReader, pod: PodSpec, tree: JsonObject) -> bool:
    """Whether a node is chosen for the pod (controllers.md 3.7)."""
    if not core.nominated_node_name(tree):
        return False
    try:
        claims = pod_claims.resolve(objects, pod.facts)
    except ClaimsNotReady:
        return False
    return bool(claims) and all(
        claim.allocation is not None and pods.is_reserved_for(claim.tree, pod.facts.uid)
        for claim in claims
    )


def _nothing() -> None:
    pass


def placed(
    rules: SchedulerRules,
    views: DeviceViews,
    waiting: list[PodSpec],
    now: Instant,
    check_goes_on: Callable[[], None] = _nothing,
    *,
    stays: Callable[[PlacedPod], bool] = lambda _: True,
) -> Mapping[NamespacedName, PlacedPod]:
    """The place that each of these pods would get; pods without a node are absent.

    A pod sees what earlier ones would take, and the claims that it shares with them as allocated.
    `check_goes_on` is called before each attempt, and raises when the caller no longer waits. A pod
    that does not stay holds nothing against later ones.
    """
    nodes, devices = survey(views.objects, rules.profiles)
    verdicts = Verdicts()
    assumed = Assumptions(nodes, devices)
    places: dict[NamespacedName, PlacedPod] = {}
    for pod in waiting:
        check_goes_on()
        place = (pod.facts.namespace, pod.facts.name)
        with assumed.in_force(views.allocated):
            written = assumed.written
            result = attempt(rules, views, nodes, verdicts, pod, start=0, now=now, written=written)
            if result.outcome != "Scheduled" or not _has_room(pod, result):
                continue
            made = places[place] = _place_of(result)
            if stays(made):
                commands = _reservations(rules, views.objects, pod, result, now)
                assumed.add(pod, result, views.allocated, commands)
    return places


def _has_room(pod: PodSpec, result: Attempt) -> bool:
    """Whether each claim can have the pod as a consumer.

    Parity: controllers.md C14: the filters pass a pod whose claim is full, and binding fails.
    """
    trees = [claim.tree for claim in result.claims]
    return all(pods.has_room(one) or pods.is_reserved_for(one, pod.facts.uid) for one in trees)


def _reservations(
    rules: SchedulerRules, objects: ObjectsReader, pod: PodSpec, result: Attempt, now: Instant
) -> list[Command]:
    """The writes of claims by which later pods know what the pod has taken."""
    tree = objects.get(pod_key(pod.facts.namespace, pod.facts.name))
    assert tree is not None, "it waits for a node"
    stamps_time = rules.features.binding_conditions
    return list(writes.reserve(result, tree, now, number=1, stamps_time=stamps_time))


def _place_of(result: Attempt) -> PlacedPod:
    fresh = [*result.allocations]
    extended = fresh.pop() if result.extended is not None else None
    known = (claim.allocation for claim in result.claims if claim.allocation is not None)
    return PlacedPod(node=result.node, allocations=(*fresh, *known), extended=extended)


def survey(
    objects: ObjectsReader, profiles: Set[str] = frozenset()
) -> tuple[NodeIndex, DeviceIndex]:
    """The nodes with their bound pods, and the slices visible to them.

    Nodes are kept for pods that are nominated for them (`profiles` are further ones of the
    scheduler), as in each attempt.
    Of nodes with equal scores, the first in the scheduler's order is chosen, which is that of their
    arrival, whenever they were last written. Those of one second are in the order of a list.
    """
    nodes = NodeIndex()
    devices = DeviceIndex(nodes)
    arrivals = sorted(_events(objects, api_resources.NODES), key=_arrival)
    for event in arrivals:
        hints.fold_node(nodes, event)
    for event in _events(objects, api_resources.PODS):
        tree = event.object
        is_over = core.is_finished(tree)
        if core.node_name(tree) and not is_over:
            nodes.bind(bound_pod(tree))
        elif not is_over and pod_spec.is_ours(tree, profiles):
            _nominate(nodes, event)
    for event in _events(objects, api_resources.RESOURCE_SLICES):
        devices.fold_slice(event)
    return nodes, devices


def _nominate(nodes: NodeIndex, event: Event) -> None:
    node = core.nominated_node_name(event.object)
    if node:
        spec = pod_spec.read(event.object)
        place = (event.key.namespace, event.key.name)
        nodes.nominations.follow(place, node, lambda: bound_as(spec, node))


def _arrival(event: Event) -> tuple[str, str]:
    return meta.creation_timestamp(event.object), event.key.name


def _events(objects: ObjectsReader, place: tuple[str, str]) -> Iterator[Event]:
    """The last event of each object of one resource."""
    for key in list(objects.keys(*place)):
        if (event := objects.event(key)) is not None:
            yield event
