"""Errors of the driver and of PostgreSQL as redra's errors, with their messages."""

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import parse_qs, urlsplit

import asyncpg
from asyncpg.exceptions._base import DataError as UnusableArgument

from app.domain.errors import LogError, LogUnavailable, NotFound, NotStorable, WrongDatabase
from app.domain.log import HistoryId

Unreachable = (
    OSError,
    TimeoutError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)
"""The errors that asyncpg raises when a statement or a connection fails.

The last one is an internal error of the driver, as when the server is killed during a statement.
"""

KEPT_OUT = "the database leaves out appended events: drop the trigger or rule that does that"
"""The message when fewer rows are stored than were appended."""

_BY_STATE: dict[str, str] = {
    "53100": "the disk of the database is full; free some space (acknowledged writes are safe)",
    "53200": "the database is out of memory",
    "53300": "the database accepts no more connections; raise its max_connections or close some",
    "53400": "a limit that the database's administrator set is reached",
    "22012": KEPT_OUT,
    "25006": "the database is read-only, as a standby is; name the primary server",
    "55P03": "another session holds the history's lock and did not give it back in time",
    "57014": "a statement took longer than allowed and was cancelled",
    "25P03": "the session waited inside a transaction for too long and was ended",
    "40P01": "the database broke a deadlock; repeat",
    "40001": "the database could not order concurrent transactions; repeat",
    "57P01": "the database server is being stopped",
    "57P02": "the database server crashed and is recovering",
    "57P03": "the database server is starting or stopping",
    "57P05": "the session was idle for too long and was ended",
    "58030": "the database cannot read or write its files",
}
"""Messages by SQLSTATE. The states of class 08 (connection) have their own message below."""

REFUSED_ROLE = (
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidPasswordError,
    asyncpg.InsufficientPrivilegeError,
)
"""The errors of asyncpg when a role does not exist, may not log in, or has no rights."""

_NO_SPACE = "No space left on device"

_LOST = "the connection to the database was lost"

_NOT_OURS: dict[str, str] = {
    "3D000": "the database does not exist; create it, then run `redra migrate`",
    "42P01": "the database lacks tables of redra; run `redra migrate`",
    "42703": "the tables of the database are not those of this version; run `redra migrate`",
    "3F000": "the schema of the database does not exist; create it, then run `redra migrate`",
    "42501": "the database role may not do this; grant it the rights to redra's tables",
    "28P01": "the database refused the password",
    "28000": "the database refused the role; check user name and access rules",
    "XX001": "the database says that its files are damaged; restore a backup",
    "XX002": "the database says that an index is damaged; reindex it",
}

_GONE: dict[str, str] = {
    "3D000": "the database is gone; it is waited for until it is there again",
    "42P01": "tables of redra are gone from the database; they are waited for",
    "42703": "tables of the database were changed; they are waited for until they are as before",
    "3F000": "the schema of the database is gone; it is waited for until it is there again",
    "42501": "the database role has lost its rights to redra's tables; grant them again",
}
"""Messages for what was there before, as a dump is restored or the schema is migrated."""

_NOT_STORABLE: dict[str, str] = {
    "22000": "a value is not one that the database can hold",
    "22021": "a text has a character that the database cannot store",
    "22P05": "a text has a character that the database cannot store",
    "22003": "a number is out of the range of the database",
    "22008": "a time is out of the range of the database",
}


def check_address(url: str) -> None:
    """Raise WrongDatabase for an address whose hosts or ports cannot be read.

    The driver lets the errors of the functions through with which it takes an address apart. No
    part of the address is shown: with a `#` in a password, the port is a piece of the password.
    """
    try:
        parts = urlsplit(url)
        ports = parse_qs(parts.query).get("port", [])
    except ValueError as problem:
        raise _no_address("its host cannot be read") from problem
    hosts = parts.netloc.rpartition("@")[2].split(",")
    named = [each.rpartition(":")[2] for each in hosts if ":" in each.rpartition("]")[2]]
    for port in (*named, *",".join(ports).split(",")):
        if port and not (port.isascii() and port.isdigit()):
            raise _no_address("a port is no number")


def _no_address(problem: object) -> WrongDatabase:
    return WrongDatabase(
        f"the address of the database cannot be used ({problem}); write REDRA_DATABASE_URL as "
        "postgresql://USER:PASSWORD@HOST:PORT/NAME, with percent-codes for characters such as / # "
        "and [ in the password (%2F %23 %5B)"
    )


def no_history(history: HistoryId) -> NotFound:
    """The error about a history that is not there."""
    return NotFound(f"history {history} not found", resource="histories", name=str(history))


@contextmanager
def of_history(history: HistoryId) -> Iterator[None]:
    """Translate the refusal of a row that refers to a history into NotFound: it was deleted."""
    try:
        yield
    except asyncpg.ForeignKeyViolationError as problem:
        raise no_history(history) from problem


@contextmanager
def translated(*, was_ours: bool = False) -> Iterator[None]:
    """Translate errors of the driver into LogUnavailable, WrongDatabase or NotStorable.

    `was_ours` means that the schema was checked before. Such a database that is now missing, or
    lacks tables or rights, is being restored or migrated: the error is LogUnavailable, so callers
    wait. Damaged files and a refused login are WrongDatabase in any case.
    """
    try:
        yield
    except Unreachable as problem:
        raise translate(problem, was_ours=was_ours) from problem


def translate(problem: BaseException, *, was_ours: bool = False) -> LogError:
    """redra's error for an error of the driver; `was_ours` as in `translated`.

    The details of the error are dropped: they may hold values of rows, and a traceback shows them.
    The words of the driver are the cause of the error, which logs show; a caller can do nothing
    with them while it waits.
    """
    if isinstance(problem, asyncpg.PostgresError):
        problem.detail = None
    message = _message(problem)
    if _NO_SPACE in str(problem):
        # When its journal cannot grow, PostgreSQL crashes on purpose and recovers by itself.
        return LogUnavailable(_BY_STATE["53100"])
    if isinstance(problem, asyncpg.PostgresError):
        state = problem.sqlstate or ""
        if state in _NOT_OURS:
            if was_ours and state in _GONE:
                return LogUnavailable(_GONE[state])
            return WrongDatabase(f"{_NOT_OURS[state]} ({message})")
        if state in _NOT_STORABLE:
            return NotStorable(f"{_NOT_STORABLE[state]} ({message})")
        if state in _BY_STATE:
            return LogUnavailable(_BY_STATE[state])
        if state.startswith("08") or isinstance(problem, asyncpg.PostgresConnectionError):
            return LogUnavailable(_LOST)
        return LogUnavailable(f"the database refused a statement (SQLSTATE {state})")
    if isinstance(problem, TimeoutError):
        return LogUnavailable("the database did not answer in time")
    if isinstance(problem, FileNotFoundError | ConnectionRefusedError):
        return LogUnavailable("no database server answers at its address")
    if isinstance(problem, asyncpg.exceptions.ClientConfigurationError):
        return _no_address(problem)
    if isinstance(problem, UnusableArgument):
        return NotStorable(f"the database cannot hold a value ({problem})")
    if isinstance(problem, asyncpg.InterfaceError | asyncpg.InternalClientError):
        return LogUnavailable(_LOST)
    reason = getattr(problem, "strerror", None) or ""
    return LogUnavailable(": ".join(filter(None, ("the database cannot be reached", reason))))


def _message(problem: BaseException) -> str:
    """The message of an error in one sentence, without details and hints."""
    if isinstance(problem, asyncpg.PostgresError) and problem.args:
        return str(problem.args[0])
    return str(problem)
