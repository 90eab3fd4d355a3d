"""Answers that are worked out between other requests, from views that may advance."""

from types import SimpleNamespace

import anyio
from anyio import lowlevel

from app.service.answering import stepwise

STEPS = 5


def reading(views, seen):
    """Work that notes the revision of the views at each step, and returns those of its run."""
    revisions = []
    for _ in range(STEPS):
        revisions.append(views.revision)
        seen.append(views.revision)
        yield
    return revisions


async def test_other_tasks_have_a_turn_after_each_step():
    views, seen, turns = SimpleNamespace(revision=7), [], []

    async def other():
        while len(seen) < STEPS:
            turns.append(len(seen))
            await lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(other)
        assert await stepwise.worked_out(views, lambda: reading(views, seen)) == [7] * STEPS
    assert set(range(1, STEPS)) <= set(turns)


async def test_views_that_advance_are_read_anew_in_one_go():
    views, seen = SimpleNamespace(revision=7), []

    async def write():
        while len(seen) < 2:
            await lowlevel.checkpoint()
        while len(seen) < STEPS:
            views.revision += 1
            await lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write)
        revisions = await stepwise.worked_out(views, lambda: reading(views, seen))
    assert revisions == [revisions[0]] * STEPS
    assert revisions[0] > 7
