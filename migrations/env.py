"""Runs migrations on a connection that the caller passes; it has no database address of its own."""

from alembic import context
from sqlalchemy import Connection

from app.adapters.postgres.schema import VERSION_TABLE
from app.adapters.postgres.tables import metadata


def run() -> None:
    """Run each migration in its own transaction: a failure leaves the last good revision."""
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
