"""Long answers on a terminal go through a pager, as git's do; never where a program reads them."""

import io
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

FLAG = "--no-pager"

PAGED = frozenset(
    (
        *("why", "timeline", "findings", "map", "scan", "diff", "blast", "log", "fit", "capacity"),
        *("histories", "incidents", "profiles", "lint", "sql", "verify", "rehearse"),
    )
)
"""Commands whose answers people read."""

_FOLLOWING = frozenset(("--follow", "--watch", "-w", "--live"))


@contextmanager
def paged(arguments: Sequence[str]) -> Iterator[None]:
    """While it lasts, standard output is the pager's input, where the command and terminal want it.

    A pager that is left early ends the command as any reader does that has what it wants.
    """
    program, environment = _program(arguments)
    if not program:
        yield
        return
    try:
        pager = subprocess.Popen(program, stdin=subprocess.PIPE, env=environment)  # noqa: S603 the user names it
    except OSError:
        yield
        return
    assert pager.stdin is not None, "asked for above"
    terminal = sys.stdout
    sys.stdout = PagedOutput(pager.stdin, encoding="utf-8")
    try:
        yield
    finally:
        with suppress(BrokenPipeError):
            sys.stdout.close()
        sys.stdout = terminal
        while pager.poll() is None:
            # An interruption is the pager's matter, which the terminal tells, too.
            with suppress(KeyboardInterrupt):
                pager.wait()


class PagedOutput(io.TextIOWrapper):
    """The input of a pager, which shows what it gets on the terminal."""

    def isatty(self) -> bool:
        """Colours and widths are those of the terminal."""
        return True


def _program(arguments: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """The words of the pager to start, and its environment; none where nothing is paged."""
    words = [word for word in arguments if not word.startswith("-")]
    if (
        not words
        or words[0] not in PAGED
        or FLAG in arguments
        or _FOLLOWING & {*arguments}
        or (words[0] in ("log", "timeline") and "-f" in arguments)
        or not sys.stdout.isatty()
    ):
        return [], {}
    from app.settings import pager

    text, environment = pager()
    try:
        program = shlex.split(text)
    except ValueError:
        program = []
    return ([] if program in ([], ["cat"]) else program), environment
