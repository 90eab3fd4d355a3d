"""The credentials for a server: from a kubeconfig that redra wrote, or from an address and a token.

Kubeconfigs of redra hold a token or a client certificate, and the authority; they are read here.
Contexts of other kubeconfigs may use exec plug-ins and other features, which the client library
supports.
"""

import base64
import binascii
import ipaddress
import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from app.adapters.running import notice
from app.domain.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLogin:
    """The address of a server, the headers of requests and the context of TLS connections.

    `server_name` is the name in the certificate of the server where that is not its address.
    """

    url: str
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    tls: ssl.SSLContext | None = None
    server_name: str = ""


def origin(url: str) -> tuple[str, str, int]:
    """The scheme, host and port of an address.

    Raises InputError for anything but an HTTP address.
    """
    try:
        place = urlsplit(url)
        host, port = place.hostname or "", place.port
    except ValueError:
        host, port = "", None
    if not host or place.scheme not in ("http", "https"):
        raise InputError(
            f"{url!r} is not the address of a server",
            place="--server",
            cure="write it as https://HOST:PORT, or auto, or none",
        )
    return place.scheme, host, port or (443 if place.scheme == "https" else 80)


def may_have_credentials(url: str) -> bool:
    """True if requests to the address cannot be read on their way: TLS, or this machine."""
    scheme, host, _ = origin(url)
    if scheme == "https" or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def of_address(url: str, *, token: str, authority: Path | None) -> ServerLogin:
    """The ServerLogin for an address and an optional token.

    `authority` is a file that replaces the system's authorities. The token is left out where others
    could read it on its way. Raises InputError.
    """
    scheme, _, _ = origin(url)
    headers = {"authorization": f"Bearer {token}"} if token and may_have_credentials(url) else {}
    if scheme == "http":
        return ServerLogin(url=url.rstrip("/"), headers=headers)
    try:
        tls = ssl.create_default_context(cafile=None if authority is None else str(authority))
    except OSError as problem:
        raise InputError(
            f"the certificate of the authority cannot be read: {problem.strerror or problem}",
            place=str(authority),
        ) from problem
    return ServerLogin(url=url.rstrip("/"), headers=headers, tls=tls)


def of_own_kubeconfig(path: Path, address: str) -> ServerLogin:
    """The ServerLogin from a kubeconfig that the server at an address wrote. Raises InputError."""
    import yaml

    try:
        tree: Any = yaml.safe_load(notice.read_own(path))
        cluster, user = tree["clusters"][0]["cluster"], tree["users"][0]["user"]
        url = str(cluster["server"]).rstrip("/")
        token = user.get("token", "")
        if origin(url) != origin(address):
            raise InputError(f"it is for {url}, and the server is {address}", place=str(path))
        headers = {"authorization": f"Bearer {token}"} if may_have_credentials(url) else {}
        return ServerLogin(
            url=address.rstrip("/"),
            headers=headers if token else {},
            tls=_tls_of(url, cluster, user),
        )
    except (OSError, yaml.YAMLError, LookupError, TypeError, AttributeError, ValueError) as problem:
        raise InputError("this is not a kubeconfig that redra wrote", place=str(path)) from problem


def _tls_of(url: str, cluster: dict[str, Any], user: dict[str, Any]) -> ssl.SSLContext | None:
    if not url.startswith("https://"):
        return None
    authority = cluster.get("certificate-authority-data")
    tls = ssl.create_default_context(cadata=_decoded(authority) if authority else None)
    certificate, key = (user.get(f"client-{part}-data") for part in ("certificate", "key"))
    if certificate and key:
        # The TLS library reads certificates only from files; this file is removed immediately.
        with tempfile.NamedTemporaryFile(prefix="redra-login-", suffix=".pem") as file:
            file.write(f"{_decoded(certificate)}\n{_decoded(key)}".encode())
            file.flush()
            tls.load_cert_chain(file.name)
    return tls


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode()
    except binascii.Error as problem:
        raise ValueError("no base64") from problem
