"""Watching over a history: its events are judged as they arrive, from the first one on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile

import anyio
from anyio import lowlevel

from app.analysis.oversight import Observation, Oversight
from app.domain.errors import LogUnavailable
from app.domain.log import Event, HistoryInfo, Revision
from app.domain.values import timestamps
from app.domain.values.timestamps import Instant
from app.ports import EventLog, WakeUp


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadline:
    """An instant that is to come, after which nothing is judged, and the clock that reaches it."""

    instant: Instant
    now: Callable[[], Instant]

    @property
    def is_over(self) -> bool:
        """Whether the instant has passed: what is written from now on is later."""
        return self.now() > self.instant

    def __str__(self) -> str:
        return f"until {timestamps.micro_text(self.instant)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OverseeingBounds:
    """Bounds of watching over a history.

    `page_max` events are read at once. After `turn_max` judged events the loop runs other tasks.
    Lost wake-ups are covered after `poll_seconds`. When no event arrives for `settle_seconds`,
    nothing counts as in flight any more.
    """

    page_max: int = 2_000
    turn_max: int = 100
    poll_seconds: float = 2.0
    settle_seconds: float = 15.0


async def oversee(
    log: EventLog,
    wake_up: WakeUp,
    history: HistoryInfo,
    oversight: Oversight,
    *,
    since: Revision = Revision(0),
    until: Revision | Deadline | None,
    report_observations: Callable[[Sequence[Observation]], None],
    stopped: anyio.Event,
    bounds: OverseeingBounds = OverseeingBounds(),
) -> None:
    """Judge all events up to `until`, or without `until`, all events until `stopped` is set.

    Up to a `Deadline` the loop goes on as without `until`, and ends with the first event that is
    later, or when the instant has passed.
    `report_observations` is called with new observations, but not for events up to `since`. A
    caller that continues an earlier run sets `since` to the `seen` of the last line of that run.
    Observations that were in flight then are reported a second time, so that none is lost. Without
    `until`, the loop waits while the log is unavailable.
    """
    deadline = until if isinstance(until, Deadline) else None
    end = None if isinstance(until, Deadline) else until
    after, idle_since = Revision(0), anyio.current_time()
    is_settled = True
    async with wake_up.listen(history.id) as listener:
        while not stopped.is_set() and (end is None or after < end):
            is_over = deadline is not None and deadline.is_over
            try:
                final = end if after >= since else min(since, end or since)
                events = await log.read(history.id, after=after, limit=bounds.page_max, until=final)
            except LogUnavailable:
                if end is not None:
                    raise
                events, is_over = [], False
            if deadline is not None and any(_is_after(deadline, each) for each in events):
                events = list(takewhile(lambda each: not _is_after(deadline, each), events))
                is_over = True
            for first in range(0, len(events), bounds.turn_max):
                new = oversight.take(events[first : first + bounds.turn_max])
                if oversight.revision > since:
                    report_observations(new)
                await lowlevel.checkpoint()
            if events:
                after, idle_since, is_settled = events[-1].revision, anyio.current_time(), False
                continue
            if end is not None or is_over:
                break
            if not is_settled and anyio.current_time() - idle_since >= bounds.settle_seconds:
                is_settled = True
                report_observations(oversight.settle())
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_cancel_when, stopped, tasks.cancel_scope)
                await listener.wait(bounds.poll_seconds)
                tasks.cancel_scope.cancel()
    report_observations(oversight.end())


def _is_after(deadline: Deadline, event: Event) -> bool:
    return event.stamp.time > deadline.instant


async def _cancel_when(stopped: anyio.Event, scope: anyio.CancelScope) -> None:
    await stopped.wait()
    scope.cancel()
