"""Validation of Ingresses. Parity: objects.md 15.1; the messages are upstream's."""

from app.domain.objects.field_errors import FieldError, invalid, not_supported, required
from app.domain.objects.validation import ports as port_rules
from app.domain.objects.validation import shared
from app.domain.objects.validation.context import Context
from app.domain.values import json_tree, names
from app.domain.values.fields import entries, meta
from app.domain.values.json_tree import JsonView

PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")


def create_ingress(tree: JsonView, _context: Context) -> list[FieldError]:
    """Checks a new Ingress."""
    spec = meta.spec(tree)
    rules = json_tree.objects(spec, "rules")
    errors: list[FieldError] = []
    if not rules and not spec.get("defaultBackend"):
        detail = "either `defaultBackend` or `rules` must be specified"
        errors.append(invalid("spec", spec.get("rules"), detail))
    if spec.get("defaultBackend"):
        errors += _backend(spec["defaultBackend"], "spec.defaultBackend")
    for index, rule in enumerate(rules):
        path = f"spec.rules[{index}]"
        host = json_tree.text(rule, "host")
        if host:
            plain = host.removeprefix("*.")
            errors += [invalid(f"{path}.host", host, text) for text in names.subdomain(plain)]
        if isinstance(rule.get("http"), dict):
            errors += _paths(rule["http"], f"{path}.http.paths")
    if spec.get("ingressClassName"):
        place = "spec.ingressClassName"
        errors += shared.formatted(spec["ingressClassName"], place, names.subdomain)
    return errors


def _paths(http: JsonView, path: str) -> list[FieldError]:
    paths = json_tree.objects(http, "paths")
    errors: list[FieldError] = [] if paths else [required(path)]
    for index, item in enumerate(paths):
        at = f"{path}[{index}]"
        kind, text = item.get("pathType"), json_tree.text(item, "path")
        if kind is None:
            errors.append(required(f"{at}.pathType", "pathType must be specified"))
        elif kind not in PATH_TYPES:
            errors.append(not_supported(f"{at}.pathType", kind, PATH_TYPES))
        elif (kind != "ImplementationSpecific" or text) and not text.startswith("/"):
            errors.append(invalid(f"{at}.path", text, "must be an absolute path"))
        errors += _backend(json_tree.mapping(item, "backend"), f"{at}.backend")
    return errors


def _backend(backend: JsonView, path: str) -> list[FieldError]:
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        return [invalid(path, "", "cannot set both resource and service backends")]
    if service is None and resource is None:
        return [invalid(path, "", "resource or service backend is required")]
    if service is None:
        return []
    name = entries.name(service)
    port = json_tree.mapping(service, "port")
    errors = shared.required_name(name, f"{path}.service.name", names.label)
    if port.get("name") and port.get("number"):
        errors.append(invalid(path, "", "cannot set both port name & port number"))
    elif port.get("name"):
        errors += port_rules.number_or_name(port["name"], f"{path}.service.port.name")
    elif port.get("number"):
        errors += port_rules.number(port["number"], f"{path}.service.port.number")
    else:
        errors.append(required(path, "port name or number is required"))
    return errors
