"""Namespaces that come and go under the same names are decided again to the same result."""

import random

import pytest

from app.analysis.replay.report import Agreement
from app.domain.objects.profile import Profile
from tests import draws
from tests.cluster import Cluster, claim_spec
from tests.simulation.test_live_histories import decided

SPACES = ("one", "two")


def cluster_of(seed: int) -> Cluster:
    """A cluster in which two namespaces are made again as soon as they may have ended."""
    chance = random.Random(seed)
    cluster = Cluster(Profile(), seed=seed, kubelet=True)
    cluster.device_class()
    for node in range(2):
        cluster.node(f"n{node}")
        cluster.slice(f"n{node}", devices=4)
    cluster.wait(1)
    for number in range(6):
        space = SPACES[number % 2]
        if cluster.get("namespaces", space) is None:
            begin(cluster, space)
            cluster.wait(chance.choice((0.2, 1, 3)))
            cluster.delete("namespaces", space)
        cluster.wait(chance.choice((0.5, 2, 6)))
    return cluster.wait(60)


def begin(cluster: Cluster, space: str) -> None:
    """Makes a namespace with two pods that have claims."""
    cluster.create("v1", "Namespace", space)
    cluster.apply(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": "gpu", "namespace": space},
            "spec": {"spec": claim_spec()},
        }
    )
    for number in range(2):
        cluster.pod(f"p{number}", template="gpu", namespace=space, terminationGracePeriodSeconds=2)


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(0, id="a look at the one before"),
        pytest.param(5, id="marked when another ended"),
        *(pytest.param(each, marks=draws.BY_DAY) for each in draws.seeds(2, first=6)),
    ],
)
async def test_namespaces_of_one_name_after_each_other_are_decided_alike(seed: int) -> None:
    report = await decided(cluster_of(seed))
    assert [each.to_json() for each in report.differences] == []
    assert report.violations == {}
    assert report.agreement is Agreement.AGREES
