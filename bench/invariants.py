"""The cost of the invariants and of a fold: `python -m bench.invariants [--events N] [--rounds N]`.

The log is that of `bench.folding`. Page by page, the events are folded into all views, the rows
that changed are made and hashed as the projector does, and the watch follows them, in turns, so
that a machine that is busy for a while slows all of it. Printed is CPU time an event. The floor is
what a judge would cost that looks each pod and claim up and does nothing: no judge costs less.
"""

import argparse
import gc
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.analysis.verify.invariants import InvariantWatch
from app.analysis.verify.invariants.cluster import LISTED
from app.domain.log import ObjectKey
from app.domain.log.pages import Page
from app.service.folding import projecting
from bench import figures
from bench.folding import TURN, hash_changed, pages
from projections import all_projections


@dataclass(slots=True)
class Spent:
    """CPU seconds of folding, of making rows, of watching and of the floor; violations found."""

    folds: float = 0.0
    rows: float = 0.0
    watching: float = 0.0
    floor: float = 0.0
    violations: int = 0


def look_up(page: Page, known: dict[ObjectKey, tuple[str, Any]]) -> None:
    """Look up each pod and claim, as any judge must, and keep the objects."""
    for event, parts in page.splits:
        if event.stamp.verb != LISTED and parts is not None:
            before = known.get(event.key)
            if before is None or before[0] != event.uid:
                known[event.key] = event.uid, parts.status


def measure(count: int) -> Spent:
    """Fold and follow a log of that many events."""
    views, watch, spent = all_projections(), InvariantWatch(), Spent()
    known: dict[ObjectKey, tuple[str, Any]] = {}
    for page in pages(count):
        started = time.process_time()
        parts = [Page(part) for part in projecting.parts_of(page, TURN)]
        for part in parts:
            for view in views:
                projecting.fold(view, part)
        folded = time.process_time()
        for view in views:
            hash_changed(view)
        made = time.process_time()
        for part in parts:
            watch.follow_page(part)
        watched = time.process_time()
        for part in parts:
            look_up(part, known)
        spent.floor += time.process_time() - watched
        spent.watching += watched - made
        spent.rows += made - folded
        spent.folds += folded - started
    spent.violations = len(watch.violations())
    return spent


def main(arguments: Sequence[str] = ()) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="bench.invariants", description=__doc__)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    gc.freeze()
    gc.set_threshold(100_000, 20, 50)
    for _ in range(options.rounds):
        spent = measure(options.events)
        folds, rows, watching = spent.folds, spent.rows, spent.watching
        figures.note("invariants.share_of_fold", watching / folds)
        micros = [
            seconds / options.events * 1e6 for seconds in (folds, rows, watching, spent.floor)
        ]
        print(
            f"fold {micros[0]:.1f} µs an event, rows {micros[1]:.1f}, invariants {micros[2]:.1f}: "
            f"{watching / folds:.0%} of a fold, {watching / (folds + rows):.0%} of one with "
            f"its rows ({spent.violations} violations); floor {micros[3]:.2f}"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
