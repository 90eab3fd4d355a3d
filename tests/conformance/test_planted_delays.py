"""Acts that come late in the recording of a small cluster: which delays a replay accepts.

A replay acts when the recorded controllers acted. So it would agree with any delay, if delays were
not judged by themselves. Here one act of an honest cluster is held back while everything else goes
on; the verdicts were fixed before the first run.
"""

import random
from dataclasses import dataclass, field, replace

import pytest

from app.analysis.replay.report import Agreement
from app.bootstrap import process_settings, replays, stores
from app.domain.controllers.garbage import pod_gc
from app.domain.controllers.nodes import readiness
from app.domain.controllers.registry import ControllerOptions
from app.domain.controllers.scheduling.queue.waiting_pods import QUEUE
from app.domain.objects.profile import Profile
from app.domain.values.timestamps import SECOND, Instant
from tests import draws
from tests.cluster import Cluster
from tests.conformance.soak_lines import retell
from tests.conformance.soak_recordings import (
    CLASS,
    DRIVER,
    GATES,
    RELEASE,
    Load,
    SlowControlPlane,
)

pytestmark = pytest.mark.timeout(0)

ACCEPTED = frozenset((Agreement.AGREES, Agreement.PROVED))
MANAGED = ("claims", "eviction", "garbage", "rule-status")


@dataclass(kw_only=True)
class Held:
    """What is held back: keys of a queue that name a pod, or all queues of a process."""

    queue: str = ""
    name: str = ""
    seconds: float = 0
    since: float = 0
    away: tuple[float, float] = (0, 0)


class HeldControlPlane(SlowControlPlane):
    """A control plane of which one act, or one process, is held back."""

    def __init__(self, held: Held, start: Instant) -> None:
        super().__init__(Load(seed=7))
        self.held = held
        self.start = start
        self.release: dict[tuple[str, ...], int] = {}
        self.pods: dict[str, str] = {}

    def not_before(self, queue, key, now):
        held = self.held
        since = (now - self.start) / SECOND
        begin, end = held.away
        if queue.partition("/")[0] in MANAGED and begin <= since < end:
            return Instant(self.start + int(end * SECOND))
        named = queue == held.queue and held.name in self.names_of(key)
        if named and since >= held.since:
            until = self.release.setdefault(key, now + int(held.seconds * SECOND))
            if now < until:
                return Instant(until)
        return super().not_before(queue, key, now)

    def names_of(self, key):
        return {*key, *(self.pods.get(part, "") for part in key)}


@dataclass
class Story:
    """Six pods on one node, and one pod more on another node every second.

    That other node may be closed for some seconds. The first one is lost instead of its devices'
    being tainted, if `is_lost`.
    """

    held: Held = field(default_factory=Held)
    tainted: tuple[int, ...] = (0, 1, 2, 3, 4, 5)
    seconds: int = 50
    closed: tuple[int, ...] = ()
    is_lost: bool = False

    def tell(self, path):
        plane = HeldControlPlane(self.held, Instant(0))
        cluster = Cluster(
            Profile(version=RELEASE, gates=dict.fromkeys(GATES, True)),
            ControllerOptions(bind_delay=plane.bind_delay, pace=plane),
            seed=7,
            kubelet=True,
            namespaces=("default",),
        )
        cluster.line.followers.append(plane.follow)
        plane.start = start = cluster.line.now
        cluster.line.followers.append(
            lambda event: plane.pods.setdefault(event.uid, event.key.name)
        )
        for node in ("node-00", "node-01"):
            cluster.node(node, cpu="64")
            cluster.slice(node, devices=[{"name": f"gpu-{n}"} for n in range(40)])
        cluster.device_class(CLASS, f"device.driver == '{DRIVER}'")
        request = {"name": "g", "exactly": {"deviceClassName": CLASS}}
        spec = {"spec": {"devices": {"requests": [request]}}}
        self.apply(cluster, "ResourceClaimTemplate", "one", {"spec": spec})
        cluster.settle()
        for number in range(6):
            self.at(cluster, start, 1 + number)
            self.pod(cluster, f"a-{number}", "node-00")
        self.at(cluster, start, 12)
        if self.is_lost:
            cluster.delete("nodes", "node-00")
        else:
            self.taint(cluster)
        for number in range(min(self.seconds - 14, 40)):
            self.at(cluster, start, 13 + number)
            self.pod(cluster, f"b-{number}", "node-01")
            if 13 + number in self.closed:
                is_closed = 13 + number == self.closed[0]
                body = {"spec": {"unschedulable": is_closed or None}}
                cluster.patch("nodes", "node-01", body)
        self.at(cluster, start, self.seconds)
        retell(cluster.line.events, plane.late, path, random.Random(7), answers=3)
        return path / "audit.jsonl"

    def at(self, cluster, start, seconds):
        cluster.settle()
        cluster.line.advance(Instant(start + seconds * SECOND))

    def taint(self, cluster):
        tree = cluster.must("resourceslices", "node-00-slice")
        held = {
            result["device"]
            for number in self.tainted
            for claim in [self.claim_of(cluster, f"a-{number}")]
            for result in claim["status"]["allocation"]["devices"]["results"]
        }
        taint = {"key": "example.com/broken", "effect": "NoExecute"}
        devices = [
            {**device, "taints": [taint]} if device["name"] in held else device
            for device in tree["spec"]["devices"]
        ]
        pool = {**tree["spec"]["pool"], "generation": tree["spec"]["pool"]["generation"] + 1}
        spec = {**tree["spec"], "pool": pool, "devices": devices}
        cluster.update("resourceslices", {**tree, "spec": spec})

    def claim_of(self, cluster, pod):
        named = cluster.must("pods", pod)["status"]["resourceClaimStatuses"][0]
        return cluster.must("resourceclaims", named["resourceClaimName"])

    def pod(self, cluster, name, node):
        spec = {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 2,
            "nodeSelector": {"kubernetes.io/hostname": node},
            "containers": [{"name": "main", "image": "example.com/workload:1"}],
            "resourceClaims": [{"name": "dev", "resourceClaimTemplateName": "one"}],
        }
        self.apply(cluster, "Pod", name, {"spec": spec})

    def apply(self, cluster, kind, name, content):
        version = "v1" if kind == "Pod" else "resource.k8s.io/v1"
        metadata = {"name": name, "namespace": "default"}
        cluster.apply({"apiVersion": version, "kind": kind, "metadata": metadata, **content})


async def decided(story, folder):
    folder.mkdir(exist_ok=True)
    settings = replace(process_settings.settings(profile=RELEASE), decide_runs_max=8)
    store = stores.memory_store()
    history = await replays.load_files(store, settings, (story.tell(folder),))
    return await replays.decide(store, settings, history, "", lambda *_: None)


def late(queue, name, by, since=0, **more):
    return Story(Held(queue=queue, name=name, seconds=by, since=since), **more)


def late_node(by, since, closed=(20, 30), **more):
    return late(readiness.TAINTS, "node-01", by, since=since, closed=closed, **more)


def late_removal(by):
    return late(pod_gc.NAME, "a-2", by, seconds=160, is_lost=True)


WRONG = {
    "one of six evictions, 3 s": late("eviction", "a-2", 3),
    "one of six evictions, 11 s": late("eviction", "a-2", 11),
    "one of six evictions, 30 s": late("eviction", "a-2", 30),
    "one of six evictions, 300 s": late("eviction", "a-2", 300, seconds=330),
    "the only eviction, 30 s, while its process works": late("eviction", "a-2", 30, tainted=(2,)),
    "a claim that is made, 3 s": late("claims/pods", "b-1", 3),
    "a claim that is made, 30 s": late("claims/pods", "b-1", 30),
    "a pod that is tried, 5 s": late(QUEUE, "b-1", 5),
    "a pod that is tried, 30 s": late(QUEUE, "b-1", 30),
    "a manager that is away for 90 s": Story(Held(away=(11, 101)), seconds=110),
    "the removal of one of six pods of a lost node, 75 s": late_removal(75),
    "the taint of a closed node, 37 s": late_node(37, 14, closed=(15,), seconds=60),
    "the taint of an opened node, 37 s": late_node(37, 17, closed=(15, 18), seconds=60),
}
HONEST = {
    "nothing": Story(),
    "one of six evictions, 1 s": late("eviction", "a-2", 1),
    "the only eviction, 11 s": late("eviction", "a-2", 11, tainted=(2,)),
    "a manager that is replaced within 20 s": Story(Held(away=(11, 31))),
    "the removal of six pods of a lost node": late_removal(0),
    "the taint of a closed node, 0.3 s": late_node(0.3, 15),
    "the taint of a closed node, 6 s": late_node(6, 15),
    "the taint of an opened node, 0.3 s": late_node(0.3, 25),
    "the taint of an opened node, 6 s": late_node(6, 25),
}


@draws.in_turn("ways")
@pytest.mark.parametrize("name", draws.by_turns([tuple(WRONG)]))
async def test_delay_that_nothing_explains_fails(name, tmp_path):
    report = await decided(WRONG[name], tmp_path)
    assert report.violations


@draws.in_turn("ways")
@pytest.mark.parametrize("name", draws.by_turns([tuple(HONEST)[1:]]))
async def test_delay_that_may_be_is_accepted(name, tmp_path):
    report = await decided(HONEST[name], tmp_path)
    assert (dict(report.violations), report.agreement in ACCEPTED) == ({}, True)


class Waiting(Story):
    """A pod that fits nowhere, and a node that is closed: from then on it does for another reason.

    Nothing wakes the pod, but the scheduler moves it after five minutes. Others come meanwhile.
    """

    def tell(self, path):
        plane = HeldControlPlane(self.held, Instant(0))
        cluster = Cluster(
            Profile(version=RELEASE),
            ControllerOptions(bind_delay=plane.bind_delay, pace=plane),
            seed=7,
            kubelet=True,
            namespaces=("default",),
        )
        cluster.line.followers.append(plane.follow)
        plane.start = start = cluster.line.now
        cluster.line.followers.append(
            lambda event: plane.pods.setdefault(event.uid, event.key.name)
        )
        for node in ("node-00", "node-01"):
            cluster.node(node, cpu="64")
            cluster.slice(node, devices=[{"name": "gpu-0"}])
        cluster.device_class(CLASS, f"device.driver == '{DRIVER}'")
        request = {"name": "g", "exactly": {"deviceClassName": CLASS}}
        spec = {"spec": {"devices": {"requests": [request]}}}
        self.apply(cluster, "ResourceClaimTemplate", "one", {"spec": spec})
        cluster.settle()
        for number, node in enumerate(("node-00", "node-01", "node-01")):
            self.at(cluster, start, 1 + number)
            self.pod(cluster, f"a-{number}", node)
        self.at(cluster, start, 10)
        cluster.patch("nodes", "node-01", {"spec": {"unschedulable": True}})
        for number in range(40):
            self.at(cluster, start, 20 + 25 * number)
            containers = [{"name": "main", "image": "example.com/workload:1"}]
            chosen = {"kubernetes.io/hostname": "node-00"}
            spec = {"restartPolicy": "Never", "containers": containers, "nodeSelector": chosen}
            self.apply(cluster, "Pod", f"b-{number}", {"spec": spec})
        self.at(cluster, start, 1_030)
        retell(cluster.line.events, plane.late, path, random.Random(7), answers=3)
        return path / "audit.jsonl"


@draws.in_turn("ways")
@pytest.mark.parametrize(
    ("seconds", "agreements"),
    [(0, ACCEPTED), (60, ACCEPTED), (10_000, {Agreement.UNEXPLAINED})],
)
async def test_pod_is_tried_again_after_the_time_of_the_flush(seconds, agreements, tmp_path):
    report = await decided(
        Waiting(Held(queue=QUEUE, name="a-2", seconds=seconds, since=5)), tmp_path
    )
    assert report.agreement in agreements
    assert all("a-2" in each.subject for each in report.differences)
