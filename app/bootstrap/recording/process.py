"""The process of `redra record`: a store, a cluster and a recorder, until a signal to stop."""

import signal
from collections.abc import Callable

import anyio

from app.bootstrap.recording import recorders
from app.bootstrap.recording.recording_request import Wanted
from app.bootstrap.stores import open_store
from app.domain.values import counts
from app.settings import Settings


async def record(
    settings: Settings,
    wanted: Wanted,
    *,
    is_once: bool,
    say: Callable[[str], None],
    note: Callable[[str], None],
) -> None:
    """Record the existing objects, then follow; only the former with `is_once`.

    Raises InputError.
    """
    async with (
        open_store(settings, make=True, stays=not is_once, note=note) as store,
        recorders.open_cluster(store, settings, wanted) as opened,
    ):
        for problem in opened.denied.values():
            note(f"not recorded: {problem}")
        stopped, following = anyio.Event(), anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_stop_on_signal, stopped, following, tasks)
            info = await recorders.begin(store, settings, wanted, opened, is_once=is_once)
            if is_once:
                head = await store.log.head(info.id)
                say(f"history {info.name}: {counts.of(head.revision, 'event')}, {opened.what}")
            else:
                following.set()
                await recorders.follow(
                    store,
                    settings,
                    opened,
                    info,
                    started=lambda: say(recorders.recording_text(info, opened)),
                    note=note,
                    stopped=stopped,
                )
            tasks.cancel_scope.cancel()


async def _stop_on_signal(
    stopped: anyio.Event, following: anyio.Event, tasks: anyio.abc.TaskGroup
) -> None:
    """End the recording in order on a signal; at once before it began, or on a second signal."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            if stopped.is_set() or not following.is_set():
                tasks.cancel_scope.cancel()
            stopped.set()
