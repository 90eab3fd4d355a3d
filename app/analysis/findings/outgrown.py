"""Devices that no longer match the requests of the claims that hold them.

A driver may publish a device with another attribute or capacity while a pod uses it. No pod is
evicted, but a new claim like it would not get the device.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from app.analysis.explain.reasons import listed
from app.analysis.findings.report import OBJECTS_SHOWN_MAX, Finding, FindingKind, Severity, Subject
from app.analysis.views import LiveViews
from app.domain.devices import pools
from app.domain.devices.device_selectors import (
    DeviceSelector,
    SelectorCompileError,
    SelectorCompiler,
)
from app.domain.devices.model import Device
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
                    selectors=tuple(compiled),
                )


def claims(views: LiveViews, compiler: SelectorCompiler, namespace: str) -> Iterator[Finding]:
    """One finding about the claims whose devices match no more, with the last write of a slice."""
    holders: dict[ObjectKey, str] = {}
    writes: dict[str, Event] = {}
    for key, slice_name, device, text in _rewritten(views, namespace):
        claim = views.objects.get(key)
        for result in dra.results(claim) if claim is not None else ():
            if claim is None or result.id != device.id:
                continue
            main = result.request.partition("/")[0]
            wishes = [
                wish for wish in wishes_of(views, compiler, key.name, claim) if wish.request == main
            ]
            if wishes and not any(wish.matches(device) for wish in wishes):
                holders.setdefault(key, f"{text} for request {result.request}")
                event = views.objects.event(_slice(slice_name))
                if event is not None:
                    writes[slice_name] = event
    if not holders:
        return
    count, names = len(holders), sorted(writes)
    is_one = count == 1
    text = (
        f"{counts.of(count, 'claim')} {'holds' if is_one else 'hold'} a device that "
        f"{'its' if is_one else 'their'} selectors exclude now: {next(iter(holders.values()))}; "
        "that evicts no pod"
    )
    revisions = [event.revision for event in writes.values()]
    yield Finding(
        kind=FindingKind.CHANGED_DEVICES,
        severity=Severity.WARNING,
        text=text,
        causes=(
            f"{counts.plural(len(names), 'slice')} {listed(names, len(names))} "
            f"{'was' if len(names) == 1 else 'were'} written after the allocation",
        ),
        count=count,
        present=count,
        first=min(revisions),
        last=max(revisions),
        objects=tuple(Subject.of(key, views.revision) for key in [*holders][:OBJECTS_SHOWN_MAX]),
    )


def _slice(name: str) -> ObjectKey:
    return ObjectKey(*api_resources.RESOURCE_SLICES, "", name)


def _rewritten(views: LiveViews, namespace: str) -> Iterator[tuple[ObjectKey, str, Device, str]]:
    """Claims with a device whose slice was written after the allocation, and that slice's name.

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
            event = None if held is None else pool.writes.get(held[0])
            if held is not None and event is not None and given <= event.stamp.time:
                yield key, held[0], held[1], result.text


class _Pool:
    """The devices of a pool's newest slices, by id and with their slice, and its last writes."""

    def __init__(self, views: LiveViews, place: PoolId) -> None:
        newest = pools.newest(views.inventory.slices_of(place))
        self.writes: dict[str, Event] = {
            one.key: event
            for one in newest
            if (event := views.objects.event(_slice(one.key))) is not None
        }
        self.written = max((event.stamp.time for event in self.writes.values()), default=0)
        self.devices: dict[DeviceId, tuple[str, Device]] = {
            device.id: (one.key, device) for one in newest for device in one.devices
        }


def _instant(text: str) -> Instant:
    """The time of an allocation, 0 if it has none."""
    try:
        return timestamps.parse(text) if text else Instant(0)
    except TimestampError:
        return Instant(0)
