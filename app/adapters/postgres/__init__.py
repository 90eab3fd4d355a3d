"""The store in PostgreSQL: schema, event log, wake-up, leases, views, and an embedded server.

Belongs here: code that knows SQL, asyncpg, SQLAlchemy or PostgreSQL's programs. Only `problems.py`
translates errors of the driver into redra's errors. Does not belong here: the meaning of events,
and decisions. Imported by bootstrap, migrations and tests.
"""
