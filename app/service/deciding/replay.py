"""Decide replay: keep what came from outside, decide the rest again, compare.

The recording is read once. Each write from outside is put into a fresh history in memory at its own
instant of virtual time, where the same reconcilers as ever do what the recorded controllers did.
Two traces, of what was recorded and of what happened here, are compared; every difference has a
reason class. Nothing is written. Parity: design 8, controllers.md 7.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from enum import StrEnum

from anyio import lowlevel

from app.domain.controllers.plan import Reconciler
from app.domain.controllers.scheduling.attempt import TieBreak
from app.domain.log import Event, HistoryInfo, Revision
from app.domain.objects.rules import Rules
from app.domain.values.timestamps import SECOND, Instant
from app.ports import EventLog, UidSource
from app.service.deciding.attempts import SURE_AFTER
from app.service.deciding.classes import End
from app.service.deciding.differences import Comparison, DecideReport
from app.service.deciding.pace import RecordedPace, known_instants
from app.service.deciding.recording import Recording
from app.service.deciding.run import RecordedTies, Run, Started
from app.service.deciding.writers import Writers
from app.service.replaying import Progress, ReplayBounds, silent
from app.service.views import LiveViews

AFTERWARDS = 30 * SECOND
"""How long the clock goes on after the last recorded event, for what was under way."""


class Pacing(StrEnum):
    """When controllers act in a decide replay."""

    RECORDED = "recorded"
    """When they were seen acting in the recording."""
    VIRTUAL = "virtual"
    """As soon as there is something to do; bindings take no time."""


async def decide(
    log: EventLog,
    history: HistoryInfo,
    *,
    until: Revision,
    rules: Rules,
    controllers: Callable[[TieBreak, RecordedPace | None], Sequence[Reconciler]],
    uids: UidSource,
    bounds: ReplayBounds,
    pace: Pacing = Pacing.RECORDED,
    progress: Progress = silent,
) -> DecideReport:
    """Decide the history again up to `until`; see the module's text.

    `controllers` makes fresh reconcilers with the settings of the history; among equally good nodes
    they take the recorded one, as names and uids are taken from the recording, and by `pace` they
    act when they were seen acting.
    """
    ties = RecordedTies()
    recorded = RecordedPace() if pace is Pacing.RECORDED else None
    made = controllers(ties, recorded)
    events = [event async for page in _pages(log, history, bounds) for event in page]
    instants = known_instants(events)
    writers = Writers([controller.name for controller in made])
    recording = Recording(writers, LiveViews(rules.profile))
    for event, known in zip(events, instants, strict=True):
        recording.is_over = event.revision > until
        recording.take(event, known if recorded is not None else event.stamp.time)
    if recorded is not None:
        recorded.learn(recording.acts, writers.names, recording.removed)
    for event in events:
        event.tree = None
    bound = {**recording.later.node_of, **recording.trace.node_of}
    ties.nodes = {uid: step.text for uid, step in bound.items()}
    starts = recording.starts
    paced = [
        Started(found, starts[found.name]) if found.name in starts else found for found in made
    ]
    run = Run(recording, rules=rules, controllers=paced, uids=uids)
    for number, found in enumerate(recording.inputs):
        run.take(found)
        if number % 200 == 0:
            progress("deciding again", found.event.revision, until)
            # Deciding is pure computation: let others run now and then.
            await lowlevel.checkpoint()
    # What was under way when a recording ended comes to its end here; what comes after a moment
    # inside it is known, and left out.
    run.finish(Instant(recording.last + (SURE_AFTER if recording.is_over else AFTERWARDS)))
    progress("deciding again", until, until)
    comparison = Comparison(
        history=history.name,
        revision=until,
        recorded=recording.trace,
        again=run.trace,
        inputs=recording.counts,
        notes=recording.not_comparable + run.not_comparable,
        ties=ties.taken,
        violations=recording.violations(recorded),
        end=End(at=recording.last, later=recording.later),
    )
    return comparison.report()


async def _pages(
    log: EventLog, history: HistoryInfo, bounds: ReplayBounds
) -> AsyncIterator[list[Event]]:
    after = Revision(0)
    while page := await log.read(history.id, after=after, limit=bounds.page_max):
        yield page
        after = page[-1].revision
