"""A soak with a planted defect made small: `python -m bench.minimising [--pods N] [--defect NAME]`.

It is made small here and by one and two workers, in turns, from the same bundle; all results must
be the same to the byte. CPU seconds of this process and of the workers stand beside the time: read
those on a machine that others use too.
"""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

from app.analysis.minimise import predicates
from app.bootstrap import executors
from app.bootstrap.executors import DaskExecutor, Executor
from app.bootstrap.minimising import searching, sources
from app.bootstrap.minimising.sharing import SharedJudges
from app.settings import Settings
from tests.simulation import planted_soak
from tests.simulation.planted_soak import DEFECTS

PODS = 420


_planted = ExitStack()
"""What is planted in this process, for good."""


def plant(defect: str) -> None:
    """Break the engine of this process."""
    _planted.enter_context(planted_soak.planted(defect))


def spent(executor: Executor) -> tuple[float, float]:
    """CPU seconds of this process and of the workers."""
    there = 0.0
    if isinstance(executor, DaskExecutor):
        there = sum(executor._client.run(time.process_time).values())
    return time.process_time(), there


def measure(bundle: Path, defect: str, workers: int) -> bytes:
    """Make the soak small once; returns the result."""
    source = anyio.run(sources.read_files, Settings(), (bundle,), None)
    keep = predicates.parse(f"violation {DEFECTS[defect].rule}")
    with executors.opened(workers, "") as executor:
        if isinstance(executor, DaskExecutor):
            # By name: what the main module holds would travel whole.
            executor._client.run(import_module("bench.minimising").plant, defect)
        before, began = spent(executor), time.perf_counter()
        file = bundle.with_name("small.zip")
        done = searching.minimise(
            source,
            Settings(),
            keep,
            file,
            name="small",
            judges_of=partial(SharedJudges, executor=executor),
        )
        took, after = time.perf_counter() - began, spent(executor)
    here, there = (after[n] - before[n] for n in range(2))
    print(
        f"{workers} workers: {done.events} events of {done.events_before}, {done.trials} tried, "
        f"{took:.1f} s; CPU {here:.1f} s here, {there:.1f} s of workers"
    )
    return file.read_bytes()


def main(arguments: Sequence[str] = ()) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="bench.minimising", description=__doc__)
    parser.add_argument("--pods", type=int, default=PODS)
    parser.add_argument("--defect", choices=sorted(DEFECTS), default="forgets")
    parser.add_argument("--turns", type=int, default=1)
    options = parser.parse_args(arguments)
    with TemporaryDirectory() as folder:
        plant(options.defect)
        bundle = Path(folder) / "soak.zip"
        planted_soak.write(planted_soak.soak(1, options.pods), bundle)
        print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
        results = {
            measure(bundle, options.defect, workers)
            for _ in range(options.turns)
            for workers in (0, 1, 2)
        }
    if len(results) > 1:
        raise SystemExit("the results differ")


if __name__ == "__main__":
    main(sys.argv[1:])
