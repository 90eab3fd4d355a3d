"""Pods of DaemonSets are named whose account could publish slices for a node, and only these."""

import pytest

from app.analysis.explain.nearby import publishers
from app.domain.log import Actor, ObjectKey
from app.domain.objects.write.commands import CreateObject
from tests.cluster import Cluster
from tests.unit.analysis.explain.test_small_lines import views_of
from tests.web.invented import node, slice_of, space
from tests.web.quiet_incidents import daemons, role_of

D = "gpu.test"
PLUGIN, OTHER = "system:serviceaccount:drivers:plugin", "system:serviceaccount:drivers:other"
SLICES = "resourceslices"
MAY = "ServiceAccount drivers/plugin may write ResourceSlices by ClusterRole plugin-role"
HAS = "ServiceAccount drivers/plugin has published slices for others, such as s-a"
RUNS = "of DaemonSet plugin runs as it: look into its log"


def published(on, by, **where):
    made = slice_of(f"s-{on}", D, on, [{"name": "x"}], **(where or {"nodeName": on}))
    return by, made


ROWS = [
    ("role", role_of("plugin", SLICES), [], MAY),
    ("role for all verbs", role_of("plugin", SLICES, verbs=["*"]), [], MAY),
    ("role that reads", role_of("plugin", SLICES, verbs=["get", "list"]), [], ""),
    ("role for everything", role_of("plugin", "*", verbs=["*"], group="*"), [], ""),
    ("role for a resource of another group", role_of("plugin", SLICES, group="x.test"), [], ""),
    ("role of another account", role_of("other", SLICES), [], ""),
    ("author of another slice", [], [published("a", PLUGIN)], HAS),
    ("author of its slice", [], [published("a", PLUGIN), published("b", PLUGIN)], ""),
    ("others wrote its slice", role_of("plugin", SLICES), [published("b", OTHER)], MAY),
    ("nobody knows who wrote its slice", role_of("plugin", SLICES), [published("b", "")], ""),
    ("a person wrote its slice", role_of("plugin", SLICES), [published("b", "alice")], ""),
    ("slice for all nodes", [], [published("a", PLUGIN, allNodes=True)], ""),
]


def played(objects, slices):
    cluster = Cluster()
    for tree in (space("drivers"), node("a"), node("b"), *objects, daemons("plugin")):
        cluster.apply(tree)
    for user, tree in slices:
        key = ObjectKey("resource.k8s.io", SLICES, "", tree["metadata"]["name"])
        made = CreateObject(key=key, version="v1", tree=tree)
        cluster.line.submit(made, actor=Actor(user=user))
    cluster.settle().wait(5)
    for name in pods_of(cluster):
        report(cluster, name, {"phase": "Running"})
    return cluster


def pods_of(cluster):
    """The pods of the driver, each with its node."""
    keys = views_of(cluster).objects.keys("", "pods")
    return {key.name: cluster.must("pods", key.name, "drivers")["spec"]["nodeName"] for key in keys}


def report(cluster, name, status):
    cluster.patch("pods", name, {"status": status}, subresource="status", namespace="drivers")


@pytest.mark.parametrize(
    ("objects", "slices", "told"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_account_that_could_publish_for_a_node_and_does_not_is_named(objects, slices, told):
    views = views_of(played(objects, slices))
    texts = [reason.text for reason in publishers.silent(views, ["b"], ())]
    assert len(texts) == bool(told)
    for text in texts:
        assert text.startswith(f"{told}, and none for node b, where pod drivers/plugin-")
        assert text.endswith(RUNS)


def test_pods_that_are_named_already_are_not_named_again():
    views = views_of(played(role_of("plugin", SLICES), []))
    (reason,) = publishers.silent(views, ["b"], ())
    assert [*publishers.silent(views, ["b"], {reason.about})] == []
    assert [*publishers.silent(views, [], ())] == []


@pytest.mark.parametrize(
    ("status", "told"),
    [
        ({"phase": "Running", "containerStatuses": [
            {"name": "main", "image": "", "imageID": "", "ready": False, "restartCount": 3,
             "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]},
         "fails: container main waits: CrashLoopBackOff and was restarted 3 times"),
        ({"phase": "Pending"}, "has not started there"),
    ],
)  # fmt: skip
def test_pods_in_another_state_have_a_sentence_of_their_own(status, told):
    cluster = played(role_of("plugin", SLICES), [])
    (own,) = (name for name, on in pods_of(cluster).items() if on == "b")
    report(cluster, own, status)
    texts = [reason.text for reason in publishers.silent(views_of(cluster), ["a", "b"], ())]
    (running,) = (text for text in texts if text.endswith(RUNS))
    (other,) = (text for text in texts if text != running)
    assert "none for node a, where" in running
    assert other == (
        f"{MAY}, and none for node b, where pod drivers/{own} of DaemonSet plugin {told}"
    )
