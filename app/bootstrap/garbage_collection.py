"""How the collector of cyclic garbage behaves in processes that hold whole histories.

Nearly everything here is freed by counting references; what the collector costs is looking at
millions of live objects again and again. With Python's defaults a full collection of a large
history stops the loop for hundreds of milliseconds.
"""

import asyncio
import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

YOUNG_MAX = 10_000
"""New containers between two looks at the youngest: some milliseconds each."""
MIDDLE_EVERY = 1
"""Looks at the youngest before the middle generation is looked at: it must stay small too."""
OLD_EVERY = 10_000
"""Looks at the middle generation before everything may be looked at: hours under load."""
WHOLE_EVERY = 20_000
"""Looks of a server at what is new before it looks at everything: hours under load."""
ONE_PASS_MAX = 2_000_000
"""New containers between two looks while a history is read once: some hundred MiB of them."""


def expect_large_heap() -> None:
    """Collect seldom and in small steps; called first thing by a process that loads histories."""
    gc.set_threshold(YOUNG_MAX, MIDDLE_EVERY, OLD_EVERY)


def look_once(whole_every: int = WHOLE_EVERY) -> None:
    """Look at new objects once, and at what lives then only when everything is looked at.

    For servers: a second look at what lived at the first finds next to nothing, and takes longer.
    Everything is looked at after `whole_every` looks, as soon as a loop runs in the thread.
    """
    _Looks.whole_every = whole_every
    if _after_look not in gc.callbacks:
        gc.callbacks.append(_after_look)


class _Looks:
    """How many looks there were at what is new since everything was looked at."""

    count = 0
    whole_every = WHOLE_EVERY


def _after_look(phase: str, info: Mapping[str, int]) -> None:
    """Leave what lives alone from now on; called by the collector."""
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
    # Not from here: a collector that runs cannot be started.
    loop.call_soon(_look_at_everything)


def _look_at_everything() -> None:
    gc.unfreeze()
    gc.collect()
    gc.freeze()


@contextmanager
def one_pass() -> Iterator[None]:
    """Hardly ever collect in the block: it verifies a history once, and nobody waits meanwhile.

    What folds and verifications drop has no cycles, so that a look finds nothing.
    """
    before = gc.get_threshold()
    gc.set_threshold(ONE_PASS_MAX, MIDDLE_EVERY, OLD_EVERY)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def keep_loaded() -> None:
    """Never look again at what has been loaded by now, but when everything is looked at."""
    gc.freeze()
