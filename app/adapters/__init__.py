"""The adapters: the technical implementations behind the ports.

Belongs here: PostgreSQL, memory, clock, uids, readers and writers of history formats, telemetry.
Does not belong here: decisions. Imported by bootstrap and tests only.
"""
