"""Validation of NodeSelectors."""

from typing import Any

from app.domain.objects.field_errors import FieldError, invalid, required
from app.domain.objects.field_errors import forbidden as _forbidden
from app.domain.objects.validation.go_form import node_selector_terms_in_go
from app.domain.values import json_tree, names
from app.domain.values.fields import core
from app.domain.values.json_tree import JsonView

OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")


def node_selector(selector: Any, path: str, *, one_term: bool = False) -> list[FieldError]:
    """Checks a selector: at least one term (exactly one with `one_term`), all valid."""
    tree = selector if isinstance(selector, dict) else {}
    terms = core.node_selector_terms(tree)
    place = f"{path}.nodeSelectorTerms"
    errors: list[FieldError] = []
    if not terms:
        errors.append(required(place, "must have at least one node selector term"))
    for index, part in enumerate(terms):
        errors += term(part, f"{place}[{index}]")
    if one_term and len(terms) != 1:
        shown = node_selector_terms_in_go(tree.get("nodeSelectorTerms"))
        errors.append(invalid(place, shown, "must have exactly one node selector term"))
    return errors


def term(tree: JsonView, path: str) -> list[FieldError]:
    """Checks the requirements of one term, for labels and for fields."""
    errors: list[FieldError] = []
    for number, item in enumerate(core.expressions(tree)):
        errors += _expression(item, f"{path}.matchExpressions[{number}]")
    for number, item in enumerate(core.field_expressions(tree)):
        errors += _field(item, f"{path}.matchFields[{number}]")
    return errors


def _expression(item: JsonView, path: str) -> list[FieldError]:
    operator = json_tree.text(item, "operator")
    values = json_tree.texts(item, "values")
    errors: list[FieldError] = []
    if operator in ("In", "NotIn") and not values:
        errors.append(
            required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        )
    elif operator in ("Exists", "DoesNotExist") and values:
        errors.append(
            _forbidden(
                f"{path}.values",
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            )
        )
    elif operator in ("Gt", "Lt") and len(values) != 1:
        errors.append(
            required(
                f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'"
            )
        )
    elif operator not in OPERATORS:
        errors.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    key = json_tree.text(item, "key")
    return errors + [invalid(f"{path}.key", key, detail) for detail in names.label_name(key)]


def _field(item: JsonView, path: str) -> list[FieldError]:
    operator, key = json_tree.text(item, "operator"), json_tree.text(item, "key")
    values = json_tree.texts(item, "values")
    errors: list[FieldError] = []
    if operator not in ("In", "NotIn"):
        errors.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    elif len(values) != 1:
        errors.append(
            required(
                f"{path}.values",
                "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
            )
        )
    if key != "metadata.name":
        errors.append(invalid(f"{path}.key", key, "not a valid field selector key"))
        return errors
    for index, value in enumerate(values):
        errors += [
            invalid(f"{path}.values[{index}]", value, detail) for detail in names.subdomain(value)
        ]
    return errors
