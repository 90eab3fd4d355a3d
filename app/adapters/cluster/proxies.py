"""The proxy of HTTP or SOCKS 5 on the way to a cluster, as kubectl chooses it.

`proxy-url` of the kubeconfig counts first, then HTTPS_PROXY (HTTP_PROXY for a server without TLS).
The environment's proxy is not used for hosts of this machine and for those that NO_PROXY names, by
name with all names below, by address, or by network. The client library would ask it for hosts of
this machine, too, knows no networks, and would send names and passwords of a `.netrc`.
"""

import ipaddress
from urllib.parse import urlsplit
from urllib.request import getproxies_environment

import aiohttp
from aiohttp_socks import ProxyConnector
from kubernetes_asyncio.client.rest import RESTClientObject

from app.domain.errors import InputError

_READ_BYTES = 2 * 1024 * 1024
"""The library's bound of what is read ahead from a connection; objects may have 1.5 MB."""


_SOCKS = ("socks5", "socks5h")
"""Schemes of SOCKS 5. With both, the proxy looks up the name of the server, as for kubectl."""


async def choose(rest: RESTClientObject, server: str) -> None:
    """Set the proxy of a client for the server. Raises InputError for one that cannot be used."""
    session = rest.pool_manager
    proxy: str | None = rest.proxy or of_environment(server)
    if proxy:
        _check(proxy)
    connector = session.connector
    assert isinstance(connector, aiohttp.TCPConnector), "the session is open"
    if proxy and urlsplit(proxy).scheme in _SOCKS:
        connector = _socks_connector(proxy, rest, connector)
        rest.proxy = ""
        await session.close()
    else:
        rest.proxy = proxy or ""
        # The connections get a new owner.
        session.detach()
    rest.pool_manager = aiohttp.ClientSession(
        connector=connector, trust_env=False, read_bufsize=_READ_BYTES
    )


def _socks_connector(
    proxy: str, rest: RESTClientObject, own: aiohttp.TCPConnector
) -> ProxyConnector:
    """A connector with the certificates of the client's own one."""
    if rest.server_hostname:
        raise InputError(
            "a SOCKS proxy and tls-server-name cannot be used together",
            place="proxy-url",
            cure="name the server in the kubeconfig as its certificate does",
        )
    url = proxy.replace("socks5h://", "socks5://", 1)
    # The client library keeps the context for TLS nowhere else.
    return ProxyConnector.from_url(url, rdns=True, ssl=own._ssl, limit=own.limit)


def of_environment(server: str) -> str | None:
    """The environment's proxy for an address; None where it is not to be used."""
    parts = urlsplit(server)
    variables = getproxies_environment()
    proxy = variables.get(parts.scheme)
    host = (parts.hostname or "").rstrip(".")
    if not proxy or _is_here(host) or _is_left_out(host, parts.port, variables.get("no", "")):
        return None
    # As in kubectl, an address without a scheme is one of HTTP.
    return proxy if "://" in proxy else f"http://{proxy}"


def _check(proxy: str) -> None:
    parts = urlsplit(proxy)
    has_port = parts.scheme not in _SOCKS or _port_of(proxy) > 0
    if parts.scheme in ("http", "https", *_SOCKS) and parts.hostname and has_port:
        return
    # The part before the host may contain a password.
    name = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if parts.netloc else proxy
    raise InputError(
        f"the proxy {name} cannot be used: only proxies of http, https and socks5 can",
        place="proxy-url",
        cure="name one such as http://proxy.example.com:3128 in the kubeconfig, or in HTTPS_PROXY",
    )


def _port_of(url: str) -> int:
    try:
        return urlsplit(url).port or 0
    except ValueError:
        return 0


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text.strip("[]"))
    except ValueError:
        return None


def _is_here(host: str) -> bool:
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _is_left_out(host: str, port: int | None, no_proxy: str) -> bool:
    """Whether NO_PROXY names the host."""
    entries = [entry.strip().lower() for entry in no_proxy.split(",")]
    return any(_names(entry, host, port) for entry in entries if entry)


def _names(entry: str, host: str, port: int | None) -> bool:
    if entry == "*":
        return True
    address = _address(host)
    if address is not None and "/" in entry:
        try:
            return address in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    if _address(entry) is None:
        name, _, entry_port = entry.rpartition(":")
        if name and entry_port.isdecimal():
            if int(entry_port) != port:
                return False
            entry = name
    if address is not None:
        return _address(entry) == address
    domain = entry.removeprefix("*")
    return host.endswith(domain if domain.startswith(".") else f".{domain}") or host == domain
