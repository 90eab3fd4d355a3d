"""Cluster IPs and node ports of services, allocated by writes and kept while needed.

Free addresses follow from the existing services, and the start of the search from the uid of the
service, so the same write gives the same address again. The event contains the address, so a replay
allocates nothing. One IP family is supported. Parity: api.md 2; the messages are upstream's.
"""

import ipaddress
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from app.domain.errors import InputError, Rejected
from app.domain.log import ObjectKey
from app.domain.objects import field_errors
from app.domain.objects.field_errors import FieldError
from app.domain.objects.reader import ObjectsReader
from app.domain.values import api_groups, api_resources, json_tree
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject, JsonView

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

HEADLESS = "None"
EXTERNAL = "ExternalName"


_BAND_MIN, _BAND_MAX, _BAND_STEP = 16, 256, 16
"""The size of the band at the start of the range that is reserved for requested addresses: a
sixteenth of the range, between 16 and 256 addresses."""

_AFFINITY_SECONDS = 10_800
_API_PORT = 6_443
_DOCUMENTED = {4: "192.0.2.1", 6: "2001:db8::1"}
_WITH_PORTS = frozenset({"NodePort", "LoadBalancer"})
_OF_ADDRESSES = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceRanges:
    """The ranges of cluster IPs and of node ports."""

    addresses: Network = ipaddress.IPv4Network("10.96.0.0/12")
    ports: range = range(30_000, 32_768)

    @property
    def family(self) -> str:
        """The IP family of the addresses, as in `ipFamilies`."""
        return f"IPv{self.addresses.version}"

    @property
    def ports_text(self) -> str:
        """The range of node ports, as in messages."""
        return f"{self.ports.start}-{self.ports.stop - 1}"


def parse_ranges(addresses: str, ports: str) -> ServiceRanges:
    """Returns the ranges of two settings, such as `10.96.0.0/12` and `30000-32767`.

    Raises InputError for an invalid range.
    """
    try:
        network = ipaddress.ip_network(addresses)
    except ValueError as problem:
        raise InputError(
            f"{addresses!r} is not a range of addresses: {problem}",
            place="REDRA_SERVICE_ADDRESSES",
            cure="write it as 10.96.0.0/12",
        ) from problem
    first, _, last = ports.partition("-")
    known = first.isdecimal() and last.isdecimal() and 0 < int(first) <= int(last) < 65_536
    if not known:
        raise InputError(
            f"{ports!r} is not a range of ports",
            place="REDRA_SERVICE_NODE_PORTS",
            cure="write it as 30000-32767",
        )
    return ServiceRanges(addresses=network, ports=range(int(first), int(last) + 1))


def of_the_api(ranges: ServiceRanges) -> JsonObject:
    """The service `kubernetes`, which has the first address of the range."""
    port = {"name": "https", "port": 443, "protocol": "TCP", "targetPort": _API_PORT}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {"clusterIP": str(ranges.addresses[1]), "ports": [port]},
    }


def endpoints_of_the_api(ranges: ServiceRanges) -> tuple[JsonObject, JsonObject]:
    """The Endpoints and the EndpointSlice of the service `kubernetes`.

    The address is reserved for documentation: a history does not know its own address, and a real
    server refuses the loopback address that it usually is.
    """
    address = _DOCUMENTED[ranges.addresses.version]
    port = {"name": "https", "port": _API_PORT, "protocol": "TCP"}
    metadata = {"name": "kubernetes", "namespace": "default"}
    old = {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {**metadata, "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
        "subsets": [{"addresses": [{"ip": address}], "ports": [port]}],
    }
    new = {
        "apiVersion": f"{api_groups.DISCOVERY}/v1",
        "kind": "EndpointSlice",
        "metadata": {**metadata, "labels": {"kubernetes.io/service-name": "kubernetes"}},
        "addressType": ranges.family,
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
        "ports": [dict(port)],
    }
    return old, new


def range_of_cluster(ranges: ServiceRanges) -> JsonObject:
    """The ServiceCIDR of the range of cluster IPs."""
    return {
        "apiVersion": f"{api_groups.NETWORKING}/v1",
        "kind": "ServiceCIDR",
        "metadata": {"name": "kubernetes"},
        "spec": {"cidrs": [str(ranges.addresses)]},
    }


def fill(tree: JsonObject) -> None:
    """Sets the defaults of a service in place."""
    spec = tree.setdefault("spec", {})
    if spec.setdefault("sessionAffinity", "None") == "ClientIP":
        config = spec.setdefault("sessionAffinityConfig", {}).setdefault("clientIP", {})
        config.setdefault("timeoutSeconds", _AFFINITY_SECONDS)
    else:
        spec.pop("sessionAffinityConfig", None)
    kind = spec.setdefault("type", "ClusterIP")
    if kind in _WITH_PORTS or (kind == "ClusterIP" and spec.get("externalIPs")):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if kind == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    if kind != EXTERNAL:
        spec.setdefault("internalTrafficPolicy", "Cluster")
    for port in core.ports(spec):
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port.get("port", 0))


def prepare_create(tree: JsonObject, reader: ObjectsReader, ranges: ServiceRanges) -> None:
    """Allocates addresses and ports of a new service, in place. Raises Invalid."""
    spec = _spec(tree)
    if spec.get("clusterIP") and not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    _allocate(tree, spec, None, reader, ranges)


def prepare_update(
    tree: JsonObject, old: JsonView, reader: ObjectsReader, ranges: ServiceRanges
) -> None:
    """Keeps addresses and ports that a service still needs and allocates missing ones, in place.

    Raises Invalid. Parity: objects.md 15.1; an update without addresses or node ports keeps the old
    ones; a service whose new type needs none loses them, unless the same write requests others.
    """
    spec = tree["spec"] = dict(_spec(tree))
    before = meta.spec(old)
    _follow_first(spec, before)
    if _needs_address(spec) and _needs_address(before):
        for name in _OF_ADDRESSES:
            if not spec.get(name) and before.get(name):
                spec[name] = before[name]
    elif _needs_address(before) and _same(spec, before, _OF_ADDRESSES[:2]):
        for name in _OF_ADDRESSES:
            spec.pop(name, None)
    _keep_ports(spec, before)
    _allocate(tree, spec, old, reader, ranges)


def _spec(tree: JsonObject) -> JsonObject:
    spec = tree.setdefault("spec", {})
    assert isinstance(spec, dict), "pruned by its schema"
    return spec


def _follow_first(spec: JsonObject, before: JsonView) -> None:
    """Sets `clusterIPs` from `clusterIP` in place, for clients that change only `clusterIP`."""
    address, listed = spec.get("clusterIP"), spec.get("clusterIPs")
    if address == before.get("clusterIP"):
        return
    if address and (not listed or listed == before.get("clusterIPs")):
        spec["clusterIPs"] = [address]
    elif not address and listed == before.get("clusterIPs") and not _needs_address(spec):
        spec.pop("clusterIPs", None)


def _same(spec: JsonView, before: JsonView, names: tuple[str, ...]) -> bool:
    return all(spec.get(name) == before.get(name) for name in names)


def _needs_address(spec: JsonView) -> bool:
    return json_tree.text(spec, "type") != EXTERNAL


def _needs_ports(spec: JsonView) -> bool:
    return json_tree.text(spec, "type") in _WITH_PORTS


def _needs_health_port(spec: JsonView) -> bool:
    is_balanced = json_tree.text(spec, "type") == "LoadBalancer"
    return is_balanced and json_tree.text(spec, "externalTrafficPolicy") == "Local"


def _keep_ports(spec: JsonObject, before: JsonView) -> None:
    """Keeps the old node ports where none is named, or removes them if the type has none."""
    had = {port.get("name", ""): port for port in core.ports(before)}
    ports = [dict(port) for port in core.ports(spec)]
    if _needs_ports(spec):
        for port in ports:
            kept = had.get(port.get("name", ""), {}).get("nodePort")
            if kept and not port.get("nodePort") and _needs_ports(before):
                port["nodePort"] = kept
    elif _needs_ports(before):
        listed = [port.get("nodePort") for port in ports]
        if listed == [port.get("nodePort") for port in core.ports(before)]:
            for port in ports:
                port.pop("nodePort", None)
    if ports:
        spec["ports"] = ports
    if not _needs_ports(spec) and _needs_ports(before):
        for name in ("externalTrafficPolicy", "allocateLoadBalancerNodePorts"):
            if spec.get(name) == before.get(name):
                spec.pop(name, None)
    health = before.get("healthCheckNodePort")
    if health and _needs_health_port(before):
        if _needs_health_port(spec):
            spec.setdefault("healthCheckNodePort", health)
        elif spec.get("healthCheckNodePort") == health:
            spec.pop("healthCheckNodePort")


def _allocate(
    tree: JsonObject,
    spec: JsonObject,
    old: JsonView | None,
    reader: ObjectsReader,
    ranges: ServiceRanges,
) -> None:
    errors: list[FieldError] = []
    own = meta.uid(tree)
    before = meta.spec(old or {})
    has_one = _needs_address(before) and bool(before.get("clusterIP"))
    if _needs_address(spec):
        errors += _set_families(spec, ranges)
        # A service with an address keeps it: validation refuses another one.
        if not errors and not has_one and spec.get("clusterIP") != HEADLESS:
            errors += _set_address(spec, own, reader, ranges)
    if _needs_ports(spec) and not errors:
        errors += _set_ports(spec, own, reader, ranges)
    if errors:
        name = meta.name(tree)
        raise field_errors.rejection("Service", "", name, errors)


def _set_families(spec: JsonObject, ranges: ServiceRanges) -> list[FieldError]:
    """Sets the IP families and the policy in place; returns errors for those not supported."""
    is_open = spec.get("clusterIP") == HEADLESS and not spec.get("selector")
    if not spec.get("ipFamilyPolicy"):
        spec["ipFamilyPolicy"] = "RequireDualStack" if is_open else "SingleStack"
    elif spec["ipFamilyPolicy"] == "RequireDualStack" and not is_open:
        detail = "this cluster is not configured for dual-stack services"
        return [field_errors.invalid("spec.ipFamilyPolicy", "RequireDualStack", detail)]
    if not spec.get("ipFamilies"):
        other = "IPv6" if ranges.family == "IPv4" else "IPv4"
        is_single = not is_open or spec["ipFamilyPolicy"] == "SingleStack"
        spec["ipFamilies"] = [ranges.family] if is_single else [ranges.family, other]
    if is_open:
        return []
    return [
        field_errors.invalid(f"spec.ipFamilies[{index}]", family, "not configured on this cluster")
        for index, family in enumerate(json_tree.texts(spec, "ipFamilies"))
        if family in ("IPv4", "IPv6") and family != ranges.family
    ]


def _set_address(
    spec: JsonObject, own: str, reader: ObjectsReader, ranges: ServiceRanges
) -> list[FieldError]:
    """Allocates the requested address, or a free one, in place; returns errors."""
    used_addresses = _taken_addresses(reader, own)
    text = json_tree.text(spec, "clusterIP")
    if not text:
        if spec.get("clusterIPs"):
            return []  # the rules of services refuse it
        free_address = _free_address(own, used_addresses, ranges.addresses)
        spec["clusterIP"] = free_address
        spec["clusterIPs"] = [free_address]
        return []
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return []  # the rules of services refuse it
    detail = ""
    if address not in ranges.addresses:
        detail = (
            f"the provided IP ({text}) is not in the valid range. The range of valid IPs is "
            f"{ranges.addresses}"
        )
    elif text in used_addresses:
        detail = "provided IP is already allocated"
    if not detail:
        return []
    listed = spec["clusterIPs"]
    return [
        field_errors.invalid("spec.clusterIPs", listed, f"failed to allocate IP {text}: {detail}")
    ]


def _free_address(uid: str, addresses: frozenset[str], network: Network) -> str:
    """Returns a free address outside the reserved band. Raises Rejected if there is none."""
    size = network.num_addresses - 2
    band = min(max(_BAND_MIN, size // _BAND_STEP), _BAND_MAX)
    count = size - band
    first = band + 1
    if count < 1:
        first, count = 1, size
    start = zlib.crc32(uid.encode()) % max(count, 1)
    for step in range(min(count, len(addresses) + 1)):
        text = str(network[first + (start + step) % count])
        if text not in addresses:
            return text
    raise Rejected("Internal error occurred: failed to allocate a serviceIP: range is full")


def _set_ports(
    spec: JsonObject, own: str, reader: ObjectsReader, ranges: ServiceRanges
) -> list[FieldError]:
    """Allocates requested node ports, and free ones for the others, in place; returns errors."""
    used_ports = _taken_ports(reader, own)
    errors: list[FieldError] = []
    ports = spec["ports"] = [dict(port) for port in core.ports(spec)]
    wanted: dict[int, set[str]] = {}
    for index, port in enumerate(ports):
        number = port.get("nodePort")
        if not number:
            continue
        detail = ""
        if number not in ranges.ports:
            detail = (
                "provided port is not in the valid range. The range of valid ports is "
                f"{ranges.ports_text}"
            )
        elif number in used_ports:
            detail = "provided port is already allocated"
        if detail:
            errors.append(field_errors.invalid(f"spec.ports[{index}].nodePort", number, detail))
        wanted.setdefault(number, set()).add(port.get("protocol", "TCP"))
    if errors:
        return errors
    given = set(used_ports) | set(wanted)
    if spec.get("allocateLoadBalancerNodePorts") is not False:
        for port in ports:
            if not port.get("nodePort"):
                port["nodePort"] = _free_port(own, given, ranges.ports)
                given.add(port["nodePort"])
    if _needs_health_port(spec) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = _free_port(own, given, ranges.ports)
    return []


def _free_port(uid: str, used_ports: set[int], ports: range) -> int:
    start = zlib.crc32(uid.encode()) % len(ports)
    for step in range(min(len(ports), len(used_ports) + 1)):
        number = ports[(start + step) % len(ports)]
        if number not in used_ports:
            return number
    raise Rejected("Internal error occurred: failed to allocate a nodePort: range is full")


def _others(reader: ObjectsReader, own: str) -> Iterator[JsonView]:
    """Yields the specs of all services except the one with the uid `own`."""
    key: ObjectKey
    for key in reader.keys(*api_resources.SERVICES):
        service = reader.get(key)
        if service is not None and meta.uid(service) != own:
            yield meta.spec(service)


def _taken_addresses(reader: ObjectsReader, own: str) -> frozenset[str]:
    return frozenset(
        address
        for spec in _others(reader, own)
        for address in (json_tree.text(spec, "clusterIP"), *json_tree.texts(spec, "clusterIPs"))
        if address not in ("", HEADLESS)
    )


def _taken_ports(reader: ObjectsReader, own: str) -> frozenset[int]:
    return frozenset(
        number
        for spec in _others(reader, own)
        for number in (
            json_tree.integer(spec, "healthCheckNodePort"),
            *(json_tree.integer(port, "nodePort") for port in core.ports(spec)),
        )
        if number
    )


__all__ = [
    "ServiceRanges",
    "fill",
    "of_the_api",
    "parse_ranges",
    "prepare_create",
    "prepare_update",
]
