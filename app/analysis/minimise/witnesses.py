"""The objects of a sighting, and the objects related to them until then."""

from collections.abc import Iterable, Iterator, Sequence

from app.analysis.minimise.material import Material
from app.analysis.minimise.predicates import Sighting
from app.domain.log import Event, ObjectKey
from app.domain.values import api_resources
from app.domain.values.fields import core, dra, meta
from app.domain.values.json_tree import JsonObject

ROUNDS = 3
"""The number of relations followed: from a claim to its pod, then to its node and other claims."""


def related_objects(
    sighting: Sighting, histories: Iterable[Sequence[Event]], material: Material
) -> tuple[ObjectKey, ...]:
    """The objects of a sighting, their owners and consumers, pods' nodes, allocations' pools.

    Each of the histories contributes the relations at the instant of the sighting.
    """
    wanted = dict.fromkeys(sighting.objects)
    for events in histories:
        _follow(wanted, sighting, events, material)
    return tuple(wanted)


def _follow(
    wanted: dict[ObjectKey, None], sighting: Sighting, events: Sequence[Event], material: Material
) -> None:
    uids: dict[str, ObjectKey] = {}
    states: dict[ObjectKey, Event] = {}
    for event in events:
        if sighting.at is not None and event.stamp.time > sighting.at:
            break
        if event.is_about_object:
            uids[event.uid] = event.key
            states[event.key] = event
    for _ in range(ROUNDS):
        for key in list(wanted):
            if key in states:
                named = _named_by(key, states[key].object, uids, material)
                wanted |= dict.fromkeys(named)


def _named_by(
    key: ObjectKey, tree: JsonObject, uids: dict[str, ObjectKey], material: Material
) -> Iterator[ObjectKey]:
    for owner in meta.owners(tree):
        if owner.uid in uids:
            yield uids[owner.uid]
    if key[:2] == api_resources.RESOURCE_CLAIMS:
        for consumer in dra.consumers(tree):
            if consumer.resource == "pods":
                yield ObjectKey(*api_resources.PODS, key.namespace, consumer.name)
        for result in dra.results(tree):
            yield from material.slices_of(result.driver, result.pool)
    elif key[:2] == api_resources.PODS:
        if node := core.node_name(tree):
            yield ObjectKey(*api_resources.NODES, "", node)
        for entry in (*core.resource_claims(tree), *core.resource_claim_statuses(tree)):
            if name := entry.get("resourceClaimName"):
                yield ObjectKey(*api_resources.RESOURCE_CLAIMS, key.namespace, str(name))
