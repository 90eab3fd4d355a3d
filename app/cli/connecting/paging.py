"""The pager for long answers on a terminal, as in git. Output to programs is never paged."""

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
"""Commands whose answers are paged."""

_FOLLOWING = frozenset(("--follow", "--watch", "-w", "--live"))


@contextmanager
def paged(arguments: Sequence[str]) -> Iterator[None]:
    """A context in which standard output goes to the pager, if the command is paged.

    A pager that is left early ends the command like any reader that closes the pipe.
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
            # The pager handles interrupts, which it also receives from the terminal.
            with suppress(KeyboardInterrupt):
                pager.wait()


class PagedOutput(io.TextIOWrapper):
    """The input of a pager, which is shown on the terminal."""

    def isatty(self) -> bool:
        """Always True: colours and widths are those of the terminal."""
        return True


def _program(arguments: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """The command of the pager and its environment; empty if the output is not paged."""
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
