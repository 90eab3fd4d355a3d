"""`redra blast`: what a change would do, before it is made."""

from pathlib import Path
from typing import Annotated

import typer

from app.cli import console
from app.cli.console import Output, OutputOption
from app.cli.serving import DataOption
from app.domain.errors import InputError


def register(root: typer.Typer) -> None:
    """Add the commands of this module."""
    root.command("blast")(blast)


def blast(
    file: Annotated[
        list[Path] | None,
        typer.Option("--file", "-f", help="Proposed objects, YAML or JSON; - reads stdin."),
    ] = None,
    delete: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND/NAME", help="An object that would be deleted; repeatable."),
    ] = None,
    cordon: Annotated[
        list[str] | None,
        typer.Option(metavar="NODE", help="A node that would be cordoned; repeatable."),
    ] = None,
    history: Annotated[str, typer.Option(help="Name of the history.")] = "default",
    at: Annotated[
        str, typer.Option(help="Revision or instant, such as 42 or 2026-01-02T03:04:05Z.")
    ] = "",
    data: DataOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Tell what a change would do: pods evicted, claims, devices, pools and classes concerned.

    DeviceTaintRules, DeviceClasses, ResourceSlices, ResourceSlicePatches and Nodes can be proposed,
    pods deleted and nodes cordoned. Nothing is written. A proposal that the API would refuse ends
    with exit code 2.
    """
    from app.analysis.blast import text
    from app.analysis.blast.radius import BlastRadius
    from app.bootstrap import process_settings, stores
    from app.bootstrap.answers import blasts

    settings = process_settings.settings(data=data)
    changes = blasts.read_changes(settings, file or [], delete or [], cordon or [])
    if not changes:
        cure = "give -f FILE, --delete KIND/NAME or --cordon NODE"
        raise InputError("nothing is proposed", cure=cure)

    async def ask() -> BlastRadius:
        async with stores.open_store(settings) as store:
            return await blasts.blast(store, settings, history, at, changes)

    answer = console.run(ask)
    if output is Output.JSON:
        console.say_json(answer)
        return
    for line in text.lines(answer, settings.blast_examples_max):
        console.say(line)
