"""`redra lint`: problems of slices, classes, claims and rules before they are used."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from app.cli import console, exit_codes
from app.cli.arguments import moments
from app.cli.connecting import answering, reading
from app.cli.connecting.answering import AnswerSource
from app.cli.connecting.reading import ReadingCommand
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
    root.command("lint", cls=ReadingCommand)(lint)


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

    if bool(sources) == bool(history):
        raise InputError(
            "either no source is given, or both files and a history",
            cure="give SOURCE… or --history NAME",
        )
    history, at = moments.split(history, at)
    as_of: dict[str, str] = {}
    if sources:
        report = _of_files(data, profile, sources, ignore or [])
    else:
        report, as_of = _of_history(data, profile, (history, at), ignore or [])
    if report.fails_on(LintSeverity(fail_on.value)):
        exit_codes.conclude(ExitCode.NO)
    with reading.rendering():
        if output is LintOutput.JSON:
            console.say_json({**as_of, **report.to_json()})
        elif output is LintOutput.SARIF:
            console.say_json(texts.sarif(report))
        else:
            for line in texts.lines(report):
                console.say(line)


def _of_files(
    data: Path | None, profile: str | None, sources: list[Path], ignored: list[str]
) -> "LintReport":
    from app.bootstrap import process_settings
    from app.bootstrap.linting import sources as linting

    if reading.chosen():
        raise InputError(
            "files are checked by this command itself",
            place=f"--{next(iter(reading.chosen()))}",
            cure="leave it out, or name a history of the server: --history NAME",
        )
    settings = process_settings.settings(data=data, profile=profile)
    return linting.lint_files(settings, sources, ignored)


def _of_history(
    data: Path | None, profile: str | None, place: tuple[str, str], ignored: list[str]
) -> "tuple[LintReport, dict[str, str]]":
    """The report on a history, from a server or from this process, and what its moment names."""
    from app.analysis.lint import linting

    history, at = place
    parameters = {"profile": profile or "", "ignore": ",".join(ignored)}
    answer = AnswerSource(data).ask("lint", history=history, at=at, parameters=parameters)
    return linting.of_json(msgspec.json.decode(answer)), answering.as_of(answer)
