"""Further forms from reports: filters, verbose clients, journals, services, tools of kubectl."""

import csv
import io
import json
import tarfile

import pytest

from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.domain.errors import InputError
from app.domain.log.records import Loss, Op
from app.domain.values import timestamps
from tests.unit.history.test_field_forms import ONE, STORED, objects
from tests.unit.history.test_logged_events import POD, SAID, klog
from tests.unit.history.test_wrapped_texts import CLAIM, LINES, keys, read

EVENT = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "web-1.1", "namespace": "shop", "uid": "u-e", "resourceVersion": "4"},
    "reason": "FailedScheduling",
    "message": "0/1 nodes are available",
    "type": "Warning",
    "lastTimestamp": "2026-01-01T00:00:07Z",
    "involvedObject": {"kind": "Pod", "namespace": "shop", "name": "web-1"},
}
TABLE = (
    "NAMESPACE   NAME    READY   STATUS    RESTARTS   AGE   IP       NODE   NOMINATED NODE   "
    "READINESS GATES\n"
    "shop        web-1   0/1     Pending   0          5m    <none>   n1     <none>           "
    "<none>\n"
)


@pytest.mark.parametrize("command", ["kubectl get pods -A | grep web", "oc get po -A --no-headers"])
def test_rows_of_pods_are_read_where_a_filter_took_the_titles(tmp_path, command):
    rows = "shop   web-1   0/1   Pending   0   5m\nshop   web-2   1/1   Running   0   6m\n"
    records, lost = read(tmp_path, f"```yaml\n{CLAIM}```\n```\n$ {command}\n{rows}```\nthanks\n")
    pods = [(Op.BASELINE, "Pod", "shop", name) for name in ("web-1", "web-2")]
    assert keys(records) == [ONE, *pods]
    assert lost == []


def test_rows_of_other_kinds_are_lost_where_a_filter_took_the_titles(tmp_path):
    rows = "web-n1   n1     gpu.example.com   n1     5m\n"
    command = "kubectl get resourceslices | grep web"
    records, lost = read(tmp_path, f"```yaml\n{CLAIM}```\n```\n$ {command}\n{rows}```\nthanks\n")
    assert keys(records) == [ONE]
    assert len(lost) == 1
    assert "titles" in lost[0]


def test_bodies_that_a_verbose_client_logs(tmp_path):
    line = "I0102 03:04:05.000006   222 request.go:1212] Response Body: "
    whole = json.dumps(STORED)
    other = json.dumps({**STORED, "metadata": {**STORED["metadata"], "name": "web-2"}})
    text = f"{line}{whole}\n{line}{other[:90]} [truncated 12345 chars]\n"
    records, lost = read(tmp_path, text)
    assert keys(records) == [(Op.BASELINE, "Pod", "shop", "web-1")]
    assert len(lost) == 1
    assert lost[0].startswith("text:2")


def test_outputs_that_a_collector_keeps_in_files_without_a_suffix(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "pods").write_text(TABLE)
    (tmp_path / "in" / "version").write_text("Client Version: v1.36.2\n")
    (tmp_path / "in" / "podsdescribe").write_text("No resources found\n")
    with tarfile.open(tmp_path / "logs.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "in", "n1-2026-01-02/rke2/kubectl")
    content = (tmp_path / "logs.tar.gz").read_bytes()
    records, lost = read(tmp_path, content, name="collected.tar.gz")
    assert keys(records) == [(Op.BASELINE, "Pod", "shop", "web-1")]
    assert records[0].object["spec"] == {"nodeName": "n1"}
    assert lost == []


def test_report_with_comments_and_folded_parts(tmp_path):
    text = (
        "<!-- Thanks for filing an issue! -->\n<!--\nkind: none\n-->\n**What happened**:\n"
        f"<details>\n<summary>claim</summary>\n\n```yaml\n{CLAIM}```\n</details>\n"
    )
    records, lost = read(tmp_path, text, name="issue.md")
    assert keys(records) == [ONE]
    assert lost == []


def test_journal_as_json(tmp_path):
    entries = [
        {
            "__REALTIME_TIMESTAMP": str(1767323045000006 + n),
            "_SYSTEMD_UNIT": "kubelet.service",
            "SYSLOG_IDENTIFIER": "kubelet",
            "MESSAGE": line,
            "_PID": "222",
        }
        for n, line in enumerate((klog(POD), LINES[0], klog('"Started"')))
    ]
    text = "".join(f"{json.dumps(entry)}\n" for entry in entries)
    records, lost = read(tmp_path, text, name="kubelet.json")
    [event] = [each for each in records if each.kind == "Event"]
    assert event.object["lastTimestamp"] == "2026-01-02T03:04:05Z"
    assert timestamps.micro_text(event.observed_at) == "2026-01-02T03:04:05.000006Z"
    assert [each.verb for each in records if each.kind == "Pod"] == ["attempt"]
    assert lost == []


@pytest.mark.parametrize(
    "stamp", ["Fri 2026-01-02 03:04:05 UTC n1 kubelet[222]: ", "2026-01-02 03:04:05.123 +0000 "]
)
def test_year_before_a_line_makes_its_time_known(tmp_path, stamp):
    records, _ = read(tmp_path, f"{stamp}{klog(POD)}\n")
    [event] = objects(records, "Event")
    assert event["lastTimestamp"] == "2026-01-02T03:04:05Z"
    assert Loss.NO_TIME not in records[0].losses


def test_events_that_a_cloud_keeps_as_entries_of_a_log(tmp_path):
    entry = {
        "insertId": "a",
        "jsonPayload": EVENT,
        "logName": "projects/p/logs/events",
        "resource": {"type": "k8s_pod", "labels": {"namespace_name": "shop"}},
        "timestamp": "2026-01-01T00:00:07Z",
    }
    records, lost = read(tmp_path, json.dumps([entry], indent=2), name="events.json")
    assert keys(records) == [(Op.BASELINE, "Event", "shop", "web-1.1")]
    assert lost == []


SEEN = {
    "ClusterName": "prod",
    "Computer": "",
    "Count": "3",
    "FirstSeen": "2026-01-02T03:04:05Z",
    "LastSeen": "2026-01-02T03:06:05Z",
    "KubeEventType": "Warning",
    "Message": SAID,
    "Name": "web-1",
    "Namespace": "shop",
    "ObjectKind": "Pod",
    "Reason": "FailedPrepareDynamicResources",
    "SourceComponent": "kubelet",
    "TableName": "PrimaryResult",
    "TimeGenerated": "2026-01-02T03:06:30Z",
}
"""A row of Azure's table KubeEvents: an Event as it was seen, without its name."""


def _table(rows):
    """The rows as the portal exports them: with the time zone in the title of a time."""
    text = io.StringIO()
    times = ("FirstSeen", "LastSeen", "TimeGenerated")
    titles = [f"{name} [UTC]" if name in times else name for name in SEEN]
    writer = csv.writer(text)
    writer.writerow(titles)
    for row in rows:
        moved = {**row, "FirstSeen": "1/2/2026, 3:04:05.000 AM"}
        writer.writerow([{**moved, "LastSeen": "1/2/2026, 3:06:05.000 AM"}[name] for name in SEEN])
    return "\ufeff" + text.getvalue()


@pytest.mark.parametrize("count", ["3", 3, 3.0, "3.0"])
@pytest.mark.parametrize("is_table", [False, True])
def test_events_in_rows_of_a_workspace(tmp_path, count, is_table):
    row = {**SEEN, "Count": count}
    text = _table([row]) if is_table else json.dumps([row], indent=2)
    records, lost = read(tmp_path, text, name="events.csv" if is_table else "events.json")
    [event] = objects(records, "Event")
    assert event["involvedObject"] == {"kind": "Pod", "namespace": "shop", "name": "web-1"}
    assert (event["count"], event["message"]) == (3, SAID)
    assert event["lastTimestamp"].removesuffix("Z").removesuffix(".000") == "2026-01-02T03:06:05"
    assert event["source"] == {"component": "kubelet"}
    assert Loss.PRINTED in records[0].losses
    assert lost == []


def test_rows_of_a_table_may_span_lines_and_lack_what_makes_an_event(tmp_path):
    rows = [
        {**SEEN, "Message": 'first\nsecond, "quoted"'},
        {**SEEN, "Reason": "", "Name": "nothing"},
        {**SEEN, "Name": "web-2"},
    ]
    records, lost = read(tmp_path, _table(rows), name="events.csv")
    named = {each["involvedObject"]["name"]: each for each in objects(records, "Event")}
    assert named.keys() == {"web-1", "web-2"}
    assert named["web-1"]["message"] == rows[0]["Message"]
    assert [record.position for record in records] == ["3", "5"]
    assert lost == []


def test_screen_of_watch_names_the_namespace(tmp_path):
    text = (
        "Every 2.0s: kubectl get pods -n shop            n1: Fri Jan  2 03:04:05 2026\n\n"
        "NAME    READY   STATUS    RESTARTS   AGE\nweb-1   0/1     Pending   0          5m\n"
    )
    records, lost = read(tmp_path, text)
    assert keys(records) == [(Op.BASELINE, "Pod", "shop", "web-1")]
    assert lost == []


def test_result_of_a_playbook(tmp_path):
    result = {"changed": False, "stdout_lines": CLAIM.splitlines(), "rc": 0}
    text = f"TASK [show the claim] ****\nok: [n1] => {json.dumps(result, indent=4)}\n\nPLAY RECAP\n"
    records, lost = read(tmp_path, text, name="ansible.log")
    assert keys(records) == [ONE]
    assert lost == []


SENT = json.dumps({"type": "ADDED", "object": {**STORED, "kind": "Pod"}})
SHOWN = json.dumps(STORED, indent=2)
STREAMS = {
    "events": f"event: ADDED\nid: 7\ndata: {SENT}\n\n: keepalive\n\n",
    "data": f"data: {json.dumps(STORED)}\n\n",
    "without space": f"retry:3000\n\ndata:{json.dumps(STORED)}\n\n",
    "many lines": "".join(f"data: {line}\n" for line in SHOWN.split("\n")) + "\n",
    "answer": f"HTTP/1.1 200 OK\nContent-Type: text/event-stream\n\nevent: m\ndata: {SENT}\n\n",
}


@pytest.mark.parametrize("text", STREAMS.values(), ids=STREAMS)
def test_data_of_events_that_a_server_sends(tmp_path, text):
    records, lost = read(tmp_path, f"{text}{text.replace('web-1', 'web-2')}")
    assert [record.name for record in records] == ["web-1", "web-2"]
    assert [record.object["metadata"]["uid"] for record in records] == ["u-1"] * 2
    assert lost == []


def test_field_named_data_is_no_event_of_a_server(tmp_path):
    held = 'data: {"a": "b"}\nid: 7\n'
    records, lost = read(tmp_path, f"made:\n{CLAIM}{held}---\n{CLAIM.replace('one', 'two')}{held}")
    assert [record.name for record in records] == ["one", "two"]
    assert [record.object["data"] for record in records] == [{"a": "b"}] * 2
    assert lost == []


@pytest.mark.parametrize("between", ["", "\n", "# the next\n"])
def test_objects_behind_each_other_without_a_border(tmp_path, between):
    claim = CLAIM.replace("gpu.example.com", f"{'a' * 40}.example.com")
    text = between.join([claim, claim.replace("one", "two"), claim.replace("one", "three")])
    records, lost = read(tmp_path, text, name="items.yaml")
    assert [record.name for record in records] == ["one", "two", "three"]
    assert [record.object["spec"] for record in records] == [records[0].object["spec"]] * 3
    assert lost == []


def test_object_with_two_versions_is_not_two_objects(tmp_path):
    with pytest.raises(InputError, match="apiVersion stands twice"):
        read(tmp_path, f"apiVersion: v1\nkind: Pod\n{CLAIM}", name="pod.yaml")


APPLIED = json.dumps(json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}}))
RESULT = (
    "ok: [localhost] => \n  pods:\n    changed: false\n    resources:\n    - apiVersion: v1\n"
    "      kind: Pod\n      metadata:\n        annotations:\n"
    f"          kubectl.kubernetes.io/last-applied-configuration: {APPLIED}\n"
    "        name: web-1\n    - apiVersion: v1\n      kind: Node\n      metadata: {name: n1}\n"
    "    failed: false\n\nPLAY RECAP\n"
)


def test_result_of_ansible_in_yaml(tmp_path):
    records, lost = read(tmp_path, RESULT)
    assert [(record.kind, record.name) for record in records] == [("Pod", "web-1"), ("Node", "n1")]
    assert lost == []


@pytest.mark.parametrize("text", [APPLIED[1:-1].replace("\\", ""), f"|\n  {json.loads(APPLIED)}"])
def test_what_was_applied_is_no_state_where_its_object_is_not_read(tmp_path, text):
    part = f"   name: web-1\n   kubectl.kubernetes.io/last-applied-configuration: {text}\n"
    records, _ = read(tmp_path, f"{CLAIM}...\nannotations:\n{part}")
    assert [record.name for record in records] == ["one"]


@pytest.mark.parametrize("before", ["2026-01-02T03:04:05.000000+00:00 audit-1 ", "got: "])
def test_json_over_many_lines_behind_other_words(tmp_path, before):
    text = f"{before}{SHOWN}\n{before}{SHOWN.replace('web-1', 'web-2')}\n"
    records, lost = read(tmp_path, text)
    assert [record.name for record in records] == ["web-1", "web-2"]
    assert lost == []


ANSWERS = {
    "SelfSubjectRulesReview": "authorization.k8s.io/v1",
    "TokenReview": "authentication.k8s.io/v1",
    "Scale": "autoscaling/v1",
    "Eviction": "policy/v1",
    "Binding": "v1",
    "ComponentStatus": "v1",
    "PodMetrics": "metrics.k8s.io/v1beta1",
}


@pytest.mark.parametrize("kind", ANSWERS)
def test_kind_that_no_server_stores_is_left_out(tmp_path, kind):
    """Support bundles hold the rights of their author, and logs of clients what `scale` answers."""
    metadata = {} if kind.endswith("Review") else {"name": "web-1", "namespace": "shop"}
    if kind == "Scale":
        metadata |= {"uid": "u-2", "creationTimestamp": "2026-01-01T00:00:00Z"}
    answer = {"apiVersion": ANSWERS[kind], "kind": kind, "metadata": metadata, "spec": {}}
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    for name, tree in {"pod": STORED, "one": answer}.items():
        (bundle / f"{name}.json").write_text(json.dumps(tree))
    with open_history([bundle], ReadOptions()) as history:
        assert [record.kind for record in history.records()] == ["Pod"]
        assert history.refused_places == []
        assert history.left_out == [("one.json", f"answers of kind {kind}, which are not objects")]


def test_custom_resource_with_the_name_of_an_answer_is_an_object(tmp_path):
    tree = {**STORED, "apiVersion": "cloud.example.com/v1", "kind": "Binding"}
    records, lost = read(tmp_path, json.dumps(tree), name="one.json")
    assert ([record.kind for record in records], lost) == (["Binding"], [])
