"""`redra report`: an incident as one self-contained file."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from app.cli import console
from app.cli.arguments import moments
from app.cli.connecting.answering import AnswerSource
from app.cli.connecting.reading import ReadingCommand
from app.cli.console import ForceOption
from app.cli.serving import DataOption
from app.domain.errors import InputError


class ReportFormat(StrEnum):
    """The target of the file: a browser, or Perfetto's trace viewer."""

    HTML = "html"
    PERFETTO = "perfetto"


def register(root: typer.Typer) -> None:
    """Add the commands of this module."""
    root.command("report", cls=ReadingCommand)(report)


def report(
    named: Annotated[str, typer.Argument(metavar="[HISTORY]", help=moments.HISTORY)] = "",
    file: Annotated[
        Path | None,
        console.file_option(
            "--output-file",
            "-o",
            help="The file to write; - writes to stdout [default: HISTORY.html or HISTORY.json].",
        ),
    ] = None,
    format: Annotated[
        ReportFormat,
        typer.Option(help="html: pages for a browser; perfetto: tracks for ui.perfetto.dev."),
    ] = ReportFormat.HTML,
    history: Annotated[str, typer.Option(help="The same as the argument HISTORY.")] = "",
    at: Annotated[str, moments.option(help=moments.AT)] = "",
    force: ForceOption = False,
    data: DataOption = None,
) -> None:
    """Write an incident as one file: its findings, their reasons, lanes, device map, timeline.

    The page opens without a server, loads nothing and needs no JavaScript: attach it to a bug
    report. With --format perfetto, the history becomes tracks, arrows and counters in Chrome's JSON
    trace-event format.
    """
    import sys

    from app.adapters import whole_files

    named, at = moments.placed(named, history, at)
    source = AnswerSource(data)
    place = source.history(named)
    suffix = "html" if format is ReportFormat.HTML else "json"
    target = file or Path(f"{place}.{suffix}")
    if str(target) != "-":
        console.check_free(target, force=force)
    if format is ReportFormat.HTML:
        answer = source.ask("report", history=named, at=at, is_page=True)
    else:
        answer = source.ask("trace", history=named, at=at)
    if str(target) == "-":
        sys.stdout.buffer.write(answer)
        return
    try:
        whole_files.write(target, answer)
    except OSError as problem:
        raise InputError(
            f"the file cannot be written: {problem.strerror}", place=str(target)
        ) from problem
    console.say(f"{target}: {len(answer)} bytes, history {place}")
