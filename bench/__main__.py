"""Runs all or the named measurements, and compares the figures with their targets.

python -m bench [NAME…] [--rounds N]      measure; print the table, write bench/results/
python -m bench compare A B               two results: files, or the beginnings of commits
python -m bench turns CHECKOUT [NAME…]    this checkout and another one in turns, compared
python -m bench NAME [OPTION…]            one of those that compare with nothing, with its options
"""

import argparse
import importlib
import os
import platform
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench import figures
from bench.figures import Unreadable, Values

MEASUREMENTS = (
    *("log", "writer", "cpu", "requests", "folding", "importing", "allocation", "cel", "api"),
    *("invariants", "watching", "scheduling", "verifying", "memory", "blast", "starts", "forking"),
    *("pages", "attached", "republishing"),
)


ALONE = (
    "growth",
    "large",
    "long",
    "why",
    "calls",
    "counts",
    "idling",
    "pacing",
    "panning",
    "minimising",
    "sweeping",
    "recording",
    "interpreter",
)
"""Measurements with options of their own and without targets; each is run by itself."""


def machine() -> str:
    """One line that describes the machine of the figures."""
    model = "unknown processor"
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8") as lines:
            model = next(line.split(":", 1)[1].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        pass
    return f"{os.cpu_count()} cores ({model}), Python {platform.python_version()} ({build()})"


def build() -> str:
    """How the interpreter was built: its speed differs by a quarter."""
    options = str(sysconfig.get_config_var("CONFIG_ARGS") or "")
    marks = ("--enable-optimizations", "PGO"), ("--with-lto", "LTO")
    return (
        ", ".join(mark for option, mark in marks if option in options)
        or "not known to be optimised"
    )


def measure(names: Sequence[str], rounds: int) -> Values:
    """Runs the measurements one after the other; returns the figures that they noted."""
    with tempfile.TemporaryDirectory(prefix="redra-bench-") as folder:
        path = Path(folder, "figures.jsonl")
        path.touch()
        os.environ[figures.FILE] = str(path)
        for _ in range(rounds):
            for name in names:
                print(f"## {name}", flush=True)
                importlib.import_module(f"bench.{name}").main()
                print(flush=True)
        return figures.noted(path)


def take_turns(checkout: Path, names: Sequence[str], rounds: int) -> tuple[Values, Values]:
    """The figures of another checkout and of this one, each measured in its own environment."""
    sides: tuple[Values, Values] = ({}, {})
    folders = (checkout, figures.FOLDER.parent)
    for number in range(rounds):
        # The side that begins changes, so that a machine that warms up favours neither.
        for side in (0, 1) if number % 2 == 0 else (1, 0):
            for name, listed in _measure_in(folders[side], names).items():
                sides[side].setdefault(name, []).extend(listed)
    return sides


def _measure_in(folder: Path, names: Sequence[str]) -> Values:
    python = folder / ".venv" / "bin" / "python"
    with tempfile.TemporaryDirectory(prefix="redra-bench-") as kept:
        path = Path(kept, "figures.jsonl")
        path.touch()
        environment = os.environ | {figures.FILE: str(path)}
        for name in names:
            command = [str(python), "-m", f"bench.{name}"]
            print(f"{folder}: {name}", flush=True)
            subprocess.run(
                command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL
            )
        return figures.noted(path)


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join((*MEASUREMENTS, *ALONE)))
    parser.add_argument("--rounds", type=int, help="times that each is measured: 1, in turns 4")
    options = parser.parse_args(arguments)
    options.command = "measure"
    if options.names[:1] in (["compare"], ["turns"]):
        options.command = options.names.pop(0)
    if options.command == "compare":
        if len(options.names) != 2:
            parser.error("compare takes two results")
        return options
    options.checkout = None
    if options.command == "turns":
        if not options.names:
            parser.error("turns takes the folder of another checkout")
        options.checkout = Path(options.names.pop(0)).resolve()
        if not (options.checkout / ".venv" / "bin" / "python").exists():
            parser.error(f"{options.checkout} is no checkout with an environment (make install)")
    if unknown := [name for name in options.names if name not in MEASUREMENTS]:
        alone = f"; {unknown[0]} is run by itself" if unknown[0] in ALONE else ""
        parser.error(f"no measurement {unknown[0]!r}; there are {', '.join(MEASUREMENTS)}{alone}")
    if options.rounds is None:
        options.rounds = figures.RUNS_MIN if options.command == "turns" else 1
    if options.rounds < 1:
        parser.error("at least one round is measured")
    return options


def main(arguments: Sequence[str] = ()) -> None:
    """Measures, or compares results."""
    if arguments and arguments[0] in ALONE:
        importlib.import_module(f"bench.{arguments[0]}").main(arguments[1:])
        return
    options = _parsed(arguments)
    if options.command == "compare":
        try:
            (before, there), (after, here) = (
                figures.load(figures.file_of(name)) for name in options.names
            )
        except Unreadable as problem:
            raise SystemExit(str(problem)) from None
        if there != here:
            print(f"taken on different machines: {there}; {here}")
        print("\n".join(figures.compared(before, after)))
        return
    print(f"machine: {machine()}")
    if build() == "not known to be optimised":
        print(
            "this interpreter does not say that it was built with PGO: figures may be a third worse"
        )
    names = options.names or MEASUREMENTS
    if options.command == "turns":
        before, after = take_turns(options.checkout, names, options.rounds)
        print("\n".join(figures.compared(before, after)))
        return
    print()
    values = measure(names, options.rounds)
    if values:
        print("\n".join(figures.table(values)))
        print(f"\nwritten to {figures.save(values, machine())}")


if __name__ == "__main__":
    main(sys.argv[1:])
