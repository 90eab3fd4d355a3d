"""The interface through which the object rules read the existing objects."""

from collections.abc import Iterable
from typing import Protocol

from app.domain.log import Event, ObjectKey, Revision
from app.domain.values import well_known
from app.domain.values.identifiers import Uid
from app.domain.values.json_tree import JsonObject


class ObjectsReader(Protocol):
    """The objects that exist at one revision. Trees are shared: readers never change them."""

    @property
    def revision(self) -> Revision:
        """The revision of the objects."""
        ...

    def get(self, key: ObjectKey) -> JsonObject | None:
        """The object with this key in the storage version, with its resourceVersion."""
        ...

    def event(self, key: ObjectKey) -> Event | None:
        """The last event of the object with this key: its bytes, revision and stamp."""
        ...

    def keys(self, group: str, resource: str, namespace: str | None = None) -> Iterable[ObjectKey]:
        """The keys of a resource (all namespaces for None), sorted by namespace and name."""
        ...

    def dependents(self, owner_uid: Uid) -> Iterable[ObjectKey]:
        """The keys of objects with an owner reference to this uid, sorted."""
        ...

    def by_uid(self, uid: Uid) -> ObjectKey | None:
        """The key of the object with this uid."""
        ...


class UnknownCluster:
    """A reader of an unknown cluster, for checks of a manifest without a cluster.

    Every namespace exists and allows admin access, because a manifest does not show whether its
    namespace does.
    """

    revision = Revision(0)

    def get(self, key: ObjectKey) -> JsonObject | None:
        """The namespace with this key; None for other objects."""
        if key.resource != "namespaces":
            return None
        return {"metadata": {"name": key.name, "labels": {well_known.ADMIN_ACCESS: "true"}}}

    def event(self, key: ObjectKey) -> Event | None:
        """No event is known."""
        return None

    def keys(self, group: str, resource: str, namespace: str | None = None) -> Iterable[ObjectKey]:
        """No object is known."""
        return ()

    def dependents(self, owner_uid: Uid) -> Iterable[ObjectKey]:
        """No object is known."""
        return ()

    def by_uid(self, uid: Uid) -> ObjectKey | None:
        """No object is known."""
        return None
