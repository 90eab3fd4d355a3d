"""Recordings of fleet worlds: every kind of hardware and act, on controllers as slow as real ones.

`python -m tests.conformance.fleet_recordings --out DIR --seed 1 --acts 60` writes the audit log and
the watch streams of such a world, as `soak_recordings` does of a soak, and prints the switches with
which it is to be decided again.
"""

import argparse
import random
from pathlib import Path

from app.domain.objects.profile import Profile
from tests.conformance.soak_lines import ClockStep, retell
from tests.conformance.soak_recordings import Load, SlowControlPlane
from tests.simulation.fleet_acts import ACTS
from tests.simulation.fleet_world import FleetWorld

ANSWERS = 30
"""Most answers take up to so many milliseconds."""


OUTAGE = 20
"""The seconds without controllers: the lease of the old ones ends after fifteen."""


def record(
    path: Path,
    seed: int,
    acts: int,
    *,
    ahead: int = 0,
    restarts: float = 0,
    outage: int = OUTAGE,
) -> Profile:
    """Writes the recording of a world into a folder; returns the release and gates of the world.

    From its middle on, the clock of the scheduler's host is `ahead` by so many microseconds. Before
    each act the control plane stops with the chance `restarts`, and starts anew after an outage
    of so many seconds.
    """
    fate = random.Random(f"restarts {seed}")
    plane = SlowControlPlane(Load(seed=seed))
    world = FleetWorld(seed, plane)
    for _ in range(acts):
        if fate.random() < restarts:
            world.outage(ACTS, outage)
        world.step(ACTS)
    world.cluster.wait(60)
    while plane.waits_until > world.cluster.line.now:
        world.cluster.wait(15)
    world.sound.check_whole()
    chance = random.Random(f"answers {seed}")
    events = world.cluster.line.events
    step = ClockStep(at=events[len(events) // 2].stamp.time, micros=ahead)
    retell(events, plane.late, path, chance, answers=ANSWERS, step=step)
    return world.profile


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--acts", type=int, default=60)
    parser.add_argument("--ahead", type=int, default=0)
    parser.add_argument("--restarts", type=float, default=0)
    parser.add_argument("--outage", type=int, default=OUTAGE)
    given = vars(parser.parse_args())
    profile = record(given.pop("out"), given.pop("seed"), given.pop("acts"), **given)
    gates = " ".join(f"--gate {name}=true" for name in profile.gates)
    print(f"--profile {profile.version} {gates}")


if __name__ == "__main__":
    main()
