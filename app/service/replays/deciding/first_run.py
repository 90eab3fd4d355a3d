"""The first run of a decide replay, with which the recording is compared."""

from collections.abc import Awaitable, Callable, Set
from dataclasses import replace

from app.analysis.replay.classes import End
from app.analysis.replay.differences import Compared
from app.analysis.replay.traces import Trace
from app.analysis.replay.unsure import ending
from app.analysis.replay.variants import Variant
from app.service.replays.deciding.run import Run


async def first_run(
    run: Callable[[Variant], Awaitable[Run]],
    variant: Variant,
    compare: Callable[[Trace, Trace], Compared],
    recorded: Trace,
    end: End,
    left_out: Set[str] = frozenset(),
) -> tuple[Variant, Run, Compared]:
    """Makes the plain run, and compares it.

    If there are such controllers, a second run follows without those that the recording never shows
    at work, and without those that it leaves out (`left_out`). If fewer differences are left to
    explain, it is used.
    """
    plain = await run(variant)
    compared = compare(recorded, plain.trace)
    late = ending.unstarted(recorded, plain.trace, end) | left_out & ending.writers(plain.trace)
    if not late:
        return variant, plain, compared
    later = replace(variant, unstarted=late)
    without = await run(later)
    left = compare(recorded, without.trace)
    still = ending.undecided(left, without.trace, recorded, end)
    if still < ending.undecided(compared, plain.trace, recorded, end):
        return later, without, left
    return variant, plain, compared
