"""The views that the product reads from memory, all at one revision.

`objects` is a projection; the inventory of devices and the allocated state are kept by the domain's
own incremental structures, fed from the same events.
"""

from app.domain.allocation import AllocatedState
from app.domain.devices import Inventory
from app.domain.log import Event, EventType, ObjectKey, Revision
from app.domain.objects.profile import Profile
from app.domain.values.json_tree import JsonObject
from projections.objects import ObjectsProjection

DRA_GROUP = "resource.k8s.io"


class LiveViews:
    """What reconcilers, queries and the API look at.

    After `fold(event)` every part shows the revision of that event. Folding never raises: an object
    that cannot be understood is kept in `objects` and left out of the others.
    """

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.objects = ObjectsProjection()
        self.inventory = Inventory(profile)
        self.allocated = AllocatedState(profile)

    @property
    def revision(self) -> Revision:
        """The revision last folded."""
        return self.objects.revision

    def fold(self, event: Event) -> None:
        """Take one event over into every view."""
        key = event.key
        if event.is_about_object and key.group == DRA_GROUP:
            old = self.objects.get(key)
            new = None if event.type is EventType.OBJECT_DELETED else event.object
            self._fold_device_view(key, old, new)
        self.objects.fold(event)

    def show_as_of(self, revision: Revision) -> None:
        """Say that what was folded is the state at `revision` (nothing changed since the last)."""
        self.objects.show_as_of(revision)

    def load_objects(self, state: bytes) -> None:
        """Start from a snapshot of the objects; the other views follow from it."""
        self.objects.load(state)
        for group, resource in self.objects.resources():
            if group == DRA_GROUP:
                for event in self.objects.events(group, resource):
                    self._fold_device_view(event.key, None, event.object)

    def _fold_device_view(
        self, key: ObjectKey, old: JsonObject | None, new: JsonObject | None
    ) -> None:
        raise AssertionError("bound to the devices package below")
