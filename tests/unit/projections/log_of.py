"""A log written by hand: what to fold, one line an event."""

from collections.abc import Callable
from typing import Any

from app.domain.log import (
    DECISION,
    Actor,
    Draft,
    Event,
    EventType,
    ObjectKey,
    Origin,
    Revision,
    Stamp,
)
from app.domain.log.chain import seal
from app.domain.log.event import GENESIS
from app.domain.log.projection import Projection, Row
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import SECOND, Instant

DRA = "resource.k8s.io"
START = 1_767_225_600 * SECOND
"""2026-01-01T00:00:00Z"""

RESOURCES = {
    "secret": ("", "secrets"),
    "pod": ("", "pods"),
    "node": ("", "nodes"),
    "event": ("", "events"),
    "lease": ("coordination.k8s.io", "leases"),
    "deployment": ("apps", "deployments"),
    "claim": (DRA, "resourceclaims"),
    "slice": (DRA, "resourceslices"),
    "rule": (DRA, "devicetaintrules"),
    "patch": (DRA, "resourceslicepatches"),
    "class": (DRA, "deviceclasses"),
}


class LogOf:
    """Appends events a second apart and folds each into the view."""

    def __init__(self, view: Projection) -> None:
        self.view = view
        self.events: list[Event] = []
        self._known: set[ObjectKey] = set()

    def put(
        self, kind: str, name: str, *, actor: str = "alice", cause: int = 0, **tree: Any
    ) -> int:
        """Create or replace an object; `name` may be `namespace/name`. Returns the revision."""
        key = key_of(kind, name)
        type = EventType.OBJECT_UPDATED if key in self._known else EventType.OBJECT_CREATED
        self._known.add(key)
        metadata = {"name": key.name, "uid": f"uid-{key.name}", **tree.pop("metadata", {})}
        return self.append(type, key, {"metadata": metadata, **tree}, actor=actor, cause=cause)

    def delete(self, kind: str, name: str) -> int:
        key = key_of(kind, name)
        self._known.discard(key)
        return self.append(EventType.OBJECT_DELETED, key, {"metadata": {"name": key.name}})

    def decide(self, name: str, **body: Any) -> int:
        namespace, _, bare = name.rpartition("/")
        key = DECISION._replace(namespace=namespace, name=bare)
        return self.append(EventType.DECISION_RECORDED, key, body)

    def append(
        self,
        type: EventType,
        key: ObjectKey,
        tree: JsonObject,
        *,
        actor: str = "alice",
        cause: int = 0,
        origin: Origin | None = None,
        verb: str = "update",
    ) -> int:
        revision = len(self.events) + 1
        stamp = Stamp(
            time=Instant(START + revision * SECOND),
            actor=Actor(user=actor),
            verb=verb,
            cause=cause,
            observed=revision - 1,
            origin=origin,
        )
        uid = tree.get("metadata", {}).get("uid", "")
        draft = Draft(type=type, key=key, uid=uid, tree=tree, stamp=stamp)
        event = seal(draft, Revision(revision), GENESIS)
        event.tree = None
        self.events.append(event)
        self.view.fold(event)
        return revision

    def row(self, table: str, *key: str | int) -> Row:
        """The row of that key; fails when there is none."""
        found = self.view.row(table, key)
        assert found is not None, (table, key)
        return found

    def part(self, table: str, *key: str | int, columns: str) -> list[Any]:
        """Some columns of a row, in the order named."""
        row = self.row(table, *key)
        return [row[column] for column in columns.split()]

    def touched(self) -> dict[str, list[tuple[str | int, ...]]]:
        """Which rows changed since the last call, sorted."""
        return {table: sorted(keys) for table, keys in self.view.take_changed().items()}


def key_of(kind: str, name: str) -> ObjectKey:
    namespace, _, bare = name.rpartition("/")
    return ObjectKey(*RESOURCES[kind], namespace, bare)


def slice_spec(
    pool: str = "p", *devices: JsonObject, count: int = 1, generation: int = 1, **more: Any
) -> JsonObject:
    """A slice of driver `d`; node-local to `n1` unless `more` says otherwise."""
    spec: JsonObject = {
        "driver": "d",
        "pool": {"name": pool, "generation": generation, "resourceSliceCount": count},
        "devices": list(devices),
    }
    place = {"nodeName", "allNodes", "nodeSelector", "perDeviceNodeSelection"} & more.keys()
    return {**spec, **({} if place else {"nodeName": "n1"}), **more}


def device(name: str, **more: Any) -> JsonObject:
    return {"name": name, **more}


def taint(text: str) -> JsonObject:
    """`key=value:effect` or `key:effect`."""
    left, _, effect = text.rpartition(":")
    key, _, value = left.partition("=")
    return {"key": key, "effect": effect, **({"value": value} if value else {})}


def allocation(*devices: str, **result: Any) -> JsonObject:
    """A status that gives `pool/device` of driver `d` to request `r`."""
    results = []
    for text in devices:
        pool, _, name = text.partition("/")
        results.append({"request": "r", "driver": "d", "pool": pool, "device": name, **result})
    return {"allocation": {"devices": {"results": results}}}


def reserved(status: JsonObject, *pods: str) -> JsonObject:
    users = [{"resource": "pods", "name": pod, "uid": f"uid-{pod}"} for pod in pods]
    return {**status, "reservedFor": users}


def log_of(make: Callable[[], Projection]) -> Callable[[], LogOf]:
    """For fixtures: a fresh log with a fresh view."""
    return lambda: LogOf(make())
