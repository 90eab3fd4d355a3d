"""SimKube traces: applied and deleted objects, by the second."""

import json

import msgspec
import pytest

from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.analysis.recordings.fidelity import FidelityCollector
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


def test_higher_versions_are_refused_by_name(tmp_path):
    path = tmp_path / "x.json"
    path.write_text(json.dumps(trace((1, [], []), version=4) | {"pod_lifecycles": {}}))
    with pytest.raises(InputError, match=r"version 4; 1 to 3 are read; .* with an older SimKube"):
        read_records(path)


@pytest.mark.parametrize("pack", [lambda each: json.dumps(each).encode(), msgspec.msgpack.encode])
def test_version_1_is_an_array_of_parts_without_names(tmp_path, pack):
    named = trace((100, [pod("a")], []), (110, [pod("b")], [pod("a")]))
    parts = [named["config"], named["events"], {}, {}]
    path = tmp_path / "trace"
    path.write_bytes(pack(parts))
    assert brief(read_records(path)) == [("BASELINE", "a"), ("ADDED", "b"), ("DELETED", "a")]


@pytest.mark.parametrize("more", [{}, {"version": 1}, {"metadata": {"description": "by hand"}}])
def test_trace_without_some_of_its_fields_is_known_by_its_events(tmp_path, more):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"events": trace((100, [pod("a")], []))["events"], **more}))
    assert brief(read_records(path)) == [("BASELINE", "a")]


def test_initial_state_of_version_3_is_there_before_the_first_event(tmp_path):
    path = tmp_path / "x.sktrace"
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"phase": "x"}}
    new = trace((100, [pod("a", x=1), pod("b")], [pod("c")]), version=3)
    state = [pod("a"), pod("c"), node]
    path.write_bytes(msgspec.msgpack.encode(new | {"initial_state": state}))
    records = read_records(path)
    assert brief(records) == [
        ("BASELINE", "a"),
        ("BASELINE", "c"),
        ("BASELINE", "n"),
        ("MODIFIED", "a"),
        ("ADDED", "b"),
        ("DELETED", "c"),
    ]
    assert {record.observed_at for record in records} == {100_000_000}
    assert records[4].uid != records[1].uid == records[5].uid
    assert [Loss.NO_STATUS in record.losses for record in records[:3]] == [True, True, False]


def test_trace_with_an_initial_state_and_no_event_has_no_times(tmp_path):
    path = tmp_path / "x.sktrace"
    path.write_bytes(msgspec.msgpack.encode(trace(version=3) | {"initial_state": [pod("a")]}))
    (record,) = read_records(path)
    assert (record.op, record.observed_at) == (Op.BASELINE, None)
    assert Loss.NO_TIME in record.losses


@pytest.mark.parametrize("state", [{}, {"initial_state": []}])
def test_version_3_without_an_initial_state_is_read_as_version_2(tmp_path, state):
    path = tmp_path / "x.sktrace"
    new = trace((100, [pod("a")], []), (101, [pod("b")], []), version=3)
    path.write_bytes(msgspec.msgpack.encode(new | state))
    assert brief(read_records(path)) == [("BASELINE", "a"), ("ADDED", "b")]


def test_initial_state_that_is_no_list_or_holds_no_object_is_one_sentence(tmp_path):
    path = tmp_path / "x.sktrace"
    for state in ("x", ["x"], {"a": 1}):
        path.write_bytes(msgspec.msgpack.encode(trace(version=3) | {"initial_state": state}))
        with pytest.raises(InputError, match=r"no list of events|initial_state\[0\]"):
            read_records(path)


def test_report_on_a_trace_says_each_thing_once(tmp_path):
    path = tmp_path / "x.sktrace"
    path.write_bytes(msgspec.msgpack.encode(trace((100, [pod("a")], []), (105, [pod("b")], []))))
    collector = FidelityCollector()
    with open_history([path], ReadOptions()) as history:
        for record in history.records():
            collector.add(record)
        assert "x.sktrace: run times of 1 owner of pods are left out" in history.notes
    for verdict in collector.report().verdicts:
        texts = [reason.partition(" (")[0] for reason in verdict.reasons]
        assert len(texts) == len({*texts}), verdict.question
