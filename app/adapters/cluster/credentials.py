"""The connection to a cluster from a kubeconfig: server, TLS, proxy, credentials, as in kubectl.

The client library reads the file; `exec_plugins` runs the plug-ins that it names. Keys and
certificates that are embedded in the file, or that a plug-in returns, are kept in a private folder
while they are used.
"""

import asyncio
import atexit
import os
import re
import ssl
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, cast

import anyio
import yaml
from cryptography import x509
from kubernetes_asyncio.client import Configuration
from kubernetes_asyncio.client.rest import RESTClientObject
from kubernetes_asyncio.config import ConfigException
from kubernetes_asyncio.config.kube_config import (
    ConfigNode,
    FileOrData,
    KubeConfigLoader,
    KubeConfigMerger,
)

from app.adapters.cluster import exec_plugins, proxies
from app.adapters.private_folders import PrivateFolder
from app.domain.errors import InputError
from app.domain.values import timestamps
from app.domain.values.timestamps import SECOND, Instant
from app.ports import Clock

_BEARER = "BearerToken"
_PAUSE_SECONDS, _PAUSE_SECONDS_MAX = 1, 64
"""The time between two readings of credentials that the server refuses, and the longest one."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_LISTS = ("clusters", "contexts", "users")

_NAMED_MAX = 8
"""Contexts that a message names; of more it gives the number."""


class _Loader(KubeConfigLoader):
    """The library's reading of a kubeconfig, with plug-ins that end when nobody waits for them."""

    cert_file: str | None
    key_file: str | None
    expires: Instant | None = None
    is_of_plugin = False

    async def load_from_exec_plugin(self) -> bool:
        """Run the plug-in of the user. Raises ConfigException."""
        user, cluster = cast(Any, self._user), cast(Any, self._cluster)  # nodes of the file
        folder = self._get_base_path(user.path)
        plugin = exec_plugins.plugin_of(user["exec"].value, cluster.value, folder=folder)
        credential = await exec_plugins.run(plugin)
        self.expires, self.is_of_plugin = credential.expires, True
        if credential.token:
            self.token = f"Bearer {credential.token}"
        if credential.certificate:
            self.cert_file = self._as_file(credential.certificate)
            self.key_file = self._as_file(credential.key)
        return True

    def _as_file(self, text: str) -> str | None:
        """The path of a private file with the text."""
        data = {"data": text}
        source = FileOrData(
            data, None, data_key_name="data", file_base_path="",
            base64_file_content=False, temp_file_path=self._temp_file_path,
        )  # fmt: skip
        path: str | None = source.as_file()
        return path


class _Merger(KubeConfigMerger):
    """Several kubeconfigs as one, as in kubectl: of each value, the first file that has it counts.

    The library does so for all but the current context, and does not take empty files.
    """

    def load_config(self, path: str) -> None:
        """Add a file."""
        content = Path(path).read_bytes()
        if not content.strip():
            return
        _check_kubeconfig(content, path)
        merged = self.config_merged
        current = merged.value.get("current-context") if merged is not None else ""
        super().load_config(path)
        if current and self.config_merged is not None:
            self.config_merged.value["current-context"] = current


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """One reading of the kubeconfig: connections, and the header that authenticates requests.

    `number` counts the readings; `configuration` is the library's view of the file. From `expires`
    on, what was read is no longer used; None if it tells no end. `is_of_plugin` is true where an
    exec plug-in gave it.
    """

    number: int
    rest: RESTClientObject
    server: str
    headers: dict[str, str]
    configuration: Configuration = field(repr=False)
    expires: Instant | None = None
    is_of_plugin: bool = False


class ClusterCredentials:
    """The credentials of one context. `login` reads them, again after a refusal or at their end.

    What was read and is refused at once is read again after a pause, which doubles: an exec plug-in
    may open a browser. An exec plug-in is waited for `seconds`.
    """

    def __init__(self, kubeconfig: str, context: str, clock: Clock, *, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._paths = kubeconfig
        self._context = context
        self._lock = asyncio.Lock()
        self._logins: list[Login] = []
        self._users = Counter[int]()
        self._pause = _PAUSE_SECONDS
        self._again = self._clock.steady()
        self._failures = 0
        self._failure: InputError | None = None

    @property
    def place(self) -> str:
        """Kubeconfig and context, for messages."""
        return f"{self._paths} (context {self._context})" if self._context else self._paths

    async def login(self, refused: Login | None = None) -> Login:
        """The present credentials; read again when they are the `refused` ones or have expired.

        Raises InputError, for all who waited for one reading that failed: an exec plug-in, which
        may open a browser, does not run once for each watch.
        """
        failures = self._failures
        async with self._lock:
            if self._failure is not None and self._failures > failures:
                problem = self._failure
                raise InputError(problem.problem, place=problem.place, cure=problem.cure)
            current = self._logins[-1] if self._logins else None
            if current is not None and self._is_usable(current, refused):
                return current
            if current is not None and self._clock.steady() < self._again:
                if self._failure is None:
                    return current
                problem = self._failure
                raise InputError(problem.problem, place=problem.place, cure=problem.cure)
            try:
                fresh = await self._read(0 if current is None else current.number + 1)
            except InputError as problem:
                self._failures, self._failure = self._failures + 1, problem
                self._put_off()
                raise
            self._logins.append(fresh)
            self._failure = None
            if current is not None:
                self._put_off()
            await self._close_unused()
            return fresh

    def _put_off(self) -> None:
        self._again = self._clock.steady() + self._pause * SECOND
        self._pause = min(self._pause * 2, _PAUSE_SECONDS_MAX)

    def accept(self, login: Login) -> None:
        """Note that the server accepts a reading, which is then read anew at once when refused."""
        if self._logins and login.number == self._logins[-1].number:
            self._again, self._pause = self._clock.steady(), _PAUSE_SECONDS

    @asynccontextmanager
    async def held(self, login: Login) -> AsyncIterator[None]:
        """Keeps the connections of a reading open for a request.

        A watch may outlive several readings: servers do not end it when its token expires.
        """
        self._users[login.number] += 1
        try:
            yield
        finally:
            self._users[login.number] -= 1
            await self._close_unused()

    async def _close_unused(self) -> None:
        """Close the connections of readings that no request uses, but for the newest one's."""
        older, newest = self._logins[:-1], self._logins[-1:]
        self._logins = [each for each in older if self._users[each.number]] + newest
        for each in older:
            if not self._users[each.number]:
                del self._users[each.number]
                await each.rest.close()

    def _is_usable(self, login: Login, refused: Login | None) -> bool:
        is_refused = refused is not None and refused.number == login.number
        has_expired = login.expires is not None and login.expires <= self._clock.now()
        return not is_refused and not has_expired

    async def close(self) -> None:
        """End all connections."""
        while self._logins:
            await self._logins.pop().rest.close()

    async def _read(self, number: int) -> Login:
        chosen = Configuration()
        try:
            merged = _merged(self._paths, self._context)
            with anyio.fail_after(self._seconds):
                loader = _Loader(
                    config_dict=merged,
                    config_base_path=None,
                    active_context=self._context or None,
                    temp_file_path=_private_folder(),
                )
                await loader.load_and_set(chosen)
            # A file with a token ends with a line break, which client-go cuts off, too.
            token = (chosen.api_key.get(_BEARER) or "").strip()
            if _CONTROL.search(token):
                raise self._problem("its token has a control character, which no header may have")
            rest = RESTClientObject(chosen)
        except TimeoutError as problem:
            text = f"its exec plug-in has not answered for {self._seconds:g} s"
            raise self._problem(text) from problem
        except ssl.SSLError as problem:
            raise self._problem(
                f"a certificate or key in it cannot be used: {problem}"
            ) from problem
        except ConfigException as problem:
            raise self._problem(str(problem)) from problem
        except InputError:
            raise
        except Exception as problem:
            # Any other error of the library is about the content of the file.
            text = (
                f"{type(problem).__name__}: {problem}" if str(problem) else type(problem).__name__
            )
            raise self._problem(f"it cannot be used: {text}") from problem
        server = (chosen.host or "").rstrip("/")
        try:
            await proxies.choose(rest, server)
            expires = [loader.expires] if loader.expires is not None else []
            if not token:
                expires += self._certificate_end(chosen.cert_file)
        except InputError as problem:
            await rest.close()
            raise self._problem(problem.problem, problem.cure) from problem
        headers = {"authorization": token} if token else {}
        # A plug-in whose clock is behind prints times that have passed: refusals count instead.
        now = self._clock.now()
        return Login(
            number=number,
            rest=rest,
            server=server,
            headers=headers,
            configuration=chosen,
            expires=min((end for end in expires if end > now), default=None),
            is_of_plugin=loader.is_of_plugin,
        )

    def _certificate_end(self, path: str | None) -> list[Instant]:
        """The end of a client certificate. Raises InputError for one that has expired.

        Servers answer such a one by closing the connection, with or without a word.
        """
        if not path:
            return []
        try:
            certificate = x509.load_pem_x509_certificate(Path(path).read_bytes())
        except (ValueError, OSError):
            # Whether a certificate is valid is decided by the server, not by this reader.
            return []
        end = timestamps.from_datetime(certificate.not_valid_after_utc)
        if end < self._clock.now():
            text = f"its client certificate has expired at {timestamps.seconds_text(end)}"
            raise InputError(text, cure="renew it in its file, which is read again")
        return [end]

    def _problem(self, text: str, cure: str = "") -> InputError:
        # Programs and parsers write several lines; the message must be one sentence.
        cure = cure or "try the same with kubectl"
        return InputError(" ".join(text.split()), place=self.place, cure=cure)


@asynccontextmanager
async def open_credentials(
    kubeconfig: str, context: str, clock: Clock, *, seconds: float
) -> AsyncIterator[ClusterCredentials]:
    """The credentials of a context of a kubeconfig; of its current context if it has no name.

    The path may contain several files, as in `KUBECONFIG`. An exec plug-in is waited for `seconds`.
    """
    credentials = ClusterCredentials(kubeconfig, context, clock, seconds=seconds)
    try:
        yield credentials
    finally:
        await credentials.close()


def check_kubeconfig(kubeconfig: str, context: str) -> None:
    """Raises InputError if no file of a path is a kubeconfig, or none has the named context.

    Nothing is connected, and no plug-in runs.
    """
    with suppress(ConfigException):
        # What the library refuses is refused when the credentials are read.
        _merged(kubeconfig, context)


def _merged(paths: str, context: str) -> ConfigNode | None:
    """The kubeconfigs of a path as one, which has the named context. Raises InputError."""
    names = [name for name in paths.split(os.pathsep) if name]
    if not any(Path(name).expanduser().is_file() for name in names):
        raise InputError(
            "there is no such kubeconfig",
            place=paths,
            cure="name one with --kubeconfig, or set KUBECONFIG",
        )
    merged = _Merger(paths).config
    if merged is not None and context:
        known = [str(each.value.get("name")) for each in merged.value["contexts"]]
        if context not in known:
            cure = f"choose from {', '.join(known)}"
            if not known:
                cure = "name another kubeconfig with --kubeconfig"
            elif len(known) > _NAMED_MAX:
                cure = f"`kubectl config get-contexts` lists all {len(known)}"
            raise InputError(f"there is no context {context!r}", place=paths, cure=cure)
    return merged


def _check_kubeconfig(content: bytes, path: str) -> None:
    """Raises InputError if a file is no YAML mapping with lists of contexts, clusters and users."""
    try:
        tree = yaml.safe_load(content.decode())
    except (UnicodeDecodeError, RecursionError) as problem:
        reason = "it is nested too deeply"
        if isinstance(problem, UnicodeDecodeError):
            reason = "it is not UTF-8"
        raise InputError(
            reason, place=path, cure="name a kubeconfig with --kubeconfig"
        ) from problem
    except yaml.YAMLError as problem:
        text = " ".join(str(problem).split())
        if isinstance(problem, yaml.MarkedYAMLError) and problem.problem_mark is not None:
            mark = problem.problem_mark
            text = f"line {mark.line + 1}, column {mark.column + 1}: {problem.problem}"
        raise InputError(
            f"it is not YAML: {text}", place=path, cure="name a kubeconfig with --kubeconfig"
        ) from problem
    lists = [tree.get(name) or [] for name in _LISTS] if isinstance(tree, dict) else [None]
    if not all(isinstance(each, list) for each in lists):
        raise InputError(
            "it is not a kubeconfig",
            place=path,
            cure="name one with --kubeconfig, or set KUBECONFIG",
        )


@cache
def _private_folder() -> str:
    """The folder for the library's keys; one per process, as the library writes equal keys once."""
    folder = PrivateFolder()
    atexit.register(folder.cleanup)
    return folder.name
