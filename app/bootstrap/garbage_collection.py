"""How the collector of cyclic garbage behaves in processes that hold whole histories.

Nearly everything here is freed by counting references; what the collector costs is looking at
millions of live objects again and again. With Python's defaults a full collection of a large
history stops the loop for hundreds of milliseconds.
"""

import gc

YOUNG_MAX = 10_000
"""New containers between two looks at the youngest: some milliseconds each."""
MIDDLE_EVERY = 1
"""Looks at the youngest before the middle generation is looked at: it must stay small too."""
OLD_EVERY = 10_000
"""Looks at the middle generation before everything may be looked at: hours under load."""


def expect_large_heap() -> None:
    """Collect seldom and in small steps; called first thing by a process that loads histories."""
    gc.set_threshold(YOUNG_MAX, MIDDLE_EVERY, OLD_EVERY)


def keep_loaded() -> None:
    """Never look again at what has been loaded by now."""
    gc.freeze()
