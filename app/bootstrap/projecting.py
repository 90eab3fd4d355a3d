"""`redra project`: the process that writes the view tables, and its supervision in `redra up`.

Writing the tables costs about a fifth of the total cost of a write, and no answer to a request
depends on them. In a separate process this work runs on another core.
"""

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial

import anyio
from anyio.abc import TaskGroup

from app.bootstrap import child_processes, garbage_collection
from app.bootstrap.histories import folding_bounds, views_of
from app.bootstrap.stores import Store, find_history, open_store
from app.domain.errors import InputError, LogUnavailable
from app.domain.log import HistoryId
from app.settings import Settings
from app.workers import projecting

NICENESS = 10
"""The niceness of the process when it was started by `redra up`.

Requests come first; readers of tables expect to lag.
"""

RESTART_SECONDS = 1.0
"""The first pause before a process that ended by mistake starts again; it doubles each time."""

RESTART_SECONDS_MAX = 60.0
"""The longest such pause."""

CALM_SECONDS = 60.0
"""The time without a failure after which earlier failures no longer lengthen the pause."""

_log = logging.getLogger("redra")


async def project(
    settings: Settings,
    *,
    names: tuple[str, ...],
    until_input_ends: bool,
    ready: Callable[[str], None],
) -> None:
    """Keep the view tables of the named histories, or of all, up to date until a signal to stop.

    Without names, histories made later are included. With `until_input_ends`, the end of standard
    input is the signal to stop: the process then ends with the one that started it, for whatever
    reason that one ends.
    """
    garbage_collection.expect_large_heap()
    garbage_collection.look_once()
    if until_input_ends:
        os.nice(NICENESS)
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(open_store(settings, stays=True, note=ready))
        for name in names:
            await find_history(store, name)
        tasks = await stack.enter_async_context(anyio.create_task_group())
        tasks.start_soon(start_each, store, settings, names, tasks)
        ready(f"projecting {', '.join(names) or 'every history'}")
        if until_input_ends:
            await anyio.to_thread.run_sync(sys.stdin.buffer.read, abandon_on_cancel=True)
        else:
            with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
                async for _ in signals:
                    break
        tasks.cancel_scope.cancel()


async def start_each(
    store: Store, settings: Settings, names: tuple[str, ...], tasks: TaskGroup
) -> None:
    """Update the view tables of the named histories; without names, of all and later ones."""
    started: set[HistoryId] = set()
    while True:
        try:
            infos = await store.log.histories()
        except LogUnavailable:
            infos = []
        for info in infos:
            if info.id in started or (names and info.name not in names):
                continue
            started.add(info.id)
            try:
                make = views_of(
                    info.settings,
                    decoded_max=settings.projector_decoded_max,
                    plain_max=settings.objects_plain_max,
                )
            except InputError as problem:
                _log.error("the view tables of history %s are not kept: %s", info.name, problem)
                continue
            follow = partial(
                projecting.follow_log,
                info,
                log=store.log,
                wake_up=store.ports.wake_up,
                views=store.views,
                make=make,
                bounds=folding_bounds(settings),
                idle_seconds=settings.history_idle_seconds,
            )
            tasks.start_soon(follow)
        await anyio.sleep(settings.poll_seconds)


async def keep_process(
    store: Store, settings: Settings, report_end: Callable[[str | None], None]
) -> None:
    """Run `redra project` on the store beside this process until cancelled.

    `report_end` is called with the reason when the process ends unexpectedly, and with None when it
    has run well for a while. The process is started again each time, after pauses that grow until
    it has run well.
    """
    command = child_processes.command("project", "--until-input-ends")
    surroundings = settings.environment(database_url=store.url)
    failures = 0
    while True:
        process = await anyio.open_process(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=None,
            env=surroundings,
            start_new_session=True,
        )
        try:
            with anyio.move_on_after(CALM_SECONDS):
                await process.wait()
            if process.returncode is None:
                failures = 0
                report_end(None)
            status = await process.wait()
        finally:
            with anyio.CancelScope(shield=True):
                await child_processes.end(process)
        pause = restart_pause(failures)
        failures += 1
        _log.error(
            "the process that writes the view tables ended with status %d; "
            "it is started again in %g s",
            status,
            pause,
        )
        report_end(f"the process that writes the view tables ended with status {status}")
        await anyio.sleep(pause)


def restart_pause(failures: int) -> float:
    """Seconds to wait after a process failed that had failed `failures` times in a row before."""
    doublings = min(failures, 16)
    return min(RESTART_SECONDS_MAX, RESTART_SECONDS * 2.0**doublings)
