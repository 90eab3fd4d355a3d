"""Formats in which tools write histories and states, one module for each."""
