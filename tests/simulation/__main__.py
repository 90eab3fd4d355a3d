"""Runs seeded worlds for a number of virtual hours: `python -m tests.simulation --hours 2000`.

Each world has the next seed and runs for `--world-hours`. The invariants are checked after every
event; at the end of a world its log is folded and decided again. The first world that breaks a rule
ends the run with status 1, and prints its seed and the command that runs it again.
"""

import argparse
import sys
import time
import traceback

from app.domain.errors import RedraError
from tests.simulation.fleet_acts import ACTS
from tests.simulation.fleet_world import FleetWorld

CRASH = 0.02
"""How often controllers lose their memory, per act."""


def run_world(seed: int, hours: float) -> FleetWorld:
    """Runs one world from its beginning to its end."""
    world = FleetWorld(seed)
    while world.cluster.seconds < hours * 3600:
        world.step(ACTS, crash=CRASH)
    world.end()
    return world


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("--hours", type=float, default=100.0, help="virtual hours in all")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first world")
    parser.add_argument("--world-hours", type=float, default=25.0, help="hours of each world")
    parser.add_argument("--keep-going", action="store_true", help="do not end at the first failure")
    parser.add_argument("--verbose", action="store_true", help="a line for each world")
    chosen = parser.parse_args(arguments)
    began = time.monotonic()
    lived = 0.0
    seed, events, decisions, acts, crashes = chosen.seed, 0, 0, 0, 0
    failed: list[int] = []
    while lived < chosen.hours:
        try:
            world = run_world(seed, chosen.world_hours)
        except (AssertionError, RedraError, LookupError, TypeError, ValueError) as problem:
            failed.append(seed)
            if not chosen.keep_going:
                traceback.print_exc()
            print(f"seed {seed} failed: {problem}")
            print(
                f"again: python -m tests.simulation --seed {seed} --hours {chosen.world_hours:g} "
                f"--world-hours {chosen.world_hours:g}",
                flush=True,
            )
            if not chosen.keep_going:
                return 1
            lived += chosen.world_hours
        else:
            events += world.sound.events
            decisions += world.sound.decisions
            acts += world.steps
            crashes += world.crashes
            lived += world.cluster.seconds / 3600
            if chosen.verbose:
                print(f"seed {seed}: {world.sound.events} events", flush=True)
        seed += 1
    minutes = (time.monotonic() - began) / 60
    print(
        f"worlds {seed - chosen.seed} (seeds {chosen.seed} to {seed - 1}), failed {len(failed)}: "
        f"{lived:.0f} virtual hours, {acts} acts, {crashes} lost memories, {events} events, "
        f"{decisions} decisions in {minutes:.1f} minutes, {lived / minutes:.0f} hours a minute"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
