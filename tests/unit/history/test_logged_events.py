"""Events in the logs of components, in the forms in which client-go, klog and managers log them."""

import json

import pytest

from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.domain.log.records import Loss, Op
from tests.unit.history.test_wrapped_texts import AT, CLAIM, FAILURE, LINES, keys, read

SAID = (
    "Failed to prepare dynamic resources: prepare dynamic resources: NodePrepareResources failed "
    'for ResourceClaim one: "gpu-0" is gone'
)
ABOUT = f'type="Warning" reason="FailedPrepareDynamicResources" message={json.dumps(SAID)}'
POD = f'"Event occurred" object="shop/web-1" fieldPath="" kind="Pod" apiVersion="v1" {ABOUT}'
OLD = (
    'Event(v1.ObjectReference{Kind:"Pod", Namespace:"shop", Name:"web-1", UID:"u-1", '
    'APIVersion:"v1", ResourceVersion:"7", FieldPath:""}): type: \'Warning\' '
    f"reason: 'FailedPrepareDynamicResources' {SAID}"
)
REFERENCE = {"kind": "Pod", "namespace": "shop", "name": "web-1", "uid": "u-1", "apiVersion": "v1"}
WARNING = {"type": "Warning", "reason": "FailedPrepareDynamicResources"}


def klog(entry, clock="03:04:05.000006", place="event.go:389"):
    return f"I0102 {clock}     222 {place}] {entry}"


def of_a_manager(tree):
    return json.dumps(
        {"level": "debug", "ts": "2026-01-02T03:04:05Z", "logger": "events", "msg": SAID, **tree}
    )


FORMS = {
    "kubelet": klog(POD),
    "a journal": f"Jan 02 03:04:05 n1 kubelet[222]: {klog(POD)}",
    "stern": f"kube-controller-manager-a kube-controller-manager {klog(POD)}",
    "a runtime": f"2026-01-02T03:04:05.1Z stderr F {klog(POD)}",
    "before 1.19": klog(OLD, place="event.go:258"),
    "events.k8s.io": klog(POD.replace("message=", 'action="Preparing" note=')),
    "klog as JSON": json.dumps(
        {
            "ts": 1767323045000.6,
            "caller": "record/event.go:389",
            "msg": "Event occurred",
            "v": 0,
            "object": {"name": "web-1", "namespace": "shop"},
            "fieldPath": "",
            "kind": "Pod",
            "apiVersion": "v1",
            **WARNING,
            "message": SAID,
        }
    ),
    "a manager": of_a_manager({"object": REFERENCE, **WARNING}),
    "a manager, for people": (
        f"2026-01-02T03:04:05Z\tDEBUG\tevents\t{SAID}\t"
        f"{json.dumps({'object': REFERENCE, **WARNING})}"
    ),
    "gcloud": json.dumps([{"insertId": "1", "textPayload": klog(POD)}], indent=1),
}


@pytest.mark.parametrize("form", FORMS)
def test_event_is_read_whatever_logged_it(tmp_path, form):
    records, lost = read(tmp_path, f"{FORMS[form]}\n", name="kubelet.log", at=AT)
    assert [(each.op, each.kind, each.namespace) for each in records] == [
        (Op.BASELINE, "Event", "shop")
    ]
    event = records[0].object
    involved = event["involvedObject"]
    assert [involved[name] for name in ("kind", "namespace", "name")] == ["Pod", "shop", "web-1"]
    assert (event["type"], event["reason"]) == ("Warning", "FailedPrepareDynamicResources")
    assert event["message"] == SAID
    assert event["firstTimestamp"] == event["lastTimestamp"]
    assert event["lastTimestamp"].startswith("2026-01-02T03:04:05")
    assert Loss.PRINTED in records[0].losses
    assert lost == []


def test_equal_events_are_one_with_its_first_and_last_time(tmp_path):
    times = ("03:04:05.000006", "03:04:09.000000", "03:05:05.000000", "03:05:05.000000")
    text = "".join(f"{klog(POD, clock)}\n" for clock in times)
    records, _ = read(tmp_path, text, at=AT)
    [event] = [each.object for each in records]
    assert event["count"] == 3
    assert event["firstTimestamp"] == "2026-01-02T03:04:05Z"
    assert event["lastTimestamp"] == "2026-01-02T03:05:05Z"


def test_events_without_a_year_have_no_times(tmp_path):
    records, _ = read(tmp_path, klog(POD) + "\n")
    assert Loss.NO_TIME in records[0].losses
    assert not {"firstTimestamp", "lastTimestamp"} & {*records[0].object}


def test_subject_without_a_namespace_has_its_events_in_default(tmp_path):
    entry = (
        '"Event occurred" object="n1" fieldPath="" kind="Node" apiVersion="" type="Normal" '
        'reason="Starting" message="Starting kubelet."'
    )
    records, _ = read(tmp_path, f"Jan 02 03:04:05 host-1 kubelet[9]: {klog(entry)}\n", at=AT)
    [event] = [each.object for each in records]
    assert event["metadata"]["namespace"] == "default"
    assert event["involvedObject"] == {"kind": "Node", "name": "n1"}
    assert event["source"] == {"component": "kubelet"}


def test_part_of_a_subject_and_a_kind_of_others_are_kept(tmp_path):
    entry = (
        '"Event occurred" object="shop/c" fieldPath="spec.x{a}" kind="HelmChart" '
        'apiVersion="helm.cattle.io/v1" type="Normal" reason="Applied" message="a=\\"b\\" c"'
    )
    records, _ = read(tmp_path, klog(entry) + "\n", at=AT)
    assert records[0].object["involvedObject"] == {
        "apiVersion": "helm.cattle.io/v1",
        "kind": "HelmChart",
        "namespace": "shop",
        "name": "c",
        "fieldPath": "spec.x{a}",
    }
    assert records[0].object["message"] == 'a="b" c'


def test_message_of_several_lines_is_read(tmp_path):
    first, _, second = SAID.partition(": ")
    entry = POD.replace(f"message={json.dumps(SAID)}", f"message=<\n\t{first}\n\t{second}\n >")
    records, lost = read(tmp_path, f"{klog(entry)}\n{LINES[0]}\n", at=AT)
    assert [each.kind for each in records if each.op is Op.BASELINE] == ["Event"]
    [event] = [each.object for each in records if each.op is Op.BASELINE]
    assert event["message"] == f"{first}\n{second}"
    assert [each.verb for each in records if each.op is Op.CONTEXT] == ["attempt"]
    assert lost == []


@pytest.mark.parametrize("end", [">", "", "…"])
def test_line_that_a_pager_cut_is_lost(tmp_path, end):
    cut = klog(POD)[:120] + end
    records, lost = read(tmp_path, f"{cut}\n{klog(POD)}\n", at=AT)
    assert len(records) == 1
    assert len(lost) == 1
    assert lost[0].startswith("text:1")


def test_events_stand_beside_attempts_and_objects(tmp_path):
    text = f"```\n{CLAIM}```\n{LINES[1]}\n{klog(POD)}\nwords\n"
    records, _ = read(tmp_path, text, at=AT)
    assert sorted(each.kind for each in records) == ["Event", "Pod", "ResourceClaim"]
    records, _ = read(tmp_path, f"```\n{CLAIM}```\n{klog(POD)}\n", at=AT)
    assert sorted(each.kind for each in records) == ["Event", "ResourceClaim"]


def test_words_about_an_event_outside_of_a_log_are_none(tmp_path):
    text = f"I saw {POD} and {FAILURE}\n```\n{CLAIM}```\n"
    records, _ = read(tmp_path, text, at=AT)
    assert [each.kind for each in records] == ["ResourceClaim"]


def whole(name, message):
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "shop", "uid": f"u-{name}", "resourceVersion": "9"},
        "involvedObject": REFERENCE,
        **WARNING,
        "message": message,
        "lastTimestamp": "2026-01-02T03:04:05Z",
        "count": 4,
    }


def test_event_that_a_dump_holds_whole_is_not_there_twice(tmp_path):
    (tmp_path / "events.json").write_text(json.dumps(whole("web-1.17a", SAID)))
    (tmp_path / "kubelet.log").write_text(f"{klog(POD)}\n")
    with open_history([tmp_path], ReadOptions()) as history:
        records = list(history.records())
        notes = " ".join(history.notes)
    assert keys(records) == [(Op.BASELINE, "Event", "shop", "web-1.17a")]
    assert records[0].object["count"] == 4
    assert "shows whole" in notes


def test_event_of_another_message_is_another(tmp_path):
    (tmp_path / "events.json").write_text(json.dumps(whole("web-1.17a", "something else")))
    (tmp_path / "kubelet.log").write_text(f"{klog(POD)}\n")
    with open_history([tmp_path], ReadOptions()) as history:
        assert len(list(history.records())) == 2


def test_event_of_a_table_and_of_a_log_are_one(tmp_path):
    said = "no such device"
    table = (
        "$ kubectl get events -n shop\n"
        "LAST SEEN   TYPE      REASON   OBJECT      MESSAGE\n"
        f"9m          Warning   Failed   pod/web-1   {said}\n"
    )
    entry = (
        '"Event occurred" object="shop/web-1" kind="Pod" apiVersion="v1" type="Warning" '
        f'reason="Failed" message="{said}"'
    )
    records, _ = read(tmp_path, f"{table}\n{klog(entry)}\n", at=AT)
    assert len(records) == 1
    assert records[0].object["message"] == said


def test_logs_that_follow_each_other_give_the_whole_span(tmp_path):
    (tmp_path / "kubelet.1.log").write_text(f"2026-01-02T03:04:05Z stderr F {klog(POD)}\n")
    (tmp_path / "kubelet.0.log").write_text(f"2026-01-02T04:04:05Z stderr F {klog(POD)}\n")
    with open_history([tmp_path], ReadOptions()) as history:
        [event] = [each.object for each in history.records()]
    assert event["firstTimestamp"] == "2026-01-02T03:04:05Z"
    assert event["lastTimestamp"] == "2026-01-02T04:04:05Z"


def test_row_of_a_table_whose_event_a_dump_holds_is_not_there_twice(tmp_path):
    """The table does not name its namespace; that of the only pod of this name is taken."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web-1", "namespace": "shop", "uid": "u-1", "resourceVersion": "7"},
    }
    items = {"apiVersion": "v1", "kind": "List", "items": [whole("web-1.17a", "gone"), pod]}
    (tmp_path / "all.json").write_text(json.dumps(items))
    (tmp_path / "table.txt").write_text(
        "LAST SEEN   TYPE      REASON                          OBJECT      MESSAGE\n"
        "9m          Warning   FailedPrepareDynamicResources   pod/web-1   gone\n"
    )
    with open_history([tmp_path], ReadOptions()) as history:
        names = [each.name for each in history.records() if each.kind == "Event"]
    assert names == ["web-1.17a"]


def test_log_over_the_turn_of_a_year_counts_each_line(tmp_path):
    lines = (
        f"2025-12-31T23:59:59Z stderr F {klog(POD).replace('I0102', 'I1231')}\n",
        f"2026-01-01T00:00:01Z stderr F {klog(POD).replace('I0102', 'I0101')}\n",
    )
    records, _ = read(tmp_path, "".join(lines))
    [event] = [each.object for each in records]
    assert (event["count"], event["lastTimestamp"]) == (2, "2026-01-01T00:00:01Z")


DUMPED = (
    '  STEP: Collecting events from namespace "dra-1". @ 01/02/26 03:04:06.1\n'
    "  STEP: Found 4 events. @ 01/02/26 03:04:06.2\n"
    "  I0102 03:04:06.3 22 dump.go:53] At 0001-01-01 00:00:00 +0000 UTC - event for web-1: "
    "{default-scheduler } FailedScheduling: 0/1 nodes are available: 1 node is full.\n"
    "Jan  2 03:04:06.4: INFO: At 2026-01-02 03:04:05 +0530 IST - event for web-2: {kubelet n1} "
    f"FailedPrepareDynamicResources: {SAID}\n"
    "  I0102 03:04:06.5 22 dump.go:53] At 2026-01-02 03:04:05 +0000 UTC - event for n1: "
    "{kubelet n1} Starting: Starting kubelet.\n"
    "  I0102 03:04:06.6 22 dump.go:53] At 2026-01-02 03:04:05 +0000 UTC - event for rs-1: "
    "{replicaset-controller } SuccessfulCreate: Created pod: rs-1-a\n"
)
"""Events as Kubernetes' end-to-end tests print them, without types and kinds."""


def test_events_that_tests_print_are_read(tmp_path):
    records, lost = read(tmp_path, DUMPED, name="build-log.txt", at=AT)
    events = {each.object["involvedObject"]["name"]: each.object for each in records}
    assert events["web-1"]["involvedObject"] == {
        "apiVersion": "v1", "kind": "Pod", "namespace": "dra-1", "name": "web-1",
    }  # fmt: skip
    assert events["web-1"]["source"] == {"component": "default-scheduler"}
    assert "lastTimestamp" not in events["web-1"]
    assert events["web-2"]["message"] == SAID
    assert events["web-2"]["lastTimestamp"] == "2026-01-01T21:34:05Z"
    assert events["n1"]["involvedObject"] == {"apiVersion": "v1", "kind": "Node", "name": "n1"}
    assert {each.object["type"] for each in records} == {""}
    assert lost == [
        "build-log.txt:6: the line of an event does not say what kind of object it is about"
    ]


def test_events_that_tests_print_without_their_namespace_are_lost(tmp_path):
    text = "\n".join([*DUMPED.splitlines()[2:], klog(POD), ""])
    records, lost = read(tmp_path, text, name="build-log.txt", at=AT)
    assert len(records) == 1
    assert lost == [
        f"build-log.txt:{line}: no line before the event names its namespace"
        for line in (1, 2, 3, 4)
    ]
