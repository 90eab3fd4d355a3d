"""Options and arguments for a moment, with the same syntax and error messages everywhere.

A moment is a revision, an instant, a time of day, or a duration before the end
(`app/domain/values/moments.py`). The reader of the history resolves it.
"""

from typing import Annotated, Any, TypeVar

import typer

from app.domain.errors import InputError
from app.domain.values import moments

METAVAR = "MOMENT"
HISTORY = "Name of the history, or HISTORY@MOMENT for its state at a moment."
HISTORY_OR_DEFAULT = "Name of the history, or HISTORY@MOMENT [default: default]."
FORMS = "42, 2026-01-02T03:04:05Z, 03:04:05, 10m"
"""Examples: a revision, an instant, the last such time of day, a duration before the end."""

Moments = TypeVar("Moments", str, list[str] | None)


def option(*names: str, help: str) -> Any:
    """An option that takes a moment, or a list of moments."""
    return typer.Option(*names, metavar=METAVAR, help=help, callback=_checked)


def split(text: str, at: str = "") -> tuple[str, str]:
    """The history and moment of `HISTORY@MOMENT`, or the moment of `--at`.

    Raises InputError for two different moments, and for a text that is not a moment.
    """
    name, mark, moment = text.partition("@")
    if mark and not moment:
        raise InputError(
            f"there is no moment behind the @ of {text!r}",
            cure="write HISTORY for its end, or HISTORY@MOMENT",
        )
    if mark and at and at != moment:
        raise InputError(
            f"the moment is named twice, {moment!r} and {at!r}", place="--at", cure="name it once"
        )
    if moment:
        check(moment)
    return name, moment or at


def placed(argument: str, option: str, at: str = "") -> tuple[str, str]:
    """The history and moment of a command; either may be empty.

    The history is an argument or the value of `--history`; the moment follows it as in
    `HISTORY@MOMENT`, or is a separate option. Raises InputError for two different values, and for a
    text that is not a moment.
    """
    if argument and option and argument != option:
        raise InputError(
            f"the history is named twice, {argument!r} and {option!r}", cure="name it once"
        )
    return split(argument or option, at)


def check(text: str) -> None:
    """Raise InputError for a text that is not a moment."""
    moments.check(text)


def _checked(value: Moments) -> Moments:
    """The option's value, checked. Raises InputError for a text that is not a moment."""
    for text in [value] if isinstance(value, str) else value or ():
        if text:
            check(text)
    return value


AT = f"The moment: a revision, a time, or a duration before the end ({FORMS})."

AtOption = Annotated[str, option(help="The same as HISTORY@MOMENT.")]
