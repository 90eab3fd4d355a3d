"""Recordings of fleet worlds: every kind of hardware and act, on controllers as slow as real ones.

`python -m tests.conformance.fleet_recordings --out DIR --seed 1 --acts 60` writes the audit log and
the watch streams of such a world, as `soak_recordings` does of a soak, and prints the switches with
which it is to be decided again.
"""

import argparse
import random
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from app.domain.controllers.kubelet.annotations import LEASE_NAMESPACE
from app.domain.objects.profile import Profile
from tests.conformance.soak_lines import ClockStep, retell
from tests.conformance.soak_recordings import Load, SlowControlPlane
from tests.simulation.fleet_acts import ACTS, ROUTINE, UPKEEP
from tests.simulation.fleet_world import Act, FleetWorld

ANSWERS = 30
"""Most answers take up to so many milliseconds."""


OUTAGE = 20
"""The seconds without controllers: the lease of the old ones ends after fifteen.

A scheduler that is ended in order gives back its lease, and is replaced within seconds.
"""

SCHEDULING = "scheduling"
"""The name of the controller that places pods."""


def record(
    path: Path,
    seed: int,
    acts: int,
    *,
    ahead: int = 0,
    restarts: float = 0,
    outage: int = OUTAGE,
    amid: bool = False,
    besides: Mapping[Act, int] = MappingProxyType({}),
) -> Profile:
    """Writes the recording of a world into a folder; returns the release and gates of the world.

    From its middle on, the clock of the scheduler's host is `ahead` by so many microseconds. Before
    each act the control plane stops with the chance `restarts`, and starts anew after an outage
    of so many seconds. With `amid` it is the scheduler alone, milliseconds after an act, amid the
    writes that follow from it. `besides` are more acts with their weights.
    """
    fate = random.Random(f"restarts {seed}")
    kinds = {**ACTS, **besides}
    plane = SlowControlPlane(Load(seed=seed))
    world = FleetWorld(seed, plane)
    for _ in range(acts):
        if fate.random() < restarts:
            if amid:
                world.begin(kinds)
                world.cluster.wait(fate.uniform(0.01, 0.1))
                while plane.is_sending(world.cluster.line.now):
                    world.cluster.wait(0.002)
            world.outage(kinds, outage, SCHEDULING if amid else "")
        world.step(kinds)
    world.cluster.wait(60)
    while plane.waits_until > world.cluster.line.now:
        world.cluster.wait(15)
    world.sound.check_whole()
    chance = random.Random(f"answers {seed}")
    events = world.cluster.line.events
    step = ClockStep(at=events[len(events) // 2].stamp.time, micros=ahead)
    retell(events, plane.late, path, chance, answers=ANSWERS, step=step)
    return world.profile


def lose_kubelet(world: FleetWorld) -> None:
    """No kubelet works on a node: pods are bound and do not run, or are deleted and stay."""
    node = world.any_of("nodes")
    if world.cluster.get("namespaces", LEASE_NAMESPACE, "") is None:
        world.cluster.create("v1", "Namespace", LEASE_NAMESPACE)
    if node is not None:
        name = node["metadata"]["name"]
        version = "coordination.k8s.io/v1"
        metadata = {"name": name, "namespace": LEASE_NAMESPACE}
        spec = {"holderIdentity": name, "leaseDurationSeconds": 40}
        world.cluster.apply(
            {"apiVersion": version, "kind": "Lease", "metadata": metadata, "spec": spec}
        )


def restore_kubelets(world: FleetWorld) -> None:
    """The kubelets of all nodes work again."""
    for lease in world.find("leases"):
        world.cluster.delete("leases", lease["metadata"]["name"], LEASE_NAMESPACE)


KUBELETS: Mapping[Act, int] = MappingProxyType({lose_kubelet: 6, restore_kubelets: 6})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--acts", type=int, default=60)
    parser.add_argument("--ahead", type=int, default=0)
    parser.add_argument("--restarts", type=float, default=0)
    parser.add_argument("--outage", type=int, default=OUTAGE)
    parser.add_argument("--amid", action="store_true")
    parser.add_argument("--routine", action="store_true")
    parser.add_argument("--upkeep", action="store_true")
    given = vars(parser.parse_args())
    routine, upkeep = given.pop("routine"), given.pop("upkeep")
    given["besides"] = {**(ROUTINE if routine else {}), **(UPKEEP if upkeep else {})}
    profile = record(given.pop("out"), given.pop("seed"), given.pop("acts"), **given)
    gates = " ".join(f"--gate {name}=true" for name in profile.gates)
    print(f"--profile {profile.version} {gates}")


if __name__ == "__main__":
    main()
