"""The one place where ports meet adapters: what each process is made of.

Belongs here: opening stores, building rules, starting servers and workers. Does not belong here:
decisions. Only the command line and tests import it.
"""

import ipaddress
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import uvicorn

from app.adapters import schemas
from app.adapters.clock import SystemClock
from app.adapters.memory import (
    MemoryLeases,
    MemoryLog,
    MemoryStore,
    MemoryViewStore,
    MemoryWakeUp,
)
from app.adapters.postgres import schema
from app.adapters.postgres.database import DatabaseBounds, open_database
from app.adapters.postgres.leases import PostgresLeases
from app.adapters.postgres.log import PostgresLog
from app.adapters.postgres.server import EmbeddedServer, running_url
from app.adapters.postgres.views import PostgresViewStore
from app.adapters.postgres.wakeup import PostgresWakeUp
from app.adapters.telemetry import Telemetry
from app.adapters.uids import RandomUids
from app.api.application import create_app
from app.api.limits import ApiLimits
from app.domain.cel import check_admission
from app.domain.errors import InputError, NotFound
from app.domain.log import HistoryInfo
from app.domain.log.projection import Table
from app.domain.objects import profile as profiles
from app.domain.objects import validation
from app.domain.objects.profile import Profile
from app.domain.objects.rules import ExpressionProblem, Rules
from app.ports import EventLog, Leases, ViewStore
from app.service.histories import DEFAULT_HISTORY, Histories
from app.service.runtime import RuntimeBounds, RuntimePorts
from app.service.writing import WriterBounds
from app.settings import Settings
from projections import all_projections


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """An open store: its ports, and where it is."""

    url: str
    ports: RuntimePorts
    leases: Leases
    views: ViewStore

    @property
    def log(self) -> EventLog:
        """The log of all histories."""
        return self.ports.log


def settings(
    *,
    listen: str | None = None,
    data: Path | None = None,
    profile: str | None = None,
) -> Settings:
    """The settings of this process: the environment, overridden by the command line."""
    given = {"listen": listen, "data": data, "profile": profile}
    return Settings(**{name: value for name, value in given.items() if value is not None})


@asynccontextmanager
async def open_store(settings: Settings, *, migrate: bool = True) -> AsyncIterator[Store]:
    """The database of the settings: external, or the embedded server of the data folder.

    When another process runs the embedded server on that folder already, it is shared; otherwise
    it runs until leaving. Raises InputError, LogUnavailable or WrongDatabase, in words.
    """
    async with AsyncExitStack() as stack:
        url = await _database_url(settings, stack)
        if migrate:
            await schema.migrate(url)
        database = await stack.enter_async_context(open_database(url, _database_bounds(settings)))
        views = PostgresViewStore(database)
        ports = RuntimePorts(
            log=PostgresLog(database),
            wake_up=PostgresWakeUp(database),
            clock=SystemClock(),
            uids=RandomUids(),
            views=views,
        )
        yield Store(url=url, ports=ports, leases=PostgresLeases(database), views=views)


def memory_store() -> Store:
    """A store that lives as long as the process; for replays of files and for tests."""
    held = MemoryStore()
    clock = SystemClock()
    wake_up = MemoryWakeUp()
    views = MemoryViewStore(view_tables())
    ports = RuntimePorts(
        log=MemoryLog(held, wake_up.grown),
        wake_up=wake_up,
        clock=clock,
        uids=RandomUids(),
        views=views,
    )
    return Store(url="memory:", ports=ports, leases=MemoryLeases(held, clock), views=views)


@asynccontextmanager
async def open_histories(store: Store, settings: Settings) -> AsyncIterator[Histories]:
    """The histories of a store, following their logs until leaving."""
    histories = Histories(
        ports=store.ports,
        rules=rules_of,
        bounds=runtime_bounds(settings),
        past_views_max=settings.past_views_max,
        objects_max=settings.past_objects_max,
    )
    async with histories.running():
        yield histories


def rules_of(info: HistoryInfo) -> Rules:
    """The rules of a history: its profile, the schemas of that release, validation, CEL."""
    return rules_for(profiles.from_settings(info.settings))


def rules_for(profile: Profile) -> Rules:
    """The rules of a profile."""

    def check_expression(text: str) -> ExpressionProblem | None:
        problem = check_admission(text, gates=profile.enabled)
        if problem is None:
            return None
        return ExpressionProblem(detail=problem.detail, is_too_costly=problem.is_too_costly)

    return Rules(
        profile=profile,
        schemas=schemas.load(profile.version),
        validate_create=validation.validate_create,
        validate_update=validation.validate_update,
        check_expression=check_expression,
    )


def view_tables() -> dict[str, Sequence[Table]]:
    """The tables of every projection, by its name."""
    return {projection.name: projection.tables() for projection in all_projections()}


async def find_history(store: Store, name: str) -> HistoryInfo:
    """What the store knows of a history. Raises NotFound, naming those there are."""
    found = await store.log.find_history(name)
    if found is None:
        names = ", ".join(info.name for info in await store.log.histories()) or "none"
        raise NotFound(
            f"there is no history {name!r} (there are: {names})", resource="histories", name=name
        )
    return found


async def migrate(settings: Settings, revision: str) -> tuple[str, str]:
    """Bring the database to a schema revision; returns where it was and where it is."""
    async with AsyncExitStack() as stack:
        url = await _database_url(settings, stack)
        before = await schema.current(url)
        return before, await schema.migrate(url, revision=revision)


async def default_history(histories: Histories, settings: Settings) -> None:
    """Open the default history, made with the settings' profile when it is missing."""
    profile = Profile(version=settings.profile)
    await histories.open_or_create(DEFAULT_HISTORY, settings=profile.settings())


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


def runtime_bounds(settings: Settings) -> RuntimeBounds:
    """The bounds of one history in one process."""
    return RuntimeBounds(
        writer=WriterBounds(
            batch_max=settings.batch_max,
            queue_max=settings.write_queue_max,
            retries_max=settings.write_retries_max,
        ),
        watch_queue_max=settings.watch_queue_max,
        recent_max=settings.recent_max,
        poll_seconds=settings.poll_seconds,
        snapshot_every=settings.snapshot_every,
    )


def _database_bounds(settings: Settings) -> DatabaseBounds:
    return DatabaseBounds(
        connections_max=settings.connections_max,
        acquire_seconds=settings.connect_timeout_seconds,
        lock_seconds=settings.lock_timeout_seconds,
        statement_seconds=settings.statement_timeout_seconds,
    )


async def _database_url(settings: Settings, stack: AsyncExitStack) -> str:
    if settings.database_url:
        return settings.database_url
    folder = settings.data / "postgres"
    found = running_url(folder)
    if found is not None:
        return found
    programs = Path(settings.postgres_bin) if settings.postgres_bin else None
    server = await stack.enter_async_context(EmbeddedServer(folder, programs=programs))
    return server.url


async def serve(
    settings: Settings, *, workers: bool, ready: Callable[[str, Path], None]
) -> None:
    """`redra up`: store, histories, API and workers, until a signal to stop."""
    host, port = parse_address(settings.listen)
    async with AsyncExitStack() as stack:
        listener = _bind(host, port)
        stack.callback(listener.close)
        store = await stack.enter_async_context(open_store(settings))
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
    token: anonymous
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
    while not server.started:
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
