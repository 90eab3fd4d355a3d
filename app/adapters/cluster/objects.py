"""Objects in a cluster's answers as records in the storage version, as imports make them.

Discovery decides the kind of an object, not the object itself. An object that cannot be read or
folded becomes an item with the problem: one object does not end a recording.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from app.adapters.history import times
from app.adapters.history.joining import normalising
from app.adapters.history.reading import Notes, ReadOptions, object_record
from app.domain.errors import InputError
from app.domain.log import ObjectKey
from app.domain.log.recorded_cluster import ServedKind, WatchItem
from app.domain.log.records import LIST, WATCH, Op
from app.domain.objects.rules import Rules
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

_OPS = {"ADDED": Op.ADDED, "MODIFIED": Op.MODIFIED, "DELETED": Op.DELETED}


class ObjectReader:
    """Makes items from the objects of one cluster."""

    def __init__(self, source: str, rules: Rules) -> None:
        self._source = source
        self._options = ReadOptions(rules=rules, with_secrets=True)

    def listed(self, items: list[Any], kind: ServedKind, moment: Instant) -> Iterator[WatchItem]:
        """Yield a watch item for each item of a list; items of lists do not state their kind."""
        api_version = f"{kind.group}/{kind.version}" if kind.group else kind.version
        for item in items:
            tree = item if isinstance(item, dict) else {}
            whole = {"apiVersion": api_version, "kind": kind.kind, **tree}
            yield self._item(whole, Op.BASELINE, kind, LIST, moment)

    def watched(self, line: Mapping[str, Any], kind: ServedKind, moment: Instant) -> WatchItem:
        """The item for a line of a watch, except a line of type ERROR."""
        tree = line["object"]
        if line["type"] == "BOOKMARK":
            return WatchItem(version=meta.resource_version(tree))
        return self._item(tree, _OPS[line["type"]], kind, WATCH, moment)

    def _item(
        self, tree: JsonObject, op: Op, kind: ServedKind, position: str, moment: Instant
    ) -> WatchItem:
        version = meta.resource_version(tree)
        namespace = meta.namespace(tree) if kind.is_namespaced else ""
        name = meta.name(tree)
        key = ObjectKey(kind.group, kind.resource, namespace, name)
        try:
            record = object_record(
                tree, op, source=self._source, position=position, order=(0, 0), observed_at=moment
            )
            record = msgspec.structs.replace(
                record, group=kind.group, resource=kind.resource, namespace=namespace
            )
            # Secrets and ConfigMaps are read only when they are included by name.
            normal = normalising.normalise(record, self._options, Notes(keep_going=True))
        except InputError as problem:
            return WatchItem(version=version, key=key, problem=str(problem))
        written = times.derive(tree) if position == WATCH else None
        return WatchItem(version=version, record=normal, key=key, written=written)
