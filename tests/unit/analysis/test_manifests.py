"""Exported manifests: what an API server set itself is not in what it is to create."""

from app.analysis.handover import manifests
from app.analysis.replay.inputs import Input
from app.domain.values.json_tree import JsonObject
from tests.cluster import Cluster

POD: JsonObject = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}


def exported(cluster: Cluster, resource: str) -> JsonObject:
    """The manifest of the only object of a resource."""
    inputs = [
        Input(event=event, before=None, time=event.stamp.time, author="alice", number=0)
        for event in cluster.line.events
        if event.key.resource == resource and event.type.value == "ObjectCreated"
    ]
    manifest, _script = manifests.files(inputs, "History jobs")
    assert isinstance(manifest.content, dict)
    return manifest.content


def test_job_is_exported_without_the_selector_that_names_its_uid() -> None:
    cluster = Cluster(seed=1)
    labels = {"metadata": {"labels": {"team": "red"}}, "spec": POD}
    cluster.create("batch/v1", "Job", "once", spec={"template": labels})
    made = cluster.must("jobs", "once")
    assert made["spec"]["selector"], "the API adds it"
    manifest = exported(cluster, "jobs")
    assert "selector" not in manifest["spec"]
    assert manifest["spec"]["template"]["metadata"]["labels"] == {"team": "red"}
    other = Cluster(seed=2)
    again = other.apply(manifest)
    assert again["metadata"]["uid"] != made["metadata"]["uid"]
    assert again["spec"]["selector"] != made["spec"]["selector"]


def test_job_with_a_selector_of_its_own_keeps_it() -> None:
    cluster = Cluster()
    labels = {"app": "once"}
    spec = {
        "manualSelector": True,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": POD},
    }
    cluster.create("batch/v1", "Job", "once", spec=spec)
    manifest = exported(cluster, "jobs")
    assert manifest["spec"]["selector"] == {"matchLabels": labels}
    assert manifest["spec"]["template"]["metadata"]["labels"].items() >= labels.items()
    Cluster().apply(manifest)
