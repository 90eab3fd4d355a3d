"""Where the processor time of a sweep goes: `python -m bench.sweeping [--runs N] [PLAN]`.

The first runs of the plan, here and on one and two workers: CPU seconds of each process before the
first run and for each later one. Unlike durations they can be read on a machine that others use
too. What one worker needs before its first run is a bound for what more workers are worth.
"""

import argparse
import multiprocessing
import sys
import time
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path

import anyio

from app.analysis.sweep import plans
from app.bootstrap import executors, garbage_collection, process_settings
from app.bootstrap.executors import DaskExecutor, Executor, Task
from app.bootstrap.manifests import read_documents
from app.bootstrap.sweeping import histories, running

PLAN = Path("examples/sweeps/placed.yaml")


def spent(executor: Executor) -> list[float]:
    """CPU seconds of this process and of each worker."""
    there: list[float] = []
    if isinstance(executor, DaskExecutor):
        there = sorted(executor._client.run(time.process_time).values())
    return [time.process_time(), *there]


def tasks_of(path: Path, runs: int) -> tuple[dict[str, bytes], list[Task]]:
    """The bundles of a plan, and the tasks of runs from all its parts."""
    plan = plans.parse(read_documents(path)[0][1], str(path))
    settings = process_settings.settings(data=None)
    bundles = anyio.run(histories.bundles, plan, settings, path.parent)
    every = list(plans.cells(plan))
    return bundles, [
        Task(digest=str(cell.number), bundle=cell.history, data=cell.to_json())
        for cell in every[:: max(1, len(every) // runs)]
    ]


def measure(path: Path, workers: int, runs: int) -> Iterator[str]:
    """Rows of a measurement, in this process."""
    garbage_collection.expect_large_heap()
    if workers:
        executors.load_ahead(["app.bootstrap.sweeping.running", "app.bootstrap.sweeping.cells"])
    bundles, tasks = tasks_of(path, runs)
    yield f"{workers} workers: {time.process_time():.2f} s CPU here for imports and bundles"
    with executors.opened(workers, "") as executor:
        first, later = tasks[: max(workers, 1)], tasks[max(workers, 1) :]
        for some in (first, later):
            before = spent(executor)
            problems = [done.problem for done in executor.map(running.run_cell, bundles, some)]
            assert not any(problems), problems
            here, *there = (b - a for a, b in zip(before, spent(executor), strict=True))
            begun = ", ".join(f"{each:.2f}" for each in before[1:]) or "-"
            yield (
                f"  {len(some)} runs: {(sum(there) or here) / len(some):.3f} s CPU each, "
                f"here {here / len(some):.3f}; workers before: {begun}"
            )


def send(path: Path, workers: int, runs: int, pipe: Connection) -> None:
    """Send the rows of a measurement."""
    with pipe:
        for row in measure(path, workers, runs):
            pipe.send(row)


def main(arguments: Sequence[str] = ()) -> None:
    """Measure in new processes, one after the other."""
    parser = argparse.ArgumentParser(prog="python -m bench.sweeping", description=__doc__)
    parser.add_argument("plan", nargs="?", type=Path, default=PLAN)
    parser.add_argument("--runs", type=int, default=24)
    parser.add_argument("--workers", type=int, nargs="*", default=[0, 1, 2])
    options = parser.parse_args(arguments)
    context = multiprocessing.get_context("spawn")
    for workers in options.workers:
        receive, pipe = context.Pipe(duplex=False)
        process = context.Process(target=send, args=(options.plan, workers, options.runs, pipe))
        process.start()
        pipe.close()
        try:
            while True:
                print(receive.recv(), flush=True)
        except EOFError:
            process.join()


if __name__ == "__main__":
    main(sys.argv[1:])
