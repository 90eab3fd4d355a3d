"""Schema tables, checked against the published OpenAPI data."""

import json
from typing import Any

import pytest

from app.adapters import schemas
from app.domain.errors import InputError
from app.domain.objects import profile, registry
from app.domain.objects.schema import prune, structural
from app.domain.objects.schema.structural import SchemaShape
from tests.shared_data import shared_path
from tests.unit.objects import builders


@pytest.mark.parametrize("release", profile.VERSIONS)
def test_every_kind_has_a_schema_in_each_release_that_serves_it(release: str) -> None:
    loaded = schemas.load(release)
    chosen = profile.Profile(version=release)
    missing = [
        f"{group}/{version} {kind.kind}"
        for kind in registry.served_kinds(chosen)
        for group, version in registry.served_versions(kind, chosen)
        if loaded.find(group, version, kind.kind) is None
    ]
    assert missing == []


def test_a_release_without_schemas_is_refused() -> None:
    with pytest.raises(InputError):
        schemas.load("1.2")


def test_list_semantics_agree_with_the_published_table() -> None:
    table: dict[str, dict[str, dict[str, Any]]] = json.loads(
        shared_path("openapi", "list-semantics.json").read_text()
    )
    loaded = builders.release()
    checked = 0
    for definition, lists in table.items():
        if not loaded.has(definition):
            continue
        fields = loaded.root(definition).fields
        for name, expected in lists.items():
            found = fields[name]
            assert found.list_type == expected.get("list-type", "atomic"), (definition, name)
            assert list(found.list_keys) == expected.get("list-map-keys", []), (definition, name)
            assert found.merge_key == expected.get("patch-merge-key", ""), (definition, name)
            strategies = set(expected.get("patch-strategy", "").split(",")) - {""}
            assert found.strategies == strategies, (definition, name)
            checked += 1
    assert checked > 250


def test_fields_agree_with_the_published_documents() -> None:
    loaded = builders.release()
    checked = 0
    for file in sorted(shared_path("openapi").glob("api*__*.json")):
        published = json.loads(file.read_text())["components"]["schemas"]
        for definition, body in published.items():
            if not loaded.has(definition) or "properties" not in body:
                continue
            node = loaded.root(definition)
            if node.shape is not SchemaShape.OBJECT:
                continue
            assert set(node.fields) == set(body["properties"]), definition
            assert node.required == set(body.get("required", ())), definition
            checked += 1
    assert checked > 250


OUTSIDE = {"apiregistration.v1.APIService": ("apiregistration.k8s.io", "v1", "APIService")}
"""Kinds whose definitions stand in packages of their own."""


def test_what_is_always_shown_exists() -> None:
    loaded = builders.release()
    for short in structural.corrections.ALWAYS:
        name = structural.definition_name(*OUTSIDE.get(short, ("", "", "")))
        name = name if short in OUTSIDE else f"io.k8s.api.{short}"
        if not loaded.has(name):
            assert short.startswith("resource.v1"), short
            continue
        node = loaded.root(name)
        assert set(node.always) <= set(node.fields), short
        assert node.always, short


@pytest.mark.parametrize(
    ("plural", "group", "path", "shape"),
    [
        ("pods", "", "spec.containers", SchemaShape.LIST),
        ("pods", "", "metadata.labels", SchemaShape.MAP),
        ("pods", "", "metadata.creationTimestamp", SchemaShape.TIME),
        ("events", "", "eventTime", SchemaShape.MICRO_TIME),
        ("secrets", "", "data", SchemaShape.MAP),
        ("services", "", "spec.clusterIP", SchemaShape.STRING),
        ("resourceslices", "resource.k8s.io", "spec.pool.generation", SchemaShape.INTEGER),
        ("resourceclaims", "resource.k8s.io", "spec.devices", SchemaShape.OBJECT),
    ],
)
def test_places_have_their_shape(plural: str, group: str, path: str, shape: SchemaShape) -> None:
    found = builders.node(plural, group=group)
    for step in path.split("."):
        found = found.fields[step]
    assert found.shape is shape
    assert found.description


def test_int_or_string_and_quantities_are_known() -> None:
    budget = builders.node("poddisruptionbudgets", group="policy").fields["spec"].fields
    assert budget["minAvailable"].shape is SchemaShape.INT_OR_STRING
    capacity = builders.node("nodes", group="").fields["status"].fields["capacity"]
    assert capacity.items.shape is SchemaShape.QUANTITY


def test_types_that_contain_themselves_can_be_read() -> None:
    spec = {"versions": [{"schema": {"openAPIV3Schema": {"properties": {"a": {"items": {}}}}}}]}
    tree = {"spec": spec}
    node = builders.node("customresourcedefinitions", group="apiextensions.k8s.io")
    assert prune.clean(node, tree)[1] == []


def test_reachable_definitions_hold_together() -> None:
    loaded = builders.release()
    found = loaded.reachable("io.k8s.api.resource.v1.ResourceClaim")
    assert found[0] == "io.k8s.api.resource.v1.ResourceClaim"
    assert "io.k8s.api.resource.v1.DeviceToleration" in found
    assert "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta" in found
    assert len(found) == len(set(found))
