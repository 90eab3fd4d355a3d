"""Bytes to JSON: what each rule of the wire format gives."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.objects.protobuf.fields import MESSAGES
from app.domain.values import protobuf
from app.domain.values.protobuf import ProtobufError, parse_table
from tests.shared_data import shared_path
from tests.unit.protobuf.wire import encode_message, envelope, sized, tagged, varint

PAIR = parse_table(
    "a.v1",
    """
Pair: 1:name, 2:count=int32?, 3:flag=bool*, 4:items=int64[], 5:labels=string{}, 6:inner=Inner+,
  7:data=bytes, 8:when=Time?, 9:size=Quantity, 10:port=IntOrString, 11:raw=RawExtension
Inner: 1:text?
""",
)


def decode(raw):
    return protobuf.decode(PAIR, "a.v1.Pair", raw)


ROWS = [
    ("zero of an omitted field", tagged(2, 0, b"\x00"), {}),
    ("zero of a pointer", tagged(3, 0, b"\x00"), {"flag": False}),
    ("empty text of a kept field", sized(1, b""), {"name": ""}),
    ("negative number", tagged(2, 0, varint(-5)), {"count": -5}),
    ("repeated numbers", tagged(4, 0, varint(1)) + tagged(4, 0, varint(2)), {"items": [1, 2]}),
    ("packed numbers", sized(4, varint(1) + varint(300)), {"items": [1, 300]}),
    ("map entry", sized(5, sized(1, b"k") + sized(2, b"v")), {"labels": {"k": "v"}}),
    ("map entry without value", sized(5, sized(1, b"k")), {"labels": {"k": ""}}),
    ("merged message", sized(6, sized(1, b"t")), {"text": "t"}),
    ("bytes as base64", sized(7, b"\x00\xff"), {"data": "AP8="}),
    ("unset time", sized(8, b""), {}),
    ("time", sized(8, tagged(1, 0, varint(86400))), {"when": "1970-01-02T00:00:00Z"}),
    ("quantity", sized(9, sized(1, b"1Gi")), {"size": "1Gi"}),
    ("number in a port", sized(10, tagged(1, 0, b"\x00") + tagged(2, 0, b"\x50")), {"port": 80}),
    ("text in a port", sized(10, tagged(1, 0, b"\x01") + sized(3, b"http")), {"port": "http"}),
    ("embedded JSON", sized(11, sized(1, b'{"a":1}')), {"raw": {"a": 1}}),
    ("unknown field", tagged(99, 0, b"\x01") + sized(1, b"n"), {"name": "n"}),
    ("unknown fixed width", tagged(98, 1, bytes(8)) + tagged(97, 5, bytes(4)), {}),
]


@pytest.mark.parametrize(("raw", "expected"), [row[1:] for row in ROWS], ids=[r[0] for r in ROWS])
def test_bytes_become_json(raw, expected):
    assert decode(raw) == expected


REFUSED = [
    ("field number 0", b"\x00\x00"),
    ("group wire type", tagged(1, 3, b"")),
    ("cut number", b"\x10\xff"),
    ("cut text", b"\x0a\x05ab"),
    ("number too long", b"\x10" + b"\xff" * 11),
    ("text is no UTF-8", sized(1, b"\xff\xfe")),
    ("embedded text is no JSON", sized(11, sized(1, b"{"))),
    ("text where a number is", tagged(1, 0, b"\x01")),
    ("number where a text is", sized(2, b"abc")),
    ("map entry is a number", tagged(5, 0, b"\x01")),
]


@pytest.mark.parametrize("raw", [row[1] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_bytes_that_are_no_message_are_refused(raw):
    with pytest.raises(ProtobufError):
        decode(raw)


def test_messages_nested_too_deep_are_refused():
    table = parse_table("a.v1", "Loop: 1:next=Loop*")
    raw = b""
    for _ in range(100):
        raw = sized(1, raw)
    with pytest.raises(ProtobufError, match="deeper"):
        protobuf.decode(table, "a.v1.Loop", raw)


def test_envelope_names_version_and_kind():
    found = protobuf.decode_envelope(envelope("resource.k8s.io/v1", "ResourceClaim", b"x"))
    assert (found.api_version, found.kind, found.raw) == (
        "resource.k8s.io/v1",
        "ResourceClaim",
        b"x",
    )


def test_body_without_the_magic_bytes_is_refused():
    with pytest.raises(ProtobufError):
        protobuf.decode_envelope(b'{"kind":"Pod"}')


@given(st.binary(max_size=400))
def test_any_bytes_give_a_tree_or_are_refused(raw):
    for name in ("core.v1.Pod", "resource.v1.ResourceSlice", "meta.v1.DeleteOptions"):
        try:
            json.dumps(protobuf.decode(MESSAGES, name, raw))
        except ProtobufError:
            continue


CLAIM = {
    "metadata": {"name": "c", "namespace": "d", "labels": {"a": "b"}},
    "spec": {
        "devices": {
            "requests": [
                {
                    "name": "gpu",
                    "exactly": {
                        "deviceClassName": "gpu.example.com",
                        "selectors": [{"cel": {"expression": "true"}}],
                        "allocationMode": "ExactCount",
                        "count": 2,
                        "tolerations": [{"operator": "Exists", "tolerationSeconds": 0}],
                        "capacity": {"requests": {"memory": "1Gi"}},
                    },
                }
            ],
            "config": [
                {
                    "requests": ["gpu"],
                    "opaque": {"driver": "gpu.example.com", "parameters": {"mode": "x"}},
                }
            ],
        }
    },
}
POD = {
    "metadata": {
        "name": "p",
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u", "controller": True}
        ],
    },
    "spec": {
        "containers": [
            {
                "name": "c",
                "image": "i",
                "ports": [{"containerPort": 80}],
                "env": [
                    {
                        "name": "A",
                        "valueFrom": {
                            "configMapKeyRef": {"name": "m", "key": "k", "optional": False}
                        },
                    }
                ],
                "livenessProbe": {"httpGet": {"port": "http", "path": "/"}, "periodSeconds": 3},
                "resources": {"limits": {"cpu": "1"}, "claims": [{"name": "gpu"}]},
            }
        ],
        "volumes": [{"name": "v", "emptyDir": {}}],
        "resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}],
        "terminationGracePeriodSeconds": 0,
    },
}
SLICE = {
    "metadata": {"generateName": "0-"},
    "spec": {
        "driver": "gpu.example.com",
        "nodeName": "n",
        "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
        "devices": [
            {
                "name": "gpu-0",
                "attributes": {"model": {"string": "a"}, "index": {"int": 0}},
                "capacity": {"memory": {"value": "40Gi"}},
            }
        ],
    },
}


@pytest.mark.parametrize(
    ("name", "tree"),
    [
        ("resource.v1.ResourceClaim", CLAIM),
        ("core.v1.Pod", POD),
        ("resource.v1.ResourceSlice", SLICE),
    ],
    ids=["claim", "pod", "slice"],
)
def test_objects_come_back_from_the_bytes_of_a_go_client(name, tree):
    table = json.loads(shared_path("openapi", "protobuf-fields.json").read_text())
    raw = encode_message(table, f"k8s.io.api.{name}", tree)
    assert without_empty(protobuf.decode(MESSAGES, name, raw)) == without_empty(tree)


def without_empty(tree):
    """Zero values and empty parts left out: structs that are always on the wire leave them."""
    if isinstance(tree, dict):
        cleaned = {key: without_empty(value) for key, value in tree.items()}
        return {key: value for key, value in cleaned.items() if value not in ("", {}, [])}
    if isinstance(tree, list):
        return [without_empty(item) for item in tree]
    return tree
