"""A soak with a planted defect made small: `python -m bench.minimising [--pods N] [--defect NAME]`,
or a recording: `--recording PATH --keep PREDICATE`.

It is made small here and by one and two workers, in turns, from the same bundle; all results must
be the same to the byte. CPU seconds of this process and of the workers stand beside the time: read
those on a machine that others use too. `--all` sends every candidate to the workers, also those
that are judged sooner here.

`--rounds` counts instead how often somebody has to wait: one after the other are as many runs as
candidates, and of those that run beside each other the last one counts. That is what is gained
where a candidate takes long, whatever the machine.
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
from app.bootstrap.executors import DaskExecutor, Executor, OnDemand
from app.bootstrap.minimising import searching, sharing, sources
from app.bootstrap.minimising.judging import Judge, Judged, Tried
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


class PlantedWorkers(OnDemand):
    """Workers whose engines have the same planted defect as this process."""

    defect = ""

    @property
    def executor(self) -> Executor:
        """The workers, which are started at the first use."""
        is_new = not self.is_open
        there = super().executor
        if is_new and self.defect and isinstance(there, DaskExecutor):
            # By name: what the main module holds would travel whole.
            there._client.run(import_module("bench.minimising").plant, self.defect)
        return there


def spent(workers: OnDemand) -> tuple[float, float]:
    """CPU seconds of this process and of the workers, as far as there are any."""
    there = 0.0
    if workers.is_open and isinstance(workers.executor, DaskExecutor):
        there = sum(workers.executor._client.run(time.process_time).values())
    return time.process_time(), there


def measure(path: Path, keep: str, workers: int, defect: str, file: Path) -> bytes:
    """Make the history small once; returns the result."""
    source = anyio.run(sources.read_files, Settings(), (path,), None)
    with ExitStack() as stack:
        there = PlantedWorkers(workers, "", stack)
        there.defect = defect
        before, began = spent(there), time.perf_counter()
        done = searching.minimise(
            source,
            Settings(),
            predicates.parse(keep),
            file,
            name="small",
            judges_of=partial(SharedJudges, workers=there),
        )
        took, after = time.perf_counter() - began, spent(there)
        used = "used" if there.is_open and workers else "not used"
    cpu, of_workers = (after[n] - before[n] for n in range(2))
    print(
        f"{workers} workers ({used}): {done.events} events of {done.events_before}, "
        f"{done.trials} tried, {took:.1f} s; CPU {cpu:.1f} s here, {of_workers:.1f} s of workers",
        flush=True,
    )
    return file.read_bytes()


class Counting:
    """Judges here, and counts the candidates that are run and how often some are run together."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.rounds = self.runs = 0
        self._judge: Judge | None = None

    def of(self, judge: Judge) -> "Counting":
        """The same counts for another judge."""
        self._judge = judge
        return self

    def judge(self, candidates: Sequence[Tried]) -> list[Judged]:
        """All judgements; candidates that the API would refuse are not run."""
        assert self._judge is not None, "a search gives its judge first"
        run = [each for each in candidates if not self._judge.is_out(each)]
        self.rounds += bool(run)
        self.runs += len(run)
        return [self._judge.judge(each) for each in candidates]


def count(path: Path, keep: str, width: int, file: Path) -> bytes:
    """Make the history small once, and count; returns the result."""
    source = anyio.run(sources.read_files, Settings(), (path,), None)
    counting = Counting(width)
    done = searching.minimise(
        source,
        Settings(),
        predicates.parse(keep),
        file,
        name="small",
        judges_of=counting.of,
    )
    print(
        f"{width} at once: {done.events} events, {counting.runs} runs in {counting.rounds} rounds",
        flush=True,
    )
    return file.read_bytes()


def main(arguments: Sequence[str] = ()) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="bench.minimising", description=__doc__)
    parser.add_argument("--pods", type=int, default=PODS)
    parser.add_argument("--defect", choices=sorted(DEFECTS), default="forgets")
    parser.add_argument("--recording", type=Path)
    parser.add_argument("--keep", default="difference")
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--rounds", action="store_true")
    options = parser.parse_args(arguments)
    if options.all:
        sharing.WORTH_SECONDS = 0.0
    with TemporaryDirectory() as folder:
        path, keep, defect = options.recording, options.keep, ""
        if path is None:
            defect = options.defect
            plant(defect)
            path, keep = Path(folder) / "soak.zip", f"violation {DEFECTS[defect].rule}"
            planted_soak.write(planted_soak.soak(1, options.pods), path)
        print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}: {keep}", flush=True)
        file = Path(folder) / "small.zip"
        if options.rounds:
            if len({count(path, keep, width, file) for width in (1, 2, 4, 8)}) > 1:
                raise SystemExit("the results differ")
            return
        results = {
            measure(path, keep, workers, defect, file)
            for _ in range(options.turns)
            for workers in (0, 1, 2)
        }
    if len(results) > 1:
        raise SystemExit("the results differ")


if __name__ == "__main__":
    main(sys.argv[1:])
