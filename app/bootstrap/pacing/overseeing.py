"""The process of `redra watch-over`: a store, a history and its judges, until a signal to stop."""

import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import anyio

from app.analysis.oversight import Observation, Oversight
from app.analysis.recordings import uncertainty
from app.bootstrap import replays
from app.bootstrap.deciders import deciders_of
from app.bootstrap.stores import find_history, find_revision, open_store
from app.domain.log import HistoryInfo, Revision
from app.domain.log.doubts import NEVER_SEEN, Doubt
from app.service import recorded_doubts
from app.service.replays import overseeing
from app.service.replays.overseeing import OverseeingBounds
from app.service.replays.verifying import switches_of
from app.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What was judged: up to which revision, with how many failures and other observations."""

    history: str
    revision: Revision
    failures: int
    others: int


async def watch_over(
    settings: Settings,
    name: str,
    moment: str,
    *,
    tell: Callable[[Sequence[Observation]], None],
    ready: Callable[[str], None],
) -> Watched:
    """Judge a history up to a moment; without one as it goes on, until SIGTERM or SIGINT."""
    async with open_store(settings) as store:
        stored = await find_history(store, name)
        until = await find_revision(store, stored, moment, option="--until") if moment else None
        info = await replays.as_asked(store, settings, stored, None)
        doubts = await recorded_doubts.doubts_of(store.log, info)
        oversight = oversight_of(info, doubts)
        stopped = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_stop_on_signal, stopped)
            ready(f"watching over {name}" + (f" up to revision {until}" if until else ""))
            await overseeing.oversee(
                store.log,
                store.ports.wake_up,
                info,
                oversight,
                until=until,
                tell=tell,
                stopped=stopped,
                bounds=OverseeingBounds(
                    page_max=settings.projector_batch_max, poll_seconds=settings.poll_seconds
                ),
            )
            tasks.cancel_scope.cancel()
    return Watched(
        history=name,
        revision=oversight.revision,
        failures=oversight.failures,
        others=oversight.others,
    )


def oversight_of(info: HistoryInfo, doubts: Sequence[Doubt]) -> Oversight:
    """The judges of a history, with its settings and what its recording lacks."""
    deciders = deciders_of(info)
    switches = switches_of(deciders.rules.profile, deciders.quirks)
    if info.is_decided_elsewhere:
        # There are no decisions to make again: the controllers need not follow.
        deciders = replace(deciders, controllers=())
    return Oversight(
        deciders,
        invariants=switches,
        # What the release is known to do wrong is what is looked for.
        scan=replace(switches, distinct_by_last=False, rules_unseen=False),
        lacking=uncertainty.lacking(doubts),
        kinds_lacking=tuple(doubt.kind for doubt in doubts if doubt.code == NEVER_SEEN),
        begin=Revision(info.parent_revision + 1) if info.is_fork else Revision(0),
    )


async def _stop_on_signal(stopped: anyio.Event) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            stopped.set()
