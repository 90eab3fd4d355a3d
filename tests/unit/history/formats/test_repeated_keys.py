"""A key that stands twice in a JSON object is named, in every format that holds JSON.

The files are those of `test_every_format`. While they are made, every JSON text has a label twice,
first with another value.
"""

import base64
import json
import re

import pytest

from app.bootstrap import manifests
from app.domain.errors import InputError
from tests.unit.history.formats import truth
from tests.unit.history.formats.test_every_format import CASES, comparable, final, read

LABEL = re.compile(rf'"{truth.LABEL}": ?"the-tests"')
PATH = re.compile(rf"[^:]+(?::\d+)?\S*: keys that occur again .*labels\.{truth.LABEL}")
OTHERS = {
    "Answer of etcdctl",
    "Answer of etcdctl, fields",
    "Answer of etcdctl, simple",
    "Watch of etcdctl",
    "Folder",
    "Kubernetes History Inspector",
    "Objects as Python prints them",
    "Objects as YAML",
    "SimKube trace",
    "Several YAML documents",
    "Tables of kubectl get",
    "Text in Windows-1252",
    "etcd data folder",
    "etcd snapshot",
    "kine table",
    "kubectl describe",
    "kwok recording",
    "must-gather",
}
"""Formats whose files hold YAML, binary forms or printed texts. Values of stores are below."""


def made(monkeypatch, folder, name):
    """The file of a format with the label twice, and the number of places."""
    places = 0
    dumps = json.dumps

    def twice(*values, **options):
        nonlocal places
        text, count = LABEL.subn(r'"made/for":"before",\g<0>', dumps(*values, **options))
        places += count
        return text

    with monkeypatch.context() as patches:
        patches.setattr(json, "dumps", twice)
        return CASES[name].make(folder), places


@pytest.mark.parametrize("name", [name for name in CASES if name not in OTHERS])
def test_key_that_occurs_again_is_a_loss_with_its_place_and_the_last_value_counts(
    tmp_path, monkeypatch, name
):
    case = CASES[name]
    path, places = made(monkeypatch, tmp_path, name)
    assert places
    records, _, lost = read(path)
    there = final(records)
    assert set(there) == case.keys
    for tree in truth.OBJECTS:
        record = there.get(truth.key(tree))
        if record is not None and case.whole:
            assert comparable(record.object) == comparable(tree)
    named = [each for each in lost if PATH.match(each)]
    assert named
    assert len(lost) == len(named) + len(case.lost), lost


@pytest.mark.parametrize("name", sorted(OTHERS))
def test_formats_left_out_hold_no_json(tmp_path, monkeypatch, name):
    assert made(monkeypatch, tmp_path, name)[1] == 0


STORED = (
    '{"apiVersion": "shop.example.com/v1", "kind": "Run", "metadata": {"name": "run", '
    '"namespace": "shop", "uid": "u"}, "spec": {"image": "web:1", "image": "web:2"}}'
)


def test_stored_value_with_a_key_that_occurs_again_is_named(tmp_path):
    key, value = (b"/registry/shop.example.com/runs/shop/run", STORED.encode())
    pair = {"mod_revision": 7, "create_revision": 7, "version": 1}
    pair |= {"key": base64.b64encode(key).decode(), "value": base64.b64encode(value).decode()}
    path = tmp_path / "registry.json"
    path.write_text(json.dumps({"header": {"revision": 7}, "kvs": [pair], "count": 1}))
    records, _, lost = read(path)
    assert [record.object["spec"] for record in records] == [{"image": "web:2"}]
    assert lost == [
        "registry.json:7/0: keys that occur again in one object, of which the last counts: "
        "spec.image"
    ]


def test_key_of_a_line_of_a_log_that_is_no_object_is_not_named(tmp_path):
    path = tmp_path / "manager.log"
    claim = json.dumps(truth.objects("ResourceClaim")[0])
    path.write_text(f'{{"ts": 1, "msg": "sync", "msg": "done"}}\n{claim}\n')
    _, left_out, lost = read(path)
    assert lost == []
    assert left_out == ["manager.log: documents without metadata, which are not objects"]


def test_many_repeated_keys_of_a_document_are_one_loss(tmp_path):
    path = tmp_path / "pod.json"
    labels = ", ".join(f'"l{at}": "a", "l{at}": "b"' for at in range(9))
    metadata = f'{{"name": "web", "namespace": "shop", "uid": "u", "labels": {{{labels}}}}}'
    path.write_text(f'{{"apiVersion": "v1", "kind": "Pod", "metadata": {metadata}}}')
    _, _, lost = read(path)
    assert [each.partition("counts: ")[2] for each in lost] == [
        "metadata.labels.l0, metadata.labels.l1, metadata.labels.l2 and 6 more"
    ]


def test_colon_that_is_written_as_a_number_is_no_key(tmp_path):
    path = tmp_path / "pod.json"
    metadata = '{"name": "web", "namespace": "shop", "uid": "u", "labels": {"a": "x\\u003ay"}}'
    path.write_text(f'{{"apiVersion": "v1", "kind": "Pod", "metadata": {metadata}}}')
    records, _, lost = read(path)
    assert [record.object["metadata"]["labels"] for record in records] == [{"a": "x:y"}]
    assert lost == []


def test_manifest_of_a_user_with_a_key_that_occurs_again_is_refused(tmp_path):
    path = tmp_path / "run.json"
    path.write_text(f"{{}}\n{STORED}")
    with pytest.raises(InputError, match=r"run.json:2: keys .* counts: spec.image; take"):
        manifests.read_documents(path)
