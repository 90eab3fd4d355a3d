"""Checks that several kinds share: names, lists, selectors, taints, tolerations, configuration."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from app.domain.objects.field_errors import (
    FieldError,
    FieldErrorType,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
)
from app.domain.objects.validation.context import Context
from app.domain.values import json_tree, names
from app.domain.values.json_tree import JsonView

SELECTORS_MAX = 32
EXPRESSION_BYTES_MAX = 10_240
OPAQUE_BYTES_MAX = 10_240
REQUEST_NAMES_MAX = 32
ANNOTATIONS_BYTES_MAX = 262_144

DRIVER_MAX = 63
POOL_MAX = 253
DOMAIN_MAX = 63
IDENTIFIER_MAX = 32

EMPTY_EXPRESSION_TEXT = (
    "compilation failed: ERROR: <input>:1:0: Syntax error: mismatched input '<EOF>' expecting "
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, "
    "BYTES, IDENTIFIER}"
)
"""The parser error of the API server for an empty expression. Recorded with 1.36."""

UID_FORM_TEXT = (
    "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with "
    "lowercase hexadecimal characters"
)
_UID = "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
_UID_FORMS = {
    32: re.compile("[0-9a-fA-F]{32}").fullmatch,
    36: re.compile(_UID).fullmatch,
    38: re.compile(f".{_UID}.").fullmatch,
    45: re.compile(f"(?i:urn:uuid:){_UID}").fullmatch,
}
"""The forms of a UUID that upstream's parser reads, by length; only the canonical form is valid.

Parity: objects.md 15.1; upstream's parser.
"""

TAINT_EFFECTS = ("NoExecute", "NoSchedule", "None")

Check = Callable[[Any, str], list[FieldError]]


def formatted(text: Any, path: str, check: Callable[[str], Sequence[str]]) -> list[FieldError]:
    """Checks the format of a string: one error for each message of `check`."""
    return [invalid(path, text, detail) for detail in check(text if isinstance(text, str) else "")]


def required_name(text: Any, path: str, check: Callable[[str], Sequence[str]]) -> list[FieldError]:
    """Checks a required name with a format."""
    return formatted(text, path, check) if text else [required(path)]


def driver_name(text: Any, path: str) -> list[FieldError]:
    """Checks a driver name. Upper case is accepted; the format is checked in lower case."""
    if not text:
        return [required(path)]
    errors: list[FieldError] = []
    if len(text.encode()) > DRIVER_MAX:
        errors.append(too_long(path, DRIVER_MAX))
    lower = names.subdomain(text.lower())
    return errors + [invalid(path, text, detail) for detail in lower]


def pool_name(text: Any, path: str) -> list[FieldError]:
    """Checks a pool name: one or more DNS subdomains joined by `/`."""
    if not text:
        return [required(path)]
    errors: list[FieldError] = []
    if len(text.encode()) > POOL_MAX:
        errors.append(too_long(path, POOL_MAX))
    for part in text.split("/"):
        errors += [invalid(path, part, detail) for detail in names.subdomain(part)]
    return errors


def qualified_name(text: str, path: str) -> list[FieldError]:
    """Checks a qualified name, `id` or `domain/id`. Parity: objects.md 2.1."""
    if not text:
        return [required(path, "name required")]
    parts = text.split("/")
    if len(parts) == 1:
        return identifier(parts[0], path)
    if len(parts) > 2:
        return [
            invalid(
                path,
                text,
                "must be either a single name or a domain and a name separated by a slash",
            )
        ]
    domain, name = parts
    errors: list[FieldError] = []
    if not domain:
        errors.append(required(path, "the domain must not be empty"))
    else:
        errors += domain_name(domain, path)
    if not name:
        errors.append(required(path, "the name must not be empty"))
    else:
        errors += identifier(name, path)
    return errors


def fully_qualified_name(text: Any, path: str) -> list[FieldError]:
    """Checks a fully qualified name, `domain/id`."""
    if not text:
        return [required(path)]
    errors = qualified_name(text, path)
    if not errors and "/" not in text:
        errors.append(
            invalid(
                path,
                text,
                "a fully qualified name must be a domain and a name separated by a slash",
            )
        )
    return errors


def identifier(text: str, path: str) -> list[FieldError]:
    """Checks the identifier of a qualified name."""
    errors: list[FieldError] = []
    if len(text.encode()) > IDENTIFIER_MAX:
        errors.append(too_long(path, IDENTIFIER_MAX))
    return errors + [invalid(path, text, detail) for detail in names.c_identifier(text)]


def domain_name(text: str, path: str) -> list[FieldError]:
    """Checks the domain of a qualified name."""
    errors: list[FieldError] = []
    if len(text.encode()) > DOMAIN_MAX:
        errors.append(too_long(path, DOMAIN_MAX))
    return errors + [invalid(path, text, detail) for detail in names.subdomain(text.lower())]


def bounded(
    items: Any,
    path: str,
    items_max: int,
    check: Check,
    *,
    key: Callable[[Any], Any] | None = None,
    key_path: str = "",
) -> list[FieldError]:
    """Checks a list with `check` for each item; `key` finds duplicates.

    A list that is longer than `items_max` gives only that error.
    """
    if not isinstance(items, list):
        return []
    if len(items) > items_max:
        return [too_many(path, len(items), items_max)]
    errors: list[FieldError] = []
    seen: set[Any] = set()
    for index, item in enumerate(items):
        place = f"{path}[{index}]"
        errors += check(item, place)
        if key is None:
            continue
        item_key = key(item)
        if item_key in seen:
            errors.append(duplicate(f"{place}{key_path}", item_key))
        seen.add(item_key)
    return errors


def bounded_map(
    items: JsonView,
    path: str,
    items_max: int,
    check_key: Callable[[str, str], list[FieldError]],
    check: Check,
) -> list[FieldError]:
    """Checks a map; an error of a key has the path of the map, an error of a value that of its key.

    A map with more than `items_max` keys gives only that error.
    """
    if len(items) > items_max:
        return [too_many(path, len(items), items_max)]
    errors: list[FieldError] = []
    for name in sorted(items):
        errors += check_key(name, path)
        errors += check(items[name], f"{path}[{shortened(name)}]")
    return errors


def shortened(key: str, longest: int = DOMAIN_MAX + 1 + IDENTIFIER_MAX) -> str:
    """A map key in a path; a key longer than `longest` characters is shortened in the middle."""
    if len(key) <= longest:
        return key
    half = (longest - 3) // 2
    return f"{key[:half]}...{key[-half:]}"


def request_names(names: Any, path: str, known: frozenset[str] | None) -> list[FieldError]:
    """Checks references to requests in constraints and configurations. Parity: objects.md 5.1."""
    return bounded(
        names,
        path,
        REQUEST_NAMES_MAX,
        lambda name, place: request_reference(name, place, known),
        key=lambda name: name,
    )


def request_reference(name: Any, path: str, known: frozenset[str] | None) -> list[FieldError]:
    """Checks a reference, `main` or `main/sub`; with `known`, it must be one of these."""
    text = name if isinstance(name, str) else ""
    errors: list[FieldError] = []
    parts = text.split("/")
    for part in parts[:2]:
        errors += formatted(part, path, names.label)
    if known is not None and text not in known:
        errors.append(
            invalid(
                path,
                name,
                "must be the name of a request in the claim or the name of a request and a "
                "subrequest separated by '/'",
            )
        )
    return errors


def selectors(
    items: Any, path: str, context: Context, *, stored: Sequence[Any] | None = None
) -> list[FieldError]:
    """Checks DeviceSelectors. The expressions are not checked if the stored list is equal."""
    unchanged = stored is not None and items == stored

    def check(item: Any, place: str) -> list[FieldError]:
        cel = json_tree.get(item, "cel") if isinstance(item, dict) else None
        if cel is None:
            return [required(f"{place}.cel")]
        return [] if unchanged else expression(json_tree.text(cel, "expression"), place, context)

    return bounded(items, path, SELECTORS_MAX, check)


def expression(text: str, path: str, context: Context) -> list[FieldError]:
    """Checks a CEL expression: length, compilation, estimated cost."""
    place = f"{path}.cel.expression"
    if not text:
        return [invalid(place, text, EMPTY_EXPRESSION_TEXT)]
    if len(text.encode()) > EXPRESSION_BYTES_MAX:
        return [too_long(place, EXPRESSION_BYTES_MAX)]
    problem = context.check_expression(text)
    if problem is None:
        return []
    if problem.is_too_costly:
        return [forbidden(place, "too complex, exceeds cost limit")]
    return [invalid(place, text, problem.detail)]


def opaque(configuration: Any, path: str, *, unchanged: bool = False) -> list[FieldError]:
    """Checks a configuration `{opaque: {driver, parameters}}`. Parity: objects.md 4."""
    opaque = json_tree.get(configuration, "opaque") if isinstance(configuration, dict) else None
    place = f"{path}.opaque"
    if opaque is None:
        return [required(place)]
    errors = driver_name(json_tree.text(opaque, "driver"), f"{place}.driver")
    return errors + raw_object(
        json_tree.get(opaque, "parameters"), f"{place}.parameters", unchanged=unchanged
    )


def raw_object(value: Any, path: str, *, unchanged: bool = False) -> list[FieldError]:
    """Checks a raw JSON object, whose size is bounded unless it is `unchanged`."""
    if value is None:
        return [required(path)]
    if not isinstance(value, dict):
        return [
            FieldError(
                path=path,
                type=FieldErrorType.INVALID,
                value="<value omitted>",
                detail="must be a valid JSON object",
            )
        ]
    size = len(msgspec.json.encode(value))
    return [too_long(path, OPAQUE_BYTES_MAX)] if size > OPAQUE_BYTES_MAX and not unchanged else []


def taint(item: Any, path: str, *, accepted_effect: str = "") -> list[FieldError]:
    """Checks a DeviceTaint. `accepted_effect` is the stored effect, which may be unknown."""
    tree = item if isinstance(item, dict) else {}
    errors = formatted(json_tree.text(tree, "key"), f"{path}.key", names.label_name)
    value = json_tree.text(tree, "value")
    if value:
        errors += formatted(value, f"{path}.value", names.label_value)
    effect = json_tree.text(tree, "effect")
    if not effect:
        errors.append(required(f"{path}.effect"))
    elif effect not in TAINT_EFFECTS and effect != accepted_effect:
        errors.append(not_supported(f"{path}.effect", effect, TAINT_EFFECTS))
    return errors


def toleration(item: Any, path: str) -> list[FieldError]:
    """Checks a DeviceToleration. Parity: objects.md 5.3."""
    tree = item if isinstance(item, dict) else {}
    errors: list[FieldError] = []
    key = json_tree.text(tree, "key")
    if key:
        errors += formatted(key, f"{path}.key", names.label_name)
    value = json_tree.text(tree, "value")
    match json_tree.text(tree, "operator"):
        case "Exists":
            if value:
                errors.append(
                    invalid(f"{path}.value", value, "must be empty for operator `Exists`")
                )
        case "Equal":
            errors += formatted(value, f"{path}.value", names.label_value)
        case "":
            errors.append(required(f"{path}.operator"))
        case other:
            errors.append(not_supported(f"{path}.operator", other, ("Equal", "Exists")))
    effect = json_tree.text(tree, "effect")
    if effect and effect not in TAINT_EFFECTS:
        errors.append(not_supported(f"{path}.effect", effect, TAINT_EFFECTS))
    return errors


def all_of(*groups: Iterable[FieldError]) -> list[FieldError]:
    """The errors of all groups, in order."""
    return [error for group in groups for error in group]


def labels(items: Any, path: str) -> list[FieldError]:
    """Checks the keys and values of labels."""
    if not isinstance(items, dict):
        return []
    errors: list[FieldError] = []
    for key in sorted(items):
        errors += [invalid(path, key, detail) for detail in names.label_name(key)]
        value = items[key]
        text = value if isinstance(value, str) else ""
        errors += [invalid(path, text, detail) for detail in names.label_value(text)]
    return errors


def annotations(items: Any, path: str) -> list[FieldError]:
    """Checks annotations: their keys in lower case, and their total size."""
    if not isinstance(items, dict):
        return []
    errors = [
        invalid(path, key, detail) for key in items for detail in names.label_name(key.lower())
    ]
    size = sum(len(key.encode()) + len(str(value).encode()) for key, value in items.items())
    return (
        [*errors, too_long(path, ANNOTATIONS_BYTES_MAX)] if size > ANNOTATIONS_BYTES_MAX else errors
    )


def uid(text: str) -> list[str]:
    """Checks a share id, a UUID in its canonical form; returns messages."""
    if names.is_uid(text):
        return []
    if len(text) not in _UID_FORMS:
        return [f"error validating uid: invalid UUID length: {len(text)}"]
    if not _UID_FORMS[len(text)](text):
        return ["error validating uid: invalid UUID format"]
    return [UID_FORM_TEXT]
