"""A history is watched over while others write to it, until somebody says that it is enough."""

import anyio
import pytest
from anyio.lowlevel import checkpoint

from app.adapters.memory import MemoryLog, MemoryStore, MemoryWakeUp
from app.analysis.oversight import Observation
from app.bootstrap.pacing.overseeing import oversight_of
from app.domain.log import Event, Head, Revision
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from app.service.replays.overseeing import Deadline, OverseeingBounds, oversee
from tests.patience import PATIENCE_SECONDS
from tests.unit.analysis.verify.test_parts import steal
from tests.unit.service.test_replaying import resealed, story

BOUNDS = OverseeingBounds(page_max=7, poll_seconds=30.0, settle_seconds=1_000.0)


async def watched(events: list[Event], until: int | None) -> tuple[list[Observation], int]:
    """What is told while the events are appended a few at a time, and the last revision judged."""
    wake_up = MemoryWakeUp()
    log = MemoryLog(MemoryStore(), wake_up.grown)
    info = await log.create_history("h", seed=1, settings={}, created=Instant(0))
    oversight = oversight_of(info, ())
    observations: list[Observation] = []
    stopped = anyio.Event()
    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as tasks:

            async def watch() -> None:
                await oversee(
                    log, wake_up, info, oversight,
                    until=None if until is None else Revision(until),
                    report_observations=observations.extend, stopped=stopped, bounds=BOUNDS,
                )  # fmt: skip

            if until is None:
                tasks.start_soon(watch)
            head = Head()
            for first in range(0, len(events), 5):
                head = await log.append(info.id, expected=head, events=events[first : first + 5])
                while until is None and oversight.revision < head.revision:
                    await checkpoint()
            if until is None:
                stopped.set()
            else:
                tasks.start_soon(watch)
    return observations, oversight.revision


def keep(event: Event, tree: JsonObject) -> None:
    """Nothing is altered."""


async def test_what_is_written_is_judged_without_being_asked_for() -> None:
    events = resealed(story().line.events, steal)
    observations, revision = await watched(events, None)
    assert revision == len(events)
    whole, _ = await watched(events, len(events))
    assert {(each.name, each.revision) for each in observations} == {
        (each.name, each.revision) for each in whole
    }
    first = next(each for each in observations if each.name == "device-in-one-claim")
    assert first.seen < len(events)


async def test_until_a_revision_nothing_after_it_is_judged() -> None:
    events = resealed(story().line.events, steal)
    observations, revision = await watched(events, 40)
    assert revision == 40
    assert all(each.seen <= 40 for each in observations)


async def test_sound_history_tells_nothing() -> None:
    events = resealed(story().line.events, keep)
    observations, _ = await watched(events, len(events))
    assert observations == []


@pytest.mark.parametrize("is_passed", [True, False])
async def test_until_an_instant_to_come_what_is_written_by_then_is_judged(
    *, is_passed: bool
) -> None:
    """The end is a later event, or the clock where none comes; not the last event so far."""
    events = resealed(story().line.events, keep)
    instant = events[len(events) // 2].stamp.time
    by_then = [each for each in events if each.stamp.time <= instant]
    assert len(by_then) < len(events)
    wake_up = MemoryWakeUp()
    log = MemoryLog(MemoryStore(), wake_up.grown)
    info = await log.create_history("h", seed=1, settings={}, created=Instant(0))
    oversight = oversight_of(info, ())
    clock = [Instant(0)]
    ended = anyio.Event()

    async def watch() -> None:
        await oversee(
            log, wake_up, info, oversight, report_observations=lambda _: None,
            until=Deadline(instant=instant, now=lambda: clock[0]),
            stopped=anyio.Event(), bounds=BOUNDS,
        )  # fmt: skip
        ended.set()

    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch)
            head = await log.append(info.id, expected=Head(), events=events[:5])
            while oversight.revision < head.revision:
                await checkpoint()
            assert not ended.is_set()
            if is_passed:
                clock[0] = Instant(instant + 1)
                head = await log.append(info.id, expected=head, events=by_then[5:])
            else:
                head = await log.append(info.id, expected=head, events=events[5:])
    assert oversight.revision == by_then[-1].revision
