"""The CEL rules of a schema, `x-kubernetes-validations`, with upstream's messages.

A rule that uses `oldSelf` is evaluated only on updates, for a value whose old value is known: by
field, by key of a map, or by the keys of a list; `optionalOldSelf` lifts this restriction. Other
rules are not evaluated again for a value that an update does not change. Parity: objects.md 15.5,
apiextensions.k8s.io/v1.
"""

import re
from collections.abc import Iterator
from typing import Any

from app.domain.objects import field_errors
from app.domain.objects.expressions import ObjectRules
from app.domain.objects.field_errors import FieldError, FieldErrorType
from app.domain.objects.schema.definition_schemas import RULES
from app.domain.objects.schema.equality import semantic_equal
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject, JsonView

EVALUATIONS_MAX = 20_000
"""The largest number of rule evaluations for one object; an object that needs more is refused."""

_OLD = re.compile(r"\boldSelf\b")
_TYPES = {
    "FieldValueForbidden": FieldErrorType.FORBIDDEN,
    "FieldValueRequired": FieldErrorType.REQUIRED,
    "FieldValueDuplicate": FieldErrorType.DUPLICATE,
}


def check(
    schema: JsonView, tree: JsonView, old: JsonView | None, rules: ObjectRules
) -> list[FieldError]:
    """Returns errors of the rules that the object breaks; `old` is the object before an update."""
    errors: list[FieldError] = []
    evaluations = 0
    for place, part, value, before in _parts(schema, tree, old, ""):
        for rule in json_tree.objects(part, RULES):
            evaluations += 1
            if evaluations > EVALUATIONS_MAX:
                text = f"more than {EVALUATIONS_MAX} evaluations of rules"
                return [*errors, field_errors.forbidden(place, text)]
            error = _ask(rule, part, value, before, place, rules)
            if error is not None:
                errors.append(error)
    return errors


def problems(schema: JsonView, path: str, rules: ObjectRules) -> Iterator[FieldError]:
    """Yields an error for each rule of a schema that is empty or cannot be compiled."""
    for index, rule in enumerate(json_tree.objects(schema, RULES)):
        place = f"{path}.{RULES}[{index}].rule"
        text = json_tree.text(rule, "rule")
        problem = rules.problem_of(text) if text.strip() else ""
        if not text.strip():
            yield field_errors.required(place, "rule is not specified")
        elif problem:
            yield field_errors.invalid(place, text, problem)
    for name, child in json_tree.mapping(schema, "properties").items():
        if isinstance(child, dict):
            yield from problems(child, f"{path}.properties[{name}]", rules)
    for key in ("items", "additionalProperties"):
        child = schema.get(key)
        if isinstance(child, dict):
            yield from problems(child, f"{path}.{key}", rules)


def _ask(
    rule: JsonObject, schema: JsonView, value: Any, old: Any, place: str, rules: ObjectRules
) -> FieldError | None:
    text = json_tree.text(rule, "rule")
    is_optional = rule.get("optionalOldSelf") is True
    if _OLD.search(text):
        if old is None and not is_optional:
            return None
    elif old is not None and semantic_equal(value, old):
        return None
    problem = rules.broken(text, schema, value, old, is_optional=is_optional)
    if problem is None:
        return None
    message = json_tree.text(rule, "message").strip()
    by_expression = json_tree.text(rule, "messageExpression")
    if by_expression:
        message = rules.text_of(by_expression, schema, value, old) or message
    message = message or f"failed rule: {text.strip()}"
    if problem:
        message = f"{problem} evaluating rule: {message}"
    kind = _TYPES.get(json_tree.text(rule, "reason"), FieldErrorType.INVALID)
    where = f"{place}{json_tree.text(rule, 'fieldPath')}".lstrip(".") or "<nil>"
    return FieldError(path=where, type=kind, value=_type(schema), detail=message)


def _type(schema: JsonView) -> str:
    type_name = schema.get("type")
    return type_name if isinstance(type_name, str) else ""


def _parts(
    schema: JsonView, value: Any, old: Any, place: str
) -> Iterator[tuple[str, JsonView, Any, Any]]:
    """Yields path, schema, value and old value of each part that has rules, parents first."""
    if value is None:
        return
    if RULES in schema:
        yield place.lstrip("."), schema, value, old
    if isinstance(value, dict):
        before = old if isinstance(old, dict) else {}
        properties = json_tree.mapping(schema, "properties")
        more = schema.get("additionalProperties")
        for key, item in value.items():
            child = properties.get(key, more)
            if isinstance(child, dict):
                yield from _parts(child, item, before.get(key), f"{place}.{key}")
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        known = _by_key(schema, old)
        for index, item in enumerate(value):
            earlier = known.get(_key(schema, item)) if known else None
            yield from _parts(schema["items"], item, earlier, f"{place}[{index}]")


def _by_key(schema: JsonView, items: Any) -> dict[str, Any]:
    if schema.get("x-kubernetes-list-type") != "map" or not isinstance(items, list):
        return {}
    return {_key(schema, item): item for item in items}


def _key(schema: JsonView, item: Any) -> str:
    keys = json_tree.texts(schema, "x-kubernetes-list-map-keys")
    return field_errors.printed([item.get(key) if isinstance(item, dict) else None for key in keys])
