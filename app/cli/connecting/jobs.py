"""Jobs of a server for commands: started, followed, fetched, and cancelled when interrupted."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from app.cli.connecting import answering, reading
from app.domain.errors import InputError, NotFound, RedraError

if TYPE_CHECKING:  # heavy: not needed for a command without a server
    from app.bootstrap.asking.servers import AskedServer
    from app.domain.values.json_tree import JsonObject

WAIT_SECONDS = 1.0
"""The longest time until new progress is shown."""

_UNNAMED = re.compile(r"[^-A-Za-z0-9._]")
"""The characters that the name of a file on a server cannot have."""

_NAME_MAX = 100


class ServerJob:
    """A job that a server runs for this command."""

    def __init__(self, server: "AskedServer", path: str, body: object, *histories: str) -> None:
        """Start it. Raises Rejected, InputError, ServerUnreachable.

        A missing one of the histories is named. `as_of` is the field that says which instant the
        relative moment of the job names; such moments are resolved here.
        """
        self.as_of: dict[str, str] = {}
        self._server = server
        self._fields = frozenset(body) if isinstance(body, dict) else frozenset[str]()
        self._state = server.start(path, body, histories)

    def wait(self, report_progress: "Callable[[JsonObject], None]") -> Any:
        """The result of the job; `report_progress` is called with its progress.

        Raises InputError with the problem of a job that fails. An interrupted job is cancelled.
        """
        path = self._state["path"]
        try:
            while self._state["state"] in ("waiting", "running"):
                self._state = self._server.tree(path, {"wait": str(WAIT_SECONDS)})
                if self._state["progress"]:
                    report_progress(self._state["progress"])
        except KeyboardInterrupt:
            self._server.remove(path)
            raise
        if self._state["state"] == "done":
            return self._state["result"]
        problem = self._state["problem"] or {"message": "the job was cancelled"}
        self._forget()
        place = problem.get("place", "")
        # A field of the request is an option of the command.
        option = f"--{place}" if place in self._fields else place
        raise InputError(problem["message"], place=option, cure=problem.get("cure", ""))

    def fetch(self) -> dict[str, bytes]:
        """The files of the result, by name. The server forgets the job then."""
        files = {each["name"]: self._server.content(each["path"]) for each in self._state["files"]}
        self._forget()
        return files

    def _forget(self) -> None:
        try:
            self._server.remove(self._state["path"])
        except RedraError:
            # Its result is here, and the server forgets the job in time.
            return


def of_history(
    server: "AskedServer", what: str, place: tuple[str, str], wish: "JsonObject"
) -> ServerJob:
    """A job about a history up to a moment. Raises Rejected, InputError, ServerUnreachable."""
    name, moment = place
    pinned = answering.served_moments(server, name, moment)
    (moment,) = pinned.moments
    path = f"/redra/v1/histories/{quote(name)}/{what}"
    try:
        job = ServerJob(server, path, {**wish, "at": moment}, name)
        job.as_of = pinned.as_of
        return job
    except NotFound as problem:
        if problem.resource != "revisions":
            raise
        raise InputError(problem.message, place=f"{name}@{moment}") from problem


def file_name(name: str, default: str) -> str:
    """A name that a file on a server may have, like this one."""
    return _UNNAMED.sub("-", name).lstrip("-._")[:_NAME_MAX] or default


def is_history(source: str, server: "AskedServer", folder: Path = Path()) -> bool:
    """Whether a source is a history of a server, and not a file. Raises InputError for a file.

    The paths of files are relative to `folder`.

    Only a server that is named on the command line refuses a file: one of the environment leaves it
    to the command.
    """
    name = source.partition("@")[0]
    is_file = "/" in source or (
        (folder / source).exists() and name not in [each["name"] for each in server.histories()]
    )
    if is_file and reading.chosen():
        raise InputError(
            "it is a file, and a server reads only its histories",
            place=source,
            cure="import it there, or leave out --server",
        )
    return not is_file


def refuse_workers(workers: int, scheduler: str) -> None:
    """Raise InputError for workers of a command whose work a server does."""
    if workers or scheduler:
        raise InputError(
            "a server does this work in a process of its own",
            place="--workers" if workers else "--scheduler",
            cure="leave it out, or leave out --server",
        )
