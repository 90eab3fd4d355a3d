"""The measures of a run: pods placed, waiting and evicted, times, and remaining capacity."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from app.analysis.capacity import largest
from app.analysis.capacity.largest import CounterSum, Devices, Largest
from app.analysis.diff.courses import Course, Courses
from app.analysis.diff.sides import Side
from app.analysis.views import LiveViews
from app.domain.controllers import registry
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import SECOND

NANO = 1_000_000_000


def measured(side: Side, views: LiveViews | None = None) -> JsonObject:
    """The row of a run, without the comparison with its base; `fates` are the pods by name.

    `views` are those at its end, if the run has them; otherwise its events are folded.
    """
    courses = Courses(side).all()
    placed = [each for each in courses if each.placed is not None]
    waits = sorted(_seconds_to_bound(each) for each in placed)
    if views is None:
        views = LiveViews(side.profile)
        for event in side.events:
            views.fold(event)
    devices = largest.devices_of(views)
    return {
        "pods": len(courses),
        "placed": len(placed),
        "waiting": sum(each.outcome == "waits" for each in courses),
        "evicted": sum(each.evicted is not None for each in courses),
        "boundMean": round(fmean(waits), 6) if waits else None,
        "boundP50": _quantile(waits, 0.5),
        "boundP99": _quantile(waits, 0.99),
        "boundMax": waits[-1] if waits else None,
        "largest": {name: one.count for name, one in _largest(side, devices).items()},
        "stranded": dict(_stranded(largest.counters(devices))),
        "fates": {each.name: _fate(each) for each in courses},
    }


def differing(fates: Mapping[str, str], base: Mapping[str, str]) -> int:
    """The number of pods whose node, devices or outcome differ from the base."""
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


def _stranded(
    sums: Mapping[tuple[str, str], CounterSum],
) -> Iterator[tuple[str, JsonObject]]:
    """The stranded amount of each counter, in its own unit and as a share of the total.

    Counters are grouped by driver and name, because amounts of different counters cannot be added.
    """
    for (driver, counter), one in sorted(sums.items()):
        yield (
            f"{driver}/{counter}",
            {
                "amount": one.stranded / NANO,
                "of": one.total / NANO,
                "share": round(one.stranded / one.total, 6) if one.total else 0.0,
            },
        )


def _largest(side: Side, devices: Devices) -> Mapping[str, Largest]:
    quirks = registry.allocator_quirks_of(side.profile, side.options)
    return largest.by_class(largest.emptiest_first(devices), side.rules.compiler, quirks)
