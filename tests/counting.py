"""Counts of function calls, for tests of what a piece of work grows with."""

import gc
import sys
from collections.abc import Callable
from typing import Any, TypeVar

Result = TypeVar("Result")


def counted(work: Callable[..., Result], *given: Any) -> tuple[Result, int]:
    """The result of `work` and the number of calls it made.

    Garbage is not collected meanwhile: what listens to the collector, as Hypothesis does,
    would be counted with the work in some runs.
    """
    calls, before = 0, sys.getprofile()

    def note(_frame, what: str, _called) -> None:
        nonlocal calls
        calls += what in ("call", "c_call")

    gc.disable()
    sys.setprofile(note)
    try:
        result = work(*given)
    finally:
        sys.setprofile(before)
        gc.enable()
    return result, calls
