"""What is kept of the field sets that have been read (`managedFields`), and the first entry."""

import pytest

from app.domain.objects import registry
from app.domain.objects.profile import Profile
from app.domain.objects.rules import Rules
from app.domain.objects.schema import structural
from app.domain.objects.write import admission, field_sets, managed_fields
from app.domain.objects.write.commands import WriteOptions
from app.domain.objects.write.managed_fields import KNOWN_BYTES_MAX, Manager
from app.domain.values import json_tree
from app.domain.values.timestamps import Instant
from tests.unit.objects import builders
from tests.unit.objects.builders import release


def metadata(consumers: int) -> dict:
    """Of a claim whose status one client wrote, with so many consumers."""
    keys = (f'k:{{"uid":"{number:036}"}}' for number in range(consumers))
    fields = {"f:status": {"f:reservedFor": {key: {} for key in keys}}}
    entry = {"manager": "scheduler", "operation": "Update", "apiVersion": "v1"}
    written = {"time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": fields}
    return {"managedFields": [{**entry, **written}]}


def test_short_set_of_fields_is_read_once():
    first, second = (managed_fields.load(metadata(1)) for _ in range(2))
    assert first[0].fields is second[0].fields


def test_long_set_of_fields_is_not_kept():
    first, second = (managed_fields.load(metadata(KNOWN_BYTES_MAX // 40)) for _ in range(2))
    assert first[0].fields == second[0].fields
    assert first[0].fields is not second[0].fields


def test_long_set_of_fields_is_written_as_it_was_read():
    given = metadata(KNOWN_BYTES_MAX // 40)
    assert managed_fields.dump(managed_fields.load(given)) == given["managedFields"]


def consumers(*uids: str) -> list[dict]:
    return [{"resource": "pods", "name": f"p-{uid}", "uid": uid} for uid in uids]


LONG = [f"{number}" for number in range(40)]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (LONG, [*LONG, "new"]),
        (LONG, LONG[:-1]),
        (LONG[1:], LONG),
        ([*LONG, "0"], LONG),
        (LONG, [*LONG, "0"]),
        ([*LONG, "a"], [*LONG, "b", "a"]),
        (["0", "0", *LONG], ["0", "0", *LONG[1:]]),
    ],
)
def test_equal_beginning_of_lists_does_not_change_what_is_found_changed(monkeypatch, before, after):
    node = builders.node("resourceclaims")
    first, second = ({"status": {"reservedFor": consumers(*uids)}} for uids in (before, after))
    second["status"]["reservedFor"][-1]["name"] = "another"
    results = [field_sets.changes(first, second, node)]
    monkeypatch.setattr(field_sets, "LONG_BEGINNING", 1_000)
    results.append(field_sets.changes(first, second, node))
    assert results[0] == results[1]


def test_keys_with_defaults_are_compared_whole(monkeypatch):
    node = builders.node("pods", group="")
    ports = [{"containerPort": number} for number in range(40)]
    old, new = (
        {"spec": {"containers": [{"name": "c", "ports": list}]}}
        for list in (ports, [*ports, {"containerPort": 1, "protocol": "TCP", "name": "x"}])
    )
    result = field_sets.changes(old, new, node)
    monkeypatch.setattr(field_sets, "LONG_BEGINNING", 1_000)
    assert result == field_sets.changes(old, new, node)


def test_long_sets_that_grow_and_shrink_are_those_that_reading_them_gives():
    node = builders.node("resourceclaims")
    writer = Manager(
        name="scheduler", operation="Update", api_version="v1", subresource="status", fields={}
    )
    old = {"metadata": metadata(1), "status": {"reservedFor": consumers("0")}}
    for count in (40, 41, 80, 60, 39, 5, 70):
        new = {"metadata": dict(old["metadata"])}
        new["status"] = {"reservedFor": consumers(*map(str, range(count)))}
        managed_fields.track(new["metadata"], new, old, node, writer, has_status=True)
        copied = json_tree.copy(new["metadata"])
        assert managed_fields.load(new["metadata"])[-1].fields == (
            managed_fields.load(copied)[-1].fields
        )
        assert managed_fields.dump(managed_fields.load(copied)) == copied["managedFields"]
        old = new


@pytest.mark.parametrize("odd", [None, [], "x", 1, {"f:a": None}, {"f:a": [1] * 40}], ids=str)
def test_odd_parts_of_imported_sets_are_read(odd):
    entry = {"manager": "m", "operation": "Update", "fieldsV1": {"f:spec": odd, "f:data": {}}}
    (manager,) = managed_fields.load({"managedFields": [entry]})
    assert "f:data" in manager.fields


LEAF = {"f:a": {}}


@pytest.mark.parametrize(
    ("fields", "is_valid"),
    [
        ({}, True),
        ({".": {}, "f:spec": {".": {}, "f:a": LEAF}}, True),
        ({'k:{"name":"a"}': LEAF, "v:1": {}, 'v:"a"': {}}, True),
        ({"spec": {}}, False),
        ({"f:spec": {"a": {}}}, False),
        ({"k:1": {}}, False),
        ({"k:{": {}}, False),
        ({"v:": {}}, False),
        *(({"f:spec": {"f:a": below}}, False) for below in (None, [], "", 0, False, 1, "a", [{}])),
        *((fields, False) for fields in (None, [], "", 0, False, "f:a", [LEAF])),
    ],
)
def test_entries_of_clients_count_if_their_fields_are_path_elements(fields, is_valid):
    entry = {"operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"}
    assert managed_fields.are_readable([{**entry, "fieldsV1": fields}]) is is_valid


NEW_OBJECTS = [
    ("", "v1", "configmaps", {"data": {"a": "", "b": "1"}, "binaryData": {}}),
    ("", "v1", "configmaps", {"metadata": {"name": "n"}}),
    ("", "v1", "namespaces", {"spec": {"finalizers": ["kubernetes"]}}),
    (
        "",
        "v1",
        "pods",
        {
            "metadata": {
                "name": "p",
                "uid": "u",
                "labels": {"app": "x", "tier": ""},
                "annotations": {"a/b": "c"},
                "finalizers": ["example.com/f"],
                "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": "1"}],
            },
            "spec": {
                "containers": [
                    {
                        "name": "main",
                        "image": "i",
                        "env": [{"name": "A", "value": ""}],
                        "ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}],
                        "resources": {"limits": {"cpu": "1"}, "claims": [{"name": "gpu"}]},
                    }
                ],
                "tolerations": [{"key": "k", "operator": "Exists"}],
                "nodeSelector": {},
                "resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}],
            },
            "status": {"phase": "Running"},
        },
    ),
    (
        "resource.k8s.io",
        "v1",
        "resourceclaims",
        {
            "metadata": {"name": "c", "generateName": "c-"},
            "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "d"}}]}},
        },
    ),
    ("resource.k8s.io", "v1", "resourceclaims", {"spec": {}}),
    (
        "resource.k8s.io",
        "v1",
        "resourceslices",
        {"spec": {"driver": "d", "nodeName": "n", "pool": {"name": "p"}, "devices": [{}]}},
    ),
    ("events.k8s.io", "v1", "events", {"note": "n", "reportingController": "c", "reason": "r"}),
]


@pytest.mark.parametrize("row", NEW_OBJECTS, ids=lambda row: f"{row[2]}-{sorted(row[3])}")
def test_first_entry_is_what_tracking_would_enter(row):
    group, version, plural, tree = row
    kind, rules = registry.find(group, plural), Rules(profile=Profile(), schemas=release())
    tree, _ = admission.admit(
        kind, group, version, tree, options=WriteOptions(), rules=rules, now=Instant(0)
    )
    node = structural.storage_node(rules.schemas, kind)
    writer = Manager(
        name="m", operation="Update", api_version=registry.api_version(group, version),
        time="2026-01-01T00:00:00Z", fields={},
    )  # fmt: skip
    tracked, begun = json_tree.copy(tree), json_tree.copy(tree)
    managed_fields.track(
        tracked["metadata"], tracked, None, node, writer, has_status=kind.has_status
    )
    owned = managed_fields.owned(begun, node, has_status=kind.has_status)
    managed_fields.begin(begun["metadata"], owned, node, writer)
    assert begun == tracked
