"""Trees without managers, compared with what Python's own decoder reads of the whole object."""

import json

import pytest

from app.domain.log import Actor, Event, EventType, ObjectKey, Revision, Stamp
from app.domain.log.chain import canonical_json
from app.domain.values.identifiers import Uid
from app.domain.values.timestamps import Instant
from tests.cluster import Cluster

MANAGERS = [
    {"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:spec": {"f:nodeName": {}}}},
    {"manager": "redra", "operation": "Apply", "fieldsV1": {"f:status": {'k:{"type":"],"}': {}}}},
]


def event_of(tree: dict) -> Event:
    return Event(
        revision=Revision(1),
        type=EventType.OBJECT_UPDATED,
        key=ObjectKey("", "pods", "default", "pod"),
        uid=Uid("u"),
        body=canonical_json(tree),
        stamp=Stamp(time=Instant(0), actor=Actor(user="u"), verb="update"),
    )


def pod(**metadata: object) -> dict:
    labelled = {"annotations": {"note": '"managedFields":[]'}, "labels": {"a": "b"}}
    named = {"name": "pod", "namespace": "default", "resourceVersion": "1"}
    metadata = {**named, **labelled, **metadata}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"nodeName": "n"}}


def bare(tree: dict) -> dict:
    """The tree without managers."""
    metadata = {name: tree["metadata"][name] for name in tree["metadata"]}
    metadata.pop("managedFields", None)
    return {**tree, "metadata": metadata}


def wanted(body: bytes) -> dict:
    return bare(json.loads(body))


@pytest.mark.parametrize(
    "tree",
    [
        pod(managedFields=MANAGERS),
        pod(managedFields=MANAGERS, ownerReferences=[{"uid": "u", "name": "o"}], uid="u"),
        pod(managedFields=[]),
        pod(managedFields=MANAGERS, labels={"name": "x", "resourceVersion": "7"}),
        pod(),
        pod() | {"spec": {"template": {"metadata": {"managedFields": [1], "name": "x"}}}},
    ],
)
def test_tree_is_the_whole_object_without_its_managers(tree):
    event = event_of(tree)
    assert bare(event.without_managers().object) == wanted(event.body)
    assert event.tree is None


@pytest.mark.parametrize("metadata", [{}, {"managedFields": MANAGERS}])
def test_fields_of_that_name_before_the_metadata_stay(metadata):
    event = event_of(pod(**metadata) | {"data": {"managedFields": [1], "name": "x"}})
    assert bare(event.without_managers().object) == wanted(event.body)


def test_spec_keeps_fields_of_that_name_beside_managers_of_the_object():
    tree = pod(managedFields=MANAGERS)
    tree["spec"]["template"] = {"metadata": {"managedFields": [1], "name": "x"}}
    assert event_of(tree).without_managers().object == wanted(canonical_json(tree))


@pytest.mark.parametrize("inner", [{"a": [1], "name": "x"}, [[{"b": [], "name": ""}]], '],"name":'])
def test_managers_that_contain_a_name_of_their_own_break_nothing(inner):
    event = event_of(pod(managedFields=[{"fieldsV1": inner}, *MANAGERS]))
    assert bare(event.without_managers().object) == wanted(event.body)


def test_decoded_event_is_not_decoded_again():
    event = event_of(pod(managedFields=MANAGERS))
    tree = event.object
    assert event.without_managers().object is tree


def test_objects_of_a_cluster_lose_nothing_but_their_managers():
    cluster = Cluster(kubelet=True)
    cluster.node()
    cluster.device_class()
    cluster.slice(devices=2)
    cluster.template()
    cluster.pod("pod", template="gpu")
    cluster.wait(5)
    shortened = 0
    for event in cluster.line.events:
        if event.is_about_object:
            tree = event.undecoded().without_managers().object
            assert bare(tree) == wanted(event.body)
            shortened += "managedFields" not in tree["metadata"]
    assert shortened >= 10
