"""`redra watch-over`: continuous checks of a history as it grows."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli import console, exit_codes
from app.cli.arguments import moments
from app.cli.console import Output, OutputOption
from app.cli.exit_codes import ExitCode
from app.cli.serving import DataOption
from app.domain.values import counts

if TYPE_CHECKING:
    from app.analysis.oversight import Observation


def register(root: typer.Typer) -> None:
    """Add the command of this module."""
    root.command("watch-over")(watch_over)


def watch_over(
    history: Annotated[str, typer.Argument(help=moments.HISTORY)],
    until: Annotated[
        str,
        moments.option(
            "--until", "--to", help="The moment to end at [default: until the command is stopped]."
        ),
    ] = "",
    since: Annotated[
        str,
        moments.option(help="Print only findings after this moment, to continue an earlier run."),
    ] = "",
    data: DataOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Judge a history while it grows: a live one, one that is being recorded, or a replay.

    As events arrive, decisions of redra and allocations of any scheduler are made again, invariants
    are checked, and known defects are looked for. Each finding is printed once, on one line (as
    JSON with -o json). The findings are those of `redra verify` and `redra scan` for the same
    history, except that a gap recorded later makes a finding of `redra verify` unsure. The exit
    code is 1 if a rule is broken or a known defect occurs, and 3 if there is nothing but
    allocations that break no rule where redra would choose other devices.
    """
    judge(history, until, end_option="--until", since=since, data=data, output=output)


def judge(
    history: str,
    until: str,
    *,
    end_option: str,
    since: str = "",
    data: Path | None = None,
    output: Output = Output.TEXT,
) -> None:
    """Judge a history as `watch_over` does; `end_option` is the user's name for `until`."""
    from app.bootstrap import process_settings
    from app.bootstrap.pacing import overseeing

    settings = process_settings.settings(data=data)
    history, until = moments.split(history, until)

    def report_observations(observations: Sequence["Observation"]) -> None:
        for each in observations:
            if each.is_failure:
                exit_codes.conclude(ExitCode.NO)
            elif each.is_other_choice and exit_codes.concluded() == ExitCode.DONE:
                exit_codes.conclude(ExitCode.IN_PART)
            if output is Output.JSON:
                console.say_json_line(each.to_json())
            else:
                console.say(str(each))
        if observations:
            console.flush()

    async def run() -> overseeing.Watched:
        return await overseeing.watch_over(
            settings,
            history,
            until,
            end_option=end_option,
            since=since,
            report_observations=report_observations,
            ready=console.note,
        )

    watched = console.run(run)
    console.note(
        f"history {watched.history} up to revision {watched.revision}: "
        f"{counts.of(watched.failures, 'finding')}, "
        f"{counts.of(watched.other_choices, 'allowed other choice')}, "
        f"{watched.others} known, unsure or from outside"
    )
    if watched.failures:
        exit_codes.conclude(ExitCode.NO)
    elif watched.other_choices:
        exit_codes.conclude(ExitCode.IN_PART)
