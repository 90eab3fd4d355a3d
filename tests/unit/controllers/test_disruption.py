"""What the status of a PodDisruptionBudget says, and when it is written."""

import pytest

from app.domain.controllers.registry import ControllerOptions
from app.domain.log import ObjectKey
from app.domain.objects.kinds import disruption_budgets
from app.domain.objects.write import eviction
from app.domain.objects.write.commands import CreateObject
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject
from tests.cluster import USER, Cluster

APP = {"app": "db"}


def budget(cluster: Cluster, name: str = "db", labels: JsonObject | None = None, **spec) -> None:
    selector = {"matchLabels": APP if labels is None else labels}
    cluster.create("policy/v1", "PodDisruptionBudget", name, spec={"selector": selector, **spec})


def pods(cluster: Cluster, *names: str, owner: JsonObject | None = None) -> None:
    """Pods of the application, which are ready."""
    for name in names:
        metadata: JsonObject = {"name": name, "labels": dict(APP)}
        if owner is not None:
            metadata["ownerReferences"] = [owner]
        spec = {"nodeName": "n1", "containers": [{"name": "main", "image": "busybox:1"}]}
        cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        ready(cluster, name)


def ready(cluster: Cluster, name: str, state: str = "True") -> None:
    conditions = [{"type": "Ready", "status": state}]
    status = {"phase": "Running", "conditions": conditions}
    cluster.patch("pods", name, {"status": status}, subresource="status")


def workload(cluster: Cluster, kind: str, replicas: int | None) -> None:
    template = {
        "metadata": {"labels": dict(APP)},
        "spec": {"containers": [{"name": "main", "image": "busybox:1"}]},
    }
    spec: JsonObject = {"selector": {"matchLabels": dict(APP)}, "template": template}
    if replicas is not None:
        spec["replicas"] = replicas
    cluster.create("apps/v1", kind, "db", spec=spec)
    cluster.settle()


def cluster_with_node(**options) -> Cluster:
    cluster = Cluster(**options)
    cluster.node("n1")
    return cluster.settle()


def numbers(cluster: Cluster, name: str = "db") -> tuple[int, ...]:
    """Expected, healthy, wanted, allowed."""
    status = cluster.settle().must("poddisruptionbudgets", name)["status"]
    names = ("expectedPods", "currentHealthy", "desiredHealthy", "disruptionsAllowed")
    return tuple(status[found] for found in names)


def condition(cluster: Cluster, name: str = "db") -> JsonObject:
    (found,) = cluster.settle().must("poddisruptionbudgets", name)["status"]["conditions"]
    return found


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        # expected, healthy, wanted, allowed of three ready pods of a workload with four replicas
        ({"minAvailable": 2}, (4, 3, 2, 1)),
        ({"minAvailable": 3}, (4, 3, 3, 0)),
        ({"minAvailable": 9}, (4, 3, 9, 0)),
        ({"minAvailable": "50%"}, (4, 3, 2, 1)),
        ({"minAvailable": "51%"}, (4, 3, 3, 0)),
        ({"maxUnavailable": 2}, (4, 3, 2, 1)),
        ({"maxUnavailable": 9}, (4, 3, 0, 3)),
        ({"maxUnavailable": "50%"}, (4, 3, 2, 1)),
        ({"maxUnavailable": "30%"}, (4, 3, 2, 1)),
        ({}, (0, 3, 0, 0)),
    ],
)
@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet"])
def test_numbers_of_a_budget(kind, spec, told):
    cluster = cluster_with_node(kubelet=True)
    workload(cluster, kind, 4)
    cluster.wait(10)
    cluster.line.controllers = [c for c in cluster.line.controllers if c.name == "disruption"]
    ready(cluster, cluster.names("pods")[0], "False")
    budget(cluster, **spec)
    assert numbers(cluster) == told


def test_scale_counts_even_where_pods_are_missing():
    cluster = cluster_with_node(options=ControllerOptions(off=frozenset({"scheduling"})))
    workload(cluster, "Deployment", 10)
    cluster.line.controllers = [c for c in cluster.line.controllers if c.name == "disruption"]
    for name in cluster.names("pods")[1:]:
        cluster.delete("pods", name)
    budget(cluster, maxUnavailable="25%")
    assert numbers(cluster) == (10, 0, 7, 0)
    budget(cluster, "counted", minAvailable=1)
    assert numbers(cluster, "counted") == (1, 0, 1, 0)


def test_condition_says_whether_pods_may_go_and_since_when():
    cluster = cluster_with_node()
    pods(cluster, "a", "b")
    budget(cluster, minAvailable=1)
    assert condition(cluster) == {
        "type": "DisruptionAllowed",
        "status": "True",
        "observedGeneration": 1,
        "lastTransitionTime": "2026-01-02T03:00:00Z",
        "reason": "SufficientPods",
        "message": "",
    }
    cluster.wait(5)
    ready(cluster, "a", "False")
    found = condition(cluster)
    assert (found["status"], found["reason"]) == ("False", "InsufficientPods")
    assert found["lastTransitionTime"] == "2026-01-02T03:00:05Z"
    cluster.wait(5)
    spec = {"spec": {"minAvailable": 2}}
    cluster.patch("poddisruptionbudgets", "db", spec)
    found = condition(cluster)
    assert cluster.must("poddisruptionbudgets", "db")["status"]["observedGeneration"] == 2
    assert (found["observedGeneration"], found["lastTransitionTime"]) == (
        2,
        "2026-01-02T03:00:05Z",
    )


def test_nothing_is_written_when_nothing_changed():
    cluster = cluster_with_node()
    pods(cluster, "a", "b")
    budget(cluster, minAvailable=1)
    cluster.settle()
    before = cluster.line.head.revision
    cluster.patch("pods", "a", {"metadata": {"annotations": {"x": "y"}}})
    cluster.settle()
    assert cluster.line.head.revision == before + 1


def test_pod_that_leaves_or_changes_its_labels_counts_no_more():
    cluster = cluster_with_node()
    pods(cluster, "a", "b", "c")
    budget(cluster, minAvailable=1)
    assert numbers(cluster) == (3, 3, 1, 2)
    cluster.delete("pods", "a")
    assert numbers(cluster) == (3, 2, 1, 1)
    cluster.patch("pods", "b", {"metadata": {"labels": {"app": "other"}}})
    assert numbers(cluster) == (2, 1, 1, 0)


def test_changed_selector_counts_other_pods():
    cluster = cluster_with_node()
    pods(cluster, "a", "b")
    budget(cluster, labels={"app": "other"}, minAvailable=1)
    assert numbers(cluster) == (0, 0, 1, 0)
    cluster.patch("poddisruptionbudgets", "db", {"spec": {"selector": {"matchLabels": APP}}})
    assert numbers(cluster) == (2, 2, 1, 1)


def test_budget_without_pods_allows_nothing_and_says_so():
    cluster = cluster_with_node()
    budget(cluster, maxUnavailable=1)
    assert numbers(cluster) == (0, 0, 0, 0)
    (name,) = [found for found in cluster.names("events") if found.startswith("db.")]
    said = cluster.must("events", name)
    assert (said["message"], said["count"]) == ("No matching pods found", 2)
    about = said["involvedObject"]["resourceVersion"]
    assert about != cluster.must("poddisruptionbudgets", "db")["metadata"]["resourceVersion"]


@pytest.mark.parametrize(
    ("owner", "problem"),
    [
        (("apps/v1", "DaemonSet"), "daemonsets.apps does not implement the scale subresource"),
        (("batch/v1", "Job"), "jobs.batch does not implement the scale subresource"),
        (("v1", "Node"), "nodes does not implement the scale subresource"),
        (("apps/v1", "StatefulSet"), 'found no controllers for pod "a"'),
        (("x.example.com/v1", "X"), 'no matches for kind "X" in version "x.example.com/v1"'),
    ],
)
def test_share_of_pods_whose_scale_nobody_knows_allows_nothing(owner, problem):
    # The collector would take a pod whose owner is not there.
    cluster = cluster_with_node(options=ControllerOptions(off=frozenset({"garbage"})))
    version, kind = owner
    pods(
        cluster,
        "a",
        owner={
            "apiVersion": version,
            "kind": kind,
            "name": "o",
            "uid": "00000000-0000-4000-8000-000000000001",
            "controller": True,
        },
    )
    budget(cluster, maxUnavailable="50%")
    found = condition(cluster)
    assert (found["status"], found["reason"], found["message"]) == ("False", "SyncFailed", problem)
    assert numbers(cluster)[3] == 0
    text = f"Failed to calculate the number of expected pods: {problem}"
    assert text in cluster.messages("db")


def test_custom_owner_counts_by_its_scale():
    cluster = cluster_with_node()
    scale = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"scale": scale},
        "schema": {"openAPIV3Schema": schema},
    }
    names = {"plural": "farms", "kind": "Farm", "singular": "farm"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    create(
        cluster,
        ObjectKey("apiextensions.k8s.io", "customresourcedefinitions", "", "farms.example.com"),
        {"metadata": {"name": "farms.example.com"}, "spec": spec},
    )
    cluster.settle()
    farm = create(
        cluster,
        ObjectKey("example.com", "farms", "default", "f"),
        {"metadata": {"name": "f", "namespace": "default"}, "spec": {"size": 5}},
    )
    reference = {"apiVersion": "example.com/v1", "kind": "Farm", "name": "f", "controller": True}
    pods(cluster, "a", owner={**reference, "uid": farm["metadata"]["uid"]})
    budget(cluster, minAvailable="20%")
    assert numbers(cluster) == (5, 1, 1, 0)


def create(cluster: Cluster, key: ObjectKey, tree: JsonObject) -> JsonObject:
    kinds = {"farms": "Farm", "customresourcedefinitions": "CustomResourceDefinition"}
    whole = {"apiVersion": f"{key.group}/v1", "kind": kinds[key.resource], **tree}
    made = cluster.line.submit(CreateObject(key=key, version="v1", tree=whole), actor=USER)
    assert made.tree is not None
    return made.tree


def test_pods_without_an_owner_are_left_out_of_a_share_and_named():
    cluster = cluster_with_node()
    pods(cluster, "a")
    budget(cluster, minAvailable="20%")
    assert numbers(cluster) == (0, 1, 0, 0)
    (text,) = set(cluster.messages("db"))
    assert "(selector: &LabelSelector{MatchLabels:map[string]string{app: db,}," in text


def evict(cluster: Cluster, name: str) -> None:
    """What the API server writes to the budget before it deletes a pod."""
    key = ObjectKey("", "pods", "default", name)
    found = eviction.judge(cluster.line.views.objects, key, cluster.line.now)
    assert found.write is not None
    cluster.update("poddisruptionbudgets", found.write.tree, "status")


def test_announced_disruption_counts_until_it_is_late():
    cluster = cluster_with_node()
    pods(cluster, "a", "b", "c")
    budget(cluster, minAvailable=1)
    cluster.settle()
    evict(cluster, "a")
    status = cluster.must("poddisruptionbudgets", "db")["status"]
    assert status["disruptedPods"] == {"a": "2026-01-02T03:00:00Z"}
    assert numbers(cluster) == (3, 2, 1, 1)
    cluster.wait(119)
    assert numbers(cluster) == (3, 2, 1, 1)
    cluster.wait(2)
    assert numbers(cluster) == (3, 3, 1, 2)
    assert "disruptedPods" not in cluster.must("poddisruptionbudgets", "db")["status"]
    assert cluster.messages("a")[-1] == (
        "Pod was expected by PDB default/db to be deleted but it wasn't"
    )


def test_announced_disruption_is_forgotten_when_the_pod_goes():
    cluster = cluster_with_node()
    pods(cluster, "a", "b")
    budget(cluster, minAvailable=1)
    cluster.settle()
    evict(cluster, "a")
    cluster.delete("pods", "a")
    assert numbers(cluster) == (2, 1, 1, 0)
    assert "disruptedPods" not in cluster.must("poddisruptionbudgets", "db")["status"]
    cluster.kill("a")
    cluster.wait(300)
    assert cluster.messages("a") == [], "it went in time"


def test_restarted_controller_knows_what_it_knew():
    cluster = cluster_with_node()
    pods(cluster, "a", "b")
    budget(cluster, minAvailable=1)
    cluster.settle()
    evict(cluster, "a")
    cluster.restart()
    before = cluster.line.head.revision
    cluster.settle()
    assert numbers(cluster) == (2, 1, 1, 0)
    assert cluster.line.head.revision <= before + 1
    cluster.wait(121)
    assert numbers(cluster) == (2, 2, 1, 1)


def test_without_the_controller_nobody_writes():
    cluster = cluster_with_node(options=ControllerOptions(off=frozenset({"disruption"})))
    pods(cluster, "a")
    budget(cluster, minAvailable=1)
    cluster.wait(60)
    status = cluster.must("poddisruptionbudgets", "db")["status"]
    assert "observedGeneration" not in status
    assert status["disruptionsAllowed"] == 0


def disrupted(cluster: Cluster, reason: str = "EvictionByEvictionAPI") -> None:
    told = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": reason,
        "message": "m",
        "lastTransitionTime": "2026-01-02T03:00:00Z",
    }
    status = {"conditions": [{"type": "Ready", "status": "True"}, told]}
    cluster.patch("pods", "a", {"status": status}, subresource="status")


def test_pod_that_lives_on_is_said_to_be_disrupted_no_more():
    cluster = cluster_with_node()
    pods(cluster, "a")
    disrupted(cluster)
    cluster.wait(119)
    found = cluster.pod_condition("a", "DisruptionTarget")
    assert found is not None
    assert found["status"] == "True"
    cluster.wait(1)
    assert cluster.pod_condition("a", "DisruptionTarget") == {
        "type": "DisruptionTarget",
        "status": "False",
        "observedGeneration": 1,
        "lastProbeTime": None,
        "lastTransitionTime": "2026-01-02T03:02:00Z",
    }


@pytest.mark.parametrize("why", ["kubelet", "finished", "leaving"])
def test_disruption_that_may_take_its_time_stays_said(why):
    cluster = cluster_with_node()
    pods(cluster, "a")
    disrupted(cluster, "TerminationByKubelet" if why == "kubelet" else "EvictionByEvictionAPI")
    if why == "finished":
        cluster.finish("a")
    if why == "leaving":
        cluster.delete("pods", "a")
    cluster.wait(600)
    found = cluster.pod_condition("a", "DisruptionTarget")
    assert found is not None
    assert found["status"] == "True"


def test_pods_without_budgets_cost_no_step():
    cluster = cluster_with_node()
    pods(cluster, "a", "b")
    (controller,) = [found for found in cluster.line.controllers if found.name == "disruption"]
    assert [queue.adds for queue in controller.queues] == [0]


def test_condition_is_replaced_where_it_stands():
    other = {"type": "Other", "status": "True"}
    status = disruption_budgets.with_own_condition(
        {"disruptionsAllowed": 1, "conditions": [other]}, 0
    )
    changed = disruption_budgets.with_own_condition({**status, "disruptionsAllowed": 0}, 1_000_000)
    assert [found["type"] for found in changed["conditions"]] == ["Other", "DisruptionAllowed"]
    assert json_tree.text(disruption_budgets.condition_of(changed), "reason") == "InsufficientPods"
    assert not disruption_budgets.agrees({**changed, "disruptionsAllowed": 3})
