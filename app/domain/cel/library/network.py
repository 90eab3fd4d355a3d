"""URLs, addresses and address ranges, as in Kubernetes' CEL libraries.

Parity: allocator.md 11.3. Addresses are strict: no leading zeros, no zones, no IPv4 in IPv6 form.
"""

import ipaddress
import re
from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import parse_qsl, quote, unquote_to_bytes

from app.domain.cel.values.value import CelError, Value, register_type

_Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?", re.ASCII)
_PORT = re.compile(r"[0-9]*", re.ASCII)
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2}).{0,2}", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_CIDR_FAILURE: Final = "network address parse error during conversion from string"
_PREFIX = re.compile(r"0|[1-9][0-9]{0,2}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Url:
    """An absolute URI or absolute path; `host` includes the port."""

    scheme: str
    host: str
    path: str
    query: str


@dataclass(frozen=True, slots=True)
class Ip:
    """An address. Its size in costs is its number of bytes."""

    address: _Address

    @property
    def cost_size(self) -> int:
        """The size of the address in bytes (Parity: cel.md 5.3)."""
        return 4 if self.address.version == 4 else 16


@dataclass(frozen=True, slots=True)
class Cidr:
    """An address range as written; the address may have bits beyond the prefix."""

    address: _Address
    prefix: int

    @property
    def cost_size(self) -> int:
        """The size of the prefix in bytes, rounded up."""
        return -(-self.prefix // 8)

    @property
    def network(self) -> _Network:
        """The range without the bits beyond the prefix."""
        return ipaddress.ip_network((self.address, self.prefix), strict=False)


register_type(Url, name="kubernetes.URL", go_type="cel.URL")
register_type(Ip, name="net.IP", go_type="cel.IP")
register_type(Cidr, name="net.CIDR", go_type="cel.CIDR")


# URLs


def _read_url(text: str) -> Url | str:
    """The URL, or the error for an invalid one."""
    if not text:
        return f'URL parse error during conversion from string: parse "{text}": empty url'
    if _CONTROL.search(text):
        return _url_error(text, "net/url: invalid control character in URL")
    if text.startswith("/"):
        path, _, query = text.partition("?")
        return _checked_url(text, Url("", "", path, query))
    match = _URL.fullmatch(text.partition("#")[0])
    if match is None or (match.group(2) is None and not match.group(3).startswith("/")):
        return _url_error(text, "invalid URI for request")
    scheme, authority, path, query = match.groups()
    host = (authority or "").rpartition("@")[2]
    return _checked_url(text, Url(scheme.lower(), host, path, query or ""))


def _checked_url(text: str, url: Url) -> Url | str:
    bad = _BAD_ESCAPE.search(url.path)
    if bad is not None:
        return _url_error(text, f'invalid URL escape "{bad.group()}"')
    _, _, port = _split_host(url.host)
    if not _PORT.fullmatch(port) or " " in url.host:
        return _url_error(text, f'invalid port ":{port}" after host')
    return url


def _url_error(text: str, cause: str) -> str:
    return f'URL parse error during conversion from string: parse "{text}": {cause}'


def _split_host(host: str) -> tuple[str, str, str]:
    if host.startswith("["):
        name, _, rest = host[1:].partition("]")
        return name, ":", rest.removeprefix(":")
    name, separator, port = host.rpartition(":")
    return (name, separator, port) if separator else (host, "", "")


def url(text: str) -> Value:
    """`url(text)`."""
    parts = _read_url(text)
    return CelError(parts) if isinstance(parts, str) else parts


def is_url(text: str) -> Value:
    """`isURL(text)`."""
    return isinstance(_read_url(text), Url)


def scheme(value: Url) -> Value:
    """`url.getScheme()`."""
    return value.scheme


def host(value: Url) -> Value:
    """`url.getHost()`, with the port."""
    return value.host


def hostname(value: Url) -> Value:
    """`url.getHostname()`, without port and brackets."""
    return _split_host(value.host)[0]


def port(value: Url) -> Value:
    """`url.getPort()`; empty without a port."""
    return _split_host(value.host)[2]


def escaped_path(value: Url) -> Value:
    """`url.getEscapedPath()`."""
    return quote(unquote_to_bytes(value.path), safe="/:@&=+$,;~!*'()") if value.path else ""


def query(value: Url) -> Value:
    """`url.getQuery()`: names to lists of values."""
    parameters: dict[str, tuple[Value, ...]] = {}
    for name, text in parse_qsl(value.query, keep_blank_values=True):
        parameters[name] = (*parameters.get(name, ()), text)
    return parameters


# Addresses


def _read_ip(text: str) -> Ip | str:
    """The address, or the error for an invalid one."""
    failure = f'IP Address "{text}" parse error during conversion from string'
    if "%" in text:
        return f'IP address "{text}" with zone value is not allowed'
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return f'{failure}: ParseAddr("{text}"): unable to parse IP'
    if _is_mapped(address):
        return f'IPv4-mapped IPv6 address "{text}" is not allowed'
    return Ip(address)


def _is_mapped(address: _Address) -> bool:
    return isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None


def ip(text: str) -> Value:
    """`ip(text)`."""
    address = _read_ip(text)
    return CelError(address) if isinstance(address, str) else address


def is_ip(text: str) -> Value:
    """`isIP(text)`."""
    return isinstance(_read_ip(text), Ip)


def is_canonical(text: str) -> Value:
    """`ip.isCanonical(text)`."""
    address = _read_ip(text)
    return CelError(address) if isinstance(address, str) else str(address.address) == text


def ip_text(value: Ip) -> Value:
    """`string(ip)`."""
    return str(value.address)


def family(value: Ip) -> Value:
    """`ip.family()`: 4 or 6."""
    return value.address.version


def is_unspecified(value: Ip) -> Value:
    """`ip.isUnspecified()`."""
    return value.address.is_unspecified


def is_loopback(value: Ip) -> Value:
    """`ip.isLoopback()`."""
    return value.address.is_loopback


_LINK_LOCAL_MULTICAST: Final = (
    ipaddress.ip_network("224.0.0.0/24"),
    ipaddress.ip_network("ff02::/16"),
)


def is_link_local_multicast(value: Ip) -> Value:
    """`ip.isLinkLocalMulticast()`."""
    address = value.address
    if isinstance(address, ipaddress.IPv6Address):
        octets = address.packed
        return octets[0] == 0xFF and octets[1] & 0x0F == 0x02
    return address in _LINK_LOCAL_MULTICAST[0]


def is_link_local_unicast(value: Ip) -> Value:
    """`ip.isLinkLocalUnicast()`."""
    return value.address.is_link_local


def is_global_unicast(value: Ip) -> Value:
    """`ip.isGlobalUnicast()`: also private addresses, as in Go."""
    address = value.address
    if address.is_unspecified or address.is_loopback or address.is_multicast:
        return False
    return not address.is_link_local and str(address) != "255.255.255.255"


# Ranges


def _read_cidr(text: str) -> Cidr | str:
    """The range, or the error for an invalid one."""
    failure = f'{_CIDR_FAILURE}: netip.ParsePrefix("{text}")'
    address_text, separator, prefix_text = text.rpartition("/")
    if not separator:
        return f"{failure}: no '/'"
    try:
        address = ipaddress.ip_address(address_text)
    except ValueError:
        return f'{failure}: ParseAddr("{address_text}"): unable to parse IP'
    if "%" in address_text:
        return f"{failure}: IPv6 zones cannot be present in a prefix"
    if not _PREFIX.fullmatch(prefix_text):
        return f'{failure}: bad bits after slash: "{prefix_text}"'
    if int(prefix_text) > address.max_prefixlen:
        return f"{failure}: prefix length out of range"
    if _is_mapped(address):
        return f'IPv4-mapped IPv6 address "{text}" is not allowed'
    return Cidr(address, int(prefix_text))


def cidr(text: str) -> Value:
    """`cidr(text)`."""
    network = _read_cidr(text)
    return CelError(network) if isinstance(network, str) else network


def is_cidr(text: str) -> Value:
    """`isCIDR(text)`."""
    return isinstance(_read_cidr(text), Cidr)


def cidr_text(value: Cidr) -> Value:
    """`string(cidr)`."""
    return f"{value.address}/{value.prefix}"


def contains_ip(value: Cidr, other: Ip) -> Value:
    """`cidr.containsIP(ip)`."""
    return other.address.version == value.address.version and other.address in value.network


def contains_ip_text(value: Cidr, text: str) -> Value:
    """`cidr.containsIP(text)`."""
    address = _read_ip(text)
    return CelError(address) if isinstance(address, str) else contains_ip(value, address)


def contains_cidr(value: Cidr, other: Cidr) -> Value:
    """`cidr.containsCIDR(cidr)`: whether the other range is within this one."""
    if other.address.version != value.address.version or other.prefix < value.prefix:
        return False
    return other.network.network_address in value.network


def contains_cidr_text(value: Cidr, text: str) -> Value:
    """`cidr.containsCIDR(text)`."""
    network = _read_cidr(text)
    return CelError(network) if isinstance(network, str) else contains_cidr(value, network)


def cidr_ip(value: Cidr) -> Value:
    """`cidr.ip()`."""
    return Ip(value.address)


def prefix_length(value: Cidr) -> Value:
    """`cidr.prefixLength()`."""
    return value.prefix


def masked(value: Cidr) -> Value:
    """`cidr.masked()`: the bits beyond the prefix cleared."""
    return Cidr(value.network.network_address, value.prefix)
