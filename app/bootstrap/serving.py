"""The long-running processes: `redra up` and `redra work`."""

import signal
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path

import anyio
import anyio.lowlevel
import uvicorn
from anyio.abc import TaskGroup, TaskStatus

from app.adapters import private_folders, schemas
from app.adapters.running import notice
from app.adapters.telemetry import Telemetry
from app.analysis.oversight import Oversight
from app.analysis.views import ReleaseCompilers
from app.api.application import Application, create_app
from app.api.redra.server_parts import Beside, Holders
from app.api.server import listening
from app.api.server.connections import ConnectionBounds, connection_class
from app.bootstrap import fleets, garbage_collection, heads, kubeconfigs
from app.bootstrap.access import Door, open_door
from app.bootstrap.answers.limits import api_limits
from app.bootstrap.gallery import incident_files
from app.bootstrap.histories import (
    default_history,
    folding_bounds,
    open_histories,
    views_of,
)
from app.bootstrap.jobs import running
from app.bootstrap.linting import sources as linting
from app.bootstrap.pacing.companions import Companions
from app.bootstrap.pacing.overseeing import oversight_for
from app.bootstrap.pacing.replay_request import ReplayWanted
from app.bootstrap.projecting import keep_process, start_each
from app.bootstrap.recording.recording_request import Wanted
from app.bootstrap.stores import Store, find_history, memory_store, open_store, with_lost_secrets
from app.domain.allocation.reasons.summary import SummaryBounds
from app.domain.controllers import registry
from app.domain.errors import HistoryBroken
from app.ports import Meter
from app.service.alarms import Alarms
from app.service.histories import DEFAULT_HISTORY, Histories
from app.service.replays.overseeing import OverseeingBounds
from app.service.runtime import HistoryRuntime
from app.settings import Settings
from app.web.frame import compile_templates
from app.workers import chronicling, metering, projecting, reopening, supervisor, tending, watching
from app.workers.loop import LoopBounds
from app.workers.supervisor import WorkerSetting
from app.workers.tending import TendingBounds


def supervise(
    histories: Histories,
    store: Store,
    settings: Settings,
    *,
    only: tuple[str, ...] = (),
    without: Sequence[str] = (),
    with_controllers: bool = True,
    with_projector: bool,
    with_chronicles: bool = True,
    meter: Meter | None = None,
) -> None:
    """Start the loops of histories opened from now on: controllers, projector, meter.

    No controller runs on an imported recording: its own controllers have decided already. `only`
    names the controllers that run in this process, `without` those that do not. A process that
    answers no questions keeps no chronicles.
    """
    chosen = supervisor.check_names(only)
    if without:
        left = chosen or frozenset(registry.NAMES)
        chosen = left - supervisor.check_names(without, option="--without")
        with_controllers = with_controllers and bool(chosen)
    setting = WorkerSetting(
        leases=store.leases,
        # Host name and process id repeat in containers; the uid does not.
        holder=f"{socket.gethostname()}-{store.ports.uids.uid()}",
        compilers=ReleaseCompilers(),
        bounds=LoopBounds(
            poll_seconds=settings.poll_seconds,
            lease_seconds=settings.lease_seconds,
            quiet_steps_max=settings.steps_max,
        ),
        summary=SummaryBounds(
            bytes_max=settings.summary_bytes_max, nodes_max=settings.summary_nodes_max
        ),
        only=chosen,
    )

    def start(runtime: HistoryRuntime, tasks: TaskGroup) -> None:
        if with_chronicles:
            tasks.start_soon(chronicling.run, runtime, meter)
        if meter is not None:
            tasks.start_soon(metering.run, runtime, meter)
        if with_controllers and not runtime.info.is_decided_elsewhere:
            tasks.start_soon(supervisor.run, runtime, setting)
        if with_projector:
            make = views_of(runtime.info.settings)
            tasks.start_soon(
                partial(
                    projecting.run,
                    runtime,
                    views=store.views,
                    make=make,
                    bounds=folding_bounds(settings),
                )
            )

    histories.on_open = start
    if with_controllers:
        histories.alarms = Alarms(store.views, setting.only)


def watch_over(
    histories: Histories,
    store: Store,
    settings: Settings,
    names: Sequence[str],
    *,
    meter: Meter,
    note: Callable[[str], None],
) -> None:
    """Judge the named histories as they grow, from when they are opened."""
    start_others = histories.on_open
    bounds = OverseeingBounds(
        page_max=settings.projector_batch_max,
        turn_max=_WATCHED_AT_ONCE,
        poll_seconds=settings.poll_seconds,
    )

    async def judges(runtime: HistoryRuntime) -> Oversight:
        return await oversight_for(store, settings, runtime.info)

    def start(runtime: HistoryRuntime, tasks: TaskGroup) -> None:
        if start_others is not None:
            start_others(runtime, tasks)
        if runtime.info.name in names:
            wake_up = store.ports.wake_up
            run = partial(watching.run, runtime, wake_up, meter, judges, note=note, bounds=bounds)
            tasks.start_soon(run)

    if names:
        histories.on_open = start


async def _open_all(histories: Histories, store: Store, names: Iterable[str]) -> None:
    for name in names:
        await find_history(store, name)
        with suppress(HistoryBroken):
            await histories.wait_open(name)


def _open_watched(
    histories: Histories, store: Store, watched: Sequence[str], tasks: TaskGroup, name: str
) -> None:
    """Open a history that is watched over: nobody may ask for it, so nothing else opens it."""
    if name in watched:
        tasks.start_soon(_open_all, histories, store, (name,))


async def _prepare(store: Store, note: Callable[[str], None]) -> None:
    """Remove what killed processes left; read the key of Secrets, and report unreadable ones."""
    private_folders.remove_left()
    assert store.secrets is not None, "a server keeps what it is told"
    if store.secrets.open() and (names := await with_lost_secrets(store)):
        note(
            f"{store.secrets.place} was missing and has been created; values of Secrets in "
            f"{', '.join(names)} can be read only with the key that encrypted them"
        )


async def serve(
    settings: Settings,
    *,
    workers: bool,
    ready: Callable[[str, Path], None],
    note: Callable[[str], None],
    attached: Sequence[Wanted] = (),
    replay: ReplayWanted | None = None,
    without: Sequence[str] = (),
    watched: Sequence[str] = (),
) -> None:
    """Run `redra up` or `redra serve-replay` until a signal to stop.

    The process has a store, histories, the API, workers, recorders and a replay. Histories in
    `watched` are watched over.
    """
    supervisor.check_names(without, option="--without")
    garbage_collection.expect_large_heap()
    garbage_collection.look_once()
    door = open_door(settings)
    async with AsyncExitStack() as stack:
        listener = stack.enter_context(
            closing(listening.bind(door.address.host, door.address.port))
        )
        store = await stack.enter_async_context(
            open_store(settings, migrate=True, stays=True, note=note)
        )
        await _prepare(store, note)
        companions = Companions(store, settings, attached, replay, note)
        await companions.open(stack)
        telemetry = Telemetry()
        histories = await stack.enter_async_context(open_histories(store, settings))
        supervise(
            histories,
            store,
            settings,
            without=without,
            with_controllers=workers,
            with_projector=workers and settings.projector == "task",
            meter=telemetry,
        )
        watch_over(histories, store, settings, watched, meter=telemetry, note=note)
        # Requests that cannot be fulfilled are refused before a history is made.
        await companions.begin(histories)
        with suppress(HistoryBroken):
            await default_history(histories, settings)
        await _open_all(histories, store, frozenset(watched) - frozenset(companions.names))
        holders = store.leases.holders
        application = _application(histories, settings, door, telemetry, companions, holders)
        server = _Server(_server_config(application, door, settings), application.end_watches)
        listening.take_connections(listener)
        url = _url(door, listener)
        place = stack.enter_context(notice.claimed(settings.data))
        kubeconfig = _publish(url, door, store, settings, place, note)
        garbage_collection.keep_loaded()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_stop_on_signal, server, store.leave)
            tasks.start_soon(store.inherit, note)
            tasks.start_soon(_announce_start, server, lambda: ready(url, kubeconfig))
            kept = (DEFAULT_HISTORY, *companions.names, *watched)
            bounds = tending_bounds(settings)
            tasks.start_soon(partial(tending.run, histories, bounds, adopts=workers, kept=kept))
            begun = partial(_open_watched, histories, store, watched, tasks)
            companions.start(tasks, server.stop, begun)
            if workers and settings.projector == "process":
                tasks.start_soon(keep_process, store, settings, partial(_note_trouble, histories))
            await server.serve(sockets=[listener])
            await companions.stop()
            await _save_snapshots(histories)
            tasks.cancel_scope.cancel()


async def _save_snapshots(histories: Histories) -> None:
    for runtime in histories.open_runtimes():
        await runtime.save_snapshot()


def _application(
    histories: Histories,
    settings: Settings,
    door: Door,
    telemetry: Telemetry,
    companions: Companions,
    holders: Holders,
) -> Application:
    """The application; its requests do not wait longer for a history that is being opened."""
    histories.patience_seconds = settings.opening_seconds
    return create_app(
        histories,
        schemas=schemas.load,
        meter=telemetry,
        limits=api_limits(settings),
        credentials=door.credentials,
        authorization=door.authorization,
        render_metrics=telemetry.render,
        beside=Beside(
            players=companions.players,
            incident=incident_files.incident,
            gallery=incident_files,
            lint=partial(linting.lint_log, settings),
            worker=partial(running.work, settings),
            fleets=fleets.profile_names(),
            holders=holders,
            sign=lambda name, head: heads.own_key(settings).sign(name, head),
        ),
    )


def _note_trouble(histories: Histories, trouble: str | None) -> None:
    for runtime in histories.open_runtimes():
        if trouble is None:
            runtime.troubles.pop("projector", None)
        else:
            runtime.troubles["projector"] = trouble


async def work(
    settings: Settings,
    *,
    only: tuple[str, ...],
    names: tuple[str, ...],
    ready: Callable[[str], None],
) -> None:
    """Run `redra work`: the controllers of the named histories, or all, until a signal to stop.

    Without names, histories made later are included, as long as they are in use.
    """
    garbage_collection.expect_large_heap()
    garbage_collection.look_once()
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(open_store(settings, stays=True, note=ready))
        histories = await stack.enter_async_context(open_histories(store, settings))
        supervise(
            histories, store, settings, only=only, with_projector=False, with_chronicles=False
        )
        await _open_all(histories, store, names)
        await reopening.open_active(histories, settings.history_idle_seconds, names)
        garbage_collection.keep_loaded()
        async with anyio.create_task_group() as tasks:
            tend = partial(
                tending.run,
                histories,
                tending_bounds(settings),
                adopts=True,
                names=names,
                kept=names,
            )
            tasks.start_soon(tend)
            if not only:
                tasks.start_soon(start_each, store, settings, names, tasks)
            ready(f"working on {', '.join(names) or 'every history'}")
            with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
                async for _ in signals:
                    break
            tasks.cancel_scope.cancel()


async def serve_in_memory(
    settings: Settings, *, task_status: TaskStatus[tuple[str, Histories]]
) -> None:
    """Serve histories in memory with API and controllers, for tests; until cancelled.

    Reports the address and the histories when the server accepts connections.
    """
    store = memory_store()
    door = open_door(settings)
    listener = listening.bind(door.address.host, door.address.port)
    try:
        async with open_histories(store, settings) as histories:
            supervise(histories, store, settings, with_projector=False)
            application = create_app(
                histories,
                schemas=schemas.load,
                meter=Telemetry(),
                limits=api_limits(settings),
                credentials=door.credentials,
                authorization=door.authorization,
                beside=Beside(
                    incident=incident_files.incident,
                    gallery=incident_files,
                    lint=partial(linting.lint_log, settings),
                    worker=partial(running.work, settings),
                    fleets=fleets.profile_names(),
                    holders=store.leases.holders,
                ),
            )
            server = _Server(_server_config(application, door, settings), application.end_watches)
            listening.take_connections(listener)
            task_status.started((_url(door, listener), histories))
            await server.serve(sockets=[listener])
    finally:
        listener.close()


def tending_bounds(settings: Settings) -> TendingBounds:
    """The idle time after which histories are closed, and the interval of the checks."""
    return TendingBounds(
        idle_seconds=settings.history_idle_seconds, poll_seconds=settings.poll_seconds
    )


_WATCHED_AT_ONCE = 10
"""Events that are judged before requests are served."""
_KEEP_ALIVE_SECONDS = 120
"""Clients drop idle connections after 90 seconds; the server must not do so just before them."""
_FILES_OF_OURS = 200
"""Files and sockets not used by clients: the database, the log, the program."""


class _Server(uvicorn.Server):
    """A server that leaves signals to this module: the store must outlive the last request.

    `end_watches` ends the requests that would go on for as long as the server.
    """

    def __init__(self, config: uvicorn.Config, end_watches: Callable[[], None]) -> None:
        super().__init__(config)
        self._end_watches = end_watches

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def stop(self) -> None:
        """End after the requests in progress are answered."""
        self.should_exit = True
        self._end_watches()


def _publish(
    url: str,
    door: Door,
    store: Store,
    settings: Settings,
    place: notice.Place,
    note: Callable[[str], None],
) -> Path:
    """Write the kubeconfig of this server and its notice; returns the path of the kubeconfig."""
    access = kubeconfigs.Access(
        url=url, authority=door.authority, token=door.token, client=door.client
    )
    kubeconfig = kubeconfigs.publish(
        settings.data, access, is_shared=store.is_shared, is_taken=place.is_taken, note=note
    )
    place.post(notice.Notice(url=url, kubeconfig=kubeconfig), database=settings.database_url)
    return kubeconfig


async def _stop_on_signal(server: _Server, *begin: Callable[[], None]) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            if server.should_exit:
                server.force_exit = True
            server.stop()
            for each in begin:
                each()


async def _announce_start(server: _Server, announce: Callable[[], None]) -> None:
    while not server.started:  # noqa: ASYNC110 - uvicorn offers a flag, not an event
        await anyio.sleep(0.005)
    announce()
    for _ in compile_templates():
        await anyio.lowlevel.checkpoint()


def _server_config(application: Application, door: Door, settings: Settings) -> uvicorn.Config:
    bounds = ConnectionBounds(
        connections_max=min(settings.clients_max, listening.raise_files_max() - _FILES_OF_OURS),
        header_bytes_max=settings.header_bytes_max,
        header_seconds_max=settings.header_seconds_max,
    )
    context = door.context
    return uvicorn.Config(
        application,
        loop="none",
        http=connection_class(bounds),
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=3,
        ssl_context_factory=None if context is None else lambda _config, _default: context,
    )


def _url(door: Door, listener: socket.socket) -> str:
    """The URL of the server for clients on this machine."""
    host, port = listener.getsockname()[:2]
    if door.address.is_any:
        host = "127.0.0.1"
    scheme = "https" if door.context is not None else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
