"""Commands begin fast: what one of them needs is not loaded for all."""

import asyncio
import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.adapters.postgres.database import open_database
from app.adapters.postgres.log import PostgresLog
from app.cli import console
from app.domain.log import chain
from app.domain.values.timestamps import Instant
from tests import draws
from tests.conftest import in_thread

ROOT = Path(__file__).resolve().parent.parent.parent

SHOW = """
import sys
from app.cli.application import application
for line in sys.argv[1:]:
    assert application(line.split(",")) == 0, line
print(*sorted(sys.modules), file=sys.stderr)
"""

OF_SERVERS = (
    "alembic", "app.adapters.memory", "app.adapters.schemas", "app.api", "app.workers", "celpy",
    "cryptography", "http.client", "httptools", "kubernetes_validate", "pydantic", "rich",
    "sqlalchemy", "uvicorn", "yaml",
)  # fmt: skip
"""What a command that only reads the database never needs."""

OF_DECISIONS = (
    "app.domain.allocation", "app.domain.cel", "app.domain.controllers", "app.domain.devices",
    "app.domain.objects.validation", "projections.inventory", "projections.objects", "re2",
)  # fmt: skip
"""What decides or folds everything."""

OF_DATABASES = ("app.adapters", "app.domain.objects", "app.service", "asyncio", "asyncpg")


def loaded_by(*lines: str, **variables: str) -> list[str]:
    """The modules of a process after commands, whose words are separated by commas."""
    done = subprocess.run(
        [sys.executable, "-c", SHOW, *lines],
        cwd=ROOT, env=os.environ | variables, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stderr.split()


def of(modules: list[str], parts: tuple[str, ...]) -> list[str]:
    """The modules that are of one of the packages."""
    return [name for name in modules if name.startswith(tuple(f"{part}." for part in parts))] + [
        name for name in modules if name in parts
    ]


def test_help_loads_no_library_that_works() -> None:
    modules = loaded_by("--help", "histories,--help", "why,--help", "replay,--help")
    assert "app.cli.explaining" in modules
    assert of(modules, (*OF_SERVERS, *OF_DECISIONS, *OF_DATABASES)) == []


@pytest.fixture
def history_url(database_url: str) -> str:
    """A database with an empty history `default`."""

    async def create() -> None:
        async with open_database(database_url) as database:
            await PostgresLog(database).create_history(
                "default", seed=0, settings={}, created=Instant(0),
                hash=chain.genesis(seed=0, settings={}, created=Instant(0)),
            )  # fmt: skip

    in_thread(lambda: asyncio.run(create()))
    return database_url


@draws.in_turn("ways")
@pytest.mark.database
def test_commands_that_read_the_database_load_nothing_that_decides(history_url: str) -> None:
    modules = loaded_by(
        "histories", "histories,-o,json", "log", "timeline", "sql,SELECT count(*) FROM histories",
        REDRA_DATABASE_URL=history_url,
    )  # fmt: skip
    assert "asyncpg" in modules
    assert of(modules, (*OF_SERVERS, *OF_DECISIONS)) == []


ANSWER = """
import sys
from app.bootstrap.answers import direct
from app.bootstrap.rules import rules_for
from app.domain.objects.profile import Profile
rules_for(Profile())
print(*sorted(sys.modules))
"""

OF_WRITES = (
    "app.adapters.webhooks", "app.analysis.blast.compare", "app.analysis.blast.world", "app.api",
    "app.domain.controllers.garbage", "app.domain.controllers.reconcilers",
    "app.domain.controllers.workloads", "app.domain.objects.validation", "httptools", "pydantic",
)  # fmt: skip
"""What checks writes, runs controllers, or computes what a change would do."""

OF_JUDGES = (
    "app.analysis.chronicle", "app.analysis.keeping", "app.analysis.lanes",
    "app.analysis.verify.invariants",
)  # fmt: skip
"""What follows a history from its first event on."""


@draws.in_turn("ways")
def test_explanations_load_nothing_that_checks_writes_runs_controllers_or_judges() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ANSWER], cwd=ROOT, capture_output=True, text=True, check=True
    )
    modules = done.stdout.split()
    assert "app.service.explaining.explainer" in modules
    assert of(modules, (*OF_WRITES, *OF_JUDGES)) == []


@draws.in_turn("ways")
def test_answers_of_the_application_load_no_reader_of_a_recording() -> None:
    program = "import sys, app.bootstrap.answers.served; print(*sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    modules = done.stdout.split()
    assert "app.api.application" in modules
    readers = ("app.adapters.history.formats", "app.adapters.history.joining", "cryptography")
    assert of(modules, readers) == []


LOAD = """
import gc, sys
ordinary = gc.get_threshold()
from app.cli import console, main
sys.argv = ["redra", "--version"]
try:
    main()
except SystemExit:
    pass
def looks():
    return sum(generation["collections"] for generation in gc.get_stats())
before = looks()
import app.bootstrap.answers.served
print(looks() - before)
async def work():
    return gc.get_threshold() == ordinary, gc.get_freeze_count() > 100_000
print(*console.run(work))
"""


@draws.in_turn("ways")
def test_garbage_is_looked_for_when_the_work_begins_and_not_while_modules_are_loaded() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOAD], cwd=ROOT, capture_output=True, text=True, check=True
    )
    _, looks, state = done.stdout.splitlines()
    assert looks == "0"
    assert state == "True True", "ordinary thresholds, and what was loaded is left alone"


@draws.in_turn("ways")
def test_thresholds_that_a_command_sets_stay_when_its_work_begins() -> None:
    before = gc.get_threshold()

    async def thresholds() -> tuple[int, int, int]:
        return gc.get_threshold()

    try:
        console.begin_loading()
        gc.set_threshold(12_345, 6, 7)
        assert console.run(thresholds) == (12_345, 6, 7)
    finally:
        gc.set_threshold(*before)
