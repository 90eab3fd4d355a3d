"""The schema that this program needs, and the check whether a database has it.

    empty ──migrate──▶ ours at the newest revision ◀──migrate── ours at an older one
    any other database is refused with a message and not changed

A start with the right schema needs neither Alembic nor SQLAlchemy, and does not load them;
`migrating` changes the schema of a database.
"""

import importlib.util
import re
from functools import cache
from pathlib import Path

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from app.adapters.postgres.names import view_name
from app.domain.errors import WrongDatabase
from projections.tables import ALL as VIEW_TABLES

VERSION_TABLE = "redra_schema"
"""The table that holds the revision; its name differs from those that other programs use."""

LOG_TABLES = (
    "checkpoints",
    "histories",
    "leases",
    "log_events",
    "log_heads",
    "signed_heads",
    "snapshots",
    "tombstones",
)
"""The tables that every history needs; the view tables come from the projections."""

BASE = "base"
"""The revision of an empty schema; a downgrade to it deletes every history."""

HISTORY_NAMES = "SELECT name FROM histories ORDER BY name"
"""All histories, including those that are still being created."""

REVISION = "SELECT version_num FROM redra_schema"
"""The revision of the database."""

TABLES_PRESENT = """
SELECT relname FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')
"""
"""All tables of the current schema."""

_FILE = re.compile(r"m(\d{4})_\w+\.py")


async def history_names(connection: asyncpg.Connection) -> list[str]:
    """The names of all histories; none when the database has no such table."""
    try:
        return [row["name"] for row in await connection.fetch(HISTORY_NAMES)]
    except asyncpg.UndefinedTableError:
        return []


async def check(connection: PoolConnectionProxy | asyncpg.Connection) -> None:
    """Raise WrongDatabase, with advice, unless the schema is the one that this program needs."""
    present = {row["relname"] for row in await connection.fetch(TABLES_PRESENT)}
    if VERSION_TABLE not in present:
        raise WrongDatabase(foreign_text(present))
    revision = await connection.fetchval(REVISION)
    check_revision(revision)
    missing = sorted(tables() - present)
    if missing:
        raise WrongDatabase(
            f"the database is at revision {revision} but lacks the tables {', '.join(missing)}; "
            "restore a backup, or use an empty database"
        )


def tables() -> set[str]:
    """The names of all tables that this program uses."""
    return {*LOG_TABLES, *(view_name(table.name) for table in VIEW_TABLES)}


def check_revision(revision: str | None) -> None:
    """Raise WrongDatabase unless `revision` is the newest revision."""
    if revision == newest():
        return
    if revision is None or revision in revisions():
        raise WrongDatabase(
            f"the database is at revision {revision or 'base'}, this program needs {newest()}; "
            "run `redra migrate`"
        )
    raise WrongDatabase(
        f"the database is at revision {revision}, which this program does not know (it needs "
        f"{newest()}): a newer version of redra made it; use that version"
    )


def foreign_text(present: set[str]) -> str:
    """The message about a database without our version table."""
    if not present:
        return "the database is empty; run `redra migrate`"
    some = ", ".join(sorted(present)[:3])
    return (
        f"the database belongs to another program (it has {some}); name an empty one in "
        "REDRA_DATABASE_URL"
    )


@cache
def revisions() -> tuple[str, ...]:
    """All revisions in order: the numbers of the modules in `migrations/versions`."""
    names = sorted(path.name for path in (migrations_folder() / "versions").glob("m*.py"))
    return tuple(match.group(1) for name in names if (match := _FILE.fullmatch(name)) is not None)


def newest() -> str:
    """The revision that this program needs."""
    return revisions()[-1]


def migrations_folder() -> Path:
    """The folder of the package `migrations`, installed beside `app`; does not import it."""
    package = importlib.util.find_spec("migrations")
    assert package is not None
    assert package.submodule_search_locations is not None
    return Path(next(iter(package.submodule_search_locations)))
