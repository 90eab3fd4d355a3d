"""Validation of ServiceCIDRs and IPAddresses.

Parity: objects.md 15.1; the messages are upstream's, which prints whole structures with its own
field names.
"""

import ipaddress

from app.domain.objects.field_errors import FieldError, immutable, invalid, required
from app.domain.objects.validation import shared
from app.domain.objects.validation.context import Context
from app.domain.values import json_tree, names
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonView

_RANGES_MAX = 2
_CIDRS = "spec.cidrs"
_ONE_EACH = (
    "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/96"
)
_NO_CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


def create_range(tree: JsonView, _context: Context) -> list[FieldError]:
    """Checks a new ServiceCIDR."""
    spec = meta.spec(tree)
    ranges = [str(text or "") for text in spec.get("cidrs") or ()]
    if not ranges:
        return [required(_CIDRS, "at least one CIDR required")]
    if len(ranges) > _RANGES_MAX:
        return [invalid(_CIDRS, {"CIDRs": ranges}, "may only hold up to 2 values")]
    networks = [_network(text) for text in ranges]
    families = {network.version for network in networks if network is not None}
    if len(ranges) > 1 and len(families) < len(ranges):
        return [invalid(_CIDRS, {"CIDRs": ranges}, _ONE_EACH)]
    errors: list[FieldError] = []
    for index, (text, network) in enumerate(zip(ranges, networks, strict=True)):
        at = f"{_CIDRS}[{index}]"
        if network is None:
            errors.append(invalid(at, text, _NO_CIDR))
        elif text.partition("/")[0] != str(network.network_address):
            detail = "must not have bits set beyond the prefix length"
            if ipaddress.ip_address(text.partition("/")[0]) == network.network_address:
                detail = f'must be in canonical form ("{network}")'
            errors.append(invalid(at, text, detail))
    return errors


def update_range(
    tree: JsonView, old: JsonView, subresource: str, context: Context
) -> list[FieldError]:
    """Checks a changed ServiceCIDR: a range is immutable, one of the other family may be added."""
    if subresource:
        return []
    ranges, before = (
        json_tree.texts(service_cidr, "spec", "cidrs") for service_cidr in (tree, old)
    )
    if len(ranges) < len(before):
        return [invalid(_CIDRS, ranges, "field is immutable")]
    changed = [index for index, text in enumerate(before) if ranges[index] != text]
    if changed:
        return [immutable(f"{_CIDRS}[{index}]", ranges[index]) for index in changed]
    return create_range(tree, context)


def create_address(tree: JsonView, _context: Context) -> list[FieldError]:
    """Checks a new IPAddress."""
    owner = json_tree.get(tree, "spec", "parentRef")
    path = "spec.parentRef"
    if not isinstance(owner, dict):
        return [required(path)]
    errors: list[FieldError] = []
    if owner.get("group"):
        errors += shared.formatted(owner["group"], f"{path}.group", names.subdomain)
    errors += shared.required_name(owner.get("resource"), f"{path}.resource", names.path_segment)
    errors += shared.required_name(owner.get("name"), f"{path}.name", names.path_segment)
    if owner.get("namespace"):
        errors += shared.formatted(owner["namespace"], f"{path}.namespace", names.path_segment)
    return errors


def update_address(
    tree: JsonView, old: JsonView, _subresource: str, context: Context
) -> list[FieldError]:
    """Checks a changed IPAddress: `parentRef` is immutable."""
    owner = json_tree.get(tree, "spec", "parentRef")
    errors = create_address(tree, context)
    if owner != json_tree.get(old, "spec", "parentRef"):
        fields = ("group", "resource", "namespace", "name")
        shown = {name.title(): json_tree.text(tree, "spec", "parentRef", name) for name in fields}
        errors.append(immutable("spec.parentRef", shown))
    return errors


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(text, strict=False) if "/" in text else None
    except ValueError:
        return None
