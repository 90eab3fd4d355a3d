"""Runs migrations on the connection that the code hands over; knows no address of its own."""

from alembic import context
from sqlalchemy import Connection

from app.adapters.postgres.schema import VERSION_TABLE
from app.adapters.postgres.tables import metadata


def run() -> None:
    """Each migration in its own transaction: a failed one leaves the last good revision."""
    connection = context.config.attributes.get("connection")
    assert isinstance(connection, Connection), "use `redra migrate`, which opens the connection"
    context.configure(
        connection=connection,
        target_metadata=metadata,
        version_table=VERSION_TABLE,
        transaction_per_migration=True,
    )
    with context.begin_transaction():
        context.run_migrations()


run()
