"""etcd snapshots: pages, revisions, compaction, stored values. Vectors 20.1, 20.2 and 20.5."""

import hashlib
import struct

import msgspec
import pytest

from app.adapters.history.limits import DEFAULT_LIMITS
from app.adapters.history.storage import stored_values
from app.adapters.history.storage.bbolt import _fnv1a
from app.domain.errors import InputError
from app.domain.log.records import Loss, Op
from tests.unit.history.worlds import read_records

PAGE = 4096

RULE = (
    "6b3873000a2b0a187265736f757263652e6b38732e696f2f7631616c70686133120f4465766963655461696e7452"
    "756c651287010a3b0a096770752d332d6563632a2433663063396435652d303030302d343030302d383030302d30"
    "3030303030303030303031380142060880f2d6ca0612480a20120f6770752e6578616d706c652e636f6d1a066e6f"
    "64652d6122056770752d3312240a0f6578616d706c652e636f6d2f6563631a094e6f457865637574652206088"
    "0f2d6ca061a002200"
)
SLICE = (
    "6b3873000a230a127265736f757263652e6b38732e696f2f7631120d5265736f75726365536c69636512a0010a3c"
    "0a0a6e6f64652d612d6770752a2433663063396435652d303030302d343030302d383030302d3030303030303030"
    "30303032380142060880f2d6ca0612600a0f6770752e6578616d706c652e636f6d120c0a066e6f64652d61100118"
    "011a066e6f64652d6132370a056770752d30120d0a056d6f64656c120422027831120b0a05696e64657812021000"
    "1a120a066d656d6f727912080a060a04343047691a002200"
)


def varint(number):
    out = b""
    while True:
        byte = number & 0x7F
        number >>= 7
        if not number:
            return out + bytes([byte])
        out += bytes([byte | 0x80])


def key_value(key, version=0, value=None):
    found = b"\x0a" + varint(len(key)) + key
    if version:
        found += b"\x20" + varint(version)
    if value is not None:
        found += b"\x2a" + varint(len(value)) + value
    return found


def revision(main, sub=0, tail=b""):
    return struct.pack(">Q", main) + b"_" + struct.pack(">Q", sub) + tail


def page(number, flags, elements):
    """A page of leaf elements (key, value, element flags), or of branch children."""
    if flags == 1:
        body = b"".join(struct.pack("<IIQ", 0, 0, child) for child in elements)
        return struct.pack("<QHHI", number, flags, len(elements), 0) + body
    head, data = b"", b""
    for index, (key, value, element_flags) in enumerate(elements):
        position = (len(elements) - index) * 16 + len(data)
        head += struct.pack("<IIII", element_flags, position, len(key), len(value))
        data += key + value
    return struct.pack("<QHHI", number, flags, len(elements), 0) + head + data


def meta(number, root, high, transaction):
    body = struct.pack("<IIIIQQQQQ", 0xED0CDAED, 2, PAGE, 0, root, 0, 2, high, transaction)
    return struct.pack("<QHHI", number, 4, 0, 0) + body + struct.pack("<Q", _fnv1a(body))


def inline(elements):
    return struct.pack("<QQ", 0, 0) + page(0, 2, elements)


def bolt(entries, compacted=0, *, scheduled=0, digest=True, root_page=None):
    buckets = [(b"key", inline([(key, value, 0) for key, value in entries]), 1)]
    marks = [(b"finishedCompactRev", compacted), (b"scheduledCompactRev", scheduled)]
    known = [(name, revision(main), 0) for name, main in marks if main]
    if known:
        buckets.append((b"meta", inline(known), 1))
    pages = [
        meta(0, 3, 4, 1),
        meta(1, 3, 4, 2),
        struct.pack("<QHHI", 2, 16, 0, 0),
        root_page or page(3, 2, buckets),
    ]
    content = b"".join(item.ljust(PAGE, b"\0") for item in pages)
    return content + hashlib.sha256(content).digest() if digest else content


def stored(name, **more):
    tree = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "d", "uid": f"u-{name}", **more},
    }
    return msgspec.json.encode(tree)


def entry(main, name, version, sub=0, **more):
    key = f"/registry/pods/d/{name}".encode()
    return revision(main, sub), key_value(key, version, stored(name, **more))


def tombstone(main, name):
    return revision(main, 0, b"t"), key_value(f"/registry/pods/d/{name}".encode())


def test_vector_of_writes_after_a_compaction(tmp_path):
    entries = [
        entry(3, "a", 2, labels={"v": "2"}),
        entry(4, "n", 1),
        tombstone(5, "a"),
        entry(6, "a", 1),
        entry(7, "t1", 1),
        entry(7, "t2", 1, sub=1),
    ]
    path = tmp_path / "snapshot.db"
    path.write_bytes(bolt(entries, compacted=3))
    records = read_records(path)
    assert [(record.op, record.name, record.resource_version) for record in records] == [
        (Op.BASELINE, "a", "3"),
        (Op.ADDED, "n", "4"),
        (Op.DELETED, "a", "5"),
        (Op.ADDED, "a", "6"),
        (Op.ADDED, "t1", "7"),
        (Op.ADDED, "t2", "7"),
    ]
    assert records[2].object["metadata"]["labels"] == {"v": "2"}


def test_compaction_that_was_under_way_has_taken_away_writes_already(tmp_path):
    """The creation of a, at 4, is gone; only its last write before revision 6 is sure to exist."""
    entries = [entry(5, "a", 2), entry(6, "b", 1), entry(7, "a", 3)]
    path = tmp_path / "snapshot.db"
    path.write_bytes(bolt(entries, compacted=3, scheduled=6))
    assert [(record.op, record.name, record.resource_version) for record in read_records(path)] == [
        (Op.BASELINE, "a", "5"),
        (Op.BASELINE, "b", "6"),
        (Op.MODIFIED, "a", "7"),
    ]


def test_digest_is_checked_and_may_be_absent(tmp_path):
    path = tmp_path / "snapshot.db"
    content = bytearray(bolt([entry(4, "n", 1)]))
    content[3 * PAGE + 200] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match="does not have the SHA-256"):
        read_records(path)
    path.write_bytes(bolt([entry(4, "n", 1)], digest=False))
    assert [record.name for record in read_records(path)] == ["n"]


@pytest.mark.parametrize(
    ("root", "problem"),
    [
        (page(3, 1, [3]), "page 3 is reached twice"),
        (page(3, 1, [9]), "page 9 lies beyond the last"),
        (page(3, 16, []), "neither branch nor leaf"),
        (page(2, 2, []), "says that it is 2"),
        (struct.pack("<QHHI", 3, 2, 60_000, 0), "more pairs than fit"),
        (struct.pack("<QHHI", 3, 2, 0, 900_000), "runs over the end of the file"),
        (
            struct.pack("<QHHI", 3, 2, 1, 0) + struct.pack("<IIII", 1, 16, 3, 900_000) + b"key",
            "runs over the end of its page",
        ),
    ],
)
def test_damaged_pages_are_named(tmp_path, root, problem):
    path = tmp_path / "snapshot.db"
    path.write_bytes(bolt([], root_page=root))
    with pytest.raises(InputError, match=problem):
        read_records(path)


def test_file_without_a_valid_meta_page_is_refused(tmp_path):
    content = bytearray(bolt([], digest=False))
    content[16 + 40] ^= 1
    content[PAGE + 16 + 40] ^= 1
    path = tmp_path / "snapshot.db"
    path.write_bytes(content)
    with pytest.raises(InputError, match="no valid meta page"):
        read_records(path)


@pytest.mark.parametrize(
    "value", [b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\x0a\x05a"]
)
def test_overlong_and_cut_numbers_are_refused(tmp_path, value):
    path = tmp_path / "snapshot.db"
    path.write_bytes(bolt([(revision(4), value)]))
    with pytest.raises(InputError, match="is cut"):
        read_records(path)


def test_stored_rule_of_an_old_version():
    found = stored_values.decode(bytes.fromhex(RULE), "x", DEFAULT_LIMITS)
    assert found.tree == {
        "apiVersion": "resource.k8s.io/v1alpha3",
        "kind": "DeviceTaintRule",
        "metadata": {
            "name": "gpu-3-ecc",
            "uid": "3f0c9d5e-0000-4000-8000-000000000001",
            "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {
            "deviceSelector": {"driver": "gpu.example.com", "pool": "node-a", "device": "gpu-3"},
            "taint": {
                "key": "example.com/ecc",
                "effect": "NoExecute",
                "timeAdded": "2026-01-01T00:00:00Z",
            },
        },
    }


def test_stored_slice_keeps_an_attribute_of_zero():
    found = stored_values.decode(bytes.fromhex(SLICE), "x", DEFAULT_LIMITS)
    assert found.tree["spec"] == {
        "driver": "gpu.example.com",
        "pool": {"name": "node-a", "generation": 1, "resourceSliceCount": 1},
        "nodeName": "node-a",
        "devices": [
            {
                "name": "gpu-0",
                "attributes": {"model": {"string": "x1"}, "index": {"int": 0}},
                "capacity": {"memory": {"value": "40Gi"}},
            }
        ],
    }


def test_encrypted_values_are_gaps_of_their_keys(tmp_path):
    key = b"/registry/secrets/d/s"
    path = tmp_path / "snapshot.db"
    path.write_bytes(
        bolt(
            [
                (revision(4), key_value(key, 1, b"k8s:enc:aescbc:v1:k:xxxx")),
                entry(5, "n", 1),
                (revision(6), key_value(b"compact_rev_key", 1, b"3")),
            ]
        )
    )
    records = read_records(path, with_secrets=True)
    assert [record.op for record in records] == [Op.GAP, Op.ADDED]
    assert Loss.ENCRYPTED in records[0].losses
    assert records[0].name == "s"


@pytest.mark.parametrize(
    ("path", "group", "resource"),
    [
        ("resourceslices/s", "resource.k8s.io", "resourceslices"),
        ("resourceclaims/d/s", "resource.k8s.io", "resourceclaims"),
        ("deployments/d/s", "apps", "deployments"),
        ("events/d/s", "", "events"),
        ("minions/s", "", "nodes"),
        ("stable.example.com/crontabs/d/s", "stable.example.com", "crontabs"),
    ],
)
def test_gap_of_a_key_has_the_group_of_its_kind(tmp_path, path, group, resource):
    place = tmp_path / "snapshot.db"
    value = key_value(f"/registry/{path}".encode(), 1, b"k8s:enc:aescbc:v1:k:xxxx")
    place.write_bytes(bolt([(revision(4), value), entry(5, "n", 1)]))
    gap = next(each for each in read_records(place, with_secrets=True) if each.op is Op.GAP)
    assert (gap.group, gap.resource, gap.name) == (group, resource, "s")
