"""The settings of a process: the environment, overridden by the command line."""

import logging
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypedDict, Unpack, cast

from app.domain.errors import InputError
from app.settings import PREFIX, Settings, read

_log = logging.getLogger("redra")


class CommandOptions(TypedDict, total=False):
    """The settings for which commands have options; None leaves a setting to the environment."""

    listen: str | None
    data: Path | None
    server: str | None
    profile: str | None
    gates: Sequence[str] | None
    quirks: Sequence[str] | None
    tls: bool | None
    authorization: str | None
    policy: Path | None
    compact: bool | None
    verify_processes: int | None
    verify_scheduler: str | None


_NAMES = {"policy": "policy_file", "compact": "compact_like_etcd"}
"""Settings whose names differ from their options."""

_OPTIONS = {
    "policy_file": "--policy",
    "verify_processes": "--processes",
    "verify_scheduler": "--scheduler",
}
"""The same, as users write these options."""


def settings(**options: Unpack[CommandOptions]) -> Settings:
    """The settings, with the given options applied. Raises InputError naming a bad one.

    A variable of the environment that is nearly named as a setting is logged, once in a process.
    """
    values: dict[str, Any] = {}
    for option, value in options.items():
        if option in ("gates", "quirks"):
            value = _switches(f"--{option[:-1]}", cast(Sequence[str], value or ()))
        if value is not None:
            values[_NAMES.get(option, option)] = value
    try:
        chosen = read(values)
    except InputError as problem:
        setting = problem.place.removeprefix(PREFIX).lower()
        if setting not in values:
            raise
        option = _OPTIONS.get(setting, f"--{setting.replace('_', '-')}")
        raise InputError(problem.problem, place=option, cure=problem.cure) from problem
    for variable, similar in chosen.misspelt:
        _warn_of(variable, similar)
    return chosen


def _switches(option: str, texts: Sequence[str]) -> str | None:
    """The switches of an option, separated by commas. Raises InputError for one without a name."""
    for text in texts:
        if not all(part.strip() for part in text.split(",")):
            raise InputError(f"{text!r} has a switch without a name", place=option)
    return ",".join(texts) or None


@cache
def _warn_of(variable: str, similar: str) -> None:
    _log.warning("%s has no effect: do you mean %s?", variable, similar)
