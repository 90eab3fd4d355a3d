"""The scope of a question: the part of a history by time, kinds, object, device or node.

An event of a cluster-scoped kind (a node, a slice, a rule, a class) belongs to a namespace when it
touches one of its pods: the pod's node, a device of a claim that it uses, or the class of one. So
does an event about the Namespace itself. The uses are folded along with the events, so that an
event is judged by the state at its revision.
"""

import difflib
import heapq
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple, TypeVar

from app.domain.errors import InputError
from app.domain.log import Event, EventType, ObjectKey, records
from app.domain.objects import registry
from app.domain.values import api_groups, api_resources, selectors
from app.domain.values.fields import dra, meta
from app.domain.values.identifiers import DeviceId, DeviceName, PoolId
from app.domain.values.timestamps import Instant
from projections import outlines
from projections.timeline import KINDS, Entry

_Counted = TypeVar("_Counted", bound=Hashable)

NEAREST_MAX = 3
"""The number of names suggested for an unknown one."""

COMPARED_MAX = 200
"""The number of names compared letter by letter with an unknown one; see the setting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The scope; empty fields match everything. Instants and revisions are inclusive.

    `resource`, `name` and `place` (its namespace) are those of the subject. `device` is
    `driver/pool/name` or the end of that, `author` a part of the shown author, in any case. `kinds`
    are words of the timeline such as `PodScheduled`.
    `labels` selects by the labels that the subject had when the event happened, or by those of the
    pod for which a claim was made, unless `claims_of_pods` is false.
    """

    since: Instant | None = None
    until: Instant | None = None
    first: int = 0
    final: int = 0
    kinds: frozenset[str] = frozenset()
    namespace: str = ""
    group: str = ""
    resource: str = ""
    name: str = ""
    place: str = ""
    device: str = ""
    node: str = ""
    author: str = ""
    labels: str = ""
    claims_of_pods: bool = True

    @property
    def needs_uses(self) -> bool:
        """Whether judging an event requires the folded uses."""
        return bool(self.namespace or self.device or self.node)

    @property
    def needs_objects(self) -> bool:
        """Whether judging an event requires what objects were before it."""
        return self.needs_uses or bool(self.labels)

    def has_moment(self, time: Instant, revision: int) -> bool:
        """Whether a moment is within the scope."""
        return (
            (self.since is None or time >= self.since)
            and (self.until is None or time <= self.until)
            and revision >= self.first
            and (not self.final or revision <= self.final)
        )


class LabelledObjects:
    """The objects that have, or had until the last event about them, the wanted labels.

    A claim that was made for a pod counts like the pod: the claim carries the labels of its
    template, not those of the pod. A deleted object counts by its last labels.
    """

    def __init__(self, labels: str, *, claims_of_pods: bool = True) -> None:
        self.has_matched = False
        self._labels = selectors.parse_labels(labels)
        self._claims_of_pods = claims_of_pods
        self._matching: set[ObjectKey] = set()
        self._just_lost: ObjectKey | None = None
        self._users: dict[ObjectKey, ObjectKey] = {}

    def fold(self, event: Event) -> Mapping[str, str]:
        """Applies the event, and returns the labels of its object; empty when it is about none."""
        self._just_lost = None
        if not event.is_about_object:
            return {}
        key, tree = event.key, event.object
        labels = meta.labels(tree)
        if self._labels.matches(labels):
            self._matching.add(key)
            self.has_matched = True
        elif key in self._matching:
            self._matching.remove(key)
            if event.type is not EventType.OBJECT_CREATED:
                self._just_lost = key
        owner = meta.controller(tree)
        if owner is not None and owner.kind == "Pod" and self._claims_of_pods:
            self._users[key] = ObjectKey(*api_resources.PODS, key.namespace, owner.name)
        return labels

    def takes(self, event: Event, entry: Entry | None) -> bool:
        """Whether the object of the folded event, or the subject of its entry, has the labels."""
        keys = (event.key,) if entry is None else (event.key, entry.subject)
        return any(self.has(key) for key in keys)

    def has(self, key: ObjectKey) -> bool:
        """Whether the object has the labels, or had them until its last event."""
        return (
            key in self._matching
            or key == self._just_lost
            or self._users.get(key) in self._matching
        )


class _PlacedSlice(NamedTuple):
    """The pool of a slice, the names of its devices, and its node."""

    pool: PoolId
    names: frozenset[DeviceName]
    node: str


class _Uses:
    """The relations of objects to the namespace, the node and the device of a scope.

    Only what concerns these three is counted, so an event costs the same in a large cluster.
    """

    def __init__(self, scope: Scope, note: Callable[[str, str], None]) -> None:
        """`note` gets the nodes and devices that occur, if the scope names one."""
        self._namespace, self._node, self._device = scope.namespace, scope.node, scope.device
        parts = (scope.namespace, scope.node, scope.device)
        self._wanted = sum(part for name, part in zip(parts, _PARTS, strict=True) if name)
        self._note = note
        self._claims: dict[ObjectKey, frozenset[DeviceId]] = {}
        self._classes_of: dict[ObjectKey, frozenset[str]] = {}
        self._node_of: dict[ObjectKey, str] = {}
        self._slices: dict[str, _PlacedSlice] = {}
        self._pools: dict[PoolId, dict[str, _PlacedSlice]] = {}
        self._rules: dict[str, outlines.SelectorOutline | None] = {}
        # Of the namespace: the devices and classes of its claims, and the nodes of its pods.
        self._held: Counter[DeviceId] = Counter()
        self._classes: Counter[str] = Counter()
        self._nodes: Counter[str] = Counter()
        # The pools of the node, with the number of their slices that name it.
        self._pools_there: Counter[PoolId] = Counter()

    def touches(self, event: Event, entry: Entry | None) -> bool:
        """Applies the event, and returns whether it concerns all that the scope names.

        That is what its object concerned before or concerns now, and its subject.
        """
        key = event.key
        concern = self._concern_of(key)
        if event.is_about_object:
            self.fold(event)
        concern |= self._concern_of(key)
        if entry is not None and entry.subject != key:
            concern |= self._concern_of(entry.subject)
        return concern & self._wanted == self._wanted

    def _concern_of(self, key: ObjectKey) -> int:
        """The parts of the scope that an object concerns in the present state."""
        concern = _NAMESPACE if self._namespace and key.namespace == self._namespace else 0
        match key.resource:
            case "resourceclaims":
                devices = self._claims.get(key, frozenset())
                if any(device[:2] in self._pools_there for device in devices):
                    concern |= _NODE
                if self._has_device(devices):
                    concern |= _DEVICE
            case "pods":
                if self._node and self._node_of.get(key) == self._node:
                    concern |= _NODE
            case "resourceslices" if key.name in self._slices:
                concern |= self._concern_of_slice(self._slices[key.name])
            case "devicetaintrules" if self._rules.get(key.name) is not None:
                selector = self._rules[key.name]
                assert selector is not None, "looked at above"
                concern |= self._concern_of_rule(selector)
            case "namespaces" if not key.group and key.name == self._namespace:
                concern |= _NAMESPACE
            case "nodes":
                if key.name in self._nodes:
                    concern |= _NAMESPACE
                if key.name == self._node:
                    concern |= _NODE
            case "deviceclasses" if key.name in self._classes:
                concern |= _NAMESPACE
        return concern

    def _concern_of_slice(self, part: _PlacedSlice) -> int:
        concern = 0
        if self._held and any((*part.pool, name) in self._held for name in part.names):
            concern |= _NAMESPACE
        is_in_pool = bool(part.names) and part.pool in self._pools_there
        if part.node == self._node if part.node else is_in_pool:
            concern |= _NODE
        if self._device and self._has_device((*part.pool, name) for name in part.names):
            concern |= _DEVICE
        return concern

    def _concern_of_rule(self, selector: outlines.SelectorOutline) -> int:
        """The parts of the scope to which a device belongs that a rule selects and a slice has."""
        concern = 0
        if any(_selects(selector, device) and self._is_published(device) for device in self._held):
            concern |= _NAMESPACE
        there = (part for pool in self._pools_there for part in self._pools[pool].values())
        if any(_selected(selector, part) for part in there):
            concern |= _NODE
        if self._device and any(
            self._has_device(_selected(selector, part)) for part in self._slices.values()
        ):
            concern |= _DEVICE
        return concern

    def _has_device(self, devices: Iterable[DeviceId]) -> bool:
        """Whether the device of the scope is among some."""
        wanted = self._device
        return bool(wanted) and any(_is_device(wanted, "/".join(device)) for device in devices)

    def _is_published(self, device: DeviceId) -> bool:
        parts = self._pools.get(device[:2], {}).values()
        return any(device[2] in part.names for part in parts)

    def fold(self, event: Event) -> None:
        """Applies an event about an object."""
        key = event.key
        is_gone = event.type is EventType.OBJECT_DELETED
        if (key.group, key.resource) == api_resources.PODS:
            if self._node or key.namespace == self._namespace:
                self._fold_pod(event, is_gone=is_gone)
        elif (key.group, key.resource) == api_resources.NODES:
            self._note("node", key.name)
        elif key.group == api_groups.RESOURCE:
            match key.resource:
                case "resourceclaims":
                    if self._node or self._device or key.namespace == self._namespace:
                        self._fold_claim(event, is_gone=is_gone)
                case "resourceslices":
                    self._fold_slice(event, is_gone=is_gone)
                case "devicetaintrules":
                    self._rules[key.name] = outlines.rule(event.body).spec.device_selector
                    if is_gone:
                        del self._rules[key.name]

    def _fold_pod(self, event: Event, *, is_gone: bool) -> None:
        """Takes in the node of a pod; a pod that lost it or is deleted was there nevertheless."""
        key = event.key
        node = outlines.pod(event.body).spec.node_name
        self._note("node", node)
        before = self._node_of.get(key, "")
        after = "" if is_gone else node or before
        if before != after:
            if key.namespace == self._namespace:
                _move(self._nodes, (before,) if before else (), (after,) if after else ())
            if after:
                self._node_of[key] = after
            else:
                del self._node_of[key]

    def _fold_claim(self, event: Event, *, is_gone: bool) -> None:
        key = event.key
        allocation = outlines.claim(event.body).status.allocation
        results = () if allocation is None else allocation.devices.results
        devices = frozenset(result.id for result in results)
        for device in devices if self._device else ():
            self._note("device", "/".join(device))
        before = self._claims.pop(key, frozenset())
        if devices and not is_gone:
            self._claims[key] = devices
        if key.namespace == self._namespace:
            _move(self._held, before, () if is_gone else devices)
            classes = frozenset() if is_gone else frozenset(_classes(event))
            _move(self._classes, self._classes_of.pop(key, ()), classes)
            if classes:
                self._classes_of[key] = classes

    def _fold_slice(self, event: Event, *, is_gone: bool) -> None:
        name = event.key.name
        spec = outlines.slice(event.body).spec
        names = frozenset(device.name for device in spec.devices)
        part = _PlacedSlice((spec.driver, spec.pool.name), names, spec.node_name)
        for device in names if self._device else ():
            self._note("device", "/".join((*part.pool, device)))
        self._note("node", spec.node_name)
        before = self._slices.pop(name, None)
        if before is not None:
            parts = self._pools[before.pool]
            del parts[name]
            if not parts:
                del self._pools[before.pool]
        if not is_gone:
            self._slices[name] = part
            self._pools.setdefault(part.pool, {})[name] = part
        _move(self._pools_there, self._there(before), () if is_gone else self._there(part))

    def _there(self, part: _PlacedSlice | None) -> tuple[PoolId, ...]:
        """The pool of a slice that names the node of the scope."""
        return (part.pool,) if part is not None and self._node and part.node == self._node else ()


USED_KINDS = (
    api_resources.NODES,
    api_resources.PODS,
    api_resources.RESOURCE_CLAIMS,
    api_resources.RESOURCE_SLICES,
    api_resources.DEVICE_TAINT_RULES,
)
"""The kinds of objects by which namespaces, nodes and devices belong together."""

_NAMESPACE, _NODE, _DEVICE = _PARTS = (1, 2, 4)
"""The parts of a scope that an object can concern, as bits."""


def _move(counts: Counter[_Counted], before: Iterable[_Counted], after: Iterable[_Counted]) -> None:
    """Counts what came instead of what went; what is not there any more is no key."""
    counts.update(after)
    for each in before:
        if counts[each] > 1:
            counts[each] -= 1
        else:
            del counts[each]


def _selected(selector: outlines.SelectorOutline, part: _PlacedSlice) -> list[DeviceId]:
    """The devices of a slice that a rule selects."""
    return [device for name in part.names if _selects(selector, device := (*part.pool, name))]


def _selects(selector: outlines.SelectorOutline, device: DeviceId) -> bool:
    driver, pool, name = device
    return (
        selector.driver in ("", driver)
        and selector.pool in ("", pool)
        and selector.device in ("", name)
    )


class Selector:
    """Selects events of one history; requires all of them, in order."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._known: dict[str, dict[str, None]] = {"kind": dict.fromkeys(KINDS)}
        self._uses = _Uses(scope, self._note) if scope.needs_uses else None
        self._labelled = None
        if scope.labels:
            self._labelled = LabelledObjects(scope.labels, claims_of_pods=scope.claims_of_pods)

    def begin(self, last: Iterable[Event]) -> None:
        """Takes in the last events of the objects of USED_KINDS before the first event."""
        for event in last:
            self._note("namespace", event.key.namespace)
            if self._uses is not None:
                self._uses.fold(event)

    def select(self, events: Iterable[Event], entries: Iterable[Entry]) -> list[Entry]:
        """Applies the next events; returns those of their entries that are within the scope."""
        if self._uses is None and self._labelled is None:
            return [entry for entry in entries if self._has(entry)]
        made = {entry.revision: entry for entry in entries}
        selected: list[Entry] = []
        for event in events:
            entry = made.get(event.revision)
            touches = self._touches(event, entry)
            if entry is not None and self._has(entry) and touches:
                selected.append(entry)
        return selected

    def _touches(self, event: Event, entry: Entry | None) -> bool:
        """Applies the event, and returns whether it concerns what the scope names."""
        touches = self._uses is None or self._uses.touches(event, entry)
        if self._labelled is not None:
            for name, value in self._labelled.fold(event).items():
                self._note("label selector", f"{name}={value}")
            touches &= self._labelled.takes(event, entry)
        return touches

    def _has(self, entry: Entry) -> bool:
        """Whether the entry itself is within the scope; its names are known from now on."""
        scope, subject = self._scope, entry.subject
        self._note("kind", entry.kind)
        is_namespace = subject[:2] == api_resources.NAMESPACES
        self._note("namespace", subject.name if is_namespace else subject.namespace)
        self._note("name", subject.name)
        author = records.shown_author(entry.actor, entry.kind)
        self._note("author", author)
        self._note("author", author.rpartition(":")[2])
        return (
            scope.has_moment(Instant(entry.time), entry.revision)
            and (not scope.kinds or entry.kind in scope.kinds)
            and (not scope.resource or subject[:2] == (scope.group, scope.resource))
            and scope.name in ("", subject.name)
            and scope.place in ("", subject.namespace)
            and scope.author.lower() in author.lower()
        )

    def check(self) -> None:
        """Raises InputError for a name that never occurs in the history, with the nearest names."""
        for noun, name in self._unknown():
            raise InputError(
                f"{noun} {name!r} does not occur in the history",
                cure=nearest(name, self._known.get(noun, {})) or "leave it out to see all",
            )

    @property
    def knows_all_names(self) -> bool:
        """Whether every wanted name has occurred in the events so far."""
        return not any(self._unknown())

    def _unknown(self) -> Iterator[tuple[str, str]]:
        """The wanted names that have not occurred, each with its noun."""
        scope = self._scope
        wanted = [("kind", kind) for kind in sorted(scope.kinds)]
        wanted += [("namespace", scope.namespace or scope.place), ("name", scope.name)]
        wanted += [("node", scope.node), ("device", scope.device), ("author", scope.author)]
        wanted += [("label selector", scope.labels)]
        yield from (each for each in wanted if each[1] and not self._is_known(*each))

    def _is_known(self, noun: str, name: str) -> bool:
        known = self._known.get(noun, {})
        if noun == "label selector" and self._labelled is not None:
            return self._labelled.has_matched
        if noun == "author":
            return any(name.lower() in each.lower() for each in known)
        return any(_is_device(name, each) for each in known) if noun == "device" else name in known

    def _note(self, noun: str, name: str) -> None:
        if name:
            self._known.setdefault(noun, {})[name] = None


def _classes(event: Event) -> Iterator[str]:
    for request in dra.requests(event.object):
        asks = (request.exactly, *request.first_available)
        yield from (ask.device_class_name for ask in asks if ask and ask.device_class_name)


def no_kind(word: str, place: str = "") -> InputError:
    """The error for a word that is not a kind, with the nearest names."""
    names = [name for kind in registry.kinds() for name in (kind.singular, kind.plural) if name]
    return InputError(
        f"there is no kind {word!r}",
        place=place,
        cure=nearest(word.lower(), dict.fromkeys(names)) or "write it as pod/NAME, claim/NAME, …",
    )


def nearest(name: str, known: Iterable[str]) -> str:
    """`do you mean …?` with the most similar known names; empty when none is similar."""
    return f"do you mean {' or '.join(names)}?" if (names := alike(name, known)) else ""


def alike(name: str, known: Iterable[str], *, compared_max: int = COMPARED_MAX) -> list[str]:
    """The known names most similar to a name, at most NEAREST_MAX.

    At most `compared_max` are compared letter by letter. If there are more, names with the same
    letters come first, then those with the longest common beginning and nearly the same length.
    """
    names = list(known)
    compared = _likeliest(name, names, compared_max) if len(names) > compared_max else names
    least = 0.6 if len(name) > 2 else 0.5  # 99 % of names with two wrong letters of five have 0.6
    close = difflib.get_close_matches(name, compared, n=NEAREST_MAX, cutoff=least)
    return close or heapq.nsmallest(
        NEAREST_MAX, (one for one in names if name.lower() in one.lower())
    )


def _likeliest(name: str, names: Iterable[str], count: int) -> list[str]:
    letters = sorted(name)

    def unlikeness(other: str) -> tuple[bool, int, int]:
        is_same = len(other) == len(name) and sorted(other) == letters
        pairs = zip(name, other, strict=False)
        begins = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        return not is_same, -begins, abs(len(other) - len(name))

    return heapq.nsmallest(count, names, key=unlikeness)


def _is_device(wanted: str, device: str) -> bool:
    """Whether a name matches a device by its full name or by its end: `gpu-0`, `pool/gpu-0`."""
    return device == wanted or device.endswith(f"/{wanted}")
