"""SimKube traces: applied and deleted objects, by the second."""

import json

import msgspec
import pytest

from app.domain.errors import InputError
from app.domain.log.records import Loss, Op
from tests.unit.history.worlds import brief, read_records


def pod(name, **spec):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "d"},
        "spec": spec,
    }


def trace(*events, version=2):
    return {
        "version": version,
        "config": {"trackedObjects": {}},
        "events": [
            {"ts": ts, "applied_objs": applied, "deleted_objs": deleted}
            for ts, applied, deleted in events
        ],
        "index": {},
        "pod_lifecycles": {("v1.Pod", "d/a"): {7: [{"Finished": [1, 2]}]}},
    }


def test_trace_is_read_with_keys_that_are_no_text(tmp_path):
    path = tmp_path / "x.sktrace"
    path.write_bytes(
        msgspec.msgpack.encode(
            trace(
                (100, [pod("a")], []),
                (105, [pod("a", x=1), pod("b")], []),
                (110, [pod("c")], [pod("a")]),
                (120, [pod("a")], []),
            )
        )
    )
    records = read_records(path)
    assert brief(records) == [
        ("BASELINE", "a"),
        ("MODIFIED", "a"),
        ("ADDED", "b"),
        ("ADDED", "c"),
        ("DELETED", "a"),
        ("ADDED", "a"),
    ]
    assert records[4].object["spec"] == {"x": 1}
    assert records[0].uid == records[4].uid != records[5].uid
    assert records[0].observed_at == 100_000_000
    assert {Loss.SPEC_ONLY, Loss.NO_STATUS, Loss.COARSE_TIME, Loss.NO_UID} <= set(records[0].losses)
    assert records[0].op is Op.BASELINE


def test_other_versions_are_refused_by_name(tmp_path):
    path = tmp_path / "x.json"
    old = trace((1, [], []), version=1)
    old["pod_lifecycles"] = {}
    path.write_text(json.dumps(old))
    with pytest.raises(InputError, match="version 1, 2 is read"):
        read_records(path)
