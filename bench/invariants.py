"""What the invariants cost beside a fold: `python -m bench.invariants [--events N] [--rounds N]`.

The log is that of `bench.folding`. Round by round, the same pages are folded into all views and
followed by the watch in turns, so that a machine that is busy for a while slows both. Printed are
both times an event, and their ratio, of all rounds and of the best one.
"""

import argparse
import gc
import sys
import time
from collections.abc import Sequence

from app.service.invariants import InvariantWatch
from bench.folding import pages
from projections import all_projections


def measure(count: int) -> tuple[float, float, int]:
    """CPU seconds of folding and of watching, and how many violations the watch found."""
    views, watch = all_projections(), InvariantWatch()
    folding = watching = 0.0
    for page in pages(count):
        started = time.process_time()
        for event in page:
            watch.note(event)
        ended = time.process_time()
        watching += ended - started
        for event in page:
            for view in views:
                view.fold(event)
        folding += time.process_time() - ended
    return folding, watching, len(watch.violations())


def main(arguments: Sequence[str] = ()) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="bench.invariants", description=__doc__)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    gc.freeze()
    gc.set_threshold(100_000, 20, 50)
    rounds = [measure(options.events) for _ in range(options.rounds)]
    for folding, watching, violations in rounds:
        print(
            f"fold {folding / options.events * 1e6:.1f} µs an event, invariants "
            f"{watching / options.events * 1e6:.1f} µs: {watching / folding:.1%} "
            f"({violations} violations)"
        )
    folding, watching = (sum(each[place] for each in rounds) for place in (0, 1))
    print(f"all rounds: {watching / folding:.1%}")


if __name__ == "__main__":
    main(sys.argv[1:])
