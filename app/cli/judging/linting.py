"""`redra lint`: problems of slices, classes, claims and rules before they are used."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli import console, exit_codes
from app.cli.arguments import moments
from app.cli.exit_codes import ExitCode
from app.cli.serving import DataOption
from app.domain.errors import InputError

if TYPE_CHECKING:
    from app.analysis.lint.linting import LintReport


class LintOutput(StrEnum):
    """The formats of a report."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"


class Threshold(StrEnum):
    """The lowest severity of a finding with which the command fails."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


def register(root: typer.Typer) -> None:
    """Add the command of this module."""
    root.command("lint")(lint)


def lint(
    sources: Annotated[
        list[Path] | None,
        typer.Argument(metavar="SOURCE…", help="Files, folders, recordings; - reads stdin."),
    ] = None,
    history: Annotated[str, typer.Option(help="A history to check instead of files.")] = "",
    at: Annotated[str, moments.option(help="Moment of the history.")] = "",
    fail_on: Annotated[
        Threshold, typer.Option(help="The lowest severity of a finding for exit code 1.")
    ] = Threshold.ERROR,
    ignore: Annotated[
        list[str] | None, typer.Option(metavar="RULE", help="Leave a rule out; repeatable.")
    ] = None,
    profile: Annotated[
        str | None, typer.Option(help="Kubernetes version whose API checks the objects.")
    ] = None,
    data: DataOption = None,
    output: Annotated[
        LintOutput, typer.Option("--output", "-o", help="Output format.")
    ] = LintOutput.TEXT,
) -> None:
    """Check ResourceSlices, DeviceClasses, claims, templates and DeviceTaintRules against rules.

    For authors of drivers and manifests, and for CI. Each finding has a place, a reason and a cure.
    All sources are checked together, so that selectors are tried on the devices of other files. For
    a recording or a history, the last state and the changes of its pools are checked.
    docs/reference/lint.md lists the rules.
    """
    from app.analysis.lint import texts
    from app.analysis.lint.findings import LintSeverity
    from app.bootstrap import process_settings, stores
    from app.bootstrap.linting import sources as linting

    if bool(sources) == bool(history):
        raise InputError(
            "either no source is given, or both files and a history",
            cure="give SOURCE… or --history NAME",
        )
    history, at = moments.split(history, at)
    settings = process_settings.settings(data=data, profile=profile)
    if sources:
        report = linting.lint_files(settings, sources, ignore or [])
    else:

        async def read() -> "LintReport":
            async with stores.open_store(settings) as store:
                return await linting.lint_history(store, settings, history, at, ignore or [])

        report = console.run(read)
    if report.fails_on(LintSeverity(fail_on.value)):
        exit_codes.conclude(ExitCode.NO)
    if output is LintOutput.JSON:
        console.say_json(report.to_json())
    elif output is LintOutput.SARIF:
        console.say_json(texts.sarif(report))
    else:
        for line in texts.lines(report):
            console.say(line)
