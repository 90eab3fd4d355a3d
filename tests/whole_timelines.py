"""All rows of the timeline of a history, for tests that compare parts with the whole."""

from app.analysis.scope import Scope
from app.domain.log.projection import Row
from app.ports import EventLog, HistoryInfo
from app.service.timelines import TimelineReader


async def timeline(
    log: EventLog, info: HistoryInfo, *, page_max: int, scope: Scope = Scope()
) -> list[Row]:
    """The rows in the scope, in order. Raises InputError for a name that does not occur."""
    reader = TimelineReader(log, info, scope, page_max=page_max)
    rows = await reader.read()
    await reader.check()
    return rows
