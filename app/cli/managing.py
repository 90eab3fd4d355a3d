"""`redra histories create`, `rename`, `copy`, `delete`: the management of histories."""

import sys
from typing import Annotated

import typer

from app.cli import console
from app.cli.arguments import moments
from app.cli.console import Progress
from app.cli.serving import DataOption, GateOption, QuirkOption
from app.domain.errors import InputError
from app.domain.values import counts

NewName = Annotated[str, typer.Argument(help="Name of the new history.")]


def register(group: typer.Typer) -> None:
    """Add the commands of this module to `redra histories`."""
    group.command("create")(create)
    group.command("rename")(rename)
    group.command("copy")(copy)
    group.command("delete")(delete)


def create(
    name: NewName,
    profile: Annotated[
        str | None, typer.Option(help="Kubernetes version that the history imitates.")
    ] = None,
    gate: GateOption = None,
    quirk: QuirkOption = None,
    data: DataOption = None,
) -> None:
    """Make a history with what every new cluster has."""
    from app.bootstrap import managing, process_settings, stores

    settings = process_settings.settings(data=data, profile=profile, gates=gate, quirks=quirk)

    async def run() -> None:
        async with stores.open_store(settings, make=True) as store:
            await managing.create(store, settings, name)

    console.run(run)
    console.say(f"history {name} is made")


def rename(
    name: Annotated[str, typer.Argument(help="Name of the history.")],
    new_name: Annotated[str, typer.Argument(help="Name that it gets.")],
    data: DataOption = None,
) -> None:
    """Give a history another name. Its log stays as it is.

    A server that serves it notices within REDRA_POLL_SECONDS and cuts off who follows it.
    """
    from app.bootstrap import managing, process_settings, stores

    settings = process_settings.settings(data=data)

    async def run() -> None:
        async with stores.open_store(settings) as store:
            await managing.rename(store, name, new_name)

    console.run(run)
    console.say(f"history {name} is called {new_name}")


def copy(
    name: Annotated[str, typer.Argument(help=moments.HISTORY)],
    new_name: NewName,
    to: Annotated[str, moments.option("--to", "--at", help="Up to this moment.")] = "",
    data: DataOption = None,
) -> None:
    """Copy a history, or its beginning: the same events, stamps and hashes.

    Where the source is no recording, a server goes on with the copy as a cluster of its own.
    """
    from app.bootstrap import managing, process_settings, stores

    settings = process_settings.settings(data=data)
    name, to = moments.split(name, to)

    async def run() -> int:
        async with stores.open_store(settings) as store:
            with Progress(f"copying {name}") as progress:
                return await managing.copy(store, name, new_name, to, progress.to)

    events = console.run(run)
    console.say(f"history {new_name}: {counts.of(events, 'event')} of history {name}")


def delete(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME…", help="Names of the histories.")
    ] = None,
    unfinished: Annotated[
        bool,
        typer.Option(
            "--unfinished",
            help="Also what imports and copies left that were killed; none may be running.",
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    data: DataOption = None,
) -> None:
    """Delete histories with their events, views and snapshots. A tombstone stays.

    The tombstone has the name, the last revision and hash, and when and by whom it was deleted:
    `redra histories --deleted`. Export what you may want back.
    """
    from app.bootstrap import managing, process_settings, stores

    if not names and not unfinished:
        raise InputError("no history is named", cure="name one, or use --unfinished")
    settings = process_settings.settings(data=data)

    async def run() -> list[str]:
        async with stores.open_store(settings) as store:
            infos = await managing.find(store, tuple(names or ()), unfinished=unfinished)
            listed = ", ".join(info.name for info in infos)
            if infos and not yes:
                confirm(f"delete {listed} for good?", cure="add --yes")
            await managing.delete(store, infos)
            return [info.name for info in infos]

    for name in console.run(run):
        console.say(f"history {name} is deleted")


def confirm(question: str, *, cure: str) -> None:
    """Ask for confirmation. Raises InputError for a no, and without a terminal."""
    if not sys.stdin.isatty():
        raise InputError(f"{question} nobody can be asked", cure=cure)
    if not typer.confirm(question, err=True):
        raise InputError("nothing was done")
