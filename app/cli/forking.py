"""`redra fork`: a history that goes on where another stood."""

from pathlib import Path
from typing import Annotated

import typer

from app.cli import console
from app.cli.serving import DataOption, GateOption, QuirkOption


def register(root: typer.Typer) -> None:
    """Add the command of this module."""
    root.command("fork")(fork)


def fork(
    source: Annotated[
        str, typer.Argument(metavar="HISTORY[@MOMENT]", help="Where it begins; its end by default.")
    ],
    history: Annotated[str, typer.Option(help="Name of the fork.")],
    profile: Annotated[
        str | None, typer.Option(help="Kubernetes version that the fork imitates from there on.")
    ] = None,
    gate: GateOption = None,
    quirk: QuirkOption = None,
    apply: Annotated[
        list[Path] | None,
        typer.Option(
            "--apply",
            "-f",
            metavar="FILE",
            help="Apply the objects of a file in the fork; - reads stdin; repeatable.",
        ),
    ] = None,
    delete: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND/[NAMESPACE/]NAME", help="Delete an object in the fork; repeatable."
        ),
    ] = None,
    patch: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND/[NAMESPACE/]NAME=PATCH",
            help="Patch an object in the fork, as `kubectl patch -p` does; repeatable.",
        ),
    ] = None,
    data: DataOption = None,
) -> None:
    """Make a history that goes on where another stood, at once and without copying it.

    The fork is a cluster of its own: `redra up` serves it at /h/NAME/, and its controllers decide
    by its own profile, gates and quirks. Its time goes on from the time of that moment. The source
    never changes, and stays as long as the fork does. Deletions are made first, then patches, then
    files are applied; when one is refused there is no fork.
    """
    from app.bootstrap import managing, process_settings, stores

    settings = process_settings.settings(data=data)
    edits = managing.read_edits(settings, apply or [], delete or [], patch or [])
    switches = managing.read_switches(profile, gate or [], quirk or [])
    name, _, moment = source.partition("@")

    async def run() -> managing.Fork:
        async with stores.open_store(settings) as store:
            return await managing.fork(
                store, settings, name, history, moment, switches=switches, edits=edits
            )

    made = console.run(run)
    console.say(
        f"history {history} goes on after revision {made.revision} of history {name}"
        + (f", with {made.changes} more events" if made.changes else "")
    )
