"""Definitions of custom kinds: their end, freed names, and what other controllers do for them."""

from app.domain.log import ObjectKey
from app.domain.objects.write.commands import CreateObject, DeleteObject, PatchObject, PatchType
from tests.api.custom import definition, version, widget
from tests.cluster import USER, Cluster

CRDS = ("apiextensions.k8s.io", "customresourcedefinitions")
NAME = "widgets.example.com"


def define(cluster, tree):
    key = ObjectKey(*CRDS, "", tree["metadata"]["name"])
    cluster.line.submit(CreateObject(key=key, version="v1", tree=tree), actor=USER)


def place(name):
    return ObjectKey("example.com", "widgets", "default", name)


def put(cluster, name="w", **metadata):
    tree = widget(name)
    tree["metadata"] |= metadata
    command = CreateObject(key=place(name), version="v1", tree=tree)
    return cluster.line.submit(command, actor=USER).tree


def held(cluster, name=NAME):
    return cluster.line.views.objects.get(ObjectKey(*CRDS, "", name))


def end(cluster, name=NAME):
    cluster.line.submit(DeleteObject(key=ObjectKey(*CRDS, "", name)), actor=USER)
    cluster.settle()


def reason(tree, kind):
    return next(c["reason"] for c in tree["status"]["conditions"] if c["type"] == kind)


def test_deleted_definition_goes_with_its_objects():
    cluster = Cluster()
    define(cluster, definition())
    for number in range(450):
        put(cluster, f"w{number}")
    end(cluster)
    assert held(cluster) is None
    assert list(cluster.line.views.objects.keys("example.com", "widgets")) == []


def test_definition_waits_for_objects_with_finalizers():
    cluster = Cluster()
    define(cluster, definition())
    put(cluster, finalizers=["example.com/hold"])
    end(cluster)
    assert reason(held(cluster), "Terminating") == "InstanceDeletionInProgress"
    freed = PatchObject(
        key=place("w"),
        version="v1",
        type=PatchType.MERGE,
        body={"metadata": {"finalizers": None}},
    )
    cluster.line.submit(freed, actor=USER)
    cluster.settle()
    assert held(cluster) is None


def test_objects_go_also_when_no_version_is_served():
    cluster = Cluster()
    define(cluster, definition())
    put(cluster)
    hidden = PatchObject(
        key=ObjectKey(*CRDS, "", NAME),
        version="v1",
        type=PatchType.MERGE,
        body={"spec": {"versions": [version(served=False)]}},
    )
    cluster.line.submit(hidden, actor=USER)
    end(cluster)
    assert held(cluster) is None


def test_freed_names_go_to_the_definition_that_wanted_them():
    cluster = Cluster()
    define(cluster, definition())
    define(cluster, definition(kind="Widget", plural="others", singular="widget"))
    assert reason(held(cluster, "others.example.com"), "Established") == "NotAccepted"
    end(cluster)
    settled = held(cluster, "others.example.com")
    assert reason(settled, "NamesAccepted") == "NoConflicts"
    assert reason(settled, "Established") == "InitialNamesAccepted"


def test_namespace_ends_with_its_custom_objects():
    cluster = Cluster()
    define(cluster, definition())
    cluster.create("v1", "Namespace", "team")
    key = place("w")._replace(namespace="team")
    cluster.line.submit(CreateObject(key=key, version="v1", tree=widget()), actor=USER)
    cluster.delete("namespaces", "team")
    cluster.wait(60)
    assert cluster.get("namespaces", "team") is None
    assert cluster.line.views.objects.get(key) is None


def test_dependents_of_a_custom_object_are_collected():
    cluster = Cluster()
    define(cluster, definition())
    owner = put(cluster)
    reference = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "name": "w",
        "uid": owner["metadata"]["uid"],
    }
    put(cluster, "child", ownerReferences=[reference])
    cluster.line.submit(DeleteObject(key=place("w")), actor=USER)
    cluster.settle()
    assert cluster.line.views.objects.get(place("child")) is None
