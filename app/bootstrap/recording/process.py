"""The process of `redra record`: a store, a cluster and a recorder, until a signal to stop."""

import signal
from collections.abc import Callable
from contextlib import suppress

import anyio
from anyio.abc import TaskGroup, TaskStatus

from app.bootstrap.recording import recorders
from app.bootstrap.recording.recording_request import Wanted
from app.bootstrap.stores import open_store
from app.domain.errors import LogUnavailable
from app.domain.log import HistoryInfo
from app.domain.values import counts
from app.settings import Settings


async def record(
    settings: Settings,
    wanted: Wanted,
    *,
    is_once: bool,
    say: Callable[[str], None],
    note: Callable[[str], None],
) -> bool:
    """Record the existing objects, then follow; only the former with `is_once`.

    Returns whether anything was recorded: a signal may come first, while the database starts or
    the cluster is asked. Raises InputError.
    """
    stopped, following = anyio.Event(), anyio.Event()
    async with anyio.create_task_group() as tasks:
        await tasks.start(_stop_on_signal, stopped, following, tasks)
        await _record(settings, wanted, (stopped, following), is_once=is_once, say=say, note=note)
        tasks.cancel_scope.cancel()
    if following.is_set():
        return True
    note("stopped before it began: nothing was recorded")
    return False


async def _record(
    settings: Settings,
    wanted: Wanted,
    events: tuple[anyio.Event, anyio.Event],
    *,
    is_once: bool,
    say: Callable[[str], None],
    note: Callable[[str], None],
) -> None:
    """Record until the first event; the second one is set when the recording has begun."""
    stopped, following = events
    recorders.check_request(settings, wanted)
    async with (
        open_store(settings, make=True, stays=not is_once, note=note) as store,
        recorders.open_cluster(store, settings, wanted, note=note) as opened,
    ):
        for problem in opened.denied.values():
            note(f"not recorded: {problem}")
        info = await recorders.begin(store, settings, wanted, opened, note=note, is_once=is_once)
        following.set()
        if is_once:
            head = await store.log.head(info.id)
            say(f"history {info.name}: {counts.of(head.revision, 'event')}, {opened.what}")
            say(_way_on(info))
            return
        await recorders.follow(
            store,
            settings,
            opened,
            info,
            started=lambda: say(recorders.recording_text(info, opened)),
            note=note,
            stopped=stopped,
        )
        with suppress(LogUnavailable):
            head = await store.log.head(info.id)
            recorded = counts.of(head.revision, "event")
            say(f"history {info.name}: {recorded}; the same command continues the recording")
            say(_way_on(info))


def _way_on(info: HistoryInfo) -> str:
    return f"to see what is wrong in it: redra findings {info.name}"


async def _stop_on_signal(
    stopped: anyio.Event,
    following: anyio.Event,
    tasks: TaskGroup,
    *,
    task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """End the recording in order on a signal; at once before it began, or on a second signal."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        task_status.started()
        async for _ in signals:
            if stopped.is_set() or not following.is_set():
                tasks.cancel_scope.cancel()
            stopped.set()
