"""Comparisons of two histories, for the command line."""

from dataclasses import replace

from app.analysis.diff import answers
from app.analysis.diff.answers import DiffForm
from app.analysis.diff.forks import ForkReport
from app.analysis.diff.outcomes import EndReport
from app.analysis.diff.report import DiffReport
from app.bootstrap import replays
from app.bootstrap.answers.bounds import diff_bounds
from app.bootstrap.control_planes import ControlPlanes, proofs_of, replay_bounds
from app.bootstrap.rules import rules_of
from app.bootstrap.stores import Store, find_history, find_revision
from app.domain.log import HistoryInfo
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import SECOND
from app.service import diffing, moments
from app.service.diffing import Comparison, ComparisonAspect, Ending
from app.service.forking import MadeFork
from app.service.replays.deciding import replay as deciding
from app.service.replays.deciding.replay import Pacing, Proofs
from app.service.replays.replaying import Progress, silent
from app.settings import Settings


async def diff(
    store: Store,
    settings: Settings,
    a: str,
    b: str,
    at: str,
    by: ComparisonAspect,
    within_seconds: float,
) -> DiffReport | EndReport:
    """The differences of two histories, each given as HISTORY or HISTORY@MOMENT.

    `at` is the moment of histories given without one; as a revision it is that of A. Raises
    InputError.
    """
    left = await _ending(store, a, at)
    is_of_both = "@" not in a and "@" not in b
    right = await _ending(store, b, "" if is_of_both else at)
    if at and is_of_both:
        moment = await diffing.same_moment(store.log, left.moment, left.history, right.history)
        right = replace(right, moment=moment)
    comparison = comparison_of(settings, left.history, by, within_seconds)
    return await diffing.compare_histories(store.log, left, right, comparison)


async def diff_again(
    store: Store,
    settings: Settings,
    name: str,
    at: str,
    by: ComparisonAspect,
    within_seconds: float,
    profile: str | None,
    pace: str = Pacing.RECORDED,
    progress: Progress = silent,
) -> DiffReport | EndReport:
    """The differences of a history from itself when it is decided again, up to `at`.

    It is decided with the settings' gates and quirks. `profile` is the release to decide as, None
    for that of the history. Raises InputError.
    """
    history = await find_history(store, name)
    until = await find_revision(store, history, at, option="--at")
    history = await moments.history_at(store.log, history, until)
    decided_as = await replays.with_settings(store, settings, history, profile)
    again = await deciding.decide_again(
        store.log,
        decided_as,
        until=until,
        plane=ControlPlanes(decided_as),
        bounds=replay_bounds(settings),
        pace=Pacing(pace),
        proofs=proofs_of(settings, decided_as, history)
        if by is ComparisonAspect.DECISIONS
        else Proofs(),
        progress=progress,
    )
    comparison = comparison_of(settings, history, by, within_seconds)
    return await diffing.compare_again(store.log, history, decided_as, again, comparison)


async def report_of_fork(
    store: Store, settings: Settings, parent: HistoryInfo, made: MadeFork
) -> ForkReport | None:
    """The results of recorded inputs in a fork; None when no inputs continue in it."""
    comparison = comparison_of(settings, parent, ComparisonAspect.DECISIONS, 1.0)
    return await diffing.report_of_fork(store.log, parent, made, comparison)


def shown(report: DiffReport | EndReport, *, as_page: bool) -> JsonObject:
    """A report as JSON: the whole, or the parts for its page."""
    return answers.of(report, DiffForm.TEXT if as_page else DiffForm.REPORT)


def comparison_of(
    settings: Settings, history: HistoryInfo, by: ComparisonAspect, within_seconds: float
) -> Comparison:
    """The question of a comparison of a history with another one."""
    return Comparison(
        by=by,
        schemas=rules_of(history).schemas,
        bounds=replace(diff_bounds(settings), within=int(within_seconds * SECOND)),
        events_max=settings.diff_events_max,
    )


async def _ending(store: Store, text: str, at: str) -> Ending:
    name, _, moment = text.partition("@")
    info = await find_history(store, name)
    moment = moment or at
    if moment:
        await find_revision(store, info, moment, option=text if "@" in text else "--at")
    return Ending(history=info, moment=moment)
