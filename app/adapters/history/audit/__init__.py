"""Audit logs: lines, events, and what each did to which objects."""
