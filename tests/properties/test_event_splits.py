"""The shared split of pods and claims returns the parts of the bytes under the API's field names.

Folds and the judge of invariants use the same raw parts, so neither can notice a wrong split. The
expected parts come from `json.loads` and from a written table of the API's field names, which is
compared with the OpenAPI document of a real server. Recordings come by day.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.log import Event, EventType, raw_parts
from app.domain.log.pages import Page
from tests import draws
from tests.conformance.recordings import import_paths
from tests.shared_data import REPOSITORY, shared_path

Place: TypeAlias = tuple[str, str]
FieldPath: TypeAlias = tuple[str, ...]
Table: TypeAlias = dict[Place, dict[str, FieldPath]]

PODS, CLAIMS = ("", "pods"), ("resource.k8s.io", "resourceclaims")

TEXTS: Table = {
    PODS: {
        "metadata.deletion_timestamp": ("metadata", "deletionTimestamp"),
        "spec.node_name": ("spec", "nodeName"),
        "status.phase": ("status", "phase"),
    },
    CLAIMS: {
        "metadata.deletion_timestamp": ("metadata", "deletionTimestamp"),
    },
}
"""Attributes that are texts, and where they stand: empty where no text stands there."""

BYTES: Table = {
    PODS: {
        "metadata.finalizers": ("metadata", "finalizers"),
        "metadata.owner_references": ("metadata", "ownerReferences"),
        "spec.resource_claims": ("spec", "resourceClaims"),
        "spec.scheduling_group": ("spec", "schedulingGroup"),
        "spec.volumes": ("spec", "volumes"),
        "status.conditions": ("status", "conditions"),
        "status.resource_claim_statuses": ("status", "resourceClaimStatuses"),
        "status.extended_resource_claim_status": ("status", "extendedResourceClaimStatus"),
    },
    CLAIMS: {
        "metadata.finalizers": ("metadata", "finalizers"),
        "metadata.owner_references": ("metadata", "ownerReferences"),
        "spec": ("spec",),
        "status.allocation": ("status", "allocation"),
        "status.reserved_for": ("status", "reservedFor"),
        "status.devices": ("status", "devices"),
    },
}
"""Attributes that are bytes, and where they stand: no bytes where nothing does."""

PLACES = (PODS, CLAIMS)
FIELDS = [
    (place, path)
    for place in PLACES
    for path in (*TEXTS[place].values(), *BYTES[place].values())
]  # fmt: skip

NOT_RECORDED = {
    (PODS, ("metadata", "finalizers")),
    (PODS, ("spec", "schedulingGroup")),
    (PODS, ("spec", "volumes")),
    (PODS, ("status", "extendedResourceClaimStatus")),
    (CLAIMS, ("metadata", "deletionTimestamp")),
    (CLAIMS, ("status", "devices")),
}
"""Fields that the example has nowhere; the OpenAPI document and made objects hold their names."""

SCHEMAS = {
    PODS: ("api__v1.json", "io.k8s.api.core.v1.Pod"),
    CLAIMS: ("apis__resource.k8s.io__v1.json", "io.k8s.api.resource.v1.ResourceClaim"),
}

NOTHING = object()


def standing(tree: Any, path: FieldPath) -> Any:
    """The value at a path of an object; NOTHING when it is absent or its parent is no mapping."""
    for key in path:
        if not isinstance(tree, dict) or key not in tree:
            return NOTHING
        tree = tree[key]
    return tree


def given_by(parts: Any, attribute: str) -> Any:
    for name in attribute.split("."):
        parts = getattr(parts, name)
    return parts


def assert_split_right(place: Place, body: bytes, parts: Any) -> set[FieldPath]:
    """Asserts that every attribute is the value at its path; returns the paths with a value."""
    tree = json.loads(body)
    seen: set[FieldPath] = set()
    for attribute, path in TEXTS[place].items():
        stands, text = standing(tree, path), given_by(parts, attribute)
        assert text == (stands if isinstance(stands, str) else ""), (attribute, body)
        if stands is not NOTHING:
            seen.add(path)
    for attribute, path in BYTES[place].items():
        stands, raw = standing(tree, path), bytes(given_by(parts, attribute))
        if stands is NOTHING:
            assert raw == b"", (attribute, body)
        else:
            assert raw, (attribute, body)
            assert raw in body, (attribute, body)
            assert alike(json.loads(raw), stands), (attribute, body)
            seen.add(path)
    return seen


def alike(one: Any, other: Any) -> bool:
    """True when values and types are equal: 1, 1.0 and True differ."""
    return json.dumps(one) == json.dumps(other)


def split(place: Place, body: bytes) -> Any:
    return raw_parts.SPLITTERS[place](body)


# The table


def attributes(form: Any, before: str = "") -> Iterator[tuple[str, type]]:
    """The paths and types of the attributes of a split class that are no split classes."""
    for field in msgspec.structs.fields(form):
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            yield from attributes(field.type, f"{before}{field.name}.")
        else:
            yield f"{before}{field.name}", field.type


def test_table_names_every_attribute_of_every_split() -> None:
    assert set(raw_parts.SPLITTERS) == set(PLACES) == set(TEXTS) == set(BYTES)
    for place in PLACES:
        declared = dict(attributes(type(split(place, b"{}"))))
        assert {name for name, form in declared.items() if form is str} == set(TEXTS[place])
        assert {name for name, form in declared.items() if form is not str} == set(BYTES[place])


@pytest.mark.parametrize(("place", "path"), FIELDS, ids=lambda part: ".".join(part))
def test_table_names_fields_of_the_api(place: Place, path: FieldPath) -> None:
    file, name = SCHEMAS[place]
    schemas = json.loads(shared_path("openapi", file).read_bytes())["components"]["schemas"]
    schema = schemas[name]
    for key in path:
        schema = schema["properties"][key]
        for part in schema.get("allOf", ()):
            schema = schemas[part["$ref"].rpartition("/")[2]]
    assert (schema["type"] == "string") == (path in TEXTS[place].values())


# Recordings


async def split_recording(path: Path) -> dict[Place, set[FieldPath]]:
    """Checks the split of every version of a recording's pods and claims; returns paths in use."""
    events = (await import_paths([path])).events
    versions = [event for event in events if has_parts(event)]
    pages = [(event, parts) for event, parts in Page(events).splits if has_parts(event)]
    assert [event for event, _ in pages] == versions
    seen: dict[Place, set[FieldPath]] = {place: set() for place in PLACES}
    for event, parts in pages:
        place = (event.key[0], event.key[1])
        seen[place] |= assert_split_right(place, event.body, parts)
    return seen


def has_parts(event: Event) -> bool:
    return (
        event.type in (EventType.OBJECT_CREATED, EventType.OBJECT_UPDATED)
        and event.key[:2] in PLACES
    )


async def test_parts_of_the_example_recording_are_what_stands_in_its_log() -> None:
    seen = await split_recording(REPOSITORY / "examples" / "recordings" / "maintenance")
    assert {(place, path) for place, path in FIELDS if path not in seen[place]} == NOT_RECORDED


@draws.BY_DAY
@pytest.mark.parametrize(
    "name",
    [
        "a-quickstart",
        "b-mig-partitions",
        "c-multihost-tpu",
        "e-taints",
        "e-taints-rules-ignored",
        "i-soak-short",
        "j-api-versions",
    ],
)
async def test_parts_of_recordings_are_what_stands_in_their_logs(name: str) -> None:
    seen = await split_recording(shared_path("histories", name))
    assert ("status", "phase") in seen[PODS]
    assert ("status", "allocation") in seen[CLAIMS]


# Made objects

VALUES = (
    b"null", b"true", b"false", b"0", b"-1.5e3", b"1e999",
    b"340282366920938463463374607431768211456",
    b'""', b'"Running"', b'"null"', b'"\\u00e9\\ud83d\\ude00\\u0000"', '"ünï 🙂 \u2028"'.encode(),
    b'"a\\"b\\\\\\/\\n"', b"[]", b"[ ]", b"{}", b'[{"name": "a", "name": "b"}, null, [1]]',
    b'{"resourceClaimName": "c", "metadata": {"deletionTimestamp": "x"}}',
)  # fmt: skip
"""One value of each sort, as it may stand in bytes."""

NEIGHBOURS = (
    "", "name", "metadataa", "Metadata", "SPEC", "statuses", "deletion_timestamp",
    "deletionTimeStamp", "finalizer", "owner_references", "ownerReference", "node_name", "nodename",
    "resourceClaim", "resource_claims", "Phase", "condition", "resourceClaimStatus",
    "extendedResourceClaimStatuses", "extended_resource_claim_status", "allocations",
    "reserved_for", "reservedfor", "\u0000", "ß🙂",
)  # fmt: skip
"""Keys that are not those of the table, however near they come."""


def escaped(key: str) -> bytes:
    """The key, each character as an escape sequence."""
    units = key.encode("utf-16-be")
    halves = [units[at : at + 2].hex() for at in range(0, len(units), 2)]
    return ('"' + "".join(f"\\u{half}" for half in halves) + '"').encode()


def plain(key: str) -> bytes:
    return json.dumps(key, ensure_ascii=False).encode()


def around(path: FieldPath, value: bytes, others: tuple[bytes, bytes], write: Any = plain) -> bytes:
    """An object with a value at a path, and with text before and after it at every level."""
    before, after = others
    for key in reversed(path):
        value = b"{" + before + write(key) + b" : " + value + after + b"}"
    return value


@draws.in_turn("rows of ways")
@pytest.mark.parametrize("value", VALUES, ids=lambda value: ascii(value.decode()))
@pytest.mark.parametrize(("place", "path"), FIELDS, ids=lambda part: ".".join(part))
def test_field_is_found_whatever_stands_there(place: Place, path: FieldPath, value: bytes) -> None:
    """Alone, amid unknown fields, with its key escaped, given twice, and beneath each level."""
    neighbours = b", ".join(plain(key) + b": [{}]" for key in NEIGHBOURS)
    doubled = plain(path[-1])
    bodies = [
        around(path, value, (b"", b"")),
        around(path, value, (b"", b", " + neighbours)),
        around(path, value, (neighbours + b",\n", b"\t")),
        around(path, value, (b"", b""), escaped),
        around(path[:-1], b"{" + doubled + b":" + value + b"," + doubled + b': "z"}', (b"", b"")),
        around(path[:-1], b"{" + doubled + b': "z",' + doubled + b":" + value + b"}", (b"", b"")),
    ]
    for body in bodies:
        assert path in assert_split_right(place, body, split(place, body)), body
    for depth in range(len(path)):
        cut = around(path[:depth], value, (b"", b""))
        assert_split_right(place, cut, split(place, cut))


TREE = dict[str, Any]


def levels(place: Place) -> TREE:
    """The nested mappings that a split knows; None marks its parts."""
    tree: TREE = {}
    for of, path in FIELDS:
        if of == place:
            inner = tree
            for key in path[:-1]:
                inner = inner.setdefault(key, {})
            inner[path[-1]] = None
    return tree


KEYS = st.sampled_from(NEIGHBOURS) | st.text(st.characters(codec="utf-8"), max_size=6)
SPACE = st.sampled_from((b"", b" ", b"\n\t"))
JSON = st.recursive(
    st.sampled_from(VALUES)
    | st.text(st.characters(codec="utf-8")).map(plain)
    | st.integers().map(lambda number: str(number).encode()),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: b"[" + b",".join(items) + b"]")
        | st.lists(st.tuples(KEYS, inner), max_size=3).map(
            lambda pairs: b"{" + b",".join(plain(key) + b":" + one for key, one in pairs) + b"}"
        )
    ),
    max_leaves=6,
)


@st.composite
def objects(draw: st.DrawFn, tree: TREE) -> bytes:
    """The bytes of an object with keys in any order, repeated keys, and values of any type."""
    keys = draw(st.lists(st.sampled_from(list(tree)) | KEYS, max_size=2 * len(tree) + 2))
    pairs: list[bytes] = []
    for key in keys:
        inner = tree.get(key)
        # One in six of the known mappings is something else.
        known = inner is not None and draw(st.integers(0, 5))
        value = draw(objects(inner)) if known else draw(JSON)
        name = draw(st.sampled_from((plain, plain, escaped)))(key)
        pairs.append(draw(SPACE) + name + draw(SPACE) + b":" + draw(SPACE) + value + draw(SPACE))
    return b"{" + b",".join(pairs) + b"}"


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place[1])
@given(data=st.data())
def test_parts_of_any_object_are_what_stands_in_it(place: Place, data: st.DataObject) -> None:
    body = data.draw(objects(levels(place)) | JSON)
    assert_split_right(place, body, split(place, body))
