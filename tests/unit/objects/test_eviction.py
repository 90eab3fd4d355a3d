"""Which pods may be evicted, and what budgets say to it (api.md 10)."""

import pytest

from app.domain.errors import Forbidden, NotFound, Rejected, TooManyRequests
from app.domain.log import ObjectKey
from app.domain.objects.write import eviction
from app.domain.objects.write.eviction import Permission
from app.domain.values.json_tree import JsonObject
from tests.cluster import Cluster

KEY = ObjectKey("", "pods", "default", "p")


def cluster(status: JsonObject, phase: str = "Running", ready: str = "True", **spec) -> Cluster:
    """One pod, and a budget with that status which selects it."""
    found = Cluster()
    found.line.controllers = ()
    body = {"nodeName": "n1", "containers": [{"name": "main", "image": "busybox:1"}]}
    metadata = {"name": "p", "labels": {"app": "a"}}
    found.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": body})
    told = {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]}
    found.patch("pods", "p", {"status": told}, subresource="status")
    budget(found, "b", status, **spec)
    return found


def budget(found: Cluster, name: str, status: JsonObject, **spec) -> None:
    selected = {"selector": {"matchLabels": {"app": "a"}}, "minAvailable": 1, **spec}
    found.create("policy/v1", "PodDisruptionBudget", name, spec=selected)
    counted = {"observedGeneration": 1, **status}
    found.patch("poddisruptionbudgets", name, {"status": counted}, subresource="status")


def permission(found: Cluster) -> Permission:
    return eviction.judge(found.line.views.objects, KEY, found.line.now)


def cause(found: Cluster) -> str:
    with pytest.raises(TooManyRequests) as refusal:
        permission(found)
    return refusal.value.causes[0].message


NOTHING = {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1}


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_finished_pod_goes_whatever_the_budget_says(phase):
    assert permission(cluster(NOTHING, phase=phase)) == Permission()


def test_pod_that_is_leaving_goes_whatever_the_budget_says():
    found = cluster(NOTHING)
    found.delete("pods", "p")
    assert permission(found) == Permission()


def test_pod_that_has_not_started_goes_only_as_it_is():
    found = cluster(NOTHING, phase="Pending")
    version = found.must("pods", "p")["metadata"]["resourceVersion"]
    assert permission(found) == Permission(resource_version=version)


def test_pod_without_a_budget_goes():
    found = cluster(NOTHING, selector={"matchLabels": {"app": "other"}})
    assert permission(found) == Permission()


def test_absent_pod_is_not_found():
    with pytest.raises(NotFound):
        eviction.judge(cluster(NOTHING).line.views.objects, KEY._replace(name="q"), 0)


def test_two_budgets_are_one_too_many():
    found = cluster(NOTHING)
    budget(found, "c", NOTHING)
    with pytest.raises(Rejected, match="more than one PodDisruptionBudget"):
        permission(found)


@pytest.mark.parametrize(
    ("policy", "healthy", "wanted", "goes"),
    [
        ("IfHealthyBudget", 1, 1, True),
        ("IfHealthyBudget", 1, 2, False),
        ("IfHealthyBudget", 0, 0, False),
        ("AlwaysAllow", 0, 2, True),
        ("", 1, 1, True),
        ("", 1, 2, False),
    ],
)
def test_pod_that_is_not_ready(policy, healthy, wanted, goes):
    told = {"disruptionsAllowed": 0, "currentHealthy": healthy, "desiredHealthy": wanted}
    spec = {"unhealthyPodEvictionPolicy": policy} if policy else {}
    found = cluster(told, ready="False", **spec)
    if goes:
        version = found.must("pods", "p")["metadata"]["resourceVersion"]
        assert permission(found) == Permission(resource_version=version, budget="b")
    else:
        text = f"The disruption budget b needs {wanted} healthy pods and has {healthy} currently"
        assert cause(found) == text


def test_budget_changed_since_it_was_counted_allows_nothing():
    found = cluster({"disruptionsAllowed": 1})
    found.patch("poddisruptionbudgets", "b", {"spec": {"minAvailable": 2}})
    assert cause(found) == "The disruption budget b is still being processed by the server."


@pytest.mark.parametrize(
    ("reason", "message", "healthy", "told"),
    [
        ("SyncFailed", "x", 3, " does not allow evicting pods currently because it failed sync: x"),
        ("InsufficientPods", "", 1, " needs 1 healthy pods and has 1 currently"),
        ("Own", "x", 3, " does not allow evicting pods currently (Own): x"),
        ("Own", "", 3, " does not allow evicting pods currently"),
    ],
)
def test_refusal_says_what_the_status_says(reason, message, healthy, told):
    condition = {
        "type": "DisruptionAllowed",
        "status": "False",
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2026-01-02T03:00:00Z",
    }
    status = {**NOTHING, "currentHealthy": healthy, "conditions": [condition]}
    assert cause(cluster(status)) == f"The disruption budget b{told}"


@pytest.mark.parametrize(
    "status",
    [
        {"disruptionsAllowed": -1},
        {
            "disruptionsAllowed": 1,
            "disruptedPods": {f"p-{n}": "2026-01-02T03:00:00Z" for n in range(2001)},
        },
    ],
)
def test_budget_that_nobody_keeps_up_forbids(status):
    with pytest.raises(Forbidden):
        permission(cluster(status))


def test_allowed_disruption_is_written_and_the_condition_moves_with_the_last_one():
    found = cluster({"disruptionsAllowed": 2, "currentHealthy": 3, "desiredHealthy": 1})
    write = permission(found).write
    assert write is not None
    status = write.tree["status"]
    assert (status["disruptionsAllowed"], status["disruptedPods"]) == (
        1,
        {"p": "2026-01-02T03:00:00Z"},
    )
    assert "conditions" not in status, "only the last disruption changes what is allowed"
    found.update("poddisruptionbudgets", write.tree, "status")
    last = permission(found).write
    assert last is not None
    (condition,) = last.tree["status"]["conditions"]
    assert condition["reason"] == "InsufficientPods"
