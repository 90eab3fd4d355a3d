"""Cells of tables, kind by kind."""

import pytest

from app.domain.objects import registry
from app.domain.objects.printing import columns as printing
from app.domain.objects.printing import durations
from app.domain.values import timestamps

NOW = timestamps.parse("2026-01-02T00:00:00Z")
HOUR_AGO = "2026-01-01T23:00:00Z"


def cells(group, resource, tree):
    tree = {
        **tree,
        "metadata": {"name": "x", "creationTimestamp": HOUR_AGO, **tree.get("metadata", {})},
    }
    made = printing.printer(registry.find(group, resource), "v1")
    found = made.cells(tree, NOW)
    assert len(found) == len(made.columns)
    return dict(zip([column.name for column in made.columns], found, strict=True))


AGES = [
    (0, "0s"), (119, "119s"), (120, "2m"), (330, "5m30s"), (599, "9m59s"), (600, "10m"),
    (90 * 60, "90m"), (3 * 3600, "3h"), (3 * 3600 + 20 * 60, "3h20m"), (30 * 3600, "30h"),
    (48 * 3600, "2d"), (76 * 3600, "3d4h"), (100 * 86400, "100d"), (760 * 86400, "2y30d"),
    (730 * 86400, "2y"), (9 * 365 * 86400, "9y"), (-1, "0s"), (-5, "<invalid>"),
]  # fmt: skip


@pytest.mark.parametrize(("seconds", "text"), AGES, ids=[row[1] for row in AGES])
def test_age_is_shown_in_at_most_two_units(seconds, text):
    assert durations.duration_text(seconds * timestamps.SECOND) == text


def test_age_of_nothing_is_unknown():
    assert durations.age_text("", NOW) == "<unknown>"


ALLOCATED = {"allocation": {"devices": {"results": []}}}
CLAIMS = [
    ("pending", {}, {}),
    ("allocated", {}, ALLOCATED),
    ("allocated,reserved", {}, ALLOCATED | {"reservedFor": [{"name": "p"}]}),
    ("deleted", {"deletionTimestamp": HOUR_AGO}, {}),
    ("deleted,allocated", {"deletionTimestamp": HOUR_AGO}, ALLOCATED),
]


@pytest.mark.parametrize(("state", "metadata", "status"), CLAIMS, ids=[row[0] for row in CLAIMS])
def test_state_of_a_claim(state, metadata, status):
    tree = {"metadata": metadata, "status": status}
    assert cells("resource.k8s.io", "resourceclaims", tree)["State"] == state


def test_slice_without_node_shows_an_empty_node():
    tree = {"spec": {"driver": "d", "pool": {"name": "p"}}}
    found = cells("resource.k8s.io", "resourceslices", tree)
    assert (found["Node"], found["Driver"], found["Pool"], found["Age"]) == ("", "d", "p", "60m")


def test_rule_shows_its_taint_and_since_when():
    taint = {"key": "k", "value": "v", "effect": "NoExecute", "timeAdded": HOUR_AGO}
    found = cells("resource.k8s.io", "devicetaintrules", {"spec": {"taint": taint}})
    assert list(found.values()) == ["x", "k", "v", "NoExecute", "60m", "60m"]


def running(name, **more):
    return {"name": name, "ready": True, "restartCount": 0, "state": {"running": {}}, **more}


def waiting(name, reason, **more):
    return {"name": name, "restartCount": 0, "state": {"waiting": {"reason": reason}}, **more}


def ended(name, **terminated):
    return {"name": name, "restartCount": 0, "state": {"terminated": terminated}}


TWO = {"containers": [{"name": "a"}, {"name": "b"}]}
INIT = TWO | {"initContainers": [{"name": "i"}, {"name": "s", "restartPolicy": "Always"}]}
PODS = [
    ("Pending", {}, TWO, {"phase": "Pending"}),
    ("Running", {}, TWO, {"phase": "Running", "containerStatuses": [running("a")]}),
    ("CrashLoopBackOff", {}, TWO, {
        "phase": "Running", "containerStatuses": [waiting("a", "CrashLoopBackOff"), running("b")]}),
    ("Error", {}, TWO, {
        "phase": "Failed", "containerStatuses": [ended("a", exitCode=1, reason="Error")]}),
    ("ExitCode:3", {}, TWO, {"phase": "Failed", "containerStatuses": [ended("a", exitCode=3)]}),
    ("Signal:9", {}, TWO, {
        "phase": "Failed", "containerStatuses": [ended("a", exitCode=0, signal=9)]}),
    ("Evicted", {}, TWO, {"phase": "Failed", "reason": "Evicted"}),
    ("Terminating", {"deletionTimestamp": HOUR_AGO}, TWO, {"phase": "Running"}),
    ("Succeeded", {"deletionTimestamp": HOUR_AGO}, TWO, {"phase": "Succeeded"}),
    ("SchedulingGated", {}, TWO, {"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}),
    ("Init:0/2", {}, INIT, {"phase": "Pending", "initContainerStatuses": [
        waiting("i", "PodInitializing")]}),
    ("Init:ImagePullBackOff", {}, INIT, {"phase": "Pending", "initContainerStatuses": [
        waiting("i", "ImagePullBackOff")]}),
    ("Init:Error", {}, INIT, {"phase": "Pending", "initContainerStatuses": [
        ended("i", exitCode=1, reason="Error")]}),
    ("NotReady", {}, TWO, {"phase": "Running", "containerStatuses": [
        ended("a", exitCode=0, reason="Completed"), running("b")]}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("shown", "metadata", "spec", "status"), PODS, ids=[row[0] for row in PODS]
)
def test_status_of_a_pod(shown, metadata, spec, status):
    found = cells("", "pods", {"metadata": metadata, "spec": spec, "status": status})
    assert found["Status"] == shown


def test_ready_counts_sidecars_among_the_containers():
    status = {
        "phase": "Running",
        "containerStatuses": [running("a"), running("b")],
        "initContainerStatuses": [ended("i", exitCode=0), running("s", started=True)],
    }
    assert cells("", "pods", {"spec": INIT, "status": status})["Ready"] == "3/3"


def test_restarts_say_when_the_last_one_was():
    again = running("a", restartCount=2, lastState={"terminated": {"finishedAt": HOUR_AGO}})
    status = {"phase": "Running", "containerStatuses": [again]}
    assert cells("", "pods", {"spec": TWO, "status": status})["Restarts"] == "2 (60m ago)"


def test_wide_cells_of_a_pod_that_is_nowhere_are_none():
    found = cells("", "pods", {"spec": TWO, "status": {}})
    assert {found[name] for name in ("IP", "Node", "Nominated Node", "Readiness Gates")} == {
        "<none>"
    }


NODES = [
    ("Ready", {}, [{"type": "Ready", "status": "True"}]),
    ("NotReady", {}, [{"type": "Ready", "status": "Unknown"}]),
    ("Unknown", {}, []),
    ("Ready,SchedulingDisabled", {"unschedulable": True}, [{"type": "Ready", "status": "True"}]),
]


@pytest.mark.parametrize(("shown", "spec", "conditions"), NODES, ids=[row[0] for row in NODES])
def test_status_of_a_node(shown, spec, conditions):
    found = cells("", "nodes", {"spec": spec, "status": {"conditions": conditions}})
    assert found["Status"] == shown


def test_roles_of_a_node_come_from_its_labels():
    labels = {"node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/control-plane": ""}
    found = cells("", "nodes", {"metadata": {"labels": labels}})
    assert found["Roles"] == "control-plane,worker"


def test_repeated_event_says_how_often_and_since_when():
    tree = {
        "firstTimestamp": HOUR_AGO, "lastTimestamp": "2026-01-01T23:58:30Z", "count": 3,
        "involvedObject": {"kind": "Pod", "name": "p"}, "message": "m\n", "reason": "r",
    }  # fmt: skip
    found = cells("", "events", tree)
    assert found["Last Seen"] == "90s (x3 over 60m)"
    assert (found["Object"], found["Message"]) == ("pod/p", "m")


def test_kind_without_columns_of_its_own_shows_name_and_age():
    assert cells("resource.k8s.io", "deviceclasses", {}) == {"Name": "x", "Age": "60m"}


def test_name_column_is_marked_for_clients():
    columns = printing.printer(registry.find("", "pods"), "v1").columns
    assert [column.format for column in columns if column.name == "Name"] == ["name"]


def test_wide_columns_have_a_priority():
    columns = printing.printer(registry.find("", "pods"), "v1").columns
    assert [column.name for column in columns if column.priority] == [
        "IP", "Node", "Nominated Node", "Readiness Gates",
    ]  # fmt: skip


ODD = ({}, [], "x", 7, None, [{}], [[]], {"name": {}, "state": [], "ports": [{"port": {}}]})


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_object_with_odd_parts_has_a_row_in_the_table_of_its_kind(odd):
    tree = {"metadata": odd, "spec": odd, "status": odd, "subjects": odd, "roleRef": odd}
    parts = {"containerStatuses": [odd], "initContainerStatuses": [odd], "conditions": [odd]}
    for kind in registry.kinds():
        printer = printing.printer(kind, "v1")
        for one in (tree, {**tree, "status": parts, "spec": {"initContainers": [odd]}}):
            assert len(printer.cells(one, NOW)) >= len(printer.columns)


def test_pod_is_shown_whatever_its_container_statuses_are_named():
    statuses = [{"name": {}, "ready": True}, {"name": "main", "ready": True}]
    status = {"phase": "Running", "initContainerStatuses": statuses}
    assert cells("", "pods", {"spec": {}, "status": status})["Status"] == "Init:0/0"
