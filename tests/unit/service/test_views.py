"""The views in memory: what they remember, and what they let go."""

from app.domain.devices.nodes import Node
from app.domain.devices.pools import Reading
from tests.cluster import Cluster

READING = Reading(partitionable=True)


def test_deleted_node_leaves_no_view_of_its_devices():
    cluster = Cluster()
    for name in ("n1", "n2"):
        cluster.node(name)
        cluster.slice(name)
    inventory = cluster.line.views.inventory
    gone, kept = (inventory.node_view(Node(name=name, labels={}), READING) for name in ("n1", "n2"))
    cluster.delete("nodes", "n1")
    assert inventory.node_view(Node(name="n1", labels={}), READING) is not gone
    assert inventory.node_view(Node(name="n2", labels={}), READING) is kept
