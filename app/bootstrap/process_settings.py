"""The settings of a process: the environment, overridden by the command line."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack, cast

from app.settings import Settings, read


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


def settings(**options: Unpack[CommandOptions]) -> Settings:
    """The settings, with the given options applied. Raises InputError naming a bad one."""
    values: dict[str, Any] = {}
    for option, value in options.items():
        if option in ("gates", "quirks"):
            value = ",".join(cast(Sequence[str], value or ())) or None
        if value is not None:
            values[_NAMES.get(option, option)] = value
    return read(values)
