"""The scope of a question: the part of a history by time, kinds, object, device or node.

An event of a cluster-scoped kind (a node, a slice, a rule, a class) belongs to a namespace when it
touches one of its pods: the pod's node, a device of a claim that it uses, or the class of one. So
does an event about the Namespace itself. The uses are folded along with the events, so that an
event is judged by the state at its revision.
"""

import difflib
import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile

from app.domain.errors import InputError
from app.domain.log import Event, EventType, ObjectKey
from app.domain.objects import registry
from app.domain.values import api_groups, api_resources, selectors
from app.domain.values.fields import dra, meta
from app.domain.values.identifiers import DeviceId, DeviceName, PoolId
from app.domain.values.timestamps import Instant
from projections import outlines
from projections.timeline import Entry

NEAREST_MAX = 3
"""The number of names suggested for an unknown one."""

COMPARED_MAX = 200
"""The number of names compared letter by letter with an unknown one; see the setting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The scope; empty fields match everything. Instants and revisions are inclusive.

    `resource`, `name` and `place` (its namespace) are those of the subject. `device` is
    `driver/pool/name` or the end of that. `kinds` are words of the timeline such as `PodScheduled`.
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
    labels: str = ""
    claims_of_pods: bool = True

    @property
    def needs_uses(self) -> bool:
        """Whether judging an event requires the folded uses."""
        return bool(self.namespace or self.device or self.node)

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


@dataclass(slots=True, kw_only=True)
class _ClaimScope:
    """The namespace, the classes and the devices of a claim."""

    namespace: str
    classes: frozenset[str]
    devices: frozenset[DeviceId]


class Selector:
    """Selects events of one history; requires all of them, in order."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._claims: dict[ObjectKey, _ClaimScope] = {}
        self._nodes: dict[ObjectKey, str] = {}
        self._pools: dict[str, tuple[PoolId, frozenset[DeviceName], str]] = {}
        self._rules: dict[str, outlines.SelectorOutline | None] = {}
        self._known: dict[str, dict[str, None]] = {}
        self._labelled = (
            LabelledObjects(scope.labels, claims_of_pods=scope.claims_of_pods)
            if scope.labels
            else None
        )

    def takes(self, event: Event, entry: Entry | None) -> bool:
        """Applies the event, and returns whether its entry is within the scope."""
        scope = self._scope
        touches = not scope.needs_uses
        if scope.needs_uses:
            touches = self._touches(event, entry)
        if self._labelled is not None:
            for name, value in self._labelled.fold(event).items():
                self._note("label selector", f"{name}={value}")
            touches &= self._labelled.takes(event, entry)
        if entry is None:
            return False
        subject = entry.subject
        self._note("kind", entry.kind)
        is_namespace = subject[:2] == api_resources.NAMESPACES
        self._note("namespace", subject.name if is_namespace else subject.namespace)
        self._note("name", subject.name)
        return (
            touches
            and scope.has_moment(Instant(entry.time), entry.revision)
            and (not scope.kinds or entry.kind in scope.kinds)
            and scope.resource in ("", subject.resource)
            and (not scope.resource or scope.group == subject.group)
            and scope.name in ("", subject.name)
            and scope.place in ("", subject.namespace)
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
        wanted += [("node", scope.node), ("device", scope.device)]
        wanted += [("label selector", scope.labels)]
        for noun, name in wanted:
            if name and not self._is_known(noun, name):
                yield noun, name

    def _is_known(self, noun: str, name: str) -> bool:
        known = self._known.get(noun, {})
        if self._labelled is not None and noun == "label selector":
            return self._labelled.has_matched
        if noun != "device":
            return name in known
        return any(_is_device(name, each) for each in known)

    def _note(self, noun: str, name: str) -> None:
        if name:
            self._known.setdefault(noun, {})[name] = None

    def _touches(self, event: Event, entry: Entry | None) -> bool:
        """Whether the event concerns the namespace, the device and the node."""
        before = self._concerned(event.key)
        if event.is_about_object:
            self._fold(event)
        after = self._concerned(event.key)
        keys = [event.key] if entry is None else [event.key, entry.subject]
        about = None if entry is None else self._concerned(entry.subject)
        namespaces, devices, nodes = (
            set().union(*(getattr(part, name) for part in (before, after, about) if part))
            for name in ("namespaces", "devices", "nodes")
        )
        scope = self._scope
        namespaces |= {key.namespace for key in keys}
        nodes |= {key.name for key in keys if (key.group, key.resource) == api_resources.NODES}
        return (
            (not scope.namespace or scope.namespace in namespaces)
            and (not scope.node or scope.node in nodes)
            and (not scope.device or any(_is_device(scope.device, "/".join(d)) for d in devices))
        )

    def _concerned(self, key: ObjectKey) -> "_Concerned":
        """The devices, nodes and namespaces that an object concerns in the present state."""
        match key.resource:
            case "resourceclaims":
                claim = self._claims.get(key)
                devices = frozenset() if claim is None else claim.devices
                return _Concerned(devices=devices, nodes=frozenset(self._nodes_of(devices)))
            case "pods":
                node = self._nodes.get(key, "")
                return _Concerned(nodes=frozenset((node,)) if node else frozenset())
            case "resourceslices" if key.name in self._pools:
                pool, names, node = self._pools[key.name]
                devices = frozenset((*pool, name) for name in names)
                return self._of_devices(devices, node)
            case "devicetaintrules" if self._rules.get(key.name) is not None:
                selector = self._rules[key.name]
                assert selector is not None, "looked at above"
                return self._of_devices(frozenset(self._selected(selector)), "")
            case "namespaces" if not key.group:
                return _Concerned(namespaces=frozenset((key.name,)))
            case "nodes":
                pods = {pod.namespace for pod, node in self._nodes.items() if node == key.name}
                return _Concerned(namespaces=frozenset(pods), nodes=frozenset((key.name,)))
            case "deviceclasses":
                users = {one.namespace for one in self._claims.values() if key.name in one.classes}
                return _Concerned(namespaces=frozenset(users))
            case _:
                return _Concerned()

    def _of_devices(self, devices: frozenset[DeviceId], node: str) -> "_Concerned":
        users = {
            claim.namespace
            for claim in self._claims.values()
            if not claim.devices.isdisjoint(devices)
        }
        nodes = {node} if node else set(self._nodes_of(devices))
        return _Concerned(devices=devices, nodes=frozenset(nodes), namespaces=frozenset(users))

    def _nodes_of(self, devices: Iterable[DeviceId]) -> Iterator[str]:
        pools = {device[:2] for device in devices}
        for pool, _, node in self._pools.values():
            if node and pool in pools:
                yield node

    def _selected(self, selector: outlines.SelectorOutline) -> Iterator[DeviceId]:
        for pool, names, _ in self._pools.values():
            if selector.driver in ("", pool[0]) and selector.pool in ("", pool[1]):
                for name in names:
                    if selector.device in ("", name):
                        yield (*pool, name)

    def _fold(self, event: Event) -> None:
        key = event.key
        is_gone = event.type is EventType.OBJECT_DELETED
        if (key.group, key.resource) == api_resources.PODS:
            node = outlines.pod(event.body).spec.node_name
            self._note("node", node)
            # A deleted pod still concerns its node: its deletion happened there.
            if node:
                self._nodes[key] = node
            if is_gone:
                self._nodes.pop(key, None)
        elif (key.group, key.resource) == api_resources.NODES:
            self._note("node", key.name)
        elif key.group == api_groups.RESOURCE:
            self._fold_devices(event, is_gone=is_gone)

    def _fold_devices(self, event: Event, *, is_gone: bool) -> None:
        key = event.key
        match key.resource:
            case "resourceclaims":
                allocation = outlines.claim(event.body).status.allocation
                results = () if allocation is None else allocation.devices.results
                devices = frozenset(result.id for result in results)
                for device in devices:
                    self._note("device", "/".join(device))
                self._claims[key] = _ClaimScope(
                    namespace=key.namespace, classes=frozenset(_classes(event)), devices=devices
                )
                if is_gone:
                    del self._claims[key]
            case "resourceslices":
                spec = outlines.slice(event.body).spec
                names = frozenset(device.name for device in spec.devices)
                pool = (spec.driver, spec.pool.name)
                for name in names if self._scope.device else ():
                    self._note("device", "/".join((*pool, name)))
                self._note("node", spec.node_name)
                self._pools[key.name] = (pool, names, spec.node_name)
                if is_gone:
                    del self._pools[key.name]
            case "devicetaintrules":
                self._rules[key.name] = outlines.rule(event.body).spec.device_selector
                if is_gone:
                    del self._rules[key.name]


def _classes(event: Event) -> Iterator[str]:
    for request in dra.requests(event.object):
        for ask in (request.exactly, *request.first_available):
            if ask is not None and ask.device_class_name:
                yield ask.device_class_name


@dataclass(frozen=True, slots=True, kw_only=True)
class _Concerned:
    devices: frozenset[DeviceId] = frozenset()
    nodes: frozenset[str] = frozenset()
    namespaces: frozenset[str] = frozenset()


def no_kind(word: str, place: str = "") -> InputError:
    """The error for a word that is not a kind, with the nearest names."""
    names = [name for kind in registry.kinds() for name in (kind.singular, kind.plural) if name]
    return InputError(
        f"there is no kind {word!r}",
        place=place,
        cure=nearest(word.lower(), names) or "write it as pod/NAME, claim/NAME, …",
    )


def nearest(name: str, known: Iterable[str]) -> str:
    """`do you mean …?` with the most similar known names; empty when none is similar."""
    names = alike(name, known)
    return f"do you mean {' or '.join(names)}?" if names else ""


def alike(name: str, known: Iterable[str], *, compared_max: int = COMPARED_MAX) -> list[str]:
    """The known names most similar to a name, at most NEAREST_MAX.

    At most `compared_max` are compared letter by letter. If there are more, names with the same
    letters come first, then those with the longest common beginning and nearly the same length.
    """
    names = list(known)
    compared = _likeliest(name, names, compared_max) if len(names) > compared_max else names
    close = difflib.get_close_matches(name, compared, n=NEAREST_MAX, cutoff=0.5)
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
