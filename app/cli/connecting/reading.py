"""The options of every reading command that name a server, without a parameter in each of them.

`--server`, `--context` and `--kubeconfig` mean what they mean to kubectl.
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
"""Characters of what is wrong with an answer."""

_ODD = (LookupError, TypeError, AttributeError, ValueError, msgspec.MsgspecError)
"""What reading an answer of another shape raises."""

_OPTIONS = (
    (
        "server",
        "URL",
        "Ask this server; auto: one that runs on the data folder, none: open the data "
        "[default: auto, REDRA_SERVER].",
    ),
    ("context", "NAME", "Ask the server of this context of a kubeconfig."),
    (
        "kubeconfig",
        "FILE",
        "The kubeconfig with the context [default: KUBECONFIG, ~/.kube/config].",
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
        "the answer is of one moment; `redra timeline --watch`, `redra log --watch` and "
        "`redra watch-over` go on with what happens",
    ),
    (
        ("--selector", "-l"),
        False,
        "labels are not looked at here; `redra timeline -l` and `redra map -l` do, and "
        "`kubectl -l` reads any moment of a history by a context of `redra kubeconfig`",
    ),
)
"""What kubectl takes and an answer of redra cannot, whether as a flag, and what does it instead."""


def _refuse(text: str) -> Any:
    def callback(context: Any, parameter: Any, value: object) -> None:
        if value:
            raise InputError(text, place=parameter.opts[0])

    return callback


def _habits(params: list[Any]) -> list[TyperOption]:
    """Hidden options for kubectl's habits, where a command has none of that name.

    All namespaces are what answers are about unless one is named.
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
    """While it lasts, `chosen` gives what was said of the server.

    Raises ServerUnreachable where the answer of a server has not the shape of redra's answers.
    """
    before = _chosen.set(ctx.meta.get(__name__, {}))
    nobody = _asked.set("")
    try:
        yield
    except _ODD as problem:
        # What this process answers itself is no stranger's: then it is a mistake of the program.
        if not (url := _asked.get()):
            raise
        text = f"{type(problem).__name__}: {problem}"
        raise ServerUnreachable(
            f"{url}: the server answers not as redra does ({text[:_PROBLEM_MAX]})"
        ) from problem
    finally:
        _chosen.reset(before)
        _asked.reset(nobody)


class ReadingCommand(TyperCommand):
    """A command that only reads: a server may answer it."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.params += _options() + _habits(self.params)

    def invoke(self, ctx: Any) -> Any:
        """Run the command, which learns what was said of the server from `chosen`."""
        with _choosing(ctx):
            return super().invoke(ctx)


class ReadingGroup(TyperGroup):
    """The same for a command that has commands below it."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.params += _options()

    def invoke(self, ctx: Any) -> Any:
        """Run the command, or one below it."""
        with _choosing(ctx):
            return super().invoke(ctx)


def note_asked(url: str) -> None:
    """Note the server whose answer the command goes on with; empty for its own."""
    _asked.set(url)


@contextmanager
def rendering() -> Iterator[None]:
    """What goes wrong while an answer is shown, whose shape is known to be right, is our mistake.

    After an error it goes on: whoever meets that asks whose it is.
    """
    url = _asked.get()
    _asked.set("")
    yield
    _asked.set(url)


def chosen() -> dict[str, str]:
    """What was said of the server in the command line that runs."""
    return _chosen.get({})
