"""Namespaces that end, and those that come after them under the same name."""

from tests.cluster import Cluster


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
