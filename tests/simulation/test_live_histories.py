"""Histories of controllers that act at the same time are decided again to the same result.

A drawn schedule of clients runs on a cluster with all of redra's controllers and its kubelets. Each
controller plans on a state that others change before the plan is stored, as on a live server.
"""

import random
from contextlib import suppress

import pytest

from app.adapters.memory import MemoryLog, MemoryStore
from app.analysis.replay.report import Agreement
from app.bootstrap.control_planes import ControlPlanes, proofs_of
from app.domain.errors import Rejected
from app.domain.log.event import GENESIS
from app.domain.objects.profile import Profile
from app.domain.values.timestamps import Instant
from app.service.replays.deciding import replay as deciding
from app.service.replays.replaying import ReplayBounds
from app.settings import Settings
from tests import draws
from tests.cluster import Cluster, claim_spec
from tests.simulation.concurrency import ConcurrentTimeline, concurrent

pytestmark = draws.BY_DAY
"""A world of one seed has every rule of its test; the others come on other days."""

SEEDS = draws.seeds(2)
ACTS = 25
SPACES = ("one", "two")
RELEASES = ("1.34", "1.35", "1.36", "1.37")


class Clients:
    """Clients that write at drawn instants, without waiting for the controllers."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(f"clients {seed}")
        self.release = RELEASES[seed % len(RELEASES)]
        gates = {"DRADeviceTaints": True} if self.release in ("1.34", "1.35") else {}
        if self.release >= "1.35":
            gates["DRADeviceTaintRules"] = True
        if self.release == "1.34":
            gates = {}
        self.cluster = Cluster(Profile(version=self.release, gates=gates), seed=seed, kubelet=True)
        self.number = 0
        cluster = self.cluster
        cluster.device_class()
        for node in range(3):
            cluster.node(f"n{node}", cpu="8")
            cluster.slice(f"n{node}", devices=3)
        cluster.wait(1)
        self.line: ConcurrentTimeline = concurrent(cluster, seed)
        for space in SPACES:
            self.found(space)
        self.line.settle()

    def found(self, space: str) -> None:
        """Makes a namespace with its templates."""
        self.cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}})
        for name, count in (("gpu", 1), ("pair", 2)):
            self.cluster.apply(
                {
                    "apiVersion": "resource.k8s.io/v1",
                    "kind": "ResourceClaimTemplate",
                    "metadata": {"name": name, "namespace": space},
                    "spec": {"spec": claim_spec(count=count)},
                }
            )

    def deploy(self) -> None:
        """Makes a Deployment with claims."""
        self.number += 1
        labels = {"app": f"d{self.number}"}
        spec = {
            "terminationGracePeriodSeconds": self.random.choice((0, 1, 3)),
            "resourceClaims": [
                {"name": "gpu", "resourceClaimTemplateName": self.random.choice(("gpu", "pair"))}
            ],
            "containers": [{"name": "main", "image": "busybox:1"}],
        }
        self.cluster.apply(
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": f"d{self.number}", "namespace": self.random.choice(SPACES)},
                "spec": {
                    "replicas": self.random.randint(1, 4),
                    "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": spec},
                },
            }
        )

    def run(self) -> None:
        """Makes a pod that ends by itself."""
        self.number += 1
        space = self.random.choice(SPACES)
        name = f"p{self.number}"
        self.cluster.apply(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": name,
                    "namespace": space,
                    "annotations": {"redra.dev/run-seconds": self.random.choice(("1", "5"))},
                },
                "spec": {
                    "restartPolicy": "Never",
                    "terminationGracePeriodSeconds": 1,
                    "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
                    "containers": [{"name": "main", "image": "busybox:1"}],
                },
            }
        )

    def scale(self) -> None:
        """Changes the number of a Deployment's pods."""
        if key := self._any("apps", "deployments"):
            body = {"spec": {"replicas": self.random.randint(0, 5)}}
            self.cluster.patch("deployments", key.name, body, namespace=key.namespace)

    def remove(self) -> None:
        """Deletes a pod, half of the time without grace."""
        if key := self._any("", "pods"):
            grace = self.random.choice(({}, {"grace_seconds": 0}))
            self.cluster.delete("pods", key.name, key.namespace, **grace)

    def evict_all(self) -> None:
        """Closes a node and deletes its pods, as `kubectl drain` does."""
        node = f"n{self.random.randrange(3)}"
        self.cluster.patch("nodes", node, {"spec": {"unschedulable": True}})
        self.line.stir(self.random.randrange(6))
        objects = self.line.views.objects
        for key in list(objects.keys("", "pods")):
            pod = objects.get(key)
            if pod is not None and pod["spec"].get("nodeName") == node:
                self.cluster.delete("pods", key.name, key.namespace)

    def open(self) -> None:
        """Opens all nodes again."""
        for node in range(3):
            self.cluster.patch("nodes", f"n{node}", {"spec": {"unschedulable": None}})
            self.line.stir(self.random.randrange(3))

    def taint(self) -> None:
        """Makes a rule about the devices of a node, where the release has rules."""
        if self.release < "1.35":
            return
        self.number += 1
        effect = self.random.choice(("NoExecute", "NoExecute", "NoSchedule"))
        selector = {"driver": "gpu.example.com", "pool": f"n{self.random.randrange(3)}"}
        self.cluster.rule(f"rule-{self.number}", effect=effect, selector=selector)

    def untaint(self) -> None:
        """Deletes all rules."""
        for name in self.cluster.names("devicetaintrules"):
            self.cluster.delete("devicetaintrules", name)

    def end(self) -> None:
        """Deletes a namespace with all that runs in it."""
        space = self.random.choice(SPACES)
        self.cluster.delete("namespaces", space)

    def renew(self) -> None:
        """Makes a namespace again that has ended."""
        for space in SPACES:
            if self.cluster.get("namespaces", space) is None:
                self.found(space)

    def _any(self, group: str, resource: str):
        keys = list(self.line.views.objects.keys(group, resource))
        return self.random.choice(keys) if keys else None

    def act(self) -> None:
        """One write of a client; then a drawn time passes, or the next write comes at once."""
        acts = (self.deploy, self.run, self.scale, self.remove, self.evict_all, self.open)
        acts += (self.taint, self.untaint, self.end, self.renew)
        with suppress(Rejected):  # the object, or its namespace, is ending or has ended
            self.random.choices(acts, (3, 5, 5, 3, 1, 2, 2, 1, 1, 2))[0]()
        self.line.stir(self.random.randrange(12))
        if self.random.random() < 0.6:
            self.cluster.wait(self.random.choice((0.001, 0.2, 1, 6, 20)))


async def decided(cluster: Cluster):
    """The history of a cluster, decided again."""
    log, settings = MemoryLog(MemoryStore()), Settings()
    info = await log.create_history(
        "live", seed=7_000, settings=cluster.profile.settings(), created=Instant(0), hash=GENESIS
    )
    await log.append(info.id, expected=await log.head(info.id), events=cluster.line.events)
    return await deciding.decide(
        log,
        info,
        until=(await log.head(info.id)).revision,
        plane=ControlPlanes(info),
        bounds=ReplayBounds(page_max=1000, events_max=1_000_000),
        proofs=proofs_of(settings, info, info),
    )


@pytest.mark.parametrize("seed", SEEDS)
async def test_history_of_controllers_at_the_same_time_is_decided_alike(seed):
    clients = Clients(seed)
    for _ in range(ACTS):
        clients.act()
    clients.cluster.wait(60)
    report = await decided(clients.cluster)
    assert [each.to_json() for each in report.differences] == []
    assert report.agreement is Agreement.AGREES, f"seed {seed}, {clients.release}"
