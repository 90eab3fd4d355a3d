"""How the rules look at the present objects."""

from collections.abc import Iterable
from typing import Protocol

from app.domain.log import Event, ObjectKey, Revision
from app.domain.values import well_known
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


class UnknownCluster:
    """A reader of a cluster of which nothing is known: a manifest is judged alone.

    Its namespace is taken to allow what it may allow; whether it does is not in the manifest.
    """

    revision = Revision(0)

    def get(self, key: ObjectKey) -> JsonObject | None:
        """The namespace that a manifest names; nothing else."""
        if key.resource != "namespaces":
            return None
        return {"metadata": {"name": key.name, "labels": {well_known.ADMIN_ACCESS: "true"}}}

    def event(self, key: ObjectKey) -> Event | None:
        """No event is known."""
        return None

    def keys(self, group: str, resource: str, namespace: str | None = None) -> Iterable[ObjectKey]:
        """No object is known."""
        return ()

    def dependents(self, owner_uid: str) -> Iterable[ObjectKey]:
        """No object is known."""
        return ()

    def by_uid(self, uid: str) -> ObjectKey | None:
        """No object is known."""
        return None
