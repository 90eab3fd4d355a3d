"""The options of every reading command that name a server, without a parameter in each of them.

`--server`, `--context` and `--kubeconfig` mean what they mean to kubectl.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from typer.core import TyperCommand, TyperGroup, TyperOption

_chosen: ContextVar[dict[str, str]] = ContextVar("chosen")

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


@contextmanager
def _choosing(ctx: Any) -> Iterator[None]:
    """While it lasts, `chosen` gives what was said of the server."""
    before = _chosen.set(ctx.meta.get(__name__, {}))
    try:
        yield
    finally:
        _chosen.reset(before)


class ReadingCommand(TyperCommand):
    """A command that only reads: a server may answer it."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.params += _options()

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


def chosen() -> dict[str, str]:
    """What was said of the server in the command line that runs."""
    return _chosen.get({})
