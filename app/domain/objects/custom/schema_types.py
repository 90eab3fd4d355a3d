"""Checks of the types of keys in the schema of a definition.

The real server finds a wrong type while decoding. Here the schema is stored as it was sent, so this
check runs before any other code reads it.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from app.domain.objects.field_errors import FieldError, FieldErrorType
from app.domain.values.json_tree import JsonView

DEPTH_MAX = 40
"""The deepest nesting of a schema; each level costs several stack frames, and more is refused."""


def problems(schema: Any, path: str, depth: int = 0) -> Iterator[FieldError]:
    """Yields an error for each key with a wrong type, in the schema and in the schemas below it."""
    if not isinstance(schema, dict):
        yield _wrong(path, schema, "object")
        return
    if depth > DEPTH_MAX:
        yield _error(path, "object", f"is nested more than {DEPTH_MAX} deep")
        return
    for key, value in schema.items():
        wanted, test = _TESTS.get(key, ("", _anything))
        if value is not None and not test(value):
            yield _wrong(f"{path}.{key}", value, wanted)
    yield from _below(schema, path, depth + 1)


def _below(schema: JsonView, path: str, depth: int) -> Iterator[FieldError]:
    properties = schema.get("properties")
    for name, child in properties.items() if isinstance(properties, dict) else ():
        yield from problems(child, f"{path}.properties[{name}]", depth)
    for key in ("items", "not"):
        if schema.get(key) is not None:
            yield from problems(schema[key], f"{path}.{key}", depth)
    more = schema.get("additionalProperties")
    if more is not None and not isinstance(more, bool):
        yield from problems(more, f"{path}.additionalProperties", depth)
    for key in ("allOf", "anyOf", "oneOf"):
        parts = schema.get(key)
        for index, part in enumerate(parts if isinstance(parts, list) else ()):
            yield from problems(part, f"{path}.{key}[{index}]", depth)


def _anything(value: Any) -> bool:
    return True


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _is_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


_TESTS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(
        (
            *("$ref", "$schema", "description", "format", "id", "pattern", "title", "type"),
            *("x-kubernetes-list-type", "x-kubernetes-map-type"),
        ),
        ("string", _is_text),
    ),
    **dict.fromkeys(
        (
            *("exclusiveMaximum", "exclusiveMinimum", "nullable", "uniqueItems"),
            "x-kubernetes-embedded-resource",
            "x-kubernetes-int-or-string",
            "x-kubernetes-preserve-unknown-fields",
        ),
        ("boolean", _is_flag),
    ),
    **dict.fromkeys(
        (
            *("maxItems", "maxLength", "maxProperties"),
            *("minItems", "minLength", "minProperties"),
        ),
        ("integer", _is_count),
    ),
    **dict.fromkeys(("maximum", "minimum", "multipleOf"), ("number", _is_number)),
    **dict.fromkeys(("required", "x-kubernetes-list-map-keys"), ("array of strings", _is_texts)),
    **dict.fromkeys(("allOf", "anyOf", "enum", "oneOf"), ("array", _is_list)),
    "x-kubernetes-validations": ("array of objects", _is_objects),
    "properties": ("object", _is_object),
}


def _wrong(path: str, value: Any, wanted: str) -> FieldError:
    actual = "null" if value is None else type(value).__name__
    names = {"str": "string", "dict": "object", "list": "array", "bool": "boolean", "int": "number"}
    return _error(path, names.get(actual, actual), f"must be of type {wanted}")


def _error(path: str, value: str, text: str) -> FieldError:
    return FieldError(path=path, type=FieldErrorType.TYPE_INVALID, value=value, detail=text)
