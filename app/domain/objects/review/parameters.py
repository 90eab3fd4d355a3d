"""The parameter objects of a policy, which its binding names.

Parity: objects.md 15.4; paramKind and paramRef of admissionregistration.k8s.io/v1.
"""

from app.domain.errors import BadRequest, RedraError
from app.domain.log import ObjectKey
from app.domain.objects import history_kinds, registry
from app.domain.objects.kind import Kind
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.review.attributes import Attributes
from app.domain.objects.schema import conversion
from app.domain.values import json_tree, selectors
from app.domain.values.fields import entries, meta
from app.domain.values.json_tree import JsonObject, JsonView


class Misconfigured(RedraError):
    """A policy or binding cannot be evaluated; its failure policy decides about the write."""


def of_binding(
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
    namespace = _namespace(kind, reference, attributes)
    objects = _objects(kind, reference, namespace, reader)
    if objects:
        in_version = registry.api_version(group, version)
        return [_shown(kind, tree, in_version) for tree in objects]
    if json_tree.text(reference, "parameterNotFoundAction") == "Allow":
        return []
    raise Misconfigured(
        "failed to configure binding: no params found for policy binding with `Deny` "
        "parameterNotFoundAction"
    )


def _namespace(kind: Kind, reference: JsonView, attributes: Attributes) -> str:
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


def _objects(
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


def _shown(kind: Kind, tree: JsonObject, api_version: str) -> JsonObject:
    try:
        return conversion.convert(tree, kind, kind.storage_api_version, api_version)
    except BadRequest as problem:
        text = f"failed to configure binding: {problem.message}"
        raise Misconfigured(text) from problem
