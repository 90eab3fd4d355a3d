"""Comparisons of two histories, for the command line."""

from dataclasses import replace

from app.analysis.diff.outcomes import EndReport
from app.analysis.diff.report import DiffReport
from app.analysis.diff.sides import DiffBounds
from app.bootstrap.rules import rules_of
from app.bootstrap.stores import Store, find_history, find_revision
from app.domain.values.timestamps import SECOND
from app.service import diffing
from app.service.diffing import By, Comparison, Ending
from app.settings import Settings


async def diff(
    store: Store, settings: Settings, a: str, b: str, at: str, by: By, within_seconds: float
) -> DiffReport | EndReport:
    """The differences of two histories, each given as HISTORY or HISTORY@MOMENT.

    `at` is the moment of those that name none. Raises InputError.
    """
    left, right = await _ending(store, a, at), await _ending(store, b, at)
    comparison = Comparison(
        by=by,
        schemas=rules_of(left.history).schemas,
        bounds=replace(diff_bounds(settings), within=int(within_seconds * SECOND)),
        events_max=settings.diff_events_max,
    )
    return await diffing.compare_histories(store.log, left, right, comparison)


def diff_bounds(settings: Settings) -> DiffBounds:
    """The bounds of a comparison."""
    return DiffBounds(
        explained_max=settings.diff_explained_max,
        nodes_max=settings.diff_nodes_max,
        listed_max=settings.diff_listed_max,
    )


async def _ending(store: Store, text: str, at: str) -> Ending:
    name, _, moment = text.partition("@")
    info = await find_history(store, name)
    moment = moment or at
    if moment:
        await find_revision(store, info, moment, option=text if "@" in text else "--at")
    return Ending(history=info, moment=moment)
