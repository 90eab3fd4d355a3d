"""The runs of variants as the prover sees them."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from app.analysis.replay.traces import Trace
from app.analysis.replay.variants import Variant
from app.domain.values.timestamps import Instant

IsOver: TypeAlias = Callable[[Trace, Instant], bool]
"""Whether a run may end at an instant, given its trace until then; called a few times in a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeRun:
    """A run: its trace, the number of its events, and whether it ended because it was over."""

    trace: Trace
    events: int
    is_cut_short: bool = False


RunVariant: TypeAlias = Callable[[Variant, Instant | None, IsOver | None], Awaitable[MadeRun]]
"""Runs a variant, up to the instant if one is given, and until it is over."""
