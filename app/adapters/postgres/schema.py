"""Bringing a database to this program's schema, and checking that it is there.

empty ──migrate──▶ ours at the newest revision ◀──migrate── ours at an older one
anything else is refused in words and left alone
"""

import importlib.util
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from asyncpg.pool import PoolConnectionProxy
from sqlalchemy import Connection, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from app.adapters.postgres import problems
from app.adapters.postgres.tables import metadata
from app.domain.errors import InputError, WrongDatabase

VERSION_TABLE = "redra_schema"
"""Where the revision stands; a name of our own, so that no other program's is mistaken for it."""

_LOCK = 7_263_172_000_001
"""Advisory lock that lets one process migrate at a time."""

_REVISION = "SELECT version_num FROM redra_schema"
"""The revision of the database."""

_TABLES_PRESENT = """
SELECT relname FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')
"""
"""All tables of the schema that is used."""


def newest() -> str:
    """The revision that this program needs."""
    head = ScriptDirectory.from_config(_config()).get_current_head()
    assert head is not None
    return head


async def migrate(url: str, *, revision: str = "head", lock_timeout_seconds: float = 60.0) -> str:
    """Upgrade (or, to an older `revision`, downgrade) the database; returns where it stands.

    Raises WrongDatabase for a database with tables of somebody else or of a newer redra,
    LogUnavailable when it cannot be reached or another migration takes longer than the time given.
    """
    engine = create_async_engine(_engine_url(url), poolclass=NullPool)
    try:
        async with engine.connect() as connection:
            await connection.execute(text(f"SET lock_timeout = {lock_timeout_seconds * 1000:.0f}"))
            await connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": _LOCK})
            await connection.commit()
            await connection.run_sync(_migrate, revision)
            return await connection.run_sync(_revision) or "base"
    except DBAPIError as problem:
        cause = problem.orig.__cause__ if problem.orig is not None else None
        raise problems.translate(cause or problem) from problem
    except problems.Unreachable as problem:
        raise problems.translate(problem) from problem
    finally:
        await engine.dispose()


async def check(connection: PoolConnectionProxy) -> None:
    """Raise WrongDatabase, saying what to do, unless the schema is the one of this program."""
    present = {row["relname"] for row in await connection.fetch(_TABLES_PRESENT)}
    if VERSION_TABLE not in present:
        raise WrongDatabase(_foreign_text(present))
    found = await connection.fetchval(_REVISION)
    _check_revision(found)
    missing = sorted(set(metadata.tables) - present)
    if missing:
        raise WrongDatabase(
            f"the database is at revision {found} but lacks the tables {', '.join(missing)}; "
            "restore a backup, or use an empty database"
        )


def _check_revision(found: str | None) -> None:
    wanted = newest()
    if found == wanted:
        return
    if found is None or found in _known():
        raise WrongDatabase(
            f"the database is at revision {found or 'base'}, this program needs {wanted}; "
            "run `redra migrate`"
        )
    raise WrongDatabase(
        f"the database is at revision {found}, which this program does not know (it needs "
        f"{wanted}): a newer redra made it, use that one"
    )


def _foreign_text(present: set[str]) -> str:
    if not present:
        return "the database is empty; run `redra migrate`"
    some = ", ".join(sorted(present)[:3])
    return (
        f"the database belongs to something else (it holds {some}); "
        "name an empty one in REDRA_DATABASE_URL"
    )


def _known() -> set[str]:
    return {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}


def _migrate(connection: Connection, revision: str) -> None:
    present = set(connection.execute(text(_TABLES_PRESENT)).scalars())
    found = _revision(connection) if VERSION_TABLE in present else None
    if VERSION_TABLE not in present and present:
        raise WrongDatabase(_foreign_text(present))
    if found is not None and found not in _known():
        _check_revision(found)
    connection.commit()
    config = _config()
    config.attributes["connection"] = connection
    if _is_older(revision, found):
        command.downgrade(config, revision)
    else:
        command.upgrade(config, revision)
    connection.commit()


def _is_older(revision: str, found: str | None) -> bool:
    if revision == "base":
        return True
    if revision == "head" or found is None:
        return False
    ordered = [
        script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()
    ]
    if revision not in ordered:
        raise InputError(f"there is no revision {revision!r}", cure=f"choose of {ordered[::-1]}")
    return ordered.index(revision) > ordered.index(found)


def _revision(connection: Connection) -> str | None:
    found = connection.execute(text(_REVISION)).scalar()
    return None if found is None else str(found)


def _config() -> Config:
    package = importlib.util.find_spec("migrations")
    assert package is not None, "the package `migrations` is installed beside `app`"
    assert package.submodule_search_locations is not None
    config = Config()
    folder = Path(next(iter(package.submodule_search_locations)))
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config


def _engine_url(url: str) -> str:
    return make_url(url).set(drivername="postgresql+asyncpg").render_as_string(hide_password=False)
