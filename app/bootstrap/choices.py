"""The settings of a process: the environment, overridden by the command line."""

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from app.domain.errors import InputError
from app.settings import Settings


def settings(
    *,
    listen: str | None = None,
    data: Path | None = None,
    profile: str | None = None,
    tls: bool | None = None,
    authorization: str | None = None,
    policy: Path | None = None,
) -> Settings:
    """The settings; what is None is left to the environment. Raises InputError naming a bad one."""
    given: dict[str, Any] = {
        "listen": listen,
        "data": data,
        "profile": profile,
        "tls": tls,
        "authorization": authorization,
        "policy_file": policy,
    }
    try:
        return Settings(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as problem:
        first = problem.errors()[0]
        name = "REDRA_" + "_".join(str(part) for part in first["loc"]).upper()
        raise InputError(
            str(first["msg"]), place=name, cure="see docs/reference/settings.md"
        ) from problem
