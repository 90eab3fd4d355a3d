"""A history is watched over while others write to it, until somebody says that it is enough."""

import anyio
from anyio.lowlevel import checkpoint

from app.adapters.memory import MemoryLog, MemoryStore, MemoryWakeUp
from app.analysis.oversight import Observation
from app.bootstrap.pacing.overseeing import oversight_of
from app.domain.log import Event, Head, Revision
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from app.service.replays.overseeing import OverseeingBounds, oversee
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
                    tell=observations.extend, stopped=stopped, bounds=BOUNDS,
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
