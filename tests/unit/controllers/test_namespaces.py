"""Namespaces that end, and those that come after them under the same name."""

import pytest

from app.domain.controllers.garbage.namespaces import NamespaceReconciler
from app.domain.log import Event
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import SECOND, Instant
from tests.cluster import T0, Cluster, claim_spec
from tests.conformance.soak_recordings import Load, SlowControlPlane


def test_new_namespace_of_an_old_name_keeps_its_objects_when_the_controllers_restart():
    cluster = Cluster()
    cluster.create("v1", "Namespace", "team")
    cluster.pod("old", namespace="team")
    cluster.settle()
    cluster.delete("namespaces", "team")
    cluster.wait(60)
    assert cluster.get("namespaces", "team") is None
    cluster.create("v1", "Namespace", "team")
    cluster.pod("new", namespace="team")
    cluster.settle()
    cluster.restart()
    cluster.wait(60)
    assert "deletionTimestamp" not in cluster.must("pods", "new", "team")["metadata"]


def test_namespace_with_a_finalizer_waits_without_work_and_ends_when_it_is_removed():
    cluster = Cluster()
    held = {"name": "held", "finalizers": ["example.com/hold"]}
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": held})
    cluster.delete("namespaces", "held")
    cluster.wait(60)
    assert cluster.get("namespaces", "held") is not None
    namespaces = next(found for found in cluster.controllers if found.name == "namespaces")
    assert namespaces.step(cluster.line.views, cluster.line.now) is None
    cluster.patch("namespaces", "held", {"metadata": {"finalizers": None}}, namespace="")
    assert cluster.get("namespaces", "held") is None


class KnownMark(SlowControlPlane):
    """A pace at which the mark of a namespace can have been seen before its event."""

    def __init__(self, before: int) -> None:
        super().__init__(Load())
        self._before = before

    def seen_from(self, event: Event) -> Instant:
        return Instant(event.stamp.time - self._before)

    def not_before(self, queue: str, key: tuple[str, ...], now: Instant) -> Instant:
        return now


@pytest.mark.parametrize("before", [0, 40_000])
def test_grace_of_a_namespace_counts_from_when_its_mark_can_have_been_seen(before: int) -> None:
    cluster = Cluster()
    cluster.create("v1", "Namespace", "team")
    namespaces = NamespaceReconciler(KnownMark(before))
    cluster.line.controllers = (namespaces,)
    cluster.delete("namespaces", "team")
    assert namespaces.due() == T0 + 5 * SECOND - before


TEMPLATES = "resourceclaimtemplates"

EMPTY = {
    "NamespaceDeletionDiscoveryFailure": (
        "False",
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "False",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "False",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": (
        "False",
        "ContentRemoved",
        "All content successfully removed",
    ),
    "NamespaceFinalizersRemaining": (
        "False",
        "ContentHasNoFinalizers",
        "All content-preserving finalizers finished",
    ),
}
PODS_LEFT = (
    "True",
    "ContentDeletionFailed",
    "Failed to delete all resource types, 1 remaining: unexpected items still remain in "
    "namespace: team for gvr: /v1, Resource=pods",
)


def shown(cluster: Cluster) -> dict[str, tuple[str, str, str]]:
    status = cluster.must("namespaces", "team")["status"]
    assert status["phase"] == "Terminating"
    return {
        each["type"]: (each["status"], each["reason"], each["message"])
        for each in status["conditions"]
    }


def held(cluster: Cluster, name: str, *finalizers: str) -> None:
    """A template that its finalizers keep."""
    cluster.apply(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": name, "namespace": "team", "finalizers": [*finalizers]},
            "spec": {"spec": claim_spec()},
        }
    )


def test_namespace_says_which_contents_and_finalizers_remain():
    cluster = Cluster(namespaces=("default", "team"))
    held(cluster, "a", "x.example.com/hold", "y.example.com/hold")
    held(cluster, "b", "x.example.com/hold")
    claim = {"name": "c", "namespace": "team", "finalizers": ["y.example.com/hold"]}
    cluster.apply(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": claim,
            "spec": claim_spec(),
        }
    )
    cluster.delete("namespaces", "team")
    cluster.wait(4)
    assert "conditions" not in cluster.must("namespaces", "team")["status"]
    cluster.wait(30)
    assert shown(cluster) == EMPTY | {
        "NamespaceContentRemaining": (
            "True",
            "SomeResourcesRemain",
            "Some resources are remaining: resourceclaims.resource.k8s.io has 1 resource "
            "instances, resourceclaimtemplates.resource.k8s.io has 2 resource instances",
        ),
        "NamespaceFinalizersRemaining": (
            "True",
            "SomeFinalizersRemain",
            "Some content in the namespace has x.example.com/hold in 2 resource instances, "
            "y.example.com/hold in 2 resource instances",
        ),
    }
    since = {
        each["type"]: each["lastTransitionTime"]
        for each in cluster.must("namespaces", "team")["status"]["conditions"]
    }
    free: JsonObject = {"metadata": {"finalizers": None}}
    cluster.patch(TEMPLATES, "a", free, namespace="team")
    cluster.wait(30)
    assert shown(cluster)["NamespaceFinalizersRemaining"][2] == (
        "Some content in the namespace has x.example.com/hold in 1 resource instances, "
        "y.example.com/hold in 1 resource instances"
    )
    for each in cluster.must("namespaces", "team")["status"]["conditions"]:
        assert each["lastTransitionTime"] == since[each["type"]]
    cluster.patch(TEMPLATES, "b", free, namespace="team")
    cluster.patch("resourceclaims", "c", free, namespace="team")
    cluster.wait(30)
    assert cluster.get("namespaces", "team") is None
    last = [e for e in cluster.line.events if e.key.name == "team" and e.is_about_object][-1]
    assert last.type == "ObjectDeleted"


def test_namespace_deletes_its_pods_before_everything_else_and_says_so():
    cluster = Cluster(namespaces=("default", "team"))
    cluster.node()
    held(cluster, "a")
    cluster.pod("pod", namespace="team")
    hold: JsonObject = {"metadata": {"finalizers": ["example.com/hold"]}}
    cluster.patch("pods", "pod", hold, namespace="team")
    cluster.settle()
    cluster.delete("namespaces", "team")
    cluster.wait(60)
    assert shown(cluster) == EMPTY | {"NamespaceDeletionContentFailure": PODS_LEFT}
    assert "deletionTimestamp" in cluster.must("pods", "pod", "team")["metadata"]
    assert "deletionTimestamp" not in cluster.must(TEMPLATES, "a", "team")["metadata"]
    cluster.patch("pods", "pod", {"metadata": {"finalizers": None}}, namespace="team")
    cluster.delete("pods", "pod", "team", grace_seconds=0)
    cluster.wait(60)
    assert cluster.get("namespaces", "team") is None


class LatePace(KnownMark):
    """A pace at which the objects of a kind, or the namespace itself, go some time later."""

    def __init__(self, queue: str, key: tuple[str, ...], until: Instant) -> None:
        super().__init__(0)
        self._late = queue, key
        self._until = until

    def not_before(self, queue: str, key: tuple[str, ...], now: Instant) -> Instant:
        return max(now, self._until) if (queue, key) == self._late else now


@pytest.mark.parametrize(
    ("queue", "key", "template_late", "claim_late"),
    [
        ("namespaces/content", ("team", "resource.k8s.io", TEMPLATES), True, False),
        ("namespaces/content", ("team", "resource.k8s.io", "resourceclaims"), False, True),
        ("namespaces/content", ("other", "resource.k8s.io", TEMPLATES), False, False),
        ("namespaces/end", ("team",), False, False),
    ],
)
def test_each_kind_of_a_namespace_goes_when_the_pace_allows_it(
    queue, key, template_late, claim_late
):
    cluster = Cluster(namespaces=("default", "team"))
    held(cluster, "a")
    cluster.apply(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "c", "namespace": "team"},
            "spec": claim_spec(),
        }
    )
    cluster.line.controllers = (
        NamespaceReconciler(LatePace(queue, key, Instant(T0 + 20 * SECOND))),
    )
    cluster.delete("namespaces", "team")
    cluster.wait(19)
    assert (cluster.get(TEMPLATES, "a", "team") is not None) == template_late
    assert (cluster.get("resourceclaims", "c", "team") is not None) == claim_late
    is_early = key[0] == "other"
    assert (cluster.get("namespaces", "team") is None) == is_early
    cluster.wait(2)
    assert cluster.get("namespaces", "team") is None
