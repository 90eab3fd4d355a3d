"""The webhooks that may be called: an allow-list of addresses, and the addresses of services.

The server calls only these, so a user who may write webhook configurations cannot make the server
connect to an address of their choice.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from app.domain.errors import InputError
from app.domain.values import json_tree
from app.domain.values.fields import entries
from app.domain.values.json_tree import JsonView

HTTPS_PORT = 443
_SETTING = "REDRA_WEBHOOKS_ALLOWED"
_service = re.compile(
    "(?P<namespace>[-a-z0-9]+)/(?P<name>[-a-z0-9.]+)(:(?P<port>[0-9]{1,5}))?"
).fullmatch


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookTarget:
    """A webhook that may be called.

    `shown` is the address in messages. The certificate must be for `server_name` and be issued by
    `authority` (PEM); when that is empty, by an authority that this machine trusts.
    """

    host: str
    port: int
    path: str
    server_name: str
    shown: str
    authority: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _TargetAddress:
    host: str
    port: int
    path: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """The allow-list. Keys of `services` are namespace, name and port; port 0 means any port."""

    addresses: tuple[_TargetAddress, ...] = ()
    services: Mapping[tuple[str, str, int], _TargetAddress] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """True when no webhook may be called."""
        return not self.addresses and not self.services

    def find(self, client: JsonView) -> WebhookTarget | None:
        """The target of a clientConfig; None when the webhook may not be called."""
        if "service" in client:
            return self._service(json_tree.mapping(client, "service"), client)
        url = json_tree.text(client, "url")
        address = _address(url)
        if address is None or not any(_is_below(address, held) for held in self.addresses):
            return None
        return WebhookTarget(
            host=address.host,
            port=address.port,
            path=address.path or "/",
            server_name=address.host,
            shown=url,
            authority=_authority(client),
        )

    def _service(self, service: JsonView, client: JsonView) -> WebhookTarget | None:
        namespace, name = json_tree.text(service, "namespace"), entries.name(service)
        port = json_tree.integer(service, "port") or HTTPS_PORT
        held = self.services.get((namespace, name, port)) or self.services.get((namespace, name, 0))
        if held is None:
            return None
        path = f"/{json_tree.text(service, 'path').lstrip('/')}"
        if not _is_plain(path):
            return None
        return WebhookTarget(
            host=held.host,
            port=held.port,
            path=f"{held.path.rstrip('/')}{path}",
            server_name=f"{name}.{namespace}.svc",
            shown=f"https://{name}.{namespace}.svc:{port}{path}",
            authority=_authority(client),
        )


NONE = Targets()


def parse(text: str) -> Targets:
    """Parses the setting: `https://host:port/path` or `namespace/name=https://…` per item.

    Raises InputError for any other item.
    """
    addresses: list[_TargetAddress] = []
    services: dict[tuple[str, str, int], _TargetAddress] = {}
    for item in re.split(r"[,\s]+", text.strip()):
        if not item:
            continue
        service, equals, url = item.partition("=")
        if not equals or "://" in service:
            service, url = "", item
        address = _address(url)
        place = _service(service) if service else None
        if address is None or (service and place is None):
            raise InputError(
                f"{item!r} names no webhook",
                place=_SETTING,
                cure="use https://host:port/path, or namespace/service=https://host:port",
            )
        if place is None:
            addresses.append(address)
        else:
            port = int(place["port"] or 0)
            services[place["namespace"], place["name"], port] = address
    return Targets(addresses=tuple(addresses), services=services)


def _address(url: str) -> _TargetAddress | None:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme != "https" or not parts.hostname or parts.query or parts.fragment:
        return None
    if "@" in parts.netloc or any(step in (".", "..") for step in parts.path.split("/")):
        return None
    if not _is_plain(url):
        return None
    return _TargetAddress(host=parts.hostname, port=port or HTTPS_PORT, path=parts.path)


def _is_plain(text: str) -> bool:
    """Whether a text may be part of the first line of a request."""
    return all(" " < char <= "~" for char in text)


def _is_below(address: _TargetAddress, held: _TargetAddress) -> bool:
    if (address.host, address.port) != (held.host, held.port):
        return False
    prefix = held.path.rstrip("/")
    return address.path == prefix or address.path.startswith(f"{prefix}/") or not prefix


def _authority(client: JsonView) -> str:
    try:
        return base64.b64decode(json_tree.text(client, "caBundle"), validate=True).decode()
    except (binascii.Error, ValueError):
        return "unreadable"
