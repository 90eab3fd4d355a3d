"""The doubts of a history, read from its log.

The fidelity report is in the last event of the import. A running recorder writes a new report with
each gap. A history that was not imported has no doubts: redra wrote every event of it.
"""

from typing import TYPE_CHECKING, TypeVar

import msgspec

from app.analysis.recordings.uncertainty import IMPORT_UNFINISHED, of_report
from app.domain.log import EventType, HistoryInfo, Revision, doubts
from app.domain.log.doubts import Doubt
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonView
from app.ports import EventLog

if TYPE_CHECKING:  # heavy: an explanation is none of these answers
    from app.analysis.blast.radius import BlastRadius
    from app.analysis.capacity.answers import FitAnswer
    from app.analysis.findings.report import Findings
    from app.analysis.lanes import Lanes
    from app.analysis.map_answers import DeviceMap

    _Doubtful = TypeVar("_Doubtful", BlastRadius, FitAnswer, DeviceMap, Lanes, Findings)


async def doubts_of(log: EventLog, info: HistoryInfo) -> tuple[Doubt, ...]:
    """Doubts about the kinds that take part in the allocation of devices, sorted by kind."""
    report = await report_of(log, info)
    if report is None:
        return ()
    return of_report(report) if report else (IMPORT_UNFINISHED,)


async def report_of(log: EventLog, info: HistoryInfo) -> JsonView | None:
    """The fidelity report; empty before the end of the import, None if nothing was imported."""
    histories = {each.id: each for each in await log.histories()}
    # A fork at a moment before its beginning counts as no fork, and has its parent nevertheless.
    stored = histories.get(info.id, info)
    parent = None if stored.parent is None else histories.get(stored.parent)
    if stored.is_fork and parent is not None:
        # The events that a fork shares with its parent may end before the report, which still
        # counts.
        return await report_of(log, parent)
    opening = await log.read(info.id, after=Revision(0), limit=1)
    if not opening or opening[0].type is not EventType.HISTORY_IMPORTED:
        return None
    head = await log.head(info.id)
    last = await log.read_object(info.id, opening[0].key, until=head.revision, limit=1)
    return json_tree.mapping(last[0].object, "report") if last else {}


def doubted(answer: "_Doubtful", recorded: tuple[Doubt, ...]) -> "_Doubtful":
    """The answer with these doubts."""
    return msgspec.structs.replace(answer, certainty=doubts.certainty(recorded), doubts=recorded)
