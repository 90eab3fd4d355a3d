"""The sampled moments of a history, with their devices and the capacity at each of them.

Moments are at equal distances in the log, so that busy times get more of them. The distance is a
power of two: as a history grows, most moments stay the same, and results can be kept.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import msgspec

from app.analysis.blast import devices, reach
from app.analysis.capacity import ceilings, largest
from app.analysis.capacity.answers import CapacityMoment, ClassCapacity, CounterCapacity
from app.analysis.capacity.largest import CounterSum, Devices, Largest
from app.analysis.views import LiveViews
from app.domain.allocation.quirks import Quirks
from app.domain.devices import patches
from app.domain.devices.device_selectors import SelectorCompiler
from app.domain.log import Event, EventType, ObjectKey, Revision
from app.domain.objects.profile import Profile
from app.domain.values import api_resources, timestamps
from app.domain.values.texts import notation
from app.domain.values.timestamps import Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityBounds:
    """The bounds of answers about capacity over time.

    `moments_max` moments of a history are examined, `at_once_max` new ones for one question.
    Results of `kept_max` moments, of all histories, are kept. The search for one claim has at most
    `steps_max` steps.
    """

    moments_max: int = 32
    at_once_max: int = 8
    kept_max: int = 1_000
    steps_max: int = largest.STEPS_MAX


def sampled(until: Revision, moments_max: int) -> list[Revision]:
    """At most `moments_max` revisions up to `until`, always including the last one."""
    distance = 1
    while until // distance >= max(1, moments_max):
        distance *= 2
    revisions = [Revision(number) for number in range(distance, until, distance)]
    return [*revisions, until]


def of(
    revision: Revision,
    now: Instant,
    present: Devices,
    compiler: SelectorCompiler,
    quirks: Quirks,
    steps_max: int = largest.STEPS_MAX,
) -> CapacityMoment:
    """The capacity of the devices at one moment."""
    most = largest.by_class(present, compiler, quirks, steps_max)
    return CapacityMoment(
        revision=revision,
        time=timestamps.micro_text(now),
        classes=tuple(_classes(present, compiler, most, quirks)),
        counters=tuple(_counters(largest.counters(present))),
    )


def _classes(
    present: Devices, compiler: SelectorCompiler, most: Mapping[str, Largest], quirks: Quirks
) -> Iterator[ClassCapacity]:
    olds = reach.old_pools(present.inventory, present.nodes, present.features, quirks)
    published = devices.usable(present.inventory, olds)
    claimable = tuple(ceilings.claimable(present.inventory, present.allocated, olds))
    # A recording may lack its nodes: then any device may be on a node.
    near = reach.reachable(present.inventory, present.nodes) if present.nodes else None
    if near is not None:
        near |= {device.id for old in olds for device in old.devices()}
    for name, tree in present.classes.items():
        chosen = patches.class_filter_of(tree, compiler)
        counts, _ = devices.class_counts(chosen, published, present.allocated)
        alone, _ = devices.class_counts(chosen, claimable, present.allocated, near)
        yield ClassCapacity(
            name=name,
            devices=counts.devices,
            allocatable=counts.allocatable,
            free=alone.free,
            largest=most[name].count,
            node=most[name].node,
            is_least=most[name].is_least,
        )


def _counters(sums: Mapping[tuple[str, str], CounterSum]) -> Iterator[CounterCapacity]:
    for (driver, counter), one in sorted(sums.items()):
        total, left, stranded = notation.exactly_alike((one.total, one.left, one.stranded))
        yield CounterCapacity(
            driver=driver, counter=counter, total=total, left=left, stranded=stranded
        )


class DeviceCourse:
    """The devices at one moment; `move` changes them to those of another moment, in any order.

    Most slices and nodes are equal at all moments: they are compiled once, and what the allocator
    knows about them is kept.
    """

    def __init__(self, profile: Profile) -> None:
        self._views = LiveViews(profile)
        self._events: dict[ObjectKey, Event] = {}

    def move(
        self, events: Iterable[Event], created: Mapping[ObjectKey, Revision] = MappingProxyType({})
    ) -> Devices:
        """The devices of the state with these last events of its objects, until the next `move`.

        `created` are the revisions of creation of patches that were changed since.
        """
        wanted = {event.key: event for event in events}
        changed = []
        for key, new in wanted.items():
            old = self._events.pop(key, None)
            if old is None or old.revision != new.revision:
                changed.append(new)
            if old is not None and old.revision != new.revision and not _takes_over(key):
                self._remove(old)
        for gone in self._events.values():
            self._remove(gone)
        for event in changed:
            self._views.fold(event, created.get(event.key, Revision(0)))
            if event.key in self._views.unreadable:
                self._remove(event)
        self._events = wanted
        return largest.devices_of(self._views)

    def _remove(self, event: Event) -> None:
        self._views.fold(msgspec.structs.replace(event, type=EventType.OBJECT_DELETED))


def _takes_over(key: ObjectKey) -> bool:
    """Whether a new state replaces an old one of that name whole, and takes over equal devices.

    A claim or patch of the same name may be another object.
    """
    return key[:2] == api_resources.RESOURCE_SLICES
