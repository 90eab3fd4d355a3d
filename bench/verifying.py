"""Deciding a history again: `python -m bench.verifying [--pods N] [--processes N]`.

The history is that of pods with a claim each from a template, as in `bench.scheduling`. With
`--kinds N`, each pod has labels of its own and one of N different requests;
`--profile` shows where the time goes.
Decisions a CPU second are what this process had spent when all was verified; read those rather than
decisions a second on a machine that others use too. With several processes, CPU of the others is
told apart.
"""

import argparse
import cProfile
import os
import pstats
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

import anyio
import msgspec

from app.analysis.verify.compare import ComparisonResult
from app.bootstrap import replays
from app.domain.objects.write.commands import CreateObject
from bench import figures
from bench.cluster import history, prepare
from bench.shapes import arrive, template_pods

NODES = 500
PODS = 1_000


def silent(*_: object) -> None:
    """No progress is shown."""


def of_children() -> float:
    """CPU seconds of other processes of ours that have ended."""
    spent = os.times()
    return spent.children_user + spent.children_system


def varied(pods: Sequence[CreateObject], kinds: int) -> Iterator[CreateObject]:
    """The pods with labels and images of their own, and requests of so many kinds in turn."""
    for number, pod in enumerate(pods):
        spec = pod.tree["spec"]
        (container,) = spec["containers"]
        resources = {"requests": {"cpu": f"{50 + number % kinds}m"}}
        own = {**container, "image": f"i:{number}", "resources": resources}
        metadata = {**pod.tree["metadata"], "labels": {"app": f"app-{number}"}}
        tree = {**pod.tree, "metadata": metadata, "spec": {**spec, "containers": [own]}}
        yield msgspec.structs.replace(pod, tree=tree)


async def measure(
    pods: Sequence[CreateObject], processes: int, profiler: cProfile.Profile | None
) -> None:
    """Make the history, then fold and verify it."""
    async with history() as cluster:
        store, runtime = cluster.store, cluster.runtime
        chosen = replace(cluster.settings, verify_processes=processes)
        await prepare(cluster, NODES)
        await arrive(cluster, pods, "")
        name, events = runtime.info.name, runtime.head.revision
        started = time.process_time()
        await replays.fold(store, chosen, name, "", silent)
        spent = time.process_time() - started
        print(f"fold: {events} events, {spent / events * 1e6:.0f} µs CPU an event")
        if profiler is not None:
            profiler.enable()
        started, began, others = time.process_time(), time.perf_counter(), of_children()
        report = await replays.verify(store, chosen, name, "", silent)
        spent, others = time.process_time() - started, of_children() - others
        took = time.perf_counter() - began
        if profiler is not None:
            profiler.disable()
            pstats.Stats(profiler, stream=sys.stdout).sort_stats("tottime").print_stats(60)
            pstats.Stats(profiler, stream=sys.stdout).sort_stats("cumtime").print_stats(80)
        count = report.decisions.counts.get(ComparisonResult.SAME, 0)
        effects = report.effects.counts.get(ComparisonResult.SAME, 0)
        figures.note("verifying.rate", count / took)
        figures.note("verifying.rate_of_cpu", count / spent)
        print(
            f"verify, {processes} processes at most: {NODES} nodes, {events} events, {count} "
            f"decisions and {effects} effects the same, {len(report.violations)} violations: "
            f"{count / spent:.0f} decisions a CPU second of this process ({spent:.2f} s; others "
            f"{others:.2f} s), {count / took:.0f} decisions a second ({took:.2f} s)"
        )


def main(arguments: Sequence[str] = ()) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="bench.verifying", description=__doc__)
    parser.add_argument("--pods", type=int, default=PODS)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--profile", action="store_true", help="print where the time goes")
    parser.add_argument("--kinds", type=int, default=0, help="the number of different requests")
    options = parser.parse_args(arguments)
    pods = template_pods("pod", options.pods)
    if options.kinds:
        pods = list(varied(pods, options.kinds))
    profiler = cProfile.Profile() if options.profile else None
    anyio.run(measure, pods, options.processes, profiler, backend_options={"use_uvloop": True})


if __name__ == "__main__":
    main(sys.argv[1:])
