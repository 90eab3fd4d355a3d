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
        list[str] | None, typer.Option(help="A context for this history; may be repeated.")
    ] = None,
    at: Annotated[
        list[str] | None,
        moments.option(help="... as of this moment; may be repeated."),
    ] = None,
    server: Annotated[str, typer.Option(help="Address to use instead of the server's own.")] = "",
    data: DataOption = None,
) -> None:
    """Print a kubeconfig with a context for each history and moment.

    Address and credentials are those of the server that runs, or ran last, on the data folder.
    Contexts are named as in paths: HISTORY or HISTORY@MOMENT; the past is read-only. A history that
    is not there is refused, as far as the data can be asked.
    """
    from app.bootstrap import kubeconfigs, process_settings

    settings = process_settings.settings(data=data)
    if history and any("@" in name for name in history):
        if len(history) > 1 or at:
            raise InputError(
                "a moment stands behind a history that is named alone",
                place="--history",
                cure="name the moments by --at, or one history at a time",
            )
        name, moment = moments.split(history[0])
        history, at = [name], [moment] if moment else None
    known = console.run(partial(kubeconfigs.absolute, settings, history or (), at or ()))
    text = kubeconfigs.for_moments(
        settings.data / "kubeconfig", histories=history or (), moments=known, server=server
    )
    console.run(partial(kubeconfigs.check_histories, settings, history or (), note=console.note))
    console.say(text.rstrip())
