"""What a run comes to, in numbers: pods placed, waiting and evicted, times, what still fits."""

from collections.abc import Mapping, Sequence
from statistics import fmean

from app.analysis.diff.courses import Course, Courses
from app.analysis.diff.sides import Side
from app.analysis.views import LiveViews
from app.domain.allocation import Allocation, Allocator
from app.domain.allocation.counters import available_of
from app.domain.controllers import registry
from app.domain.values import api_resources
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import SECOND

COUNT_MAX = 4_096
"""The largest claim that is tried, in devices."""

NANO = 1_000_000_000


def measured(side: Side) -> JsonObject:
    """The row of a run, without what it is compared with; `fates` are the pods by name."""
    courses = Courses(side).all()
    placed = [each for each in courses if each.placed is not None]
    waits = sorted(_seconds_to_bound(each) for each in placed)
    views = LiveViews(side.profile)
    for event in side.events:
        views.fold(event)
    return {
        "pods": len(courses),
        "placed": len(placed),
        "waiting": sum(each.outcome == "waits" for each in courses),
        "evicted": sum(each.evicted is not None for each in courses),
        "boundMean": round(fmean(waits), 6) if waits else None,
        "boundP50": _quantile(waits, 0.5),
        "boundP99": _quantile(waits, 0.99),
        "boundMax": waits[-1] if waits else None,
        "largest": _largest(side, views),
        "stranded": _stranded(side, views),
        "fates": {each.name: _fate(each) for each in courses},
    }


def differing(fates: Mapping[str, str], base: Mapping[str, str]) -> int:
    """How many pods fare otherwise than in the base, in node, devices or outcome."""
    return sum(fates.get(name) != base.get(name) for name in {**fates, **base})


def _seconds_to_bound(course: Course) -> float:
    assert course.placed is not None, "it is placed"
    return round((course.placed.at.time - course.created.time) / SECOND, 6)


def _quantile(values: Sequence[float], share: float) -> float | None:
    return values[min(len(values) - 1, int(len(values) * share))] if values else None


def _fate(course: Course) -> str:
    if course.placed is None:
        return course.outcome
    devices = sorted(each.device for each in course.placed.devices)
    return " ".join([course.outcome, course.placed.node, *devices])


def _largest(side: Side, views: LiveViews) -> dict[str, int]:
    """By class, how many devices one more claim could have at the end, on its best node."""
    classes = {
        key.name: tree
        for key in views.objects.keys(*api_resources.DEVICE_CLASSES)
        if (tree := views.objects.get(key)) is not None
    }
    allocator = Allocator(
        views.inventory,
        classes,
        views.allocated,
        views.features,
        compiler=side.rules.compiler,
        quirks=registry.allocator_quirks_of(side.profile, side.options),
    )
    nodes = [views.objects.get(key) or {} for key in views.objects.keys(*api_resources.NODES)]
    return {name: max((_count(allocator, n, name) for n in nodes), default=0) for name in classes}


def _count(allocator: Allocator, node: JsonObject, device_class: str) -> int:
    """The largest count that fits on a node: doubled while it fits, then halved in between."""
    fits, fails = 0, 1
    while fails <= COUNT_MAX and _fits(allocator, node, device_class, fails):
        fits, fails = fails, fails * 2
    while fails - fits > 1:
        middle = (fits + fails) // 2
        if _fits(allocator, node, device_class, middle):
            fits = middle
        else:
            fails = middle
    return fits


def _fits(allocator: Allocator, node: JsonObject, device_class: str, count: int) -> bool:
    exactly = {"deviceClassName": device_class, "allocationMode": "ExactCount", "count": count}
    claim = {
        "metadata": {"name": "probe", "namespace": "probe", "uid": "probe"},
        "spec": {"devices": {"requests": [{"name": "probe", "exactly": exactly}]}},
    }
    return isinstance(allocator.allocate(node, [claim]), Allocation)


def _stranded(side: Side, views: LiveViews) -> float:
    """Counters that are left and that no free device can use, summed over all pools."""
    total = 0
    for pool_id in views.inventory.pool_ids():
        pool = views.inventory.pool(pool_id)
        if pool is None or not pool.counters:
            continue
        left = available_of(pool, views.allocated)
        free = [
            device
            for each in (*pool.slices, *pool.others)
            for device in each.devices
            if device.consumes and not views.allocated.is_allocated(device.id)
        ]
        usable = {
            (name, counter)
            for device in free
            if all(
                left.get((name, counter), 0) >= amount
                for name, used in device.consumes
                for counter, amount in used
            )
            for name, used in device.consumes
            for counter, _ in used
        }
        total += sum(amount for place, amount in left.items() if place not in usable and amount > 0)
    return total / NANO
