"""Matching of writes with webhooks and policies: rules, selectors, match policy.

Parity: objects.md 15.4; rules and selectors of admissionregistration.k8s.io/v1. Unless the match
policy is Exact, a rule also matches a write in another version of the same objects; the webhook or
policy then sees the object in the version of the rule.
"""

from collections.abc import Iterator
from typing import NamedTuple

from app.domain.log import ObjectKey
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.review.attributes import CREATE, UPDATE, Attributes, labels_of
from app.domain.values import json_tree, selectors
from app.domain.values.fields import paths, records
from app.domain.values.fields.records import FieldRecord
from app.domain.values.json_tree import JsonView


class GroupVersion(NamedTuple):
    """The group and version in which a webhook or policy sees a write."""

    group: str
    version: str


class _Rule(FieldRecord, frozen=True):
    """A rule of a webhook or of MatchResources."""

    operations: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    api_versions: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    scope: str = ""


_rules = records.of_list(_Rule, paths.get("rules"))
_resource_rules = records.of_list(_Rule, paths.get("resourceRules"))
_excluded = records.of_list(_Rule, paths.get("excludeResourceRules"))


def of_resources(
    match_resources: JsonView, attributes: Attributes, reader: ObjectsReader
) -> GroupVersion | None:
    """The version in which MatchResources match the write; None if they do not."""
    if not _selected(match_resources, attributes, reader):
        return None
    excluded = _excluded(match_resources)
    if excluded and _named(excluded, match_resources, attributes) is not None:
        return None
    rules = _resource_rules(match_resources)
    if not rules:
        # A binding without rules matches whatever its policy matches.
        return GroupVersion(attributes.group, attributes.version)
    return _named(rules, match_resources, attributes)


def of_webhook(
    webhook: JsonView, attributes: Attributes, reader: ObjectsReader
) -> GroupVersion | None:
    """The version in which a webhook matches the write; None if it does not."""
    if not _selected(webhook, attributes, reader):
        return None
    return _named(_rules(webhook), webhook, attributes)


def _selected(holder: JsonView, attributes: Attributes, reader: ObjectsReader) -> bool:
    return _is_namespace_selected(holder, attributes, reader) and _is_object_selected(
        holder, attributes
    )


def _is_namespace_selected(holder: JsonView, attributes: Attributes, reader: ObjectsReader) -> bool:
    """Whether the namespaceSelector matches.

    A namespace is matched by its own labels; other cluster-scoped objects always match.
    """
    selector = json_tree.mapping(holder, "namespaceSelector")
    if not selector or not attributes.namespace:
        return True
    tree: JsonView | None = None
    if not attributes.key.namespace and attributes.operation in (CREATE, UPDATE):
        tree = attributes.tree if not attributes.subresource else None
    if tree is None:
        tree = reader.get(ObjectKey("", "namespaces", "", attributes.namespace))
    return _matches(selector, tree)


def _is_object_selected(holder: JsonView, attributes: Attributes) -> bool:
    selector = json_tree.mapping(holder, "objectSelector")
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        return True
    trees = (tree for tree in (attributes.tree, attributes.old) if tree is not None)
    return any(_matches(selector, tree) for tree in trees)


def _matches(selector: JsonView, tree: JsonView | None) -> bool:
    try:
        return selectors.label_selector_of(selector).matches(dict(labels_of(tree)))
    except selectors.SelectorError:
        return False


def _named(rules: list[_Rule], holder: JsonView, attributes: Attributes) -> GroupVersion | None:
    """The version in which a rule matches, preferably the request's; None if none does."""
    request_version = GroupVersion(attributes.group, attributes.version)
    if any(_is_named(rule, attributes, request_version) for rule in rules):
        return request_version
    if json_tree.text(holder, "matchPolicy") == "Exact":
        return None
    for other in _equivalents(attributes, request_version):
        if any(_is_named(rule, attributes, other) for rule in rules):
            return other
    return None


def _equivalents(attributes: Attributes, request_version: GroupVersion) -> Iterator[GroupVersion]:
    """Yields the other versions in which the same objects are served."""
    for group, version in attributes.kind.group_versions:
        if (group, version) != request_version:
            yield GroupVersion(group, version)


def _is_named(rule: _Rule, attributes: Attributes, request_version: GroupVersion) -> bool:
    return (
        _has(rule.operations, attributes.operation)
        and _has(rule.api_groups, request_version.group)
        and _has(rule.api_versions, request_version.version)
        and _is_in_scope(rule.scope, attributes)
        and any(_is_resource(text, attributes) for text in rule.resources)
        and (not rule.resource_names or attributes.key.name in rule.resource_names)
    )


def _has(items: tuple[str, ...], wanted: str) -> bool:
    return "*" in items or wanted in items


def _is_in_scope(scope: str, attributes: Attributes) -> bool:
    if scope in ("", "*"):
        return True
    return (scope == "Namespaced") == bool(attributes.key.namespace)


def _is_resource(text: str, attributes: Attributes) -> bool:
    resource, _, subresource = text.partition("/")
    return resource in ("*", attributes.kind.plural) and subresource in (
        "*",
        attributes.subresource,
    )
