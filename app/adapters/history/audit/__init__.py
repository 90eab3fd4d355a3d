"""Readers of audit logs: lines, events, and the changes that each event made to objects."""
