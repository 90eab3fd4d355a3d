"""`redra histories create`, `rename`, `copy`, `delete`: the management of histories."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli import console
from app.cli.arguments import moments
from app.cli.connecting import answering, reading
from app.cli.connecting.answering import AnswerSource
from app.cli.connecting.reading import ServedCommand
from app.cli.console import ProgressBar
from app.cli.serving import DataOption, GateOption, QuirkOption
from app.domain.errors import Conflict, InputError
from app.domain.values import counts

if TYPE_CHECKING:  # heavy: not needed for a command without a server
    from app.bootstrap.asking.servers import AskedServer

NewName = Annotated[str, typer.Argument(help="Name of the new history.")]


def register(group: typer.Typer) -> None:
    """Add the commands of this module to `redra histories`."""
    group.command("create", cls=ServedCommand)(create)
    group.command("rename")(rename)
    group.command("copy")(copy)
    group.command("delete", cls=ServedCommand)(delete)


def create(
    name: NewName,
    profile: Annotated[
        str | None, typer.Option(help="Kubernetes version that the history imitates.")
    ] = None,
    gate: GateOption = None,
    quirk: QuirkOption = None,
    data: DataOption = None,
) -> None:
    """Create a history with the objects that every new cluster has.

    A server that you name creates it among its own histories, and you need the right to do that
    there.
    """
    from app.bootstrap import history_settings, managing, process_settings, stores

    server = AnswerSource(data).named_server
    if server is not None:
        _create_there(server, name, profile=profile or "", gates=gate or (), quirks=quirk or ())
        return
    settings = process_settings.settings(data=data, profile=profile, gates=gate, quirks=quirk)
    history_settings.check_new(name, settings)

    async def run() -> None:
        async with stores.open_store(settings, make=True) as store:
            await managing.create(store, settings, name)

    console.run(run)
    console.say(f"history {name} is created")


def rename(
    name: Annotated[str, typer.Argument(help="Name of the history.")],
    new_name: Annotated[str, typer.Argument(help="New name.")],
    data: DataOption = None,
) -> None:
    """Rename a history. Its log stays as it is.

    The history `default` keeps its name while a server runs, which serves it at /.
    A server of the history notices within REDRA_POLL_SECONDS and ends the watches and streams of
    its clients.
    """
    from app.bootstrap import managing, process_settings, stores

    _refuse_server("rename")
    settings = process_settings.settings(data=data)

    async def run() -> None:
        async with stores.open_store(settings) as store:
            await managing.rename(store, settings, name, new_name)

    console.run(run)
    console.say(f"history {name} is renamed to {new_name}")


def copy(
    name: Annotated[str, typer.Argument(help=moments.HISTORY)],
    new_name: NewName,
    to: Annotated[str, moments.option("--to", "--at", help="Up to this moment.")] = "",
    data: DataOption = None,
) -> None:
    """Copy a history, or its beginning.

    The copy has the same events, stamps and hashes. If the source is not a recording, a server
    continues the copy as a cluster of its own. A moment in the middle of a write of a controller
    means its end.
    """
    from app.bootstrap import managing, process_settings, stores
    from app.service import copying

    _refuse_server("copy")
    settings = process_settings.settings(data=data)
    name, to = moments.split(name, to)

    async def run() -> tuple[int, int]:
        async with stores.open_store(settings) as store:
            (until,) = (await answering.stored_moments(store, name, to)).moments
            with ProgressBar(f"copying {name}") as progress:
                return await managing.copy(store, name, new_name, until, progress.to)

    named, end = console.run(run)
    console.say(f"history {new_name}: {counts.of(end, 'event')} of history {name}")
    if end != named:
        console.note(copying.WITHIN.format(named=named, end=end))


def delete(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME…", help="Names of the histories.")
    ] = None,
    unfinished: Annotated[
        bool,
        typer.Option(
            "--unfinished",
            help="Also delete the remains of killed imports and copies; none may be running.",
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    data: DataOption = None,
) -> None:
    """Delete histories with their events, views and snapshots. A tombstone remains.

    The tombstone has the name, the last revision and hash, the time of the deletion, and the user
    who made it; `redra histories --deleted` lists tombstones. Export a history first if you may
    need it again. The history `default` cannot be deleted while a server runs. A server that you
    name deletes its own histories, and you need the right to do that there.
    """
    from app.bootstrap import managing, process_settings, stores

    if not names and not unfinished:
        raise InputError("no history is named", cure="name one, or use --unfinished")
    server = AnswerSource(data).named_server
    if server is not None:
        if unfinished:
            raise InputError(
                "a server does not know the remains of killed commands",
                place="--unfinished",
                cure="run the command on the machine that has the data",
            )
        _delete_there(server, tuple(dict.fromkeys(names or ())), yes=yes)
        return
    settings = process_settings.settings(data=data)

    async def run() -> list[str]:
        async with stores.open_store(settings) as store:
            infos = await managing.find(store, settings, tuple(names or ()), unfinished=unfinished)
            listed = ", ".join(info.name for info in infos)
            if infos and not yes:
                confirm(_question(listed), cure="add --yes")
            await managing.delete(store, infos)
            return [info.name for info in infos]

    for name in console.run(run):
        console.say(f"history {name} is deleted")


def _refuse_server(what: str) -> None:
    """Raise InputError for a server that was named to `redra histories`."""
    if reading.chosen():
        raise InputError(
            f"`histories {what}` works on the data",
            place=f"--{next(iter(reading.chosen()))}",
            cure="leave it out, or use POST /redra/v1/histories there",
        )


def _create_there(
    server: "AskedServer", name: str, *, profile: str, gates: Sequence[str], quirks: Sequence[str]
) -> None:
    """Create a history of a server, with a release and gates."""
    from app.bootstrap import history_settings

    if quirks:
        raise InputError(
            "a server creates histories without switched quirks",
            place="--quirk",
            cure="create the history without, and fork it with --quirk there",
        )
    switches = history_settings.switches(",".join(gates), place="--gate")
    server.start("/redra/v1/histories", {"name": name, "profile": profile, "gates": switches})
    with reading.rendering():
        console.say(f"history {name} is created")


def _delete_there(server: "AskedServer", names: Sequence[str], *, yes: bool) -> None:
    """Delete histories of a server; none if one of them is missing there."""
    for name in names:
        server.facts(name)
    if not yes:
        confirm(f"{server.connection.url}: {_question(', '.join(names))}", cure="add --yes")
    for name in names:
        try:
            server.delete(name)
        except Conflict as refusal:
            raise InputError(refusal.message) from refusal
        with reading.rendering():
            console.say(f"history {name} is deleted")


def _question(names: str) -> str:
    return f"delete {names} for good?"


def confirm(question: str, *, cure: str) -> None:
    """Ask for confirmation. Raises InputError for a no, and without a terminal."""
    if not sys.stdin.isatty():
        raise InputError(f"{question} there is no terminal to ask for confirmation", cure=cure)
    if not typer.confirm(question, err=True):
        raise InputError("nothing was done")
