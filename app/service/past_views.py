"""Views of a past moment, folded from the last event of each object that existed then.

They are kept by the hash of the last event: a restored log has other events at a revision.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from anyio import lowlevel

from app.analysis.views import LiveViews
from app.domain.log import Event, EventType, HistoryId, HistoryInfo, ObjectKey, Revision
from app.domain.objects.profile import Profile
from app.domain.values import api_resources
from app.domain.values.bounded import Bounded
from app.ports import EventLog, ViewStore
from app.service import moments
from app.service.folding import past_states

_CHANGES = 1_000
"""Objects whose creations are read at once."""

EVENTS_FOR_AN_OBJECT = 10
"""Events of a history for whose keys the log looks in the time in which an object is loaded.

It decides only which way is taken, not what is seen.
"""

TURN = 200
"""Objects that are folded before the loop runs other tasks: a few milliseconds."""


_Place: TypeAlias = tuple[HistoryId, Revision, bytes]

_ALL = ((None, None),)

_PATCHES = api_resources.RESOURCE_SLICE_PATCHES

_OF_DEVICES = (
    api_resources.DEVICE_CLASSES,
    api_resources.DEVICE_TAINT_RULES,
    api_resources.RESOURCE_SLICE_PATCHES,
    api_resources.RESOURCE_SLICES,
)
"""The kinds from which the inventory of devices is made, in the order of their keys."""


class PastViews:
    """The views of past moments, the last used ones of which are kept.

    `profile_of` returns the profile of a history with its settings of a moment. Whole views go on
    from a state of the objects that is among the `kept` ones, if one was kept not long before the
    moment. Raises InputError for a moment with more than `objects_max` objects of the wanted kinds.
    """

    def __init__(
        self,
        log: EventLog,
        profile_of: Callable[[HistoryInfo], Profile],
        *,
        views_max: int,
        objects_max: int,
        kept: ViewStore | None = None,
    ) -> None:
        self._log = log
        self._kept = kept
        self._profile_of = profile_of
        self._objects_max = objects_max
        self._whole: Bounded[_Place, LiveViews] = Bounded(views_max)
        self._of_devices: Bounded[_Place, LiveViews] = Bounded(views_max)

    async def whole(self, info: HistoryInfo, revision: Revision) -> LiveViews:
        """The views at a revision."""
        place = await self._place(info, revision)
        views = self._whole.recent(place)
        if views is None:
            views = self._whole[place] = await self._whole_fold(info, revision)
            self._of_devices.pop(place, None)
        return views

    async def of_devices(self, info: HistoryInfo, revision: Revision) -> LiveViews:
        """Views at a revision with the published devices, their rules, patches and classes.

        They may lack objects of all other kinds. Many pods and claims come and go in a history, and
        the log is not read for them.
        """
        place = await self._place(info, revision)
        views = self._whole.recent(place) or self._of_devices.recent(place)
        if views is None:
            views = self._of_devices[place] = await self._fold(info, revision, _OF_DEVICES)
        return views

    async def objects_of(
        self,
        info: HistoryInfo,
        revision: Revision,
        kinds: Sequence[tuple[str, str | None]],
        present: int,
    ) -> tuple[list[Event], dict[ObjectKey, Revision]]:
        """The last events of the objects at a revision, and when changed patches were created.

        Only of these groups and resources, sorted by key within each. In a history that is long
        for its number of `present` objects they are those of a kept state and what followed it.
        """
        views = None
        if present * EVENTS_FOR_AN_OBJECT <= revision:
            views = await self._going_on(info, revision)
        if views is None:
            last = moments.objects_at(self._log, info, revision, self._objects_max, kinds=kinds)
            events = [event async for event in last]
            patches = [event for event in events if event.key[:2] == _PATCHES]
            return events, await creations(self._log, info, patches)
        objects = views.objects
        events = [
            event
            for group, resource in kinds
            for place in objects.resources()
            if place[0] == group and resource in (None, place[1])
            for event in objects.events(*place)
        ]
        keys = [event.key for event in events if event.key[:2] == _PATCHES]
        return events, {key: objects.created(key) for key in keys}

    def forget(self, history: HistoryId) -> None:
        """Drop the views of a history."""
        for kept in (self._whole, self._of_devices):
            for place in [place for place in kept if place[0] == history]:
                del kept[place]

    async def _place(self, info: HistoryInfo, revision: Revision) -> _Place:
        return info.id, revision, await moments.hash_at(self._log, info, revision)

    async def _whole_fold(self, info: HistoryInfo, revision: Revision) -> LiveViews:
        views = await self._going_on(info, revision)
        return views or await self._fold(info, revision, _ALL)

    async def _going_on(self, info: HistoryInfo, revision: Revision) -> LiveViews | None:
        """The views at a revision from a kept state; None where keys are sooner read."""
        then = await moments.history_at(self._log, info, revision)
        return await past_states.views_at(
            lambda: LiveViews(self._profile_of(then)),
            *(self._kept, self._log, info, revision, self._objects_max),
        )

    async def _fold(
        self, info: HistoryInfo, revision: Revision, kinds: Sequence[tuple[str | None, str | None]]
    ) -> LiveViews:
        then = await moments.history_at(self._log, info, revision)
        views = LiveViews(self._profile_of(then))
        await fold_objects(views, self._log, info, revision, self._objects_max, kinds)
        return views


async def fold_objects(
    views: LiveViews,
    log: EventLog,
    info: HistoryInfo,
    revision: Revision,
    objects_max: int,
    kinds: Sequence[tuple[str | None, str | None]] = _ALL,
) -> None:
    """Fold the objects that existed at a revision into empty views, and show them as of it.

    Only those of the given kinds, groups and resources in the order of their keys. Raises
    InputError when there are more than `objects_max`.
    """
    objects = moments.objects_at(log, info, revision, objects_max, kinds=kinds)
    events = [event async for event in objects]
    created = await creations(log, info, events)
    for number, event in enumerate(events, 1):
        views.fold(event, created.get(event.key, Revision(0)))
        if number % TURN == 0:
            await lowlevel.checkpoint()
    views.show_as_of(revision)


async def creations(
    log: EventLog, info: HistoryInfo, events: Sequence[Event]
) -> dict[ObjectKey, Revision]:
    """The revisions at which changed objects were created, from their last events.

    They decide in which order objects of one second were created, which pods are the newest, and
    which of several patches wins. Times of creation have whole seconds.
    """
    changed = [event for event in events if event.type is EventType.OBJECT_UPDATED]
    created: dict[ObjectKey, Revision] = {}
    for start in range(0, len(changed), _CHANGES):
        page = changed[start : start + _CHANGES]
        revisions = await log.creations(info.id, page)
        created |= zip((event.key for event in page), revisions, strict=True)
    return created
