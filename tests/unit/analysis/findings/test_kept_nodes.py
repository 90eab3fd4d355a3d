"""Cordoned nodes with pods that a disruption budget keeps: one change each, with its verdict."""

import copy
import json

import pytest

from app.analysis.findings import nodes
from tests.unit.analysis.explain.test_verdicts import recorded
from tests.unit.service.test_explaining import views_up_to

READY = {"type": "Ready", "status": "True"}


def tree(version, kind, name, namespace="", *, labels=None, spec=None, status=None):
    """An object as a list of kubectl has it."""
    metadata = {"name": name, "uid": f"{kind}-{namespace}-{name}", "resourceVersion": "9",
                "creationTimestamp": "2026-01-01T01:00:00Z", "labels": labels or {}}  # fmt: skip
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": version, "kind": kind, "metadata": metadata,
            "spec": spec or {}, "status": status or {}}  # fmt: skip


def drained():
    """Two cordoned nodes with a pod each of one budget, which allows no eviction; one open node."""
    container = {"name": "m", "image": "a:1"}
    objects = {
        name: tree("v1", "Node", name, spec={"unschedulable": True}, status={"conditions": [READY]})
        for name in ("n1", "n2")
    }
    objects["open"] = tree("v1", "Node", "open", status={"conditions": [READY]})
    for name, node in (("p1", "n1"), ("p2", "n2"), ("p3", "open")):
        objects[name] = tree(
            "v1", "Pod", name, "lab", labels={"app": "x"},
            spec={"nodeName": node, "containers": [container]},
            status={"phase": "Running", "conditions": [READY]},
        )  # fmt: skip
    objects["keep"] = tree(
        "policy/v1", "PodDisruptionBudget", "keep", "lab",
        spec={"minAvailable": 3, "selector": {"matchLabels": {"app": "x"}}},
        status={"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 3,
                "desiredHealthy": 3, "expectedPods": 3},
    )  # fmt: skip
    return objects


def changed(objects, name, *path, to):
    """The objects with another value in one place."""
    objects = copy.deepcopy(objects)
    place = objects[name]
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = to
    return objects


DAEMON = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": True}
OTHER = {**DAEMON, "kind": "ReplicaSet"}
MIRROR = {"kubernetes.io/config.mirror": "hash"}
GONE = "2026-01-01T02:00:00Z"
NOT_READY = [{"type": "Ready", "status": "False"}]

CHANGES = {
    "as it is": ((), {"n1", "n2"}),
    "one node is open": (("n1", "spec", "unschedulable", False), {"n2"}),
    "the pod of a node is on the open one": (("p1", "spec", "nodeName", "open"), {"n2"}),
    "both pods are on one node": (("p1", "spec", "nodeName", "n2"), {"n2"}),
    "one eviction is allowed": (("keep", "status", "disruptionsAllowed", 1), set()),
    "the budget was not counted": (("keep", "status", {}), set()),
    "the budget is for others": (
        ("keep", "spec", "selector", {"matchLabels": {"app": "y"}}), set()),
    "the budget has no selector": (("keep", "spec", {"minAvailable": 3}), set()),
    "the budget selects every pod": (("keep", "spec", "selector", {}), {"n1", "n2"}),
    "the budget is of another namespace": (("keep", "metadata", "namespace", "other"), set()),
    "a pod has other labels": (("p1", "metadata", "labels", {"app": "y"}), {"n2"}),
    "a pod has ended": (("p1", "status", "phase", "Succeeded"), {"n2"}),
    "a pod is not ready": (("p1", "status", "conditions", NOT_READY), {"n2"}),
    "a pod is leaving": (("p1", "metadata", "deletionTimestamp", GONE), {"n2"}),
    "a pod is of a DaemonSet": (("p1", "metadata", "ownerReferences", [DAEMON]), {"n2"}),
    "a pod is of a ReplicaSet": (("p1", "metadata", "ownerReferences", [OTHER]), {"n1", "n2"}),
    "a pod is of a local file": (("p1", "metadata", "annotations", MIRROR), {"n2"}),
}  # fmt: skip


async def views_of(path, objects):
    listed = json.dumps({"kind": "List", "apiVersion": "v1", "items": [*objects.values()]})
    _, _, events = await recorded(path, all_json=listed)
    return views_up_to(events, len(events))


@pytest.mark.parametrize("change", CHANGES)
async def test_cordoned_node_with_pods_of_a_budget_that_allows_nothing_is_a_finding(
    tmp_path, change
):
    altered, expected = CHANGES[change]
    objects = changed(drained(), *altered[:-1], to=altered[-1]) if altered else drained()
    views = await views_of(tmp_path, objects)
    findings = [*nodes.kept_by_budgets(views)]
    assert {each.name for finding in findings for each in finding.objects} == expected
    assert sum(finding.count for finding in findings) == len(expected)
    assert len(findings) == bool(expected)
    for finding in findings:
        assert "PodDisruptionBudget lab/keep allows no eviction now" in finding.text
    assert [*nodes.kept_by_budgets(views, "lab")] == findings
    assert not [*nodes.kept_by_budgets(views, "other")]


async def test_pods_are_counted_on_all_cordoned_nodes(tmp_path):
    objects = changed(drained(), "p3", "spec", "nodeName", to="n1")
    (finding,) = nodes.kept_by_budgets(await views_of(tmp_path, objects))
    assert finding.text == (
        "2 cordoned nodes have 3 pods that a drain leaves there: PodDisruptionBudget lab/keep "
        "allows no eviction now"
    )
    objects = changed(drained(), "n2", "spec", "unschedulable", to=False)
    (finding,) = nodes.kept_by_budgets(await views_of(tmp_path, objects))
    assert finding.text.startswith("1 cordoned node has 1 pod that a drain leaves there: ")
