"""`redra rehearse`: the recorded inputs of a history under another release."""

from typing import Annotated

import typer

from app.cli import console, exit_codes
from app.cli.arguments import moments
from app.cli.console import Output, OutputOption, ProgressBar
from app.cli.exit_codes import ExitCode
from app.cli.serving import DataOption, GateOption, QuirkOption


def register(root: typer.Typer) -> None:
    """Add the command of this module."""
    root.command("rehearse")(rehearse)


def rehearse(
    history: Annotated[
        str, typer.Argument(metavar="HISTORY[@MOMENT]", help="A history; default moment: its end.")
    ],
    release: Annotated[
        str, typer.Option("--to", metavar="RELEASE", help="The release to rehearse, such as 1.37.")
    ],
    gate: GateOption = None,
    quirk: QuirkOption = None,
    at: moments.AtOption = "",
    data: DataOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Rehearse an upgrade: replay the recorded inputs of a history under another release.

    The report lists objects that the other API refuses, fields and API versions that are no longer
    served, decisions and messages that change, known defects that appear and disappear, and results
    that are unsure because of the recording. Differences that also occur without the upgrade are
    not counted. The history's gates and quirks are kept unless --gate or --quirk changes them. The
    exit code is 0 if nothing changes, 1 if something changes, and 2 if nothing could be compared.
    """
    from app.analysis.rehearse import text
    from app.analysis.rehearse.report import Rehearsal
    from app.bootstrap import garbage_collection, process_settings, stores
    from app.bootstrap.answers import rehearsals

    settings = process_settings.settings(data=data, gates=gate, quirks=quirk)
    garbage_collection.expect_large_heap()
    name, moment = moments.split(history, at)

    async def run() -> Rehearsal:
        async with stores.open_store(settings) as store:
            return await rehearsals.rehearse(
                store, settings, name, release, moment, progress=progress.tell
            )

    with ProgressBar("rehearsing", has_lines=True) as progress:
        report = console.run(run)
    if not report.is_quiet:
        exit_codes.conclude(ExitCode.NO)
    elif report.is_blind:
        exit_codes.conclude(ExitCode.UNUSABLE)
    if output is Output.JSON:
        console.say_json(report.to_json())
    else:
        for line in text.page(report, console.width()):
            console.say(line)
