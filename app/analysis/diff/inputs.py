"""Writes of outsiders that differ between the sides: where differences begin.

An outsider is neither a controller nor a kubelet. A write is compared by what it changed, so that
earlier changes of controllers to the object make no difference. Kinds that no decision reads, such
as ConfigMaps and Leases, are left out.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from app.analysis import masks
from app.analysis.diff import contrasts, flow_style, named_lists
from app.analysis.diff.courses import Moment
from app.analysis.diff.sides import Side
from app.analysis.replay.authors import UNNAMED, Authors, acting
from app.analysis.replay.writers import CONTROLLER_PREFIX
from app.domain.controllers import registry
from app.domain.log import Event, EventType, ObjectKey
from app.domain.values import api_groups, api_resources, well_known
from app.domain.values.fields import meta
from app.domain.values.identifiers import Uid
from app.domain.values.json_tree import JsonObject

_GROUPS = frozenset(
    (
        api_groups.APPS,
        api_groups.BATCH,
        api_groups.POLICY,
        api_groups.RESOURCE,
        api_groups.SCHEDULING,
        api_groups.STORAGE,
    )
)
"""The groups whose objects decisions read."""

_CORE = frozenset(
    (
        "limitranges",
        "namespaces",
        "nodes",
        "persistentvolumeclaims",
        "persistentvolumes",
        "pods",
        "resourcequotas",
    )
)
"""Resources of the core group that decisions read."""

_KUBELET_PREFIX = "system:node:"

_CONTROLLERS = frozenset(registry.actor_of(name).user for name in registry.NAMES)

_METADATA = ("annotations", "labels")

DELETED = "deleted"
"""The text of a write that deletes its object, or requests that."""

_ADDED_VOLUME = "kube-api-access-"
"""The prefix of the generated names of volumes that admission adds to pods."""

_OWN_UID = "(its uid)"

_STATUS_OF_INPUTS = frozenset((api_resources.NODES,))
"""The kinds whose status is not a consequence, but an input of the scheduler."""

_NODE_STATUS = ("allocatable", "conditions")


class Verb(StrEnum):
    """The kinds of differences between the outsiders' writes to one object."""

    ONLY_A = "only in A"
    ONLY_B = "only in B"
    EARLIER = "earlier in B"
    LATER = "later in B"
    OTHERWISE = "otherwise in B"


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One write: its effect as text, equal for equal writes, and the object that it created."""

    at: Moment
    what: str
    created: JsonObject | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InputDifference:
    """The differing writes of outsiders to one object, from `since` on in the comparison's time.

    `a` and `b` are the first writes that differ, None where that side has none.
    """

    key: ObjectKey
    verb: Verb
    since: int
    a: Write | None
    b: Write | None

    @property
    def text(self) -> str:
        """The change as text."""
        match self.a, self.b:
            case None, Write(what=what):
                return f"{self.verb.value}: {what}"
            case Write(what=what), None:
                return f"{self.verb.value}: {what}"
            case Write(what=left), Write(what=right) if left == right:
                return f"{self.verb.value}: {left}"
            case Write(created=dict() as old), Write(created=dict() as new):
                return f"created otherwise in B: {'; '.join(_differing(old, new))}"
            case Write(what=left), Write(what=right):
                return f"A: {left}; B: {right}"
            case _:
                return self.verb.value


def changes(a: Side, b: Side, *, within: int) -> list[InputDifference]:
    """The objects to which outsiders wrote differently, in the order of the first such write."""
    left, right = _writes(a), _writes(b)
    listed = [
        change
        for key in {**left, **right}
        if (change := _change(key, left.get(key, ()), right.get(key, ()), within)) is not None
    ]
    return sorted(listed, key=lambda change: (change.since, str(change.key)))


def _change(
    key: ObjectKey, left: Sequence[Write], right: Sequence[Write], within: int
) -> InputDifference | None:
    while left and right and left[0].what == right[0].what:
        if abs(left[0].at.time - right[0].at.time) > within:
            break
        left, right = left[1:], right[1:]
    if not left and not right:
        return None
    a, b = next(iter(left), None), next(iter(right), None)
    since = min(write.at.time for write in (a, b) if write is not None)
    if a is None or b is None:
        verb = Verb.ONLY_A if b is None else Verb.ONLY_B
    elif a.what == b.what:
        verb = Verb.LATER if b.at.time > a.at.time else Verb.EARLIER
    elif b.what in (write.what for write in left):
        # The other side has more before it.
        verb, b = Verb.ONLY_A, None
    elif a.what in (write.what for write in right):
        verb, a = Verb.ONLY_B, None
    else:
        verb = Verb.OTHERWISE
    return InputDifference(key=key, verb=verb, since=since, a=a, b=b)


def _writes(side: Side) -> Mapping[ObjectKey, Sequence[Write]]:
    """The writes of outsiders, by object."""
    authors = Authors(acting(side.events) if side.was_decided_elsewhere else {})
    objects: dict[ObjectKey, JsonObject] = {event.key: event.object for event in side.start}
    writes: dict[ObjectKey, list[Write]] = defaultdict(list)
    for event in side.events:
        if not event.is_about_object:
            continue
        key = event.key
        before = objects.get(key)
        if before is not None and meta.uid(before) != event.uid:
            before = None
        author = authors.of(event, before)
        if event.type is EventType.OBJECT_DELETED:
            objects.pop(key, None)
        else:
            objects[key] = event.object
        if not _is_read(key) or not _is_outsider(author):
            continue
        if author == UNNAMED and (meta.controller(event.object) or _is_bookkeeping(event, before)):
            # The source names no user, and only controllers make such a write.
            continue
        what = "; ".join(_what(event, before))
        if what:
            moment = Moment(event.revision, side.instant(event.stamp.time))
            created = _content(event) if before is None else None
            writes[key].append(Write(at=moment, what=what, created=created))
    return writes


def _is_read(key: ObjectKey) -> bool:
    return key.group in _GROUPS or (key.group == api_groups.CORE and key.resource in _CORE)


def _is_outsider(user: str) -> bool:
    return not (user in _CONTROLLERS or user.startswith((CONTROLLER_PREFIX, _KUBELET_PREFIX)))


def _is_bookkeeping(event: Event, before: JsonObject | None) -> bool:
    """Whether a write changed only annotations."""
    if before is None or event.type is not EventType.OBJECT_UPDATED:
        return False
    old, new = _content_of(event.key, before), _content(event)
    paths = [path for path, _, _ in masks.changes(old, new)]
    return bool(paths) and all(path.startswith("metadata.annotations") for path in paths)


def _what(event: Event, before: JsonObject | None) -> Iterator[str]:
    """The effect of one write; empty if decisions do not read it."""
    if event.type is EventType.OBJECT_DELETED:
        if before is None or not meta.is_deleting(before):
            yield DELETED
        return
    if before is None:
        yield "created"
        yield from _fields({}, _content(event))
        return
    if meta.is_deleting(event.object) and not meta.is_deleting(before):
        yield DELETED
    yield from _fields(_content_of(event.key, before), _content(event))


def _fields(old: JsonObject, new: JsonObject) -> Iterator[str]:
    for path, was, now in masks.changes(old, new):
        if old:
            yield f"{path}: {_listed(was, now)}"
        else:
            yield f"{path}={flow_style.shown(now)}"


def _listed(was: Any, now: Any) -> str:
    """The change of a value; for a list of named entries only the entries that differ."""
    left, right = named_lists.by_name(was), named_lists.by_name(now)
    if left is None or right is None:
        return " → ".join(contrasts.of(was, now))
    parts = [f"without {name}" for name in left if name not in right]
    added = [entry for name, entry in right.items() if name not in left]
    parts += [f"with {flow_style.shown(entry)}" for entry in added]
    parts += [
        f"{name} {'; '.join(_fields(entry, right[name]))}"
        for name, entry in left.items()
        if name in right and entry != right[name]
    ]
    return ", ".join(parts) or "in another order"


def _differing(a: JsonObject, b: JsonObject) -> Iterator[str]:
    """The differences of two objects; for lists of named entries an example."""
    for path, left, right in masks.changes(a, b):
        if left is None or right is None:
            yield f"{path} only in {'B' if left is None else 'A'}"
            continue
        old, new = named_lists.by_name(left), named_lists.by_name(right)
        if old is None or new is None or old.keys() != new.keys():
            yield f"{path}: {_listed(left, right)}"
            continue
        names = [name for name in old if old[name] != new[name]]
        if names:
            example = "; ".join(_differing(old[names[0]], new[names[0]]))
            yield f"{path}: {len(names)} of {len(old)} differ, such as {names[0]}: {example}"
        else:
            yield f"{path}: in another order"


def _content(event: Event) -> JsonObject:
    return _content_of(event.key, event.object)


def _content_of(key: ObjectKey, tree: JsonObject) -> JsonObject:
    """The parts of an object that an outsider sets: no identity, bookkeeping or consequences."""
    metadata, uid = meta.metadata(tree), meta.uid(tree)
    content: JsonObject = {}
    for part in _METADATA:
        kept = dict(metadata.get(part) or {})
        kept.pop(well_known.LAST_APPLIED, None)
        if kept:
            content[f"metadata.{part}"] = _without_drawn(kept, uid)
    for name, value in tree.items():
        if name in ("apiVersion", "kind", "metadata", "status"):
            continue
        content[name] = _without_drawn(value, uid)
    if key.resource == "pods" and isinstance(content.get("spec"), dict):
        content["spec"] = {
            name: each for name, each in content["spec"].items() if name != "nodeName"
        }
    if (key.group, key.resource) in _STATUS_OF_INPUTS:
        status = meta.status(tree)
        content["status"] = {part: masks.masked(status.get(part)) for part in _NODE_STATUS}
    return content


def _without_drawn(value: Any, uid: Uid) -> Any:
    """A value without what the API server added: times, generated names of volumes, and the uid.

    A Job has its own uid in its selector and in the labels of its pods.
    """
    if isinstance(value, dict):
        kept = {name: item for name, item in value.items() if name != "timeAdded"}
        return {name: _without_drawn(item, uid) for name, item in kept.items()}
    if isinstance(value, list):
        return [_without_drawn(item, uid) for item in value]
    if isinstance(value, str) and value.startswith(_ADDED_VOLUME):
        return _ADDED_VOLUME
    return _OWN_UID if uid and value == uid else value
