"""Validation and defaults of CustomResourceDefinitions.

Parity: objects.md 15.5; validation and defaulting of apiextensions.k8s.io/v1, as far as clients see
them: names, versions, scope, structural schemas, and the fields that are immutable once the kind is
served.
"""

from collections.abc import Iterator

from app.domain.objects import field_errors
from app.domain.objects.custom import definitions, rule_checking, schema_types
from app.domain.objects.expressions import ObjectRules
from app.domain.objects.field_errors import FieldError
from app.domain.objects.schema.definition_schemas import EMBEDDED, INT_OR_STRING, PRESERVE
from app.domain.values import json_paths, json_tree, names
from app.domain.values.fields import entries, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.regular_expressions import Pattern, PatternError

APPROVED = "api-approved.kubernetes.io"
APPROVAL_PAGE = "https://github.com/kubernetes/enhancements/pull/1111"
_PROTECTED = (".k8s.io", ".kubernetes.io")
_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")


def fill(tree: JsonObject) -> None:
    """Sets the singular name, the list kind and the conversion in place where they are missing."""
    spec = tree.setdefault("spec", {})
    named = spec.setdefault("names", {})
    kind = meta.kind(named)
    if kind and not named.get("singular"):
        named["singular"] = kind.lower()
    if kind and not named.get("listKind"):
        named["listKind"] = f"{kind}List"
    spec.setdefault("conversion", {"strategy": "None"})


def check(tree: JsonView, rules: ObjectRules) -> list[FieldError]:
    """Returns the errors of a definition, including those of its CEL rules for objects.

    If keys of a schema have wrong types, only these errors are returned.
    """
    errors = list(_check_types(tree))
    if errors:
        return errors
    errors = list(_check(tree))
    for index, row in enumerate(json_tree.objects(tree, "spec", "versions")):
        path = f"spec.versions[{index}].schema.openAPIV3Schema"
        schema = json_tree.mapping(row, "schema", "openAPIV3Schema")
        errors += rule_checking.problems(schema, path, rules)
    return errors


def check_change(tree: JsonView, old: JsonView, rules: ObjectRules) -> list[FieldError]:
    """Returns the errors of a changed definition: those of `check` and those of refused changes.

    A served kind keeps its group, scope, kind and plural, and `spec.versions` keeps the stored
    versions.
    """
    errors = check(tree, rules)
    if definitions.is_established(old):
        for path in (("group",), ("scope",), ("names", "kind"), ("names", "plural")):
            value = json_tree.get(tree, "spec", *path)
            if value != json_tree.get(old, "spec", *path):
                errors.append(field_errors.immutable(f"spec.{'.'.join(path)}", value))
    offered = [entries.name(row) for row in json_tree.objects(tree, "spec", "versions")]
    for index, stored in enumerate(json_tree.texts(tree, "status", "storedVersions")):
        if stored not in offered:
            errors.append(
                field_errors.invalid(
                    f"status.storedVersions[{index}]",
                    stored,
                    f"missing from spec.versions; {stored} was previously a storage version, and "
                    "must remain in spec.versions until a storage migration ensures no data "
                    f"remains persisted in {stored} and removes {stored} from "
                    "status.storedVersions",
                )
            )
    return errors


def _check_types(tree: JsonView) -> Iterator[FieldError]:
    for index, row in enumerate(json_tree.objects(tree, "spec", "versions")):
        schema = json_tree.get(row, "schema", "openAPIV3Schema")
        if schema is not None:
            path = f"spec.versions[{index}].schema.openAPIV3Schema"
            yield from schema_types.problems(schema, path)


def _check(tree: JsonView) -> Iterator[FieldError]:
    spec = meta.spec(tree)
    group = json_tree.text(spec, "group")
    plural = json_tree.text(spec, "names", "plural")
    name = meta.name(tree)
    if name and name != f"{plural}.{group}":
        yield field_errors.invalid(
            "metadata.name", name, 'must be spec.names.plural+"."+spec.group'
        )
    yield from _check_group(tree, group)
    yield from _check_names(json_tree.mapping(spec, "names"))
    scope = json_tree.text(spec, "scope")
    if not scope:
        yield field_errors.required("spec.scope")
    elif scope not in ("Cluster", "Namespaced"):
        yield field_errors.not_supported("spec.scope", scope, ("Cluster", "Namespaced"))
    if spec.get("preserveUnknownFields") is True:
        yield field_errors.invalid(
            "spec.preserveUnknownFields", True,
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
            "spec.versions[*].schema instead",
        )  # fmt: skip
    yield from _check_versions(json_tree.objects(spec, "versions"))
    yield from _check_conversion(json_tree.mapping(spec, "conversion"))


def _check_group(tree: JsonView, group: str) -> Iterator[FieldError]:
    if not group:
        yield field_errors.required("spec.group")
        return
    for text in names.subdomain(group):
        yield field_errors.invalid("spec.group", group, text)
    if "." not in group:
        yield field_errors.invalid("spec.group", group, "should be a domain with at least one dot")
    is_protected = group in ("k8s.io", "kubernetes.io") or group.endswith(_PROTECTED)
    if is_protected and not meta.annotations(tree).get(APPROVED):
        yield field_errors.required(
            f"metadata.annotations[{APPROVED}]",
            f'protected groups must have approval annotation "{APPROVED}", see {APPROVAL_PAGE}',
        )


def _check_names(accepted: JsonView) -> Iterator[FieldError]:
    for part in ("plural", "singular", "kind", "listKind"):
        text = json_tree.text(accepted, part)
        path = f"spec.names.{part}"
        if not text:
            yield field_errors.required(path)
            continue
        for problem in names.label(text.lower() if part in ("kind", "listKind") else text):
            yield field_errors.invalid(path, text, problem)
    for index, short in enumerate(json_tree.texts(accepted, "shortNames")):
        for problem in names.label(short):
            yield field_errors.invalid(f"spec.names.shortNames[{index}]", short, problem)
    for index, category in enumerate(json_tree.texts(accepted, "categories")):
        for problem in names.label(category):
            yield field_errors.invalid(f"spec.names.categories[{index}]", category, problem)
    kind, list_kind = meta.kind(accepted), json_tree.text(accepted, "listKind")
    if kind and kind == list_kind:
        yield field_errors.invalid(
            "spec.names.listKind", list_kind, "kind and listKind may not be the same"
        )


def _check_versions(rows: list[JsonObject]) -> Iterator[FieldError]:
    if not rows:
        yield field_errors.required("spec.versions", "must have at least one version")
        return
    seen: set[str] = set()
    for index, row in enumerate(rows):
        path = f"spec.versions[{index}]"
        name = entries.name(row)
        for problem in names.label(name) if name else ("must not be empty",):
            yield field_errors.invalid(f"{path}.name", name, problem)
        if name in seen:
            yield field_errors.duplicate(f"{path}.name", name)
        seen.add(name)
        yield from _check_version(row, path)
    if sum(row.get("storage") is True for row in rows) != 1:
        yield field_errors.invalid(
            "spec.versions", rows, "must have exactly one version marked as storage version"
        )


def _check_version(row: JsonObject, path: str) -> Iterator[FieldError]:
    schema = json_tree.get(row, "schema", "openAPIV3Schema")
    if not isinstance(schema, dict):
        yield field_errors.required(f"{path}.schema.openAPIV3Schema", "schemas are required")
    else:
        yield from _check_root(schema, f"{path}.schema.openAPIV3Schema")
    scale = json_tree.get(row, "subresources", "scale")
    if isinstance(scale, dict):
        for key, place in (("specReplicasPath", "spec"), ("statusReplicasPath", "status")):
            text = json_tree.text(scale, key)
            where = f"{path}.subresources.scale.{key}"
            if not text:
                yield field_errors.required(where)
            elif json_paths.fields(text)[:1] != (place,):
                yield field_errors.invalid(where, text, f"should be a json path under .{place}")
    for index, column in enumerate(json_tree.objects(row, "additionalPrinterColumns")):
        yield from _check_column(column, f"{path}.additionalPrinterColumns[{index}]")


def _check_column(column: JsonObject, path: str) -> Iterator[FieldError]:
    if not entries.name(column):
        yield field_errors.required(f"{path}.name")
    kind = json_tree.text(column, "type")
    if not kind:
        yield field_errors.required(f"{path}.type", f"must be one of {','.join(_COLUMN_TYPES)}")
    elif kind not in _COLUMN_TYPES:
        yield field_errors.invalid(
            f"{path}.type", kind, f"must be one of {','.join(_COLUMN_TYPES)}"
        )
    text = json_tree.text(column, "jsonPath")
    if not text:
        yield field_errors.required(f"{path}.jsonPath")
        return
    try:
        json_paths.parse(text)
    except json_paths.JsonPathError as problem:
        yield field_errors.invalid(f"{path}.jsonPath", text, str(problem))


def _check_root(schema: JsonObject, path: str) -> Iterator[FieldError]:
    kind = schema.get("type")
    if not kind:
        yield field_errors.required(f"{path}.type", "must not be empty at the root")
    elif kind != "object":
        yield field_errors.invalid(f"{path}.type", kind, "must be object at the root")
    yield from _check_schema(schema, path, is_root=True)


def _check_schema(schema: JsonObject, path: str, *, is_root: bool = False) -> Iterator[FieldError]:
    kind = schema.get("type")
    is_free = schema.get(INT_OR_STRING) is True or schema.get(PRESERVE) is True
    if not kind and not is_root and not is_free:
        yield field_errors.required(f"{path}.type", "must not be empty for specified object fields")
    elif kind and kind not in _TYPES:
        yield field_errors.not_supported(f"{path}.type", str(kind), _TYPES)
    for key in ("$ref", "definitions", "dependencies", "patternProperties", "additionalItems"):
        if key in schema:
            yield field_errors.forbidden(f"{path}.{key}", f"{key} is not supported")
    if schema.get("uniqueItems") is True:
        yield field_errors.forbidden(
            f"{path}.uniqueItems",
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        )
    if kind == "array" and not isinstance(schema.get("items"), dict):
        yield field_errors.required(f"{path}.items", "must be specified")
    if "properties" in schema and "additionalProperties" in schema:
        yield field_errors.forbidden(
            f"{path}.additionalProperties",
            "additionalProperties and properties are mutual exclusive",
        )
    if schema.get(EMBEDDED) is True and kind != "object":
        yield field_errors.invalid(
            f"{path}.type", kind or "", "must be object if x-kubernetes-embedded-resource is true"
        )
    yield from _check_list(schema, path)
    yield from _check_pattern(schema, path)
    for where, child in _parts(schema, path):
        if not (is_root and where == f"{path}.properties[metadata]"):
            yield from _check_schema(child, where)
    yield from _check_alternatives(schema, path)


def _parts(schema: JsonView, path: str) -> Iterator[tuple[str, JsonObject]]:
    """The schemas of the parts of a value, each with its path."""
    for name, child in (schema.get("properties") or {}).items():
        if isinstance(child, dict):
            yield f"{path}.properties[{name}]", child
    for key in ("items", "additionalProperties"):
        child = schema.get(key)
        if isinstance(child, dict):
            yield f"{path}.{key}", child


def _check_alternatives(schema: JsonView, path: str) -> Iterator[FieldError]:
    """Yields the errors of patterns in the schemas of `not`, `allOf`, `anyOf` and `oneOf`."""
    refused = schema.get("not")
    if isinstance(refused, dict):
        yield from _check_patterns(refused, f"{path}.not")
    for key in ("allOf", "anyOf", "oneOf"):
        for index, part in enumerate(schema.get(key) or ()):
            yield from _check_patterns(part, f"{path}.{key}[{index}]")


def _check_patterns(schema: JsonView, path: str) -> Iterator[FieldError]:
    yield from _check_pattern(schema, path)
    for where, child in _parts(schema, path):
        yield from _check_patterns(child, where)
    yield from _check_alternatives(schema, path)


def _check_pattern(schema: JsonView, path: str) -> Iterator[FieldError]:
    pattern = schema.get("pattern") or ""
    try:
        Pattern(pattern)
    except PatternError as error:
        yield field_errors.invalid(
            f"{path}.pattern", pattern,
            f"must be a valid regular expression, but isn't: error parsing regexp: {error}",
        )  # fmt: skip


def _check_list(schema: JsonObject, path: str) -> Iterator[FieldError]:
    kind = schema.get("x-kubernetes-list-type")
    keys = json_tree.texts(schema, "x-kubernetes-list-map-keys")
    if kind not in (None, "atomic", "set", "map"):
        yield field_errors.not_supported(
            f"{path}.x-kubernetes-list-type", str(kind), ("atomic", "map", "set")
        )
    if kind == "map" and not keys:
        yield field_errors.required(
            f"{path}.x-kubernetes-list-map-keys",
            'must not be empty if x-kubernetes-list-type is "map"',
        )
    offered = json_tree.mapping(schema, "items", "properties")
    for index, key in enumerate(keys if kind == "map" else ()):
        if key not in offered:
            yield field_errors.invalid(
                f"{path}.x-kubernetes-list-map-keys[{index}]", key,
                "entry isn't a property of items",
            )  # fmt: skip


def _check_conversion(conversion: JsonView) -> Iterator[FieldError]:
    strategy = json_tree.text(conversion, "strategy")
    if strategy not in ("None", "Webhook"):
        yield field_errors.not_supported("spec.conversion.strategy", strategy, ("None", "Webhook"))
    elif strategy == "Webhook" and not json_tree.get(conversion, "webhook", "clientConfig"):
        yield field_errors.required(
            "spec.conversion.webhook.clientConfig",
            "required when strategy is set to Webhook",
        )
