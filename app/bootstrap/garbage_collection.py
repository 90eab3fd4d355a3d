"""Settings of Python's garbage collector for processes that hold whole histories.

Nearly all objects here are freed by reference counting. The cost of the collector is scanning
millions of live objects again and again. With Python's defaults a full collection of a large
history stops the loop for hundreds of milliseconds.
"""

import asyncio
import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

YOUNG_MAX = 10_000
"""New containers between two scans of the youngest generation: some milliseconds each."""
MIDDLE_EVERY = 1
"""Scans of the youngest generation for each scan of the middle one, which must stay small too."""
OLD_EVERY = 10_000
"""Scans of the middle generation before a full scan is possible: hours under load."""
WHOLE_EVERY = 20_000
"""Scans of new objects in a server before a full scan: hours under load."""
LEFT_OUT = 7
"""Scans of new objects that a server leaves out after one that found next to nothing."""
FEW = 100
"""Fewer objects in cycles than this are next to nothing in a scan of YOUNG_MAX containers."""
MISSED_MAX = 100_000
"""Objects in cycles that scans may have missed since the last full scan, by what others found."""
ONE_PASS_MAX = 2_000_000
"""New containers between two scans while a history is read once: some hundred MiB of them."""


def expect_large_heap() -> None:
    """Collect seldom and in small steps; called first by a process that loads histories."""
    gc.set_threshold(YOUNG_MAX, MIDDLE_EVERY, OLD_EVERY)


def look_once(whole_every: int = WHOLE_EVERY, left_out: int = LEFT_OUT) -> None:
    """Scan new objects once or not at all; scan those that survive only in full scans.

    For servers: a second scan of the survivors finds next to nothing and takes longer. While the
    first scan finds next to nothing as well, only one in `left_out` + 1 is done. A full scan is
    due after `whole_every` scans, with those left out, as soon as a loop runs in the thread.
    """
    _Looks.whole_every, _Looks.left_out = whole_every, left_out
    if _around_look not in gc.callbacks:
        gc.callbacks.append(_around_look)


class _Looks:
    """The scans of new objects since the last full scan, and what they may have missed.

    `leaving_out` is the number of scans that are to be left out now.
    """

    count = 0
    leaving_out = 0
    missed = 0
    whole_every = WHOLE_EVERY
    left_out = LEFT_OUT


def _around_look(phase: str, info: Mapping[str, int]) -> None:
    """Exclude objects from later scans: before a scan that is left out, after another.

    Called by the collector.
    """
    if info["generation"]:
        return
    if phase == "start":
        if _Looks.leaving_out:
            gc.freeze()
        return
    gc.freeze()
    _Looks.count += 1
    if _Looks.leaving_out:
        _Looks.leaving_out -= 1
    else:
        _leave_out(info["collected"] + info["uncollectable"])
    if _Looks.count < _Looks.whole_every:
        return
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return
    _Looks.count = _Looks.missed = 0
    # Deferred: a collection cannot be started while the collector runs.
    loop.call_soon(_look_at_everything)


def _leave_out(garbage: int) -> None:
    """Leave out the next scans after one that found so many objects in cycles, if these are few."""
    if garbage < FEW and _Looks.missed < MISSED_MAX:
        _Looks.leaving_out = _Looks.left_out
        _Looks.missed += garbage * _Looks.left_out


def _look_at_everything() -> None:
    gc.unfreeze()
    gc.collect()
    gc.freeze()


@contextmanager
def one_pass() -> Iterator[None]:
    """Hardly ever collect in the block, which verifies a history once while no request waits.

    The objects that folds and verifications drop have no cycles, so a scan finds nothing.
    """
    before = gc.get_threshold()
    gc.set_threshold(ONE_PASS_MAX, MIDDLE_EVERY, OLD_EVERY)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def keep_loaded() -> None:
    """Exclude all objects loaded so far from scans, except full scans."""
    gc.freeze()
