"""A flag that is waited for."""

import asyncio

import anyio

from app.signals import Signal


async def test_wait_ends_when_the_flag_is_raised() -> None:
    signal = Signal()
    ended: list[bool] = []

    async def wait() -> None:
        await signal.wait()
        ended.append(await signal.wait_for(60.0))

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        assert ended == []
        signal.raise_()
    assert ended == [True, True, True]


async def test_lowered_flag_is_waited_for_again() -> None:
    signal = Signal()
    signal.raise_()
    assert await signal.wait_for(0.0)
    signal.lower()
    assert not await signal.wait_for(0.0)


async def test_who_waited_goes_on_though_the_flag_is_lowered_at_once() -> None:
    signal = Signal()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(signal.wait)
        await anyio.wait_all_tasks_blocked()
        signal.raise_()
        signal.lower()


async def test_cancelled_wait_leaves_nothing_behind() -> None:
    signal = Signal()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(signal.wait_for, 60.0)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    signal.raise_()
    await signal.wait()


async def test_time_out_of_a_scope_outside_ends_the_wait() -> None:
    signal = Signal()
    with anyio.move_on_after(0.0) as scope:
        await signal.wait()
    assert scope.cancelled_caught
    with anyio.move_on_after(60.0):
        assert not await signal.wait_for(0.0)
    assert asyncio.current_task() is not None
