"""Rules about counters: declared, consumed, and sufficient for each device that draws on them."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from app.analysis.lint.findings import FindingPlace, LintFinding, LintRule, LintSeverity
from app.analysis.lint.subjects import PublishedPool, Subjects
from app.domain.devices.model import Device
from app.domain.values.texts import notation

SET_MISSING = LintRule(
    id="counter-set-missing",
    severity=LintSeverity.ERROR,
    reads="ResourceSlice",
    means="A device consumes counters of a set that no slice of the complete pool declares: the "
    "pool is invalid and none of its devices is allocated.",
    cure="Declare the set in spec.sharedCounters of a slice of the same pool and generation.",
    reference="docs/parity/allocator.md 2.5",
)
COUNTER_MISSING = LintRule(
    id="counter-missing",
    severity=LintSeverity.ERROR,
    reads="ResourceSlice",
    means="A device consumes a counter that its set does not have: the pool is invalid and none of "
    "its devices is allocated.",
    cure="Add the counter to the set, or correct its name in the device.",
    reference="docs/parity/allocator.md 2.5",
)
SET_UNUSED = LintRule(
    id="counter-set-unused",
    severity=LintSeverity.WARNING,
    reads="ResourceSlice",
    means="No device of the pool consumes counters of the set, so it excludes nothing: devices "
    "that are parts of one another can be allocated together.",
    cure="Let the devices consume from the set, or leave the set out.",
    reference="docs/parity/allocator.md 7",
)
COUNTER_UNUSED = LintRule(
    id="counter-unused",
    severity=LintSeverity.NOTE,
    reads="ResourceSlice",
    means="No device of the pool consumes this counter of a set that is otherwise used.",
    cure="Let the devices that need it consume it, or leave it out.",
    reference="docs/parity/allocator.md 7",
)
DRAWS_TOO_MUCH = LintRule(
    id="device-never-fits",
    severity=LintSeverity.ERROR,
    reads="ResourceSlice",
    means="A device consumes more of a counter than its set holds, so it is never allocated.",
    cure="Correct the amount in consumesCounters, or the value of the counter.",
    reference="docs/parity/allocator.md 7",
)
OVERLAP = LintRule(
    id="partitions-overlap",
    severity=LintSeverity.NOTE,
    reads="ResourceSlice",
    means="Devices draw on one counter set that does not hold enough for all: allocating some "
    "excludes others, so free devices must not be counted one by one.",
    cure="None is needed where the devices are parts of one another.",
    reference="docs/parity/allocator.md 7; KEP-4815",
)
NEVER_BIND = LintRule(
    id="counters-never-bind",
    severity=LintSeverity.NOTE,
    reads="ResourceSlice",
    means="A counter set holds enough for all devices that draw on it at once, so it excludes "
    "nothing.",
    cure="Check the amounts if the devices are meant to exclude one another.",
    reference="docs/parity/allocator.md 7; KEP-4815",
)
RULES = (
    SET_MISSING,
    COUNTER_MISSING,
    SET_UNUSED,
    COUNTER_UNUSED,
    DRAWS_TOO_MUCH,
    OVERLAP,
    NEVER_BIND,
)


class _Declared(NamedTuple):
    place: FindingPlace
    counters: Mapping[str, int]


def check(subjects: Subjects) -> Iterator[LintFinding]:
    """All rules on all pools that have counters."""
    for pool in subjects.pools:
        sets = _sets(pool)
        if not sets and not any(each.slice.traits.consuming for each in pool.slices):
            continue
        for published, device, path in pool.devices():
            yield from _device(pool, device, published.subject.at(path), sets)
        yield from _consumers(pool, sets)


def _sets(pool: PublishedPool) -> dict[str, _Declared]:
    sets: dict[str, _Declared] = {}
    for published in pool.slices:
        for index, (name, counters) in enumerate(published.slice.counter_sets):
            place = published.subject.at(f"spec.sharedCounters[{index}]")
            sets.setdefault(name, _Declared(place, counters))
    return sets


def _device(
    pool: PublishedPool, device: Device, place: FindingPlace, sets: Mapping[str, _Declared]
) -> Iterator[LintFinding]:
    for index, (name, consumed) in enumerate(device.consumes):
        at = replace(place, field=f"{place.field}.consumesCounters[{index}]")
        declared = sets.get(name)
        if declared is None:
            if pool.is_whole:
                yield SET_MISSING.at(at, f"pool {pool.text} has no counter set {name}")
            continue
        for counter, amount in consumed:
            held = declared.counters.get(counter)
            of = replace(at, field=f"{at.field}.counters[{counter}]")
            if held is None:
                message = f"counter set {name} has no counter {counter}"
                yield COUNTER_MISSING.at(of, message, [declared.place])
            elif amount > held:
                consumes, holds = notation.alike((amount, held))
                yield DRAWS_TOO_MUCH.at(
                    of,
                    f"{device.id[2]} consumes {consumes} of counter {counter}, of which set "
                    f"{name} holds {holds}",
                    [declared.place],
                )


def _consumers(pool: PublishedPool, sets: Mapping[str, _Declared]) -> Iterator[LintFinding]:
    drawn: dict[str, Counter[str]] = {name: Counter() for name in sets}
    consumers: Counter[str] = Counter()
    used: set[tuple[str, str]] = set()
    for _, device, _ in pool.devices():
        for name, consumed in device.consumes:
            consumers[name] += 1
            used.update((name, counter) for counter, _ in consumed)
            if name in drawn:
                drawn[name].update(dict(consumed))
    for name, (place, counters) in sets.items():
        if not consumers[name]:
            # The slices with the consumers may not be among the sources.
            if pool.is_whole:
                yield SET_UNUSED.at(place, f"no device of pool {pool.text} draws on set {name}")
            continue
        for counter in counters:
            if (name, counter) not in used and pool.is_whole:
                at = replace(place, field=f"{place.field}.counters[{counter}]")
                yield COUNTER_UNUSED.at(at, f"no device draws on counter {counter} of set {name}")
        if consumers[name] < 2:
            continue
        short = [counter for counter, amount in counters.items() if drawn[name][counter] > amount]
        if short:
            message = (
                f"{consumers[name]} devices draw on set {name}, and together more than it holds of "
                f"{', '.join(short[:3])}{' and more' if len(short) > 3 else ''}"
            )
            yield OVERLAP.at(place, message)
        elif pool.is_whole:
            yield NEVER_BIND.at(place, f"set {name} holds enough for all {consumers[name]} devices")
