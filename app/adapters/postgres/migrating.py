"""Migration of a database to a revision of the schema, and the rights of the reading role."""

import asyncpg

from app.adapters.postgres import reader as readers
from app.adapters.postgres import schema
from app.adapters.postgres.database import DatabaseBounds
from app.domain.errors import WrongDatabase


async def migrate(
    url: str,
    *,
    revision: str = "head",
    lock_timeout_seconds: float = 60.0,
    reader: str = "",
    reader_statement_seconds: float = 60.0,
    bounds: DatabaseBounds = DatabaseBounds(),
) -> str:
    """Upgrade (or, to an older `revision`, downgrade) the database; returns its new revision.

    At the newest revision the role for queries gets its rights (see `reader.py`); `reader` is the
    address of this role when the settings name one.

    Raises WrongDatabase for a database with tables of another program or of a newer redra,
    InputError for an unknown revision, LogUnavailable when the database cannot be reached or
    another migration takes longer than the lock timeout.
    """
    if revision == "head":
        async with readers.owner_connection(url, bounds) as connection:
            if await _is_newest(connection):
                await readers.prepare_on(
                    connection, url, named=reader, statement_seconds=reader_statement_seconds
                )
                return schema.newest()
    # Imported here because it takes longer than all other steps of a start.
    from app.adapters.postgres import alembic_runner

    stands = await alembic_runner.migrate(
        url, revision=revision, lock_timeout_seconds=lock_timeout_seconds
    )
    if stands == schema.newest():
        await readers.prepare(
            url, named=reader, statement_seconds=reader_statement_seconds, bounds=bounds
        )
    return stands


async def _is_newest(connection: asyncpg.Connection) -> bool:
    try:
        await schema.check(connection)
    except WrongDatabase:
        return False
    return True
