"""ResourceQuota: refusals and counts (KEP-4816)."""

import pytest

from app.domain.errors import Forbidden
from app.domain.objects import quota
from tests.cluster import Cluster, claim_spec

DEVICES = ".deviceclass.resource.k8s.io/devices"


def cluster_with(**hard: str) -> Cluster:
    cluster = Cluster()
    limits = {name.replace("__", DEVICES): value for name, value in hard.items()}
    cluster.create("v1", "ResourceQuota", "q", spec={"hard": limits})
    return cluster.settle()


def used(cluster: Cluster) -> dict:
    return cluster.must("resourcequotas", "q")["status"]["used"]


def alternatives(*asked: tuple[str, int]) -> dict:
    listed = [
        {"name": f"a{index}", "deviceClassName": name, "count": count}
        for index, (name, count) in enumerate(asked)
    ]
    return {"devices": {"requests": [{"name": "gpu", "firstAvailable": listed}]}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (claim_spec(), {"gpu": 1}),
        (claim_spec(count=3), {"gpu": 3}),
        (claim_spec(allocationMode="All"), {"gpu": 32}),
        (alternatives(("large", 1), ("small", 2)), {"large": 1, "small": 2}),
        (alternatives(("gpu", 1), ("gpu", 4), ("nic", 1)), {"gpu": 4, "nic": 1}),
    ],
)
def test_every_alternative_counts(spec, expected):
    for request in spec["devices"]["requests"]:
        for asked in [*request.get("firstAvailable", ()), request.get("exactly", {})]:
            asked.setdefault("allocationMode", "ExactCount")
    found = quota.usage("resource.k8s.io", "resourceclaims", {"spec": spec})
    assert found.pop("count/resourceclaims.resource.k8s.io") == 1
    assert found == {f"{name}{DEVICES}": amount for name, amount in expected.items()}


def test_claim_beyond_the_quota_is_refused_with_the_numbers():
    cluster = cluster_with(gpu__="2")
    cluster.claim("first", count=2)
    with pytest.raises(Forbidden) as refusal:
        cluster.claim("second")
    assert str(refusal.value) == (
        'resourceclaims.resource.k8s.io "second" is forbidden: exceeded quota: q, requested: '
        f"gpu{DEVICES}=1, used: gpu{DEVICES}=2, limited: gpu{DEVICES}=2"
    )


def test_prioritized_list_does_not_get_around_a_quota():
    cluster = cluster_with(large__="0", small__="5")
    with pytest.raises(Forbidden, match=r"large\.deviceclass"):
        cluster.create(
            "resource.k8s.io/v1",
            "ResourceClaim",
            "claim",
            spec=alternatives(("large", 1), ("small", 1)),
        )


def test_only_exceeded_names_are_listed():
    cluster = cluster_with(**{"gpu__": "1", "count/resourceclaims.resource.k8s.io": "9"})
    with pytest.raises(Forbidden) as refusal:
        cluster.claim(count=2)
    assert "count/" not in str(refusal.value)


def test_other_classes_and_namespaces_are_not_limited():
    cluster = cluster_with(gpu__="0")
    cluster.claim(class_name="nic")
    cluster.create("v1", "Namespace", "other")
    cluster.apply(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "claim", "namespace": "other"},
            "spec": claim_spec(),
        }
    )


def test_used_follows_creation_and_deletion():
    cluster = cluster_with(**{"gpu__": "9", "count/resourceclaims.resource.k8s.io": "9"})
    assert used(cluster) == {f"gpu{DEVICES}": "0", "count/resourceclaims.resource.k8s.io": "0"}
    cluster.claim("one", count=2)
    cluster.claim("two")
    cluster.settle()
    assert used(cluster) == {f"gpu{DEVICES}": "3", "count/resourceclaims.resource.k8s.io": "2"}
    cluster.delete("resourceclaims", "one")
    cluster.settle()
    assert used(cluster) == {f"gpu{DEVICES}": "1", "count/resourceclaims.resource.k8s.io": "1"}


def test_status_follows_a_changed_limit():
    cluster = cluster_with(gpu__="1")
    cluster.patch("resourcequotas", "q", {"spec": {"hard": {f"gpu{DEVICES}": None, "pods": "4"}}})
    cluster.settle()
    status = cluster.must("resourcequotas", "q")["status"]
    assert status == {"hard": {"pods": "4"}, "used": {"pods": "0"}}


def test_claim_of_a_template_that_does_not_fit_keeps_the_pod_waiting():
    cluster = cluster_with(gpu__="1")
    cluster.node()
    cluster.device_class()
    cluster.slice()
    cluster.template()
    cluster.pod("one", template="gpu")
    cluster.pod("two", template="gpu")
    cluster.settle()
    assert len(cluster.names("resourceclaims")) == 1
    assert any("exceeded quota: q" in text for text in cluster.messages("two"))


def test_finished_pods_leave_room():
    cluster = cluster_with(pods="1")
    cluster.pod("one")
    with pytest.raises(Forbidden):
        cluster.pod("two")
    cluster.finish("one")
    cluster.pod("two")
