"""Runs every measurement, or those named: `python -m bench [NAME…]`."""

import importlib
import os
import platform
import sys
from pathlib import Path

MEASUREMENTS = (
    *("log", "writer", "cpu", "requests", "folding", "importing", "allocation", "cel", "api"),
    *("invariants", "watching", "scheduling", "verifying", "memory", "blast", "starts", "forking"),
)


def machine() -> str:
    """One line that says on what the figures were taken."""
    model = "unknown processor"
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8") as lines:
            model = next(line.split(":", 1)[1].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        pass
    return f"{os.cpu_count()} cores ({model}), Python {platform.python_version()}"


def main() -> None:
    """Run the measurements one after the other."""
    print(f"machine: {machine()}\n")
    for name in sys.argv[1:] or MEASUREMENTS:
        if name not in MEASUREMENTS:
            raise SystemExit(f"no measurement {name!r}; there are {', '.join(MEASUREMENTS)}")
        print(f"## {name}", flush=True)
        importlib.import_module(f"bench.{name}").main()
        print()


if __name__ == "__main__":
    main()
