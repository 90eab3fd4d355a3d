"""Devices that no longer match the requests of the claims that hold them.

A driver may publish a device with another attribute or capacity while a pod uses it, and a patch
may change it. No pod is evicted, but a new claim like it would not get the device.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

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
from app.domain.log import Event, ObjectKey
from app.domain.values import api_resources, counts, timestamps
from app.domain.values.fields import dra, meta
from app.domain.values.identifiers import DeviceId, PoolId
from app.domain.values.json_tree import JsonView
from app.domain.values.timestamps import Instant, TimestampError


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


def wishes_of(
    views: LiveViews, compiler: SelectorCompiler, name: str, claim: JsonView
) -> Iterator[SelectingRequest]:
    """The requests and alternatives of a claim that have selectors, also those of their classes."""
    for request in dra.requests(claim):
        for wish in (request.exactly, *request.first_available):
            if wish is None:
                continue
            key = ObjectKey(*api_resources.DEVICE_CLASSES, "", wish.device_class_name)
            trees = (*dra.class_selectors(views.objects.get(key) or {}), *wish.selectors)
            texts = map(dra.selector_expression, trees)
            try:
                compiled = [compiler.compile(text) for text in texts if text]
            except SelectorCompileError:
                continue
            if compiled:
                yield SelectingRequest(
                    name=f"request {request.name} of claim {name}",
                    request=request.name,
                    class_name=wish.device_class_name,
                    selectors=tuple(compiled),
                )


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


def claims(views: LiveViews, compiler: SelectorCompiler, namespace: str) -> Iterator[Finding]:
    """One finding about the claims whose devices match no more, with the last write of the cause.

    That is a patch where the device would match as its driver published it, else its slice.
    """
    holders: dict[ObjectKey, str] = {}
    slices: dict[str, Event] = {}
    patching: dict[str, Event] = {}
    for key, one, device, text in _rewritten(views, namespace):
        claim = views.objects.get(key)
        for result in dra.results(claim) if claim is not None else ():
            if claim is None or result.id != device.id:
                continue
            main = result.request.partition("/")[0]
            wishes = [
                wish for wish in wishes_of(views, compiler, key.name, claim) if wish.request == main
            ]
            if not wishes or any(wish.matches(device) for wish in wishes):
                continue
            holders.setdefault(key, f"{text} for request {result.request}")
            if is_patched_away(one, device, wishes):
                patching |= patches.events(views, device)
            elif (event := views.objects.event(_slice(one.key))) is not None:
                slices[one.key] = event
    if not holders:
        return
    count = len(holders)
    is_one = count == 1
    text = (
        f"{counts.of(count, 'claim')} {'holds' if is_one else 'hold'} a device that "
        f"{'its' if is_one else 'their'} selectors exclude now: {next(iter(holders.values()))}; "
        "that evicts no pod"
    )
    revisions = [event.revision for event in (*slices.values(), *patching.values())]
    yield Finding(
        kind=FindingKind.CHANGED_DEVICES,
        severity=Severity.WARNING,
        text=text,
        causes=tuple(
            f"{counts.plural(len(names), noun)} {listed(sorted(names), len(names))} "
            f"{'was' if len(names) == 1 else 'were'} written after the allocation"
            for noun, names in (("slice", slices), ("ResourceSlicePatch", patching))
            if names
        ),
        count=count,
        present=count,
        first=min(revisions, default=views.revision),
        last=max(revisions, default=views.revision),
        objects=tuple(Subject.of(key, views.revision) for key in [*holders][:OBJECTS_SHOWN_MAX]),
    )


def is_patched_away(one: Slice, device: Device, wishes: Collection[SelectingRequest]) -> bool:
    """Whether a device of a slice would match one of the requests if no patch changed it."""
    if not device.patches:
        return False
    published = patches.as_published(one)[device.id[2]]
    return any(wish.matches(published) for wish in wishes)


def _slice(name: str) -> ObjectKey:
    return ObjectKey(*api_resources.RESOURCE_SLICES, "", name)


def _rewritten(views: LiveViews, namespace: str) -> Iterator[tuple[ObjectKey, Slice, Device, str]]:
    """Claims with a device whose slice or patch was written after the allocation, and the slice.

    All others have what they were given, and no selector needs to be asked.
    """
    pools_by_place: dict[PoolId, _Pool] = {}
    for key in views.objects.keys(*api_resources.RESOURCE_CLAIMS, namespace or None):
        claim = views.objects.get(key)
        allocation = None if claim is None else dra.allocation(claim)
        if claim is None or allocation is None or meta.is_deleting(claim):
            continue
        given = _instant(dra.allocation_time(allocation))
        for result in dra.results(claim):
            place = result.id[:2]
            pool = pools_by_place.get(place)
            if pool is None:
                pool = pools_by_place[place] = _Pool(views, place)
            if pool.written < given:
                continue
            held = pool.devices.get(result.id)
            if held is not None and given <= pool.last_write(*held):
                yield key, *held, result.text


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
