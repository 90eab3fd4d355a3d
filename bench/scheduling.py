"""Scheduling end to end: `python -m bench.scheduling [SHAPE…] [--pods N] [--nodes N]`.

Nodes of 10 devices; pods with a claim each from a template unless the shape says otherwise. All
shapes run through the log with the embedded PostgreSQL, all controllers and the projector process,
each in a process and on a database of its own. CPU time of a pod counts everything until the
cluster and its tables are at rest: also claims, starting, and in the steady state deleting.
"""

import argparse
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace

import anyio

from bench import cluster, figures, processes
from bench.cluster import DEVICES
from bench.shapes import SHAPES, Measure, Row, Size

RATES = {
    "pods on the empty cluster": "scheduling.5000pods.first_half",
    "as many again": "scheduling.5000pods.second_half",
    "steady, 98 % of the devices held": "scheduling.steady_full",
    "pods on 6 shared claims": "scheduling.shared_claims",
}
"""The figure that the rate of a row is, by the name of the row."""


def report(row: Row) -> None:
    """One row and the memory at its end."""
    count, waited, memory = row.pods, row.waited, processes.memory()
    cpu = [each / count * 1e3 for each in (row.spent.main, row.spent.projector, row.spent.database)]
    print(
        f"{count} {row.name}: {count / row.seconds:.0f} pods/s, p50 {waited[count // 2]:.2f} s, "
        f"p99 {waited[count * 99 // 100]:.2f} s; CPU ms a pod {cpu[0]:.2f} + projector "
        f"{cpu[1]:.2f} + database {cpu[2]:.2f}; MiB {memory.main} + {memory.projector} + "
        f"{memory.database} = {memory.total}{row.remark and '; '}{row.remark}",
        flush=True,
    )
    if row.name in RATES:
        figures.note(RATES[row.name], count / row.seconds)
    if row.name == "as many again":
        figures.note("scheduling.5000pods.cpu", sum(cpu))


async def measure(shape: Measure, size: Size) -> None:
    """Run a shape on a new cluster."""
    async with cluster.history() as made:
        await shape(made, size, report)


def run(name: str, chosen: Mapping[str, int]) -> None:
    """Run one shape in this process."""
    shape = SHAPES[name]
    size = replace(shape.size, **chosen)
    if shape.held(size) > size.nodes * DEVICES:
        raise SystemExit(f"{name}: {size.nodes} nodes have too few devices for {size.pods} pods")
    print(f"{name}: {size.nodes} nodes", flush=True)
    anyio.run(measure, shape.measure, size, backend_options={"use_uvloop": True})


def main(arguments: Sequence[str] = ()) -> None:
    """Run the shapes that are named, or all."""
    parser = argparse.ArgumentParser(prog="bench.scheduling", description=__doc__)
    parser.add_argument("shapes", nargs="*", metavar="SHAPE", help=", ".join(SHAPES))
    parser.add_argument("--nodes", type=int, help="nodes of 10 devices")
    parser.add_argument("--pods", type=int, help="pods that are measured")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.shapes if name not in SHAPES]:
        parser.error(f"no shape {unknown[0]!r}; there are {', '.join(SHAPES)}")
    given = {"nodes": options.nodes, "pods": options.pods}
    chosen = {key: value for key, value in given.items() if value is not None}
    if len(options.shapes) == 1:
        run(options.shapes[0], chosen)
        return
    sizes = [part for key, value in chosen.items() for part in (f"--{key}", str(value))]
    for name in options.shapes or SHAPES:
        command = [sys.executable, "-m", "bench.scheduling", name, *sizes]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
