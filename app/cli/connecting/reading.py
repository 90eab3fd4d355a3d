"""The options of every reading command that select a server, without a parameter in each command.

`--server`, `--context` and `--kubeconfig` have the same meaning as in kubectl.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import msgspec
from typer.core import TyperCommand, TyperGroup, TyperOption

from app.domain.errors import InputError, ServerUnreachable

_chosen: ContextVar[dict[str, str]] = ContextVar("chosen")
_asked: ContextVar[str] = ContextVar("asked", default="")

_PROBLEM_MAX = 200
"""Characters of the problem with an answer that a message shows."""

_ODD = (LookupError, TypeError, AttributeError, ValueError, msgspec.MsgspecError)
"""The exceptions for an answer of an unexpected shape."""

_OPTIONS = (
    (
        "server",
        "URL",
        "The server to query; auto: the one that runs on the data folder, none: open the data "
        "[default: auto, REDRA_SERVER].",
    ),
    ("context", "NAME", "Query the server of this context of a kubeconfig."),
    (
        "kubeconfig",
        "FILE",
        "The kubeconfig that has the context [default: KUBECONFIG, ~/.kube/config].",
    ),
)


def _remember(context: Any, parameter: Any, value: str | None) -> None:
    if value:
        context.meta.setdefault(__name__, {})[parameter.name] = value


def _options() -> list[TyperOption]:
    return [
        TyperOption(
            param_decls=[f"--{name}"],
            metavar=metavar,
            help=text,
            type=str,
            expose_value=False,
            callback=_remember,
        )
        for name, metavar, text in _OPTIONS
    ]


_HABITS = (
    (
        ("--watch", "-w"),
        True,
        "the answer is about one moment; use `redra timeline --watch`, `redra log --watch` or "
        "`redra watch-over` to follow a history",
    ),
    (
        ("--selector", "-l"),
        False,
        "this command has no label selector; use `redra timeline -l`, `redra scan -l` or "
        "`redra map -l`, or "
        "`kubectl -l` with a context of `redra kubeconfig` for any moment",
    ),
)
"""Options of kubectl that answers do not support: names, whether a flag, the alternative."""


def _refuse(text: str) -> Any:
    def callback(context: Any, parameter: Any, value: object) -> None:
        if value:
            raise InputError(text, place=parameter.opts[0])

    return callback


def _habits(params: list[Any]) -> list[TyperOption]:
    """Hidden options for habits of kubectl users, unless the command has its own.

    `--all-namespaces` is accepted and ignored: answers cover all namespaces unless one is named.
    """
    known = {name for parameter in params for name in parameter.opts}
    hidden = [
        TyperOption(
            param_decls=list(names),
            hidden=True,
            is_flag=is_flag,
            type=None if is_flag else str,
            expose_value=False,
            callback=_refuse(text),
        )
        for names, is_flag, text in _HABITS
        if not known & {*names}
    ]
    if not known & {"--all-namespaces", "-A"}:
        everywhere = ["--all-namespaces", "-A"]
        hidden.append(
            TyperOption(param_decls=everywhere, hidden=True, is_flag=True, expose_value=False)
        )
    return hidden


@contextmanager
def _choosing(ctx: Any) -> Iterator[None]:
    """A context in which `chosen` returns the options that select the server.

    Raises ServerUnreachable if the answer of a server does not have the shape of redra's answers.
    """
    before = _chosen.set(ctx.meta.get(__name__, {}))
    no_server = _asked.set("")
    try:
        yield
    except _ODD as problem:
        # An error in an answer of this process itself is a defect of redra.
        if not (url := _asked.get()):
            raise
        text = f"{type(problem).__name__}: {problem}"
        raise ServerUnreachable(
            f"{url}: the server's answer is not one of redra ({text[:_PROBLEM_MAX]})"
        ) from problem
    finally:
        _chosen.reset(before)
        _asked.reset(no_server)


class ReadingCommand(TyperCommand):
    """A command that only reads, so a server may answer it."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.params += _options() + _habits(self.params)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; `chosen` returns the options that select the server."""
        with _choosing(ctx):
            return super().invoke(ctx)


class ServedCommand(TyperCommand):
    """A command that changes histories, which a server does if the user names one."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.params += _options()

    def invoke(self, ctx: Any) -> Any:
        """Run the command; `chosen` returns the options that select the server."""
        with _choosing(ctx):
            return super().invoke(ctx)


class ReadingGroup(TyperGroup):
    """A reading command with subcommands."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.params += _options()

    def invoke(self, ctx: Any) -> Any:
        """Run the command or a subcommand."""
        with _choosing(ctx):
            return super().invoke(ctx)


def note_asked(url: str) -> None:
    """Note the URL of the server whose answer the command uses; empty for its own answer."""
    _asked.set(url)


@contextmanager
def rendering() -> Iterator[None]:
    """A context for showing an answer of known shape: errors in it are defects of redra.

    After an error the URL stays empty, so that `_choosing` raises the error unchanged.
    """
    url = _asked.get()
    _asked.set("")
    yield
    _asked.set(url)


def chosen() -> dict[str, str]:
    """The options of the running command that select the server."""
    return _chosen.get({})
