"""Generated soaks: a seeded load on controllers that are as slow as real ones.

`python -m tests.conformance.soak_recordings --out DIR --seed 1 --minutes 10 --pods 1120` writes the
audit log and the watch streams of a cluster of ten nodes with 40 devices, in the form of recordings
(history-formats.md 4 and 5). Decisions are those of the controllers here. What makes a recording
hard is imitated: clients that may send 50 and 20 requests a second, so that conditions, Events and
bindings come seconds after the attempt; attempts one after the other; answers that take long;
reports that are dated some milliseconds after the attempt.
"""

import argparse
import random
from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path

from app.analysis.replay.variants import CacheOfClaims, Variant
from app.domain.controllers.garbage import namespaces, pod_gc
from app.domain.controllers.quirks import ControllerQuirks
from app.domain.controllers.registry import ControllerOptions
from app.domain.controllers.scheduling.queue.waiting_pods import QUEUE
from app.domain.errors import Rejected
from app.domain.log import Event, ObjectKey
from app.domain.objects.kinds import extended_resources
from app.domain.objects.profile import Profile
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import SECOND, Instant
from tests.cluster import DRIVER, Cluster
from tests.conformance.soak_lines import SCHEDULER, Late, Vain, retell

MILLI = 1_000
NAMESPACES = ("team-a", "team-b", "team-c")
CLASS = "gpu.example.com"
SHARED_CLASS = "shared.example.com"
GATES = ("DRADeviceTaintRules", "DRAConsumableCapacity", "DRAPrioritizedList")
MANAGER = "system:serviceaccount:kube-system:"
_OF_NAMESPACES = (namespaces.NAME, namespaces.CONTENT, namespaces.END)
RELEASE = "1.36"
"""What the control plane is; a replay must be told so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The size of a load.

    `waiting` pods come within the first seconds, so that many wait at once. `rate` and `burst` are
    those of the scheduler's two clients in writes a second, `noise` is by how many milliseconds
    later than the attempt its report may be dated, `answers` how many an answer usually takes at
    most.
    """

    seed: int = 1
    seconds: int = 600
    pods: int = 1120
    waiting: int = 0
    nodes: int = 10
    rate: int = 50
    burst: int = 100
    noise: int = 4
    answers: int = 30
    quirks: bool = False


@dataclass(slots=True)
class Bucket:
    """The rate limit of one client: requests are sent in the order in which they were made."""

    every: int
    burst: int
    last: int = 0

    def take(self, now: int) -> int:
        """The time at which a request that is made now may be sent."""
        self.last = max(self.last, now - self.burst * self.every) + self.every
        return max(now, self.last)

    @property
    def free_at(self) -> int:
        """The time at which the next request may be sent."""
        return self.last + self.every


class SlowControlPlane:
    """The pace of all controllers and the delays of bindings, with the limits of their clients."""

    def __init__(self, load: Load) -> None:
        self.claims_cache = CacheOfClaims(Variant())
        self._chance = random.Random(f"pace {load.seed}")
        self._rounds = random.Random(f"rounds {load.seed}")
        self._phase = self._rounds.randrange(pod_gc.ROUND)
        self._due: dict[tuple[str, tuple[str, ...]], Instant] = {}
        self._busy = 0
        self._writes = Bucket(SECOND // load.rate, load.burst)
        self._reports = Bucket(SECOND // load.rate, load.burst)
        self._manager = Bucket(SECOND // 20, 30)
        # Many deletions come at once: its client may send twenty times, and at once a hundred times
        # what others may.
        self._namespaces = Bucket(SECOND // 400, 3000)
        self._nominated: dict[str, Instant] = {}
        self._named: dict[str, str] = {}
        self._placed: dict[str, list[Instant]] = {}
        self._refused: dict[str, int] = {}
        self._keys: dict[str, ObjectKey] = {}
        self._claims: dict[str, dict[ObjectKey, str]] = defaultdict(dict)
        self._finalized: dict[str, int] = {}
        self._first_claims: dict[str, str] = {}
        self.vain: list[Vain] = []
        self.late: dict[int, Late] = {}
        self._written: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self._load = load

    def not_before(self, queue: str, key: tuple[str, ...], now: Instant) -> Instant:
        """Attempts one after the other; the controller manager as soon as its client may write."""
        place = (queue, key)
        due = self._due.get(place)
        if due is not None and due <= now:
            del self._due[place]
            return now
        if due is None:
            seen = now + self._micros(1, 12)
            if queue == pod_gc.NAME:
                due = self._round_from(key, now)
            elif queue == QUEUE:
                self._busy = max(self._busy, seen) + self._micros(1, 6)
                # The attempt before ends with the answer to the condition that it wrote.
                due = Instant(max(self._busy, self._refused.get(key[0], 0)))
            else:
                client = self._namespaces if queue in _OF_NAMESPACES else self._manager
                due = Instant(max(seen, client.free_at))
            self._due[place] = due
        return due

    def _round_from(self, key: tuple[str, ...], now: Instant) -> Instant:
        """The round of PodGC that removes a pod; they count from the start of the controller.

        The quarantine of an orphaned pod begins with a round, and mostly ends just after another.
        """
        ready = now - pod_gc.QUARANTINE if key[0] == pod_gc.ORPHANED else now
        begun = ready + (self._phase - ready) % pod_gc.ROUND
        if key[0] != pod_gc.ORPHANED:
            return Instant(begun)
        return Instant(begun + pod_gc.QUARANTINE + self._rounds.choice((0, 1, 1)) * pod_gc.ROUND)

    def next_try(self, queue: str, key: tuple[str, ...], failures: object, until: Instant) -> None:
        """Unknown: here a failure is known when it happens."""
        return

    def seen_from(self, event: Event) -> Instant:
        """The instant of the event: here it is known."""
        return event.stamp.time

    def wait_ends(self, pod: str, now: Instant) -> Instant | None:
        """Unknown: the looks at binding conditions follow each other at their interval."""
        return None

    def wait_lost(self, pod: str, begun: Instant) -> Instant | None:
        """Unknown: here processes end and begin."""
        return None

    def forget_wait(self, pod: str) -> None:
        """Never called: no wait is lost."""

    def version_seen(self, pod: str, newest: str, now: Instant) -> str:
        """The version of what has been written by now, not of what waits."""
        done = [revision for at, revision in self._written.get(pod, ()) if at <= now]
        return str(max(done, default=newest))

    def put_off(self, pod: str, tried: object, now: Instant) -> Instant | None:
        """Changes nothing: the result of an attempt is final."""
        return None

    def bind_delay(self, pod: str, now: Instant) -> tuple[Instant, Instant]:
        """Nomination, finalizer, allocation, binding: each waits for the limit and its answer."""
        made = now + self._micros(1, 3)
        instants = []
        for _ in range(4):
            instants.append(Instant(self._writes.take(made) + self._micros(3, 9)))
            made = instants[-1] + self._micros(1, self._load.answers)
        self._nominated[pod] = instants[0]
        self._placed[pod] = instants
        return instants[2], instants[3]

    def follow(self, event: Event) -> None:
        """Follow the writes, and the delay of each."""
        user = event.stamp.actor.user
        if user == f"{MANAGER}namespace-controller":
            self._namespaces.take(event.stamp.time)
        elif user.startswith(MANAGER):
            self._manager.take(event.stamp.time)
        elif user == SCHEDULER:
            self._follow_scheduler(event)
        self._follow_placed(event)
        if event.key.resource == "pods":
            late = self.late.get(event.revision)
            at = event.stamp.time if late is None else late.at
            self._written[event.uid].append((at, event.revision))

    @property
    def waits_until(self) -> int:
        """The time at which the last request of the scheduler that waits may be sent."""
        return max(self._writes.last, self._reports.last)

    def is_sending(self, now: Instant) -> bool:
        """Whether a request that counts as written is to be sent after now."""
        return any(each.at > now for each in self.late.values())

    def conclude(self) -> None:
        """Let the requests about pods that were deleted before their binding be refused."""
        for pod in sorted(self._placed):
            _, *updates, bound = self._placed[pod]
            for serial, at in enumerate(updates):
                for key, uid in self._claims[pod].items():
                    self._refuse(at, key, uid, "status" if serial else "")
            self._refuse(bound, self._keys[pod], pod, "binding")

    def _refuse(self, at: Instant, key: ObjectKey, uid: str, subresource: str) -> None:
        serial = len(self.vain)
        self.vain.append(Vain(at=at, key=key, uid=uid, subresource=subresource, serial=serial))

    def _follow_placed(self, event: Event) -> None:
        """Follow which requests of placements were written: the others are refused."""
        key, tree = event.key, event.object
        if key.resource == "pods":
            self._keys[event.uid] = key
            if json_tree.text(tree, "spec", "nodeName"):
                self._placed.pop(event.uid, None)
        elif key.resource == "resourceclaims":
            for owner in json_tree.objects(tree, "metadata", "ownerReferences"):
                self._claims[json_tree.text(owner, "uid")][key] = event.uid
            if not json_tree.get(tree, "metadata", "finalizers"):
                self._finalized.pop(event.uid, None)
            elif event.stamp.actor.user == SCHEDULER:
                self._follow_claim(event)

    def _follow_claim(self, event: Event) -> None:
        """Follow both updates of a claim: the log has the first one at the instant of the second.

        The first one adds the finalizer, the second one names the pod. A claim that the scheduler
        makes for extended resources is created at that instant as well.
        """
        if json_tree.text(event.object, "metadata", "annotations", extended_resources.ANNOTATION):
            return
        added = self._finalized.setdefault(event.uid, event.revision)
        for consumer in json_tree.objects(event.object, "status", "reservedFor"):
            pod = json_tree.text(consumer, "uid")
            self._claims.pop(pod, None)
            # A pod's second claim gets its finalizer after the first one is written.
            is_first = self._first_claims.setdefault(pod, event.uid) == event.uid
            if is_first and pod in self._placed and added == event.revision - 1:
                self.late[added] = Late(at=self._placed[pod][1])

    def _follow_scheduler(self, event: Event) -> None:
        now = event.stamp.time
        if event.key.resource == "events":
            reported = now + self._micros(0, self._load.noise)
            at = self._reports.take(reported) + self._micros(2, 9)
            self.late[event.revision] = Late(at=Instant(at), reported=Instant(reported))
        elif event.key.resource == "pods" and not json_tree.text(event.object, "spec", "nodeName"):
            node = json_tree.text(event.object, "status", "nominatedNodeName")
            path = ("status", "extendedResourceClaimStatus", "resourceClaimName")
            named = json_tree.text(event.object, *path)
            if named and self._named.get(event.uid) != named:
                self._named[event.uid] = named
                return  # It is written before the binding; the node may have been nominated before.
            at = self._nominated.pop(event.uid, 0) if node else 0
            if not at:
                at = self._writes.take(now + self._micros(0, 3)) + self._micros(2, 9)
            self._refused[event.uid] = at + MILLI
            self.late[event.revision] = Late(at=Instant(at))

    def _micros(self, least: int, most: int) -> int:
        return self._chance.randint(least * MILLI, max(least, most) * MILLI)


@dataclass(slots=True)
class Soak:
    """One cluster under load."""

    load: Load
    plane: SlowControlPlane = field(init=False)
    cluster: Cluster = field(init=False)
    chance: random.Random = field(init=False)
    named: int = 0
    rules: list[str] = field(default_factory=list)
    tainted: dict[str, str] = field(default_factory=dict)
    cordoned: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chance = random.Random(f"load {self.load.seed}")
        self.plane = SlowControlPlane(self.load)
        quirks = ControllerQuirks()
        if self.load.quirks:
            quirks = replace(quirks, c8=True, c22=True)
        self.cluster = Cluster(
            Profile(version=RELEASE, gates=dict.fromkeys(GATES, True)),
            ControllerOptions(
                bind_delay=self.plane.bind_delay,
                pace=self.plane,
                quirks=quirks,
            ),
            seed=self.load.seed,
            kubelet=True,
            namespaces=("default", *NAMESPACES),
        )
        self.cluster.line.followers.append(self.plane.follow)
        self._set_up()

    def run(self) -> None:
        """Runs the whole load, then rests until no request of the scheduler waits.

        Reports that are sent while bindings are not any more are in no real recording.
        """
        start = self.cluster.line.now
        for seconds, act in sorted(self._plan(), key=lambda found: found[0]):
            self.cluster.line.advance(Instant(start + int(seconds * SECOND)))
            act()
            self.cluster.settle()
        self.cluster.wait(15)
        while self.plane.waits_until > self.cluster.line.now:
            self.cluster.wait(15)

    def _plan(self):
        load, chance = self.load, self.chance
        made = 0
        while made < load.pods + load.waiting:
            count = chance.choice((1, 1, 1, 2, 3, 5))
            made += count
            until = 6 if made < load.waiting else load.seconds
            yield chance.uniform(2, until), lambda count=count: self._arrive(count)
        for every, act in (
            (12, self._arrive_shared),
            (19, self._taint),
            (37, self._rule),
            (11, self._republish),
            (38, self._cordon),
        ):
            for _ in range(max(1, load.seconds // every)):
                yield chance.uniform(2, load.seconds), act
        for _ in range(load.pods // 12):
            yield chance.uniform(2, load.seconds), self._delete

    def _set_up(self) -> None:
        cluster, chance = self.cluster, self.chance
        for number in range(self.load.nodes):
            node = f"node-{number:02}"
            cluster.node(node, cpu="64", topology_kubernetes_io__zone=f"zone-{number % 3}")
            cluster.slice(node, devices=_devices(chance.choice(("A100", "H100")), 0))
        shared = f"'shared' in device.attributes['{DRIVER}']"
        cluster.device_class(CLASS, f"device.driver == '{DRIVER}' && !({shared})")
        cluster.device_class(SHARED_CLASS, f"device.driver == '{DRIVER}' && {shared}")
        for namespace in NAMESPACES:
            for name, requests in _templates().items():
                self._apply("ResourceClaimTemplate", name, namespace, {"spec": requests})
        cluster.settle()

    def _apply(self, kind: str, name: str, namespace: str, spec: JsonObject, **more) -> None:
        version = "v1" if kind == "Pod" else "resource.k8s.io/v1"
        metadata = {"name": name, "namespace": namespace, **more}
        self.cluster.apply(
            {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}
        )

    def _arrive(self, count: int) -> None:
        self.named += 1
        namespace = self.chance.choice(NAMESPACES)
        template = self.chance.choice(tuple(_templates()))
        for index in range(count):
            entry = {"name": "dev", "resourceClaimTemplateName": template}
            self._pod(f"{template}-{self.named}-{index}", namespace, entry)

    def _arrive_shared(self) -> None:
        self.named += 1
        namespace = self.chance.choice(NAMESPACES)
        name = f"shared-{self.named}"
        self._apply("ResourceClaim", name, namespace, _one_request(deviceClassName=CLASS))
        for index in range(2):
            entry = {"name": "dev", "resourceClaimName": name}
            self._pod(f"{name}-{index}", namespace, entry)

    def _pod(self, name: str, namespace: str, entry: JsonObject) -> None:
        seconds = f"{self.chance.uniform(5, 150):.1f}"
        asked = {"requests": {"cpu": "500m", "memory": "256Mi"}}
        spec = {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 5,
            "containers": [{"name": "main", "image": "example.com/workload:1", "resources": asked}],
            "resourceClaims": [entry],
        }
        started = f"{self.chance.uniform(0.2, 0.6):.3f}"
        notes = {"sim.example.com/run-seconds": seconds, "redra.dev/start-seconds": started}
        self._apply("Pod", name, namespace, spec, annotations=notes)

    def _delete(self) -> None:
        keys = sorted(self.cluster.line.views.objects.keys("", "pods"))
        if keys:
            key = self.chance.choice(keys)
            self.cluster.delete("pods", key.name, key.namespace)

    def _node(self) -> str:
        return f"node-{self.chance.randrange(self.load.nodes):02}"

    def _taint(self) -> None:
        """Taints a device as a driver, or removes all taints of the node."""
        node = self._node()
        effect = "" if self.tainted.pop(node, "") else self.chance.choice(_EFFECTS[:2])
        if effect:
            self.tainted[node] = effect
        self._change_slice(node, effect)

    def _republish(self) -> None:
        node = self._node()
        self._change_slice(node, self.tainted.get(node, ""))

    def _change_slice(self, node: str, effect: str) -> None:
        tree = self.cluster.must("resourceslices", f"{node}-slice")
        spec = tree["spec"]
        generation = spec["pool"]["generation"]
        devices = [dict(device) for device in spec["devices"]]
        for device in devices:
            device.pop("taints", None)
            version = {"version": f"1.{generation}.0"}
            device["attributes"] = {**device["attributes"], "driverVersion": version}
        if effect:
            taint = {"key": "example.com/flaky", "value": "x", "effect": effect}
            self.chance.choice(devices)["taints"] = [taint]
        pool = {**spec["pool"], "generation": generation + 1}
        changed = {**tree, "spec": {**spec, "pool": pool, "devices": devices}}
        self.cluster.update("resourceslices", changed)

    def _rule(self) -> None:
        if self.rules and self.chance.random() < 0.4:
            self.cluster.delete("devicetaintrules", self.rules.pop(0), version=_RULES)
            return
        self.named += 1
        name = f"rule-{self.named}"
        self.rules.append(name)
        spec = {
            "deviceSelector": {"driver": DRIVER, "pool": self._node()},
            "taint": {"key": "example.com/maint", "effect": self.chance.choice(_EFFECTS)},
        }
        version = f"resource.k8s.io/{_RULES}"
        self.cluster.create(version, "DeviceTaintRule", name, spec=spec)

    def _cordon(self) -> None:
        node = self.cordoned.pop() if self.cordoned else self._node()
        tree = self.cluster.must("nodes", node)
        is_off = bool(json_tree.get(tree, "spec", "unschedulable"))
        if not is_off:
            self.cordoned.append(node)
        value = None if is_off else True
        try:
            self.cluster.patch("nodes", node, {"spec": {"unschedulable": value}})
        except Rejected as problem:
            raise AssertionError(node) from problem


_EFFECTS = ("NoSchedule", "NoExecute", "None")

_RULES = "v1beta2"
"""The version in which the release that is imitated serves rules."""


def _devices(model: str, generation: int) -> list[JsonObject]:
    """Three whole devices and one that is shared."""
    devices: list[JsonObject] = []
    for index in range(4):
        attributes: JsonObject = {
            "model": {"string": model},
            "driverVersion": {"version": f"1.{generation}.0"},
            "numa": {"int": index // 2},
        }
        device: JsonObject = {
            "name": f"gpu-{index}",
            "attributes": attributes,
            "capacity": {"memory": {"value": "40Gi"}},
        }
        if index == 3:
            attributes["shared"] = {"bool": True}
            device["allowMultipleAllocations"] = True
        devices.append(device)
    return devices


def _one_request(**exactly: object) -> JsonObject:
    return {"devices": {"requests": [{"name": "g", "exactly": exactly}]}}


def _model(name: str) -> list[JsonObject]:
    return [{"cel": {"expression": f"device.attributes['{DRIVER}'].model == '{name}'"}}]


def _templates() -> dict[str, JsonObject]:
    two = _one_request(deviceClassName=CLASS, count=2)
    two["devices"]["constraints"] = [{"matchAttribute": f"{DRIVER}/numa"}]
    listed = [
        {"name": "h", "deviceClassName": CLASS, "selectors": _model("H100")},
        {"name": "a", "deviceClassName": CLASS, "selectors": _model("A100"), "count": 2},
        {"name": "any", "deviceClassName": CLASS},
    ]
    patient = {
        "key": "example.com/flaky",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 15,
    }
    share = {"requests": {"memory": "10Gi"}}
    return {
        "one": _one_request(deviceClassName=CLASS),
        "two": two,
        "h100": _one_request(deviceClassName=CLASS, selectors=_model("H100")),
        "prio": {"devices": {"requests": [{"name": "g", "firstAvailable": listed}]}},
        "share": _one_request(deviceClassName=SHARED_CLASS, capacity=share),
        "tol": _one_request(deviceClassName=CLASS, tolerations=[patient]),
        "four": _one_request(deviceClassName=CLASS, count=3),
    }


def record(path: Path, load: Load, kind: type[Soak] = Soak) -> Path:
    """Write the recording of a load into a folder; returns the folder."""
    soak = kind(load)
    soak.run()
    chance = random.Random(f"answers {load.seed}")
    plane = soak.plane
    plane.conclude()
    events = soak.cluster.line.events
    retell(events, plane.late, path, chance, answers=load.answers, vain=plane.vain)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--pods", type=int, default=1120)
    parser.add_argument("--waiting", type=int, default=0)
    parser.add_argument("--rate", type=int, default=50)
    parser.add_argument("--burst", type=int, default=100)
    parser.add_argument("--noise", type=int, default=4)
    parser.add_argument("--answers", type=int, default=30)
    parser.add_argument("--quirks", action="store_true")
    given = vars(parser.parse_args())
    out = given.pop("out")
    seconds = int(given.pop("minutes") * 60)
    record(out, Load(seconds=seconds, **given))


if __name__ == "__main__":
    main()
