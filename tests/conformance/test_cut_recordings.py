"""A recording cut short by machine is the same as the whole one, but for what lies after its end.

What lies there is judged by the events that were cut off, and by nothing else.

Rows come by day: each cuts another recording, with the same outcome.
"""

import random
from collections.abc import Sequence
from dataclasses import replace

import msgspec
import pytest

from app.adapters.memory import MemoryLog, MemoryStore
from app.analysis.diff import text
from app.analysis.diff.outcomes import EndReport
from app.analysis.diff.report import DiffReport
from app.analysis.diff.sides import DiffBounds
from app.bootstrap.rules import rules_of
from app.domain.log import Event, HistoryInfo, Revision
from app.domain.values.timestamps import SECOND, Instant
from app.service import diffing
from app.service.diffing import Comparison, ComparisonAspect, Ending
from tests import draws
from tests.conformance.recordings import WAYS, import_paths
from tests.kept import Kept
from tests.shared_data import shared_path

NAMES = ("a-quickstart", "c-multihost-tpu", "e-taints", "j-api-versions")
CUTS = 8
SETTINGS = {
    "profile": "1.36",
    "gates": {"DRADeviceTaintRules": True},
    "recorded": True,
}


_EVENTS: Kept[tuple[str, str], list[Event]] = Kept()


async def events_of(name: str, way: str) -> list[Event]:
    if (name, way) not in _EVENTS:
        paths = [shared_path("histories", name) / part for part in WAYS[way]]
        _EVENTS[name, way] = (await import_paths(paths)).events
    return _EVENTS[name, way]


async def stored(log: MemoryLog, name: str, events: Sequence[Event]) -> HistoryInfo:
    info = await log.create_history(name, seed=0, settings=SETTINGS, created=Instant(0))
    numbered = [
        msgspec.structs.replace(event, revision=Revision(number))
        for number, event in enumerate(events, 1)
    ]
    await log.append(info.id, expected=await log.head(info.id), events=numbered)
    return info


async def compared(
    a: Sequence[Event], b: Sequence[Event], by: ComparisonAspect, within: int = SECOND
) -> DiffReport | EndReport:
    log = MemoryLog(MemoryStore())
    left, right = await stored(log, "whole", a), await stored(log, "other", b)
    comparison = Comparison(by=by, schemas=rules_of(left).schemas, bounds=DiffBounds(within=within))
    return await diffing.compare_histories(
        log, Ending(history=left), Ending(history=right), comparison
    )


def cuts(events: Sequence[Event], seed: str) -> list[int]:
    """Numbers of events to keep: drawn ones, and cuts between events of the same second.

    At the last instant itself a recording is not shorter.
    """
    drawn = random.Random(seed)
    last = max(event.stamp.time for event in events)
    times = [event.stamp.time for event in events]
    places = [n for n in range(20, len(events)) if max(times[:n]) < last]
    close = [n for n in places if times[n] - times[n - 1] < SECOND // 100]
    return sorted({*drawn.sample(places, CUTS), *drawn.sample(close, CUTS)})


def later_subjects(events: Sequence[Event], by: ComparisonAspect) -> set[str]:
    """What the events that were cut off are about."""
    keys = {event.key for event in events if event.is_about_object}
    if by is ComparisonAspect.OBJECTS:
        return {str(key) for key in keys if key.resource != "events"}
    return {str(key) for key in keys if (key.group, key.resource) == ("", "pods")}


@draws.BY_DAY
@pytest.mark.parametrize("by", list(ComparisonAspect))
@pytest.mark.parametrize("name", NAMES)
async def test_cut_recording_differs_by_nothing_but_what_comes_after_its_end(
    name: str, by: ComparisonAspect
) -> None:
    events = await events_of(name, "audit")
    for kept in cuts(events, name):
        beyond = later_subjects(events[kept:], by)
        for is_first in (True, False):
            sides = (events, events[:kept]) if is_first else (events[:kept], events)
            report = await compared(*sides, by)
            assert report.is_same, f"cut at {kept}: {report.to_json()['differences'][:2]}"
            assert report.after_end is not None
            assert report.after_end.other == ("b" if is_first else "a")
            # Events at the very instant of the end count for both.
            assert set(report.after_end.subjects) <= beyond
            at = max(event.stamp.time for event in events[:kept])
            surely = [event for event in events[kept:] if event.stamp.time > at]
            assert set(report.after_end.subjects) >= later_subjects(surely, by)
            if isinstance(report, DiffReport):
                assert report.changes == (), f"cut at {kept}: {report.changes[0].text}"


@draws.in_turn("wrongs")
@pytest.mark.parametrize("by", list(ComparisonAspect))
async def test_what_is_left_out_before_the_cut_is_a_difference_all_the_same(
    by: ComparisonAspect,
) -> None:
    events = await events_of("e-taints", "audit")
    kept = len(events) * 2 // 3
    pods = [
        event.key
        for event in events[: kept // 2]
        if event.is_about_object and (event.key.group, event.key.resource) == ("", "pods")
    ]
    existing = [
        key
        for key in pods
        if not any(event.key == key and event.type == "ObjectDeleted" for event in events[:kept])
    ]
    lost = (existing or pods)[0]
    shorter = [event for event in events[:kept] if event.key != lost]
    for sides in ((events, shorter), (shorter, events)):
        report = await compared(*sides, by)
        assert not report.is_same
        body = report.to_json()
        assert [each["subject"] for each in body["differences"]] == [
            f"pods/{lost.namespace}/{lost.name}"
        ]


@draws.in_turn("ways")
@pytest.mark.parametrize("name", ["a-quickstart", "e-taints"])
async def test_cut_watch_streams_are_the_same_as_the_whole_log(name: str) -> None:
    whole, watched = await events_of(name, "audit"), await events_of(name, "watch")
    for kept in cuts(watched, name)[::2]:
        for sides in ((whole, watched[:kept]), (watched[:kept], whole)):
            report = await compared(*sides, ComparisonAspect.DECISIONS, within=2 * SECOND)
            assert report.is_same, f"cut at {kept}: {report.to_json()['differences'][:2]}"


async def test_what_comes_after_the_end_is_one_line() -> None:
    events = await events_of("a-quickstart", "audit")
    report = await compared(events, events[:143], ComparisonAspect.OUTCOMES)
    lines = [line for line in text.end_page(report) if "after the end of B" in line]
    assert len(lines) == 1
    assert f"A has {len(events) - 143} more events" in lines[0]
    assert replace(report, after_end=None).is_same
