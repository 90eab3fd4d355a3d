"""Access to a server: its address, certificates, credentials and authorization."""

import errno
import ipaddress
import os
import re
import secrets
import socket
import ssl
from dataclasses import dataclass, field
from pathlib import Path

from app.adapters import signing_keys
from app.adapters.certificates import Certificate, CertificateFolder
from app.adapters.clock import SystemClock
from app.api.access.authorization import Authorization
from app.api.identity import files
from app.api.identity.authentication import ADMIN, ANONYMOUS, Credentials
from app.domain.errors import InputError, Rejected
from app.domain.objects.schema import decode
from app.settings import Settings

TOKEN_KEY = "service-accounts.key"  # noqa: S105 - the name of a file
"""The file in the data folder that holds the key of service accounts' tokens."""
LOCAL_TOKEN = "local"  # noqa: S105 - not a secret: it names who asks, on loopback only
"""The token in the kubeconfig of a server without authentication; clients require a token."""

_TEXT_MAX = 4 * 1024 * 1024
_PORT = re.compile(r"[0-9]{1,5}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """The address on which a server listens."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can connect."""
        try:
            return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def is_any(self) -> bool:
        """Whether the host means every address of the machine."""
        try:
            return ipaddress.ip_address(self.host).is_unspecified
        except ValueError:
            return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """The access settings of a server. `context`, `authority` and `client` are set with TLS.

    `token` is the token in the kubeconfig; empty when the kubeconfig has a client certificate.
    """

    address: Address
    credentials: Credentials
    authorization: Authorization
    token: str = field(repr=False)
    context: ssl.SSLContext | None = None
    authority: Path | None = None
    client: Certificate | None = None


def open_door(settings: Settings) -> Door:
    """Certificates, credentials and authorization of a server, from the settings.

    Only loopback is served without TLS, and only there are requests accepted without
    authentication. Other addresses need a client certificate or a token, and use RBAC unless
    another mode is chosen. Raises InputError.
    """
    address = parse_address(settings.listen)
    if not address.is_loopback and not settings.tls:
        raise InputError(
            f"{address.host!r} is not a loopback address, and connections to it would not be "
            "encrypted",
            place="--listen",
            cure="add --tls, or listen on 127.0.0.1",
        )
    authorization = _authorization(settings, address)
    known = _tokens(settings.tokens_file)
    _make_folder(settings.data)
    if settings.tls:
        folder = CertificateFolder(settings.data / "pki", now=SystemClock().now())
        server = folder.server(_hosts(address))
        client = folder.client("admin", user=ADMIN.user, groups=("system:masters",))
        credentials = Credentials(
            tokens=known.actors,
            uids=known.uids,
            anonymous=None,
            token_key=_token_key(settings),
        )
        return Door(
            address=address,
            credentials=credentials,
            authorization=authorization,
            token="",
            context=_context(server, folder.authority),
            authority=folder.authority,
            client=client,
        )
    # With RBAC in force, the administrator's token must be a secret on this machine too.
    token = LOCAL_TOKEN if authorization.is_open else secrets.token_urlsafe(32)
    credentials = Credentials(
        tokens={**known.actors, token: ADMIN},
        uids=known.uids,
        anonymous=ANONYMOUS,
        loopback_only=True,
        token_key=_token_key(settings),
    )
    return Door(address=address, credentials=credentials, authorization=authorization, token=token)


def _make_folder(data: Path) -> None:
    """Make the data folder, before keys and certificates are stored in it. Raises InputError."""
    problem = ""
    try:
        data.mkdir(parents=True, exist_ok=True)
    except OSError as refusal:
        problem = refusal.strerror or str(refusal)
    else:
        if not os.access(data, os.W_OK | os.X_OK):
            problem = os.strerror(errno.EACCES)
    if problem:
        raise InputError(
            f"the folder cannot be written: {problem}",
            place=str(data),
            cure="choose another with --data",
        )


def _token_key(settings: Settings) -> bytes:
    """The data folder's token key: tokens outlive the process and hold for its other processes."""
    return signing_keys.open_key(settings.data / TOKEN_KEY)


def parse_address(text: str) -> Address:
    """Host and port of a listen address. Raises InputError."""
    host, colon, port = text.rpartition(":")
    host = host.strip("[]")
    if not colon or not host or not _PORT.fullmatch(port) or int(port) > 65_535:
        raise InputError(
            f"{text!r} is not an address", place="--listen", cure="write it as 127.0.0.1:8080"
        )
    return Address(host=host, port=int(port))


def _authorization(settings: Settings, address: Address) -> Authorization:
    mode = settings.authorization
    policy = None
    if settings.policy_file is not None:
        text = _read(settings.policy_file, "--policy")
        try:
            decoded = decode.decode(text, is_yaml=True)
            tree = decode.as_object(decoded)
        except Rejected as problem:
            text_of_file = str(problem).replace("the body is", "it is")
            raise InputError(text_of_file, place=str(settings.policy_file)) from problem
        policy = files.parse_policy(tree, place=str(settings.policy_file)).bindings
    if not mode and policy is None:
        mode = "open" if address.is_loopback else "rbac"
    if mode == "open" and policy is not None:
        raise InputError(
            "a policy has no effect if everything is allowed",
            place="--policy",
            cure="leave --authorization out, or choose rbac to have both",
        )
    return Authorization(is_open=mode == "open", by_roles=mode == "rbac", policy=policy)


def _tokens(path: Path | None) -> files.Tokens:
    if path is None:
        return files.Tokens(actors={}, uids={})
    return files.parse_tokens(_read(path, "REDRA_TOKENS_FILE").decode(), place=str(path))


def _read(path: Path, place: str) -> bytes:
    try:
        text = path.read_bytes()
        text.decode()
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "it is not UTF-8"
        raise InputError(f"{path} cannot be read: {reason}", place=place) from problem
    if len(text) > _TEXT_MAX:
        raise InputError(f"{path} has more than {_TEXT_MAX} bytes", place=place)
    return text


def _hosts(address: Address) -> list[str]:
    """Names and addresses for which the server's certificate is valid."""
    name = socket.gethostname()
    hosts = ["localhost", "127.0.0.1", "::1", name]
    if address.is_any:
        hosts += _addresses_of(name)
    else:
        hosts.append(address.host)
    return hosts


def _addresses_of(name: str) -> list[str]:
    try:
        resolved = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except OSError:
        return []
    return sorted({str(place[4][0]).partition("%")[0] for place in resolved})


def _context(server: Certificate, authority: Path) -> ssl.SSLContext:
    """TLS 1.2 or newer; a client certificate is optional, and must be of our authority if sent."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(server.certificate, server.key)
    context.load_verify_locations(authority)
    context.verify_mode = ssl.CERT_OPTIONAL
    context.set_alpn_protocols(["http/1.1"])
    return context
