"""`python -m tests.fuzz NAME --cases N --seed S` runs the fuzzer of that name."""

import argparse
import importlib


def main() -> None:
    """Finds and runs the module, which raises its findings."""
    parser = argparse.ArgumentParser(prog="tests.fuzz", description=__doc__)
    parser.add_argument("name", help="a module of this package with a function `run`")
    parser.add_argument("--cases", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    module = importlib.import_module(f"tests.fuzz.{chosen.name}")
    module.run(cases=chosen.cases, seed=chosen.seed)


main()
