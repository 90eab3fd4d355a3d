"""A pod is to be evicted exactly when the taints of its devices say so (controllers.md 7.3, 5).

A small cluster takes random steps. At rest after each step, the eviction of every pod is computed
from the objects alone: due evictions have been done, later ones are in a queue, and no pod was
evicted without a taint.

Seeds come by day.
"""

import random
from contextlib import suppress

import pytest

from app.domain.controllers import pods
from app.domain.controllers.claims import pod_sync
from app.domain.controllers.claims.users import ClaimUsers
from app.domain.controllers.eviction import TaintState, taints
from app.domain.controllers.resources import claim_key
from app.domain.errors import Rejected
from app.domain.log import ObjectKey
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject
from tests import draws
from tests.cluster import DRIVER, Cluster, check_decisions

STEPS = 60
EFFECTS = ("NoExecute", "NoExecute", "NoSchedule", "None")
KEYS = ("hot", "old")


class Life:
    """A cluster that takes random steps."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.cluster = Cluster()
        self.cluster.node(pods=20)
        self.cluster.device_class()
        self.cluster.slice(devices=6)
        self._count = 0
        for name, tolerations in (
            ("hasty", []),
            ("patient", [{"key": "hot", "operator": "Exists", "tolerationSeconds": 30}]),
            ("stoic", [{"key": "hot", "operator": "Exists", "effect": "NoExecute"}]),
            ("slow", [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 90}]),
        ):
            self.cluster.template(name, tolerations=tolerations)
        for name in ("shared-1", "shared-2"):
            self.cluster.claim(name)
        self.cluster.settle()

    def step(self) -> None:
        acts = (self.arrive, self.arrive, self.publish, self.rule, self.change, self.forget,
                self.end, self.leave, self.wait, self.wait)  # fmt: skip
        with suppress(Rejected):  # what chance asks for may not be there any more
            self.chance.choice(acts)()
        self.cluster.settle()

    def arrive(self) -> None:
        self._count += 1
        name = f"pod-{self._count}"
        if self.chance.random() < 0.3:
            self.cluster.pod(name, claim=self.chance.choice(("shared-1", "shared-2")))
        else:
            kind = self.chance.choice(("hasty", "patient", "stoic", "slow"))
            self.cluster.pod(name, template=kind)

    def publish(self) -> None:
        tree = json_tree.copy(self.cluster.must("resourceslices", "n1-slice"))
        for device in tree["spec"]["devices"]:
            device["taints"] = [self.taint()] if self.chance.random() < 0.4 else []
        tree["spec"]["pool"]["generation"] += self.chance.randint(0, 1)
        self.cluster.update("resourceslices", tree)

    def taint(self) -> JsonObject:
        return {"key": self.chance.choice(KEYS), "effect": self.chance.choice(EFFECTS)}

    def rule(self) -> None:
        self._count += 1
        selector: JsonObject = {"driver": DRIVER}
        if self.chance.random() < 0.7:
            selector["device"] = f"gpu-{self.chance.randint(0, 5)}"
        spec = {"deviceSelector": selector, "taint": self.taint()}
        name = f"rule-{self._count}"
        self.cluster.create("resource.k8s.io/v1", "DeviceTaintRule", name, spec=spec)

    def change(self) -> None:
        for name in self.some("devicetaintrules"):
            body = {"spec": {"taint": {"effect": self.chance.choice(EFFECTS)}}}
            self.cluster.patch("devicetaintrules", name, body)

    def forget(self) -> None:
        for name in self.some("devicetaintrules"):
            self.cluster.delete("devicetaintrules", name)

    def end(self) -> None:
        for name in self.some("pods"):
            self.cluster.finish(name, self.chance.choice(("Succeeded", "Failed")))

    def leave(self) -> None:
        for name in self.some("pods"):
            self.cluster.delete("pods", name, grace_seconds=self.chance.choice((None, 0)))

    def wait(self) -> None:
        self.cluster.wait(self.chance.choice((1, 5, 29, 60)))

    def some(self, resource: str) -> list[str]:
        names = self.cluster.names(resource)
        return [self.chance.choice(names)] if names else []


def check_evictions(cluster: Cluster) -> int:
    """Checks that all due evictions have been done; returns the number of later ones."""
    state = TaintState()
    for event in cluster.line.events:
        if event.is_about_object:
            state.fold(event)
    coming = 0
    for place, pod in sorted(state.pods.items()):
        eviction = state.pod_eviction(place)
        asked = [state.claim_eviction(claim.results) for claim in state.claims_of(pod)]
        assert eviction == taints.earliest(found for found in asked if found is not None)
        tree = cluster.must("pods", place[1])
        if eviction is None or "deletionTimestamp" in tree["metadata"]:
            continue
        assert eviction.time > cluster.line.now, f"{place[1]} should have been evicted"
        due = cluster.line.due() or eviction.time + 1
        assert due <= eviction.time, f"nobody waits to evict {place[1]}"
        coming += 1
    return coming


def check_short_ways(cluster: Cluster) -> int:
    """Checks that pods skipped by the short way need no work; returns their number."""
    objects = cluster.line.views.objects
    served = 0
    for place in (("", "pods", "default", name) for name in cluster.names("pods")):
        tree = objects.get(ObjectKey(*place))
        assert tree is not None
        pod = pods.facts(tree)
        assert pods.is_done(tree) == pod.is_done
        claim = objects.get(claim_key("default", pod.entries[0].claim))
        reserved = frozenset() if claim is None else pods.reserved_uids(claim)
        assert all(pods.is_reserved_for(claim or {}, uid) for uid in reserved)
        users = ClaimUsers()
        users.add(pod)
        if not users.to_look_at(("default", pod.entries[0].claim), reserved):
            assert not pod_sync.needs_work(objects, pod), f"{pod.name} was passed over"
            served += 1
    return served


def check_reasons(cluster: Cluster) -> int:
    """Checks that each eviction has a taint as its cause, and that no pod is evicted twice."""
    state = TaintState()
    evicted: set[str] = set()
    for event in cluster.line.events:
        if event.is_about_object:
            state.fold(event)
        elif event.object.get("outcome") == "Evicted":
            body = event.object
            eviction = state.pod_eviction((body["namespace"], body["name"]))
            assert eviction is not None, f"{body['name']} was evicted without a reason"
            assert eviction.time <= event.stamp.time, f"{body['name']} was evicted too early"
            assert body["inputs"]["uid"] not in evicted
            evicted.add(body["inputs"]["uid"])
    return len(evicted)


@draws.BY_DAY
@pytest.mark.parametrize("seed", range(12))
def test_pods_are_evicted_when_and_only_when_taints_ask_for_it(seed):
    life = Life(seed)
    coming = served = 0
    for _ in range(STEPS):
        life.step()
        coming += check_evictions(life.cluster)
        served += check_short_ways(life.cluster)
    assert served > 0, "no pod shared a claim in this life"
    assert coming + check_reasons(life.cluster) > 0, "nothing happened in this life"
    decisions, effects = check_decisions(life.cluster)
    assert (decisions.differences, effects.differences) == ((), ())
