"""Writes of objects, from the command to the drafts of events."""
