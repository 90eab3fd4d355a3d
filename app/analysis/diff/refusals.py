"""Creations that a changed quota or limit range refuses: what is missing there follows from it.

A refused request leaves no event. So the API of the side that lacks an object is asked whether it
had room for it at that instant.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.analysis.diff.inputs import InputDifference
from app.analysis.diff.sides import Side
from app.domain.errors import Forbidden
from app.domain.log import Event, EventType, ObjectKey
from app.domain.objects import registry as kinds
from app.domain.objects.kinds import limit_ranges
from app.domain.objects.quota import limits
from app.domain.values import api_resources
from app.domain.values.fields import meta
from app.domain.values.identifiers import NO_UID, Uid
from app.domain.values.timestamps import Instant
from projections.objects import ObjectsProjection

_QUOTA = re.compile(r"(?:exceeded|failed) quota: ([^,:]+)")
_GUARDS = (api_resources.RESOURCE_QUOTAS, api_resources.LIMIT_RANGES)


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedCreation:
    """The refusal of an object: the changed object `by` which `side` refuses it, and its words.

    `owner` is the uid of its controller, if it has one.
    """

    by: ObjectKey
    side: str
    text: str
    owner: Uid = NO_UID


def refused(
    sides: Mapping[str, Side], changes: Sequence[InputDifference]
) -> dict[ObjectKey, RefusedCreation]:
    """The objects that only one side has, because the other refuses them."""
    guards = {each.key: each for each in changes if each.key[:2] in _GUARDS}
    refusals: dict[ObjectKey, RefusedCreation] = {}
    if not guards:
        return refusals
    namespaces = {key.namespace for key in guards}
    for name, other in (("a", "b"), ("b", "a")):
        missing = list(_missing(sides[other], sides[name], namespaces))
        for event, refusal in _judged(sides[name], missing, guards):
            owner = meta.controller(event.object)
            refusals[event.key] = RefusedCreation(
                by=refusal[0],
                side=name,
                text=refusal[1],
                owner=NO_UID if owner is None else owner.uid,
            )
    return refusals


def _missing(side: Side, other: Side, namespaces: set[str]) -> Iterator[tuple[Instant, Event]]:
    """The creations of a side of which the other has no object of that name, or of that owner."""
    there = {event.key for event in (*other.start, *other.events)}
    owners = {_kin(event) for event in other.events if event.type is EventType.OBJECT_CREATED}
    for event in side.events:
        is_one = event.type is EventType.OBJECT_CREATED and event.key.namespace in namespaces
        if not is_one or event.key in there:
            continue
        if meta.controller(event.object) is None or _kin(event) not in owners:
            yield side.instant(event.stamp.time), event


def _kin(event: Event) -> tuple[str, str, str]:
    """The namespace and kind of an object, and the name of its controller."""
    owner = meta.controller(event.object)
    return event.key.namespace, event.key.resource, "" if owner is None else owner.name


def _judged(
    side: Side,
    missing: Sequence[tuple[Instant, Event]],
    guards: Mapping[ObjectKey, InputDifference],
) -> Iterator[tuple[Event, tuple[ObjectKey, str]]]:
    """The creations that a side refuses at their instants, each with the guard and its words."""
    objects = ObjectsProjection(tells_changes=False)
    for event in side.start:
        objects.fold(event)
    later = iter(side.events)
    following = next(later, None)
    for time, event in missing:
        while following is not None and side.instant(following.stamp.time) <= time:
            objects.fold(following)
            following = next(later, None)
        refusal = _refusal(objects, event, guards)
        if refusal is not None:
            yield event, refusal


def _refusal(
    objects: ObjectsProjection, event: Event, guards: Mapping[ObjectKey, InputDifference]
) -> tuple[ObjectKey, str] | None:
    key, kind = event.key, kinds.find(*event.key[:2])
    if kind is None:
        return None
    try:
        limit_ranges.check(objects, key, event.object)
        limits.check_create(objects, kind, key, event.object)
    except Forbidden as refusal:
        quota = _QUOTA.search(refusal.message)
        place = (
            ObjectKey(*api_resources.RESOURCE_QUOTAS, key.namespace, quota[1])
            if quota is not None
            else next((each for each in guards if each[:3] == _range_of(key)), None)
        )
        return (place, refusal.message) if place in guards and place is not None else None
    return None


def _range_of(key: ObjectKey) -> tuple[str, str, str]:
    return (*api_resources.LIMIT_RANGES, key.namespace)
