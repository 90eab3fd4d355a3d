"""Time: never backwards, and virtual time that jumps."""

import time

import anyio
import pytest

from app.adapters.clock import SystemClock
from app.domain.values.timestamps import SECOND, Instant
from app.service.cluster_clock import ClusterClock
from tests.patience import PATIENCE_SECONDS
from tests.virtual_clock import VirtualClock


def test_system_clock_never_goes_back():
    clock = SystemClock()
    seen = [clock.now() for _ in range(1_000)]
    assert seen == sorted(seen)


def test_system_clock_that_is_set_back_goes_on_at_its_pace(monkeypatch: pytest.MonkeyPatch):
    wall, steady = 10_000 * SECOND, 50 * SECOND
    monkeypatch.setattr("time.time_ns", lambda: wall * 1_000)
    monkeypatch.setattr("time.monotonic_ns", lambda: steady * 1_000)
    clock = SystemClock()
    assert clock.now() == 10_000 * SECOND
    wall, steady = wall - 3_600 * SECOND, steady + 30 * SECOND
    assert clock.now() == 10_030 * SECOND
    wall, steady = wall + 60 * SECOND, steady + 60 * SECOND
    assert clock.now() == 10_090 * SECOND
    wall = 20_000 * SECOND
    assert clock.now() == 20_000 * SECOND, "set forward, it follows"


def test_pause_between_two_readings_puts_no_clock_ahead(monkeypatch: pytest.MonkeyPatch):
    passed = 0

    def wall() -> int:
        return (10_000 * SECOND + passed) * 1_000

    def steady() -> int:
        nonlocal passed
        passed += SECOND  # the process is stopped before each reading of this clock
        return passed * 1_000

    monkeypatch.setattr("time.time_ns", wall)
    monkeypatch.setattr("time.monotonic_ns", steady)
    clock = SystemClock()
    for _ in range(5):
        assert clock.now() <= 10_000 * SECOND + passed


async def test_system_clock_waits_until_the_instant():
    clock = SystemClock()
    instant = Instant(clock.now() + SECOND // 100)
    await clock.wait_until(instant)
    assert clock.now() >= instant


async def test_clock_that_is_set_back_is_not_waited_for(monkeypatch: pytest.MonkeyPatch):
    """What is due in an instant is due then, not when the wall clock is where it was."""
    wall, back = time.time_ns, 0
    monkeypatch.setattr("time.time_ns", lambda: wall() - back * 1_000)
    clock = SystemClock()
    before = clock.now()
    back = 3_600 * SECOND
    with anyio.fail_after(PATIENCE_SECONDS):
        await clock.wait_until(Instant(before + SECOND // 100))
    assert before - 3_600 * SECOND < clock.wall() < before
    ahead = ClusterClock(clock).ahead
    assert 3_600 * SECOND - SECOND < ahead <= 3_601 * SECOND


async def test_past_instants_are_not_waited_for():
    with anyio.fail_after(PATIENCE_SECONDS):
        await SystemClock().wait_until(Instant(1))
        await VirtualClock(Instant(5)).wait_until(Instant(5))


def test_virtual_clock_stands_still_and_never_goes_back():
    clock = VirtualClock(Instant(5))
    assert clock.now() == 5
    clock.advance_to(Instant(9))
    clock.advance_to(Instant(7))
    assert clock.now() == 9


async def test_virtual_clock_jumps_from_one_waited_instant_to_the_next():
    clock = VirtualClock()
    woken: list[tuple[str, int]] = []

    async def wait(name: str, instant: int) -> None:
        await clock.wait_until(Instant(instant))
        woken.append((name, clock.now()))

    async with anyio.create_task_group() as tasks:
        for name, instant in (("c", 30), ("a", 10), ("b", 20), ("a again", 10)):
            tasks.start_soon(wait, name, instant)
        await anyio.wait_all_tasks_blocked()
        while clock.jump():
            await anyio.wait_all_tasks_blocked()
    assert woken == [("a", 10), ("a again", 10), ("b", 20), ("c", 30)]
    assert clock.due() is None


async def test_cancelled_wait_is_forgotten():
    clock = VirtualClock()
    with anyio.move_on_after(0) as scope:
        await clock.wait_until(Instant(10))
    assert scope.cancelled_caught
    assert clock.due() is None


@pytest.mark.parametrize("instant", [1, 10])
async def test_advancing_beyond_wakes_everyone_up_to_there(instant: int):
    clock = VirtualClock()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(clock.wait_until, Instant(instant))
        await anyio.wait_all_tasks_blocked()
        clock.advance_to(Instant(10))
