"""The exit codes of all commands, and the exit code of the running command.

A command with a verdict calls `conclude` before it prints, so that the exit code is right even if
the reader, such as `head -1`, stops early.
"""

import errno
from collections.abc import Iterable
from contextvars import ContextVar
from enum import IntEnum

from app.domain.errors import (
    ChainBroken,
    Forbidden,
    InputError,
    NotStorable,
    Rejected,
    RevisionTooLarge,
    TooManyRequests,
    Unauthorized,
)

_concluded: ContextVar[int] = ContextVar("concluded", default=0)


class ExitCode(IntEnum):
    """The exit codes of every command; `MEANINGS` describes them."""

    DONE = 0
    NO = 1
    UNUSABLE = 2
    IN_PART = 3
    NO_ANSWER = 4
    DEFECT = 5
    INTERRUPTED = 130


MEANINGS = {
    ExitCode.DONE: "Success; if the command judges, nothing is wrong and nothing differs.",
    ExitCode.NO: "Answered, and the answer is negative: something differs, is violated or wrong, "
    "a known defect occurs, or a run failed.",
    ExitCode.UNUSABLE: "Not answered, because of the input: a wrong option, or a file, moment, "
    "history or object that does not exist. The same command is refused again.",
    ExitCode.IN_PART: "Answered in part: what could be compared agrees, and something could not be "
    "compared, a second opinion disagrees, or a scheduler made another allowed choice.",
    ExitCode.NO_ANSWER: "Not answered, because of the environment: a database or a server does "
    "not answer or refuses access, or a disk is full. The same command may "
    "work later.",
    ExitCode.DEFECT: "Not answered, because of a defect in redra, which the traceback shows.",
    ExitCode.INTERRUPTED: "Interrupted (Ctrl-C).",
}

NEGATIVE = {
    "allocate": "with --check: an allocation breaks a rule that no known quirk explains",
    "cel": "the expression does not compile (3: a second opinion disagrees)",
    "demo": "a step disagrees",
    "diff": "something differs",
    "findings": "something is wrong, or a known defect occurs",
    "incidents run": "a fact is not observed",
    "lint": "a finding has at least the severity of --fail-on",
    "rebuild": "a view differs from the dropped one",
    "rehearse": "something changes (2: nothing could be compared)",
    "replay": "verify: it failed; decide: a difference is unexplained (3: in part)",
    "scan": "a known defect or trap occurs",
    "serve-replay": "with --until-end: a recorded event conflicted with what clients wrote (4: the "
    "replay could not go on)",
    "sweep": "a run failed",
    "verify": "it failed (3: verified in part, or with --live nothing but allowed other choices)",
    "watch-over": "a rule is broken, or a known defect occurs (3: nothing but allocations that are "
    "allowed choices other than redra's)",
}
"""The condition for exit code 1 of each command with a verdict; others never exit with 1."""

OF_DISKS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""The errors of the system for a disk that is full or fails, and for a limit of space."""

_NOT_AS_GIVEN = (Unauthorized, Forbidden, TooManyRequests)
"""Refusals that a repeated request may not get."""


def begin() -> None:
    """Reset the exit code at the start of a command."""
    _concluded.set(ExitCode.DONE)


def conclude(code: int) -> None:
    """Set the exit code for a normal end and for a closed output pipe."""
    _concluded.set(code)


def concluded() -> int:
    """The exit code that is set so far."""
    return _concluded.get()


def of(problem: BaseException) -> ExitCode:
    """The exit code for an error."""
    cause = problem.__cause__
    if isinstance(cause, OSError) and cause.errno in OF_DISKS:
        return ExitCode.NO_ANSWER
    if isinstance(problem, (InputError, NotStorable, RevisionTooLarge, ChainBroken)):
        return ExitCode.UNUSABLE
    if isinstance(problem, Rejected) and not isinstance(problem, _NOT_AS_GIVEN):
        return ExitCode.UNUSABLE if problem.code < 500 else ExitCode.NO_ANSWER
    return ExitCode.NO_ANSWER


def table() -> Iterable[tuple[int, str]]:
    """The exit codes with their meanings."""
    return ((code.value, text) for code, text in MEANINGS.items())
