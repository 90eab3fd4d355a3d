"""How the rules look at the present objects."""

from collections.abc import Iterable
from typing import Protocol

from app.domain.log import Event, ObjectKey, Revision
from app.domain.values.json_tree import JsonObject


class ObjectsReader(Protocol):
    """The objects that exist at one revision. Trees are shared: readers never change them."""

    @property
    def revision(self) -> Revision:
        """The revision that is shown."""
        ...

    def get(self, key: ObjectKey) -> JsonObject | None:
        """The object of that key in the storage version, with its resourceVersion."""
        ...

    def event(self, key: ObjectKey) -> Event | None:
        """The last event of that object: its bytes, revision and stamp."""
        ...

    def keys(self, group: str, resource: str, namespace: str | None = None) -> Iterable[ObjectKey]:
        """Keys of one resource (all namespaces for None), sorted by namespace and name."""
        ...

    def dependents(self, owner_uid: str) -> Iterable[ObjectKey]:
        """Keys of objects with an owner reference to that uid, sorted."""
        ...

    def by_uid(self, uid: str) -> ObjectKey | None:
        """The key of the object with that uid."""
        ...
