"""Devices that no longer match the requests of the claims that hold them.

A driver may publish a device with another attribute or capacity while a pod uses it, a patch may
change it or stop changing it, and a class may select otherwise. No pod is evicted, but a new claim
like it would not get the device.
"""

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TypeAlias

from app.analysis.explain import sources
from app.analysis.explain.hardware import patches
from app.analysis.explain.reasons import listed
from app.analysis.findings.report import OBJECTS_SHOWN_MAX, Finding, FindingKind, Severity, Subject
from app.analysis.views import LiveViews
from app.domain.devices import pools
from app.domain.devices.device_selectors import (
    DeviceSelector,
    SelectorCompileError,
    SelectorCompiler,
)
from app.domain.devices.model import Device, Slice
from app.domain.errors import InputError
from app.domain.log import Event, EventType, ObjectKey
from app.domain.values import api_resources, counts, timestamps
from app.domain.values.fields import dra, meta
from app.domain.values.fields.dra import DeviceResult
from app.domain.values.identifiers import DeviceId, PoolId
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant, TimestampError

_NOUNS = {
    api_resources.RESOURCE_SLICES: "slice",
    api_resources.RESOURCE_SLICE_PATCHES: "ResourceSlicePatch",
    api_resources.DEVICE_CLASSES: "DeviceClass",
}

_Selectors: TypeAlias = tuple[tuple[DeviceSelector, ...], ...]
"""The selectors of several requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectingRequest:
    """A request of a claim, or an alternative, with the selectors that a device has to match."""

    name: str
    request: str
    class_name: str
    selectors: tuple[DeviceSelector, ...]

    def matches(self, device: Device) -> bool:
        """Whether all selectors are true for the device."""
        return all(selector.judge([device])[0].match for selector in self.selectors)


@dataclass(frozen=True, slots=True, kw_only=True)
class FormerState:
    """A patch or class as it was before an event changed or deleted it."""

    tree: JsonObject
    ended_by: Event

    @property
    def ended_at(self) -> Instant:
        """The time of the event."""
        return self.ended_by.stamp.time


def wishes_of(
    views: LiveViews,
    compiler: SelectorCompiler,
    name: str,
    claim: JsonView,
    classes: Mapping[str, JsonView] = MappingProxyType({}),
) -> Iterator[SelectingRequest]:
    """The requests and alternatives of a claim that have selectors, also those of their classes.

    `classes` take the place of the existing classes with their names.
    """
    for request in dra.requests(claim):
        for wish in (request.exactly, *request.first_available):
            if wish is None:
                continue
            key = ObjectKey(*api_resources.DEVICE_CLASSES, "", wish.device_class_name)
            selecting = classes.get(key.name) or views.objects.get(key) or {}
            texts = map(dra.selector_expression, (*dra.class_selectors(selecting), *wish.selectors))
            try:
                compiled = [compiler.compile(text) for text in texts if text]
            except SelectorCompileError:
                continue
            if compiled:
                yield SelectingRequest(
                    name=request_text(request.name, name),
                    request=request.name,
                    class_name=wish.device_class_name,
                    selectors=tuple(compiled),
                )


def request_text(request: str, claim: str) -> str:
    """A request of a claim in a sentence."""
    return f"request {request} of claim {claim}"


class LostDevices:
    """The devices that matched former requests and match no request now.

    A cluster has many devices, and many pods ask alike. Each selector judges the devices of a slice
    together, none a second time that the former request has too, and answers are kept.
    """

    def __init__(self, views: LiveViews) -> None:
        self._views = views
        self._answers: dict[Hashable, tuple[int, Device] | None] = {}

    def first(
        self, former: Sequence[SelectingRequest], wishes: Sequence[SelectingRequest]
    ) -> tuple[int, Device] | None:
        """The number of the former request that matched a device, and the first such device."""
        before, now = (tuple(wish.selectors for wish in some) for some in (former, wishes))
        place = self._views.revision, before, now
        if place not in self._answers:
            self._answers[place] = self._first(before, now)
        return self._answers[place]

    def _first(self, former: _Selectors, current: _Selectors) -> tuple[int, Device] | None:
        inventory = self._views.inventory
        for place in inventory.pool_ids():
            for one in pools.newest(inventory.slices_of(place)):
                for number, before in enumerate(former):
                    lost = _matching(one, one.devices, before)
                    for now in current if lost else ():
                        other = [each for each in now if each not in before]
                        kept = {device.id for device in _matching(one, lost, other)}
                        lost = [device for device in lost if device.id not in kept]
                    if lost:
                        return number, lost[0]
        return None


def _matching(
    one: Slice, devices: Sequence[Device], selectors: Sequence[DeviceSelector]
) -> Sequence[Device]:
    """The devices of a slice for which all selectors are true, in their order."""
    for selector in selectors:
        if not devices:
            break
        common = selector.judge_like(devices[0]) if one.traits.plain else None
        verdicts = selector.judge(devices) if common is None else [common] * len(devices)
        devices = [device for device, each in zip(devices, verdicts, strict=True) if each.match]
    return devices


def patched_away(
    views: LiveViews, wishes: Sequence[SelectingRequest]
) -> Iterator[tuple[SelectingRequest, tuple[Device, ...]]]:
    """The devices that match a request as published and not as patched, alike ones together."""
    if not views.inventory.patches():
        return
    groups: dict[tuple[int, tuple[str, ...]], list[Device]] = {}
    for place in views.inventory.pool_ids():
        for one in pools.newest(views.inventory.slices_of(place)):
            patched = [device for device in one.devices if device.patches]
            published = patches.as_published(one) if patched else {}
            for device in patched:
                for number, wish in enumerate(wishes):
                    if not wish.matches(device) and wish.matches(published[device.id[2]]):
                        changes = tuple(text for _, text in patches.changes(device))
                        groups.setdefault((number, changes), []).append(device)
    for (number, _), devices in groups.items():
        yield wishes[number], tuple(devices)


def claims(
    views: LiveViews,
    compiler: SelectorCompiler,
    namespace: str,
    former: Sequence[FormerState] = (),
) -> Iterator[Finding]:
    """One finding about the claims whose devices match no more, with the last write of the cause.

    That is a patch without which the device would match, a class that selected it before, the end
    of a patch under which it matched, or else its slice. `former` are the states of patches and
    classes that ended last.
    """
    holders: dict[ObjectKey, str] = {}
    causes: dict[ObjectKey, Event] = {}
    for key, given, held, result in _rewritten(views, namespace, former):
        claim = views.objects.get(key)
        if claim is None:
            continue
        main = result.request.partition("/")[0]
        wishes = partial(_wishes_of_request, views, compiler, key.name, claim, main)
        now = wishes({})
        if not now or any(wish.matches(held[1]) for wish in now):
            continue
        later = [one for one in former if one.ended_at >= given]
        if blamed := _blamed(views, held, wishes, later):
            holders.setdefault(key, f"{result.text} for request {result.request}")
            causes |= blamed
    if not holders:
        return
    count = len(holders)
    is_one = count == 1
    text = (
        f"{counts.of(count, 'claim')} {'holds' if is_one else 'hold'} a device that "
        f"{'its' if is_one else 'their'} selectors exclude now: {next(iter(holders.values()))}; "
        "that evicts no pod"
    )
    revisions = [event.revision for event in causes.values()]
    yield Finding(
        kind=FindingKind.CHANGED_DEVICES,
        severity=Severity.WARNING,
        text=text,
        causes=tuple(_lines(causes)),
        count=count,
        present=count,
        first=min(revisions, default=views.revision),
        last=max(revisions, default=views.revision),
        objects=tuple(Subject.of(key, views.revision) for key in [*holders][:OBJECTS_SHOWN_MAX]),
    )


def _wishes_of_request(
    views: LiveViews,
    compiler: SelectorCompiler,
    name: str,
    claim: JsonView,
    request: str,
    classes: Mapping[str, JsonView],
) -> list[SelectingRequest]:
    """A request of a claim with its alternatives; `classes` are as in `wishes_of`."""
    wishes = wishes_of(views, compiler, name, claim, classes)
    return [wish for wish in wishes if wish.request == request]


def _blamed(
    views: LiveViews,
    held: tuple[Slice, Device],
    wishes: Callable[[Mapping[str, JsonView]], Sequence[SelectingRequest]],
    later: Sequence[FormerState],
) -> dict[ObjectKey, Event]:
    """The last events of the objects because of which a device matches no more.

    `wishes` makes the requests with other classes, `later` are the states that ended after the
    allocation.
    """
    one, device = held
    present = wishes({})
    if is_patched_away(one, device, present):
        return {event.key: event for event in patches.events(views, device).values()}
    for state in later:
        key = state.ended_by.key
        if key[:2] != api_resources.DEVICE_CLASSES or all(
            wish.class_name != key.name for wish in present
        ):
            continue
        event = views.objects.event(key)
        if event and any(wish.matches(device) for wish in wishes({key.name: state.tree})):
            return {key: event}
    for state in later:
        key = state.ended_by.key
        if key[:2] == api_resources.RESOURCE_SLICE_PATCHES:
            before = _patched_as(views, state.tree, one, device)
            if before is not None and any(wish.matches(before) for wish in present):
                return {key: state.ended_by}
    event = views.objects.event(_slice(one.key))
    return {} if event is None else {event.key: event}


def _patched_as(views: LiveViews, patch: JsonObject, one: Slice, device: Device) -> Device | None:
    """A device as it would be with a patch in the state that ended."""
    inventory = views.inventory.copy()
    try:
        inventory.put_patch(patch)
    except InputError:
        return None
    devices = inventory.slice(one.key).devices
    return next((each for each in devices if each.id == device.id), None)


def _lines(causes: Mapping[ObjectKey, Event]) -> Iterator[str]:
    """A sentence for each kind of cause and what happened to it; a single write has its author."""
    writes: dict[tuple[str, str], list[Event]] = {}
    for key, event in causes.items():
        how = "deleted" if event.type is EventType.OBJECT_DELETED else "written"
        writes.setdefault((how, _NOUNS[key[:2]]), []).append(event)
    for (how, noun), those in writes.items():
        names = sorted(event.key.name for event in those)
        was = counts.verb(len(those), "was")
        subject = f"{counts.plural(len(those), noun)} {listed(names, len(names))}"
        by = f", {sources.by(those[0])}" if len(those) == 1 else ""
        yield f"{subject} {was} {how} after the allocation{by}"


def is_patched_away(one: Slice, device: Device, wishes: Collection[SelectingRequest]) -> bool:
    """Whether a device of a slice would match one of the requests if no patch changed it."""
    if not device.patches:
        return False
    published = patches.as_published(one)[device.id[2]]
    return any(wish.matches(published) for wish in wishes)


def _slice(name: str) -> ObjectKey:
    return ObjectKey(*api_resources.RESOURCE_SLICES, "", name)


def _rewritten(
    views: LiveViews, namespace: str, former: Sequence[FormerState]
) -> Iterator[tuple[ObjectKey, Instant, tuple[Slice, Device], DeviceResult]]:
    """Claims with a device whose slice, patch or class was written after the allocation.

    Each comes with the time of its allocation, the slice and the device. All others have what they
    were given, and no selector needs to be asked.
    """
    pools_by_place: dict[PoolId, _Pool] = {}
    ended = max((one.ended_at for one in former), default=0)
    for key in views.objects.keys(*api_resources.RESOURCE_CLAIMS, namespace or None):
        claim = views.objects.get(key)
        allocation = None if claim is None else dra.allocation(claim)
        if claim is None or allocation is None or meta.is_deleting(claim):
            continue
        allocated_at = _instant(dra.allocation_time(allocation))
        for result in dra.results(claim):
            place = result.id[:2]
            pool = pools_by_place.get(place)
            if pool is None:
                pool = pools_by_place[place] = _Pool(views, place)
            if max(pool.written, ended) < allocated_at:
                continue
            held = pool.devices.get(result.id)
            if held is not None and allocated_at <= max(pool.last_write(*held), ended):
                yield key, allocated_at, held, result


class _Pool:
    """The devices of a pool's newest slices, by id and with their slice, and its last writes."""

    def __init__(self, views: LiveViews, place: PoolId) -> None:
        newest = pools.newest(views.inventory.slices_of(place))
        self._slices = {
            one.key: event.stamp.time
            for one in newest
            if (event := views.objects.event(_slice(one.key))) is not None
        }
        self.devices: dict[DeviceId, tuple[Slice, Device]] = {
            device.id: (one, device) for one in newest for device in one.devices
        }
        self._patches = {
            name: event.stamp.time
            for _, device in self.devices.values()
            if device.patches
            for name, event in patches.events(views, device).items()
        }
        self.written = max((*self._slices.values(), *self._patches.values()), default=0)

    def last_write(self, one: Slice, device: Device) -> int:
        """The time when the slice of a device, or a patch of it, was written last."""
        times = [self._patches.get(applied.patch, 0) for applied in device.patches]
        return max((self._slices.get(one.key, 0), *times))


def _instant(text: str) -> Instant:
    """The time of an allocation, 0 if it has none."""
    try:
        return timestamps.parse(text) if text else Instant(0)
    except TimestampError:
        return Instant(0)
