"""Single lines of explanations: who is counted and named in them, and what is left out.

Each row states the whole line. Times are seconds after the start of a small cluster.
"""

from typing import Any

import pytest

from app.analysis.explain import lives, quota_use
from app.analysis.explain.hardware import nodes
from app.analysis.explain.nearby import holders, successors
from app.analysis.explain.nearby import nodes as nearby_nodes
from app.analysis.explain.observed import announcements
from app.analysis.explain.reasons import NAMES_MAX
from app.analysis.explain.workloads import members
from app.analysis.explain.workloads.members import PodGroup
from app.analysis.views import LiveViews
from app.domain.log import ObjectKey
from app.domain.objects.profile import Profile
from tests.cluster import Cluster


def views_of(cluster: Cluster) -> LiveViews:
    views = LiveViews(Profile())
    for event in cluster.line.events:
        views.fold(event)
    return views


def pod_key(name: str, namespace: str = "default") -> ObjectKey:
    return ObjectKey("", "pods", namespace, name)


# nodes


def test_pod_of_a_driver_that_fails_on_a_node_without_slices_is_named():
    """A DaemonSet counts that has a pod on each node with slices; of its pods, one that fails."""
    cluster = Cluster()
    labels = {"app": "driver"}
    spec = {"containers": [{"name": "plugin", "image": "example.com/d:1"}]}
    made = {"metadata": {"labels": labels}, "spec": spec}
    for name in ("n1", "n2", "n3"):
        cluster.node(name)
    cluster.slice("n1", 1)
    cluster.slice("n3", 1)
    tree = {"selector": {"matchLabels": labels}, "template": made}
    cluster.create("apps/v1", "DaemonSet", "driver", spec=tree)
    cluster.settle().wait(5)
    own = next(
        name
        for name in cluster.names("pods")
        if cluster.must("pods", name)["spec"]["nodeName"] == "n2"
    )
    (plain,) = nearby_nodes.without_driver(views_of(cluster), ["n2"])
    assert plain.children == ()
    waits = {"waiting": {"reason": "ImagePullBackOff"}}
    report = {"name": "plugin", "image": "", "imageID": "", "ready": False, "restartCount": 0}
    status = {"phase": "Pending", "containerStatuses": [{**report, "state": waits}]}
    cluster.patch("pods", own, {"status": status}, subresource="status")
    (answer,) = nearby_nodes.without_driver(views_of(cluster), ["n2"])
    assert answer.text == "node n2 has no slice of any driver, unlike 2 other nodes"
    assert [one.text for one in answer.children] == [
        "DaemonSet default/driver has a pod on each node with slices and on n2, where "
        f"{own} fails: container plugin waits: ImagePullBackOff"
    ]
    assert [one.text for one in nearby_nodes.failing(views_of(cluster))] == [
        f"pod default/{own} of DaemonSet driver on node n2 fails: container plugin waits: "
        "ImagePullBackOff"
    ]


def condition(status: str, **more: str) -> dict[str, Any]:
    return {"status": {"conditions": [{"type": "Ready", "status": status, **more}]}}


SINCE = "2026-01-02T03:00:00Z"


@pytest.mark.parametrize(
    ("node", "words"),
    [
        ({}, ""),
        (condition("True", reason="KubeletReady"), ""),
        ({"status": {"conditions": [{"type": "MemoryPressure", "status": "False"}]}}, ""),
        (condition("False"), "is not ready since an unknown time"),
        (condition("Unknown", lastTransitionTime=SINCE), f"is not ready since {SINCE}"),
        (
            condition("False", lastTransitionTime=SINCE, reason="KubeletNotReady"),
            f"is not ready since {SINCE} (KubeletNotReady)",
        ),
        (
            condition("False", lastTransitionTime=SINCE, reason="R", message="no network"),
            f"is not ready since {SINCE} (R: no network)",
        ),
        (
            condition("False", lastTransitionTime=SINCE, message="no network"),
            f"is not ready since {SINCE} (no network)",
        ),
    ],
)
def test_node_is_not_ready_since_its_condition_says_so(node: dict[str, Any], words: str) -> None:
    assert lives.not_ready(node) == words


@pytest.mark.parametrize(
    ("pods", "finished", "text", "count"),
    [
        ([], [], "no pod is on it", 0),
        (["a"], [], "1 pod is on it: default/a", 1),
        (["a", "b"], [], "2 pods are on it: default/a, default/b", 2),
        (["a", "b"], ["b"], "2 pods are on it, 1 of them finished: default/a, default/b", 2),
        (["a"], ["a"], "1 pod is on it, 1 of them finished: default/a", 1),
    ],
)
def test_pods_of_a_node_are_those_that_are_bound_to_it(
    pods: list[str], finished: list[str], text: str, count: int
) -> None:
    cluster = Cluster()
    cluster.node("n1")
    cluster.node("n2")
    for name in pods:
        cluster.pod(name, nodeName="n1")
    cluster.pod("elsewhere", nodeName="n2")
    cluster.pod("waits", nodeSelector={"no": "node"})
    cluster.settle()
    for name in finished:
        cluster.finish(name)
    line = nodes._pods(views_of(cluster), "n1")
    assert line.text == text
    assert not pods or line.count == count
    assert line.denies == (() if pods else ("pods",))


# quotas


REFUSAL = (
    'claims "c" is forbidden: exceeded quota: few, requested: '
    "gpu.deviceclass.resource.k8s.io/devices=2,count/resourceclaims.resource.k8s.io=1, "
    "used: gpu.deviceclass.resource.k8s.io/devices=3, limited: x=1"
)
DEVICES = "gpu.deviceclass.resource.k8s.io/devices"
CLAIMS = "count/resourceclaims.resource.k8s.io"


def test_refused_claim_needs_what_is_used_now_and_what_it_asks_for() -> None:
    cluster = Cluster()
    cluster.device_class()
    cluster.claim("a", count=3)
    cluster.claim("b")
    views = views_of(cluster)
    assert list(quota_use._needed(views, "default", REFUSAL)) == [
        (DEVICES, 2 * 10**9, 4 * 10**9),
        (CLAIMS, 10**9, 2 * 10**9),
    ]
    assert list(quota_use._needed(views, "other", REFUSAL)) == [
        (DEVICES, 2 * 10**9, 0),
        (CLAIMS, 10**9, 0),
    ]
    assert list(quota_use._needed(views, "default", "is forbidden: no")) == []
    broken = REFUSAL.replace("devices=2", "devices=many")
    assert [name for name, *_ in quota_use._needed(views, "other", broken)] == [CLAIMS]


@pytest.mark.parametrize(
    ("hard", "refusal", "limits"),
    [
        ({DEVICES: "4", CLAIMS: "9"}, REFUSAL, [(DEVICES, "4"), (CLAIMS, "9")]),
        ({CLAIMS: "9", "pods": "1"}, REFUSAL, [(CLAIMS, "9")]),
        ({}, REFUSAL, []),
        ({DEVICES: "4"}, "is forbidden: no", []),
    ],
)
def test_limits_that_a_refused_write_exceeded_are_those_of_now(
    hard: dict[str, str], refusal: str, limits: list[tuple[str, str]]
) -> None:
    assert list(quota_use.limits_exceeded({"spec": {"hard": hard}}, refusal)) == limits


# pods of workloads


def ended(code: int, reason: str = "") -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "reason": reason}}


def containers(*states: dict[str, Any], field: str = "containerStatuses") -> dict[str, Any]:
    return {field: [{"name": f"c{n}", "state": state} for n, state in enumerate(states)]}


UNKNOWN = "for a reason that its status does not show"


@pytest.mark.parametrize(
    ("status", "why"),
    [
        ({}, UNKNOWN),
        ({"reason": "Evicted"}, "Evicted"),
        ({"message": "no room"}, "no room"),
        ({"reason": "Evicted", "message": "no room", **containers(ended(1))}, "Evicted: no room"),
        (containers(ended(0)), UNKNOWN),
        (containers(ended(0), ended(3)), "exit code 3"),
        (containers(ended(137, "OOMKilled"), ended(1)), "exit code 137 (OOMKilled)"),
        (containers({"running": {}}), UNKNOWN),
        (
            {**containers(ended(2), field="initContainerStatuses"), **containers(ended(1))},
            "exit code 2",
        ),
    ],
)
def test_failure_of_a_pod_is_its_reason_or_the_first_exit_code(
    status: dict[str, Any], why: str
) -> None:
    assert members.failure({"status": status}) == why


def restarted(
    cluster: Cluster, name: str, *counts: int, last: dict[str, Any] | None = None
) -> None:
    statuses = [
        {"name": f"c{number}", "restartCount": count, "lastState": last or {}, "image": "i",
         "imageID": "", "ready": True}
        for number, count in enumerate(counts)
    ]  # fmt: skip
    status = {"status": {"containerStatuses": statuses}}
    cluster.patch("pods", name, status, subresource="status")


def lines_of_restarts(cluster: Cluster, *names: str) -> list[str]:
    keys = [pod_key(name) for name in names]
    return [each.text for each in members.restarts(views_of(cluster), keys)]


def test_containers_that_were_restarted_most_come_first() -> None:
    cluster = Cluster()
    for name in ("a", "b", "c"):
        cluster.pod(name)
    restarted(cluster, "a", 1, last=ended(1))
    restarted(cluster, "b", 3, 0, last=ended(137, "OOMKilled"))
    assert lines_of_restarts(cluster, "a", "b", "c", "gone") == [
        "container c0 of pod default/b was restarted 3 times, last after exit code 137 (OOMKilled)",
        "container c0 of pod default/a was restarted 1 time, last after exit code 1",
    ]
    assert lines_of_restarts(cluster, "a") == [
        "container c0 of pod default/a was restarted 1 time, last after exit code 1"
    ]
    restarted(cluster, "c", 7)
    assert lines_of_restarts(cluster, "c") == [
        "container c0 of pod default/c was restarted 7 times"
    ]


@pytest.mark.parametrize(
    ("more", "text"),
    [
        (0, ""),
        (1, "1 more container was restarted"),
        (2, "2 more containers were restarted"),
        (10, "10 more containers were restarted"),
        (11, "11 more containers were restarted"),
    ],
)
def test_restarted_containers_that_are_not_named_are_counted(more: int, text: str) -> None:
    cluster = Cluster()
    cluster.pod("a")
    restarted(cluster, "a", *[1] * (NAMES_MAX + more))
    lines = lines_of_restarts(cluster, "a")
    assert lines[NAMES_MAX:] == ([text] if text else [])


def group(state: str, *names: str) -> PodGroup:
    return PodGroup(state=state, pods=tuple(map(pod_key, names)), is_held_up=state != "running")


@pytest.mark.parametrize(
    ("resource", "replicas", "groups", "text"),
    [
        ("replicasets", 2, [], "0 of 2 wanted pods run"),
        ("replicasets", 2, [group("running", "a")], "1 of 2 wanted pods runs"),
        ("replicasets", 1, [group("running", "a", "b")], "2 of 1 wanted pod run"),
        ("replicasets", None, [group("running", "a")], "1 of 1 wanted pod runs"),
        ("replicasets", 0, [], "no pod is wanted"),
        ("replicasets", 0, [group("waiting: x", "a")], "0 of 0 wanted pods run"),
        ("statefulsets", 0, [], "no pod is wanted"),
        ("deployments", 0, [], "no pod is wanted"),
        ("jobs", None, [], ""),
        ("jobs", 0, [], ""),
        ("jobs", 5, [group("running", "a"), group("failed: x", "b")], "1 of 2 pods runs"),
        ("daemonsets", None, [group("running", "a", "b")], "2 of 2 pods run"),
    ],
)
def test_workload_is_summed_up_by_the_pods_that_run(
    resource: str, replicas: int | None, groups: list[PodGroup], text: str
) -> None:
    key = ObjectKey("batch" if resource == "jobs" else "apps", resource, "default", "w")
    tree = {"spec": {} if replicas is None else {"replicas": replicas}}
    assert members.summary(views_of(Cluster()), key, tree, groups) == text


@pytest.mark.parametrize(
    ("revisions", "text"),
    [
        (["new"], "1 of 1 pod runs"),
        (["old"], "1 of 1 pod runs, with an older template"),
        (["old", "new"], "2 of 2 pods run, 1 of them with an older template"),
        (["old", "old"], "2 of 2 pods run, both of them with an older template"),
        (["old"] * 3, "3 of 3 pods run, all of them with an older template"),
        (["old", "old", "new"], "3 of 3 pods run, 2 of them with an older template"),
        (["", "old"], "2 of 2 pods run, 1 of them with an older template"),
    ],
)
def test_pods_of_an_older_template_are_told_apart(revisions: list[str], text: str) -> None:
    cluster = Cluster()
    names = [f"p{number}" for number in range(len(revisions))]
    for name, revision in zip(names, revisions, strict=True):
        cluster.pod(name)
        labels = {"controller-revision-hash": revision} if revision else {}
        cluster.patch("pods", name, {"metadata": {"labels": labels}})
    key = ObjectKey("apps", "statefulsets", "default", "w")
    tree = {"spec": {"replicas": len(names)}, "status": {"updateRevision": "new"}}
    found = members.summary(views_of(cluster), key, tree, [group("running", *names)])
    assert found == text.replace("pods run", "wanted pods run").replace(
        "pod runs", "wanted pod runs"
    )


# claims


def test_device_that_is_published_in_another_pool_since_is_the_successor() -> None:
    """It has the name of the device that the claim holds, which is published no more."""
    cluster = Cluster()
    for name in ("n1", "n2"):
        cluster.node(name)
    cluster.device_class()
    cluster.slice("n1", 1)
    cluster.claim("c")
    cluster.pod("p", claim="c")
    cluster.settle().wait(5)

    def found() -> list[tuple[str, str, str]]:
        views = views_of(cluster)
        claim = cluster.must("resourceclaims", "c")
        return [
            ("/".join(each.held[1:]), "/".join(each.published[1:]), each.slice.name)
            for each in successors.of_claim(views, claim)
        ]

    cluster.slice("n1", 1, name="early", pool="early")
    assert found() == [], "its own is published"
    cluster.delete("resourceslices", "n1-slice")
    assert found() == [("n1/gpu-0", "early/gpu-0", "early")]
    cluster.delete("resourceslices", "early")
    cluster.slice("n2", 1, name="away", pool="away")
    assert found() == [], "for another node"
    cluster.slice("n1", [{"name": "other"}], name="named", pool="named")
    assert found() == [], "another name"
    cluster.slice("n1", 2, name="late", pool="late")
    assert found() == [("n1/gpu-0", "late/gpu-0", "late")]


def test_slice_that_is_older_than_the_allocation_has_no_successor() -> None:
    cluster = Cluster()
    cluster.node("n1")
    cluster.device_class()
    cluster.slice("n1", 1)
    cluster.slice("n1", 1, name="other", pool="other")
    cluster.wait(5).claim("c")
    cluster.pod("p", claim="c")
    cluster.settle()
    (device,) = cluster.devices_of("c")
    held = device.partition("/")[0]
    cluster.delete("resourceslices", "n1-slice" if held == "n1" else "other")
    claim = cluster.must("resourceclaims", "c")
    assert list(successors.of_claim(views_of(cluster), claim)) == []


def used_by(cluster: Cluster, *names: str) -> list[str]:
    return [each.text for each in holders.users(views_of(cluster), names)]


def test_pods_that_use_claims_are_named() -> None:
    cluster = Cluster(namespaces=("default", "team"))
    cluster.node("n1")
    cluster.device_class()
    cluster.slice("n1", 3)
    cluster.template()
    cluster.pod("made", template="gpu")
    cluster.claim("own")
    cluster.pod("shares", claim="own")
    spec = cluster.must("resourceclaims", "own")["spec"]
    cluster.apply(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "theirs", "namespace": "team"},
            "spec": spec,
        }
    )
    cluster.pod("q", namespace="team", claim="theirs")
    cluster.settle()
    made = cluster.claim_of("made")
    assert used_by(cluster, f"default/{made}", "default/own", "team/theirs", "team/none") == [
        f"claim default/{made} is used by pod default/made on node n1",
        "claim default/own is used by pod default/shares on node n1",
        "claim team/theirs is used by pod team/q on node n1",
    ]
    views = views_of(cluster)
    (line,) = holders.users(views, ["team/theirs"])
    key = ObjectKey("resource.k8s.io", "resourceclaims", "team", "theirs")
    event = views.objects.event(key)
    assert event is not None
    assert (line.about, line.revision, line.is_kept) == (key, event.revision, True)


# what components say


def said(cluster: Cluster, name: str, reason: str, text: str, **more: Any) -> None:
    given = {"source": {"component": "autoscaler"}, "count": 1, **more}
    about = {"kind": "Pod", "namespace": "default", "name": "p", **given.pop("about", {})}
    cluster.create(
        "v1",
        "Event",
        name,
        type="Normal",
        reason=reason,
        message=text,
        involvedObject=about,
        **given,
    )


def test_newest_event_of_each_component_and_reason_is_quoted() -> None:
    cluster = Cluster()
    cluster.pod("p", nodeSelector={"no": "node"})
    said(cluster, "e1", "Tried", "first")
    said(cluster, "e2", "Tried", "second", count=3)
    said(cluster, "e3", "Waits", "for a node", source={"component": "operator"})
    said(cluster, "e4", "Waits", "of another pod", about={"name": "q"})
    said(cluster, "e5", "Waits", "of a pod before", about={"uid": "gone"})
    said(cluster, "e6", "Pulled", "an image", source={"component": "kubelet"})
    said(cluster, "e7", "FailedScheduling", "no node", source={"component": "other"})
    said(cluster, "e8", "Silent", "")
    said(cluster, "e9", "Claims", "of a claim", about={"kind": "ResourceClaim"})
    views = views_of(cluster)
    found = list(announcements.about(views.objects, cluster.must("pods", "p")))
    assert [each.text for each in found] == [
        "operator said: Waits: for a node",
        "autoscaler said, 3 times: Tried: second",
    ]
    assert [each.about.name for each in found if each.about] == ["e3", "e2"]
    assert all(each.is_kept for each in found)
