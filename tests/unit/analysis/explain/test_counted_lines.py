"""Lines that count and name objects: of namespaces, budgets, classes, slices, nodes and workloads.

Each states the whole line, also where one object is left, and where more are than are named.
"""

from collections.abc import Callable
from typing import Any

import pytest

from app.analysis.explain.hardware import classes, pools
from app.analysis.explain.nearby import holders, successors
from app.analysis.explain.nearby import nodes as nearby_nodes
from app.analysis.explain.nearby.successors import Successor
from app.analysis.explain.reasons import NAMES_MAX, Reason
from app.analysis.explain.workloads import budgets, contents, members
from app.analysis.explain.workloads.contents import SHOWN_MAX
from app.domain.allocation.quirks import Quirks
from app.domain.controllers.registry import ControllerOptions
from app.domain.log import Event, ObjectKey
from app.domain.values.timestamps import Instant
from tests.cluster import DRIVER, Cluster
from tests.unit.analysis.explain.test_small_lines import pod_key, views_of

KEPT = {"metadata": {"finalizers": ["example.com/keep"]}}
ENDING = {"metadata": {"deletionTimestamp": "2026-01-02T03:00:00Z"}}


def sees_all(key: ObjectKey) -> bool:
    return True


def texts(found: Any) -> list[str]:
    return [each.text for each in found]


# namespaces


def remaining(
    cluster: Cluster,
    tree: dict[str, Any] | None = None,
    sees: Callable[[ObjectKey], bool] = sees_all,
) -> list[str]:
    given = ENDING if tree is None else tree
    return texts(contents.remaining(views_of(cluster), "team", given, sees))


def apply(cluster: Cluster, kind: str, name: str, spec: dict[str, Any], **more: Any) -> None:
    version = "v1" if kind in ("Pod", "ConfigMap") else "resource.k8s.io/v1"
    metadata = {"name": name, "namespace": "team", **more}
    cluster.apply({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec})


POD = {"containers": [{"name": "c", "image": "i"}]}
ASKS = {"devices": {"requests": [{"name": "g", "exactly": {"deviceClassName": "gpu", "count": 1}}]}}


def test_objects_that_keep_a_namespace_are_told_with_what_they_wait_for() -> None:
    cluster = Cluster(namespaces=("default", "team"))
    cluster.node("n1")
    apply(cluster, "Pod", "runs", {**POD, "nodeName": "n1"})
    apply(cluster, "Pod", "kept", POD, finalizers=["example.com/a", "example.com/b"])
    apply(cluster, "Pod", "goes", POD)
    apply(cluster, "ResourceClaim", "c", ASKS, finalizers=["example.com/c"])
    apply(cluster, "ResourceClaimTemplate", "t", {"spec": ASKS})
    assert remaining(cluster) == [
        "pod kept is still there: finalizers example.com/a, example.com/b",
        "pod runs is still there: the kubelet of node n1 has not ended it",
        "claim c is still there: finalizer example.com/c",
        "still to be deleted: pod goes, template t",
    ]
    assert remaining(cluster, {"metadata": {}}) == [], "it is not being deleted"
    hidden = remaining(cluster, sees=lambda key: key.resource != "pods")
    assert hidden == [
        "claim c is still there: finalizer example.com/c",
        "still to be deleted: template t",
    ]


def test_claim_waits_for_its_finalizers_and_its_users() -> None:
    key = ObjectKey("resource.k8s.io", "resourceclaims", "team", "c")
    reserved = [{"resource": "pods", "name": name, "uid": name} for name in ("p", "q")]
    tree = {"metadata": {"finalizers": ["f"]}, "status": {"reservedFor": reserved}}
    assert contents._waits_for(key, tree) == "finalizer f, reserved for p, q"
    assert contents._waits_for(pod_key("p"), tree) == "finalizer f"
    assert contents._waits_for(key, {"status": {"reservedFor": reserved}}) == "reserved for p, q"


@pytest.mark.parametrize(
    ("more", "text"),
    [
        (0, None),
        (1, "1 more object waits for something"),
        (2, "2 more objects wait for something"),
    ],
)
def test_objects_that_are_not_named_are_counted(more: int, text: str | None) -> None:
    cluster = Cluster(namespaces=("default", "team"))
    for number in range(SHOWN_MAX + more):
        apply(cluster, "Pod", f"p{number:02}", POD, finalizers=["example.com/keep"])
    found = remaining(cluster)
    assert found[0] == "pod p00 is still there: finalizer example.com/keep"
    assert found[SHOWN_MAX:] == ([text] if text else [])


# budgets


def budget(status: dict[str, Any], *ready: bool) -> list[Reason]:
    cluster = Cluster()
    for number, is_ready in enumerate(ready):
        cluster.pod(f"p{number}")
        cluster.patch("pods", f"p{number}", {"metadata": {"labels": {"app": "web"}}})
        if is_ready:
            conditions = [{"type": "Ready", "status": "True"}]
            cluster.patch(
                "pods", f"p{number}", {"status": {"conditions": conditions}}, subresource="status"
            )
    cluster.pod("other")
    key = ObjectKey("policy", "poddisruptionbudgets", "default", "b")
    tree = {"spec": {"selector": {"matchLabels": {"app": "web"}}}, "status": status}
    return list(budgets.of_budget(views_of(cluster), key, tree))


def observed(healthy: int, wanted: int, allowed: int) -> dict[str, int]:
    return {
        "observedGeneration": 1,
        "currentHealthy": healthy,
        "desiredHealthy": wanted,
        "disruptionsAllowed": allowed,
    }


@pytest.mark.parametrize(
    ("status", "text"),
    [
        ({}, None),
        (observed(3, 2, 1), "3 pods healthy, 2 wanted: 1 pod may be evicted now"),
        (observed(4, 2, 2), "4 pods healthy, 2 wanted: 2 pods may be evicted now"),
        (observed(2, 2, 0), "2 pods healthy, 2 wanted: no pod may be evicted now"),
        (observed(1, 2, 0), "1 pod healthy, 2 wanted: 1 pod missing, so no eviction is allowed"),
        (observed(0, 2, 1), "0 pods healthy, 2 wanted: 2 pods missing, so no eviction is allowed"),
    ],
)
def test_budget_says_how_many_may_be_evicted(status: dict[str, int], text: str | None) -> None:
    found = budget(status, True, True)
    assert texts(found) == ["it protects 2 pods: p0, p1", *([text] if text else [])]
    assert [child.text for child in found[0].children] == []


@pytest.mark.parametrize(
    ("ready", "line", "unready"),
    [
        ([], "it selects no pod, so it protects none", []),
        ([True], "it protects 1 pod: p0", []),
        ([False], "it protects 1 pod: p0", ["pod p0 is not ready"]),
        ([False, True, False], "it protects 3 pods: p0, p1, p2", ["pods p0, p2 are not ready"]),
    ],
)
def test_pods_of_a_budget_that_are_not_ready_are_named(
    ready: list[bool], line: str, unready: list[str]
) -> None:
    (first,) = budget({}, *ready)
    assert first.text == line
    assert texts(first.children) == unready


# classes


def users(cluster: Cluster, sees: Callable[[ObjectKey], bool] = sees_all) -> list[str]:
    steps = classes.users(views_of(cluster), "gpu", sees)
    while True:
        try:
            next(steps)
        except StopIteration as ended:
            return texts(ended.value)


def test_claims_and_templates_that_name_a_class_are_counted() -> None:
    cluster = Cluster()
    cluster.node("n1")
    cluster.device_class()
    cluster.device_class("nic")
    assert users(cluster) == ["no claim and no template names it"]
    hidden = users(cluster, lambda key: False)
    assert hidden == ["no claim names it, and no template that you may read"]
    cluster.slice("n1", 1)
    cluster.claim("a")
    assert users(cluster) == ["used by 1 claim, 0 allocated: default/a"]
    cluster.claim("b")
    cluster.claim("other", class_name="nic")
    cluster.pod("p", claim="b")
    cluster.settle()
    cluster.template("one")
    assert users(cluster) == [
        "used by 2 claims, 1 allocated: default/a, default/b",
        "used by 1 template: default/one",
    ]
    cluster.template("two")
    assert users(cluster)[1:] == ["used by 2 templates: default/one, default/two"]
    assert len(users(cluster, lambda key: False)) == 1, "templates need a right to be read"


# slices


def of_slice(cluster: Cluster, name: str) -> list[str]:
    views = views_of(cluster)
    key = ObjectKey("resource.k8s.io", "resourceslices", "", name)
    events = [each for each in cluster.line.events if each.key == key][::-1]
    return texts(pools.of_slice(views, events, views.objects.get(key) or {}, Quirks()))


def test_slice_says_what_is_used_of_its_devices() -> None:
    cluster = Cluster()
    cluster.node("n1")
    cluster.device_class()
    cluster.slice("n1", 2)
    cluster.claim("c")
    cluster.pod("p", claim="c")
    pool, made, *rest = of_slice(cluster, "n1-slice")
    assert f"{DRIVER}/n1" in pool
    assert made.startswith("published, by alice at 2026-01-02T03:00:00Z")
    assert rest == ["0 of 2 devices are allocated"]
    cluster.settle()
    assert of_slice(cluster, "n1-slice")[2:] == ["1 of 2 devices is allocated, to default/c"]
    cluster.wait(5).patch("resourceslices", "n1-slice", {"metadata": {"labels": {"a": "b"}}})
    changed = of_slice(cluster, "n1-slice")[2]
    assert changed.startswith("last changed, by alice at 2026-01-02T03:00:05Z")


@pytest.mark.parametrize(
    ("is_held", "text"),
    [(False, "its only device is free"), (True, "its only device is allocated, to default/c")],
)
def test_only_device_of_a_slice_is_free_or_allocated(is_held: bool, text: str) -> None:
    cluster = Cluster()
    cluster.node("n1")
    cluster.device_class()
    cluster.slice("n1", [{"name": "a", "taints": [{"key": "k", "effect": "NoSchedule"}]}])
    cluster.slice("n1", 0, name="empty", pool="empty")
    cluster.claim("c", tolerations=[{"operator": "Exists"}])
    if is_held:
        cluster.pod("p", claim="c")
    cluster.settle()
    assert of_slice(cluster, "n1-slice")[2:] == [text, "1 device is tainted"]
    assert of_slice(cluster, "empty")[2:] == ["no device is published here"]


def test_slice_of_an_older_generation_is_obsolete() -> None:
    cluster = Cluster()
    cluster.node("n1")
    cluster.slice("n1", 1, name="old")
    cluster.slice("n1", 1, name="new", generation=2)
    first, *_ = of_slice(cluster, "old")
    assert first.startswith(
        f"obsolete: it is of generation 1 of pool {DRIVER}/n1, and generation 2 is there "
        "(slice new)"
    )


# nodes


def test_full_node_takes_so_many_pods_and_has_some() -> None:
    cluster = Cluster()
    cluster.node("n1", pods=2)
    cluster.node("n2", pods=1)
    for name in ("a", "b", "done"):
        cluster.pod(name, nodeName="n1")
    cluster.finish("done")
    views = views_of(cluster)
    assert list(nearby_nodes.full(views, [])) == []
    found = list(nearby_nodes.full(views, ["n1", "n2", "gone", "more"]))
    assert texts(found) == [
        "node n1 takes 2 pods at a time and has 2 pods",
        "node n2 takes 1 pod at a time and has 0 pods",
        "node gone takes 0 pods at a time and has 0 pods",
    ]
    assert len(found) == NAMES_MAX


# claims


def moved(number: int, pool: str = "new") -> Successor:
    held, published = ((DRIVER, name, f"gpu-{number}") for name in ("old", pool))
    return Successor(held, published, ObjectKey("resource.k8s.io", "resourceslices", "", "s"))


@pytest.mark.parametrize(
    ("found", "text"),
    [
        ([], ""),
        (
            [moved(0)],
            "1 device of the same name is published for the same node in another pool since, and "
            f"other claims can get it: {DRIVER}/old → {DRIVER}/new",
        ),
        (
            [moved(0), moved(1)],
            "2 devices of the same names are published for the same node in another pool since, "
            f"and other claims can get them: {DRIVER}/old → {DRIVER}/new",
        ),
        (
            [moved(0), moved(1, "late")],
            "2 devices of the same names are published for the same node in another pool since, "
            f"and other claims can get them: {DRIVER}/old → {DRIVER}/new, "
            f"{DRIVER}/old → {DRIVER}/late",
        ),
    ],
)
def test_devices_in_other_pools_are_summed_up(found: list[Successor], text: str) -> None:
    assert successors.summary(found) == text


def test_workloads_with_the_most_holders_are_named() -> None:
    # The Jobs are not there, and the garbage collector would delete what they own.
    cluster = Cluster(options=ControllerOptions(off=frozenset({"garbage"})))
    cluster.node("n1")
    cluster.device_class()
    cluster.slice("n1", 8)
    owners = {"a": 4, "b": 2, "c": 1}
    names = []
    for owner, count in owners.items():
        for number in range(count):
            name = f"{owner}{number}"
            cluster.claim(name)
            cluster.pod(name, claim=name)
            reference = {"apiVersion": "batch/v1", "kind": "Job", "name": owner, "uid": owner}
            metadata = {"ownerReferences": [{**reference, "controller": True}]}
            cluster.patch("pods", name, {"metadata": metadata})
            names.append(f"default/{name}")
    cluster.claim("alone")
    cluster.pod("alone", claim="alone")
    cluster.settle()
    views = views_of(cluster)
    line = holders._workloads(views, [*names, "default/alone", "default/none"])
    assert line.text == (
        "of 9 claims that have the devices, 4 of job default/a, 2 of job default/b, 3 of others"
    )
    assert line.count == len(names) + 2
    assert holders._workloads(views, names[:4]).text == (
        "all 4 claims that have the devices are of job default/a"
    )
    claim = cluster.must("resourceclaims", "alone")
    assert holders._owner_of(views, "default", claim, {}) == "single pods of namespace default"
    assert holders._owner_of(views, "default", {}, {}) == "no pod in namespace default"


# the ends of pods


def lives_of(cluster: Cluster, name: str) -> list[Event]:
    return [each for each in cluster.line.events if each.key == pod_key(name)][::-1]


def test_pods_that_are_gone_are_told_with_what_ended_them() -> None:
    cluster = Cluster()
    cluster.node("n1")
    for name in ("a", "b", "failed", "done"):
        cluster.pod(name)
    cluster.settle()
    cluster.finish("failed", "Failed")
    cluster.finish("done")
    for name in ("a", "b", "failed", "done"):
        cluster.wait(1).kill(name)
    ends = [members.ended(lives_of(cluster, name)) for name in ("a", "b", "failed", "done")]
    assert [each.words for each in ends] == [
        "deleted by alice",
        "deleted by alice",
        "deleted by alice after they had failed: for a reason that its status does not show",
        "deleted by alice after they had finished",
    ]
    groups = members.together(ends)
    assert [[each.end.key.name for each in group] for group in groups] == [
        ["done"], ["failed"], ["b", "a"],
    ]  # fmt: skip
    lines = [members.ended_reason(group) for group in groups]
    assert texts(lines) == [
        "1 pod was deleted by alice after it had finished: default/done, "
        "gone at 2026-01-02T03:00:04Z",
        "1 pod was deleted by alice after it had failed: for a reason that its status does not "
        "show: default/failed, gone at 2026-01-02T03:00:03Z",
        "2 pods were deleted by alice: default/b, default/a, the last at 2026-01-02T03:00:02Z",
    ]
    assert [line.about for line in lines] == [pod_key("done"), pod_key("failed"), None]


def state(cluster: Cluster, name: str, unasked: str = "") -> tuple[bool, str]:
    views = views_of(cluster)
    tree = cluster.must("pods", name)
    now = cluster.line.now
    return members._state(views, tree, lambda _: unasked, {}, now, lambda: Instant(0))


def test_state_of_a_pod_is_what_holds_it_up_or_that_it_runs() -> None:
    cluster = Cluster()
    cluster.node("n1")
    cluster.pod("waits", requests={"cpu": "99"})
    cluster.pod("p")
    cluster.settle()
    assert state(cluster, "waits") == (True, "waiting: Insufficient cpu")
    assert state(cluster, "waits", "it has gates") == (True, "waiting: it has gates")
    assert state(cluster, "p") == (True, "not started on its node")
    cluster.finish("p", "Running")
    assert state(cluster, "p") == (False, "running")
    cluster.finish("p", "Failed")
    assert state(cluster, "p") == (True, "failed: for a reason that its status does not show")
    cluster.finish("waits")
    assert state(cluster, "waits") == (False, "finished")
    cluster.patch("pods", "p", KEPT)
    cluster.delete("pods", "p")
    is_held_up, text = state(cluster, "p")
    assert not is_held_up
    assert text.startswith("being deleted: ")
