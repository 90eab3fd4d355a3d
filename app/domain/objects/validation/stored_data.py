"""Validation of ConfigMaps and Secrets: keys, size, required keys, immutability.

Parity: objects.md 15.1; the messages are upstream's; values of secrets are never shown.
"""

import base64
import json
from collections.abc import Mapping

from app.domain.objects.field_errors import (
    FieldError,
    forbidden,
    immutable,
    invalid,
    required,
    too_long,
)
from app.domain.objects.kinds import secret_values
from app.domain.objects.validation.context import Context
from app.domain.values import json_tree, names, well_known
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonView

BYTES_MAX = 1024 * 1024
"""The largest total size of an object's values in bytes."""

IMMUTABLE_TEXT = "field is immutable when `immutable` is set"
REDACTED = "<secret contents redacted>"
_ACCOUNT = "kubernetes.io/service-account.name"
_NEEDED: Mapping[str, tuple[str, ...]] = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    well_known.TLS_TYPE: ("tls.crt", "tls.key"),
}
_ANY_OF: Mapping[str, tuple[str, ...]] = {"kubernetes.io/basic-auth": ("username", "password")}
_JSON = frozenset({".dockercfg", ".dockerconfigjson"})


def create_config_map(tree: JsonView, _context: Context) -> list[FieldError]:
    """Checks a new ConfigMap."""
    plain, binary = json_tree.labels(tree, "data"), json_tree.labels(tree, "binaryData")
    errors: list[FieldError] = []
    size = sum(len(text.encode()) for text in plain.values())
    size += sum(_decoded_size(text) for text in binary.values())
    for field, items in (("data", plain), ("binaryData", binary)):
        for key in sorted(items):
            place = f"{field}[{key}]"
            errors += [invalid(place, key, detail) for detail in names.config_key(key)]
            if field == "data" and key in binary:
                errors.append(invalid(place, key, "duplicate of key present in binaryData"))
    if size > BYTES_MAX:
        # Upstream names no field here; it prints an empty path as `[]`.
        errors.append(too_long("[]", BYTES_MAX))
    return errors


def update_config_map(
    tree: JsonView, old: JsonView, _subresource: str, context: Context
) -> list[FieldError]:
    """Checks a changed ConfigMap."""
    return _frozen(tree, old, ("data", "binaryData")) + create_config_map(tree, context)


def create_secret(tree: JsonView, _context: Context) -> list[FieldError]:
    """Checks a new Secret."""
    data = json_tree.labels(tree, "data")
    errors: list[FieldError] = []
    for key in sorted(data):
        errors += [invalid(f"data[{key}]", key, detail) for detail in names.config_key(key)]
    if sum(_decoded_size(text) for text in data.values()) > BYTES_MAX:
        errors.append(too_long("data", BYTES_MAX))
    kind = json_tree.text(tree, "type")
    account = meta.annotation(tree, _ACCOUNT)
    if kind == "kubernetes.io/service-account-token" and not account:
        errors.append(required(f"metadata.annotations[{_ACCOUNT}]"))
    for key in _NEEDED.get(kind, ()):
        place = f"data[{key}]"
        if key not in data:
            errors.append(required(place))
        elif (
            key in _JSON
            and not secret_values.is_unreadable(data[key])
            and (problem := _json_problem(data[key]))
        ):
            errors.append(invalid(place, REDACTED, problem))
    choices = _ANY_OF.get(kind, ())
    if choices and not any(key in data for key in choices):
        errors += [required(f"data[{key}]") for key in choices]
    return errors


def update_secret(
    tree: JsonView, old: JsonView, _subresource: str, context: Context
) -> list[FieldError]:
    """Checks a changed Secret."""
    errors: list[FieldError] = []
    kind = json_tree.text(tree, "type")
    if kind != json_tree.text(old, "type"):
        errors.append(immutable("type", kind))
    return errors + _frozen(tree, old, ("data",)) + create_secret(tree, context)


def _frozen(tree: JsonView, old: JsonView, fields: tuple[str, ...]) -> list[FieldError]:
    """Returns errors for changes of an immutable object, `immutable` itself included."""
    if not json_tree.flag(old, "immutable"):
        return []
    changed = [] if json_tree.flag(tree, "immutable") else ["immutable"]
    changed += [name for name in fields if (tree.get(name) or {}) != (old.get(name) or {})]
    return [forbidden(name, IMMUTABLE_TEXT) for name in changed]


def _decoded_size(text: str) -> int:
    """The decoded size of a valid base64 string in bytes."""
    return len(text) // 4 * 3 - text[-2:].count("=")


def _json_problem(text: str) -> str:
    """Go's error for a value that is not JSON; empty if the value is JSON."""
    raw = base64.b64decode(text)
    try:
        json.loads(raw)
    except (ValueError, RecursionError):
        begin = raw.decode(errors="replace").lstrip()[:1]
        if begin and begin not in '{["-tfn0123456789':
            return f"invalid character '{begin}' looking for beginning of value"
        return "unexpected end of JSON input"
    return ""
