"""Validation of admission policies and their bindings.

Parity: objects.md 15.1; the messages are upstream's.
"""

import re
from collections.abc import Sequence
from typing import Final

from app.domain.objects.field_errors import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from app.domain.objects.validation import label_selectors
from app.domain.objects.validation.admission import matching
from app.domain.objects.validation.context import Context
from app.domain.values import json_tree, names
from app.domain.values.fields import entries, meta
from app.domain.values.json_tree import JsonView

REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge", "Unauthorized")
ACTIONS = ("Audit", "Deny", "Warn")
NOT_FOUND_ACTIONS = ("Allow", "Deny")
PATCH_TYPES = {"ApplyConfiguration": "applyConfiguration", "JSONPatch": "jsonPatch"}
REINVOCATIONS = ("IfNeeded", "Never")
ANNOTATIONS_MAX = 20
ANNOTATION_BYTES_MAX = 5 * 1024

_identifier = re.compile("[_a-zA-Z][_a-zA-Z0-9]*").fullmatch
_RESERVED: Final = frozenset(
    (
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for"),
        *("function", "if", "import", "let", "loop", "package", "namespace", "return", "var"),
        *("void", "while"),
    )
)
_UNSET = "validations or auditAnnotations must be set"


def create_validating(tree: JsonView, context: Context) -> list[FieldError]:
    """Checks a new ValidatingAdmissionPolicy."""
    spec = meta.spec(tree)
    errors = _common(spec, context)
    validations = json_tree.objects(spec, "validations")
    annotations = json_tree.objects(spec, "auditAnnotations")
    if not validations and not annotations:
        errors += [required(f"spec.{name}", _UNSET) for name in ("validations", "auditAnnotations")]
    for index, validation in enumerate(validations):
        errors += _validation(validation, f"spec.validations[{index}]", spec, context)
    if len(annotations) > ANNOTATIONS_MAX:
        text = f"must not have more than {ANNOTATIONS_MAX} auditAnnotations"
        errors.append(invalid("spec.auditAnnotations", annotations, text))
    name = meta.name(tree)
    return errors + _annotations(name, annotations, spec, context)


def create_mutating(tree: JsonView, context: Context) -> list[FieldError]:
    """Checks a new MutatingAdmissionPolicy."""
    spec = meta.spec(tree)
    errors = _common(spec, context)
    mutations = json_tree.objects(spec, "mutations")
    if not mutations:
        errors.append(required("spec.mutations", "mutations must contain at least one item"))
    for index, mutation in enumerate(mutations):
        errors += _mutation(mutation, f"spec.mutations[{index}]")
    if not json_tree.text(spec, "reinvocationPolicy"):
        errors.append(required("spec.reinvocationPolicy"))
    else:
        name = "reinvocationPolicy"
        errors += matching.choice(spec, name, "spec", REINVOCATIONS)
    return errors


def create_validating_binding(tree: JsonView, context: Context) -> list[FieldError]:
    """Checks a new ValidatingAdmissionPolicyBinding."""
    actions = json_tree.texts(tree, "spec", "validationActions")
    return create_binding(tree, context) + _actions(actions, "spec.validationActions")


def create_binding(tree: JsonView, _context: Context) -> list[FieldError]:
    """Checks the fields that bindings of both kinds of policies have."""
    spec = meta.spec(tree)
    name = json_tree.text(spec, "policyName")
    errors: list[FieldError] = [] if name else [required("spec.policyName")]
    errors += [invalid("spec.policyName", name, detail) for detail in names.subdomain(name)]
    if "paramRef" in spec:
        errors += _reference(json_tree.mapping(spec, "paramRef"), "spec.paramRef")
    if "matchResources" in spec:
        match_resources = json_tree.mapping(spec, "matchResources")
        errors += matching.resources(match_resources, "spec.matchResources")
    return errors


def _common(spec: JsonView, context: Context) -> list[FieldError]:
    """Checks the fields that both kinds of policies have."""
    if "failurePolicy" not in spec:
        errors = [required("spec.failurePolicy")]
    else:
        choices = matching.FAILURE_POLICIES
        errors = matching.choice(spec, "failurePolicy", "spec", choices)
    if "paramKind" in spec:
        errors += _parameter_kind(json_tree.mapping(spec, "paramKind"), "spec.paramKind")
    if "matchConstraints" not in spec:
        errors.append(required("spec.matchConstraints"))
    else:
        match_constraints = json_tree.mapping(spec, "matchConstraints")
        errors += matching.resources(match_constraints, "spec.matchConstraints")
        if not json_tree.objects(match_constraints, "resourceRules"):
            errors.append(required("spec.matchConstraints.resourceRules"))
    errors += matching.conditions(spec, "spec", context)
    for index, variable in enumerate(json_tree.objects(spec, "variables")):
        # A variable can use the variables before it.
        seen = {**spec, "variables": json_tree.objects(spec, "variables")[:index]}
        errors += _variable(variable, f"spec.variables[{index}]", seen, context)
    return errors


def _parameter_kind(param_kind: JsonView, path: str) -> list[FieldError]:
    version, kind = meta.api_version(param_kind), meta.kind(param_kind)
    errors = [required(f"{path}.apiVersion")] if not version else _version(version, path)
    if not kind:
        return [*errors, required(f"{path}.kind")]
    problems = names.label_1035(kind.lower())
    if problems:
        text = f"may have mixed case, but should otherwise match: {','.join(problems)}"
        errors.append(invalid(f"{path}.kind", kind, text))
    return errors


def _version(text: str, path: str) -> list[FieldError]:
    place = f"{path}.apiVersion"
    group, slash, version = text.rpartition("/")
    if "/" in group:
        return [invalid(place, text, f"unexpected GroupVersion string: {text}")]
    problems = names.subdomain(group) if slash and group else ()
    errors = [invalid(place, group, ",".join(problems))] if problems else []
    if not version:
        return [*errors, invalid(place, text, "version must be specified")]
    problems = names.label_1035(version)
    return errors + ([invalid(place, version, ",".join(problems))] if problems else [])


def _variable(variable: JsonView, path: str, spec: JsonView, context: Context) -> list[FieldError]:
    errors: list[FieldError] = []
    name = entries.name(variable)
    if not name.strip():
        errors.append(required(f"{path}.name", "name is not specified"))
    elif not _identifier(name) or name in _RESERVED:
        errors.append(invalid(f"{path}.name", name, "name is not a valid CEL identifier"))
    expression = json_tree.text(variable, "expression")
    if not expression.strip():
        return [*errors, required(f"{path}.expression", "expression is not specified")]
    place = f"{path}.expression"
    return errors + matching.expression(expression, place, spec, context)


def _validation(
    validation: JsonView, path: str, spec: JsonView, context: Context
) -> list[FieldError]:
    errors: list[FieldError] = []
    expression = json_tree.text(validation, "expression")
    place = f"{path}.expression"
    if not expression.strip():
        errors.append(required(place, "expression is not specified"))
    else:
        errors += matching.expression(expression, place, spec, context, "bool")
    by_expression = json_tree.text(validation, "messageExpression")
    place = f"{path}.messageExpression"
    if by_expression and not by_expression.strip():
        errors.append(invalid(place, by_expression, "must be non-empty if specified"))
    elif by_expression:
        errors += matching.expression(by_expression, place, spec, context, "string")
    message = json_tree.text(validation, "message")
    if message and not message.strip():
        text = "message must be non-empty if specified"
        errors.append(invalid(f"{path}.message", message, text))
    elif "\n" in message.strip():
        text = "message must not contain line breaks"
        errors.append(invalid(f"{path}.message", message, text))
    elif "\n" in expression.strip() and not message:
        text = "message must be specified if expression contains line breaks"
        errors.append(required(f"{path}.message", text))
    return errors + matching.choice(validation, "reason", path, REASONS)


def _annotations(
    policy: str, annotations: Sequence[JsonView], spec: JsonView, context: Context
) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, annotation in enumerate(annotations):
        path = f"spec.auditAnnotations[{index}]"
        key = json_tree.text(annotation, "key")
        if policy:
            problems: Sequence[str] = names.label_name(f"{policy}/{key}")
        else:
            problems = ("requires metadata.name be non-empty",)
        errors += [invalid(f"{path}.key", key, detail) for detail in problems]
        expression = json_tree.text(annotation, "valueExpression")
        place = f"{path}.valueExpression"
        if not expression.strip():
            errors.append(required(place, "valueExpression is not specified"))
        elif len(expression.strip().encode()) > ANNOTATION_BYTES_MAX:
            text = f"must not exceed {ANNOTATION_BYTES_MAX} bytes in length"
            errors.append(required(place, text))
        else:
            errors += matching.expression(expression, place, spec, context, "string", "null_type")
        if key in seen:
            errors.append(duplicate(f"{path}.key", key))
        seen.add(key)
    return errors


def _mutation(mutation: JsonView, path: str) -> list[FieldError]:
    kind = json_tree.text(mutation, "patchType")
    if not kind:
        return [required(f"{path}.patchType")]
    if kind not in PATCH_TYPES:
        return [not_supported(f"{path}.patchType", kind, tuple(PATCH_TYPES))]
    errors: list[FieldError] = []
    for name, field in PATCH_TYPES.items():
        place = f"{path}.{field}"
        if name != kind and field in mutation:
            errors.append(forbidden(place, f"may not be specified when patchType is {kind}"))
        elif name == kind and field not in mutation:
            errors.append(required(place, f"must be specified when patchType is {kind}"))
        elif name == kind and not json_tree.text(mutation, field, "expression").strip():
            errors.append(required(f"{place}.expression", "expression is not specified"))
    return errors


def _reference(param_ref: JsonView, path: str) -> list[FieldError]:
    name, exclusive = entries.name(param_ref), "name and selector are mutually exclusive"
    has_selector = "selector" in param_ref
    errors = [invalid(f"{path}.name", name, detail) for detail in names.path_segment(name)]
    if name and has_selector:
        errors.append(forbidden(f"{path}.name", exclusive))
    errors += label_selectors.check(json_tree.mapping(param_ref, "selector"), f"{path}.selector")
    if name and has_selector:
        errors.append(forbidden(f"{path}.selector", exclusive))
    if not name and not has_selector:
        errors.append(required(path, "one of name or selector must be specified"))
    if not json_tree.text(param_ref, "parameterNotFoundAction"):
        return [*errors, required(f"{path}.parameterNotFoundAction")]
    field = "parameterNotFoundAction"
    return errors + matching.choice(param_ref, field, path, NOT_FOUND_ACTIONS)


def _actions(actions: Sequence[str], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, action in enumerate(actions):
        if action not in ACTIONS:
            errors.append(not_supported(f"{path}[{index}]", action, ACTIONS))
        if action in actions[:index]:
            errors.append(duplicate(f"{path}[{index}]", action))
    if {"Deny", "Warn"} <= set(actions):
        text = (
            "must not contain both Deny and Warn (repeating the same validation failure "
            "information in the API response and headers serves no purpose)"
        )
        errors.append(invalid(path, sorted(set(actions)), text))
    if not actions:
        errors.append(required(path, "at least one validation action is required"))
    return errors
