"""Servers that answer the requests of commands: the data folder's server, or a named one.

A command with a server need not load, open or fold anything itself.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

import msgspec

from app.adapters.running import notice
from app.bootstrap.asking.queries import ServedQuery, no_history, refusal
from app.domain.errors import InputError, NotFound, Rejected, ServerUnreachable

if TYPE_CHECKING:  # a command without a server loads no client
    from app.adapters.running.connection import ServerConnection
    from app.adapters.running.credentials import ServerLogin
    from app.settings import Settings

AUTO, NONE = "auto", "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """The server options of a command: an address, `auto`, `none`; a kubeconfig's context.

    An empty `server` means the server of the settings, an empty `kubeconfig` that of kubectl.
    """

    server: str = ""
    context: str = ""
    kubeconfig: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedServer:
    """A server, with the history and moment that its context names.

    `is_named` is false when the data folder's server was found without being named.
    """

    connection: "ServerConnection"
    is_named: bool
    history: str = ""
    moment: str = ""

    def ask(self, query: ServedQuery) -> bytes:
        """The answer to a query. Raises Rejected, InputError, ServerUnreachable."""
        at = query.at
        if query.is_page and not at:
            at = str(self.facts(query.history)["revision"])
        path, parameters = query.path(at), query.query(at)
        try:
            if query.body is not None:
                answer = self.connection.post(path, parameters, query.body)
            else:
                answer = self.connection.get(path, parameters)
        except Rejected as problem:
            raise self._meaning_of(problem, query) from problem
        return answer if query.is_page else self._checked(answer)

    def lines(self, query: ServedQuery) -> Iterator[bytes]:
        """The lines of the answer, as they arrive."""
        try:
            for line in self.connection.lines(query.path(query.at), query.query(query.at)):
                yield self._checked(line)
        except Rejected as problem:
            raise self._meaning_of(problem, query) from problem

    def histories(self) -> list[dict[str, Any]]:
        """The server's list of histories."""
        items: list[dict[str, Any]] = self.tree("/redra/v1/histories")["items"]
        return items

    def facts(self, name: str) -> Mapping[str, Any]:
        """The server's facts about a history. Raises Rejected, InputError, ServerUnreachable."""
        path = f"/redra/v1/histories/{quote(name)}"
        try:
            return self.tree(path)
        except Rejected as problem:
            raise self._meaning(problem, "", (name,)) from problem

    def tree(self, path: str, parameters: Mapping[str, str] = {}) -> dict[str, Any]:
        """The answer at a path. Raises Rejected, InputError, ServerUnreachable."""
        tree: dict[str, Any] = json.loads(self._checked(self.connection.get(path, parameters)))
        return tree

    def start(self, path: str, body: object, histories: Sequence[str] = ()) -> dict[str, Any]:
        """Start a job that reads histories; returns its state.

        Raises Rejected, InputError, ServerUnreachable.
        """
        try:
            answer = self._checked(self.connection.post(path, {}, body))
        except Rejected as problem:
            raise self._meaning(problem, "", histories) from problem
        tree: dict[str, Any] = json.loads(answer)
        return tree

    def fork(self, name: str, body: object) -> dict[str, Any]:
        """Fork a history; returns the facts about the fork, when it is finished.

        Raises Rejected, InputError, ServerUnreachable.
        """
        path = f"/redra/v1/histories/{quote(name)}/fork"
        try:
            answer = self._checked(self.connection.post_patiently(path, body))
        except Rejected as problem:
            raise self._meaning(problem, "", (name,)) from problem
        tree: dict[str, Any] = json.loads(answer)
        return tree

    def content(self, path: str) -> bytes:
        """A file at a path. Raises Rejected, InputError, ServerUnreachable."""
        return self.connection.get(path, {})

    def remove(self, path: str) -> None:
        """Cancel and forget a job. Raises Rejected, InputError, ServerUnreachable."""
        self.connection.delete(path)

    def delete(self, name: str) -> None:
        """Delete a history. Raises InputError, Rejected, ServerUnreachable."""
        try:
            self.remove(f"/redra/v1/histories/{quote(name)}")
        except Rejected as problem:
            raise self._meaning(problem, "", (name,)) from problem

    def _checked(self, text: bytes) -> bytes:
        """The text if it is a JSON object: a server other than redra's may send pages or lists."""
        try:
            msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        except (msgspec.DecodeError, ValueError) as problem:
            raise ServerUnreachable(
                f"{self.connection.url}: the server's answer is not one of redra"
            ) from problem
        return text

    def _meaning(self, problem: Rejected, at: str, histories: Sequence[str]) -> Exception:
        """The error of a command for a refused request; a missing history is named."""
        if isinstance(problem, NotFound) and problem.resource == "histories":
            names = [str(one["name"]) for one in self.histories()]
            for name in histories:
                if name and name not in names:
                    return no_history(name, names)
        return refusal(problem, at)

    def _meaning_of(self, problem: Rejected, query: ServedQuery) -> Exception:
        return self._meaning(problem, query.at, (query.history, query.parameters.get("with", "")))


def find(
    settings: "Settings", aim: Aim = Aim(), *, note: Callable[[str], None] = lambda _: None
) -> AskedServer | None:
    """The server for a command; None when the command opens the data itself. Raises InputError.

    `note` is called when the data folder's server is not trusted, and when a token is not sent.
    """
    if aim.context or aim.kubeconfig:
        return _of_context(settings, aim)
    wanted = aim.server or settings.server
    if wanted == NONE:
        return None
    if wanted == AUTO:
        try:
            own = _of_folder(settings)
        except InputError as problem:
            note(f"the server of the data folder is not queried: {problem}")
            return None
        return (
            None
            if own is None
            else AskedServer(connection=_connection(own, settings), is_named=False)
        )
    from app.adapters.running import credentials

    if not settings.server_token:
        with suppress(InputError):
            own = _of_folder(settings)
            if own is not None and own.url == wanted.rstrip("/"):
                return _placed(own, settings)
    token = settings.server_token
    if token and not _has_token(settings, wanted):
        token = ""
        note(f"REDRA_SERVER_TOKEN is not sent to {wanted}: it is another server, or has no TLS")
    login = credentials.of_address(wanted, token=token, authority=settings.server_authority_file)
    return _placed(login, settings)


def _of_folder(settings: "Settings") -> "ServerLogin | None":
    """The login for the server that runs on the data folder. Raises InputError."""
    known = notice.read(settings.data, database=settings.database_url)
    if known is None:
        return None
    from app.adapters.running import credentials

    return credentials.of_own_kubeconfig(known.kubeconfig, known.url)


def _has_token(settings: "Settings", wanted: str) -> bool:
    """Whether the settings' token is meant for an address, and is encrypted on the way there."""
    from app.adapters.running import credentials

    of_settings = settings.server
    return credentials.may_have_credentials(wanted) and (
        of_settings in (AUTO, NONE) or credentials.origin(of_settings) == credentials.origin(wanted)
    )


def _of_context(settings: "Settings", aim: Aim) -> AskedServer:
    import asyncio

    from app.adapters.cluster.logins import login_of

    if aim.server in (AUTO, NONE):
        raise InputError(
            f"--server {aim.server} and a context of a kubeconfig cannot be combined",
            cure="give one of them",
        )
    paths = aim.kubeconfig or settings.kubeconfig()
    login = asyncio.run(
        login_of(paths, aim.context, address=aim.server, seconds=settings.record_login_seconds)
    )
    return _placed(login, settings)


def _connection(login: "ServerLogin", settings: "Settings") -> "ServerConnection":
    from app.adapters.running.connection import AskingBounds, ServerConnection

    return ServerConnection(
        login,
        AskingBounds(
            connect_seconds=settings.server_connect_seconds,
            answer_seconds=settings.server_answer_seconds,
            answer_bytes_max=settings.server_answer_bytes_max,
        ),
    )


def _placed(login: "ServerLogin", settings: "Settings") -> AskedServer:
    """The server at an address, which may be that of one of its histories and moments."""
    place = urlsplit(login.url)
    front, mark, rest = place.path.partition("/h/")
    name, at, moment = unquote(rest.split("/")[0]).partition("@")
    if at and not moment:
        raise InputError(f"there is no moment behind the @ of {f'{name}@'!r}", place=login.url)
    base = place._replace(path=front, query="", fragment="").geturl()
    named = replace(login, url=base)
    return AskedServer(
        connection=_connection(named, settings),
        is_named=True,
        history=name if mark else "",
        moment=moment if mark else "",
    )
