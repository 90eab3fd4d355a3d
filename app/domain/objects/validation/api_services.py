"""Validation of APIServices. Parity: objects.md 15.1; the messages are upstream's."""

import base64
import binascii

from app.domain.objects.field_errors import FieldError, invalid, required
from app.domain.objects.validation import shared
from app.domain.objects.validation.context import Context
from app.domain.values import json_tree, names
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonView

_GROUP_PRIORITY_MAX = 20_000
_VERSION_PRIORITY_MAX = 1_000
_PORT_MAX = 65_535


def create(tree: JsonView, _context: Context) -> list[FieldError]:
    """Checks a new APIService."""
    spec = meta.spec(tree)
    group, version = json_tree.text(spec, "group"), json_tree.text(spec, "version")
    name, wanted = meta.name(tree), f"{version}.{group}"
    errors: list[FieldError] = []
    if name and name != wanted:
        detail = f'must be `spec.version+"."+spec.group`: "{wanted}"'
        errors.append(invalid("metadata.name", name, detail))
    if not group and version != "v1":
        detail = "only v1 may have an empty group and it better be legacy kube"
        errors.append(required("spec.group", detail))
    if group:
        errors += shared.formatted(group, "spec.group", names.subdomain)
    errors += shared.formatted(version, "spec.version", names.label_1035)
    for field, most in (
        ("groupPriorityMinimum", _GROUP_PRIORITY_MAX),
        ("versionPriority", _VERSION_PRIORITY_MAX),
    ):
        priority = json_tree.integer(spec, field) or 0
        if not 0 < priority <= most:
            detail = f"must be positive and less than {most}"
            errors.append(invalid(f"spec.{field}", priority, detail))
    service = spec.get("service")
    return errors + (_local(spec) if not isinstance(service, dict) else _remote(spec, service))


def _local(spec: JsonView) -> list[FieldError]:
    errors: list[FieldError] = []
    size = _size(spec.get("caBundle"))
    if size:
        detail = "local APIServices may not have a caBundle"
        errors.append(invalid("spec.caBundle", f"{size} bytes", detail))
    if spec.get("insecureSkipTLSVerify") is True:
        detail = "local APIServices may not have insecureSkipTLSVerify"
        errors.append(invalid("spec.insecureSkipTLSVerify", True, detail))
    return errors


def _remote(spec: JsonView, service: JsonView) -> list[FieldError]:
    errors = [
        required(f"spec.service.{field}")
        for field in ("namespace", "name")
        if not service.get(field)
    ]
    port = json_tree.integer(service, "port") or 0
    if not 0 < port <= _PORT_MAX:
        detail = f"port is not valid: must be between 1 and {_PORT_MAX}, inclusive"
        errors.append(invalid("spec.service.port", port, detail))
    if spec.get("insecureSkipTLSVerify") is True and spec.get("caBundle"):
        detail = "may not be true if caBundle is present"
        errors.append(invalid("spec.insecureSkipTLSVerify", True, detail))
    return errors


def _size(text: object) -> int:
    """The size of a base64 field in bytes after decoding; 0 if it cannot be decoded."""
    try:
        return len(base64.b64decode(str(text or "")))
    except binascii.Error:
        return 0
