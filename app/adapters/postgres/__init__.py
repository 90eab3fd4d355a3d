"""The store in PostgreSQL: schema, event log, wake-up, leases, views, and a server of our own.

Belongs here: everything that knows SQL, asyncpg, SQLAlchemy or PostgreSQL's programs. Errors of
the driver become ours in `problems.py` and nowhere else. Does not belong here: what events mean,
and decisions. Imported by bootstrap, migrations and tests.
"""
