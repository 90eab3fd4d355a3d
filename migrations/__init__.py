"""The migrations of the schema: Alembic revisions, each with an upgrade and a downgrade.

Belongs here: DDL written out as it was at the time, so that a later change of the declaration
changes no past step. Does not belong here: anything that runs outside of a migration.
`app.adapters.postgres.alembic_runner` runs them and passes the connection; nothing imports them.
"""
