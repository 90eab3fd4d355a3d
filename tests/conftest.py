"""Databases for tests: one embedded server per test process, one database per test.

The server starts when the first test asks for it, with a copy of the data that the first process of
a run made: they have a template, migrated once. Each test gets a copy of that and drops it
afterwards. REDRA_DATABASE_URL names a server to use instead; its role must
be allowed to create databases, and only databases named `redra_test_…` are touched there.
"""

import asyncio
import gc
import os
import secrets
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from unittest import mock
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest
from hypothesis import HealthCheck, settings

from app.adapters.postgres import migrating, server
from app.adapters.postgres.database import Database, open_database
from app.adapters.postgres.server import EmbeddedServer
from app.domain.errors import LogUnavailable
from tests import draws, forked_workers, in_memory, prepared_data
from tests.few_messages import FewMessages
from tests.kept import Kept
from tests.order_of_files import FileScheduling, in_order
from tests.run_folder import made_once, run_folder

# How fast examples are drawn is a matter of the machine and of what else runs on it.
settings.register_profile(
    "tests",
    max_examples=draws.examples(100),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tests")

_COLLECT_EVERY = (1_000_000, 20, 10)
"""The thresholds of the garbage collector; with 700 new objects, Python collects all the time.

Events of a history are many objects that live on, and each look at them is in vain. What a module
made is looked for at its end.
"""

_NOTHING_LASTS = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "max_wal_size": "128MB",
    "min_wal_size": "32MB",
}
"""Options of the shared server, whose data need not survive a crash of the machine."""


def pytest_configure(config: pytest.Config) -> None:
    """Creates the folder of the run before other processes start, which use it, too.

    A shell starts what runs in its background with SIGINT ignored, and programs inherit that: the
    tests that interrupt a command would wait for it in vain.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run_folder()
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(FewMessages())
    elif forked_workers.can_be(config):
        config.pluginmanager.register(forked_workers.ForkedWorkers())


def pytest_report_header() -> str:
    """The day of this run, with which it can be repeated."""
    return f"rows that come by day: REDRA_DAY={draws.DAY}"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> FileScheduling | None:
    """Distributes files in less time than xdist does."""
    return FileScheduling(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Excludes the collected tests and all modules from later garbage collections.

    They are a million objects that live to the end; scanning them took a third of the time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(*_COLLECT_EVERY)
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Forgets a module that is skipped as a whole, such as one whose recordings are absent.

    Python would import what it had defined until then into other modules, which would fail.
    """
    report = yield
    if report.skipped and isinstance(collector, pytest.Module):
        path = Path(collector.nodeid).with_suffix("")
        sys.modules.pop(".".join(path.parts), None)
    return report


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what comes with more draws or on another day, and puts the files in order.

    Tests that are named themselves run on any day.
    """
    if not draws.WHOLE:
        left = {item for item in items if item.get_closest_marker(draws.ONLY.name)}
        if not any("::" in argument for argument in config.args):
            left.update(draws.of_other_days(item for item in items if item not in left))
        config.hook.pytest_deselected(items=[item for item in items if item in left])
        items[:] = [item for item in items if item not in left]
    files = [item.nodeid.partition("::")[0] for item in items]
    places = {file: place for place, file in enumerate(in_order(list(dict.fromkeys(files))))}
    items.sort(key=lambda item: places[item.nodeid.partition("::")[0]])


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Frees at the end of a module what its tests made once, and its data folders in memory."""
    if nextitem is None or nextitem.path != item.path:
        Kept.forget()
        prepared_data.forget()


def with_database(url: str, name: str) -> str:
    """The address of another database of the same server."""
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


def in_thread(work: Callable[[], object]) -> None:
    """Runs asynchronous work from a synchronous fixture, in a thread without an event loop."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()


async def say(url: str, statement: str) -> None:
    """Executes one statement on its own connection."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


@pytest.fixture(scope="session")
def server_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the maintenance database of a server, which has no data of redra."""
    given = os.environ.get("REDRA_DATABASE_URL")
    if given:
        yield given
        return
    with quick_folder(tmp_path_factory) as folder:
        shutil.copytree(made_once("servers", _make_server) / "server", folder / "server")
        with serving(folder) as url:
            yield with_database(url, "postgres")


_TEMPLATE = "redra_test_template"
"""The migrated, empty database of a server that this module makes."""


def _make_server(folder: Path) -> None:
    with serving(folder) as url:
        create = f"CREATE DATABASE {_TEMPLATE}"
        in_thread(lambda: asyncio.run(say(with_database(url, "postgres"), create)))
        in_thread(lambda: asyncio.run(migrating.migrate(with_database(url, _TEMPLATE))))


@contextmanager
def quick_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for a server, in memory where there is room."""
    folder = in_memory.new_folder()
    if folder is None:
        yield tmp_path_factory.mktemp("postgres")
        return
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """The address of a server of PostgreSQL whose data are in this folder."""
    shared = EmbeddedServer(folder / "server")
    try:
        with mock.patch.dict(server.OPTIONS, _NOTHING_LASTS):
            shared.start()
    except LogUnavailable as problem:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(problem))
    try:
        yield shared.url
    finally:
        shared.stop()


@contextmanager
def new_database(server_url: str, name: str = "", template: str = "template1") -> Iterator[str]:
    """The address of a new database, which is a copy of `template` and dropped after the block.

    Copying the files takes a third of the work of logging each block, which is the default.
    """
    name = f"redra_test_{secrets.token_hex(8)}_{name}"
    make = f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy"
    drop = f"DROP DATABASE {name} WITH (FORCE)"
    in_thread(lambda: asyncio.run(say(server_url, make)))
    yield with_database(server_url, name)
    in_thread(lambda: asyncio.run(say(server_url, drop)))


@pytest.fixture(scope="session")
def template(server_url: str) -> Iterator[str]:
    """The name of a migrated, empty database that tests copy."""
    if not os.environ.get("REDRA_DATABASE_URL"):
        yield _TEMPLATE
        return
    with new_database(server_url, "template") as url:
        in_thread(lambda: asyncio.run(migrating.migrate(url)))
        yield urlsplit(url).path.removeprefix("/")


@pytest.fixture
def empty_database_url(server_url: str) -> Iterator[str]:
    """The address of a database without tables, for one test."""
    with new_database(server_url) as url:
        yield url


@pytest.fixture
def database_url(server_url: str, template: str) -> Iterator[str]:
    """The address of a migrated database, for one test."""
    with new_database(server_url, template=template) as url:
        yield url


@pytest.fixture(scope="module")
def module_database_url(server_url: str, template: str) -> Iterator[str]:
    """The address of a migrated database for one module, whose tests do not change it."""
    with new_database(server_url, template=template) as url:
        yield url


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """A migrated database for one test, opened."""
    async with open_database(database_url) as opened:
        yield opened
