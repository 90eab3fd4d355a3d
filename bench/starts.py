"""Measures the cost of a command before its work: `python -m bench.starts [--runs N]`.

CPU seconds of whole processes, beside an embedded server that runs already, on a history with what
every cluster has. The least of the runs is shown: others disturbed it least, and it
compiles nothing.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import anyio

from app.bootstrap import histories, stores
from app.cli.exit_codes import ExitCode
from app.settings import Settings
from bench import figures, processes
from bench.cluster import pod
from bench.writer import BENCH

WAITING = "waiting"
"""The pod that is asked about: what is not there is answered by the application, for its error."""

COMMANDS = (
    ("--help",),
    ("histories",),
    ("log", "default", "--limit", "1"),
    ("timeline", "default", "--last", "1"),
    ("sql", "SELECT count(*) FROM histories"),
    ("why", f"pod/{WAITING}"),
    ("capacity", "default"),
)


def spent() -> float:
    """CPU seconds of all processes that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


def cost(command: list[str], environment: dict[str, str]) -> float:
    """CPU seconds of one run."""
    before = spent()
    done = subprocess.run(command, env=environment, capture_output=True)
    assert done.returncode in (ExitCode.DONE, ExitCode.UNUSABLE), done.stderr
    return spent() - before


async def measure(folder: Path, runs: int) -> None:
    """Create a history like a new cluster, and run each command beside its server."""
    settings = Settings(data=folder)
    environment = processes.keeps_compiled() | {"REDRA_DATA": str(folder)}
    async with stores.open_store(settings, migrate=True) as store:
        async with histories.open_histories(store, settings) as opened:
            runtime = await opened.create_cluster("default")
            await runtime.submit(pod(WAITING, claim="none"), actor=BENCH)
        rows = [("python", ["-c", "pass"])]
        rows += [(f"redra {words[0]}", ["-m", "app.cli", *words]) for words in COMMANDS]
        for name, words in rows:
            least = min(cost([sys.executable, *words], environment) for _ in range(runs))
            print(f"{name:16} {least:.2f} s CPU")
            if name != "python":
                figures.note(f"starts.{name.removeprefix('redra ').strip('-')}", least)


def main(arguments: Sequence[str] = ()) -> None:
    """Measure each command, after the interpreter alone."""
    parser = argparse.ArgumentParser(prog="python -m bench.starts")
    parser.add_argument("--runs", type=int, default=9)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="redra-bench-") as folder:
        anyio.run(measure, Path(folder), options.runs)


if __name__ == "__main__":
    main(sys.argv[1:])
