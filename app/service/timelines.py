"""The timeline of a history, folded from its log."""

from dataclasses import replace

from app.analysis.scope import Scope, Selector
from app.domain.log import HistoryInfo, Revision
from app.domain.log.projection import Row
from app.ports import EventLog
from projections.timeline import TimelineProjection

FINDING = "Finding"
"""Kind of the rows that stand for what is not as it must be."""


async def timeline(
    log: EventLog, info: HistoryInfo, *, page_max: int, scope: Scope = Scope()
) -> list[Row]:
    """The rows of the timeline of a history that are in the scope, in their order.

    `page_max` events are read at a time. Raises InputError for a name that does not occur.
    Findings are rows of their own (`app/service/replays/findings.py`).
    """
    if FINDING in scope.kinds:
        scope = replace(scope, kinds=scope.kinds - {FINDING})
        if not scope.kinds:
            return []
    view = TimelineProjection()
    selector = Selector(scope)
    rows: list[Row] = []
    head = await log.head(info.id)
    after = Revision(0)
    while after < head.revision:
        events = await log.read(info.id, after=after, until=head.revision, limit=page_max)
        if not events:
            break
        for event in events:
            count = len(view.entries)
            view.fold(event)
            entry = view.entries[-1] if len(view.entries) > count else None
            if selector.takes(event, entry):
                rows.append(view.row_of(view.entries[-1]))
        after = events[-1].revision
    selector.check()
    return rows
