"""Field readers return the same values as a walk through the tree, for any JSON tree."""

import types
from typing import Any, get_args

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.values import json_tree
from app.domain.values.fields import core, decision_body, dra, meta, paths, records
from app.domain.values.json_tree import JsonObject

KEYS = (
    "metadata", "spec", "status", "name", "uid", "a", "number", "flag", "texts", "parts", "part",
    "deletionTimestamp", "allocation", "devices", "results", "request", "driver", "pool", "device",
    "shareID", "adminAccess", "bindingConditions", "generation", "controller", "ownerReferences",
    "type", "reason", "reservedFor", "conditions", "nodeName",
)  # fmt: skip

LEAVES = st.sampled_from((None, True, False, 0, 1, 2**70, 1.0, "", "a", "Ready"))
OBJECTS = st.dictionaries(st.sampled_from(KEYS), LEAVES, max_size=4)
JSON = st.recursive(
    LEAVES | OBJECTS | st.lists(OBJECTS | LEAVES, max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6)
    ),
    max_leaves=12,
)
TREES = st.dictionaries(st.sampled_from(KEYS), JSON, max_size=8)


class Part(records.FieldRecord, frozen=True):
    name: str = ""
    number: int | None = None
    flag: bool = False
    texts: tuple[str, ...] = ()
    trees: tuple[JsonObject, ...] = msgspec.field(default=(), name="parts")


class Whole(records.FieldRecord, frozen=True):
    a: str = ""
    part: Part = Part()
    parts: tuple[Part, ...] = ()
    status: Part | None = None


FORMS = (
    Part,
    Whole,
    meta.Owner,
    meta.Condition,
    meta.Reference,
    dra.DeviceResult,
    dra.Consumer,
    dra.ResourcePool,
    dra.DeviceStatus,
    dra.DeviceRequest,
    core.SelectorRequirement,
    core.EventObject,
    core.ContainerStatus,
    decision_body.DecisionBody,
    decision_body.DecisionSummary,
)


def walked(form: Any, tree: json_tree.JsonView) -> Any:
    """The record that walks to each of its fields give."""
    fields = {}
    for field in msgspec.structs.fields(form):
        key = field.encode_name
        kind: Any = getattr(field.type, "__supertype__", field.type)
        if kind is str:
            fields[field.name] = json_tree.text(tree, key)
        elif kind is bool:
            fields[field.name] = json_tree.flag(tree, key)
        elif kind is int or kind == int | None:
            number = json_tree.integer(tree, key)
            fields[field.name] = field.default if number is None else number
        elif kind == tuple[str, ...]:
            fields[field.name] = tuple(json_tree.texts(tree, key))
        elif kind == tuple[JsonObject, ...]:
            fields[field.name] = tuple(json_tree.objects(tree, key))
        elif kind == str | None:
            text = json_tree.get(tree, key)
            fields[field.name] = text if isinstance(text, str) else None
        elif kind == JsonObject:
            fields[field.name] = dict(json_tree.mapping(tree, key))
        elif kind == bool | None:
            flag = json_tree.get(tree, key)
            fields[field.name] = flag if isinstance(flag, bool) else None
        elif isinstance(kind, types.UnionType):
            inner = json_tree.get(tree, key)
            fields[field.name] = (
                walked(get_args(kind)[0], inner) if isinstance(inner, dict) else None
            )
        elif isinstance(kind, type):
            fields[field.name] = walked(kind, json_tree.mapping(tree, key))
        else:
            item = get_args(kind)[0]
            fields[field.name] = tuple(walked(item, one) for one in json_tree.objects(tree, key))
    return form(**fields)


PATH = st.lists(st.sampled_from(KEYS), min_size=1, max_size=4)
KINDS = ("get", "text", "integer", "flag", "mapping", "objects", "texts", "labels")


@settings(deadline=None)
@given(tree=TREES, path=PATH)
def test_path_readers_give_what_a_walk_gives(tree: JsonObject, path: list[str]) -> None:
    for kind in KINDS:
        read = getattr(paths, kind)(*path)
        expected = getattr(json_tree, kind)(tree, *path)
        assert repr(read(tree)) == repr(expected), kind


READERS = [
    (
        form,
        records.of_tree(form),
        records.of_bytes(form),
        records.of_list(form, paths.get("items")),
    )
    for form in FORMS
]


@settings(deadline=None)
@given(tree=TREES)
def test_records_give_what_walks_give(tree: JsonObject) -> None:
    decoded = msgspec.json.decode(body := msgspec.json.encode(tree))
    for form, of_tree, of_bytes, of_list in READERS:
        assert of_tree(tree) == walked(form, tree), form
        assert of_bytes(body) == walked(form, decoded), form
        for value in tree.values():
            expected = walked(form, value) if isinstance(value, dict) else form()
            assert of_tree(value) == expected, form
            listed = [walked(form, item) for item in json_tree.objects({"items": value}, "items")]
            assert of_list({"items": value}) == listed, form


@settings(deadline=None)
@given(tree=TREES)
def test_presence_of_a_deletion_timestamp_is_what_counts(tree: JsonObject) -> None:
    expected = "deletionTimestamp" in json_tree.mapping(tree, "metadata")
    assert meta.is_deleting(tree) == expected


@settings(deadline=None)
@given(tree=TREES, wanted=st.sampled_from(["", "a", "Ready"]))
def test_a_condition_is_the_first_of_its_type(tree: JsonObject, wanted: str) -> None:
    listed = json_tree.objects(tree, "status", "conditions")
    first = next((item for item in listed if item.get("type") == wanted), None)
    expected = None if first is None else walked(meta.Condition, first)
    assert meta.condition(tree, wanted) == expected


def test_readers_of_kinds_read_their_paths() -> None:
    pod = {
        "metadata": {"name": "p", "namespace": "n", "uid": "u"},
        "spec": {"nodeName": "x", "containers": [{"name": "c"}]},
        "status": {"phase": "Running", "nominatedNodeName": "y"},
    }
    assert meta.place(pod) == ("n", "p")
    assert (core.node_name(pod), core.nominated_node_name(pod)) == ("x", "y")
    assert core.containers(pod) == [{"name": "c"}]
    result = {"request": "r", "driver": "d", "pool": "p", "device": "0", "shareID": "s"}
    claim = {"status": {"allocation": {"devices": {"results": [result, 1]}}, "reservedFor": [{}]}}
    (read,) = dra.results(claim)
    assert (read.id, read.request, read.share_id) == (("d", "p", "0"), "r", "s")
    assert dra.results_of(dra.allocation(claim)) == [read]
    assert dra.consumers(claim) == [dra.Consumer()]


OWNERS = st.lists(
    st.fixed_dictionaries({"controller": LEAVES}, optional={"uid": LEAVES, "name": LEAVES})
    | LEAVES,
    max_size=4,
)
METADATA = st.dictionaries(st.sampled_from(KEYS), LEAVES, max_size=3) | LEAVES


@given(METADATA, st.none() | OWNERS, st.booleans())
def test_controller_is_the_first_owner_that_says_so(metadata: Any, owners: Any, is_view: bool):
    if owners is not None and isinstance(metadata, dict):
        metadata = {**metadata, "ownerReferences": owners}
    tree = {"metadata": metadata}
    given_owners = metadata.get("ownerReferences") if isinstance(metadata, dict) else None
    expected = [
        owner
        for owner in (given_owners if isinstance(given_owners, list) else ())
        if isinstance(owner, dict) and owner.get("controller") is True
    ]
    found = meta.controller(types.MappingProxyType(tree) if is_view else tree)
    assert (found is not None) == bool(expected)
    if found is not None:
        uid = expected[0].get("uid")
        assert found.uid == (uid if isinstance(uid, str) else "")
