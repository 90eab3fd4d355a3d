"""Kubeconfigs: written for a running server, read again, and made for histories and moments."""

import base64
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import yaml

from app.adapters.certificates import Certificate, write_private
from app.bootstrap import stores
from app.domain.errors import InputError, LogError
from app.domain.objects.schema import encode_yaml
from app.domain.values import moments as moment_texts
from app.domain.values.json_tree import JsonObject
from app.service import history_creation as names
from app.service.histories import DEFAULT_HISTORY
from app.service.moments import absolute as absolute_moment
from app.settings import Settings

NAME = "redra"
"""The name of cluster, user and context for the default history."""

_PROBE_SECONDS = 1.0
"""The longest time for a server in an older kubeconfig to accept a connection."""

_UNVERIFIED = "insecure-skip-tls-verify"


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The address and the credentials for a server: a token, or a client certificate."""

    url: str
    authority: Path | None = None
    token: str = ""
    client: Certificate | None = None


def publish(
    folder: Path,
    access: Access,
    *,
    is_shared: bool,
    is_taken: bool,
    note: Callable[[str], None],
) -> Path:
    """Write the kubeconfig of a server that has just started; returns its path.

    If another server has the notice of the folder (`is_taken`), or runs on the same data
    (`is_shared`), it keeps its kubeconfig, also while it has not written it yet, and this server
    gets a separate file. Otherwise it is unknown whose data another server has; then the file is
    overwritten. `note` is called in all cases.
    """
    path = folder / "kubeconfig"
    other = other_server(path, access.url)
    if is_taken or (other and is_shared):
        own = folder / f"kubeconfig-{urlsplit(access.url).port}"
        keeper = (
            f"still names {other}, which serves the same data"
            if other and is_shared
            else "is that of another server on this folder"
        )
        note(f"{path} {keeper}; the file of this server is {own}")
        return write(own, access)
    if other:
        note(
            f"{path} named {other}, which still answers, and now names this server; for the "
            f"other one: redra kubeconfig --data {folder} --server {other}"
        )
    return write(path, access)


def write(path: Path, access: Access) -> Path:
    """Write the kubeconfig of a server, readable only by its owner."""
    cluster: JsonObject = {"server": access.url}
    if access.authority is not None:
        cluster["certificate-authority-data"] = _encoded(access.authority)
    user: JsonObject = {}
    if access.client is not None:
        user["client-certificate-data"] = _encoded(access.client.certificate)
        user["client-key-data"] = _encoded(access.client.key)
    if access.token:
        user["token"] = access.token
    write_private(path, _text([(NAME, cluster)], user))
    return path


def other_server(path: Path, url: str) -> str:
    """The address in the kubeconfig at `path`, if it is not `url` and a server answers there.

    Empty otherwise, also without a file that redra wrote. The attempt to connect lasts at most a
    second.
    """
    try:
        named = str(_read(path)[0]["server"])
        place, own = urlsplit(named), urlsplit(url)
        if place.hostname is None or place.port is None:
            return ""
        if (place.hostname, place.port) == (own.hostname, own.port):
            # Before it started again, it served with or without TLS.
            return ""
        with socket.create_connection((place.hostname, place.port), timeout=_PROBE_SECONDS):
            return named
    except (InputError, OSError, ValueError):
        return ""


def for_moments(
    path: Path, *, histories: Sequence[str], moments: Sequence[str], server: str
) -> str:
    """The kubeconfig at `path`, with a context for each history and each of the moments.

    Without histories, the default history is used. `server` replaces the address. Raises InputError
    when no server has written the file.
    """
    for history in histories:
        names.check_name(history)
    for moment in moments:
        moment_texts.check(moment)
    cluster, user = _read(path)
    base = (server or str(cluster["server"])).rstrip("/")
    shown: list[tuple[str, JsonObject]] = []
    if not histories and not moments:
        shown.append((NAME, cluster | {"server": base}))
    for history in histories or ([DEFAULT_HISTORY] if moments else []):
        for moment in moments or [""]:
            at = f"@{moment}" if moment else ""
            place = quote(f"{history}{at}", safe="@:+")
            shown.append((f"{history}{at}", cluster | {"server": f"{base}/h/{place}"}))
    return _text(shown, user).decode()


async def absolute(
    settings: Settings, histories: Sequence[str], moments: Sequence[str]
) -> list[str]:
    """The moments in absolute form: `10m` means that long before the present end.

    Raises InputError for several histories, which end at different times.
    """
    if not any(moment_texts.needs_end(moment) for moment in moments):
        return list(moments)
    if len(histories) > 1:
        raise InputError(
            "histories end at different times", place="--at", cure="name one, or give instants"
        )
    async with stores.open_store(settings) as store:
        info = await stores.find_history(store, next(iter(histories), DEFAULT_HISTORY))
        end = await stores.find_end(store, info)
    return [absolute_moment(moment, end) for moment in moments]


async def check_contexts(
    settings: Settings,
    histories: Sequence[str],
    moments: Sequence[str],
    *,
    note: Callable[[str], None],
) -> None:
    """Raise InputError for a history that the settings' data does not contain, or a later moment.

    A moment is refused beyond the end of a history, at which its server refuses requests. The
    default history exists once a server has run. When the data is elsewhere or does not answer,
    every name and moment passes; `note` is called in the latter case.
    """
    named = [name for name in histories if name != DEFAULT_HISTORY]
    is_here = bool(settings.database_url) or (settings.data / "postgres").exists()
    if not is_here or not (named or moments):
        return
    try:
        async with stores.open_store(settings) as store:
            for name in named:
                await stores.find_history(store, name)
            for name in histories or (DEFAULT_HISTORY,):
                if (info := await store.log.find_history(name)) is not None:
                    for moment in moments:
                        await stores.check_past(store, info, moment, option="--at")
    except LogError as problem:
        unchecked = ", ".join(named or moments)
        noun = "histories" if named else "moments"
        note(f"these {noun} could not be checked: {unchecked}: {problem}")


def _text(clusters: Sequence[tuple[str, JsonObject]], user: JsonObject) -> bytes:
    tree: JsonObject = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": _reached(cluster)} for name, cluster in clusters],
        "users": [{"name": NAME, "user": user}],
        "contexts": [
            {"name": name, "context": {"cluster": name, "user": NAME}} for name, _ in clusters
        ],
        "current-context": clusters[0][0],
    }
    return encode_yaml.encode_yaml(tree).encode()


def _reached(cluster: JsonObject) -> JsonObject:
    """The cluster, allowing connections without TLS where there is none to verify.

    The JavaScript client otherwise refuses servers without TLS (api.md 13); others ignore it.
    """
    reached = {key: value for key, value in cluster.items() if key != _UNVERIFIED}
    if cluster["server"].startswith("http://") and "certificate-authority-data" not in cluster:
        reached[_UNVERIFIED] = True
    return reached


def _read(path: Path) -> tuple[JsonObject, JsonObject]:
    """Cluster and user of a file written by `write`. Raises InputError."""
    try:
        tree: Any = yaml.safe_load(path.read_bytes())
        cluster, user = tree["clusters"][0]["cluster"], tree["users"][0]["user"]
        if not isinstance(cluster["server"], str) or not isinstance(user, dict):
            raise TypeError("wrong types")
    except FileNotFoundError as problem:
        raise InputError(
            "there is no kubeconfig of a server",
            place=str(path),
            cure="start one with `redra up`, or name its folder with --data",
        ) from problem
    except (OSError, yaml.YAMLError, KeyError, IndexError, TypeError) as problem:
        raise InputError("this is not a kubeconfig that redra wrote", place=str(path)) from problem
    return cluster, user


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
