"""Views of a past moment that go on from a kept state of the objects, or from the first event.

The log gives the objects of a past moment without reading all changes, but it looks at each key
that there ever was. In a long history nearly all of these are of pods and claims that came and
went. From a state that was kept not long before the moment, only the events after it are read.
"""

from collections.abc import Callable, Iterator

from anyio import lowlevel

from app.analysis.views import LiveViews
from app.domain.log import Event, EventType, HistoryInfo, ObjectKey, Revision
from app.ports import EventLog, ViewStore
from app.service.folding import snapshots
from projections.objects import ObjectsProjection

PAGE = 1_000
"""Events that are read at a time."""

TURN = 200
"""Objects that are folded before the loop runs other tasks: a few milliseconds."""

KEYS_FOR_AN_EVENT = 2
"""Events of a history for whose keys the log looks in the time in which one event is read.

It decides only which way is taken, not what is seen.
"""


async def views_at(
    make: Callable[[], LiveViews],
    store: ViewStore | None,
    log: EventLog,
    info: HistoryInfo,
    revision: Revision,
    objects_max: int,
) -> LiveViews | None:
    """The views at a revision, begun by `make`.

    None where the keys of the log are sooner read than the events since the last kept state, and
    where there are more than `objects_max` objects at a time.
    """
    length = (await log.head(info.id)).revision
    begun, state = await _kept_state(store, log, info, revision)
    if (revision - begun) * KEYS_FOR_AN_EVENT > length:
        return None
    views = make()
    if state is not None:
        for _ in views.load_in_steps(state):
            await lowlevel.checkpoint()
        if views.objects.total > objects_max:
            return None
    changes = _Changes(views)
    after = begun
    while after < revision:
        events = await log.read(info.id, after=after, until=revision, limit=PAGE)
        if not events or len(changes) > objects_max:
            return None
        for event in events:
            changes.note(event)
        after = events[-1].revision
        await lowlevel.checkpoint()
    for number, (event, created) in enumerate(changes.in_order(), 1):
        views.fold(event, created)
        if number % TURN == 0:
            await lowlevel.checkpoint()
    if views.objects.total > objects_max:
        return None
    views.show_as_of(revision)
    return views


async def _kept_state(
    store: ViewStore | None, log: EventLog, info: HistoryInfo, revision: Revision
) -> tuple[Revision, bytes | None]:
    """The newest kept state of the objects up to a revision; (0, None) without one."""
    if store is None:
        return Revision(0), None
    view = (ObjectsProjection.name, ObjectsProjection.version)
    kept = await snapshots.load_of_line(store, log, info, view, until=revision)
    return (Revision(0), None) if kept is None else (kept[0], kept[2])


class _Changes:
    """The changes that events make to the objects that views have loaded, and new objects.

    Example: of a pod that was loaded, changed twice and deleted, the deletion; of a pod that was
    created, changed and deleted, nothing; of one that was created and changed, the change, with the
    revision of its creation.
    """

    def __init__(self, views: LiveViews) -> None:
        self._loaded = views.objects
        self._gone: dict[ObjectKey, Event] = {}
        self._last: dict[ObjectKey, Event] = {}
        self._created: dict[ObjectKey, Revision] = {}

    def __len__(self) -> int:
        return len(self._last)

    def note(self, event: Event) -> None:
        """Take the next event."""
        key = event.key
        if event.type is EventType.OBJECT_DELETED:
            self._last.pop(key, None)
            self._created.pop(key, None)
            if self._loaded.event(key) is not None:
                self._gone.setdefault(key, event)
        elif event.is_about_object:
            before = self._last.get(key)
            if before is None and key not in self._gone:
                before = self._loaded.event(key)
            if before is None or before.uid != event.uid:
                self._created[key] = event.revision
            self._last[key] = event

    def in_order(self) -> Iterator[tuple[Event, Revision]]:
        """The events to fold in their order, with the revisions at which objects were created."""
        events = [*self._gone.values(), *self._last.values()]
        for event in sorted(events, key=lambda each: each.revision):
            created = Revision(0)
            if event.type is not EventType.OBJECT_DELETED:
                created = self._created.get(event.key) or self._loaded.created(event.key)
            yield event, created
