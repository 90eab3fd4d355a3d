"""Which other worlds are tried for a refused pod, and what finding them grows with."""

import random
from typing import Any

import pytest

from app.analysis.scan import alternative_worlds
from app.analysis.scan.alternative_worlds import ConcernedClaims
from app.analysis.views import LiveViews
from app.domain.log import ObjectKey
from app.domain.objects.profile import Profile
from app.domain.values import api_resources
from app.domain.values.json_tree import JsonObject
from tests import draws
from tests.cluster import Cluster
from tests.counting import counted

OTHER, OWN = "x.example.com/root", "example.com/root"


def cluster_of(devices: int, chance: random.Random) -> Cluster:
    """A node whose devices have an attribute in another domain than constraints name."""
    cluster = Cluster(namespaces=("default", "n2"))
    cluster.node(pods=1000, cpu="1000")
    cluster.device_class()
    attributes = {OTHER: {"string": "a"}}
    listed = [{"name": f"d{each}", "attributes": attributes} for each in range(devices)]
    cluster.slice("n1", devices=listed)
    for name, value in (("high", 1000), ("middle", 10)):
        cluster.create("scheduling.k8s.io/v1", "PriorityClass", name, value=value)
    cluster.template("any")
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    for name, attribute in (("own", OWN), ("other", "y.example.com/root")):
        wanted = {"requests": [request], "constraints": [{"matchAttribute": attribute}]}
        spec = {"spec": {"devices": wanted}}
        cluster.create("resource.k8s.io/v1", "ResourceClaimTemplate", name, spec=spec)
        cluster.create("resource.k8s.io/v1", "ResourceClaim", f"{name}-claim", spec=spec["spec"])
    return cluster


def looked_up(cluster: Cluster) -> tuple[LiveViews, ConcernedClaims]:
    views, claims = LiveViews(Profile()), ConcernedClaims()
    for event in cluster.line.events:
        views.fold(event)
        claims.fold(event)
    return views, claims


def lower_holders(cluster: Cluster, pod: JsonObject) -> list[ObjectKey]:
    """The claims that pods of lower priority alone hold, by a look at all objects."""
    own, held = pod["spec"]["priority"], []
    for name in cluster.names("resourceclaims"):
        claim = cluster.must("resourceclaims", name)
        status = claim.get("status", {})
        holders = [
            cluster.get("pods", each["name"])
            for each in status.get("reservedFor", ())
            if each["resource"] == "pods"
        ]
        if not holders or not status.get("allocation", {}).get("devices", {}).get("results"):
            continue
        if all(each is not None and each["spec"]["priority"] < own for each in holders):
            held.append(ObjectKey(*api_resources.RESOURCE_CLAIMS, "default", name))
    return held


def attributes(cluster: Cluster, pod: JsonObject) -> set[str]:
    """The attributes that constraints of a pod's claims name, by a look at all objects."""
    named = {each.get("resourceClaimName") for each in pod["spec"].get("resourceClaims", ())}
    constraints = []
    for name in cluster.names("resourceclaims"):
        claim = cluster.must("resourceclaims", name)
        owners = [each["uid"] for each in claim["metadata"].get("ownerReferences", ())]
        if name in named or pod["metadata"]["uid"] in owners:
            constraints += claim["spec"]["devices"].get("constraints", ())
    return {each["matchAttribute"] for each in constraints}


CLAIMS = ("own-claim", "other-claim")


@pytest.mark.parametrize("seed", draws.seeds(4))
def test_worlds_are_those_that_a_look_at_all_claims_gives(seed: int) -> None:
    chance = random.Random(f"worlds {seed}")
    cluster = cluster_of(4, chance)
    seen = set()
    for number in range(14):
        chosen = chance.choice(("high", "middle", "")) if number > 3 else ""
        template = chance.choice(("any", "own", "other", "")) if number > 3 else "any"
        given: dict[str, Any] = (
            {"template": template} if template else {"claim": chance.choice(CLAIMS)}
        )
        name = f"pod-{number}"
        spec: dict[str, Any] = {"priorityClassName": chosen} if chosen else {}
        cluster.pod(name, **given, **spec)
        cluster.wait(chance.randint(0, 3))
        if chance.random() < 0.3:
            cluster.delete("pods", chance.choice(cluster.names("pods")))
            cluster.wait(chance.randint(0, 3))
        views, claims = looked_up(cluster)
        for each in cluster.names("pods"):
            pod = cluster.must("pods", each)
            worlds = alternative_worlds.worlds(views, claims, pod)
            freed = [key for world in worlds if world.must_last for key in world.objects]
            assert freed == lower_holders(cluster, pod)
            assert {*claims.matched(pod)} == attributes(cluster, pod)
            aligned = [world.text for world in worlds if not world.must_last]
            assert len(aligned) == len(attributes(cluster, pod))
            seen |= {bool(freed), *aligned}
    assert len(seen) == 4, "there are pods with and without each"


@pytest.mark.parametrize("template", ["any", "own"])
def test_looking_for_worlds_does_not_grow_with_the_claims_of_others(template: str) -> None:
    """Every claim was read for every refused pod: with twice as many waiting, four times."""

    def calls(waiting: int) -> int:
        cluster = cluster_of(1, random.Random())
        for number in range(waiting):
            cluster.pod(f"pod-{number}", template=template)
        views, claims = looked_up(cluster)
        pod = cluster.must("pods", "pod-0")
        _, count = counted(alternative_worlds.worlds, views, claims, pod)
        return count

    assert calls(24) < calls(12) + 12
