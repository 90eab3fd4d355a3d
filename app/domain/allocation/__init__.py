"""The allocation of devices to claims: allocating on nodes, verifying results, explaining answers.

Belongs here: requests and their checks, eligibility, constraints, counters and capacity in use, the
search and its proven shortcuts, results, the independent checker, explanations, counterfactuals,
and scenarios in conformance form. Does not belong here: when a pod is scheduled or a claim is
written (`controllers`), the inventory of devices (`devices`), I/O, clocks, randomness.

May be imported by `controllers`, projections, the service and the command line. The parity source
is allocator.md; each quirk of upstream is a named switch in `quirks`.
"""

from app.domain.allocation.allocator import (
    Allocation,
    Allocator,
    Answer,
    Bounds,
    DoesNotFit,
    Failure,
    FailureScope,
)
from app.domain.allocation.features import AllocatorVariant, Features
from app.domain.allocation.quirks import Quirks
from app.domain.allocation.state import AllocatedState

__all__ = [
    "AllocatedState",
    "Allocation",
    "Allocator",
    "AllocatorVariant",
    "Answer",
    "Bounds",
    "DoesNotFit",
    "Failure",
    "FailureScope",
    "Features",
    "Quirks",
]
