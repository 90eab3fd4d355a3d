"""Deciding a whole history again: `python -m bench.verifying [--pods N] [--profile]`.

The history is that of pods with a claim each from a template, as in `bench.scheduling`. Read CPU
time rather than rates on a machine that others use too.
"""

import argparse
import cProfile
import pstats
import sys
import time
from collections.abc import Sequence

import anyio

from app.bootstrap import replays
from app.service.comparing import Verdict
from bench.cluster import history, prepare
from bench.shapes import arrive, template_pods

NODES = 500
PODS = 1_000


def silent(*_: object) -> None:
    """No progress is shown."""


async def measure(pods: int, profiler: cProfile.Profile | None) -> None:
    """Make the history, then fold and verify it."""
    async with history() as cluster:
        store, chosen, runtime = cluster.store, cluster.settings, cluster.runtime
        await prepare(cluster, NODES)
        await arrive(cluster, template_pods("pod", pods), "")
        name, events = runtime.info.name, runtime.head.revision
        started = time.process_time()
        await replays.fold(store, chosen, name, "", silent)
        spent = time.process_time() - started
        print(f"fold: {events} events, {spent / events * 1e6:.0f} µs CPU an event")
        if profiler is not None:
            profiler.enable()
        started = time.process_time()
        report = await replays.verify(store, chosen, name, "", silent)
        spent = time.process_time() - started
        if profiler is not None:
            profiler.disable()
            pstats.Stats(profiler, stream=sys.stdout).sort_stats("tottime").print_stats(60)
            pstats.Stats(profiler, stream=sys.stdout).sort_stats("cumtime").print_stats(80)
        count = report.decisions.counts.get(Verdict.SAME, 0)
        effects = report.effects.counts.get(Verdict.SAME, 0)
        print(
            f"verify: {NODES} nodes, {events} events, {count} decisions and "
            f"{effects} effects the same, {len(report.violations)} violations: "
            f"{count / spent:.0f} decisions a CPU second ({spent / count * 1e6:.0f} µs each)"
        )


def main(arguments: Sequence[str] = ()) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="bench.verifying", description=__doc__)
    parser.add_argument("--pods", type=int, default=PODS)
    parser.add_argument("--profile", action="store_true", help="print where the time goes")
    options = parser.parse_args(arguments)
    profiler = cProfile.Profile() if options.profile else None
    anyio.run(measure, options.pods, profiler, backend_options={"use_uvloop": True})


if __name__ == "__main__":
    main(sys.argv[1:])
