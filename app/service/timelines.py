"""The timeline of a history, folded from its log."""

from app.analysis.scope import Scope, Selector
from app.domain.log import HistoryInfo, Revision
from app.domain.log.projection import Row
from app.ports import EventLog
from projections.timeline import TimelineProjection


async def timeline(
    log: EventLog, info: HistoryInfo, *, page_max: int, scope: Scope = Scope()
) -> list[Row]:
    """The rows of the timeline of a history that are in the scope, in their order.

    `page_max` events are read at a time. Raises InputError for a name that does not occur.
    """
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
