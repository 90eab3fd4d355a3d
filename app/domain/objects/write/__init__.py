"""Writes: what one makes of the objects, from the command to the drafts of events."""
