"""Findings of a history as rows of its timeline."""

from app.analysis.oversight import Observation, Oversight
from app.analysis.scope import Scope
from app.domain.log import Event, HistoryInfo, Revision
from app.domain.log.projection import Row
from app.ports import EventLog
from app.service.timelines import FINDING


async def rows(
    log: EventLog,
    info: HistoryInfo,
    oversight: Oversight,
    *,
    page_max: int,
    scope: Scope = Scope(),
) -> list[Row]:
    """A row for each finding in a history, at the event where the finding begins.

    Only the moments and kinds of the scope apply. `page_max` events are read at a time.
    """
    if scope.kinds and FINDING not in scope.kinds:
        return []
    observations: list[Observation] = []
    head = await log.head(info.id)
    after = Revision(0)
    while after < head.revision:
        events = await log.read(info.id, after=after, until=head.revision, limit=page_max)
        if not events:
            break
        observations += oversight.take(events)
        after = events[-1].revision
    observations += oversight.end()
    made = []
    for each in observations:
        begun = await log.read(info.id, after=Revision(each.revision - 1), limit=1)
        if begun and scope.has_moment(begun[0].stamp.time, each.revision):
            made.append(_row_of(each, begun[0]))
    return made


def _row_of(observation: Observation, begun: Event) -> Row:
    key = begun.key
    return {
        "revision": observation.revision,
        "time": begun.stamp.time,
        "kind": FINDING,
        "api_group": key.group,
        "resource": key.resource,
        "namespace": key.namespace,
        "name": key.name,
        "text": f"{observation.name} ({observation.kind}): {observation.message}",
        "actor": f"redra ({observation.judge.value})",
        "verb": "",
        "cause": 0,
        "because": "",
        "doubt": "",
    }
