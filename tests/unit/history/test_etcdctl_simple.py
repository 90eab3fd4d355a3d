"""What etcdctl prints without `-w`: lines with keys, and stored bytes behind each."""

import base64
import json

import pytest

from app.adapters.history import unpacking
from app.domain.log.records import Loss, Op
from tests.unit.history.formats.test_every_format import read as read_with_report
from tests.unit.history.test_real_etcd import VERSIONS, expected, saved
from tests.unit.history.worlds import read_records


def field(number, content):
    """A field of a protobuf message, of fewer than 128 bytes."""
    assert len(content) < 128
    return bytes((number << 3 | 2, len(content))) + content


def stored_pod(name, note=b"", namespace=b"shop", uid=b""):
    """A pod as a server stores it; the note is an annotation."""
    metadata = field(1, name) + field(3, namespace) + field(5, uid or b"u-" + name)
    if note:
        metadata += field(12, field(1, b"n") + field(2, note))
    envelope = field(1, field(1, b"v1") + field(2, b"Pod"))
    return b"k8s\0" + envelope + field(2, field(1, metadata))


def printed(folder, pairs):
    path = folder / "registry.txt"
    path.write_bytes(b"".join(key + b"\n" + value + b"\n" for key, value in pairs))
    return path


@pytest.mark.parametrize("version", VERSIONS)
def test_bytes_of_a_real_store_give_the_objects_without_their_revisions(tmp_path, version):
    pairs = json.loads(saved(f"{version}.get.json"))["kvs"]
    texts = [(base64.b64decode(each["key"]), base64.b64decode(each["value"])) for each in pairs]
    records = read_records(printed(tmp_path, texts))
    _, live = expected(version)
    assert {each.name: each.object for each in records} == {
        name: pod for name, (_, pod) in live.items()
    }
    assert all(Loss.NO_RV in each.losses and not each.resource_version for each in records)
    assert {each.op for each in records} == {Op.BASELINE}


@pytest.mark.parametrize("chunk", [1, 7, 64, 4096])
def test_values_in_protobuf_are_read_wherever_the_file_is_cut_into_chunks(
    tmp_path, monkeypatch, chunk
):
    monkeypatch.setattr(unpacking, "CHUNK", chunk)
    # A length of 47 is a slash, and one of 10 is a newline: bytes that look like the end of a key.
    notes = [b"", b"x" * 47, b"/registry/pods/shop/other\nno value", b"\n" * 10, b"{\n\n"]
    names = [b"pod-%d" % number for number in range(len(notes))]
    pairs = [
        (b"/registry/pods/shop/" + name, stored_pod(name, note))
        for name, note in zip(names, notes, strict=True)
    ]
    pairs.insert(2, (b"/registry/ranges/serviceips", b"k8s\0" + field(2, b"x")))
    records, _, refused = read_with_report(printed(tmp_path, pairs))
    shown = {
        each.name: each.object["metadata"].get("annotations", {}).get("n", "") for each in records
    }
    assert shown == {name.decode(): note.decode() for name, note in zip(names, notes, strict=True)}
    assert refused == []


def test_value_that_is_cut_is_named_and_the_others_are_read(tmp_path):
    whole, cut = stored_pod(b"a"), stored_pod(b"b")[:-3]
    path = printed(tmp_path, [(b"/registry/pods/shop/a", whole), (b"/registry/pods/shop/b", cut)])
    records, _, refused = read_with_report(path, keep_going=True)
    assert [each.name for each in records] == ["a"]
    assert len(refused) == 1
    assert "registry.txt:2: the stored value is damaged" in refused[0]


def test_encrypted_value_is_a_gap_of_its_key(tmp_path):
    path = printed(
        tmp_path,
        [
            (b"/registry/pods/shop/a", stored_pod(b"a")),
            (b"/registry/resourceclaims/shop/s", b"k8s:enc:aescbc:v1:k:\n\xff"),
        ],
    )
    records = read_records(path)
    assert [(each.op, each.name) for each in records] == [(Op.BASELINE, "a"), (Op.GAP, "s")]
    assert Loss.ENCRYPTED in records[1].losses
