"""The views in memory: what they remember, and what they let go."""

from app.analysis.views import LiveViews
from app.domain.devices.nodes import Node
from app.domain.devices.pools import Reading
from app.domain.log import Actor, ObjectKey
from app.domain.objects.write.commands import PatchObject, PatchType
from tests.cluster import DRIVER, Cluster

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


def model_of(views):
    """The model that patches give the first device of n1."""
    view = views.inventory.node_view(Node(name="n1", labels={}), READING)
    return view.devices[0].attributes[f"{DRIVER}/model"]["string"]


def test_loaded_views_know_which_patch_was_made_first():
    cluster = Cluster()
    cluster.node("n1")
    cluster.slice("n1")
    for name in ("z", "a"):
        attributes = {f"{DRIVER}/model": {"string": name}}
        spec = {"devices": {"attributes": attributes}}
        cluster.create("resource.k8s.io/v1alpha3", "ResourceSlicePatch", name, spec=spec)
    # Changed after both were made: it stays the older one.
    key = ObjectKey("resource.k8s.io", "resourceslicepatches", "", "z")
    labels = {"metadata": {"labels": {"a": "b"}}}
    command = PatchObject(key=key, version="v1alpha3", type=PatchType.MERGE, body=labels)
    cluster.line.submit(command, actor=Actor(user="alice"))
    views = cluster.line.views
    loaded = LiveViews(views.profile)
    loaded.load_objects(views.objects.dump())
    assert (model_of(views), model_of(loaded)) == ("z", "z")
