"""What the invariants cost beside a fold: `python -m bench.invariants [--events N] [--rounds N]`.

The log is that of `bench.folding`. Page by page, the events are folded into all views, the rows
that changed are made and hashed as the projector does, and the watch follows them, in turns, so
that a machine that is busy for a while slows all of it. Printed is CPU time an event.
"""

import argparse
import gc
import sys
import time
from collections.abc import Sequence

from app.analysis.verify.invariants import InvariantWatch
from app.domain.log.pages import Page
from app.service import folding
from bench import figures
from bench.folding import TURN, hash_changed, pages
from projections import all_projections


def measure(count: int) -> tuple[float, float, float, int]:
    """CPU seconds of folding, of making rows, and of watching; violations that the watch found."""
    views, watch = all_projections(), InvariantWatch()
    folds = rows = watching = 0.0
    for page in pages(count):
        started = time.process_time()
        parts = [Page(part) for part in folding.parts_of(page, TURN)]
        for part in parts:
            for view in views:
                folding.fold(view, part)
        folded = time.process_time()
        for view in views:
            hash_changed(view)
        made = time.process_time()
        for part in parts:
            watch.follow_page(part)
        watching += time.process_time() - made
        rows += made - folded
        folds += folded - started
    return folds, rows, watching, len(watch.violations())


def main(arguments: Sequence[str] = ()) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="bench.invariants", description=__doc__)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    gc.freeze()
    gc.set_threshold(100_000, 20, 50)
    for _ in range(options.rounds):
        folds, rows, watching, violations = measure(options.events)
        figures.note("invariants.share_of_fold", watching / folds)
        micros = [seconds / options.events * 1e6 for seconds in (folds, rows, watching)]
        print(
            f"fold {micros[0]:.1f} µs an event, rows {micros[1]:.1f}, invariants {micros[2]:.1f}: "
            f"{watching / folds:.0%} of a fold, {watching / (folds + rows):.0%} of one with "
            f"its rows ({violations} violations)"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
