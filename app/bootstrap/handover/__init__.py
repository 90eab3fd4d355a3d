"""Histories in other forms (`exporting`), and histories that tests carry (`stories`)."""
