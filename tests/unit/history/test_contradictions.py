"""Sources that contradict each other, or themselves: the notes about them, and what is left out."""

import pytest

from app.adapters.history.joining import contradictions
from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.analysis.recordings import uncertainty
from app.analysis.recordings.fidelity import FidelityCollector
from app.domain.log.records import Loss, Op
from tests.unit.history.worlds import CLAIMS, PODS, audit, brief, tree, watch, write_lines


def allocated(device, *, rv=7, **metadata):
    result = {"request": "r", "driver": "d", "pool": "p", "device": device}
    allocation = {"devices": {"results": [result]}}
    return tree(CLAIMS, rv=rv, metadata=metadata, status={"allocation": allocation})


def read(*paths):
    """The records of the files, the notes about them, and the report."""
    with open_history(list(paths), ReadOptions()) as recorded:
        records = list(recorded.records())
        collector = FidelityCollector()
        for record in records:
            collector.add(record)
        report = collector.report(notes=recorded.notes, contradictions=recorded.contradictions)
    return records, report


def losses(records):
    return {loss for record in records for loss in record.losses}


def claim_log(path, *answers, **more):
    created = audit("create", tree(CLAIMS, rv=3), second=1)
    lines = [audit("update", answer, subresource="status", second=5, **more) for answer in answers]
    return write_lines(path, [created, *lines])


def test_two_sources_that_show_one_version_differently_are_named(tmp_path):
    log = claim_log(tmp_path / "audit.jsonl", allocated("gpu-3"))
    stream = write_lines(
        tmp_path / "watch.jsonl",
        [watch("ADDED", tree(CLAIMS, rv=3)), watch("MODIFIED", allocated("gpu-2"))],
    )
    records, report = read(log, stream)
    (note,) = [note for note in report.notes if "differently" in note]
    assert "audit.jsonl:2 and watch.jsonl:2 show" in note
    assert note.endswith("at version 7 differently: status.allocation.devices.results[0].device")
    assert not report.verdicts[0].answer
    assert not report.verdicts[1].answer
    (doubt,) = [
        doubt
        for doubt in uncertainty.of_report(report.to_json())
        if doubt.code == Loss.CONTRADICTED.value
    ]
    assert doubt.affects == "content"
    assert note in doubt.text
    assert [record.losses for record in records if record.resource_version == "3"] == [()]


def test_two_answers_of_one_log_with_one_version_are_compared(tmp_path):
    updates = [
        audit("update", allocated(device), subresource="status", second=5, auditID=device)
        for device in ("gpu-3", "gpu-2")
    ]
    created = audit("create", tree(CLAIMS, rv=3), second=1)
    records, _ = read(write_lines(tmp_path / "audit.jsonl", [created, *updates]))
    written = [record for record in records if record.verb == "update"]
    assert [record.op for record in written] == [Op.MODIFIED, Op.MODIFIED]
    assert [Loss.CONTRADICTED in record.losses for record in written] == [False, True]
    devices = [allocated(device)["status"] for device in ("gpu-3", "gpu-2")]
    assert [record.object["status"] for record in written] == devices


def test_two_answers_to_one_request_are_one_change(tmp_path):
    log = claim_log(tmp_path / "audit.jsonl", allocated("gpu-3"), allocated("gpu-2"))
    records, _ = read(log)
    assert brief(records, with_context=False) == [("ADDED", "c1"), ("MODIFIED", "c1")]
    assert Loss.CONTRADICTED in losses(records)


def test_what_a_source_may_leave_out_is_no_contradiction(tmp_path):
    fields = [{"manager": "kubectl", "operation": "Update", "apiVersion": "v1"}]
    log = claim_log(tmp_path / "audit.jsonl", allocated("gpu-3", managedFields=fields, labels={}))
    stream = write_lines(tmp_path / "watch.jsonl", [watch("MODIFIED", allocated("gpu-3"))])
    records, report = read(log, stream)
    assert Loss.CONTRADICTED not in losses(records)
    assert report.contradictions == ()


CONDITION = {"type": "Ready", "status": "True"}


@pytest.mark.parametrize(
    ("condition", "kinds", "is_contradicted"),
    [
        (CONDITION, {}, False),
        (CONDITION, {"apiVersion": "v1", "kind": "Pod"}, True),
        (CONDITION | {"status": "False"}, {}, True),
        (CONDITION | {"reason": "x"}, {}, True),
    ],
    ids=["older client", "whole", "another value", "one more"],
)
def test_field_that_an_older_client_does_not_know(tmp_path, condition, kinds, is_contradicted):
    def pod(condition):
        return tree(PODS, rv=7, status={"conditions": [condition]})

    whole = pod(CONDITION | {"observedGeneration": 1})
    stream = write_lines(tmp_path / "watch.jsonl", [watch("MODIFIED", whole)])
    item = {name: part for name, part in pod(condition).items() if name[:4] not in ("apiV", "kind")}
    listed = {"kind": "PodList", "apiVersion": "v1", "items": [kinds | item]}
    dump = write_lines(tmp_path / "a-dump.json", [listed])
    for paths in ((stream, dump), (dump, stream)):
        records, _ = read(*paths)
        assert (Loss.CONTRADICTED in losses(records)) == is_contradicted
        if not is_contradicted:
            assert records[-1].object["status"] == whole["status"]


@pytest.mark.parametrize(
    ("one", "other", "path"),
    [
        ({"spec": {"a": 1}}, {"spec": {"a": 1, "b": None, "c": [], "d": {"e": {}}}}, ""),
        ({"spec": {"a": 1}}, {"spec": {"a": 2}}, "spec.a"),
        ({"spec": {"a": [1, {"b": 2}]}}, {"spec": {"a": [1, {"b": 3}]}}, "spec.a[1].b"),
        ({"spec": {"a": [1]}}, {"spec": {"a": [1, 2]}}, "spec.a"),
        ({"status": {"a": "x"}}, {}, "status"),
        ({"kind": "Pod"}, {"apiVersion": "v1"}, ""),
        ({"metadata": {"managedFields": [1]}}, {"metadata": {}}, ""),
        ({"metadata": {"labels": {"a": "b"}}}, {"metadata": {}}, "metadata.labels"),
    ],
)
def test_first_difference(one, other, path):
    assert contradictions.difference(one, other) == path
    assert contradictions.difference(other, one) == path


def test_line_that_is_there_twice_counts_once(tmp_path):
    log = claim_log(tmp_path / "a.jsonl", allocated("gpu-3"), allocated("gpu-3"))
    again = claim_log(tmp_path / "b.jsonl", allocated("gpu-3"))
    records, report = read(log, again)
    assert brief(records) == [("ADDED", "c1"), ("MODIFIED", "c1")]
    assert "records that repeat an earlier line of a log, left out: 3" in report.notes


def test_another_answer_under_the_same_audit_id_is_kept(tmp_path):
    refused = audit("update", name="c1", code=409, second=5, auditID="x")
    other = audit("update", name="c1", code=422, second=5, auditID="x")
    log = write_lines(
        tmp_path / "a.jsonl", [audit("create", tree(CLAIMS, rv=3), second=1), refused, other]
    )
    records, _ = read(log)
    assert [record.code for record in records] == [201, 409, 422]


@pytest.mark.parametrize(
    ("begins", "ends", "is_another"),
    [
        ("06.100000", "06.700000", True),
        ("05.100000", "06.700000", False),  # asked before the first one was answered
        ("06.000000", "06.500000", False),  # as long as the first one: a copy with other times
    ],
)
@pytest.mark.parametrize("is_refused", [False, True])
@pytest.mark.parametrize("order", [1, -1])
def test_audit_id_of_two_requests_that_change_nothing(
    order, is_refused, begins, ends, is_another, tmp_path
):
    how = {"code": 409} if is_refused else {}
    body = None if is_refused else allocated("gpu-3")
    first = audit("update", body, name="c1", second=5, auditID="x", **how)
    first["requestReceivedTimestamp"] = "2026-01-01T00:00:05.000000Z"
    first["stageTimestamp"] = "2026-01-01T00:00:05.500000Z"
    again = {
        **first,
        "requestReceivedTimestamp": f"2026-01-01T00:00:{begins}Z",
        "stageTimestamp": f"2026-01-01T00:00:{ends}Z",
    }
    lines = [audit("create", tree(CLAIMS, rv=3), second=1), *(first, again)[::order], again]
    records, _ = read(write_lines(tmp_path / "a.jsonl", lines))
    assert len(records) == 2 + is_another
    assert (Loss.TIMES_CONTRADICT in losses(records)) is not is_another


def test_answer_before_the_creation_of_its_object_contradicts_the_times(tmp_path):
    created = {"creationTimestamp": "2026-01-01T00:00:10Z"}
    log = claim_log(tmp_path / "a.jsonl", allocated("gpu-3", **created))
    records, report = read(log)
    assert [Loss.TIMES_CONTRADICT in record.losses for record in records] == [False, True]
    assert "1 time contradicts the order of changes" in report.verdicts[2].reasons
    (text,) = (
        doubt.text
        for doubt in uncertainty.of_report(report.to_json())
        if doubt.code == Loss.TIMES_CONTRADICT.value
    )
    assert text == f"times contradict the order of changes, first a.jsonl:2: {records[1].key}"


def test_later_version_answered_long_before_an_earlier_one_contradicts_the_times(tmp_path):
    log = write_lines(
        tmp_path / "a.jsonl",
        [
            audit("create", tree(CLAIMS, "a", rv=3), second=20),
            audit("create", tree(CLAIMS, "b", rv=4), second=5),
        ],
    )
    records, _ = read(log)
    assert [Loss.TIMES_CONTRADICT in record.losses for record in records] == [True, False]


def test_binding_to_another_node_than_the_pod_is_on_is_named(tmp_path):
    def bind(node, second):
        return audit(
            "create",
            {"kind": "Status"},
            type_=PODS,
            name="p",
            uid="uid-p",
            subresource="binding",
            request={"target": {"name": node}},
            second=second,
        )

    running = tree(PODS, "p", rv=9, spec={"nodeName": "n"}, status={"phase": "Running"})
    log = write_lines(
        tmp_path / "a.jsonl",
        [
            audit("create", tree(PODS, "p", rv=3, spec={}), type_=PODS, second=1),
            bind("n", 2),
            bind("m", 4),
            audit("patch", running, type_=PODS, name="p", subresource="status", second=6),
        ],
    )
    records, report = read(log)
    (found,) = report.contradictions
    assert (found.first, found.second, found.path) == ("a.jsonl:3", "a.jsonl:4", "spec.nodeName")
    marked = [record for record in records if Loss.IMMUTABLE in record.losses]
    assert [record.position for record in marked] == ["3"]
    nodes = [record.object["spec"].get("nodeName") for record in records]
    assert nodes == [None, "n", "m", "n"]


def test_clocks_may_differ_a_little(tmp_path):
    created = {"creationTimestamp": "2026-01-01T00:00:06Z"}
    log = write_lines(
        tmp_path / "a.jsonl",
        [
            audit("create", tree(CLAIMS, "a", rv=3), second=6),
            audit("create", tree(CLAIMS, "b", rv=4, metadata=created), second=5),
        ],
    )
    records, _ = read(log)
    assert Loss.TIMES_CONTRADICT not in losses(records)
