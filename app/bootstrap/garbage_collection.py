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
ONE_PASS_MAX = 2_000_000
"""New containers between two scans while a history is read once: some hundred MiB of them."""


def expect_large_heap() -> None:
    """Collect seldom and in small steps; called first by a process that loads histories."""
    gc.set_threshold(YOUNG_MAX, MIDDLE_EVERY, OLD_EVERY)


def look_once(whole_every: int = WHOLE_EVERY) -> None:
    """Scan new objects once; scan those that survive only in full scans.

    For servers: a second scan of the survivors finds next to nothing and takes longer. A full scan
    is done after `whole_every` scans, as soon as a loop runs in the thread.
    """
    _Looks.whole_every = whole_every
    if _after_look not in gc.callbacks:
        gc.callbacks.append(_after_look)


class _Looks:
    """The number of scans of new objects since the last full scan."""

    count = 0
    whole_every = WHOLE_EVERY


def _after_look(phase: str, info: Mapping[str, int]) -> None:
    """Exclude the surviving objects from later scans; called by the collector."""
    if phase != "stop" or info["generation"]:
        return
    gc.freeze()
    _Looks.count += 1
    if _Looks.count < _Looks.whole_every:
        return
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return
    _Looks.count = 0
    # Deferred: a collection cannot be started while the collector runs.
    loop.call_soon(_look_at_everything)


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
