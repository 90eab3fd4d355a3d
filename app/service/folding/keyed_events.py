"""The events that a timeline of objects of one name needs, read by their keys.

An entry is about the object of its event, about the object that a decision or a conflict names by
namespace and name, or about the object that an Event object warns about. The log finds each of
these by a key. So the length of the history does not matter.
"""

import re
from collections import Counter
from operator import attrgetter

from app.analysis.scope import Scope
from app.domain.log import DECISION, Event, HistoryId, ObjectKey, Revision
from app.domain.log.event import KeyFilter
from app.domain.log.replays import CONFLICTS
from app.domain.values import api_resources
from app.ports import EventLog

_PLAIN_NAME = re.compile(r"[!#-\[\]-~]{1,253}")
"""A name that stands in JSON as it is, and is no longer than names of objects may be."""

_RELATED_TO_NAMESPACES = frozenset(
    ("nodes", "resourceslices", "devicetaintrules", "deviceclasses", "namespaces")
)
"""The resources whose objects can concern a namespace in which they are not."""

_EVENTS_MAX = 1_000
"""The number of events that are read by their keys; with more, the log is read in order."""

_KEYS_AT_ONCE = 64
"""The number of keys of which events are read at once."""

_EVENTS_AT_ONCE = 16
"""The number of events of each of these keys; keys with more are read one by one."""


def has_one_name(scope: Scope) -> bool:
    """Whether keys alone say which events can be in a scope: those about objects of one name."""
    return bool(
        scope.resource
        and _PLAIN_NAME.fullmatch(scope.name)
        and not (scope.labels or scope.node or scope.device)
        and not (scope.namespace and scope.resource in _RELATED_TO_NAMESPACES)
    )


async def of_one_name(
    log: EventLog, history: HistoryId, scope: Scope, *, until: Revision, most: int
) -> list[Event] | None:
    """The events that can be in a scope of one name, in order; None if there are more than `most`.

    They are those of the objects themselves, of decisions and conflicts about them, and of Event
    objects that warn about them.
    """
    most = min(most, _EVENTS_MAX)
    if not most:
        return None
    filters = [
        KeyFilter(*kind, namespace=scope.place, name=scope.name)
        for kind in ((scope.group, scope.resource), DECISION[:2], CONFLICTS[:2])
    ]
    keys: set[ObjectKey] = set()
    for wanted in (*filters, KeyFilter(*api_resources.EVENTS, about=scope.name)):
        keys.update(await log.keys(history, wanted, until=until, limit=most + 1))
    if len(keys) > most:
        return None
    events: list[Event] = []
    ordered = sorted(keys)
    for first in range(0, len(ordered), _KEYS_AT_ONCE):
        some = ordered[first : first + _KEYS_AT_ONCE]
        newest = await log.read_object(history, *some, until=until, limit=_EVENTS_AT_ONCE)
        counts = Counter(event.key for event in newest)
        events += [event for event in newest if counts[event.key] < _EVENTS_AT_ONCE]
        for key in some:
            if counts[key] == _EVENTS_AT_ONCE and len(events) <= most:
                events += await log.read_object(history, key, until=until, limit=most + 1)
        if len(events) > most:
            return None
    return sorted(events, key=attrgetter("revision"))
