"""Creations that one side refuses because of a quota or limit range; the other has the object.

It may be refused for some time only, until there is room for it. A refused request leaves no event.
So the API of the side that lacks an object is asked whether it had room for it at that instant.
What is missing follows from the quota or limit range if that was changed, and else from what used
the quota up on this side alone.
"""

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from msgspec import structs

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
_Kin: TypeAlias = tuple[str, str, str]
_GUARDS = (api_resources.RESOURCE_QUOTAS, api_resources.LIMIT_RANGES)


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedCreation:
    """The refusal of an object: the object `by` which `side` refuses it, and its words.

    `by` is the quota or limit range if it was changed, else an object without which the quota would
    have room. `owner` is the uid of its controller, if it has one.
    """

    by: ObjectKey
    side: str
    text: str
    owner: Uid = NO_UID


def refused(
    sides: Mapping[str, Side], changes: Sequence[InputDifference], within: int
) -> dict[ObjectKey, RefusedCreation]:
    """The objects that only one side has at some time, because the other refuses them.

    Creations within `within` of each other are made at the same time.
    """
    guards = {each.key: each for each in changes if each.key[:2] in _GUARDS}
    namespaces = {key.namespace for key in guards} | _with_quotas(sides.values())
    refusals: dict[ObjectKey, RefusedCreation] = {}
    if not namespaces:
        return refusals
    for name, other in (("a", "b"), ("b", "a")):
        missing = list(_missing(sides[other], sides[name], namespaces, within))
        for event, refusal in _judged(sides[name], sides[other], missing, guards):
            owner = meta.controller(event.object)
            refusals[event.key] = RefusedCreation(
                by=refusal[0],
                side=name,
                text=refusal[1],
                owner=NO_UID if owner is None else owner.uid,
            )
    return refusals


def _with_quotas(sides: Iterable[Side]) -> set[str]:
    """The namespaces that have a quota on a side at any time."""
    return {
        event.key.namespace
        for side in sides
        for event in (*side.start, *side.events)
        if event.key[:2] == api_resources.RESOURCE_QUOTAS
    }


def _missing(
    side: Side, other: Side, namespaces: set[str], within: int
) -> Iterator[tuple[Instant, Event]]:
    """The creations of a side that the other lacks, or has later.

    An object with a controller has a generated name: the first ones of a controller are those that
    the other side has under names of its own.
    """
    here = {event.key for event in (*side.start, *side.events)}
    there = {event.key: other.instant(event.stamp.time) for event in reversed(other.events)}
    there |= {event.key: Instant(0) for event in other.start}
    named_otherwise: dict[_Kin, deque[Instant]] = defaultdict(deque)
    for event in other.events:
        if event.type is EventType.OBJECT_CREATED and event.key not in here:
            named_otherwise[_kin(event)].append(other.instant(event.stamp.time))
    for event in side.events:
        if event.type is not EventType.OBJECT_CREATED or event.key.namespace not in namespaces:
            continue
        time, then = side.instant(event.stamp.time), there.get(event.key)
        if then is None and meta.controller(event.object) is not None:
            kin = named_otherwise[_kin(event)]
            then = kin.popleft() if kin else None
        if then is None or then > time + within:
            yield time, event


def _kin(event: Event) -> _Kin:
    """The namespace and kind of an object, and the name of its controller."""
    owner = meta.controller(event.object)
    return event.key.namespace, event.key.resource, "" if owner is None else owner.name


class _SideState:
    """The objects of a side at an instant, which only goes forward."""

    def __init__(self, side: Side) -> None:
        self.objects = ObjectsProjection(tells_changes=False)
        for event in side.start:
            self.objects.fold(event)
        self._side = side
        self._later = iter(side.events)
        self._following = next(self._later, None)

    def advance(self, time: Instant) -> None:
        """Folds the events up to an instant of the comparison."""
        while (
            self._following is not None and self._side.instant(self._following.stamp.time) <= time
        ):
            self.objects.fold(self._following)
            self._following = next(self._later, None)


def _judged(
    side: Side,
    other: Side,
    missing: Sequence[tuple[Instant, Event]],
    guards: Mapping[ObjectKey, InputDifference],
) -> Iterator[tuple[Event, tuple[ObjectKey, str]]]:
    """The creations that a side refuses at their instants, each with its cause and the words."""
    here, there = _SideState(side), _SideState(other)
    for time, event in missing:
        here.advance(time)
        there.advance(time)
        refusal = None
        if _is_wanted(here.objects, there.objects, event):
            refusal = _refusal(here.objects, there.objects, event, guards)
        if refusal is not None:
            yield event, refusal


def _is_wanted(objects: ObjectsProjection, elsewhere: ObjectsProjection, event: Event) -> bool:
    """Whether a side would make an object: its controller has fewer of them there by then.

    A pod that replaces an evicted one is not wanted where none was evicted.
    """
    owner = meta.controller(event.object)
    return owner is None or _owned(objects, event) < _owned(elsewhere, event)


def _owned(objects: ObjectsProjection, event: Event) -> int:
    """The number of objects like that of the event that its controller has, and that stay."""
    trees = (objects.get(key) for key in objects.keys(*event.key[:2], event.key.namespace))
    owner = meta.controller(event.object)
    return sum(
        not meta.is_deleting(tree)
        and (theirs := meta.controller(tree)) is not None
        and owner is not None
        and (theirs.kind, theirs.name) == (owner.kind, owner.name)
        for tree in trees
        if tree is not None
    )


def _refusal(
    objects: ObjectsProjection,
    elsewhere: ObjectsProjection,
    event: Event,
    guards: Mapping[ObjectKey, InputDifference],
) -> tuple[ObjectKey, str] | None:
    key, problem = event.key, _problem(objects, event)
    if problem is None:
        return None
    quota = _QUOTA.search(problem.message)
    place = (
        ObjectKey(*api_resources.RESOURCE_QUOTAS, key.namespace, quota[1])
        if quota is not None
        else next((each for each in guards if each[:3] == _range_of(key)), None)
    )
    if quota is not None and place not in guards:
        place = _used_up_by(objects, elsewhere, event)
    return None if place is None else (place, problem.message)


def _problem(objects: ObjectsProjection, event: Event) -> Forbidden | None:
    """The refusal of a creation in the state of a side, if there is one."""
    kind = kinds.find(*event.key[:2])
    if kind is None:
        return None
    try:
        limit_ranges.check(objects, event.key, event.object)
        limits.check_create(objects, kind, event.key, event.object)
    except Forbidden as refusal:
        return refusal
    return None


def _used_up_by(
    objects: ObjectsProjection, elsewhere: ObjectsProjection, event: Event
) -> ObjectKey | None:
    """The object of this side alone without which an unchanged quota would have room.

    Of several it is the last one without which there is none, when all later ones are left out.
    """
    own = sorted(_only_here(objects, elsewhere, event.key.namespace), key=_age)
    first, last = 0, len(own)
    if not _has_room(objects, own, event):
        return None
    while first + 1 < last:
        middle = (first + last) // 2
        if _has_room(objects, own[middle:], event):
            first = middle
        else:
            last = middle
    return own[first].key


def _only_here(
    objects: ObjectsProjection, elsewhere: ObjectsProjection, namespace: str
) -> Iterator[Event]:
    """The objects of a namespace that count for one of its quotas and that one side lacks."""
    quotas = [objects.get(key) for key in objects.keys(*api_resources.RESOURCE_QUOTAS, namespace)]
    counted = {
        place
        for quota in quotas
        if quota is not None
        for name in limits.hard(quota)
        for place in limits.places_of(name)
    }
    for place in sorted(counted):
        for key in objects.keys(*place, namespace):
            here, there = objects.event(key), elsewhere.event(key)
            if here is not None and (there is None or there.uid != here.uid):
                yield here


def _age(event: Event) -> tuple[str, int]:
    return meta.creation_timestamp(event.object), event.revision


def _has_room(objects: ObjectsProjection, without: Sequence[Event], event: Event) -> bool:
    """Whether nothing refuses a creation when some objects are left out."""
    for each in without:
        objects.fold(structs.replace(each, type=EventType.OBJECT_DELETED))
    has_room = _problem(objects, event) is None
    for each in without:
        objects.fold(structs.replace(each))
    return has_room


def _range_of(key: ObjectKey) -> tuple[str, str, str]:
    return (*api_resources.LIMIT_RANGES, key.namespace)
