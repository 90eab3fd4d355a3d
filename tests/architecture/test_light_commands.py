"""Commands begin fast: what one of them needs is not loaded for all."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.adapters.postgres.database import open_database
from app.adapters.postgres.log import PostgresLog
from app.domain.log import chain
from app.domain.values.timestamps import Instant
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


@pytest.mark.database
def test_commands_that_read_the_database_load_nothing_that_decides(history_url: str) -> None:
    modules = loaded_by(
        "histories", "histories,-o,json", "log", "timeline", "sql,SELECT count(*) FROM histories",
        REDRA_DATABASE_URL=history_url,
    )  # fmt: skip
    assert "asyncpg" in modules
    assert of(modules, (*OF_SERVERS, *OF_DECISIONS)) == []
