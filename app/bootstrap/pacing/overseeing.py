"""The process of `redra watch-over`: a store, a history and its judges, until a signal to stop."""

import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import anyio

from app.analysis.oversight import Observation, Oversight
from app.analysis.recordings import uncertainty
from app.analysis.verify.invariants import Switches
from app.bootstrap import replays
from app.bootstrap.answers import relative
from app.bootstrap.deciders import deciders_of
from app.bootstrap.stores import Store, find_history, find_revision, open_store
from app.domain.errors import InputError
from app.domain.log import HistoryInfo, Revision
from app.domain.log.doubts import NEVER_SEEN, Doubt
from app.service import moments, recorded_doubts
from app.service.replays import overseeing, scanning
from app.service.replays.overseeing import Deadline, OverseeingBounds
from app.service.replays.verifying import switches_of, switches_over_time
from app.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """The result of watching over a history: the last revision, and numbers of observations.

    `other_choices` are allocations that break no rule; `others` are all that is left.
    """

    history: str
    revision: Revision
    failures: int
    other_choices: int
    others: int


async def watch_over(
    settings: Settings,
    name: str,
    moment: str,
    *,
    end_option: str,
    since: str = "",
    report_observations: Callable[[Sequence[Observation]], None],
    ready: Callable[[str], None],
) -> Watched:
    """Judge a history up to a moment; without one, as it grows, until SIGTERM or SIGINT.

    An instant that is to come is waited for, with what is written until then.
    Observations up to `since` are neither reported nor counted. `end_option` is the user's name for
    the moment.
    """
    failures = other_choices = others = 0

    def count(observations: Sequence[Observation]) -> None:
        nonlocal failures, other_choices, others
        for each in observations:
            failures += each.is_failure
            other_choices += each.is_other_choice
            others += not (each.is_failure or each.is_other_choice)
        report_observations(observations)

    async with open_store(settings) as store:
        stored = await find_history(store, name)
        pinned = await relative.resolved(store, name, moment, since)
        moment, since = pinned.moments
        for meaning in pinned.meanings:
            ready(meaning)
        until = await _end(store, stored, moment, option=end_option) if moment else None
        begin = await find_revision(store, stored, since, option="--since") if since else None
        if begin is not None and isinstance(until, int) and begin > until:
            raise InputError(
                f"--since is revision {begin}, and {end_option} is revision {until}",
                cure="give a --since that is not later",
            )
        info = await replays.with_settings(store, settings, stored, None)
        oversight = await oversight_for(store, settings, stored)
        stopped = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_stop_on_signal, stopped)
            words = [f"watching over {name}"]
            words += [f"behind revision {begin}"] if begin else []
            words += [str(until)] if isinstance(until, Deadline) else []
            words += [f"up to revision {until}"] if until and isinstance(until, int) else []
            ready(" ".join(words))
            await overseeing.oversee(
                store.log,
                store.ports.wake_up,
                info,
                oversight,
                since=begin or Revision(0),
                until=until,
                report_observations=count,
                stopped=stopped,
                bounds=OverseeingBounds(
                    page_max=settings.projector_batch_max, poll_seconds=settings.poll_seconds
                ),
            )
            tasks.cancel_scope.cancel()
    return Watched(
        history=name,
        revision=oversight.revision,
        failures=failures,
        other_choices=other_choices,
        others=others,
    )


async def _end(
    store: Store, stored: HistoryInfo, moment: str, *, option: str
) -> Revision | Deadline:
    """The revision of a moment, or the moment if it is an instant that is still to come.

    A history with a time of its own reaches no instant of the clock. Raises InputError.
    """
    clock = store.ports.clock
    if not (moments.is_revision(moment) or stored.has_own_time):
        instant = await moments.find_time(store.log, stored, moment, Revision(0), clock.now())
        if instant > clock.now():
            return Deadline(instant=instant, now=clock.now)
    return await find_revision(store, stored, moment, option=option)


async def oversight_for(store: Store, settings: Settings, stored: HistoryInfo) -> Oversight:
    """The judges of a stored history, with the doubts recorded so far."""
    info = await replays.with_settings(store, settings, stored, None)
    over_time = await switches_over_time(store.log, info)
    return oversight_of(info, await recorded_doubts.doubts_of(store.log, info), over_time)


def oversight_of(
    info: HistoryInfo, doubts: Sequence[Doubt], over_time: Switches | None = None
) -> Oversight:
    """The judges of a history, with its settings and what its recording lacks.

    `over_time` are its switches from its beginning on, for the scan; None: they are always those of
    its settings.
    """
    deciders = deciders_of(info)
    switches = switches_of(deciders.rules.profile, deciders.quirks, info.settings)
    if info.is_decided_elsewhere:
        # There are no decisions to make again, so the controllers need not follow.
        deciders = replace(deciders, controllers=())
    return Oversight(
        deciders,
        invariants=switches,
        scan=scanning.unexcused(over_time or switches),
        lacking=uncertainty.lacking(doubts),
        kinds_lacking=tuple(doubt.kind for doubt in doubts if doubt.code == NEVER_SEEN),
        begin=Revision(info.parent_revision + 1) if info.is_fork else Revision(0),
    )


async def _stop_on_signal(stopped: anyio.Event) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            stopped.set()
