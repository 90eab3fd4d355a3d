"""Search for objects by a part of the name, optionally with kind or namespace."""

from collections.abc import Callable, Iterator
from itertools import islice

import msgspec

from app.domain.log import ObjectKey, Revision
from app.domain.objects import history_kinds
from app.domain.objects.registry import is_called
from projections.objects import ObjectsProjection

HITS_MAX = 50
"""The number of objects in one answer."""


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """An object that exists, and the revision of its last change."""

    group: str
    resource: str
    namespace: str
    name: str
    revision: Revision

    @property
    def key(self) -> ObjectKey:
        """The key of the object."""
        return ObjectKey(self.group, self.resource, self.namespace, self.name)


class Hits(msgspec.Struct, frozen=True, kw_only=True):
    """The objects that match a query, the likeliest first; `more` tells that there are others."""

    query: str
    revision: Revision
    items: tuple[Hit, ...]
    more: bool = False


def find(
    objects: ObjectsProjection,
    query: str,
    sees: Callable[[ObjectKey], bool],
    *,
    hits_max: int = HITS_MAX,
) -> Hits:
    """Finds the objects whose name contains the query; equal names first, then equal beginnings.

    The query is `NAME`, `NAMESPACE/NAME` or `KIND/NAME`, each part in any case. Objects for which
    `sees` is false are left out.
    """
    text = query.strip().lower()
    keys = list(islice(filter(sees, _likest(objects, text)), hits_max + 1))
    hits = []
    for key in keys[:hits_max]:
        event = objects.event(key)
        revision = event.revision if event is not None else Revision(0)
        hits.append(
            Hit(
                group=key.group,
                resource=key.resource,
                namespace=key.namespace,
                name=key.name,
                revision=revision,
            )
        )
    return Hits(
        query=query, revision=objects.revision, items=tuple(hits), more=len(keys) > hits_max
    )


def _likest(objects: ObjectsProjection, text: str) -> Iterator[ObjectKey]:
    """The matching keys: those that begin with the name and then the others, short names first.

    The likest may be the last one of all, so all are looked at. An equal name is the shortest one
    that begins so.
    """
    _, _, name = text.rpartition("/")
    others: list[ObjectKey] = []
    beginning: list[ObjectKey] = []
    for key in _matching(objects, text):
        (beginning if key.name[: len(name)].lower() == name else others).append(key)
    yield from sorted(beginning, key=_length)
    yield from sorted(others, key=_length)


def _length(key: ObjectKey) -> int:
    return len(key.name)


def _matching(objects: ObjectsProjection, text: str) -> Iterator[ObjectKey]:
    if not text:
        return
    place, slash, name = text.rpartition("/")
    for group, resource in objects.resources():
        is_kind = False
        if slash:
            kind = history_kinds.find(objects, group, resource)
            is_kind = place == resource or (kind is not None and is_called(kind, place))
        for key in objects.keys(group, resource):
            if name in key.name.lower() and (not slash or is_kind or key.namespace == place):
                yield key
