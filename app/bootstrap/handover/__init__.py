"""Histories handed on in other forms (`exporting`), and run as a test carries them (`stories`)."""
