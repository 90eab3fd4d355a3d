"""The schema's history: Alembic revisions, each with a way up and a way down.

Belongs here: DDL as it was at the time, written out, so that a later change of the declaration
changes no past step. Does not belong here: anything that runs outside a migration. Run by
`app.adapters.postgres.schema`, which gives the connection; nothing imports it.
"""
