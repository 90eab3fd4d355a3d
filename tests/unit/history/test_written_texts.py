"""What a container wrote, behind the beginnings that its runtime gives each line.

Parity: history-formats.md 2.
"""

import base64
import json

import pytest
import yaml

from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.domain.errors import InputError
from app.domain.log.records import Op
from tests.unit.history.test_rows_of_shells import FORMS, WATCHED
from tests.unit.history.worlds import read_records

STAMP = "2026-01-02T03:04:05.000000001Z"


def pod(name, rv):
    metadata = {"name": name, "namespace": "shop", "uid": f"uid-{name}", "resourceVersion": f"{rv}"}
    metadata["creationTimestamp"] = "2026-01-02T03:00:00Z"
    spec = {"containers": [{"name": "c", "image": "x:1"}], "nodeName": "n-1"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


PODS = [pod("a", 41), pod("b", 42)]
LIST = {"apiVersion": "v1", "kind": "List", "items": PODS}


def docker(text, between=(",", ":"), **more):
    entry = {"stream": "stdout", **more, "time": STAMP}
    return "".join(
        json.dumps({"log": f"{line}\n", **entry}, separators=between) + "\n"
        for line in text.splitlines()
    )


RUNTIMES = {
    "docker": docker,
    "docker, written again": lambda text: docker(text, (", ", ": ")),
    "docker with labels": lambda text: docker(text, attrs={"tag": "x"}),
    "docker without times": lambda text: docker(text).replace(f',"time":"{STAMP}"', ""),
    "containerd": lambda text: "".join(f"{STAMP} stdout F {line}\n" for line in text.splitlines()),
    "times": lambda text: "".join(f"{STAMP} {line}\n" for line in text.splitlines()),
}

DOCUMENTS = {
    "json": json.dumps(LIST, indent=4),
    "json behind lines": "starting\n" + json.dumps(LIST, indent=2) + "\ndone",
    "two in json": "\n".join(json.dumps(each, indent=1) for each in PODS),
    "yaml": yaml.safe_dump(LIST),
    "yaml with rules": "---\n" + yaml.safe_dump_all(PODS),
}


def pairs(forms, runtime, form):
    """Each form behind one runtime, and one form behind each."""
    return sorted({*((runtime, each) for each in forms), *((each, form) for each in RUNTIMES)})


def encoded(text):
    return base64.b64encode(text.encode()).decode()


KEYS = [
    {
        "key": encoded(f"/registry/pods/shop/{each['metadata']['name']}"),
        "mod_revision": int(each["metadata"]["resourceVersion"]),
        "version": 1,
        "value": encoded(json.dumps(each)),
    }
    for each in PODS
]
ANSWER = {"header": {"cluster_id": 1, "revision": 50}, "kvs": KEYS, "count": 2}


@pytest.mark.parametrize(("runtime", "form"), pairs(DOCUMENTS, "docker", "json"))
def test_document_over_many_lines_is_read_behind_what_a_runtime_writes(tmp_path, runtime, form):
    path = tmp_path / "pod.log"
    path.write_text(RUNTIMES[runtime](DOCUMENTS[form]))
    assert [(each.op, each.name) for each in read_records(path)] == [
        (Op.BASELINE, "a"),
        (Op.BASELINE, "b"),
    ]


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("indent", [None, 1])
def test_answer_of_etcdctl_is_read_behind_what_a_runtime_writes(tmp_path, runtime, indent):
    path = tmp_path / "etcd.log"
    path.write_text(RUNTIMES[runtime](json.dumps(ANSWER, indent=indent)))
    assert [each.name for each in read_records(path)] == ["a", "b"]


STORES = {**FORMS, "etcdctl watch": WATCHED}


@pytest.mark.parametrize(("runtime", "form"), pairs(STORES, "containerd", "sqlite3 -csv"))
def test_rows_of_a_store_are_read_with_their_deletions_behind_a_runtime(tmp_path, runtime, form):
    text = STORES[form]
    plain, carried = tmp_path / "plain.txt", tmp_path / "carried.log"
    plain.write_text(text)
    carried.write_text(RUNTIMES[runtime](text))
    expected = [(each.op, each.name) for each in read_records(plain)]
    assert Op.DELETED in {op for op, _ in expected}
    assert [(each.op, each.name) for each in read_records(carried)] == expected


@pytest.mark.parametrize("indent", [None, 1])
def test_answer_of_etcdctl_in_a_message_of_a_chat_is_read(tmp_path, indent):
    text = f"look:\n```\n{json.dumps(ANSWER, indent=indent)}\n```"
    path = tmp_path / "chat.json"
    path.write_text(json.dumps([{"type": "message", "text": text, "ts": "1.2"}]))
    assert [each.name for each in read_records(path)] == ["a", "b"]


@pytest.mark.parametrize(
    "put",
    [
        lambda text: json.dumps([{"type": "message", "text": text, "ts": "1.2"}]),
        lambda text: "".join(f"row: {line}\n" for line in text.splitlines()),
    ],
)
def test_rows_of_kine_with_commas_behind_other_text_are_lost_in_words(tmp_path, put):
    path = tmp_path / "chat.txt"
    path.write_text(put(FORMS["sqlite3 -csv"]))
    with pytest.raises(InputError, match="rows of kine behind other text"):
        open_history([path], ReadOptions())


def test_lines_about_pods_keep_their_times_beside_a_document(tmp_path):
    line = 'I0102 03:04:05.000000       1 schedule_one.go:314] "Successfully bound pod to node"'
    text = f'{line} pod="shop/a" node="n-1"\n{json.dumps(PODS[0], indent=2)}'
    path = tmp_path / "scheduler.log"
    path.write_text(docker(text))
    request, stored = sorted(read_records(path), key=lambda each: each.op is Op.BASELINE)
    assert (request.op, request.name) == (Op.CONTEXT, "a")
    assert request.observed_at is not None
    assert stored.name == "a"
