"""Checks of a custom object against its schema, with the messages of the real server.

An error carries the path of its value as steps, so that an update can skip the values that it does
not change (ratcheting). Parity: objects.md 15.5; value validations of structural schemas; messages
of the OpenAPI validator. Every string fits a format that is not known.
"""

import base64
import binascii
import ipaddress
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Any, TypeAlias

from app.domain.objects import field_errors
from app.domain.objects.field_errors import FieldError, FieldErrorType
from app.domain.objects.schema.definition_schemas import EMBEDDED, INT_OR_STRING, PRESERVE
from app.domain.objects.schema.equality import semantic_equal
from app.domain.values import json_tree, timestamps
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.regular_expressions import Pattern, PatternError

Steps: TypeAlias = tuple[str | int, ...]

ERRORS_MAX = 100
"""The largest number of errors reported for one object."""

_MISSING = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleViolation:
    """A broken rule and the path of the value that breaks it."""

    steps: Steps
    error: FieldError


def check(schema: JsonView, tree: JsonView, old: JsonView | None = None) -> list[FieldError]:
    """Returns an error for each rule that the object breaks, at most `ERRORS_MAX`.

    With `old`, errors of values that are equal in `old` are left out.
    """
    errors: list[FieldError] = []
    body = {key: value for key, value in tree.items() if key not in ("apiVersion", "kind")}
    body.pop("metadata", None)
    for problem in _check(schema, body, ()):
        if old is not None and _is_as_before(problem, tree, old):
            continue
        errors.append(problem.error)
        if len(errors) >= ERRORS_MAX:
            break
    return errors


def _is_as_before(problem: RuleViolation, tree: JsonView, old: JsonView) -> bool:
    before = _follow(old, problem.steps)
    now = _follow(tree, problem.steps)
    return before is not _MISSING and now is not _MISSING and semantic_equal(now, before)


def _follow(value: Any, steps: Steps) -> Any:
    for step in steps:
        if isinstance(step, int):
            if not isinstance(value, list) or step >= len(value):
                return _MISSING
            value = value[step]
        elif isinstance(value, dict) and step in value:
            value = value[step]
        else:
            return _MISSING
    return value


def _check(schema: JsonView, value: Any, steps: Steps) -> Iterator[RuleViolation]:
    if value is None and schema.get("nullable") is True:
        return
    wrong = _wrong_type(schema, value)
    if wrong:
        name = _type_name(value)
        text = f"{_body(steps)} must be of type {wrong}: {field_errors.printed(name)}"
        yield _error(steps, FieldErrorType.TYPE_INVALID, name, text)
        return
    yield from _check_value(schema, value, steps)
    if isinstance(value, dict):
        yield from _check_object(schema, value, steps)
    elif isinstance(value, list):
        yield from _check_list(schema, value, steps)


def _check_value(schema: JsonView, value: Any, steps: Steps) -> Iterator[RuleViolation]:
    """Checks rules of any single value: enum, limits, formats, allOf, anyOf, oneOf and not."""
    allowed = schema.get("enum")
    if isinstance(allowed, list) and value not in allowed:
        listed = [item if isinstance(item, str) else str(item) for item in allowed]
        shown = value if isinstance(value, str) else str(value)
        yield RuleViolation(
            steps=steps, error=field_errors.not_supported(_path(steps), shown, listed)
        )
    if isinstance(value, str):
        yield from _check_text(schema, value, steps)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _check_number(schema, value, steps)
    for part in schema.get("allOf") or ():
        yield from _check(part, value, steps)
    name = field_errors.printed(_path(steps) if steps else "")
    some = schema.get("anyOf") or ()
    is_free = not some or schema.get(INT_OR_STRING) is True
    if not is_free and not any(_fits(part, value, steps) for part in some):
        text = f"{name} must validate at least one schema (anyOf)"
        yield _error(steps, FieldErrorType.INVALID, "", text)
    one = schema.get("oneOf")
    if isinstance(one, list) and one:
        fitting = sum(_fits(part, value, steps) for part in one)
        if fitting != 1:
            many = "Found none valid" if not fitting else f"Found {fitting} valid alternatives"
            text = f"{name} must validate one and only one schema (oneOf). {many}"
            yield _error(steps, FieldErrorType.INVALID, "", text)
    refused = schema.get("not")
    if isinstance(refused, dict) and _fits(refused, value, steps):
        text = f"{name} must not validate the schema (not)"
        yield _error(steps, FieldErrorType.INVALID, "", text)


def _fits(schema: JsonView, value: Any, steps: Steps) -> bool:
    return next(_check(schema, value, steps), None) is None


def _check_text(schema: JsonView, value: str, steps: Steps) -> Iterator[RuleViolation]:
    least, most = schema.get("minLength"), schema.get("maxLength")
    if isinstance(most, int) and len(value) > most:
        yield RuleViolation(steps=steps, error=field_errors.too_long(_path(steps), most))
    if isinstance(least, int) and len(value) < least:
        text = f"{_body(steps)} should be at least {least} chars long"
        yield _error(steps, FieldErrorType.INVALID, value, text)
    pattern = schema.get("pattern")
    if isinstance(pattern, str) and not _matches(pattern, value):
        text = f"{_body(steps)} should match '{pattern}'"
        yield _error(steps, FieldErrorType.INVALID, value, text)
    name = schema.get("format")
    if isinstance(name, str) and not _has_format(name, value):
        text = f"{_body(steps)} must be of type {name}: {field_errors.printed(value)}"
        yield _error(steps, FieldErrorType.TYPE_INVALID, value, text)


def _check_number(schema: JsonView, value: float, steps: Steps) -> Iterator[RuleViolation]:
    least, most = schema.get("minimum"), schema.get("maximum")
    if isinstance(most, int | float):
        is_open = schema.get("exclusiveMaximum") is True
        if value > most or (is_open and value == most):
            word = "less than" if is_open else "less than or equal to"
            text = f"{_body(steps)} should be {word} {_digits(most)}"
            yield _error(steps, FieldErrorType.INVALID, value, text)
    if isinstance(least, int | float):
        is_open = schema.get("exclusiveMinimum") is True
        if value < least or (is_open and value == least):
            word = "greater than" if is_open else "greater than or equal to"
            text = f"{_body(steps)} should be {word} {_digits(least)}"
            yield _error(steps, FieldErrorType.INVALID, value, text)
    factor = schema.get("multipleOf")
    if isinstance(factor, int | float) and factor and math.fmod(value, factor):
        text = f"{_body(steps)} should be a multiple of {_digits(factor)}"
        yield _error(steps, FieldErrorType.INVALID, value, text)
    name = schema.get("format")
    bits = {"int32": 31, "int64": 63}.get(name if isinstance(name, str) else "")
    if bits is not None and not -(2**bits) <= value < 2**bits:
        text = f"{_body(steps)} must be of type {name}: {_digits(value)}"
        yield _error(steps, FieldErrorType.TYPE_INVALID, value, text)


def _check_object(schema: JsonView, value: JsonObject, steps: Steps) -> Iterator[RuleViolation]:
    for name in schema.get("required") or ():
        if name not in value:
            place = (*steps, str(name))
            yield RuleViolation(steps=place, error=field_errors.required(_path(place)))
    yield from _check_size(schema, "Properties", len(value), value, steps)
    if schema.get(EMBEDDED) is True:
        yield from _check_embedded(value, steps)
    properties = json_tree.mapping(schema, "properties")
    more = schema.get("additionalProperties")
    for key, item in value.items():
        child = properties.get(key, more)
        if isinstance(child, dict):
            yield from _check(child, item, (*steps, key))


def _check_embedded(value: JsonObject, steps: Steps) -> Iterator[RuleViolation]:
    for key in ("apiVersion", "kind"):
        if not value.get(key):
            place = (*steps, key)
            yield RuleViolation(
                steps=place, error=field_errors.required(_path(place), "must not be empty")
            )


def _check_list(schema: JsonView, value: list[Any], steps: Steps) -> Iterator[RuleViolation]:
    yield from _check_size(schema, "Items", len(value), value, steps)
    if schema.get("uniqueItems") is True and len({_identity(item) for item in value}) < len(value):
        text = f"{_body(steps)} shouldn't contain duplicates"
        yield _error(steps, FieldErrorType.INVALID, value, text)
    yield from _check_keys(schema, value, steps)
    items = schema.get("items")
    if isinstance(items, dict):
        for index, item in enumerate(value):
            yield from _check(items, item, (*steps, index))


def _check_size(
    schema: JsonView, word: str, size: int, value: Any, steps: Steps
) -> Iterator[RuleViolation]:
    least, most = schema.get(f"min{word}"), schema.get(f"max{word}")
    if isinstance(most, int) and size > most:
        yield RuleViolation(steps=steps, error=field_errors.too_many(_path(steps), size, most))
    if isinstance(least, int) and size < least:
        text = f"{_body(steps)} should have at least {least} {word.lower()}"
        yield _error(steps, FieldErrorType.INVALID, value, text)


def _check_keys(schema: JsonView, value: list[Any], steps: Steps) -> Iterator[RuleViolation]:
    """Checks that each item of a set, and each key of a list with keys, occurs once."""
    kind = schema.get("x-kubernetes-list-type")
    keys = json_tree.texts(schema, "x-kubernetes-list-map-keys")
    if kind not in ("set", "map"):
        return
    seen: set[str] = set()
    for index, item in enumerate(value):
        shown = item
        if kind == "map":
            shown = {k: item[k] for k in keys if k in item} if isinstance(item, dict) else item
        identity = _identity(shown)
        if identity in seen:
            place = (*steps, index)
            yield RuleViolation(steps=place, error=field_errors.duplicate(_path(place), shown))
        seen.add(identity)


def _identity(value: Any) -> str:
    return field_errors.printed(value)


def _wrong_type(schema: JsonView, value: Any) -> str:
    """The type that the schema requires, if the value has another type; else empty."""
    if schema.get(INT_OR_STRING) is True:
        is_right = isinstance(value, str) or _is_integer(value)
        return "" if is_right else "integer,string"
    wanted = schema.get("type")
    if not isinstance(wanted, str) or not wanted:
        is_null = value is None and schema.get(PRESERVE) is not True and "default" in schema
        return "object" if is_null else ""
    test = _TYPES.get(wanted)
    return wanted if test is not None and not test(value) else ""


def _is_integer(value: Any) -> bool:
    if isinstance(value, float):
        return value.is_integer()
    return isinstance(value, int) and not isinstance(value, bool)


_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": _is_integer,
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
}


def _type_name(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, float):
        return "number"
    for name, test in _TYPES.items():
        if test(value):
            return name
    return "object"


@lru_cache(maxsize=1_024)
def _compiled(pattern: str) -> Pattern | None:
    try:
        return Pattern(pattern)
    except PatternError:
        # Only a definition that another server has stored can hold it: `definition_rules`.
        return None


def _matches(pattern: str, value: str) -> bool:
    compiled = _compiled(pattern)
    return compiled is None or compiled.found_in(value)


def _error(steps: Steps, kind: FieldErrorType, value: Any, text: str) -> RuleViolation:
    error = FieldError(path=_path(steps) or "<nil>", type=kind, value=value, detail=text)
    return RuleViolation(steps=steps, error=error)


def _path(steps: Steps) -> str:
    parts = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps]
    return "".join(parts).removeprefix(".")


def _body(steps: Steps) -> str:
    return f"{_path(steps)} in body"


def _digits(number: float) -> str:
    return str(int(number)) if float(number).is_integer() else str(number)


def _has_format(name: str, value: str) -> bool:
    """Whether the string has the format; True for unknown formats."""
    test = _FORMAT_TESTS.get(name)
    return test is None or test(value)


def _raises_no(error: type[Exception], call: Callable[[str], object]) -> Callable[[str], bool]:
    def test(value: str) -> bool:
        try:
            call(value)
        except error:
            return False
        return True

    return test


_HEX = "[0-9a-fA-F]"
_UUID = re.compile(f"{_HEX}{{8}}-?{_HEX}{{4}}-?{_HEX}{{4}}-?{_HEX}{{4}}-?{_HEX}{{12}}")
_MAC = re.compile(f"{_HEX}{{2}}([:-]{_HEX}{{2}}){{5}}([:-]{_HEX}{{2}}){{0,2}}")
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+")
_HOST = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?(\.[-A-Za-z0-9]{1,63})*\.?")
_DURATION = re.compile(r"[-+]?((\d+(\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h|d|w))+|0|\d+ *[a-z]+")

_FORMAT_TESTS: Mapping[str, Callable[[str], bool]] = {
    "byte": _raises_no(binascii.Error, lambda value: base64.b64decode(value, validate=True)),
    "cidr": _raises_no(ValueError, lambda value: ipaddress.ip_network(value, strict=False)),
    "date": _raises_no(ValueError, date.fromisoformat),
    "date-time": _raises_no(timestamps.TimestampError, timestamps.parse),
    "datetime": _raises_no(timestamps.TimestampError, timestamps.parse),
    "duration": lambda value: _DURATION.fullmatch(value) is not None,
    "email": lambda value: _EMAIL.fullmatch(value) is not None,
    "hostname": lambda value: _HOST.fullmatch(value) is not None,
    "ipv4": _raises_no(ValueError, ipaddress.IPv4Address),
    "ipv6": _raises_no(ValueError, ipaddress.IPv6Address),
    "mac": lambda value: _MAC.fullmatch(value) is not None,
    "uuid": lambda value: _UUID.fullmatch(value) is not None,
}
