"""Evaluation of ValidatingAdmissionPolicies for a write.

Policies and bindings come from the reader and are evaluated in the order of their names, so the
same history gives the same results. Without a binding no policy is evaluated.
Parity: objects.md 15.4; ValidatingAdmissionPolicy of admissionregistration.k8s.io/v1, with its
messages. The parameter objects of a policy are those that its binding names.
"""

from collections.abc import Iterator
from typing import NamedTuple

from app.domain.errors import (
    BadRequest,
    Forbidden,
    Invalid,
    RedraError,
    Rejected,
    StatusCause,
    TooLarge,
    Unauthorized,
)
from app.domain.log import ObjectKey
from app.domain.objects import history_kinds, registry
from app.domain.objects.expressions import PolicyRules, PolicyScope, PolicySession
from app.domain.objects.kind import Kind
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.review import matching
from app.domain.objects.review.attributes import Attributes, is_exempt, namespace_of
from app.domain.objects.review.matching import GroupVersion
from app.domain.objects.schema import conversion
from app.domain.values import api_groups, json_tree, selectors
from app.domain.values.fields import entries, meta, paths, records
from app.domain.values.fields.records import FieldRecord
from app.domain.values.json_tree import JsonObject, JsonView

MESSAGE_BYTES_MAX = 5 * 1024
_BINDINGS = "validatingadmissionpolicybindings"
_POLICIES = "validatingadmissionpolicies"

WARNING = "Validation failed for ValidatingAdmissionPolicy "
"""The beginning of each warning of a policy."""

_REFUSALS: dict[str, type[Rejected]] = {
    "Forbidden": Forbidden,
    "Invalid": Invalid,
    "RequestEntityTooLarge": TooLarge,
    "Unauthorized": Unauthorized,
}


class Misconfigured(RedraError):
    """A policy or binding cannot be evaluated; its failure policy decides about the write."""


class _Validation(FieldRecord, frozen=True):
    """One validation of a policy."""

    expression: str = ""
    message: str = ""
    message_expression: str = ""
    reason: str = ""


_validations = records.of_list(_Validation, paths.get("validations"))


class PolicyFailure(NamedTuple):
    """A failed validation or evaluation: its message, and the reason of the refusal."""

    message: str
    reason: str = "Invalid"


def are_bound(reader: ObjectsReader) -> bool:
    """Whether any ValidatingAdmissionPolicyBinding exists."""
    for _ in reader.keys(api_groups.ADMISSION_REGISTRATION, _BINDINGS):
        return True
    return False


def check(attributes: Attributes, reader: ObjectsReader, rules: PolicyRules) -> tuple[str, ...]:
    """Returns the warnings of all policies. Raises the first policy's refusal of the write."""
    if is_exempt(attributes.kind.group, attributes.kind.plural):
        return ()
    warnings: list[str] = []
    denial: Rejected | None = None
    for policy, binding in _bound(reader):
        names = f"'{policy['metadata']['name']}' with binding '{binding['metadata']['name']}'"
        actions = json_tree.texts(binding, "spec", "validationActions")
        for failure in _failures(policy, binding, attributes, reader, rules):
            if "Warn" in actions:
                warnings.append(f"{WARNING}{names}: {failure.message}")
            if "Deny" in actions and denial is None:
                denial = _denial(attributes, names, failure)
    if denial is not None:
        denial.warnings = tuple(warnings)
        raise denial
    return tuple(warnings)


def _bound(reader: ObjectsReader) -> Iterator[tuple[JsonObject, JsonObject]]:
    """Yields each policy with each of its bindings, ordered by the policy's name."""
    bindings: list[tuple[str, ObjectKey]] = []
    for key in reader.keys(api_groups.ADMISSION_REGISTRATION, _BINDINGS):
        binding = reader.get(key)
        if binding is not None:
            bindings.append((json_tree.text(binding, "spec", "policyName"), key))
    for name, key in sorted(bindings):
        policy = reader.get(ObjectKey(api_groups.ADMISSION_REGISTRATION, _POLICIES, "", name))
        binding = reader.get(key)
        if policy is not None and binding is not None:
            yield policy, binding


def _failures(
    policy: JsonObject,
    binding: JsonObject,
    attributes: Attributes,
    reader: ObjectsReader,
    rules: PolicyRules,
) -> list[PolicyFailure]:
    """The failures of the policy for the write under one binding."""
    constraints = json_tree.mapping(policy, "spec", "matchConstraints")
    matched = matching.of_resources(constraints, attributes, reader)
    if matched is None:
        return []
    own = json_tree.mapping(binding, "spec", "matchResources")
    if own and matching.of_resources(own, attributes, reader) is None:
        return []
    spec = meta.spec(policy)
    fails = json_tree.text(spec, "failurePolicy") != "Ignore"
    try:
        parameter_objects = _parameters_of(spec, binding, attributes, reader)
    except Misconfigured as problem:
        return [PolicyFailure(str(problem))] if fails else []
    seen = common_variables(attributes, matched, reader, rules)
    failures: list[PolicyFailure] = []
    for params in parameter_objects:
        values = {**seen, "params": rules.value_of(params)}
        failures += _Evaluation(spec, values, rules, fails=fails).failures()
    return failures


def common_variables(
    attributes: Attributes, group_version: GroupVersion, reader: ObjectsReader, rules: PolicyRules
) -> dict[str, object]:
    """The variables of expressions, cached for other policies that use the same version."""
    known = attributes.given.get(group_version)
    if known is None:
        tree, old = attributes.trees_in(*group_version)
        known = attributes.given[group_version] = {
            "object": rules.value_of(tree),
            "oldObject": rules.value_of(old),
            "request": rules.value_of(attributes.request_in(*group_version)),
            "namespaceObject": rules.value_of(_shown(namespace_of(attributes, reader))),
        }
    return known


_META = (
    *("name", "generateName", "namespace", "labels", "annotations", "resourceVersion"),
    *("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"),
    "finalizers",
)


def _shown(namespace: JsonView | None) -> JsonObject | None:
    """The part of a namespace that expressions can read."""
    if namespace is None:
        return None
    held = meta.metadata(namespace)
    shown: JsonObject = {"metadata": {name: held[name] for name in _META if name in held}}
    return shown | {part: namespace[part] for part in ("spec", "status") if part in namespace}


class _Evaluation:
    """The evaluation of a policy for one binding, one parameter object and one write."""

    def __init__(
        self, spec: JsonView, values: dict[str, object], rules: PolicyRules, *, fails: bool
    ) -> None:
        self._spec = spec
        self._values = values
        self._rules = rules
        self._fails = fails

    def failures(self) -> list[PolicyFailure]:
        """Returns failed validations, and errors unless failurePolicy is Ignore."""
        is_met, error = self._conditions()
        if error:
            return [PolicyFailure(error)] if self._fails else []
        if not is_met:
            return []
        session = self._rules.session(policy_scope(self._spec, self._rules), self._values)
        failures: list[PolicyFailure] = []
        for validation in _validations(self._spec):
            answer = session.ask(validation.expression)
            if answer.error:
                failures += [PolicyFailure(answer.error)] if self._fails else []
            elif answer.value is not True:
                message = self._message(validation, session)
                failures.append(PolicyFailure(message, validation.reason or "Invalid"))
        for annotation in json_tree.objects(self._spec, "auditAnnotations"):
            answer = session.ask(json_tree.text(annotation, "valueExpression"))
            if answer.error and self._fails:
                failures.append(PolicyFailure(answer.error))
        return failures

    def _conditions(self) -> tuple[bool, str]:
        """Whether all match conditions are true, and the text of evaluation errors."""
        conditions = json_tree.objects(self._spec, "matchConditions")
        if not conditions:
            return True, ""
        scope = condition_scope(self._spec, self._rules)
        session = self._rules.session(scope, self._values, is_about_conditions=True)
        return conditions_met(conditions, session)

    def _message(self, validation: _Validation, session: PolicySession) -> str:
        if validation.message_expression:
            answer = session.ask(validation.message_expression)
            text = answer.value.strip() if isinstance(answer.value, str) else ""
            if text and "\n" not in text and len(text.encode()) <= MESSAGE_BYTES_MAX:
                return text
        message = validation.message.strip()
        return message or f"failed expression: {validation.expression.strip()}"


def conditions_met(conditions: list[JsonObject], session: PolicySession) -> tuple[bool, str]:
    """Whether all conditions are true, and the error text of those that cannot be evaluated.

    A condition that is not true makes the answer False without an error, whatever the others do.
    """
    errors: list[str] = []
    for condition in conditions:
        answer = session.ask(json_tree.text(condition, "expression").strip())
        if answer.error:
            errors.append(answer.error)
        elif answer.value is not True:
            return False, ""
    if not errors:
        return True, ""
    unique = list(dict.fromkeys(errors))
    return False, unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"


def policy_scope(spec: JsonView, rules: PolicyRules) -> PolicyScope:
    """The variables that the expressions of a policy can use."""
    variables = tuple(
        (entries.name(variable), json_tree.text(variable, "expression"))
        for variable in json_tree.objects(spec, "variables")
    )
    return rules.scope(has_params="paramKind" in spec, variables=variables)


def condition_scope(spec: JsonView, rules: PolicyRules) -> PolicyScope:
    """The variables that the match conditions of a policy or webhook can use."""
    return rules.scope(has_params="paramKind" in spec, variables=None)


def _denial(attributes: Attributes, names: str, failure: PolicyFailure) -> Rejected:
    message = f"ValidatingAdmissionPolicy {names} denied request: {failure.message}"
    kind = attributes.kind
    place = f"{kind.plural}.{attributes.group}" if attributes.group else kind.plural
    name = attributes.key.name or "Unknown"
    refusal = _REFUSALS.get(failure.reason, Invalid)(
        f'{place} "{name}" is forbidden: {message}',
        group=attributes.group,
        resource=kind.plural,
        name=name,
        causes=(StatusCause(reason="", message=message),),
    )
    refusal.by_policy = True
    return refusal


def _parameters_of(
    spec: JsonView, binding: JsonView, attributes: Attributes, reader: ObjectsReader
) -> list[JsonObject | None]:
    """Returns the parameter objects to evaluate the policy with; `[None]` if it has no parameters.

    Raises Misconfigured if the kind or the namespace of the parameters is wrong, or if no object
    is found and parameterNotFoundAction is not Allow.
    """
    wanted = json_tree.mapping(spec, "paramKind")
    if not wanted:
        return [None]
    group, version = registry.split_api_version(meta.api_version(wanted))
    name = meta.kind(wanted)
    kind = history_kinds.find_kind(reader, group, version, name)
    if kind is None:
        place = f"{group}/{version}, Kind={name}"
        raise Misconfigured(
            "failed to configure policy: failed to find resource referenced by paramKind: "
            f"'{place}'"
        )
    reference = json_tree.mapping(binding, "spec", "paramRef")
    if not reference:
        return [None]
    namespace = _parameter_namespace(kind, reference, attributes)
    objects = _parameter_objects(kind, reference, namespace, reader)
    if objects:
        in_version = registry.api_version(group, version)
        return [_parameter_shown(kind, tree, in_version) for tree in objects]
    if json_tree.text(reference, "parameterNotFoundAction") == "Allow":
        return []
    raise Misconfigured(
        "failed to configure binding: no params found for policy binding with `Deny` "
        "parameterNotFoundAction"
    )


def _parameter_namespace(kind: Kind, reference: JsonView, attributes: Attributes) -> str:
    """The namespace of the parameters: that of the binding's paramRef, else that of the write.

    It is empty for a cluster-scoped kind. Raises Misconfigured if paramRef does not fit the kind.
    """
    named_namespace = json_tree.text(reference, "namespace")
    if not kind.namespaced:
        if named_namespace:
            raise Misconfigured(
                "failed to configure binding: paramRef.namespace must not be provided for a "
                "cluster-scoped `paramKind`"
            )
        return ""
    named = named_namespace or attributes.key.namespace
    if not named:
        raise Misconfigured(
            "failed to configure binding: cannot use namespaced paramRef in policy binding that "
            "matches cluster-scoped resources"
        )
    return named


def _parameter_objects(
    kind: Kind, reference: JsonView, namespace: str, reader: ObjectsReader
) -> list[JsonObject]:
    name = entries.name(reference)
    if name:
        tree = reader.get(ObjectKey(kind.group, kind.plural, namespace, name))
        return [] if tree is None else [tree]
    try:
        selector = selectors.label_selector_of(json_tree.mapping(reference, "selector"))
    except selectors.SelectorError:
        return []
    trees = (reader.get(key) for key in reader.keys(kind.group, kind.plural, namespace))
    return [tree for tree in trees if tree is not None and selector.matches(meta.labels(tree))]


def _parameter_shown(kind: Kind, tree: JsonObject, api_version: str) -> JsonObject:
    try:
        return conversion.convert(tree, kind, kind.storage_api_version, api_version)
    except BadRequest as problem:
        text = f"failed to configure binding: {problem.message}"
        raise Misconfigured(text) from problem
