"""Placeholder."""

import typer


def register(root: typer.Typer) -> None:
    """Add the commands of this module."""
