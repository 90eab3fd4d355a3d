"""The objects that a search keeps for a sighting: those that are related to it until then."""

import pytest

from app.analysis.minimise import witnesses
from app.analysis.minimise.material import Material, devices_of
from app.analysis.minimise.predicates import Sighting
from app.analysis.replay.inputs import Input
from app.domain.log import ObjectKey
from app.domain.values.timestamps import SECOND, Instant
from tests.cluster import Cluster
from tests.unit.analysis.explain.answered_worlds import base


def settled() -> Cluster:
    """A Deployment with a pod whose claim is made from a template, and a pod beside it."""
    cluster = base(2, 2)
    cluster.template()
    body = {
        "containers": [{"name": "m", "image": "i"}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
    }
    spec = {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "w"}},
        "template": {"metadata": {"labels": {"app": "w"}}, "spec": body},
    }
    cluster.create("apps/v1", "Deployment", "web", spec=spec)
    cluster.settle().wait(5)
    cluster.claim("shared")
    cluster.pod("near", claim="shared", nodeSelector={"zone": "b"})
    return cluster.settle().wait(5)


CLUSTER = settled()


def material() -> Material:
    steps = [
        Input(event=event, before=None, time=event.stamp.time)
        for event in CLUSTER.line.events
        if event.is_about_object
    ]
    return Material(steps=steps, is_recorded=True)


def key(resource: str, name: str) -> ObjectKey:
    return next(
        event.key
        for event in CLUSTER.line.events
        if event.key.resource == resource and event.key.name.startswith(name)
    )


def related(*objects: ObjectKey, at: Instant | None = None) -> set[str]:
    sighting = Sighting(objects=objects, at=at)
    keys = witnesses.related_objects(sighting, [CLUSTER.line.events], material())
    assert keys[: len(objects)] == objects
    return {f"{each.resource}/{each.name}" for each in keys[len(objects) :]}


POD = key("pods", "web-")
CLAIM = key("resourceclaims", "web-")
SET = key("replicasets", "web-")


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ((key("nodes", "n0"),), set()),
        ((SET,), {"deployments/web"}),
        ((key("pods", "near"),), {"nodes/n1", "resourceclaims/shared", "resourceslices/n1-slice"}),
        ((key("resourceclaims", "shared"),), {"pods/near", "resourceslices/n1-slice", "nodes/n1"}),
        ((POD,), {
            f"replicasets/{SET.name}", "deployments/web", "nodes/n0",
            f"resourceclaims/{CLAIM.name}", "resourceslices/n0-slice",
        }),
        ((CLAIM,), {
            f"pods/{POD.name}", f"replicasets/{SET.name}", "deployments/web", "nodes/n0",
            "resourceslices/n0-slice",
        }),
    ],
)  # fmt: skip
def test_objects_that_belong_to_a_sighting_are_kept(
    objects: tuple[ObjectKey, ...], expected: set[str]
) -> None:
    assert related(*objects) == expected


def test_relations_count_as_they_were_at_the_sighting() -> None:
    """Before the pod has its claim and its node, only its owners belong to it."""
    made = next(event for event in CLUSTER.line.events if event.key == POD)
    before = Instant(made.stamp.time - SECOND)
    assert related(POD, at=before) == set()
    assert "nodes/n0" in related(POD, at=CLUSTER.line.now)


def test_each_history_adds_its_relations() -> None:
    near = key("pods", "near")
    sighting = Sighting(objects=(near,))
    histories = [[], CLUSTER.line.events]
    keys = witnesses.related_objects(sighting, histories, material())
    assert {each.name for each in keys} >= {"near", "n1", "shared"}
    assert witnesses.related_objects(sighting, [[]], material()) == (near,)


def test_devices_of_steps_are_counted_once_for_each_slice() -> None:
    steps = material().steps
    assert devices_of(steps) == devices_of([*steps, *steps]) == 4
    assert devices_of([]) == 0
