"""`redra blast`: the effects of a change before it is made."""

from pathlib import Path
from typing import Annotated

import typer

from app.cli import console
from app.cli.arguments import moments, objects
from app.cli.connecting import answering, reading
from app.cli.connecting.answering import AnswerSource
from app.cli.connecting.reading import ReadingCommand
from app.cli.console import Output, OutputOption
from app.cli.looking.showing import HistoryArgument
from app.cli.serving import DataOption
from app.domain.errors import InputError, Rejected


def register(root: typer.Typer) -> None:
    """Add the commands of this module."""
    root.command("blast", cls=ReadingCommand)(blast)


def blast(
    named: HistoryArgument = "",
    file: Annotated[
        list[Path] | None,
        typer.Option("--file", "-f", help="Proposed objects, YAML or JSON; - reads stdin."),
    ] = None,
    delete: Annotated[
        list[str] | None,
        typer.Option(metavar=objects.METAVAR, help="An object to delete; repeatable."),
    ] = None,
    cordon: Annotated[
        list[str] | None,
        typer.Option(metavar="NODE", help="A node to cordon; repeatable."),
    ] = None,
    drain: Annotated[
        list[str] | None,
        typer.Option(metavar="NODE", help="A node to drain; repeatable."),
    ] = None,
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="Namespace of the objects to delete.")
    ] = "",
    history: Annotated[str, typer.Option(help=moments.HISTORY_OR_DEFAULT)] = "",
    at: Annotated[str, moments.option(help=moments.AT)] = "",
    data: DataOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show what a change would do: pods evicted, claims, devices, pools and classes concerned.

    A change proposes DeviceTaintRules, DeviceClasses, ResourceSlices, ResourceSlicePatches, Nodes
    or ResourceQuotas, deletes pods or claims, or cordons or drains nodes. Nothing is written. The
    exit code is 2 for a proposal that the API would refuse.
    """
    import msgspec

    from app.analysis.blast import text
    from app.analysis.blast.radius import BlastRadius
    from app.bootstrap import manifests

    if "/" in named:
        raise InputError(
            f"{named!r} names no history",
            cure="name what changes with -f FILE, --delete KIND/NAME, --cordon NODE or "
            "--drain NODE",
        )
    history, at = moments.placed(named, history, at)
    source = AnswerSource(data)
    placed = manifests.read_objects(source.settings, file or [])
    if not (placed or delete or cordon or drain):
        cure = "give -f FILE, --delete KIND/NAME, --cordon NODE or --drain NODE"
        raise InputError("no change is proposed", cure=cure)
    body = {
        "objects": [tree for _, tree in placed],
        "places": [place for place, _ in placed],
        "delete": [objects.placed(objects.joined([one]), namespace) for one in delete or ()],
        "cordon": objects.names(cordon or (), "node"),
        "drain": objects.names(drain or (), "node"),
    }
    try:
        answer = source.ask("blast", history=history, at=at, body=body)
    except Rejected as problem:
        raise InputError(problem.message) from problem
    radius = msgspec.json.decode(answer, type=BlastRadius)
    with reading.rendering():
        if output is Output.JSON:
            console.say_json({**answering.as_of(answer), **msgspec.to_builtins(radius)})
            return
        for line in text.lines(radius, source.settings.blast_examples_max):
            console.say(line)
