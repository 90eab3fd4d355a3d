"""The devices of a history at several moments, where only what changed in between is read.

Most slices and nodes are equal at all moments. They are compiled once, and what the allocator knows
about them is kept.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import msgspec

from app.analysis.capacity import largest
from app.analysis.capacity.largest import Devices
from app.analysis.views import LiveViews
from app.domain.log import Event, EventType, ObjectKey, Revision
from app.domain.objects.profile import Profile
from app.domain.values import api_resources


class DeviceCourse:
    """The devices at one moment; `move` changes them to those of another moment, in any order."""

    def __init__(self, profile: Profile) -> None:
        self._views = LiveViews(profile)
        self._events: dict[ObjectKey, Event] = {}

    def move(
        self, events: Iterable[Event], created: Mapping[ObjectKey, Revision] = MappingProxyType({})
    ) -> Devices:
        """The devices of the state with these last events of its objects, until the next `move`.

        `created` are the revisions of creation of patches that were changed since.
        """
        wanted = {event.key: event for event in events}
        changed = []
        for key, new in wanted.items():
            old = self._events.pop(key, None)
            if old is None or old.revision != new.revision:
                changed.append(new)
            if old is not None and old.revision != new.revision and not _takes_over(key):
                self._remove(old)
        for gone in self._events.values():
            self._remove(gone)
        for event in changed:
            self._views.fold(event, created.get(event.key, Revision(0)))
            if event.key in self._views.unreadable:
                self._remove(event)
        self._events = wanted
        return largest.devices_of(self._views)

    def _remove(self, event: Event) -> None:
        self._views.fold(msgspec.structs.replace(event, type=EventType.OBJECT_DELETED))


def _takes_over(key: ObjectKey) -> bool:
    """Whether a new state replaces an old one of that name whole, and takes over equal devices.

    A claim or patch of the same name may be another object.
    """
    return key[:2] == api_resources.RESOURCE_SLICES
