"""Histories of our own, written as audit logs: decided again and verified they are the same.

They hold what the recordings at hand do not: prioritized lists, shares of capacity, extended
resources, binding conditions, devices aligned by an attribute, generations of pools, waits beyond
the flush of the queue, and pods evicted for others of higher priority. Bindings take time, and the
random source is seeded.
"""

import random

import pytest

from app.adapters.history.writers import AuditWriter
from app.analysis.replay.differences import Aspect
from app.analysis.replay.report import REFUSED_PLAN, Agreement
from app.analysis.verify.compare import ComparisonResult
from app.bootstrap import process_settings, replays, stores
from app.domain.controllers.registry import ControllerOptions
from app.domain.controllers.scheduling.binding_cycle.delayed_binding import (
    FixedBindDelay,
)
from app.domain.objects.profile import Profile
from tests import draws
from tests.cluster import DRIVER, Cluster

GATES = (
    "DRAConsumableCapacity",
    "DRADeviceBindingConditions",
    "DRADeviceTaintRules",
    "DRAExtendedResource",
    "DRAPrioritizedList",
    "DRAResourceClaimDeviceStatus",
)
NIC = "nic.example.com"


def cluster_of(nodes):
    cluster = Cluster(
        Profile(gates=dict.fromkeys(GATES, True)),
        ControllerOptions(bind_delay=FixedBindDelay(40_000)),
        kubelet=True,
    )
    for number in range(nodes):
        cluster.node(f"node-{number}")
    cluster.device_class()
    return cluster


def arrivals(cluster, chance, template, count, *, run=(5, 40), gap=(0, 900)):
    """Pods of a template that come at random, run for a while and go."""
    for number in range(count):
        cluster.wait(chance.randint(*gap) / 1000)
        made = cluster.pod(f"{template}-{number}", template=template, restartPolicy="Never")
        name = made["metadata"]["name"]
        seconds = {"redra.dev/run-seconds": str(chance.randint(*run))}
        cluster.patch("pods", name, {"metadata": {"annotations": seconds}})
        if chance.random() < 0.1:
            cluster.delete("pods", name)


def template(cluster, name, spec):
    cluster.create("resource.k8s.io/v1", "ResourceClaimTemplate", name, spec={"spec": spec})


def prioritized(cluster, chance):
    for number in range(4):
        kind = "fast" if number % 2 else "slow"
        named = [
            {"name": f"gpu-{each}", "attributes": {"kind": {"string": kind}}} for each in range(2)
        ]
        cluster.slice(f"node-{number}", devices=named)
    for kind in ("fast", "slow"):
        expression = f'device.attributes["{DRIVER}"].kind == "{kind}"'
        cluster.device_class(kind, expression)
    wanted = [{"name": kind, "deviceClassName": kind} for kind in ("fast", "slow")]
    spec = {"devices": {"requests": [{"name": "gpu", "firstAvailable": wanted}]}}
    template(cluster, "list", spec)
    arrivals(cluster, chance, "list", 30)


def shares(cluster, chance):
    memory = {"memory": {"value": "40Gi", "requestPolicy": {"default": "10Gi"}}}
    for number in range(3):
        devices = [
            {"name": name, "allowMultipleAllocations": True, "capacity": memory} for name in "ab"
        ]
        cluster.slice(f"node-{number}", devices=devices)
    for size in (10, 15, 25):
        request = {"deviceClassName": "gpu", "capacity": {"requests": {"memory": f"{size}Gi"}}}
        spec = {"devices": {"requests": [{"name": "gpu", "exactly": request}]}}
        template(cluster, f"share-{size}", spec)
        arrivals(cluster, chance, f"share-{size}", 12)


def extended(cluster, chance):
    for number in range(2):
        cluster.slice(f"node-{number}", devices=2)
    spec = {"extendedResourceName": "example.com/gpu"}
    cluster.create("resource.k8s.io/v1", "DeviceClass", "extended", spec=spec)
    asked = {"cpu": "1", "example.com/gpu": "1"}
    for number in range(10):
        cluster.wait(chance.randint(0, 3000) / 1000)
        made = cluster.pod(f"pod-{number}", restartPolicy="Never", requests=asked)
        seconds = {"redra.dev/run-seconds": str(chance.randint(5, 20))}
        cluster.patch("pods", made["metadata"]["name"], {"metadata": {"annotations": seconds}})


def conditions(cluster, chance):
    """One device is made ready, one fails, one is never heard of again."""
    for number in range(3):
        device = {
            "name": "d",
            "bindsToNode": True,
            "bindingConditions": ["ready"],
            "bindingFailureConditions": ["failed"],
        }
        cluster.slice(f"node-{number}", devices=[device])
    for number, kind in enumerate(("ready", "failed", "")):
        cluster.claim(f"claim-{number}")
        cluster.pod(f"pod-{number}", claim=f"claim-{number}")
        cluster.wait(chance.randint(1000, 4000) / 1000)
        held = cluster.must("resourceclaims", f"claim-{number}")["status"]["allocation"]
        result = held["devices"]["results"][0]
        if kind:
            said = {
                "type": kind,
                "status": "True",
                "reason": "Told",
                "message": "by the driver",
                "lastTransitionTime": "2026-01-02T03:00:00Z",
            }
            device = {name: result[name] for name in ("driver", "pool", "device")}
            status = {"status": {"devices": [{**device, "conditions": [said]}]}}
            cluster.patch("resourceclaims", f"claim-{number}", status, subresource="status")
        cluster.wait(6)
    cluster.wait(620)


def aligned(cluster, chance):
    for number in range(2):
        for driver in (DRIVER, NIC):
            devices = [
                {
                    "name": f"d{each}",
                    "attributes": {"resource.kubernetes.io/pcieRoot": {"string": f"pci{each}"}},
                }
                for each in range(3)
            ]
            name = f"{driver.partition('.')[0]}-{number}"
            cluster.slice(f"node-{number}", devices=devices, name=name, driver=driver)
    for driver in (DRIVER, NIC):
        name = driver.partition(".")[0]
        cluster.device_class(f"{name}-class", f'device.driver == "{driver}"')
    requests = [
        {"name": name, "exactly": {"deviceClassName": f"{name}-class"}} for name in ("gpu", "nic")
    ]
    same = {"matchAttribute": "resource.kubernetes.io/pcieRoot", "requests": ["gpu", "nic"]}
    template(cluster, "pair", {"devices": {"requests": requests, "constraints": [same]}})
    arrivals(cluster, chance, "pair", 20)


def generations(cluster, chance):
    """A driver publishes new generations while pods wait: old, incomplete, complete."""
    cluster.template("any")
    for number in range(2):
        cluster.slice(f"node-{number}", devices=1)
    arrivals(cluster, chance, "any", 8, run=(60, 90))
    for number in range(2):
        pool = {"name": f"node-{number}", "generation": 2, "resourceSliceCount": 2}
        cluster.slice(f"node-{number}", devices=[{"name": "new"}], name=f"more-{number}", pool="x")
        cluster.delete("resourceslices", f"more-{number}")
        body = cluster.must("resourceslices", f"node-{number}-slice")
        cluster.update("resourceslices", {**body, "spec": {**body["spec"], "pool": pool}})
        cluster.wait(chance.randint(1000, 5000) / 1000)
        second = {
            "driver": DRIVER,
            "nodeName": f"node-{number}",
            "pool": pool,
            "devices": [{"name": "new"}],
        }
        cluster.create("resource.k8s.io/v1", "ResourceSlice", f"second-{number}", spec=second)
        cluster.wait(5)


def flushed(cluster, chance):
    """Shared claims, and a device that is freed without waking anybody (C15)."""
    cluster.slice("node-0", devices=1)
    cluster.claim("first")
    cluster.claim("shared")
    cluster.pod("holder", claim="first")
    cluster.wait(5)
    for number in range(4):
        cluster.pod(f"sharer-{number}", claim="shared")
        cluster.wait(chance.randint(0, 50) / 1000)
    cluster.finish("holder")
    cluster.wait(700)


def preempted(cluster, chance):
    """Pods of three priorities on full nodes: some go for others, with their claims."""
    for name, value in (("high", 1000), ("middle", 10)):
        cluster.create("scheduling.k8s.io/v1", "PriorityClass", name, value=value)
    cluster.template("any")
    for number in range(3):
        cluster.slice(f"node-{number}", devices=4)
    for number in range(30):
        cluster.wait(chance.randint(500, 6000) / 1000)
        chosen = chance.choice(("high", "middle", ""))
        spec = {"priorityClassName": chosen} if chosen else {}
        cluster.pod(
            f"pod-{number}",
            template="any" if chance.random() < 0.3 else "",
            requests={"cpu": str(chance.randint(4, 16))},
            restartPolicy="Never",
            terminationGracePeriodSeconds=chance.randint(1, 20),
            **spec,
        )
        seconds = {"redra.dev/run-seconds": str(chance.randint(20, 60))}
        cluster.patch("pods", f"pod-{number}", {"metadata": {"annotations": seconds}})
    told = [event.object.get("reason") for event in cluster.line.events]
    assert told.count("Preempted") >= 5, "the scene is about evictions"


def rationed(cluster, chance):
    """A quota refuses claims: their generated names are only in Events."""
    cluster.slice("node-0", devices=4)
    cluster.template("any")
    hard = {"gpu.deviceclass.resource.k8s.io/devices": "1"}
    quota = {"metadata": {"name": "few", "namespace": "default"}, "spec": {"hard": hard}}
    cluster.apply({"apiVersion": "v1", "kind": "ResourceQuota", **quota})
    for number in range(3):
        cluster.pod(f"pod-{number}", template="any", restartPolicy="Never")
        cluster.wait(chance.randint(500, 3000) / 1000)
    cluster.finish("pod-0")
    cluster.wait(30)
    told = [event.object.get("message", "") for event in cluster.line.events]
    assert any("is forbidden: exceeded quota" in text for text in told)


def tainted(cluster, chance):
    """Rules come at the instants at which the status of another one is due by itself."""
    cluster.template("any")
    for number in range(2):
        cluster.slice(f"node-{number}", devices=4)
    for number in range(8):
        cluster.pod(f"pod-{number}", template="any", terminationGracePeriodSeconds=3)
        cluster.wait(chance.randint(1, 3))
    for number in range(4):
        cluster.rule(f"rule-{number}")
        cluster.wait(5)


SCENARIOS = {
    scene.__name__: (scene, nodes)
    for scene, nodes in (
        (prioritized, 4),
        (shares, 3),
        (extended, 2),
        (conditions, 3),
        (aligned, 2),
        (generations, 2),
        (flushed, 1),
        (preempted, 3),
        (rationed, 1),
        (tainted, 2),
    )
}


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """Makes the audit log of a scenario once."""
    made = {}

    def log_of(name):
        if name not in made:
            scene, nodes = SCENARIOS[name]
            cluster = cluster_of(nodes)
            scene(cluster, random.Random(f"decide {name}"))
            cluster.wait(120)
            made[name] = tmp_path_factory.mktemp(name) / "audit.jsonl"
            writer = AuditWriter(made[name])
            writer.write(cluster.line.events)
            writer.finish({})
        return made[name]

    return log_of


async def replay(work, path):
    settings = process_settings.settings(gates=[f"{gate}=true" for gate in GATES])
    store = stores.memory_store()
    history = await replays.load_files(store, settings, (path,))
    return await work(store, settings, history, "", lambda *_: None)


@draws.in_turn("ways")
@pytest.mark.parametrize("name", SCENARIOS)
async def test_history_of_ours_is_decided_literally(name, logs):
    report = await replay(replays.decide, logs(name))
    assert [found.to_json() for found in report.differences] == []
    assert (report.agreement, report.not_done.keys() - {REFUSED_PLAN}) == (Agreement.AGREES, set())
    # A claim beyond its quota is refused here as it was there, which leaves nothing open.
    assert (REFUSED_PLAN in report.not_done) is (name == "rationed")
    assert report.aspects[Aspect.NODES].same > 0


@draws.in_turn("ways")
@pytest.mark.parametrize("name", SCENARIOS)
async def test_every_allocation_of_ours_is_verified(name, logs):
    report = await replay(replays.verify, logs(name))
    counts = report.allocations.counts
    assert (
        counts.get(ComparisonResult.DIFFERENT, 0)
        == counts.get(ComparisonResult.NOT_COMPARABLE, 0)
        == 0
    )
    assert counts[ComparisonResult.SAME] > 0
    assert report.agrees
