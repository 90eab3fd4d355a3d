"""The settings of a process: the environment, overridden by the command line."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from app.settings import Settings, read


def settings(
    *,
    listen: str | None = None,
    data: Path | None = None,
    profile: str | None = None,
    gates: Sequence[str] | None = None,
    quirks: Sequence[str] | None = None,
    tls: bool | None = None,
    authorization: str | None = None,
    policy: Path | None = None,
    compact: bool | None = None,
    verify_processes: int | None = None,
) -> Settings:
    """The settings; what is None is left to the environment. Raises InputError naming a bad one."""
    given: dict[str, Any] = {
        "listen": listen,
        "data": data,
        "profile": profile,
        "gates": ",".join(gates) if gates else None,
        "quirks": ",".join(quirks) if quirks else None,
        "tls": tls,
        "authorization": authorization,
        "policy_file": policy,
        "compact_like_etcd": compact,
        "verify_processes": verify_processes,
    }
    return read({k: v for k, v in given.items() if v is not None})
