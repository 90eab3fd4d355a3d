"""The processes that stay: `redra up` and `redra work`."""

import ipaddress
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from pathlib import Path

import anyio
import uvicorn
from anyio.abc import TaskGroup

from app.adapters import schemas
from app.adapters.telemetry import Telemetry
from app.api.application import create_app
from app.api.authentication import ADMIN, Credentials
from app.api.limits import ApiLimits
from app.bootstrap.histories import (
    default_history,
    folding_bounds,
    open_histories,
    views_of,
)
from app.bootstrap.stores import Store, open_store
from app.domain.devices.cel_selectors import CelCompiler
from app.domain.errors import InputError
from app.service.histories import Histories
from app.service.runtime import HistoryRuntime
from app.settings import Settings
from app.workers import projecting, supervisor
from app.workers.loop import LoopBounds
from app.workers.supervisor import WorkerSetting

LOCAL_TOKEN = "local"  # noqa: S105 - not a secret: it names who asks, on loopback only
"""The token in the kubeconfig of a server without authentication; clients insist on having one."""


def parse_address(text: str) -> tuple[str, int]:
    """Host and port of a listen address. Only loopback is served without TLS and authentication."""
    host, colon, port = text.rpartition(":")
    host = host.strip("[]")
    if not colon or not port.isdigit() or int(port) > 65_535:
        raise InputError(
            f"{text!r} is not an address", place="--listen", cure="write it as 127.0.0.1:8080"
        )
    try:
        is_loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback:
        raise InputError(
            f"{host!r} is not a loopback address, and this server has no authentication",
            place="--listen",
            cure="listen on 127.0.0.1 and put a tunnel or proxy with authentication before it",
        )
    return host, int(port)


def supervise(
    histories: Histories, store: Store, settings: Settings, *, only: tuple[str, ...]
) -> None:
    """Start the controllers and the projector of every history that is opened from now on.

    An imported recording is not worked on: its controllers have decided already.
    """
    setting = WorkerSetting(
        leases=store.leases,
        holder=f"{socket.gethostname()}-{os.getpid()}",
        compiler=CelCompiler(),
        bounds=LoopBounds(
            poll_seconds=settings.poll_seconds,
            lease_seconds=settings.lease_seconds,
            quiet_steps_max=settings.steps_max,
        ),
        only=supervisor.check_names(only),
    )

    def start(runtime: HistoryRuntime, tasks: TaskGroup) -> None:
        if not runtime.info.settings.get("recorded"):
            tasks.start_soon(supervisor.run, runtime, setting)
        if not only:
            make = views_of(runtime.rules.profile)
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


async def serve(settings: Settings, *, workers: bool, ready: Callable[[str, Path], None]) -> None:
    """`redra up`: store, histories, API and workers, until a signal to stop."""
    host, port = parse_address(settings.listen)
    async with AsyncExitStack() as stack:
        listener = _bind(host, port)
        stack.callback(listener.close)
        store = await stack.enter_async_context(open_store(settings, migrate=True))
        telemetry = Telemetry()
        histories = await stack.enter_async_context(open_histories(store, settings))
        if workers:
            supervise(histories, store, settings, only=())
        await default_history(histories, settings)
        for info in await store.log.histories():
            await histories.open(info.name)
        application = create_app(
            histories,
            schemas=schemas.load,
            meter=telemetry,
            limits=_api_limits(settings),
            credentials=Credentials(tokens={LOCAL_TOKEN: ADMIN}),
            render_metrics=telemetry.render,
        )
        server = _Server(
            uvicorn.Config(
                application,
                loop="none",
                http="httptools",
                ws="none",
                lifespan="off",
                access_log=False,
                log_config=None,
                timeout_graceful_shutdown=3,
            )
        )
        bound = listener.getsockname()
        shown = f"[{bound[0]}]" if ":" in bound[0] else bound[0]
        url = f"http://{shown}:{bound[1]}"
        kubeconfig = write_kubeconfig(settings.data / "kubeconfig", url)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_stop_on_signal, server)
            tasks.start_soon(_tell_when_started, server, lambda: ready(url, kubeconfig))
            await server.serve(sockets=[listener])
            for runtime in histories.open_runtimes():
                await runtime.save_snapshot()
            tasks.cancel_scope.cancel()


async def work(
    settings: Settings,
    *,
    only: tuple[str, ...],
    names: tuple[str, ...],
    ready: Callable[[str], None],
) -> None:
    """`redra work`: the controllers of some or all histories, until a signal to stop."""
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(open_store(settings))
        histories = await stack.enter_async_context(open_histories(store, settings))
        supervise(histories, store, settings, only=only)
        wanted = names or tuple(info.name for info in await store.log.histories())
        for name in wanted:
            await histories.open(name)
        ready(f"working on {', '.join(wanted) or 'no history yet'}")
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async for _ in signals:
                return


def write_kubeconfig(path: Path, url: str) -> Path:
    """A kubeconfig for the default history of a server without authentication."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = f"""apiVersion: v1
kind: Config
clusters:
- name: redra
  cluster:
    server: {url}
users:
- name: redra
  user:
    token: {LOCAL_TOKEN}
contexts:
- name: redra
  context:
    cluster: redra
    user: redra
current-context: redra
"""
    path.write_text(text)
    return path


class _Server(uvicorn.Server):
    """Signals are ours: the store must outlive the last request."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _stop_on_signal(server: _Server) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            if server.should_exit:
                server.force_exit = True
            server.should_exit = True


async def _tell_when_started(server: _Server, tell: Callable[[], None]) -> None:
    while not server.started:  # noqa: ASYNC110 - uvicorn offers a flag, not an event
        await anyio.sleep(0.005)
    tell()


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as problem:
        listener.close()
        raise InputError(
            f"{host}:{port} cannot be listened on: {problem.strerror}",
            place="--listen",
            cure="choose another port, or 0 for a free one",
        ) from problem
    return listener


def _api_limits(settings: Settings) -> ApiLimits:
    return ApiLimits(
        body_bytes_max=settings.body_bytes_max,
        depth_max=settings.yaml_depth_max,
        patch_operations_max=settings.patch_operations_max,
        watchers_max=settings.watchers_max,
        watch_seconds_max=settings.watch_seconds_max,
    )
