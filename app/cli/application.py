"""All commands under one name, and the one place where errors become sentences and exit codes."""

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from app.cli import (
    access,
    allocating,
    asking,
    blasting,
    console,
    controlling,
    demonstrating,
    diffing,
    explaining,
    fleet,
    forking,
    importing,
    listing,
    profiles,
    proving,
    recording,
    replaying,
    serving,
    storing,
    telling,
)
from app.cli.experiments import exporting, minimising, sweeping
from app.cli.judging import exhibiting, linting
from app.cli.looking import reporting, showing
from app.cli.pacing import playing, watching
from app.domain.errors import InputError, LogError, Rejected


def _say_version(is_wanted: bool) -> None:
    if is_wanted:
        from importlib.metadata import version

        console.say(f"redra {version('redra')}")
        raise typer.Exit


root = typer.Typer(
    name="redra",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Re-run Kubernetes Dynamic Resource Allocation: replay, explain, verify.",
)


@root.callback()
def _of_all(
    _: Annotated[
        bool,
        typer.Option("--version", callback=_say_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Options of the program itself."""


for _module in (
    serving,
    access,
    storing,
    listing,
    telling,
    importing,
    exporting,
    recording,
    playing,
    watching,
    replaying,
    proving,
    explaining,
    blasting,
    forking,
    minimising,
    sweeping,
    asking,
    allocating,
    linting,
    exhibiting,
    demonstrating,
    diffing,
    fleet,
    profiles,
    controlling,
    reporting,
    showing,
):
    _module.register(root)


def application(arguments: Sequence[str]) -> int:
    """Run one command line; returns the exit code."""
    code = _run(arguments)
    try:
        # What is still held back would otherwise fail after everything, with a code of its own.
        sys.stdout.flush()
    except BrokenPipeError:
        console.silence()
    return code


def _run(arguments: Sequence[str]) -> int:
    try:
        root(args=list(arguments), prog_name="redra")
    except SystemExit as done:
        if isinstance(done.__context__, BrokenPipeError):
            # Typer has met it and ends with 1; the reader of our output has what it wants.
            console.silence()
            return 0
        return done.code if isinstance(done.code, int) else 1
    except (InputError, LogError, Rejected) as problem:
        return _report(problem)
    except BaseExceptionGroup as group:
        known = _first_known(group)
        if known is None:
            raise
        if isinstance(known, BrokenPipeError):
            console.silence()
            return 0
        return _report(known)
    except KeyboardInterrupt:
        return 130
    return 0


def _report(problem: BaseException) -> int:
    console.complain(str(problem))
    return 2 if isinstance(problem, InputError) else 1


def _first_known(group: BaseExceptionGroup) -> BaseException | None:
    for problem in group.exceptions:
        if isinstance(problem, BaseExceptionGroup):
            known = _first_known(problem)
            if known is not None:
                return known
        elif isinstance(problem, (InputError, LogError, Rejected, BrokenPipeError)):
            return problem
    return None
