"""A seeded world with everything in it: mixed hardware, emulated kubelets, workloads, quotas,
taints, rules, patches, lost drivers and nodes, over months of virtual time.

The seed decides everything random, so it names the whole run. `Soundness` checks every event; `end`
checks the whole world.
"""

import random
from collections.abc import Callable, Mapping

from app.domain.controllers.registry import ControllerOptions
from app.domain.controllers.scheduling.binding_cycle.delayed_binding import (
    FixedBindDelay,
)
from app.domain.errors import Rejected
from app.domain.log import Event
from app.domain.objects.profile import Profile
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import SECOND
from app.service.replays.reconciling import ReconcileBounds
from tests.cluster import Cluster, check_decisions, group_of
from tests.conformance.soak_recordings import SlowControlPlane
from tests.simulation import hardware
from tests.simulation.soundness import Soundness, Unsound
from tests.simulation.telling import check_folds

RESOURCE = "resource.k8s.io/v1"
NAMESPACES = ("default", "team")
WAITS = (0, 0.001, 0.5, 1, 7, 30, 120, 600, 3600)
WAIT_WEIGHTS = (4, 2, 4, 4, 6, 8, 6, 6, 3)
"""Seconds between two acts: bursts, and long quiet times."""

PLANS_MAX = 3_000
"""Plans at one instant; more mean that controllers undo each other's work."""

JUMPS_MAX = 20_000
"""Due instants between two acts."""

DELAYS = (0, 0, 0.05, 2, 45)
"""Seconds that bindings take in a world."""

WHOLE_EVERY = 25
"""The number of acts between two checks of the whole world."""


Act = Callable[["FleetWorld"], None]


class FleetWorld:
    """A seeded cluster with mixed hardware and many kinds of acts."""

    def __init__(self, seed: int, plane: SlowControlPlane | None = None) -> None:
        """Begins the world of a seed, with controllers at the pace of a `plane` if it is given."""
        self.seed = seed
        self.is_slow = plane is not None
        self.random = random.Random(seed)
        self.fate = random.Random(f"fate {seed}")
        self.profile = Profile(
            version=self.random.choice(["1.36", "1.37", "1.37"]),
            gates={"DRADeviceTaintRules": True, "DRAResourcePoolStatus": True},
        )
        bounds = ReconcileBounds(steps_max=PLANS_MAX, jumps_max=JUMPS_MAX)
        self.delay = delay = random.Random(f"delay {seed}").choice(DELAYS)
        options = ControllerOptions(
            bind_delay=FixedBindDelay(int(delay * SECOND)) if delay else None
        )
        if plane is not None:
            options = ControllerOptions(bind_delay=plane.bind_delay, pace=plane)
        self.cluster = Cluster(
            profile=self.profile, options=options, seed=seed, kubelet=True, bounds=bounds
        )
        self.sound = Soundness()
        for event in self.cluster.line.events:
            self.sound.fold(event)
        self.cluster.line.followers.append(self.sound.fold)
        if plane is not None:
            self.cluster.line.followers.append(plane.follow)
        self.names = 0
        self.steps = 0
        self.crashes = 0
        self.refusals = 0
        self.kinds: dict[str, str] = {}
        self.generations: dict[tuple[str, str], int] = {}
        self._begin()

    # What acts are made of

    def name(self, kind: str) -> str:
        """A new, unused name."""
        self.names += 1
        return f"{kind}-{self.names}"

    def find(self, resource: str) -> list[JsonObject]:
        """All objects of a resource, sorted by key."""
        objects = self.cluster.line.views.objects
        keys = objects.keys(group_of(resource), resource)
        found = (objects.get(key) for key in keys)
        return [tree for tree in found if tree is not None]

    def any_of(self, resource: str) -> JsonObject | None:
        """A random object of a resource; None when there is none."""
        found = self.find(resource)
        return self.random.choice(found) if found else None

    def publish(self, node: str, *, without: int = 0, only_first: bool = False) -> None:
        """Publishes a new generation of slices, as drivers do when they start or find a change.

        `without` leaves out that many devices at the end of a slice; `only_first` stops after one
        slice.
        """
        owner = self.cluster.get("nodes", node)
        if owner is None:
            return
        specs = hardware.slices_of(self.kinds[node], node)
        for driver in sorted({driver for driver, _ in specs}):
            self.generations[driver, node] = self.generations.get((driver, node), 0) + 1
        for index, (driver, spec) in enumerate(specs):
            if without:
                spec["devices"] = spec["devices"][:-without]
            count = sum(found == driver for found, _ in specs)
            self._put_slice(f"{node}-{index}", driver, node, spec, count=count, owner=owner)
            if only_first:
                return

    def publish_network(self) -> None:
        """Publishes the pool that belongs to no node."""
        driver = hardware.NET
        self.generations[driver, "lines"] = self.generations.get((driver, "lines"), 0) + 1
        self._put_slice("lines", driver, "lines", hardware.network(), count=1, owner=None)

    def add_node(self, name: str) -> None:
        """Adds or restores a node, and publishes its slices."""
        kind = self.kinds.setdefault(name, self.random.choice(hardware.KINDS))
        self.cluster.node(name, pods=12, kind=kind)
        self.publish(name)

    # How it runs

    def step(self, acts: Mapping[Act, int], *, crash: float = 0.0) -> None:
        """Does one act and lets time pass; replaces the controllers before, at chance `crash`."""
        act = self._choose(acts)
        wait = self.random.choices(WAITS, WAIT_WEIGHTS)[0]
        if crash and self.fate.random() < crash:
            self.crash()
        self._do(act)
        self.cluster.wait(wait)
        self.steps += 1
        if self.steps % WHOLE_EVERY == 0 and not self.is_slow:
            self.sound.check_whole()  # slow controllers are not at rest between two acts

    def outage(self, acts: Mapping[Act, int], seconds: int, name: str = "") -> None:
        """Does one act while no controller, or not this one, works; starts new ones afterwards."""
        self.cluster.stop(name)
        self._do(self._choose(acts))
        self.cluster.wait(seconds)
        self.cluster.start()

    def begin(self, acts: Mapping[Act, int]) -> None:
        """Does one act, without time for what follows from it."""
        self._do(self._choose(acts))

    def crash(self) -> None:
        """Replaces the controllers by new ones that fold the log from its start."""
        self.crashes += 1
        self.cluster.restart()

    def end(self) -> None:
        """Waits for rest, checks that no work was forgotten, then folds the log again."""
        self.cluster.wait(900)
        self.sound.check_whole()
        self._check_nothing_forgotten()
        self._check_told_again()

    def state(self) -> dict[str, object]:
        """The existing objects by key, without versions, managed fields and Event objects."""
        objects = self.cluster.line.views.objects
        found: dict[str, object] = {}
        for group, resource in objects.resources():
            if resource == "events":
                continue
            for key in objects.keys(group, resource):
                tree = json_tree.copy(objects.get(key))
                for volatile in ("resourceVersion", "managedFields"):
                    tree["metadata"].pop(volatile, None)
                found[str(key)] = tree
        return found

    def _choose(self, acts: Mapping[Act, int]) -> Act:
        return self.random.choices(tuple(acts), tuple(acts.values()))[0]

    def _do(self, act: Act) -> None:
        try:
            act(self)
        except Rejected:
            self.refusals += 1  # some acts are refused; the world continues

    def _check_nothing_forgotten(self) -> None:
        """Checks that new controllers neither place nor evict a pod that the old ones left."""
        before = len(self.cluster.line.events)
        self.crash()
        self.cluster.wait(900)
        late = []
        for event in self.cluster.line.events[before:]:
            if event.key.resource == "pods" and _makes_room(event):
                break  # from here on the old ones would have found something too
            if event.type == "DecisionRecorded" and event.object["outcome"] in _ACTS:
                late.append(f"{event.object['outcome']} {event.key}")
        if late:
            raise Unsound(f"only fresh controllers did this: {', '.join(late)}")
        self.sound.check_whole()

    def _check_told_again(self) -> None:
        """Checks that folding again gives the same bytes, and deciding again the same events."""
        check_folds(self.cluster)
        for compared in check_decisions(self.cluster):
            if compared.differences:
                raise Unsound(f"decided otherwise: {compared.differences[0]}")

    def _begin(self) -> None:
        cluster = self.cluster
        cluster.create("v1", "Namespace", "team")
        cluster.apply(
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {
                    "name": "watchers",
                    "labels": {"resource.kubernetes.io/admin-access": "true"},
                },
            }
        )
        for name, spec in hardware.classes().items():
            cluster.create(RESOURCE, "DeviceClass", name, spec=spec)
        for name, spec in hardware.templates().items():
            for namespace in ("watchers",) if name == "watch" else NAMESPACES:
                self.put_template(name, spec, namespace)
        cluster.create("scheduling.k8s.io/v1", "PriorityClass", "urgent", value=1000)
        self.put_quota(8)
        self.publish_network()
        kinds = [*hardware.KINDS, *self.random.choices(hardware.KINDS, k=self.random.randrange(5))]
        for number, kind in enumerate(kinds):
            self.kinds[f"n{number}"] = kind
            self.add_node(f"n{number}")
        cluster.settle()

    def put_template(self, name: str, spec: JsonObject, namespace: str) -> None:
        """Creates a template for claims."""
        self.cluster.apply(
            {
                "apiVersion": RESOURCE,
                "kind": "ResourceClaimTemplate",
                "metadata": {"name": name, "namespace": namespace},
                "spec": {"spec": spec},
            }
        )

    def put_quota(self, devices: int) -> None:
        """Sets the quota of the namespace `team` for devices of the class `gpu`."""
        tree = self.cluster.get("resourcequotas", "devices", "team")
        hard = {"gpu.deviceclass.resource.k8s.io/devices": str(devices)}
        if tree is None:
            self.cluster.apply(
                {
                    "apiVersion": "v1",
                    "kind": "ResourceQuota",
                    "metadata": {"name": "devices", "namespace": "team"},
                    "spec": {"hard": hard},
                }
            )
        else:
            self.cluster.patch(
                "resourcequotas", "devices", {"spec": {"hard": hard}}, namespace="team"
            )

    def _put_slice(
        self,
        name: str,
        driver: str,
        pool: str,
        spec: JsonObject,
        *,
        count: int,
        owner: JsonObject | None,
    ) -> None:
        generation = self.generations[driver, pool]
        body: JsonObject = {
            "driver": driver,
            "pool": {"name": pool, "generation": generation, "resourceSliceCount": count},
            **spec,
        }
        tree = self.cluster.get("resourceslices", name)
        if tree is not None:
            new = json_tree.copy(tree)
            new["spec"] = body
            self.cluster.update("resourceslices", new)
            return
        metadata: JsonObject = {"name": name}
        if owner is not None:
            reference = {"apiVersion": "v1", "kind": "Node", "name": owner["metadata"]["name"]}
            reference["uid"] = owner["metadata"]["uid"]
            metadata["ownerReferences"] = [reference]
        self.cluster.apply(
            {"apiVersion": RESOURCE, "kind": "ResourceSlice", "metadata": metadata, "spec": body}
        )


_ACTS = ("Scheduled", "Evicted", "Removed")


def _makes_room(event: Event) -> bool:
    """True when the event shows that a pod has ended."""
    phase = json_tree.text(event.object, "status", "phase")
    return event.type == "ObjectDeleted" or phase in ("Succeeded", "Failed")
