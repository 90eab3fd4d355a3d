"""What kubectl up to 1.13 prints, and what crictl prints: read, or named as what it is."""

import json

import pytest

from app.adapters.history.opening import open_history
from app.adapters.history.printouts.pages import UNREAD_EVENTS
from app.adapters.history.reading import ReadOptions
from app.domain.errors import InputError

PODS = "NAME    READY     STATUS    RESTARTS   AGE\nweb-1   0/1       Pending   0          5m\n"
EVENTS = (
    "LAST SEEN   FIRST SEEN   COUNT     NAME                     KIND      SUBOBJECT              "
    "TYPE      REASON    SOURCE        MESSAGE\n"
    "2m          5m           3         web-1.151b2f7c6f1a2b3c   Pod       spec.containers{app}   "
    "Warning   Failed    kubelet, n1   Error: no device\n"
    "1m          1m           1         n1.151b2f7c6f1a2b3d      Node                             "
    "Normal    Rebooted  kubelet, n1   again\n"
)
PAGE = (
    "Name:\t\tweb-1\nNamespace:\tshop\nNode:\t\tn1/10.0.0.2\nStatus:\t\tPending\nEvents:\n"
    "  FirstSeen\tLastSeen\tCount\tFrom\t\t\tSubObjectPath\tType\t\tReason\t\t\tMessage\n"
    "  ---------\t--------\t-----\t----\t\t\t-------------\t--------\t------\t\t\t-------\n"
    "  5m\t\t2m\t\t3\tdefault-scheduler\t\t\tWarning\t\tFailedScheduling\t0/1 nodes are free\n"
)
OLDEST = (
    "$ cluster/kubectl.sh describe pod web-1\n\n"
    "W0603 11:50:59.541717   99656 request.go:291] field selector: v1beta3 - events - x\n"
    "Name:               web-1\nImage(s):           web\nNode:               n1/\n"
    "Labels:             name=web\nStatus:             Pending\n"
    "Replication Controllers:    <none>\nContainers:\nEvents:\n"
    "  FirstSeen             LastSeen            Count   From        SubobjectPath   Reason      "
    "    Message\n"
    "  Wed, 03 Jun 2015 11:43:32 -0700   Wed, 03 Jun 2015 11:46:35 -0700 6   {scheduler }       "
    "     failedScheduling    no fit\n"
    "  Wed, 03 Jun 2015 11:43:32 -0700   Wed, 03 Jun 2015 11:46:35 -0700 2 {kubelet n1}  "
    "spec.containers{app}  failed  no image\n\n"
    "$ cluster/kubectl.sh describe node n1\nName:\t\t\tn1\n"
    "CreationTimestamp:\tWed, 03 Jun 2015 11:40:32 -0700\nConditions:\n"
    "  Type\t\tStatus\n  Ready \tTrue \nAddresses:\t10.0.0.2\nCapacity:\n pods:\t\t40\n"
    "Version:\n Kubelet Version:\tv1.0.0\nNo events.\n\n"
    "$ kubectl.sh describe pods web-2\nName:   web-2\nHost:   n2/\nStatus: Running\nNo events.\n"
)
SANDBOXES = (
    "POD ID         CREATED          STATE   NAME    NAMESPACE   ATTEMPT   RUNTIME\n"
    "9f5a3e4cc1aca  24 minutes ago   Ready   web-9   shop        0         (default)\n"
)
CONTAINERS = (
    "CONTAINER      IMAGE          CREATED         STATE    NAME  ATTEMPT  POD ID         POD\n"
    "1f73f2d81bf98  ff281650a721f  5 minutes ago   Running  app   0        9f5a3e4cc1aca  web-9\n"
)


def read(tmp_path, text, name="notes.txt"):
    path = tmp_path / name
    path.write_text(text)
    with open_history([path], ReadOptions()) as history:
        records = list(history.records())
        return records, [problem for _, problem in history.refused_places]


def events(records):
    return [
        (
            record.object["involvedObject"],
            *(record.object.get(name) for name in ("type", "reason", "message", "count", "source")),
        )
        for record in records
        if record.kind == "Event"
    ]


SEEN_IN_A_CONTAINER = {
    "apiVersion": "v1", "kind": "Pod", "name": "web-1", "namespace": "shop",
    "fieldPath": "spec.containers{app}",
}  # fmt: skip
KUBELET = {"component": "kubelet", "host": "n1"}


def test_pages_of_the_first_releases_are_read(tmp_path):
    records, problems = read(tmp_path, OLDEST)
    assert problems == []
    assert sorted((each.kind, each.name) for each in records if each.kind != "Event") == [
        ("Node", "n1"), ("Pod", "web-1"), ("Pod", "web-2"),
    ]  # fmt: skip
    nodes = {
        each.name: each.object["spec"].get("nodeName") for each in records if each.kind == "Pod"
    }
    assert nodes == {"web-1": "n1", "web-2": "n2"}
    assert sorted(row[2:] for row in events(records)) == [
        ("failed", "no image", 2, {"component": "kubelet", "host": "n1"}),
        ("failedScheduling", "no fit", 6, {"component": "scheduler"}),
    ]


def test_row_of_events_that_cannot_be_read_is_lost(tmp_path):
    page = f"$ kubectl describe pod web-1\n{PAGE}"
    records, problems = read(tmp_path, page + "  5m\t2m\t1\tdefault-sch\n")
    assert len(events(records)) == 1
    assert problems == [UNREAD_EVENTS]


@pytest.mark.parametrize("titles", [("LAST SEEN", "FIRST SEEN"), ("LASTSEEN ", "FIRSTSEEN ")])
def test_events_tell_their_subject_by_kind_and_name(tmp_path, titles):
    table = EVENTS.replace("LAST SEEN", titles[0]).replace("FIRST SEEN", titles[1])
    records, problems = read(tmp_path, f"$ kubectl get events -n shop\n{table}")
    assert not problems
    node = {"apiVersion": "v1", "kind": "Node", "name": "n1"}
    assert sorted(events(records), key=str) == sorted([
        (SEEN_IN_A_CONTAINER, "Warning", "Failed", "Error: no device", 3, KUBELET),
        (node, "Normal", "Rebooted", "again", 1, KUBELET),
    ], key=str)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "kind", "match"),
    [
        ("web-1", "Pod", "names no object"),
        ("web-1.by-hand", "Pod", "names no object"),
        ("web-1.151b2f7c6f1a2b3c", "Lot", "names no object"),
        ("web-1.151b2f7c6f1...", "Pod", "was cut"),
    ],
)
def test_event_whose_row_tells_no_subject_is_named(tmp_path, name, kind, match):
    row = EVENTS.replace("web-1.151b2f7c6f1a2b3c   Pod", f"{name:22}   {kind}")
    records, problems = read(tmp_path, f"$ kubectl get events -n shop\n{row}")
    assert [event[0]["name"] for event in events(records)] == ["n1"]
    assert [match in problem for problem in problems] == [True]


@pytest.mark.parametrize("title", ["SubObjectPath", "SubobjectPath"])
def test_page_whose_events_stand_between_tabs(tmp_path, title):
    page = "$ kubectl describe pod web-1 -n shop\n" + PAGE.replace("SubObjectPath", title)
    records, problems = read(tmp_path, page)
    subject = {"apiVersion": "v1", "kind": "Pod", "name": "web-1", "namespace": "shop"}
    source = {"component": "default-scheduler"}
    assert events(records) == [
        (subject, "Warning", "FailedScheduling", "0/1 nodes are free", 3, source)
    ]
    assert not problems


@pytest.mark.parametrize("title", ["SubObjectPath", "SubobjectPath"])
def test_page_names_the_container_of_an_event(tmp_path, title):
    page = PAGE.replace("SubObjectPath", title)
    row = "  5m\t\t2m\t\t3\tkubelet, n1\t\tspec.containers{app}\tWarning\t\tFailed\t\t\tno device\n"
    page = "$ kubectl describe pod web-1 -n shop\n" + page.rpartition("  5m")[0] + row
    records, _ = read(tmp_path, page)
    assert events(records) == [(SEEN_IN_A_CONTAINER, "Warning", "Failed", "no device", 3, KUBELET)]


def test_jobs_before_they_showed_how_long_they_took(tmp_path):
    table = "NAME      DESIRED   SUCCESSFUL   AGE\ntrain     1         0            5m\n"
    for command in ("", "$ kubectl get jobs -n shop\n"):
        records, problems = read(tmp_path, command + table)
        assert not problems
        assert [(record.kind, record.name) for record in records] == [("Job", "train")]


OF_NODES = {
    "NAME  STATUS                    AGE\nn1    Ready,SchedulingDisabled  9s\n": ["n1"],
    "NAME  STATUS    AGE  VERSION\nn1    NotReady  9s   v1.7.3\nn2    Ready     9s   v1.7.3\n": [
        "n1",
        "n2",
    ],
    "$ kubectl get nodes\nNAME  STATUS  AGE\nn1    Ready   9s\n": ["n1"],
}


@pytest.mark.parametrize("table", OF_NODES)
def test_nodes_before_they_showed_their_roles(tmp_path, table):
    """Namespaces have the same titles, and other states."""
    records, lost = read(tmp_path, table)
    nodes = [(record.kind, record.name) for record in records]
    assert (nodes, lost) == ([("Node", name) for name in OF_NODES[table]], [])


def test_states_that_several_kinds_have_tell_none(tmp_path):
    with pytest.raises(InputError, match="nothing tells of which kind"):
        read(tmp_path, "NAME  STATUS  AGE\nn1    Ready   9s\n")
    records, _ = read(tmp_path, "NAME  STATUS       AGE\nshop  Terminating  9s\n")
    assert [(record.kind, record.name) for record in records] == [("Namespace", "shop")]


@pytest.mark.parametrize(
    ("rest", "node"),
    [
        ("n1.example.com", "n1.example.com"),
        ("10.0.0.7  n1", "n1"),
        ("app=web,tier=front", None),
        ("", None),
    ],
)
def test_row_without_titles_may_have_one_more_cell(tmp_path, rest, node):
    """The node alone up to 1.2, or labels."""
    before = "It hangs:\n\nshop  api-1  1/1  Running  0  9s\n"
    records, lost = read(tmp_path, f"{before}shop  web-1  1/1  Running  0  9s  {rest}\n")
    web = records[-1].object
    assert [(record.namespace, record.name) for record in records] == [
        ("shop", "api-1"),
        ("shop", "web-1"),
    ]
    assert (web.get("spec", {}).get("nodeName"), lost) == (node, [])


@pytest.mark.parametrize("table", [SANDBOXES, CONTAINERS])
def test_what_a_runtime_keeps_is_named_and_is_no_pod(tmp_path, table):
    """It may be what is left of a pod that was deleted."""
    records, problems = read(tmp_path, f"# crictl ps\n{table}\n$ kubectl get pods -n shop\n{PODS}")
    assert [record.name for record in records] == ["web-1"]
    assert ["crictl" in problem for problem in problems] == [True]
    with pytest.raises(InputError, match="a table of crictl"):
        read(tmp_path, table)


SANDBOX = {
    "metadata": {"name": "web-1", "uid": "u-1", "namespace": "shop", "attempt": 0},
    "state": "SANDBOX_READY",
    "labels": {"io.kubernetes.pod.name": "web-1"},
}


@pytest.mark.parametrize(
    "tree", [{"items": [{"id": "a1", **SANDBOX}]}, {"status": SANDBOX, "info": {"pid": 1}}]
)
def test_what_a_runtime_answers_in_json_is_named(tmp_path, tree):
    with pytest.raises(InputError, match="output of crictl: pods and containers as a node"):
        read(tmp_path, json.dumps(tree, indent=2))


def test_output_of_gron_is_named_with_its_cure(tmp_path):
    with pytest.raises(InputError, match="output of gron") as refusal:
        read(tmp_path, 'json = {};\njson.apiVersion = "v1";\njson.kind = "Pod";\n')
    assert "gron --ungron" in str(refusal.value.cure)


@pytest.mark.parametrize("command", ["k get pods -n shop", "$ kubectl get pods -n shop -o wide"])
def test_titles_on_the_line_of_their_command_are_titles(tmp_path, command):
    """A line end that a copy has lost; the rows stand where they stood below the titles."""
    records, problems = read(tmp_path, f"works:\n{command}      {PODS}")
    assert problems == []
    assert [(each.kind, each.namespace, each.name) for each in records] == [
        ("Pod", "shop", "web-1")
    ]
