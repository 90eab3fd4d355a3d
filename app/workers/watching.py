"""Watches over a served history: findings are counted, reported, and kept for its pages."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import anyio

from app.analysis.oversight import Observation, Oversight
from app.ports import Meter, WakeUp
from app.service.replays import overseeing
from app.service.replays.overseeing import OverseeingBounds
from app.service.runtime import HistoryRuntime
from app.workers.deletions import is_deletion

_log = logging.getLogger("redra")


async def run(
    runtime: HistoryRuntime,
    wake_up: WakeUp,
    meter: Meter,
    make: Callable[[HistoryRuntime], Awaitable[Oversight]],
    *,
    note: Callable[[str], None],
    bounds: OverseeingBounds,
) -> None:
    """Judge the history from its first event on, until cancelled.

    An unexpected error in a judge ends the watch over this history only.
    """
    try:
        oversight = await make(runtime)
        await overseeing.oversee(
            runtime.log,
            wake_up,
            runtime.info,
            oversight,
            until=None,
            report_observations=partial(_report_observations, runtime, meter, oversight, note),
            stopped=anyio.Event(),
            bounds=bounds,
        )
    except Exception as mistake:
        if not is_deletion(mistake):
            _log.exception("the history %s is no longer watched over", runtime.info.name)


def _report_observations(
    runtime: HistoryRuntime,
    meter: Meter,
    oversight: Oversight,
    note: Callable[[str], None],
    observations: Sequence[Observation],
) -> None:
    name = runtime.info.name
    meter.gauge("redra_watched_revision", oversight.revision, history=name)
    for each in observations:
        meter.count(
            "redra_findings_total",
            history=name,
            judge=each.judge.value,
            name=each.name,
            failure="true" if each.is_failure else "false",
        )
        note(f"{name}: {each}")
    runtime.observations.extend(observations)
