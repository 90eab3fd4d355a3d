"""Opening stores: the external database, the embedded server, or memory."""

import os
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import anyio
import anyio.to_thread
from anyio import CancelScope

from app.adapters.clock import SystemClock
from app.adapters.postgres import migrating, reader, schema, server_folder
from app.adapters.postgres.database import DatabaseBounds, open_database
from app.adapters.postgres.leases import PostgresLeases
from app.adapters.postgres.log import PostgresLog
from app.adapters.postgres.readiness import ReadyBounds, wait_until_ready
from app.adapters.postgres.server_folder import FolderInUse, running_url
from app.adapters.postgres.views import PostgresViewStore
from app.adapters.postgres.wakeup import open_wake_up
from app.adapters.running import known_names
from app.adapters.secret_keys import IMPORTED_FILE, MAIN_FILE, SecretKeys
from app.adapters.uids import RandomUids
from app.bootstrap.asking.queries import no_history
from app.domain.errors import InputError, LogError, LogUnavailable, NotFound, RevisionTooLarge
from app.domain.log import HistoryInfo, ObjectKey, Revision
from app.domain.log.projection import Table
from app.domain.objects.kinds import secret_values
from app.domain.values import api_resources
from app.domain.values.moments import HistoryEnd
from app.ports import EventLog, Leases, RuntimePorts, ViewStore
from app.service import moments
from app.settings import Settings
from projections.tables import OF_PROJECTIONS

_POLL_SECONDS = 1.0
"""The pause between looks at whether the owner is gone; nobody reports its end."""


class SharedServer:
    """The embedded server of a data folder that another process runs at `url`, and this one later.

    Several servers may use one data folder; the first of them runs PostgreSQL. When that one ends,
    by order or not, another takes the folder's lock, runs PostgreSQL at the same address and is the
    owner.
    """

    def __init__(self, folder: Path, url: str, programs: Path | None, users_seconds: float) -> None:
        from app.adapters.postgres.server import EmbeddedServer, ServerBounds

        self.url = url
        self._folder = folder
        bounds = ServerBounds(users_seconds=users_seconds)
        self._own = EmbeddedServer(folder, programs=programs, bounds=bounds, stays=True)
        self._is_leaving = False

    def leave(self) -> None:
        """Record that this process stops, if it has become the owner; it does not become one."""
        self._is_leaving = True
        self._own.leave()

    async def stop(self) -> None:
        """Stop the server, if this process has become the owner."""
        self._is_leaving = True
        with CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._own.stop)

    async def inherit(self, note: Callable[[str], None]) -> None:
        """Run the server once its owner is gone; `note` is called then."""
        said = ""
        while not self._is_leaving:
            await anyio.sleep(_POLL_SECONDS)
            if running_url(self._folder) is not None:
                continue
            try:
                with CancelScope(shield=True):
                    await anyio.to_thread.run_sync(self._own.start)
            except FolderInUse:
                # Its owner starts or stops its server.
                continue
            except (InputError, LogUnavailable) as problem:
                if said != str(problem):
                    said = str(problem)
                    note(f"the database of the folder cannot be run on: {said}")
                continue
            if self._own.url == self.url:
                note("the process that ran the database has ended; this one runs it now")
            else:
                await anyio.to_thread.run_sync(self._own.stop)
                note("the database of the folder has ended; start this server again")
            return


def _do_nothing() -> None:
    """Tell nobody that this process stops."""


async def _inherit_nothing(note: Callable[[str], None]) -> None:
    """Run no database of another process."""


class _Place(NamedTuple):
    """The address of a database, and what `Store` says of an embedded one."""

    url: str
    is_shared: bool = False
    leave: Callable[[], None] = _do_nothing
    inherit: Callable[[Callable[[str], None]], Coroutine[object, object, None]] = _inherit_nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """An open store: its ports and its address.

    `is_shared` means that another process runs the embedded server. `leave` is to be called when
    this process begins to stop, which may take a while: a process that stays then waits for the end
    of this one's embedded server. `inherit` runs the embedded server of another process once that
    has ended. `secrets` are the keys of the data folder; a store in memory has
    none.
    """

    url: str
    is_shared: bool = False
    leave: Callable[[], None] = _do_nothing
    inherit: Callable[[Callable[[str], None]], Coroutine[object, object, None]] = _inherit_nothing
    ports: RuntimePorts
    leases: Leases
    views: ViewStore
    secrets: SecretKeys | None = None

    @property
    def log(self) -> EventLog:
        """The log of all histories."""
        return self.ports.log


def _keep_quiet(_text: str) -> None:
    """Report no waiting."""


@asynccontextmanager
async def open_store(
    settings: Settings,
    *,
    migrate: bool = False,
    make: bool = False,
    stays: bool = False,
    note: Callable[[str], None] = _keep_quiet,
) -> AsyncIterator[Store]:
    """Open the database of the settings: external, or the data folder's embedded server.

    When another process already runs the embedded server on that folder, it is shared; otherwise
    the server runs until the context is left. A server that is being started or stopped is waited
    for, for a bounded time. A process that `stays`, such as a server, does not share the embedded
    server of a command, which ends soon. An embedded database is always migrated to this program's
    schema, an external one only with `migrate`. A data folder without a database gets one only with
    `make` or `migrate`: a command that only reads was given the wrong folder. An external server
    that is starting up is waited for, for a bounded time. `note` is called about waiting. Raises
    InputError, LogUnavailable or WrongDatabase, with a message.
    """
    async with AsyncExitStack() as stack:
        place = await _database_place(settings, stack, note, make=make or migrate, stays=stays)
        url = place.url
        if migrate or not settings.database_url:
            await _migrate(settings, url)
        database = await stack.enter_async_context(open_database(url, database_bounds(settings)))
        wake_up = await stack.enter_async_context(open_wake_up(url))
        views = PostgresViewStore(database, view_tables)
        ports = RuntimePorts(
            log=PostgresLog(database),
            wake_up=wake_up,
            clock=SystemClock(),
            uids=RandomUids(),
            views=views,
        )
        leases = PostgresLeases(database)
        store = Store(
            url=url,
            is_shared=place.is_shared,
            leave=place.leave,
            inherit=place.inherit,
            ports=ports,
            leases=leases,
            views=views,
            secrets=secret_keys(settings),
        )
        yield store
        if not stays and not settings.database_url:
            with suppress(LogError):
                infos = await store.log.histories()
                known_names.keep_histories(settings.data, [info.name for info in infos])


def secret_keys(settings: Settings) -> SecretKeys:
    """The Secret keys of the settings' data folder, or of the configured file."""
    return SecretKeys(
        settings.secrets_key_file or settings.data / MAIN_FILE,
        settings.data / IMPORTED_FILE,
        digests=settings.secrets == "digests",
    )


def memory_store() -> Store:
    """A store that lives as long as the process; for replays of files and for tests."""
    from app.adapters.memory import (
        MemoryLeases,
        MemoryLog,
        MemoryStore,
        MemoryViewStore,
        MemoryWakeUp,
    )

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


async def find_history(store: Store, name: str) -> HistoryInfo:
    """The stored facts about a history. Raises InputError, naming existing histories."""
    known = await store.log.find_history(name)
    if known is None:
        raise no_history(name, [info.name for info in await store.log.histories()])
    return known


async def find_end(store: Store, info: HistoryInfo) -> HistoryEnd:
    """The end from which relative moments of a history count."""
    return await moments.find_end(store.log, info, store.ports.clock.now())


async def find_revision(store: Store, info: HistoryInfo, moment: str, *, option: str) -> Revision:
    """The revision of a moment (empty: the last). Raises InputError naming the option."""
    if not moment:
        return (await store.log.head(info.id)).revision
    try:
        return await moments.find_revision(store.log, info, moment, store.ports.clock.now())
    except RevisionTooLarge as problem:
        raise InputError(problem.message, place=option) from problem


async def find_inside(store: Store, info: HistoryInfo, moment: str, *, option: str) -> Revision:
    """Like `find_revision`, but refuses an instant after a recording's end. Raises InputError."""
    revision = await find_revision(store, info, moment, option=option)
    try:
        if moment:
            await moments.check_inside(store.log, info, moment, store.ports.clock.now())
    except RevisionTooLarge as problem:
        raise InputError(problem.message, place=option) from problem
    return revision


async def check_past(store: Store, info: HistoryInfo, moment: str, *, option: str) -> None:
    """Raise InputError for a moment after a history's end, unless it is an instant before now."""
    await find_revision(store, info, moment, option=option)
    try:
        now = store.ports.clock.now()
        await moments.check_inside(store.log, info, moment, now, is_past=True)
    except RevisionTooLarge as problem:
        raise InputError(problem.message, place=option) from problem


async def find_position(store: Store, info: HistoryInfo, moment: str) -> Revision:
    """The revision after which to continue; it may be in the future."""
    if moments.is_revision(moment):
        return Revision(int(moment))
    return await moments.find_revision(store.log, info, moment, store.ports.clock.now())


async def find_beginning(store: Store, info: HistoryInfo, moment: str) -> Revision:
    """The revision after which a part begins whose first moment is given."""
    return await moments.before(store.log, info, moment, store.ports.clock.now())


async def with_lost_secrets(store: Store) -> list[str]:
    """The histories that now hold a Secret whose key this store does not have."""
    infos = await store.log.histories()
    names = []
    for info in infos:
        with suppress(NotFound):  # without a head, which is named elsewhere
            if await _has_lost_secrets(store, info):
                names.append(info.name)
    return names


async def _has_lost_secrets(store: Store, info: HistoryInfo) -> bool:
    assert store.secrets is not None, "asked of a store with a folder"
    revision = (await store.log.head(info.id)).revision
    group, resource = api_resources.SECRETS
    after: ObjectKey | None = None
    while True:
        page = await store.log.objects_at(
            info.id, revision, group=group, resource=resource, after=after, limit=_PAGE_MAX
        )
        names = {name for event in page for name in secret_values.key_ids(event.object)}
        if any(store.secrets.find(name) is None for name in names):
            return True
        if len(page) < _PAGE_MAX:
            return False
        after = page[-1].key


async def migrate(
    settings: Settings,
    revision: str,
    *,
    note: Callable[[str], None],
    allow: Callable[[list[str]], None],
) -> str:
    """Migrate the database to a schema revision; returns the revision afterwards.

    `allow` is called with the names of histories before they are deleted; it raises InputError to
    refuse.
    """
    async with AsyncExitStack() as stack:
        url = (await _database_place(settings, stack, note, make=True)).url
        if revision == schema.BASE:
            async with reader.owner_connection(url, database_bounds(settings)) as connection:
                names = await schema.history_names(connection)
            if names:
                allow(names)
        return await _migrate(settings, url, revision)


async def _migrate(settings: Settings, url: str, revision: str = "head") -> str:
    return await migrating.migrate(
        url,
        revision=revision,
        reader=settings.reader_url,
        reader_statement_seconds=settings.sql_timeout_seconds,
        bounds=database_bounds(settings),
    )


def view_tables() -> dict[str, Sequence[Table]]:
    """The tables of every projection, by its name."""
    return dict(OF_PROJECTIONS)


def address(settings: Settings) -> str:
    """The address for other SQL clients, as the reader. Raises InputError without a server."""
    url = settings.database_url or running_url(settings.data / "postgres")
    if not url:
        raise InputError(
            "no embedded server runs here",
            place=str(settings.data),
            cure="start `redra up`, or name the folder with --data",
        )
    return reader_address(settings, url)


def reader_address(settings: Settings, url: str) -> str:
    """The reader's address of the database at `url`."""
    return settings.reader_url or reader.reader_url(url)


def database_bounds(settings: Settings) -> DatabaseBounds:
    """The bounds of a process's connections."""
    return DatabaseBounds(
        connections_max=settings.connections_max,
        connect_seconds=settings.connect_timeout_seconds,
        acquire_seconds=settings.connect_timeout_seconds,
        lock_seconds=settings.lock_timeout_seconds,
        statement_seconds=settings.statement_timeout_seconds,
    )


async def _database_place(
    settings: Settings,
    stack: AsyncExitStack,
    note: Callable[[str], None],
    *,
    make: bool,
    stays: bool = False,
) -> _Place:
    """The address of the database: external, or of an embedded server, also of another process."""
    if settings.database_url:
        bounds = ReadyBounds(seconds=settings.connect_timeout_seconds)
        await wait_until_ready(settings.database_url, bounds, note=note)
        return _Place(settings.database_url)
    folder = settings.data / "postgres"
    if not make and not folder.exists():
        raise InputError(
            "the folder has no data of redra",
            place=str(settings.data),
            cure="name the folder with --data, import a recording, or start `redra up`",
        )
    return await _embedded_place(settings, stack, note, stays=stays)


async def _embedded_place(
    settings: Settings, stack: AsyncExitStack, note: Callable[[str], None], *, stays: bool
) -> _Place:
    folder = settings.data / "postgres"
    deadline = anyio.current_time() + settings.folder_wait_seconds
    is_first = True
    while True:
        is_last = anyio.current_time() >= deadline
        url = _shared(folder, stack, stays=stays, is_last=is_last)
        programs = Path(settings.postgres_bin) if settings.postgres_bin else None
        if url is not None and not stays:
            return _Place(url, is_shared=True)
        if url is not None:
            shared = SharedServer(folder, url, programs, settings.folder_wait_seconds)
            stack.push_async_callback(shared.stop)
            return _Place(url, is_shared=True, leave=shared.leave, inherit=shared.inherit)
        # A process that finds a running server does not need the code that starts one.
        from app.adapters.postgres.server import EmbeddedServer, ServerBounds

        bounds = ServerBounds(users_seconds=settings.folder_wait_seconds)
        try:
            server = await stack.enter_async_context(
                EmbeddedServer(folder, programs=programs, bounds=bounds, stays=stays)
            )
        except FolderInUse as problem:
            if is_last:
                raise
            if is_first and stays:
                note(f"waiting: {problem.problem}")
            is_first = False
            await anyio.sleep(_FOLDER_POLL_SECONDS)
        else:
            return _Place(server.url, leave=server.leave)


def _shared(folder: Path, stack: AsyncExitStack, *, stays: bool, is_last: bool) -> str | None:
    """The address of the server that another process runs, held until the stack is left.

    None for a server that this process would outlive, as long as it can wait for its end.
    """
    url = running_url(folder)
    if url is None or (stays and not is_last and not server_folder.owner_stays(folder)):
        return None
    if stays:
        return url
    users = server_folder.use(folder)
    if users is None:
        return None
    if running_url(folder) != url:
        os.close(users)
        return None
    stack.callback(os.close, users)
    return url


_FOLDER_POLL_SECONDS = 0.02
_PAGE_MAX = 500
