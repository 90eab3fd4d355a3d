"""The kinds that stored CustomResourceDefinitions define.

A kind is made once for each state of its definition and cached by the bytes of the definition, so
equal states share one kind and a changed definition gets another. Parity: api.md 2.
"""

from collections.abc import Iterator
from functools import lru_cache

import msgspec

from app.domain.log import ObjectKey
from app.domain.objects import registry
from app.domain.objects.kind import Custom, CustomVersion, Scale
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.registry import BOTH_LABELS, NAME_LABEL, FieldLabel, Kind, Served
from app.domain.objects.schema import definition_schemas
from app.domain.values import api_groups, condition_types, json_paths, json_tree
from app.domain.values.fields import entries, meta, paths, records
from app.domain.values.fields.records import FieldRecord
from app.domain.values.json_tree import JsonObject, JsonView

KIND = f"CustomResourceDefinition.{api_groups.API_EXTENSIONS}"
RESOURCE = "customresourcedefinitions"

KINDS_MAX = 4_096
"""The largest number of cached kinds; a kind that left the cache is made again."""

_NEVER = Served(since=10**6)


def find(reader: ObjectsReader, group: str, resource: str) -> Kind | None:
    """The custom kind of that group and plural; None unless it is established."""
    event = reader.event(ObjectKey(api_groups.API_EXTENSIONS, RESOURCE, "", f"{resource}.{group}"))
    return None if event is None else _kind(event.body)


def all_kinds(reader: ObjectsReader) -> Iterator[Kind]:
    """Every established custom kind, by the name of its definition."""
    for key in reader.keys(api_groups.API_EXTENSIONS, RESOURCE):
        event = reader.event(key)
        kind = None if event is None else _kind(event.body)
        if kind is not None:
            yield kind


def is_established(tree: JsonView) -> bool:
    """Whether the condition Established of a definition is True."""
    return meta.is_true(tree, condition_types.ESTABLISHED)


class Names(FieldRecord, frozen=True):
    """The names of a definition, as in `spec.names` or in `status.acceptedNames`."""

    plural: str = ""
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    kind: str = ""
    list_kind: str = ""


names_of = records.of_value(Names, paths.get("spec", "names"))


@lru_cache(maxsize=KINDS_MAX)
def _kind(body: bytes) -> Kind | None:
    tree: JsonObject = msgspec.json.decode(body)
    return kind_of(tree) if is_established(tree) else None


def kind_of(tree: JsonView) -> Kind:
    """The kind that a definition describes, established or not."""
    spec = meta.spec(tree)
    names = names_of(tree)
    rows = json_tree.objects(spec, "versions")
    storage = [row for row in rows if row.get("storage") is True]
    ordered = [*storage, *(row for row in rows if row not in storage)]
    group, kind = json_tree.text(spec, "group"), names.kind
    parts = {
        part
        for row in rows
        for part in json_tree.mapping(row, "subresources")
        if part in ("status", "scale")
    }
    is_namespaced = json_tree.text(spec, "scope") != "Cluster"
    return Kind(
        group=group,
        versions=tuple(entries.name(row) for row in ordered),
        kind=kind,
        plural=names.plural,
        singular=names.singular or kind.lower(),
        namespaced=is_namespaced,
        short_names=names.short_names,
        categories=names.categories,
        subresources=tuple(sorted(parts)),
        has_generation=True,
        unconditional_update=False,
        field_labels=(*(BOTH_LABELS if is_namespaced else NAME_LABEL), *_selectable(rows)),
        served={entries.name(row): _NEVER for row in rows if row.get("served") is not True},
        custom=Custom(
            versions={entries.name(row): _version(row, group, kind, rows) for row in rows},
            list_kind=names.list_kind or f"{kind}List",
            revision=int(meta.resource_version(tree) or 0),
            is_terminating=bool(meta.deletion_timestamp(tree)),
        ),
    )


def _version(row: JsonView, group: str, kind: str, rows: list[JsonObject]) -> CustomVersion:
    name = entries.name(row)
    return CustomVersion(
        name=name,
        schema=json_tree.mapping(row, "schema", "openAPIV3Schema"),
        columns=tuple(json_tree.objects(row, "additionalPrinterColumns")),
        has_rules=any(
            definition_schemas.RULES in schema
            for schema in definition_schemas.schemas_in(
                json_tree.mapping(row, "schema", "openAPIV3Schema")
            )
        ),
        scale=_scale(json_tree.mapping(row, "subresources", "scale")),
        warning=_warning(row, group, kind, rows) if row.get("deprecated") is True else "",
    )


def _warning(row: JsonView, group: str, kind: str, rows: list[JsonObject]) -> str:
    """The warning of a deprecated version: its `deprecationWarning`, or upstream's default text."""
    given = json_tree.text(row, "deprecationWarning")
    if given:
        return given
    name = entries.name(row)
    text = f"{group}/{name} {kind} is deprecated"
    newer = [
        other
        for other in (
            entries.name(version_row)
            for version_row in rows
            if version_row.get("served") is True and version_row.get("deprecated") is not True
        )
        if registry.version_rank(other) < registry.version_rank(name)
    ]
    return f"{text}; use {group}/{min(newer, key=registry.version_rank)} {kind}" if newer else text


def _scale(subresource: JsonView) -> Scale | None:
    spec = json_paths.fields(json_tree.text(subresource, "specReplicasPath"))
    status = json_paths.fields(json_tree.text(subresource, "statusReplicasPath"))
    if not spec or not status:
        return None
    return Scale(
        spec_replicas=spec,
        status_replicas=status,
        selector=json_paths.fields(json_tree.text(subresource, "labelSelectorPath")),
    )


def _selectable(rows: list[JsonObject]) -> tuple[FieldLabel, ...]:
    paths = {
        json_tree.text(field, "jsonPath"): None
        for row in rows
        for field in json_tree.objects(row, "selectableFields")
    }
    labels = []
    for path in paths:
        steps = json_paths.fields(path)
        if steps:
            labels.append(FieldLabel(label=".".join(steps), path=steps))
    return tuple(labels)
