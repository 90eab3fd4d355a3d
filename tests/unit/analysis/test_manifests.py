"""Exported manifests: what an API server set itself is not in what it is to create."""

import pytest

from app.analysis.handover import manifests
from app.analysis.replay.inputs import Input
from app.domain.objects.profile import Profile
from app.domain.values.json_tree import JsonObject
from tests.cluster import Cluster

POD: JsonObject = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}


def exported(cluster: Cluster, resource: str, release: str = "1.37") -> JsonObject:
    """The manifest of the only object of a resource, for a server of a release."""
    inputs = [
        Input(event=event, before=None, time=event.stamp.time, author="alice", number=0)
        for event in cluster.line.events
        if event.key.resource == resource and event.type.value == "ObjectCreated"
    ]
    settings = {"profile": release, "gates": {"DRADeviceTaintRules": True}}
    manifest, _script = manifests.files(inputs, "History jobs", settings)
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


@pytest.mark.parametrize(
    ("release", "of_rules", "of_slices"),
    [
        ("1.37", "v1", "v1"),
        ("1.36", "v1beta2", "v1"),
        ("1.35", "v1alpha3", "v1"),
        ("1.34", "v1alpha3", "v1"),
    ],
)
def test_manifests_have_the_versions_that_the_release_serves(
    release: str, of_rules: str, of_slices: str
) -> None:
    cluster = Cluster(profile=Profile(gates={"DRADeviceTaintRules": True}))
    taint = {"key": "example.com/bad", "effect": "NoSchedule"}
    selector = {"driver": "gpu.example.com"}
    cluster.create(
        "resource.k8s.io/v1", "DeviceTaintRule", "bad",
        spec={"deviceSelector": selector, "taint": taint},
    )  # fmt: skip
    cluster.slice("n1", [{"name": "gpu-0", "attributes": {"model": {"string": "a"}}}])
    rule = exported(cluster, "devicetaintrules", release)
    assert rule["apiVersion"] == f"resource.k8s.io/{of_rules}"
    assert rule["spec"]["deviceSelector"] == selector
    published = exported(cluster, "resourceslices", release)
    assert published["apiVersion"] == f"resource.k8s.io/{of_slices}"
    (device,) = published["spec"]["devices"]
    assert device["attributes"] == {"model": {"string": "a"}}


@pytest.mark.parametrize(
    ("waits", "is_recorded", "volume"),
    [(False, False, "not-recorded"), (False, True, None), (True, False, "")],
    ids=["not recorded", "recorded", "pods wait for claims"],
)
def test_claim_of_a_volume_that_a_recording_lacks_is_exported_as_a_bound_one(
    waits: bool, is_recorded: bool, volume: str | None
) -> None:
    """A new history lets pods wait for it, which the recorded one did not."""
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    cluster = Cluster()
    if is_recorded:
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        cluster.create("v1", "PersistentVolumeClaim", "data", spec=spec)
    cluster.create("v1", "Pod", "alone", spec={**POD, "volumes": volumes})
    labels = {"app": "served"}
    template = {"metadata": {"labels": labels}, "spec": {**POD, "volumes": volumes}}
    template["spec"]["restartPolicy"] = "Always"
    spec = {"selector": {"matchLabels": labels}, "template": template}
    cluster.create("apps/v1", "ReplicaSet", "served", spec=spec)
    inputs = [
        Input(event=event, before=None, time=event.stamp.time, author="alice", number=0)
        for event in cluster.line.events
        if event.type.value == "ObjectCreated" and event.key.name in ("data", "alone", "served")
    ]
    settings = {"controllers": {"volumeClaims": waits}}
    files = [each for each in manifests.files(inputs, "History", settings) if "create" in each.name]
    trees = [each.content for each in files if isinstance(each.content, dict)]
    kinds = [tree["kind"] for tree in trees]
    assert kinds == ["PersistentVolumeClaim"] * (volume != "") + ["Pod", "ReplicaSet"]
    if volume != "":
        assert trees[0]["spec"].get("volumeName") == volume
    another = Cluster()
    for tree in trees:
        another.apply(tree)
