"""Views of a past moment, folded from the last event of each object that existed then."""

from collections import Counter
from collections.abc import Iterable

from anyio import lowlevel

from app.analysis.views import LiveViews
from app.domain.log import Event, EventType, HistoryInfo, ObjectKey, Revision
from app.domain.values import api_resources
from app.domain.values.fields import meta
from app.ports import EventLog
from app.service import moments

_CHANGES = 500

TURN = 200
"""Objects that are folded before the loop runs other tasks: a few milliseconds."""


async def fold_objects(
    views: LiveViews, log: EventLog, info: HistoryInfo, revision: Revision, objects_max: int
) -> None:
    """Fold the objects that existed at a revision into empty views, and show them as of it.

    Raises InputError when there are more than `objects_max`.
    """
    events = [event async for event in moments.objects_at(log, info, revision, objects_max)]
    created = await creations(log, info, events)
    for number, event in enumerate(events, 1):
        views.fold(event, created.get(event.key, Revision(0)))
        if number % TURN == 0:
            await lowlevel.checkpoint()
    views.show_as_of(revision)


async def creations(
    log: EventLog, info: HistoryInfo, events: Iterable[Event]
) -> dict[ObjectKey, Revision]:
    """The revisions at which changed ResourceSlicePatches were created, from their last events.

    Only those are read that decide a precedence: of patches with the same time of creation, which
    has whole seconds, the one that was created first wins.
    """
    group, resource = api_resources.RESOURCE_SLICE_PATCHES
    patches = [event for event in events if event.key.resource == resource]
    patches = [event for event in patches if event.key.group == group]
    times = Counter(meta.creation_timestamp(event.object) for event in patches)
    created: dict[ObjectKey, Revision] = {}
    for event in patches:
        is_alone = times[meta.creation_timestamp(event.object)] == 1
        if event.type is EventType.OBJECT_UPDATED and not is_alone:
            created[event.key] = await _creation(log, info, event)
    return created


async def _creation(log: EventLog, info: HistoryInfo, last: Event) -> Revision:
    """The revision of the first event of an object, which its last event shows."""
    first = before = last.revision
    while page := await log.read_object(
        info.id, last.key, until=Revision(before - 1), limit=_CHANGES
    ):
        for event in page:
            if not event.is_about_object:
                continue
            if event.type is EventType.OBJECT_DELETED or event.uid != last.uid:
                return first
            first = event.revision
        before = page[-1].revision
    return first
