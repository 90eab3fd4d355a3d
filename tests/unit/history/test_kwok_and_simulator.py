"""kwok recordings and simulator records. Vector 20.7."""

import json

import pytest

from app.adapters.history.formats import kwok
from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.bootstrap import rules
from app.domain.errors import InputError
from app.domain.log.records import Loss, Op, Quality
from app.domain.objects import profile
from app.domain.values import timestamps
from tests.unit.history.worlds import PODS, brief, read_records, tree, write_lines

RECORDING = """
apiVersion: v1
kind: Pod
metadata:
  name: p
  namespace: default
  uid: u1
  resourceVersion: "7"
  creationTimestamp: $(time-offset-nanosecond -5000000000)
spec:
  containers:
  - {name: a, image: one}
---
apiVersion: action.kwok.x-k8s.io/v1alpha1
kind: ResourcePatch
resource: {version: v1, resource: pods}
target: {name: p, namespace: default}
durationNanosecond: 3000000000
method: delete
---
apiVersion: action.kwok.x-k8s.io/v1alpha1
kind: ResourcePatch
resource: {version: v1, resource: pods}
target: {name: p, namespace: default}
durationNanosecond: 1500000000
method: patch
template:
  status: {phase: Running}
---
apiVersion: action.kwok.x-k8s.io/v1alpha1
kind: ResourcePatch
resource: {group: resource.k8s.io, version: v1, resource: resourceclaims}
target: {name: c1, namespace: default}
durationNanosecond: 2000000000
method: create
template:
  apiVersion: resource.k8s.io/v1
  kind: ResourceClaim
  metadata: {name: c1, namespace: default, uid: u2}
---
apiVersion: action.kwok.x-k8s.io/v1alpha1
kind: ResourcePatch
resource: {version: v1, resource: pods}
target: {name: unknown, namespace: default}
durationNanosecond: 4000000000
method: patch
template: {status: {phase: Running}}
"""

START = timestamps.parse("2026-01-01T00:00:10Z")


def options(**more):
    return {"rules": rules.rules_for(profile.from_settings({})), **more}


def test_offset_is_added_to_the_start():
    value = {"a": "$(time-offset-nanosecond -5000000000)", "b": ["$(time-offset-nanosecond x)"]}
    assert kwok.restore_times(value, START) == {
        "a": "2026-01-01T00:00:05Z",
        "b": ["$(time-offset-nanosecond x)"],
    }
    micro = kwok.restore_times({"renewTime": "$(time-offset-nanosecond 1500)"}, START)
    assert micro == {"renewTime": "2026-01-01T00:00:10.000001Z"}


def test_recording_is_replayed_in_the_order_of_its_offsets(tmp_path):
    path = tmp_path / "cluster.yaml"
    path.write_text(RECORDING)
    records = read_records(path, **options(at=START))
    assert brief(records) == [
        ("BASELINE", "p"),
        ("MODIFIED", "p"),
        ("ADDED", "c1"),
        ("DELETED", "p"),
        ("GAP", "unknown"),
    ]
    baseline, patched, created, deleted, _ = records
    assert baseline.object["metadata"]["creationTimestamp"] == "2026-01-01T00:00:05Z"
    assert "resourceVersion" not in baseline.object["metadata"]
    assert patched.object["status"] == {"phase": "Running"}
    assert patched.object["spec"] == baseline.object["spec"]
    assert patched.object_quality is Quality.RECONSTRUCTED
    assert patched.uid == "u1"
    assert created.observed_at == START + 2_000_000
    assert deleted.object["status"] == {"phase": "Running"}
    assert Loss.NO_DELETE_STATE in deleted.losses
    assert Loss.NO_TIME not in deleted.losses


def test_recording_without_a_start_says_that_times_are_missing(tmp_path):
    path = tmp_path / "cluster.yaml"
    path.write_text(RECORDING)
    with open_history([path], ReadOptions(**options())) as recorded:
        records = list(recorded.records())
        assert any("start is not recorded" in note for note in recorded.notes)
    assert all(Loss.NO_TIME in record.losses for record in records if record.op is not Op.GAP)


def test_patch_without_a_template_is_refused(tmp_path):
    path = tmp_path / "cluster.yaml"
    path.write_text(RECORDING.replace("method: delete", "method: create"))
    with pytest.raises(InputError, match="without a template"):
        read_records(path, **options(at=START))


def line(second, event, resource):
    return {
        "time": f"2026-01-01T00:00:{second:02d}.123456789Z",
        "event": event,
        "resource": resource,
    }


def test_simulator_record_begins_with_a_list(tmp_path):
    identity = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default"},
    }
    path = write_lines(
        tmp_path / "record.jsonl",
        [
            line(1, "Add", tree(PODS, "p", rv=3)),
            line(2, "Update", tree(PODS, "p", rv=5, spec={"nodeName": "n"})),
            line(3, "Add", tree(PODS, "q", rv=6)),
            line(4, "Delete", identity),
        ],
    )
    records = read_records(path)
    assert brief(records) == [
        ("BASELINE", "p"),
        ("MODIFIED", "p"),
        ("ADDED", "q"),
        ("DELETED", "p"),
    ]
    assert records[3].object["spec"] == {"nodeName": "n"}
    assert timestamps.micro_text(records[0].observed_at) == "2026-01-01T00:00:01.123456Z"


def test_simulator_record_may_be_one_array(tmp_path):
    path = tmp_path / "record.json"
    items = [line(1, "Add", tree(PODS, "p", rv=3)), line(2, "Update", tree(PODS, "p", rv=5))]
    path.write_text(json.dumps(items, indent=1))
    assert brief(read_records(path)) == [("BASELINE", "p"), ("MODIFIED", "p")]


def test_cut_last_line_is_reported_and_others_are_not_forgiven(tmp_path):
    path = tmp_path / "record.jsonl"
    good = json.dumps(line(1, "Add", tree(PODS, "p", rv=3)))
    path.write_text(f'{good}\n{{"time": "2026')
    with open_history([path], ReadOptions()) as recorded:
        assert brief(recorded.records()) == [("BASELINE", "p")]
        assert any("last line is cut" in note for note in recorded.notes)
    path.write_text(f'{good}\n{{"time": "2026\n{good}\n')
    with pytest.raises(InputError, match=r"record\.jsonl:2"):
        read_records(path)


def test_simulator_export_is_baseline(tmp_path):
    path = tmp_path / "export.json"
    pod = {"metadata": {"name": "p", "namespace": "d", "uid": "u", "resourceVersion": "4"}}
    path.write_text(
        json.dumps(
            {
                "pods": [pod],
                "nodes": None,
                "schedulerConfig": {},
                "resourceClaims": [pod],
            }
        )
    )
    records = read_records(path)
    assert {record.kind for record in records} == {"Pod", "ResourceClaim"}
    assert {record.op for record in records} == {Op.BASELINE}
