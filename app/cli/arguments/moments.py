"""Options and arguments that take a moment: all take the same texts, refused in the same words.

A moment is a revision, an instant, a time of day, or how long before the end of the history
(`app/domain/values/moments.py`). Whoever reads the history resolves it.
"""

from typing import Annotated, Any, TypeVar

import typer

from app.domain.errors import InputError
from app.domain.values import moments

METAVAR = "MOMENT"
HISTORY = "Name of the history, or HISTORY@MOMENT: as it was then."
HISTORY_OR_DEFAULT = "Name of the history, or HISTORY@MOMENT [default: default]."
FORMS = "42, 2026-01-02T03:04:05Z, 03:04:05, 10m"
"""Examples of moments: a revision, an instant, the last such time, so long before the end."""

Given = TypeVar("Given", str, list[str] | None)


def option(*names: str, help: str) -> Any:
    """An option that takes a moment, or a list of moments."""
    return typer.Option(*names, metavar=METAVAR, help=help, callback=_checked)


def split(text: str, at: str = "") -> tuple[str, str]:
    """History and moment of `HISTORY@MOMENT`, the moment perhaps given by `--at` instead.

    Raises InputError when it is given twice, and for a text that means no moment.
    """
    name, mark, moment = text.partition("@")
    if mark and at and at != moment:
        raise InputError(
            f"the moment is named twice, {moment!r} and {at!r}", place="--at", cure="name it once"
        )
    if moment:
        check(moment)
    return name, moment or at


def placed(argument: str, option: str, at: str = "") -> tuple[str, str]:
    """History and moment that a command means; either may be empty.

    The history stands as an argument or behind `--history`, the moment behind it, `HISTORY@MOMENT`,
    or in an option of its own. Raises InputError for what is named twice, or means no moment.
    """
    if argument and option and argument != option:
        raise InputError(
            f"the history is named twice, {argument!r} and {option!r}", cure="name it once"
        )
    return split(argument or option, at)


def check(text: str) -> None:
    """Raises InputError for a text that means no moment."""
    moments.check(text)


def _checked(value: Given) -> Given:
    """What was given, when every text of it means a moment."""
    for text in [value] if isinstance(value, str) else value or ():
        if text:
            check(text)
    return value


AT = f"The moment: a revision, a time, or how long before the end ({FORMS})."

AtOption = Annotated[str, option(help="The same as HISTORY@MOMENT.")]
