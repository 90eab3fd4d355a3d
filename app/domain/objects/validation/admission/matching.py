"""Validation of rules, selectors and match conditions of webhooks and policies.

Parity: objects.md 15.1; the messages are upstream's.
"""

from collections.abc import Sequence

from app.domain.objects.field_errors import (
    FieldError,
    duplicate,
    invalid,
    not_supported,
    required,
    too_many,
)
from app.domain.objects.review.policies import condition_scope, policy_scope
from app.domain.objects.validation import label_selectors
from app.domain.objects.validation.context import Context
from app.domain.values import json_tree, names
from app.domain.values.fields import entries
from app.domain.values.json_tree import JsonView

FAILURE_POLICIES = ("Fail", "Ignore")
MATCH_POLICIES = ("Equivalent", "Exact")
OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
SCOPES = ("*", "Cluster", "Namespaced")
CONDITIONS_MAX = 64


def resources(match_resources: JsonView, path: str) -> list[FieldError]:
    """Checks the MatchResources of a policy or binding."""
    errors = choice(match_resources, "matchPolicy", path, MATCH_POLICIES)
    errors += selectors(match_resources, path)
    for name in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(json_tree.objects(match_resources, name)):
            place = f"{path}.{name}[{index}]"
            errors += _names(json_tree.texts(rule, "resourceNames"), f"{place}.resourceNames")
            errors += operations_rule(rule, place)
    return errors


def selectors(holder: JsonView, path: str) -> list[FieldError]:
    """Checks namespaceSelector and objectSelector."""
    return [
        error
        for name in ("namespaceSelector", "objectSelector")
        for error in label_selectors.check(json_tree.mapping(holder, name), f"{path}.{name}")
    ]


def choice(holder: JsonView, name: str, path: str, choices: Sequence[str]) -> list[FieldError]:
    """Checks a field with a fixed set of values; an absent field is valid."""
    value = json_tree.text(holder, name)
    if name not in holder or value in choices:
        return []
    return [not_supported(f"{path}.{name}", value, choices)]


def operations_rule(rule: JsonView, path: str) -> list[FieldError]:
    """Checks operations, groups, versions, resources and scope of one rule."""
    operations = json_tree.texts(rule, "operations")
    errors = _wildcard(operations, f"{path}.operations", "operations")
    for index, operation in enumerate(operations):
        if operation not in OPERATIONS:
            errors.append(not_supported(f"{path}.operations[{index}]", operation, OPERATIONS))
    errors += _wildcard(json_tree.texts(rule, "apiGroups"), f"{path}.apiGroups", "API groups")
    versions = json_tree.texts(rule, "apiVersions")
    errors += _wildcard(versions, f"{path}.apiVersions", "API versions")
    for index, version in enumerate(versions):
        if not version:
            errors.append(required(f"{path}.apiVersions[{index}]"))
    errors += _resources(json_tree.texts(rule, "resources"), f"{path}.resources")
    return errors + choice(rule, "scope", path, SCOPES)


def _wildcard(items: Sequence[str], path: str, noun: str) -> list[FieldError]:
    """Checks that a list is not empty, and that `*` is its only item if present."""
    if not items:
        return [required(path)]
    if len(items) > 1 and "*" in items:
        text = f"if '*' is present, must not specify other {noun}"
        return [invalid(path, list(items), text)]
    return []


def _resources(items: Sequence[str], path: str) -> list[FieldError]:
    errors: list[FieldError] = [] if items else [required(path)]
    whole: set[str] = set()
    everywhere: set[str] = set()
    has_plain = False
    for index, item in enumerate(items):
        place = f"{path}[{index}]"
        resource, slash, subresource = item.partition("/")
        if not item:
            errors.append(required(place))
        elif not slash:
            has_plain = item != "*"
        else:
            for held, shown in ((resource in whole, f"{resource}/*"),
                                (subresource in everywhere, f"*/{subresource}")):  # fmt: skip
                if held:
                    text = f"if '{shown}' is present, must not specify {item}"
                    errors.append(invalid(place, item, text))
            whole |= {resource} if subresource == "*" else set()
            everywhere |= {subresource} if resource == "*" else set()
    if len(items) > 1 and "*/*" in items:
        text = "if '*/*' is present, must not specify other resources"
        errors.append(invalid(path, list(items), text))
    if "*" in items and has_plain:
        text = "if '*' is present, must not specify other resources without subresources"
        errors.append(invalid(path, list(items), text))
    return errors


def expression(
    text: str, path: str, spec: JsonView, context: Context, *results: str, plain: bool = False
) -> list[FieldError]:
    """Checks that an expression compiles and returns one of the types `results`.

    It can use the variables of `spec` unless it is `plain`, as match conditions are.
    """
    rules = context.policy_rules
    if rules is None:
        return []
    scope = condition_scope(spec, rules) if plain else policy_scope(spec, rules)
    problem = rules.problem_of(text, scope, *results)
    return [invalid(path, text, problem)] if problem else []


def _names(items: Sequence[str], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, name in enumerate(items):
        place = f"{path}[{index}]"
        errors += [invalid(place, name, detail) for detail in names.path_segment(name)]
        if name in items[:index]:
            errors.append(duplicate(place, name))
    return errors


def conditions(holder: JsonView, path: str, context: Context) -> list[FieldError]:
    """Checks the names and expressions of matchConditions."""
    conditions = json_tree.objects(holder, "matchConditions")
    place = f"{path}.matchConditions"
    if len(conditions) > CONDITIONS_MAX:
        return [too_many(place, len(conditions), CONDITIONS_MAX)]
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        at = f"{place}[{index}]"
        name = entries.name(condition)
        text = json_tree.text(condition, "expression").strip()
        if not text:
            errors.append(required(f"{at}.expression"))
        else:
            errors += expression(text, f"{at}.expression", holder, context, "bool", plain=True)
        if not name:
            errors.append(required(f"{at}.name"))
            continue
        errors += [invalid(f"{at}.name", name, detail) for detail in names.label_name(name)]
        if name in seen:
            errors.append(duplicate(f"{at}.name", name))
        seen.add(name)
    return errors
