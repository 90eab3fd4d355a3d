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
