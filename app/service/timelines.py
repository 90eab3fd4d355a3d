"""The timeline of a history, folded from its log."""

from app.domain.log import HistoryInfo
from app.domain.log.projection import Row
from app.ports import EventLog
from app.service.folding import fold_until
from projections.tables import TIMELINE
from projections.timeline import TimelineProjection


async def timeline(log: EventLog, info: HistoryInfo, *, page_max: int) -> list[Row]:
    """All rows of the timeline of a history; `page_max` events are read at a time."""
    view = TimelineProjection()
    head = await log.head(info.id)
    await fold_until(log, info.id, (view,), head.revision, page_max)
    keys = sorted(view.take_changed().get(TIMELINE.name, ()))
    return [row for key in keys if (row := view.row(TIMELINE.name, key)) is not None]
