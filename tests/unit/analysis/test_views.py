"""The views in memory: what they remember, and what they let go."""

import msgspec
import pytest

from app.analysis.views import LiveViews
from app.domain.controllers import registry
from app.domain.devices.nodes import Node
from app.domain.devices.pools import Reading
from app.domain.log import Actor, EventType, ObjectKey
from app.domain.log.chain import canonical_json
from app.domain.objects import profile as profiles
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


def test_object_that_becomes_unreadable_is_left_out_as_after_a_start():
    cluster = Cluster()
    cluster.node("n1")
    cluster.slice("n1")
    views = cluster.line.views
    (key,) = views.objects.keys("resource.k8s.io", "resourceslices")
    event = views.objects.event(key)
    (pool,) = {(each["driver"], each["pool"]["name"]) for each in [event.object["spec"]]}
    assert len(views.inventory.slices_of(pool)) == 1
    tree = msgspec.json.decode(event.body)
    tree["spec"]["devices"][0]["capacity"] = {"memory": {"value": {"a": 1}}}
    after = msgspec.structs.replace(
        event,
        revision=views.revision + 1,
        type=EventType.OBJECT_UPDATED,
        body=canonical_json(tree),
        tree=None,
        reading=None,
    )
    views.fold(after)
    loaded = LiveViews(views.profile)
    loaded.load_objects(views.objects.dump())
    assert list(views.unreadable) == list(loaded.unreadable) == [key]
    assert list(views.inventory.slices_of(pool)) == list(loaded.inventory.slices_of(pool)) == []


def test_loading_keeps_no_decoded_object():
    cluster = Cluster()
    cluster.node("n1")
    cluster.slice("n1")
    cluster.device_class()
    state = cluster.line.views.objects.dump()
    loaded = LiveViews(cluster.line.views.profile)
    loaded.load_objects(state)
    objects = loaded.objects
    events = [event for place in objects.resources() for event in objects.events(*place)]
    assert [event.tree for event in events] == [None] * 4


@pytest.mark.parametrize(
    ("quirks", "is_placed"), [({}, False), ({"q14": True}, False), ({"q14": False}, True)]
)
def test_rule_without_selector_keeps_pods_from_every_device_unless_q14_is_off(quirks, is_placed):
    settings = {"profile": "1.37", "quirks": quirks, "gates": {"DRADeviceTaintRules": True}}
    profile = profiles.from_settings(settings)
    cluster = Cluster(profile, registry.options_from(settings))
    cluster.node("n1")
    cluster.slice("n1")
    cluster.device_class()
    cluster.template()
    taint = {"key": "example.com/bad", "effect": "NoSchedule"}
    cluster.create("resource.k8s.io/v1", "DeviceTaintRule", "rule", spec={"taint": taint})
    cluster.settle()
    cluster.pod(template="gpu")
    cluster.settle()
    placed = cluster.must("pods", "pod")["spec"].get("nodeName", "")
    assert placed == ("n1" if is_placed else "")
