"""`redra diff`: what two histories decided differently, and where that begins."""

from enum import StrEnum
from typing import Annotated

import typer

from app.cli import console
from app.cli.console import Output, OutputOption, Progress
from app.cli.serving import DataOption, GateOption, QuirkOption
from app.domain.errors import InputError


class By(StrEnum):
    """What is compared."""

    DECISIONS = "decisions"
    OBJECTS = "objects"
    OUTCOMES = "outcomes"


AgainOption = Annotated[
    bool,
    typer.Option(
        help="Compare A with itself decided again: what came from outside is kept, and the "
        "controllers do the rest, as in a decide replay. --profile, --gate and --quirk change "
        "what they decide by."
    ),
]

ByOption = Annotated[
    By,
    typer.Option(
        help="decisions: each pod, with causes; outcomes: where each pod is at the end; "
        "objects: what exists at the end."
    ),
]


def register(root: typer.Typer) -> None:
    """Add the command of this module."""
    root.command("diff")(diff)


def diff(
    a: Annotated[str, typer.Argument(metavar="A[@MOMENT]", help="A history, to its end.")],
    b: Annotated[
        str, typer.Argument(metavar="B[@MOMENT]", help="The history to compare it with.")
    ] = "",
    again: AgainOption = False,
    profile: Annotated[
        str | None, typer.Option(help="With --again, the Kubernetes version to decide as.")
    ] = None,
    gate: GateOption = None,
    quirk: QuirkOption = None,
    at: Annotated[
        str,
        typer.Option(help="Compare up to this revision or instant; by default to the earlier end."),
    ] = "",
    by: ByOption = By.DECISIONS,
    within: Annotated[
        float,
        typer.Option(min=0, help="Seconds by which the same decision may be earlier or later."),
    ] = 1.0,
    data: DataOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Compare two histories decision by decision: a fork and its parent, two recordings, two forks.

    Root causes come first: other settings, and what outsiders wrote differently. Below each stand
    the pods that follow from it (moved, newly unschedulable, newly placed, evicted, spared, earlier
    or later), with the node or device at which the reasons of both sides part, and below these what
    follows from them. Exits with 0 when nothing differs, and with 1 when something does.
    """
    from app.analysis.diff import text
    from app.analysis.diff.outcomes import EndReport
    from app.analysis.diff.report import DiffReport
    from app.bootstrap import garbage_collection, process_settings, stores
    from app.bootstrap.answers import differences
    from app.service import diffing

    if bool(b) is again or (not again and (profile or gate or quirk)):
        raise InputError(
            "A is compared with another history, or with itself decided again (with --profile, "
            "--gate and --quirk)",
            cure="name B, or say --again",
        )
    settings = process_settings.settings(data=data, profile=profile, gates=gate, quirks=quirk)
    garbage_collection.expect_large_heap()

    async def run() -> DiffReport | EndReport:
        async with stores.open_store(settings) as store:
            chosen = diffing.By(by.value)
            if again:
                return await differences.diff_again(
                    store, settings, a, at, chosen, within, profile, progress=progress.tell
                )
            return await differences.diff(store, settings, a, b, at, chosen, within)

    with Progress("deciding again" if again else "comparing") as progress:
        report = console.run(run)
    if output is Output.JSON:
        console.say_json(report.to_json())
    elif isinstance(report, DiffReport):
        for line in text.page(report, console.width()):
            console.say(line)
    else:
        for line in text.end_page(report):
            console.say(line)
    if not report.is_same:
        raise typer.Exit(1)
