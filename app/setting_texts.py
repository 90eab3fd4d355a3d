"""Texts of the environment as values of settings: paths, switches, numbers within their bounds."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin

_SWITCH = {
    **dict.fromkeys(("1", "true", "t", "yes", "y", "on"), True),
    **dict.fromkeys(("0", "false", "f", "no", "n", "off"), False),
}


SIMILAR_MIN = 0.8
"""The similarity of two names from which on one is taken for the other misspelt, at most 1."""

_OF_SERVICES = re.compile(
    r"(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$"
)
"""The ends of variables that the kubelet gives to containers for each Service of a namespace."""


def misspelt(
    variables: Iterable[str], prefix: str, settings: Iterable[str]
) -> tuple[tuple[str, str], ...]:
    """The variables that name no setting but nearly one, each with the variable of that setting.

    Variables of Services, such as `REDRA_PORT` of a Service `redra`, are never among them.
    """
    begins = [name for name in variables if name.upper().startswith(prefix)]
    if not begins:
        return ()
    known = {f"{prefix}{name.upper()}": name.upper() for name in settings}
    odd = sorted(name for name in begins if name not in known and not _OF_SERVICES.search(name))
    pairs = ((name, _most_similar(name.upper().removeprefix(prefix), known)) for name in odd)
    return tuple((name, similar) for name, similar in pairs if similar)


def _most_similar(name: str, known: Mapping[str, str]) -> str:
    """The variable of the setting whose name is most similar; empty when none is similar enough."""
    from difflib import get_close_matches

    close = get_close_matches(name, known.values(), n=1, cutoff=SIMILAR_MIN)
    return next((variable for variable, each in known.items() if each in close), "")


def read(value: object, kind: Any, bounds: Mapping[str, Any]) -> object:
    """A text, or a value as it is, as a value of the type and within `ge`, `gt` and `le`.

    A switch is `true` or `false`, `yes`, `no`, `on`, `off`, `1` or `0`. Raises ValueError with what
    the value must be.
    """
    if isinstance(value, str):
        value = _parsed(kind, value)
    if isinstance(value, (int, float)):
        _check_bounds(bounds, value)
    return value


def _parsed(kind: Any, text: str) -> object:
    """The text as a value of this type. Raises ValueError with what it must be."""
    if get_origin(kind) is Literal:
        if text not in get_args(kind):
            words = ", ".join(f"`{word}`" for word in get_args(kind) if word)
            raise ValueError(f"one of {words}")
        return text
    if NoneType in get_args(kind):
        return Path(text) if text else None
    if kind is Path and not text:
        raise ValueError("the name of a folder or file, not empty")
    if kind is bool:
        if text.lower() not in _SWITCH:
            raise ValueError("`true` or `false`")
        return _SWITCH[text.lower()]
    if kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            raise ValueError("a whole number" if kind is int else "a number") from None
    return kind(text)


def _check_bounds(bounds: Mapping[str, Any], value: float) -> None:
    if bounds["ge"] is not None and not value >= bounds["ge"]:
        raise ValueError(f"{bounds['ge']} or more")
    if bounds["gt"] is not None and not value > bounds["gt"]:
        raise ValueError(f"more than {bounds['gt']}")
    if bounds["le"] is not None and not value <= bounds["le"]:
        raise ValueError(f"{bounds['le']} or less")
