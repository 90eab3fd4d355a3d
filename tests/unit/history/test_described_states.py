"""What pages of kubectl describe tell of containers and workloads, and tables of Events alone."""

import pytest

from app.adapters.history.printouts import pages, printed
from tests.unit.history.test_tables_and_commands import read

PAGE = """Name:         web-0
Namespace:    shop
Node:         n1/192.0.2.1
Start Time:   Fri, 02 Jan 2026 04:04:05 +0100
Status:       Running
IP:           192.0.2.9
Init Containers:
  first:
    Image:          init:1
    Command:
      State:  Running
    State:          Terminated
      Reason:       Completed
      Exit Code:    0
      Started:      Fri, 02 Jan 2026 03:04:06 +0000
      Finished:     Fri, 02 Jan 2026 03:04:07 +0000
    Ready:          True
    Restart Count:  0
Containers:
  main:
    Container ID:   containerd://c
    Image:          app:1
    Image ID:       app@sha256:1
    State:          Waiting
      Reason:       CrashLoopBackOff
    Last State:     Terminated
      Reason:       OOMKilled
      Message:      the last line
      Exit Code:    137
      Started:      Mon, 01 Jan 0001 00:00:00 +0000
    Ready:          False
    Restart Count:  3
    Environment:
      Reason:  of no state
  new:
    Image:          app:2
Events:             <none>
"""


def test_states_of_containers_are_those_of_the_page(tmp_path):
    trees, lost, _ = read(tmp_path, PAGE)
    pod = trees["Pod", "shop", "web-0"]
    assert lost == []
    assert pod["spec"]["initContainers"] == [{"name": "first", "image": "init:1"}]
    assert [each["name"] for each in pod["spec"]["containers"]] == ["main", "new"]
    assert (pod["status"]["startTime"], pod["status"]["podIP"]) == (
        "2026-01-02T03:04:05Z",
        "192.0.2.9",
    )
    ended = {"startedAt": "2026-01-02T03:04:06Z", "finishedAt": "2026-01-02T03:04:07Z"}
    assert pod["status"]["initContainerStatuses"] == [
        {
            "name": "first",
            "state": {"terminated": {"reason": "Completed", "exitCode": 0, **ended}},
            "ready": True,
            "restartCount": 0,
        }
    ]
    last = {"reason": "OOMKilled", "message": "the last line", "exitCode": 137}
    assert pod["status"]["containerStatuses"] == [
        {
            "name": "main",
            "containerID": "containerd://c",
            "imageID": "app@sha256:1",
            "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": last},
            "ready": False,
            "restartCount": 3,
        }
    ]


def test_message_of_several_lines_is_not_shown_as_one(tmp_path):
    page = PAGE.replace("the last line\n", "a line\n                    and another\n")
    trees, _, _ = read(tmp_path, page)
    (status,) = trees["Pod", "shop", "web-0"]["status"]["containerStatuses"]
    assert status["lastState"] == {"terminated": {"reason": "OOMKilled", "exitCode": 137}}


ROW = "NAMESPACE   NAME    READY   STATUS   RESTARTS   AGE\nshop        web-0   {}   9s\n"
ROWS = {
    "the same word": ("0/2     CrashLoopBackOff   3", True),
    "another word": ("0/2     ErrImagePull   3", False),
    "no word": ("2/2     Running   3", False),
}


@pytest.mark.parametrize("name", ROWS)
def test_row_below_a_page_is_another_state_if_a_container_differs(tmp_path, name):
    row, is_same = ROWS[name]
    trees, _, _ = read(tmp_path, f"{PAGE}\n{ROW.format(row)}")
    statuses = trees["Pod", "shop", "web-0"]["status"].get("containerStatuses", [])
    assert ("main" in [each["name"] for each in statuses]) is is_same


WORKLOADS = {
    "Deployment": "Selector:  a=b\nReplicas:  2 desired | 1 updated | 2 total\nStrategyType:  x\n",
    "DaemonSet": "Selector:  a=b\nDesired Number of Nodes Scheduled: 3\n",
    "StatefulSet": "Replicas:  2 desired | 2 total\nUpdate Strategy:  x\nPods Status:  2 Running\n",
    "Job": "Parallelism:  2\nCompletions:  4\n",
    "ReplicaSet": "Controlled By: Deployment/a\nReplicas: 1 current / 2 desired\nPods Status: x\n",
}
EVENTS = """Events:
  Type    Reason  Age  From     Message
  ----    ------  ---- ----     -------
  Normal  Made    5s   a, n1    made it
"""


@pytest.mark.parametrize("kind", WORKLOADS)
def test_page_of_a_workload_is_of_the_kind_that_its_fields_tell(tmp_path, kind):
    head = "Name:  web\nNamespace:  shop\nCreationTimestamp:  Fri, 02 Jan 2026 04:04:05 +0100\n"
    trees, lost, _ = read(tmp_path, head + WORKLOADS[kind] + EVENTS)
    assert lost == []
    tree = trees[kind, "shop", "web"]
    assert tree["metadata"]["creationTimestamp"] == "2026-01-02T03:04:05Z"
    wanted = {"DaemonSet": None, "Job": {"parallelism": 2, "completions": 4}}
    assert tree.get("spec") == wanted.get(kind, {"replicas": 2})
    (event,) = (tree for (of, _, _), tree in trees.items() if of == "Event")
    assert event["involvedObject"]["kind"] == kind
    assert event["source"] == {"component": "a", "host": "n1"}


def test_events_below_a_page_of_an_unknown_kind_are_lost_and_named(tmp_path):
    page = "Name:  web\nNamespace:  shop\nReplicas:  1 current / 2 desired\nPods Status:  x\n"
    row = ROW.format("2/2     Running   3")
    _, lost, _ = read(tmp_path, f"{page}{EVENTS}\n$ kubectl get pods -n shop\n{row}")
    assert any("a table of events below a description" in each for each in lost)


def test_page_of_a_kind_that_redra_does_not_know_is_named(tmp_path):
    page = "Name:  a\nNamespace:  shop\nAPI Version:  kueue.x-k8s.io/v1beta1\nKind:  Workload\n"
    page += "Spec:\n  Active:  true\n"
    row = ROW.format("2/2     Running   3")
    trees, lost, _ = read(tmp_path, f"{page}{EVENTS}\n$ kubectl get pods -n shop\n{row}")
    assert [kind for kind, _, _ in trees] == ["Pod"]
    assert [each.partition(": ")[2] for each in lost] == [printed.FOREIGN_PAGE, printed.NO_PAGE]


UID = "00000000-0000-4000-8000-000000000001"
ALONE = {
    "what was scheduled": ("Scheduled", "Successfully assigned shop/web to n1", ""),
    "what is restarted": (
        "BackOff",
        f"Back-off restarting failed container c in pod web_shop({UID})",
        "",
    ),
    "two pods": ("Scheduled", "Successfully assigned shop/web to n1", "shop/other"),
    "no pod": ("Pulled", "Successfully assigned shop/web to n1", ""),
}


@pytest.mark.parametrize("name", ALONE)
def test_events_without_their_page_are_of_the_pod_that_they_name(tmp_path, name):
    reason, message, other = ALONE[name]
    rows = f"  Normal  {reason}  5s  a  {message}\n  Warning  Failed  5s  kubelet  no device\n"
    if other:
        rows += f"  Normal  Scheduled  5s  a  Successfully assigned {other} to n1\n"
    text = (
        f"  Type  Reason  Age  From  Message\n{rows}\nNAME   STATE     AGE\none    pending   9s\n"
    )
    trees, lost, _ = read(tmp_path, f"It hangs:\n\n{text}")
    subjects = [
        (tree["involvedObject"]["namespace"], tree["involvedObject"]["name"])
        for (kind, _, _), tree in trees.items()
        if kind == "Event"
    ]
    is_read = name.startswith("what")
    assert subjects == ([("shop", "web")] * 2 if is_read else [])
    assert any("a table of events" in each for each in lost) is not is_read


def test_titles_between_tabs_are_those_of_events():
    assert pages.EVENT_TITLES.match("Type\tReason     Age\tFrom           \tMessage")
