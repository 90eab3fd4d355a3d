"""Validation of services: type, ports, addresses. Allocation runs before and has its own errors.

Parity: objects.md 15.1; the messages are upstream's.
"""

import ipaddress
from collections.abc import Sequence

from app.domain.objects import profile as profiles
from app.domain.objects.field_errors import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from app.domain.objects.kinds.services import EXTERNAL, HEADLESS
from app.domain.objects.validation import ports as port_rules
from app.domain.objects.validation import shared
from app.domain.objects.validation.context import Context
from app.domain.values import json_tree, names
from app.domain.values.fields import core, entries, meta
from app.domain.values.json_tree import JsonView

TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
PROTOCOLS = ("SCTP", "TCP", "UDP")
AFFINITIES = ("ClientIP", "None")
FAMILY_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
POLICIES = ("Cluster", "Local")
AFFINITY_SECONDS_MAX = 86_400


def create(tree: JsonView, context: Context) -> list[FieldError]:
    """Checks a new service."""
    errors: list[FieldError] = []
    name = meta.name(tree)
    if not context.profile.follows(profiles.SERVICE_NAMES) and name[:1].isdigit():
        errors.append(invalid("metadata.name", name, names.LABEL_1035_MESSAGE))
    return errors + _check(tree)


def update(tree: JsonView, old: JsonView, subresource: str, _context: Context) -> list[FieldError]:
    """Checks a changed service: the cluster IP is immutable while the service has one."""
    if subresource:
        return []
    errors: list[FieldError] = []
    new, before = meta.spec(tree), meta.spec(old)
    if EXTERNAL not in (new.get("type"), before.get("type")):
        had, listed = json_tree.text(before, "clusterIP"), json_tree.texts(new, "clusterIPs")
        if had and listed and listed[0] != had:
            errors.append(invalid("spec.clusterIPs[0]", listed, "may not change once set"))
    return errors + _check(tree)


def _check(tree: JsonView) -> list[FieldError]:
    spec = meta.spec(tree)
    kind = json_tree.text(spec, "type")
    is_headless = spec.get("clusterIP") == HEADLESS
    ports = core.ports(spec)
    errors: list[FieldError] = []
    if not ports and not is_headless and kind != EXTERNAL:
        errors.append(required("spec.ports"))
    if kind in ("LoadBalancer", "NodePort") and is_headless:
        detail = f"may not be set to 'None' for {kind} services"
        errors.append(invalid("spec.clusterIPs[0]", HEADLESS, detail))
    if kind == EXTERNAL:
        errors += _external(spec)
    errors += _ports(ports, kind)
    errors += shared.labels(spec.get("selector"), "spec.selector")
    affinity = json_tree.text(spec, "sessionAffinity")
    if affinity not in AFFINITIES:
        errors.append(not_supported("spec.sessionAffinity", affinity, AFFINITIES))
    elif affinity == "ClientIP":
        errors += _affinity_seconds(spec)
    errors += _addresses(spec)
    policy = json_tree.text(spec, "ipFamilyPolicy")
    if policy and policy not in FAMILY_POLICIES:
        errors.append(not_supported("spec.ipFamilyPolicy", policy, FAMILY_POLICIES))
    if kind not in TYPES:
        errors.append(not_supported("spec.type", kind, TYPES))
    for name in ("externalTrafficPolicy", "internalTrafficPolicy"):
        policy = json_tree.text(spec, name)
        if policy and policy not in POLICIES:
            errors.append(not_supported(f"spec.{name}", policy, POLICIES))
    return errors


def _external(spec: JsonView) -> list[FieldError]:
    errors: list[FieldError] = []
    if spec.get("clusterIPs"):
        detail = "may not be set for ExternalName services"
        errors.append(forbidden("spec.clusterIPs", detail))
    name = json_tree.text(spec, "externalName")
    if not name:
        return [*errors, required("spec.externalName")]
    return errors + shared.formatted(name.removesuffix("."), "spec.externalName", names.subdomain)


def _ports(ports: Sequence[JsonView], kind: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen_names: set[str] = set()
    seen: set[tuple[object, ...]] = set()
    for index, port in enumerate(ports):
        path = f"spec.ports[{index}]"
        name = entries.name(port)
        if not name and len(ports) > 1:
            errors.append(required(f"{path}.name"))
        elif name:
            errors += shared.formatted(name, f"{path}.name", names.label)
            if name in seen_names:
                errors.append(duplicate(f"{path}.name", name))
            seen_names.add(name)
        errors += port_rules.number(port.get("port", 0), f"{path}.port")
        protocol = json_tree.text(port, "protocol")
        if protocol not in PROTOCOLS:
            errors.append(not_supported(f"{path}.protocol", protocol, PROTOCOLS))
        errors += port_rules.number_or_name(port.get("targetPort"), f"{path}.targetPort")
        if kind in ("ClusterIP", EXTERNAL) and port.get("nodePort"):
            detail = f"may not be used when `type` is '{kind}'"
            errors.append(forbidden(f"{path}.nodePort", detail))
        place = (port.get("port"), protocol)
        if place in seen:
            errors.append(duplicate(path, _port_in_go(port)))
        seen.add(place)
    return errors


def _port_in_go(port: JsonView) -> dict[str, object]:
    """A port with Go field names, as upstream prints a duplicate."""
    return {
        "Name": "",
        "Protocol": port.get("protocol", ""),
        "AppProtocol": None,
        "Port": port.get("port", 0),
        "TargetPort": 0,
        "NodePort": 0,
    }


def _affinity_seconds(spec: JsonView) -> list[FieldError]:
    seconds = json_tree.integer(spec, "sessionAffinityConfig", "clientIP", "timeoutSeconds")
    if seconds is None or 0 < seconds <= AFFINITY_SECONDS_MAX:
        return []
    detail = f"must be greater than 0 and less than {AFFINITY_SECONDS_MAX}"
    return [invalid("spec.sessionAffinityConfig.clientIP.timeoutSeconds", seconds, detail)]


def _addresses(spec: JsonView) -> list[FieldError]:
    """Checks the form of cluster IPs; whether they are available is checked by allocation."""
    if spec.get("type") == EXTERNAL:
        return []
    address, listed = json_tree.text(spec, "clusterIP"), json_tree.texts(spec, "clusterIPs")
    path = "spec.clusterIPs"
    if not address:
        detail = "must be empty when `clusterIP` is not specified"
        return [invalid(path, listed, detail)] if listed else []
    # Creation sets the list from the address; an imported object can lack it.
    listed = listed or [address]
    if listed[0] != address:
        return [invalid(path, listed, "first value must match `clusterIP`")]
    if HEADLESS in listed:
        detail = "'None' must be the first and only value"
        return [] if len(listed) == 1 else [invalid(path, listed, detail)]
    errors: list[FieldError] = []
    for index, text in enumerate(listed):
        try:
            ipaddress.ip_address(text)
        except ValueError:
            detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
            errors.append(invalid(f"{path}[{index}]", text, detail))
    return errors
