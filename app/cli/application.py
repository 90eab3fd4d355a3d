"""The application of all commands, and the conversion of errors to messages and exit codes."""

import errno
import math
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from app.cli import (
    access,
    allocating,
    blasting,
    console,
    controlling,
    demonstrating,
    diffing,
    exit_codes,
    explaining,
    fleet,
    forking,
    importing,
    listing,
    migrating,
    profiles,
    querying,
    recording,
    replaying,
    serving,
    timelines,
    verifying,
)
from app.cli.arguments import completing
from app.cli.connecting import paging
from app.cli.exit_codes import ExitCode
from app.cli.experiments import exporting, minimising, rehearsing, sweeping
from app.cli.judging import incidents, linting
from app.cli.looking import fitting, reporting, searching, showing
from app.cli.pacing import playing, watching
from app.domain.errors import InputError, RedraError
from app.domain.values.texts.visible_text import visible


def _say_version(is_wanted: bool) -> None:
    if is_wanted:
        from importlib.metadata import version

        console.say(f"redra {version('redra')}")
        raise typer.Exit


SECTIONS: dict[str, dict[str, str]] = {
    "Begin": {
        "demo": "Make a cluster, fill it, taint it, explain and verify it",
        "up": "Serve the API, the controllers and the pages",
        "incidents": "Play known defects and traps of DRA",
    },
    "Get a cluster": {
        "import": "Import audit logs, dumps, watch streams, archives",
        "record": "Record a real cluster, read-only",
        "fleet": "Make nodes with devices, and pods that use them",
    },
    "Ask what happened": {
        "findings": "What is wrong, ranked by severity",
        "timeline": "What happened, one line per event",
        "why": "Reasons for the state of a pod, claim, device, rule …",
        "find": "Objects by a part of the name, also deleted ones",
        "map": "Which claims hold which devices",
        "capacity": "The largest claims that fit, over time",
        "scan": "Which known defects occur in a history",
        "report": "An incident as one file, or as a trace for Perfetto",
        "sql": "Query the view tables in SQL",
        "log": "The events as JSON lines",
    },
    "Ask what would happen": {
        "blast": "What a change would do to pods and claims",
        "fit": "How many more copies of a claim or pod fit",
        "fork": "Continue from a moment of a history, with changes",
        "diff": "Where two histories differ, decision by decision",
        "rehearse": "Replay a history under another release",
        "sweep": "Run histories under many releases, gates and changes",
        "serve-replay": "Serve a recorded history as if it happened now",
        "allocate": "Run allocation scenarios, one per line",
    },
    "Prove": {
        "verify": "Check the chain, the invariants and every decision",
        "replay": "Rebuild the views, or make all decisions again",
        "watch-over": "Judge a history while it grows",
        "head": "Print the signed head of a history",
    },
    "Write manifests and drivers": {
        "lint": "Check slices, classes, claims and rules",
        "cel": "Evaluate a device selector",
    },
    "Share": {
        "minimise": "Reduce a history to what an incident needs",
        "export": "Write a bundle, manifests or a test",
    },
    "Manage": {
        "histories": "List, copy, rename and delete histories",
        "controllers": "Switch the controllers of a history on and off",
        "profiles": "What each profile means",
        "kubeconfig": "Print a kubeconfig with a context for each history",
        "completion": "Print the completion for bash, zsh and fish",
        "work": "Run controllers beside an API server",
        "project": "Keep the view tables beside an API server",
        "migrate": "Migrate the database to this program's schema",
        "rebuild": "Fold the views of a history again",
    },
}
"""The commands by purpose, in the order of the program's help."""


class Shell(StrEnum):
    """The shells with completion."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


_UsageError: Any = typer.BadParameter.__base__
"""The errors of a command line that cannot be read; Typer gives their class no public name."""


@contextmanager
def _visible_complaints() -> Iterator[None]:
    """Let the errors of typed words show acting characters; Typer prints the words as they are."""
    try:
        yield
    except _UsageError as problem:
        problem.message = visible(problem.message)
        raise


_OF_KUBECTL = ("get", "apply", "create", "delete", "edit", "patch", "label", "taint", "cordon",
               "drain", "wait", "auth", "config")  # fmt: skip

_ADVICE: dict[str, str] = {
    **{
        word: f"use kubectl, as in `kubectl --kubeconfig .redra/kubeconfig {word} …`, with a "
        "running `redra up`"
        for word in _OF_KUBECTL
    },
    "describe": "`redra why KIND/NAME` explains an object",
    "explain": "`redra why KIND/NAME` explains an object",
    "events": "`redra timeline` shows what happened",
    "logs": "`redra timeline` shows what happened, `redra log` the events as JSON",
    "top": "`redra capacity` shows what is free, `redra map` who holds it",
    "version": "`redra --version` prints it",
    "help": "`redra COMMAND --help` explains a command",
}
"""What to use instead of a command that people know from kubectl."""


class _RootGroup(TyperGroup):
    """The root command group; its help lists the commands in sections."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name.

        During shell completion, completers are attached to its parameters.
        """
        command = super().get_command(ctx, cmd_name)
        if command is not None and ctx.resilient_parsing:
            completing.attach(command)
        return command

    def make_context(self, info_name: Any, args: Any, parent: Any = None, **extra: Any) -> Any:
        """Read the options of the program. Raises a usage error, which is printed as it is."""
        with _visible_complaints():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: Any) -> Any:
        """Run the command. Raises a usage error, which is printed as it is."""
        with _visible_complaints():
            return super().invoke(ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the words name. Raises a usage error, with advice about kubectl."""
        try:
            return super().resolve_command(ctx, args)
        except _UsageError as problem:
            if advice := _ADVICE.get(args[0]):
                problem.message = f"No such command {args[0]!r}: {advice}."
            raise

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands in sections."""
        width = max(map(len, self.commands))
        for title, texts in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, text in texts.items()])


root = typer.Typer(
    cls=_RootGroup,
    name="redra",
    no_args_is_help=True,
    context_settings={"help_option_names": ["--help", "-h"]},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="""Replay, explain and verify Kubernetes Dynamic Resource Allocation.

    A history is the timeline of one cluster, by name: one that `redra up` serves (`default`), or a
    recording that `redra import` or `redra record` makes. Commands take HISTORY, or HISTORY@MOMENT
    for its state at a revision, a time, or a duration before the end (prod@42, prod@10m).
    """,
)


@root.callback()
def _of_all(
    _: Annotated[
        bool,
        typer.Option("--version", callback=_say_version, is_eager=True, help="Print the version."),
    ] = False,
    __: Annotated[
        bool, typer.Option(paging.FLAG, help="Show long answers without a pager (REDRA_PAGER).")
    ] = False,
) -> None:
    """Options of the program itself."""


@root.command()
def completion(
    shell: Annotated[Shell, typer.Argument(help="The shell to complete words in.")],
) -> None:
    """Print the shell code that completes commands, options, histories, objects and releases.

    For bash, in ~/.bashrc: source <(redra completion bash). For zsh, after compinit in ~/.zshrc:
    source <(redra completion zsh). For fish: redra completion fish | source.
    """
    from typer import completion as completions

    script = completions.get_completion_script(  # type: ignore[attr-defined]  # no stub has it
        prog_name="redra", complete_var="_REDRA_COMPLETE", shell=shell.value
    )
    console.say(script)


for _module in (
    serving,
    access,
    migrating,
    listing,
    timelines,
    importing,
    exporting,
    recording,
    playing,
    watching,
    replaying,
    verifying,
    explaining,
    blasting,
    forking,
    minimising,
    rehearsing,
    sweeping,
    querying,
    allocating,
    linting,
    incidents,
    demonstrating,
    diffing,
    fleet,
    profiles,
    controlling,
    reporting,
    searching,
    showing,
    fitting,
):
    _module.register(root)


@cache
def program() -> Any:
    """The root command with all its commands and parameters.

    Typer would make them anew for each command line: 17 ms of work.
    """
    command = typer.main.get_command(root)
    _refuse_meaningless_words(command)
    return command


def _refuse_meaningless_words(command: Any) -> None:
    """Let a command and its subcommands refuse arguments and values of options that say nothing.

    An unset variable of a shell gives an empty word. It would mean a default, no restriction, or
    the folder in which the command runs. A word that is not Unicode can only name a file that is
    there: answers, objects and addresses of databases cannot have it.
    """
    for parameter in command.params:
        if not getattr(parameter, "is_flag", False):
            parameter.consume_value = _with_meaning(parameter, parameter.consume_value)
    for subcommand in getattr(command, "commands", {}).values():
        _refuse_meaningless_words(subcommand)


def _with_meaning(parameter: Any, consume: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def consume_value(ctx: Any, opts: Any) -> Any:
        words = opts.get(parameter.name)
        for word in words if isinstance(words, list | tuple) else (words,):
            if word == "":
                raise InputError(
                    "it is empty, as if a variable were not set",
                    place=_name_of(parameter),
                    cure="write it, or leave it out",
                )
            if isinstance(word, str) and _SURROGATES.search(word) and not Path(word).exists():
                raise InputError(_HALF, place=_name_of(parameter))
            if parameter.type.name.startswith("float") and _is_endless(word):
                raise InputError(f"{word} is no finite number", place=_name_of(parameter))
        return consume(ctx, opts)

    return consume_value


def _is_endless(word: object) -> bool:
    """True for words such as `nan`, `inf` and `1e400`, which are read as numbers without an end."""
    try:
        return isinstance(word, str) and not math.isfinite(float(word))
    except ValueError:
        return False


def _name_of(parameter: Any) -> str:
    """The name of an argument, or of an option as users write it."""
    if parameter.param_type_name == "argument":
        return str(parameter.human_readable_name)
    return "/".join(parameter.opts)


def application(arguments: Sequence[str]) -> int:
    """Run one command line and return the exit code."""
    console.forget_form()
    exit_codes.begin()
    with paging.paged(arguments):
        code = _run(arguments)
        try:
            # Without this, buffered output would fail at interpreter exit, with another exit code.
            sys.stdout.flush()
        except BrokenPipeError:
            console.silence()
        except OSError as problem:
            console.silence()
            code = _report(console.Unwritten(problem))
    return code


def _run(arguments: Sequence[str]) -> int:
    try:
        program()(args=list(arguments), prog_name="redra")
    except SystemExit as done:
        # Typer handles these and exits with 1.
        if isinstance(done.__context__, BrokenPipeError):
            return _end_broken()
        if isinstance(done.__context__, typer.Abort):
            return ExitCode.INTERRUPTED
        code = done.code if isinstance(done.code, int) else ExitCode.UNUSABLE
        return code or exit_codes.concluded()
    except RedraError as problem:
        return _report(problem)
    except BaseExceptionGroup as group:
        known = _first_known(group)
        if known is None:
            raise
        if isinstance(known, BrokenPipeError):
            return _end_broken()
        return _report(known)
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except UnicodeEncodeError as problem:
        if not _SURROGATES.search(problem.object):
            raise
        # Files and arguments give such texts; no text that redra makes has one.
        return _report(InputError(_NO_TEXT))
    except OSError as problem:
        refusal = _refusal_of_system(problem)
        if refusal is None:
            raise
        return _report(refusal)
    return exit_codes.concluded()


def _refusal_of_system(problem: OSError) -> InputError | None:
    """The message for a file that the system does not let a command use; None for other errors."""
    place = "" if problem.filename is None else str(problem.filename)
    if problem.errno in exit_codes.OF_DISKS:
        what = "it" if place else "a file"
        refusal = InputError(f"{what} cannot be written: {problem.strerror}", place=place)
    elif problem.errno in _OF_FILES and place:
        reason = f"it cannot be used as a file: {os.strerror(problem.errno)}"
        refusal = InputError(reason, place=place)
    else:
        return None
    refusal.__cause__ = problem
    return refusal


_SURROGATES = re.compile("[\ud800-\udfff]")
"""Halves of characters: JSON can name them, and bytes that are not UTF-8 become such."""

_HALF = "it has a text that is not Unicode, with half of a character in it"

_NO_TEXT = "a file or an argument has a text that is not Unicode, with half of a character in it"

_OF_FILES = {
    errno.EACCES,
    errno.EPERM,
    errno.ENAMETOOLONG,
    errno.ELOOP,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EROFS,
}
"""The errors of the system for a file that a command names and cannot use."""


def _end_broken() -> int:
    """The exit code after a broken pipe: that of the command if the reader of stdout is gone."""
    if not console.is_unread():
        console.complain("a connection was closed during a write")
        return ExitCode.NO_ANSWER
    console.silence()
    return exit_codes.concluded()


def _report(problem: BaseException) -> int:
    console.complain(str(problem))
    return exit_codes.of(problem)


def _first_known(group: BaseExceptionGroup) -> BaseException | None:
    for problem in group.exceptions:
        if isinstance(problem, BaseExceptionGroup):
            known = _first_known(problem)
            if known is not None:
                return known
        elif isinstance(problem, (RedraError, BrokenPipeError)):
            return problem
        elif isinstance(problem, OSError) and (refusal := _refusal_of_system(problem)) is not None:
            return refusal
    return None
