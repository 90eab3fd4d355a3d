"""Objects that a cluster of an earlier release served in versions that are gone since.

Parity: history-formats.md 17.4.
"""

import json

import pytest

from app.domain.errors import BadRequest, InputError
from app.domain.objects import registry
from app.domain.objects.schema import conversion
from tests.unit.history.worlds import read_records

SAME = {
    "admissionregistration.k8s.io/v1beta1": (
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    ),
    "apiregistration.k8s.io/v1beta1": ("APIService",),
    "apps/v1beta2": (
        "ControllerRevision",
        "DaemonSet",
        "Deployment",
        "ReplicaSet",
        "StatefulSet",
    ),
    "autoscaling/v2beta2": ("HorizontalPodAutoscaler",),
    "batch/v1beta1": ("CronJob",),
    "coordination.k8s.io/v1beta1": ("Lease",),
    "networking.k8s.io/v1beta1": ("IPAddress", "IngressClass", "ServiceCIDR"),
    "node.k8s.io/v1beta1": ("RuntimeClass",),
    "policy/v1beta1": ("PodDisruptionBudget",),
    "rbac.authorization.k8s.io/v1beta1": (
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
    ),
    "scheduling.k8s.io/v1beta1": ("PriorityClass",),
    "storage.k8s.io/v1beta1": (
        "CSIDriver",
        "CSINode",
        "CSIStorageCapacity",
        "StorageClass",
        "VolumeAttachment",
        "VolumeAttributesClass",
    ),
}


def stored(version, kind, **fields):
    metadata = {"name": "x", "namespace": "shop", "uid": "u-1", "resourceVersion": "5"}
    metadata["creationTimestamp"] = "2021-01-01T00:00:00Z"
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": {"a": 1}, **fields}


def read(tmp_path, tree):
    path = tmp_path / "list.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [tree]}))
    (record,) = read_records(path)
    return record.object


@pytest.mark.parametrize(
    ("version", "kind"), [(version, kind) for version, names in SAME.items() for kind in names]
)
def test_object_of_an_earlier_version_with_the_same_fields_is_read(tmp_path, version, kind):
    tree = read(tmp_path, stored(version, kind))
    stable = "v2" if kind == "HorizontalPodAutoscaler" else "v1"
    assert tree["apiVersion"] == f"{version.partition('/')[0]}/{stable}"
    assert (tree["kind"], tree["spec"]) == (kind, {"a": 1})


@pytest.mark.parametrize(
    ("selector", "expected"),
    [({}, None), ({"matchLabels": {"a": "b"}}, {"matchLabels": {"a": "b"}}), (None, None)],
)
def test_budget_that_chose_no_pods_chooses_none(tmp_path, selector, expected):
    """An empty selector chose no pods before policy/v1, where it chooses all."""
    spec = {"maxUnavailable": 1, "selector": selector}
    tree = read(tmp_path, stored("policy/v1beta1", "PodDisruptionBudget", spec=spec))
    assert tree["spec"].get("selector") == expected
    assert tree["spec"]["maxUnavailable"] == 1


@pytest.mark.parametrize(
    ("version", "kind"),
    [("networking.k8s.io/v1beta1", "Ingress"), ("autoscaling/v2beta1", "HorizontalPodAutoscaler")],
)
def test_earlier_version_with_other_fields_is_refused_in_true_words(tmp_path, version, kind):
    with pytest.raises(InputError, match=f"{kind} in {version} is not read; it is served in"):
        read(tmp_path, stored(version, kind))


def test_earlier_version_is_not_given_again():
    (kind,) = registry.find_name("cronjobs")
    with pytest.raises(BadRequest, match=r"batch/v1beta1 is a form that redra does not serve"):
        conversion.convert(stored("batch/v1", "CronJob"), kind, "v1", "v1beta1")


def test_manifest_in_an_earlier_version_is_taken_as_that_of_the_stable_one(tmp_path):
    path = tmp_path / "job.yaml"
    template = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "x"}]}}}}
    spec = {"schedule": "* * * * *", "jobTemplate": template}
    tree = {"apiVersion": "batch/v1beta1", "kind": "CronJob", "metadata": {"name": "x"}}
    path.write_text(json.dumps(tree | {"spec": spec}))
    (record,) = read_records(path)
    assert record.object["apiVersion"] == "batch/v1"
    assert record.object["spec"]["schedule"] == "* * * * *"
