"""`redra watch-over`: continuous checks of a history as it grows."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli import console, exit_codes
from app.cli.arguments import moments
from app.cli.console import Output, OutputOption
from app.cli.exit_codes import ExitCode
from app.cli.serving import DataOption

if TYPE_CHECKING:
    from app.analysis.oversight import Observation


def register(root: typer.Typer) -> None:
    """Add the command of this module."""
    root.command("watch-over")(watch_over)


def watch_over(
    history: Annotated[str, typer.Argument(help=moments.HISTORY)],
    until: Annotated[
        str,
        moments.option("--until", "--to", help="Where to end [default: goes on until stopped]."),
    ] = "",
    since: Annotated[
        str,
        moments.option(help="Say nothing of what was to be said up to this moment; to go on."),
    ] = "",
    data: DataOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Judge a history as it goes on: a live one, one that is recorded, or a replay.

    Decisions of redra and allocations of any scheduler are decided again, invariants are checked,
    and known defects of the gallery looked for, as events come. Each finding is a line, in JSON
    with -o json, and comes once. It is what `redra verify` and `redra scan` find in the same
    history. Exit code 1 when something is not as it must be, or a known defect shows.
    """
    from app.bootstrap import process_settings
    from app.bootstrap.pacing import overseeing

    settings = process_settings.settings(data=data)
    history, until = moments.split(history, until)

    def tell(observations: Sequence["Observation"]) -> None:
        for each in observations:
            if each.is_failure:
                exit_codes.conclude(ExitCode.NO)
            if output is Output.JSON:
                console.say_json_line(each.to_json())
            else:
                console.say(str(each))
        if observations:
            console.flush()

    async def run() -> overseeing.Watched:
        return await overseeing.watch_over(
            settings, history, until, since=since, tell=tell, ready=console.note
        )

    watched = console.run(run)
    console.note(
        f"history {watched.history} up to revision {watched.revision}: {watched.failures} "
        f"findings, {watched.others} that are known, unsure or from outside"
    )
    if watched.failures:
        exit_codes.conclude(ExitCode.NO)
