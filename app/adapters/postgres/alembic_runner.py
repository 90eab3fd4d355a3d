"""Migrations with Alembic. The import is slow, so `migrating` imports it only when needed."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from app.adapters.postgres import problems, schema
from app.domain.errors import InputError, WrongDatabase

_LOCK = 7_263_172_000_001
"""Advisory lock that lets one process migrate at a time."""


async def migrate(url: str, *, revision: str, lock_timeout_seconds: float) -> str:
    """Upgrade or downgrade to `revision`; returns the revision of the database afterwards."""
    address = make_url(url).set(drivername="postgresql+asyncpg")
    engine = create_async_engine(address, poolclass=NullPool)
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


def _migrate(connection: Connection, revision: str) -> None:
    known = schema.revisions()
    if revision not in (*known, "head", "base"):
        raise InputError(
            f"there is no schema revision {revision!r}", cure=f"choose one of {', '.join(known)}"
        )
    present = set(connection.execute(text(schema.TABLES_PRESENT)).scalars())
    stored = _revision(connection) if schema.VERSION_TABLE in present else None
    if schema.VERSION_TABLE not in present and present:
        raise WrongDatabase(schema.foreign_text(present))
    if stored is not None and stored not in known:
        schema.check_revision(stored)
    connection.commit()
    config = _config()
    config.attributes["connection"] = connection
    if revision != "head" and (revision == "base" or revision < (stored or "")):
        command.downgrade(config, revision)
    else:
        command.upgrade(config, revision)
    connection.commit()


def _revision(connection: Connection) -> str | None:
    revision = connection.execute(text(schema.REVISION)).scalar()
    return None if revision is None else str(revision)


def _config() -> Config:
    config = Config()
    folder: Path = schema.migrations_folder()
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
