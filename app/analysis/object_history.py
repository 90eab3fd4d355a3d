"""One object: its fields with their writers, its versions with their changes, its relations.

Fields are named by their paths, as `spec.devices.requests[0].name`. An entry of a list is followed
by its uid, type, name or value, so that it keeps its writer when another one is put in or taken
out. `managedFields` and the resource version are bookkeeping of the API and left out. Of a Secret,
names are shown, but no values.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from app.domain.controllers import pods
from app.domain.controllers.plan import Views
from app.domain.controllers.resources import claim_key, pod_key
from app.domain.log import Actor, Event, EventType, ObjectKey, Revision, doubts
from app.domain.log.records import IMPORTER_USER
from app.domain.values import api_resources, timestamps
from app.domain.values.fields import core, dra, meta
from app.domain.values.json_tree import JsonObject
from projections.objects import without_values

CHANGES_MAX = 40
"""The number of changed fields listed per version; the rest is counted."""

HIDDEN = "(hidden)"
"""The replacement for each value of a Secret."""

_BOOKKEEPING = ("metadata.managedFields", "metadata.resourceVersion")


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """A field with its value, and the version that set this value.

    `revision` is 0 if a version older than the examined ones set it.
    """

    path: str
    value: Any
    revision: Revision
    actor: str = ""
    agent: str = ""


class FieldChange(msgspec.Struct, frozen=True, kw_only=True):
    """A field that a version changed: `old` or `new` is None if the field was absent then."""

    path: str
    old: Any
    new: Any


class Version(msgspec.Struct, frozen=True, kw_only=True):
    """One write of the object: the user, the program, the causing revision, and the changes.

    `changes` are relative to the previous version; `omitted` counts those that are not listed. The
    very first version has none.
    """

    revision: Revision
    time: str
    type: str
    verb: str
    actor: str
    agent: str
    cause: int
    changes: tuple[FieldChange, ...]
    omitted: int = 0


class Relation(msgspec.Struct, frozen=True, kw_only=True):
    """Another object and its relation to this one; `exists` is whether the other one exists."""

    relation: str
    group: str
    resource: str
    namespace: str
    name: str
    exists: bool

    @property
    def key(self) -> ObjectKey:
        """The key of the other object."""
        return ObjectKey(self.group, self.resource, self.namespace, self.name)


class ObjectHistory(msgspec.Struct, frozen=True, kw_only=True):
    """An object as of `revision`, the newest versions first.

    `older` tells that there are versions before those examined.
    """

    group: str
    resource: str
    namespace: str
    name: str
    revision: Revision
    exists: bool
    fields: tuple[Field, ...]
    versions: tuple[Version, ...]
    relations: tuple[Relation, ...]
    older: bool = False

    @property
    def key(self) -> ObjectKey:
        """The key of the object."""
        return ObjectKey(self.group, self.resource, self.namespace, self.name)


def of(
    views: Views,
    revision: Revision,
    events: Sequence[Event],
    sees: Callable[[ObjectKey], bool],
    *,
    versions_max: int,
) -> ObjectHistory:
    """The history of the object of these events, which are the newest first and at least one.

    If there are more than `versions_max` events, the oldest one is only used for comparison.
    Relations for which `sees` is false are left out.
    """
    key = events[0].key
    older = len(events) > versions_max
    writers: dict[str, Event | None] = {}
    versions: list[Version] = []
    before: dict[str, PlacedValue] = {}
    last: JsonObject = {}
    is_first = True
    for event in reversed(events[: versions_max + 1]):
        if event.type is EventType.OBJECT_CREATED:
            # An earlier object of the same name is a different object.
            before = {}
        last = _visible(event)
        now = {one.identity: one for one in placed(last)}
        changes = [
            name
            for name, one in now.items()
            if name not in before or before[name].value != one.value
        ]
        gone = [name for name in before if name not in now]
        if is_first and older:
            writers.update(dict.fromkeys(now))
        else:
            writers.update(dict.fromkeys(changes, event))
            is_new = event.type is EventType.OBJECT_CREATED
            listed = [] if is_new else sorted({*changes, *gone})
            versions.append(_version(event, listed, before, now))
        before, is_first = now, False
    exists = events[0].type is not EventType.OBJECT_DELETED
    return ObjectHistory(
        group=key.group,
        resource=key.resource,
        namespace=key.namespace,
        name=key.name,
        revision=revision,
        exists=exists,
        fields=tuple(_field(one, writers[name]) for name, one in before.items()),
        versions=tuple(reversed(versions)),
        relations=tuple(one for one in _relations(views, key, last) if sees(one.key)),
        older=older,
    )


def _visible(event: Event) -> JsonObject:
    tree = event.object
    if event.key[:2] != api_resources.SECRETS:
        return tree
    secret = without_values(tree)
    for part in ("data", "stringData"):
        names = secret.get(part)
        if isinstance(names, dict):
            secret[part] = dict.fromkeys(names, HIDDEN)
    return secret


class PlacedValue(NamedTuple):
    """A value with its path, and the same path with the identities of list entries."""

    path: str
    identity: str
    value: Any


def flat(tree: Any) -> Iterator[tuple[str, Any]]:
    """Each value with its path; empty objects and lists are values, null counts as absent."""
    return ((one.path, one.value) for one in placed(tree))


def placed(tree: Any, path: str = "", identity: str = "") -> Iterator[PlacedValue]:
    """Each value with its path and identity, as `flat`."""
    if path in _BOOKKEEPING or tree is None:
        return
    if isinstance(tree, dict) and tree:
        for name, value in tree.items():
            plain = name.isidentifier()
            step = f".{name}" if plain and path else name if plain else f"[{name!r}]"
            yield from placed(value, f"{path}{step}", f"{identity}{step}")
    elif isinstance(tree, list) and tree:
        for index, (known, value) in enumerate(zip(_identities(tree), tree, strict=True)):
            yield from placed(value, f"{path}[{index}]", f"{identity}[{known}]")
    else:
        yield PlacedValue(path, identity, tree)


_IDENTITIES = (
    ("uid",),
    ("type",),
    ("name",),
    ("driver", "pool", "device", "shareID"),
    ("key", "effect"),
    ("id",),
)
"""The fields that identify the entries of lists; the first ones that are unique count."""


def _identities(entries: Sequence[Any]) -> Sequence[str]:
    """The keys of entries that do not depend on their order; their positions if there are none."""
    if all(isinstance(entry, dict) for entry in entries):
        for names in _IDENTITIES:
            known = [
                ",".join(f"{name}={entry.get(name, '')}" for name in names)
                for entry in entries
                if names[0] in entry
            ]
            if len(set(known)) == len(entries):
                return known
    elif all(isinstance(entry, str) for entry in entries) and len(set(entries)) == len(entries):
        return [f"={entry}" for entry in entries]
    return [str(index) for index in range(len(entries))]


def _field(one: PlacedValue, event: Event | None) -> Field:
    if event is None:
        return Field(path=one.path, value=one.value, revision=Revision(0))
    actor = event.stamp.actor
    if doubts.is_change(event) and _is_by_own_request(event.key, one.path):
        # No update or patch sets it: the request that did was lost.
        actor = Actor(user=IMPORTER_USER)
    return Field(
        path=one.path,
        value=one.value,
        revision=event.revision,
        actor=actor.user,
        agent=actor.agent,
    )


def _is_by_own_request(key: ObjectKey, path: str) -> bool:
    """Whether only a deletion or a binding sets a field."""
    return path == "metadata.deletionTimestamp" or (
        path == "spec.nodeName" and key[:2] == api_resources.PODS
    )


_NOWHERE = PlacedValue("", "", None)


def _version(
    event: Event,
    changed: Sequence[str],
    before: Mapping[str, PlacedValue],
    now: Mapping[str, PlacedValue],
) -> Version:
    stamp = event.stamp
    sides = [(before.get(name), now.get(name)) for name in changed[:CHANGES_MAX]]
    return Version(
        revision=event.revision,
        time=timestamps.micro_text(stamp.time),
        type=event.type.value,
        verb=stamp.verb,
        actor=stamp.actor.user,
        agent=stamp.actor.agent,
        cause=stamp.cause,
        changes=tuple(
            FieldChange(
                path=(new or old or _NOWHERE).path,
                old=None if old is None else old.value,
                new=None if new is None else new.value,
            )
            for old, new in sides
        ),
        omitted=max(0, len(changed) - CHANGES_MAX),
    )


def _relations(views: Views, key: ObjectKey, tree: JsonObject) -> Iterator[Relation]:
    objects = views.objects
    for owner in meta.owners(tree):
        place = objects.by_uid(owner.uid)
        if place is not None:
            yield _related(views, "owner", place)
    named: Iterable[tuple[str, ObjectKey]] = ()
    match (key.group, key.resource):
        case api_resources.PODS:
            named = _of_pod(key, tree)
        case api_resources.RESOURCE_CLAIMS:
            named = _of_claim(key, tree)
        case api_resources.RESOURCE_SLICES:
            named = _node(dra.node_name(tree))
    for relation, other in named:
        yield _related(views, relation, other)
    for other in objects.dependents(meta.uid(tree)):
        yield _related(views, "owned", other)


def _of_pod(key: ObjectKey, tree: JsonObject) -> Iterator[tuple[str, ObjectKey]]:
    yield from _node(core.node_name(tree))
    for claim in pods.named_claims(pods.facts(tree)):
        if claim.name:
            yield "claim", claim_key(key.namespace, claim.name)


def _of_claim(key: ObjectKey, tree: JsonObject) -> Iterator[tuple[str, ObjectKey]]:
    for consumer in dra.consumers(tree):
        if (consumer.api_group, consumer.resource) == api_resources.PODS:
            yield "reserved for", pod_key(key.namespace, consumer.name)
    allocation = dra.allocation(tree)
    if allocation is not None:
        yield from _node(dra.selected_node(allocation))
    for request in dra.requests(tree):
        for ask in (request.exactly, *request.first_available):
            if ask is not None and ask.device_class_name:
                yield "class", ObjectKey(*api_resources.DEVICE_CLASSES, "", ask.device_class_name)


def _node(name: str) -> Iterator[tuple[str, ObjectKey]]:
    if name:
        yield "node", ObjectKey(*api_resources.NODES, "", name)


def _related(views: Views, relation: str, key: ObjectKey) -> Relation:
    return Relation(
        relation=relation,
        group=key.group,
        resource=key.resource,
        namespace=key.namespace,
        name=key.name,
        exists=views.objects.event(key) is not None,
    )
