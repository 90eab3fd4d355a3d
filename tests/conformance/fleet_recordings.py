"""Recordings of fleet worlds: every kind of hardware and act, on controllers as slow as real ones.

`python -m tests.conformance.fleet_recordings --out DIR --seed 1 --acts 60` writes the audit log and
the watch streams of such a world, as `soak_recordings` does of a soak, and prints the switches with
which it is to be decided again.
"""

import argparse
import random
from pathlib import Path

from app.domain.objects.profile import Profile
from tests.conformance.soak_lines import retell
from tests.conformance.soak_recordings import Load, SlowControlPlane
from tests.simulation.fleet_acts import ACTS
from tests.simulation.fleet_world import FleetWorld

ANSWERS = 30
"""Most answers take up to so many milliseconds."""


def record(path: Path, seed: int, acts: int) -> Profile:
    """Writes the recording of a world into a folder; returns the release and gates of the world."""
    plane = SlowControlPlane(Load(seed=seed))
    world = FleetWorld(seed, plane)
    for _ in range(acts):
        world.step(ACTS)
    world.cluster.wait(60)
    while plane.waits_until > world.cluster.line.now:
        world.cluster.wait(15)
    chance = random.Random(f"answers {seed}")
    retell(world.cluster.line.events, plane.late, path, chance, answers=ANSWERS)
    return world.profile


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--acts", type=int, default=60)
    given = parser.parse_args()
    profile = record(given.out, given.seed, given.acts)
    gates = " ".join(f"--gate {name}=true" for name in profile.gates)
    print(f"--profile {profile.version} {gates}")


if __name__ == "__main__":
    main()
