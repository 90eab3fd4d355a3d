"""Views of a past moment that go on from a kept state of the objects, or from the first event.

The log gives the objects of a past moment without reading all changes, but it looks at each key
that there ever was. In a long history nearly all of these are of pods and claims that came and
went. From a state that was kept not long before the moment, only the events after it are looked
through, and of these are read those that made the objects what they were at the moment.
"""

from collections.abc import AsyncIterator, Callable, Sequence

from anyio import lowlevel

from app.analysis.views import LiveViews
from app.domain.log import Event, EventType, HistoryInfo, ObjectKey, Revision
from app.domain.log.event import LoggedChange
from app.ports import EventLog, ViewStore
from app.service.folding import snapshots
from projections.objects import ObjectsProjection

PAGE = 1_000
"""Events that are read at a time."""

LOOKED_THROUGH = 5_000
"""Events that are looked through at a time, without their content."""

NEARBY = 20
"""Events that are sooner read and left out than asked around: a question costs about as much."""

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
        page = await log.changes(info.id, after=after, until=revision, limit=LOOKED_THROUGH)
        if not page or len(changes) > objects_max:
            return None
        for change in page:
            changes.note(change)
        after = page[-1].revision
        await lowlevel.checkpoint()
    created_at = changes.in_order()
    folded = 0
    async for event in _events(log, info, list(created_at)):
        views.fold(event, created_at[event.revision])
        folded += 1
        if folded % TURN == 0:
            await lowlevel.checkpoint()
    if folded < len(created_at):
        return None  # the history was deleted
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


async def _events(
    log: EventLog, info: HistoryInfo, revisions: Sequence[Revision]
) -> AsyncIterator[Event]:
    """The events at these revisions, which are in order; those that lie close are read together."""
    wanted, begin = frozenset(revisions), 0
    for end, revision in enumerate(revisions, 1):
        is_last = end == len(revisions) or revisions[end] - revision > NEARBY
        if is_last or revision - revisions[begin] >= PAGE - NEARBY:
            after, begin = Revision(revisions[begin] - 1), end
            for event in await log.read(info.id, after=after, until=revision, limit=PAGE):
                if event.revision in wanted:
                    yield event


class _Changes:
    """The changes that events make to the objects that views have loaded, and new objects.

    Example: of a pod that was loaded, changed twice and deleted, the deletion; of a pod that was
    created, changed and deleted, nothing; of one that was created and changed, the change, with the
    revision of its creation.
    """

    def __init__(self, views: LiveViews) -> None:
        self._loaded = views.objects
        self._gone: dict[ObjectKey, LoggedChange] = {}
        self._last: dict[ObjectKey, LoggedChange] = {}
        self._created: dict[ObjectKey, Revision] = {}

    def __len__(self) -> int:
        return len(self._last)

    def note(self, change: LoggedChange) -> None:
        """Take the next change."""
        key = change.key
        if change.type is EventType.OBJECT_DELETED:
            self._last.pop(key, None)
            self._created.pop(key, None)
            if self._loaded.event(key) is not None:
                self._gone.setdefault(key, change)
        elif change.is_about_object:
            before: LoggedChange | Event | None = self._last.get(key)
            if before is None and key not in self._gone:
                before = self._loaded.event(key)
            if before is None or before.uid != change.uid:
                self._created[key] = change.revision
            self._last[key] = change

    def in_order(self) -> dict[Revision, Revision]:
        """The revisions to fold in their order, each with that at which the object was created."""
        created = dict.fromkeys((each.revision for each in self._gone.values()), Revision(0))
        for key, change in self._last.items():
            created[change.revision] = self._created.get(key) or self._loaded.created(key)
        return dict(sorted(created.items()))
