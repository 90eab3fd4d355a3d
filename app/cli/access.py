"""`redra kubeconfig`: access of clients to a server, its histories and their past."""

from functools import partial
from typing import Annotated

import typer

from app.cli import console
from app.cli.arguments import moments
from app.cli.serving import DataOption
from app.domain.errors import InputError


def register(root: typer.Typer) -> None:
    """Add the commands of this module."""
    root.command("kubeconfig")(kubeconfig)


def kubeconfig(
    history: Annotated[
        list[str] | None, typer.Option(help="A history to make a context for; repeatable.")
    ] = None,
    at: Annotated[
        list[str] | None,
        moments.option(help="A moment to make a context for; repeatable."),
    ] = None,
    server: Annotated[str, typer.Option(help="Address to use instead of the server's own.")] = "",
    data: DataOption = None,
) -> None:
    """Print a kubeconfig with a context for each history and moment that is named.

    Without --history and --at it has one context, redra, for the default history. The
    address and the credentials are those of the server that runs, or last ran, on the data folder.
    A context is named as in paths: HISTORY or HISTORY@MOMENT. Past moments are read-only. A history
    that does not exist is refused if the data can be read, and so is a moment after its end.
    """
    from app.bootstrap import kubeconfigs, process_settings

    settings = process_settings.settings(data=data)
    if history and any("@" in name for name in history):
        if len(history) > 1 or at:
            raise InputError(
                "HISTORY@MOMENT cannot be combined with other histories or moments",
                place="--history",
                cure="name the moments with --at, or one history at a time",
            )
        name, moment = moments.split(history[0])
        history, at = [name], [moment] if moment else None
    known = console.run(partial(kubeconfigs.absolute, settings, history or (), at or ()))
    text = kubeconfigs.for_moments(
        settings.data / "kubeconfig", histories=history or (), moments=known, server=server
    )
    console.run(
        partial(kubeconfigs.check_contexts, settings, history or (), known, note=console.note)
    )
    console.say(text.rstrip())
