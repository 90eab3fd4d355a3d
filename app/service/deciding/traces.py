"""What controllers did, in words: the traces that a decide replay compares.

A trace is made from events alone, so the recording and the replay are read the same way. Each write
of a controller becomes a line about its object (`allocated worker-1/gpu-0`, `unschedulable: …`),
without what is random or taken from a clock.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.domain.log import Event, EventType, ObjectKey
from app.domain.log.chain import canonical_json
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant
from app.service.deciding.writers import is_announcement, short_name

CLAIM_FINALIZER = "resource.kubernetes.io/delete-protection"

_REPLICATING = frozenset(("ReplicaSet", "ReplicationController", "StatefulSet"))

_CLOCK_FIELDS = frozenset(
    (
        "lastTransitionTime",
        "lastHeartbeatTime",
        "lastProbeTime",
        "allocationTimestamp",
        "creationTimestamp",
        "deletionTimestamp",
        "timeAdded",
        "resourceVersion",
        "managedFields",
        "shareID",
        "observedGeneration",
        "generation",
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One write of one controller, or one thing that it said in an Event object."""

    revision: int
    time: Instant
    writer: str
    key: ObjectKey
    uid: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocated:
    """One allocation of one claim: the devices in order, the whole result, and for which pod."""

    revision: int
    time: Instant
    key: ObjectKey
    uid: str
    pod: str
    devices: tuple[str, ...]
    allocation: JsonObject


@dataclass(slots=True)
class Trace:
    """Everything that controllers did in one run.

    `writes` are by object uid, `of_pod` by pod uid with the writes to its claims among them,
    `conditions` by object uid and condition type, `said` by uid of the object that an Event is
    about, `node_of` by pod uid, `finished` the instant at which a pod came to its end. `replicas`
    are pods of replica controllers, `users` the pods for which a claim was ever reserved, `kept`
    the objects at the end.
    """

    writes: dict[str, list[Step]] = field(default_factory=lambda: defaultdict(list))
    of_pod: dict[str, list[Step]] = field(default_factory=lambda: defaultdict(list))
    conditions: dict[tuple[str, str], list[Step]] = field(default_factory=lambda: defaultdict(list))
    said: dict[str, list[Step]] = field(default_factory=lambda: defaultdict(list))
    evicted: dict[str, Step] = field(default_factory=dict)
    allocations: dict[str, list[Allocated]] = field(default_factory=lambda: defaultdict(list))
    node_of: dict[str, Step] = field(default_factory=dict)
    keys: dict[str, ObjectKey] = field(default_factory=dict)
    owner_of: dict[str, str] = field(default_factory=dict)
    finished: dict[str, Instant] = field(default_factory=dict)
    removed: dict[str, Instant] = field(default_factory=dict)
    kept: dict[str, JsonObject] = field(default_factory=dict)
    other_writers: set[str] = field(default_factory=set)
    replicas: set[str] = field(default_factory=set)
    users: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def add(self, event: Event, before: JsonObject | None, *, is_decided: bool) -> None:
        """Take one event; `before` is the object before it, `is_decided` whether a controller
        that decides again wrote it."""
        key = event.key
        self._note(event)
        if is_event_object(key):
            if is_decided:
                self._add_said(event, before)
            return
        if not is_decided:
            self.other_writers.add(event.uid)
            return
        writer = short_name(event.stamp.actor.user)
        facts = tuple(facts_of(event, before))
        if not facts:
            return
        step = Step(
            revision=event.revision,
            time=event.stamp.time,
            writer=writer,
            key=key,
            uid=event.uid,
            text="; ".join(facts),
        )
        self.writes[event.uid].append(step)
        for pod in self._pods_of(event, before):
            self.of_pod[pod].append(step)
        self._add_conditions(event, before, step)
        if key.resource == "pods":
            self._add_pod(event, before, step)
        elif key.resource == "resourceclaims":
            self._add_claim(event, before)

    def _note(self, event: Event) -> None:
        uid = event.uid
        self.keys[uid] = event.key
        if event.type is EventType.OBJECT_DELETED:
            self.removed.setdefault(uid, event.stamp.time)
            self.kept.pop(uid, None)
        else:
            self.kept[uid] = event.object
        if event.key.resource == "pods":
            phase = json_tree.text(event.object, "status", "phase")
            if phase in ("Succeeded", "Failed"):
                self.finished.setdefault(uid, event.stamp.time)
            for owner in json_tree.objects(event.object, "metadata", "ownerReferences"):
                if json_tree.text(owner, "kind") in _REPLICATING:
                    self.replicas.add(uid)
        elif event.key.resource == "resourceclaims":
            for owner in json_tree.objects(event.object, "metadata", "ownerReferences"):
                if json_tree.flag(owner, "controller"):
                    self.owner_of[uid] = json_tree.text(owner, "uid")
            self.users[uid] |= consumers(event.object).keys()

    def _add_said(self, event: Event, before: JsonObject | None) -> None:
        if event.type is EventType.OBJECT_DELETED:
            return
        tree = event.object
        about = "regarding" if "regarding" in tree else "involvedObject"
        subject = json_tree.text(tree, about, "uid")
        kind = json_tree.text(tree, "type")
        reason = json_tree.text(tree, "reason")
        note = json_tree.text(tree, "note") or json_tree.text(tree, "message")
        step = Step(
            revision=event.revision,
            time=event.stamp.time,
            writer=short_name(event.stamp.actor.user),
            key=event.key,
            uid=event.uid,
            text=f"{kind} {reason}: {note}",
        )
        self.said[subject].append(step)

    def _pods_of(self, event: Event, before: JsonObject | None) -> Iterator[str]:
        if event.key.resource == "pods":
            yield event.uid
        elif event.key.resource == "resourceclaims":
            owner = self.owner_of.get(event.uid)
            if owner is not None:
                yield owner
                return
            old, new = consumers(before), consumers(event.object)
            yield from sorted(old.keys() ^ new.keys())

    def _add_conditions(self, event: Event, before: JsonObject | None, step: Step) -> None:
        for type_, text in condition_changes(before, event.object):
            said = Step(
                revision=step.revision,
                time=step.time,
                writer=step.writer,
                key=step.key,
                uid=step.uid,
                text=text,
            )
            self.conditions[event.uid, type_].append(said)

    def _add_pod(self, event: Event, before: JsonObject | None, step: Step) -> None:
        node = json_tree.text(event.object, "spec", "nodeName")
        if node and before is not None and not json_tree.text(before, "spec", "nodeName"):
            self.node_of[event.uid] = Step(
                revision=step.revision,
                time=step.time,
                writer=step.writer,
                key=step.key,
                uid=step.uid,
                text=node,
            )
        if "DisruptionTarget" in step.text:
            self.evicted.setdefault(event.uid, step)

    def _add_claim(self, event: Event, before: JsonObject | None) -> None:
        held = None if before is None else json_tree.get(before, "status", "allocation")
        given = json_tree.get(event.object, "status", "allocation")
        if held is not None or not isinstance(given, dict):
            return
        if event.type is EventType.OBJECT_DELETED:
            return
        pods = consumers(event.object)
        self.allocations[event.uid].append(
            Allocated(
                revision=event.revision,
                time=event.stamp.time,
                key=event.key,
                uid=event.uid,
                pod=next(iter(pods), self.owner_of.get(event.uid, "")),
                devices=device_names(given),
                allocation=masked(given),
            )
        )


def is_event_object(key: ObjectKey) -> bool:
    """Whether the object is a Kubernetes Event."""
    return key.resource == "events"


def facts_of(event: Event, before: JsonObject | None) -> Iterator[str]:
    """What the write did, in words; nothing for the first half of a pod's removal."""
    if event.type is EventType.OBJECT_DELETED:
        yield "removed"
        return
    if before is None:
        yield "created"
        return
    if is_announcement(event, before):
        return
    old, new = masked(before), masked(event.object)
    yield from _deletion_facts(before, event.object)
    match event.key.resource:
        case "pods":
            yield from _pod_facts(old, new)
        case "resourceclaims":
            yield from _claim_facts(old, new)
        case _:
            for path, left, right in changes(old, new):
                yield f"{path}: {_shown(left)} -> {_shown(right)}"


def masked(tree: Any) -> Any:
    """The tree without what is random, counted or taken from a clock."""
    if isinstance(tree, dict):
        return {
            name: masked(value)
            for name, value in tree.items()
            if name not in _CLOCK_FIELDS and value not in (None, {}, [], "")
        }
    if isinstance(tree, list):
        return [masked(item) for item in tree]
    return tree


def changes(old: Any, new: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Every place where two masked trees differ, with both values."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted(old.keys() | new.keys()):
            yield from changes(old.get(name), new.get(name), f"{path}.{name}".lstrip("."))
    elif old != new:
        yield path, old, new


def consumers(claim: JsonView | None) -> dict[str, str]:
    """The pods for which a claim is reserved: uid to name."""
    if claim is None:
        return {}
    return {
        json_tree.text(found, "uid"): json_tree.text(found, "name")
        for found in json_tree.objects(claim, "status", "reservedFor")
    }


def device_names(allocation: JsonView) -> tuple[str, ...]:
    """`request: pool/device` of each result."""
    return tuple(
        f"{json_tree.text(found, 'request')}: {json_tree.text(found, 'pool')}/"
        f"{json_tree.text(found, 'device')}"
        for found in json_tree.objects(allocation, "devices", "results")
    )


def condition_changes(before: JsonView | None, after: JsonView) -> Iterator[tuple[str, str]]:
    """Type and text of each condition that a write set or changed."""
    olds = {} if before is None else _conditions(before)
    for type_, text in _conditions(after).items():
        if olds.get(type_) != text:
            yield type_, text


def _conditions(tree: JsonView) -> dict[str, str]:
    found = {}
    for each in json_tree.objects(tree, "status", "conditions"):
        reason, message = json_tree.text(each, "reason"), json_tree.text(each, "message")
        text = json_tree.text(each, "status")
        if reason or message:
            text = f"{text} {reason}: {message}"
        found[json_tree.text(each, "type")] = text
    return found


def _deletion_facts(before: JsonView, after: JsonView) -> Iterator[str]:
    path = ("metadata", "deletionTimestamp")
    if json_tree.text(after, *path) and not json_tree.text(before, *path):
        grace = json_tree.integer(after, "metadata", "deletionGracePeriodSeconds")
        yield f"deletion asked for, grace {grace}"


def _pod_facts(old: JsonObject, new: JsonObject) -> Iterator[str]:
    seen: list[tuple[str, ...]] = [
        ("metadata", "deletionGracePeriodSeconds"),
        ("status", "conditions"),
    ]
    for path, word in (
        (("status", "resourceClaimStatuses"), "claims"),
        (("status", "nominatedNodeName"), "nominated"),
        (("spec", "nodeName"), "bound to"),
    ):
        left, right = json_tree.get(old, *path), json_tree.get(new, *path)
        seen.append(path)
        if left == right or (word == "nominated" and right is None):
            continue
        if word == "claims":
            right = ", ".join(
                f"{item.get('name')}={item.get('resourceClaimName')}" for item in right or ()
            )
        yield f"{word} {right}"
    for type_, text in condition_changes(old, new):
        yield f"{type_} {text}"
    yield from _others(old, new, seen)


def _claim_facts(old: JsonObject, new: JsonObject) -> Iterator[str]:
    seen: list[tuple[str, ...]] = [
        ("metadata", "finalizers"),
        ("metadata", "deletionGracePeriodSeconds"),
        ("status", "allocation"),
        ("status", "reservedFor"),
    ]
    olds = set(json_tree.texts(old, "metadata", "finalizers"))
    news = set(json_tree.texts(new, "metadata", "finalizers"))
    for name in sorted(news - olds):
        yield f"finalizer {name}"
    for name in sorted(olds - news):
        yield f"no finalizer {name}"
    held = json_tree.get(old, "status", "allocation")
    given = json_tree.get(new, "status", "allocation")
    if held is None and given is not None:
        yield f"allocated {', '.join(device_names(given))}"
    elif held is not None and given is None:
        yield "released"
    elif held != given:
        yield "allocation changed"
    left, right = consumers(old), consumers(new)
    for uid in right.keys() - left.keys():
        yield f"reserved for {right[uid]}"
    for uid in left.keys() - right.keys():
        yield f"no longer reserved for {left[uid]}"
    yield from _others(old, new, seen)


def _others(old: JsonObject, new: JsonObject, seen: Sequence[tuple[str, ...]]) -> Iterator[str]:
    left, right = without(old, seen), without(new, seen)
    for path, was, now in changes(left, right):
        if was in (None, {}, []) and now in (None, {}, []):
            continue
        yield f"{path}: {_shown(was)} -> {_shown(now)}"


def _shown(value: Any) -> str:
    """A value as text in which the order of fields does not matter."""
    return canonical_json(value).decode()


def without(tree: JsonObject, paths: Sequence[tuple[str, ...]]) -> JsonObject:
    """A copy of the tree without these places."""
    copied: JsonObject = dict(tree)
    for path in paths:
        place = copied
        for name in path[:-1]:
            inner = place.get(name)
            if not isinstance(inner, dict):
                break
            place[name] = place = dict(inner)
        else:
            place.pop(path[-1], None)
    return copied
