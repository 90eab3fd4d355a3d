"""`redra controllers`: the running controllers of a history, and switching them on and off."""

from collections.abc import Sequence
from typing import Annotated

import typer

from app.cli import console
from app.cli.console import NamelessOutputOption, Output
from app.cli.serving import DataOption
from app.domain.errors import InputError


def register(root: typer.Typer) -> None:
    """Add the command of this module."""
    root.command("controllers")(controllers)


def controllers(
    history: Annotated[str, typer.Argument(help="Name of the history.")],
    switches: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME=on|off]…", help="Controllers to switch.")
    ] = None,
    data: DataOption = None,
    output: NamelessOutputOption = Output.TEXT,
) -> None:
    """Show which controllers of a history run and where, and switch them on and off.

    A switch works whether or not a server runs. It is stored in the log, as the annotation
    redra.dev/controllers-off of the namespace kube-system. It applies to every server of the
    history, and clients may set it too. A controller that is switched on again starts from the
    current state.

    RUN BY names the process that runs a controller now, by its host and a random identifier. A
    controller that is on and run by none has no server: none runs, all were started without the
    controller, or none has opened the history because nothing is due in it.
    """
    from app.bootstrap import managing, process_settings, stores
    from app.bootstrap.managing import ControllerState

    settings = process_settings.settings(data=data)
    words = managing.check_controllers(_words(switches or ()))

    async def run() -> list[ControllerState]:
        async with stores.open_store(settings) as store:
            return await managing.switch(store, settings, history, words)

    states = console.run(run)
    if output is Output.JSON:
        console.say_json(
            {
                "history": history,
                "controllers": {each.name: each.state for each in states},
                "runBy": {each.name: each.run_by for each in states if each.run_by},
            }
        )
        return
    rows = [(each.name, each.state, each.run_by or "-") for each in states]
    console.table(("CONTROLLER", "STATE", "RUN BY"), rows)


def _words(switches: Sequence[str]) -> dict[str, bool]:
    """The state of each named controller. Raises InputError when one is named on and off."""
    words: dict[str, bool] = {}
    for text in switches:
        name, is_on = _switch(text)
        if words.setdefault(name, is_on) != is_on:
            raise InputError(f"{name} is to be both on and off", cure="name each controller once")
    return words


def _switch(text: str) -> tuple[str, bool]:
    name, equals, state = text.partition("=")
    if not equals or state not in ("on", "off"):
        raise InputError(f"{text!r} is not NAME=on or NAME=off")
    return name, state == "on"
