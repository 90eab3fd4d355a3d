"""Validation of LabelSelectors, and of numbers that may be percentages."""

import re
from typing import Any

from app.domain.objects.field_errors import FieldError, forbidden, invalid, required
from app.domain.objects.validation import shared
from app.domain.values import json_tree, names, selectors
from app.domain.values.fields import core
from app.domain.values.json_tree import JsonView

NEGATIVE_TEXT = "must be greater than or equal to 0"
_SET = ("In", "NotIn")
_UNSET = ("Exists", "DoesNotExist")
_is_percent = re.compile("[0-9]+%").fullmatch
PERCENT_TEXT = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or "
    "'93%', regex used for validation is '[0-9]+%')"
)


def check(selector: JsonView, path: str) -> list[FieldError]:
    """Checks the labels and expressions of a selector."""
    errors = shared.labels(selector.get("matchLabels"), f"{path}.matchLabels")
    for index, item in enumerate(core.expressions(selector)):
        errors += _expression(item, f"{path}.matchExpressions[{index}]")
    return errors


def is_empty(selector: JsonView) -> bool:
    """Whether the selector has neither labels nor expressions."""
    return not selector.get("matchLabels") and not selector.get("matchExpressions")


def matches(selector: JsonView, labels: JsonView) -> bool:
    """Whether labels match a selector; True for an invalid one, which `check` refuses."""
    try:
        return selectors.label_selector_of(selector).matches(dict(labels))
    except selectors.SelectorError:
        return True


def not_negative(tree: JsonView, name: str, path: str) -> list[FieldError]:
    """Checks an optional number, which must not be negative."""
    value = json_tree.integer(tree, name)
    if value is None or value >= 0:
        return []
    return [invalid(f"{path}.{name}", value, NEGATIVE_TEXT)]


def amount(value: Any, path: str) -> list[FieldError]:
    """Checks a number or a percentage, which must not be negative."""
    if isinstance(value, str):
        return [] if _is_percent(value) else [invalid(path, value, PERCENT_TEXT)]
    if isinstance(value, int) and value < 0:
        return [invalid(path, value, NEGATIVE_TEXT)]
    return []


def at_most_all(value: Any, path: str) -> list[FieldError]:
    """Checks that a percentage is at most 100%."""
    if isinstance(value, str) and _is_percent(value) and int(value[:-1]) > 100:
        return [invalid(path, value, "must not be greater than 100%")]
    return []


def is_nothing(value: Any) -> bool:
    """Whether the value is zero, as a number or a percentage."""
    return value == 0 or (isinstance(value, str) and value.strip("0") == "%")


def _expression(item: JsonView, path: str) -> list[FieldError]:
    operator, values = json_tree.text(item, "operator"), json_tree.texts(item, "values")
    errors: list[FieldError] = []
    if operator in _SET and not values:
        detail = "must be specified when `operator` is 'In' or 'NotIn'"
        errors.append(required(f"{path}.values", detail))
    elif operator in _UNSET and values:
        detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        errors.append(forbidden(f"{path}.values", detail))
    elif operator not in (*_SET, *_UNSET):
        errors.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    key = json_tree.text(item, "key")
    errors += [invalid(f"{path}.key", key, detail) for detail in names.label_name(key)]
    for index, value in enumerate(values):
        errors += shared.formatted(value, f"{path}.values[{index}]", names.label_value)
    return errors
