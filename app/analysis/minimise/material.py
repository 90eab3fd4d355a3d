"""The parts of a history, for code that leaves some out: steps, and their dependencies.

A step is one write. It needs the step that created its object, and the objects that it names: a
claim its class, a pod its claims, its template and its node, an allocation its pool, everything its
namespace. Leaving out an object also leaves out what needs it, so that no candidate names a missing
object.
"""

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

import msgspec

from app.analysis.minimise import trees
from app.analysis.minimise.trees import Number, Path
from app.analysis.replay.inputs import Input
from app.domain.log import Event, EventType, ObjectKey
from app.domain.log.chain import canonical_json
from app.domain.values import api_resources
from app.domain.values.fields import core, dra, meta
from app.domain.values.identifiers import Uid
from app.domain.values.json_tree import JsonView
from app.domain.values.timestamps import Instant

END = -1
"""The number of the end of the history, which is not a step but follows an interval of time."""

CLOSED = 1_000
"""The microseconds that remain of a shortened interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """The parts of the material that a candidate contains.

    `kept` are the numbers of its steps, `cuts` the removed parts of objects, `values` the changed
    numbers in objects, `closed` the steps whose preceding interval is shortened, `off` the
    controllers that do not run. `until` is the instant, in the material, at which the history ends.
    `absent` are the objects that were left out alone: others may name them all the same.
    """

    kept: frozenset[int]
    until: Instant
    cuts: frozenset[tuple[ObjectKey, Path]] = frozenset()
    values: frozenset[tuple[ObjectKey, Path, Number]] = frozenset()
    closed: frozenset[int] = frozenset()
    off: frozenset[str] = frozenset()
    absent: frozenset[ObjectKey] = frozenset()


Device: TypeAlias = tuple[str, str, str]
"""A device: driver, pool, name."""

Changes: TypeAlias = tuple[frozenset[Path], frozenset[tuple[Path, Number]]]
"""The parts cut from an object, and its changed numbers."""

_COUNT: Path = ("spec", "pool", "resourceSliceCount")
"""The number of slices of its pool, in a slice."""

_WHOLE: Changes = (frozenset(), frozenset())


@dataclass(frozen=True, kw_only=True)
class Material:
    """The steps of a history in their order, numbered from 0 on.

    `made` are recorded creations by controllers, which provide generated names. With `is_recorded`,
    steps are taken unchanged and nothing is decided; each state then needs everything that it
    names, not only the part that its writer set.
    """

    steps: Sequence[Input]
    made: Sequence[Event] = ()
    is_recorded: bool = False
    _needs: dict[tuple[int, frozenset[Path]], frozenset[ObjectKey]] = field(default_factory=dict)
    _digests: dict[tuple[int, Changes, int], bytes] = field(default_factory=dict)

    @cached_property
    def by_key(self) -> Mapping[ObjectKey, Sequence[int]]:
        """The steps of each object, in order."""
        numbers: dict[ObjectKey, list[int]] = defaultdict(list)
        for number, step in enumerate(self.steps):
            numbers[step.event.key].append(number)
        return numbers

    @cached_property
    def _keys(self) -> Mapping[Uid, ObjectKey]:
        """The objects by uid, without those of which it was not recorded."""
        keys = {event.uid: event.key for event in self.made}
        keys |= {step.event.uid: step.event.key for step in self.steps}
        keys.pop(Uid(""), None)
        return keys

    @cached_property
    def _pools(self) -> Mapping[tuple[str, str], frozenset[ObjectKey]]:
        slices: dict[tuple[str, str], set[ObjectKey]] = defaultdict(set)
        for step in self.steps:
            if is_of(step.event.key, api_resources.RESOURCE_SLICES):
                slices[dra.pool_id(step.event.object)].add(step.event.key)
        return {place: frozenset(keys) for place, keys in slices.items()}

    def keys(self, candidate: Candidate) -> list[ObjectKey]:
        """The objects of a candidate, in the order of their first steps."""
        return list(dict.fromkeys(self.steps[n].event.key for n in sorted(candidate.kept)))

    def began(self, key: ObjectKey) -> Instant:
        """The instant at which an object was first written."""
        return self.steps[self.by_key[key][0]].time

    def ended(self, key: ObjectKey) -> Instant | None:
        """The instant at which an object was deleted; None when it exists at the end."""
        last = self.steps[self.by_key[key][-1]]
        return last.time if last.event.type is EventType.OBJECT_DELETED else None

    def slices_of(self, driver: str, pool: str) -> frozenset[ObjectKey]:
        """The slices of a pool, of all its generations."""
        return self._pools.get((driver, pool), frozenset())

    def devices(self, candidate: Candidate) -> Mapping[Device, frozenset[tuple[ObjectKey, Path]]]:
        """The devices that the slices of a candidate publish, with the parts that are these."""
        parts: dict[Device, set[tuple[ObjectKey, Path]]] = defaultdict(set)
        for number in sorted(candidate.kept):
            event = self.steps[number].event
            if is_of(event.key, api_resources.RESOURCE_SLICES):
                place = dra.pool_id(event.object)
                for path, device in trees.items(event.object, ("spec", "devices")):
                    parts[*place, str(device.get("name"))].add((event.key, path))
        return {device: frozenset(those) for device, those in parts.items()}

    def holders(self, devices: Collection[Device]) -> frozenset[ObjectKey]:
        """The claims that were given one of these devices, according to any of their states."""
        return frozenset().union(*(self._holders.get(device, ()) for device in devices))

    def devices_given_to(self, claims: Collection[ObjectKey]) -> Set[Device]:
        """The devices that one of these claims was given, according to any of its states."""
        return {device for device, keys in self._holders.items() if not keys.isdisjoint(claims)}

    def sharing(self, devices: Set[Device]) -> Set[Device]:
        """These devices, and those that consume counters of the same sets."""
        sets = {each for device in devices for each in self._counter_sets.get(device, ())}
        return devices | {
            device for device, mine in self._counter_sets.items() if not mine.isdisjoint(sets)
        }

    @cached_property
    def _counter_sets(self) -> Mapping[Device, set[tuple[str, str, str]]]:
        """The counter sets that each device consumes: driver, pool, name."""
        sets: dict[Device, set[tuple[str, str, str]]] = defaultdict(set)
        for step in self.steps:
            if is_of(step.event.key, api_resources.RESOURCE_SLICES):
                place = dra.pool_id(step.event.object)
                for device in dra.devices(step.event.object):
                    for each in dra.consumptions(device):
                        name = str(each.get("counterSet"))
                        sets[*place, str(device.get("name"))].add((*place, name))
        return sets

    @cached_property
    def _holders(self) -> Mapping[Device, set[ObjectKey]]:
        holders: dict[Device, set[ObjectKey]] = defaultdict(set)
        for step in self.steps:
            if is_of(step.event.key, api_resources.RESOURCE_CLAIMS):
                for result in dra.results(step.event.object):
                    holders[result.driver, result.pool, result.device].add(step.event.key)
        return holders

    def without(self, candidate: Candidate, numbers: Iterable[int]) -> Candidate:
        """The candidate without these steps, and without everything that needs them."""
        kept = candidate.kept - frozenset(numbers)
        cuts = _cuts_by_key(candidate)
        while True:
            there = {self.steps[number].event.key for number in kept if self._is_creation(number)}
            gone = {
                number
                for number in kept
                if self._lacks_creation(number, kept)
                or any(
                    key in self._creations and key not in there and key not in candidate.absent
                    for key in self.needs(number, cuts.get(self.steps[number].event.key))
                )
            }
            if not gone:
                return replace(candidate, kept=kept)
            kept -= gone

    def without_alone(self, candidate: Candidate, keys: Collection[ObjectKey]) -> Candidate:
        """The candidate without these objects, but with those that name them."""
        absent = candidate.absent | frozenset(keys)
        return self.without(replace(candidate, absent=absent), numbers_of(self, keys))

    def shared_pools(self, candidate: Candidate) -> list[ObjectKey]:
        """The slices of a candidate that are not alone in their pool, pool by pool."""
        there = set(self.keys(candidate))
        pools = [sorted(slices & there) for slices in self._pools.values()]
        return [key for slices in pools if len(slices) > 1 for key in slices]

    def without_slices(self, candidate: Candidate, keys: Collection[ObjectKey]) -> Candidate:
        """The candidate without these slices; those that stay in their pools count fewer.

        A pool that lacks a slice is incomplete, so that none of its devices can be allocated.
        """
        smaller = self.without(candidate, numbers_of(self, keys))
        left = set(self.keys(smaller))
        values = {(key, path): value for key, path, value in candidate.values}
        for slices in self._pools.values():
            gone = len(slices.intersection(keys))
            for key in slices & left if gone else ():
                last = self.steps[max(smaller.kept.intersection(self.by_key[key]))].event
                count = values.get((key, _COUNT), dra.pool(last.object).resource_slice_count)
                values[key, _COUNT] = max(1, int(count) - gone)
        return replace(
            smaller, values=frozenset((*place, value) for place, value in values.items())
        )

    def needed_by(self, keys: Iterable[ObjectKey]) -> frozenset[ObjectKey]:
        """These objects with everything that they need, directly or indirectly."""
        needed: set[ObjectKey] = set()
        waiting = list(keys)
        while waiting:
            key = waiting.pop()
            if key in needed:
                continue
            needed.add(key)
            for number in self.by_key.get(key, ()):
                waiting += self.needs(number) - needed
        return frozenset(needed)

    def with_events(self, keys: Set[ObjectKey]) -> Set[ObjectKey]:
        """These objects with the Kubernetes Events about them."""
        return keys | {event for event, subject in self._subjects.items() if subject in keys}

    @cached_property
    def _subjects(self) -> Mapping[ObjectKey, ObjectKey]:
        """The objects that Kubernetes Events are about, by the keys of the Events."""
        return {
            key: subject
            for key, numbers in self.by_key.items()
            if is_of(key, api_resources.EVENTS)
            for subject in _named_by_event(self.steps[numbers[0]].event.object, self._keys)
        }

    def needs(self, number: int, cuts: frozenset[Path] | None = None) -> frozenset[ObjectKey]:
        """The objects that a step names and that must exist before it."""
        place = (number, cuts or frozenset())
        if place not in self._needs:
            step = self.steps[number]
            tree = trees.without(step.event.object, place[1])
            is_whole = self.is_recorded or step.event.type is EventType.OBJECT_CREATED
            self._needs[place] = frozenset(self._named(step.event.key, tree, is_whole=is_whole))
        return self._needs[place]

    def inputs(self, candidate: Candidate) -> list[Input]:
        """The steps of a candidate, with its cuts, at their instants."""
        changes = _changes(candidate)
        return [
            self._changed(number, at, changes.get(self.steps[number].event.key, _WHOLE))
            for number, at in self._times(candidate)
            if number != END
        ]

    def end(self, candidate: Candidate) -> Instant:
        """The instant at which a candidate ends."""
        return Instant(dict(self._times(candidate))[END])

    def digest(self, candidate: Candidate) -> str:
        """The digest of a candidate's content: equal candidates have equal digests."""
        changes = _changes(candidate)
        total = hashlib.sha256(canonical_json([sorted(candidate.off), self.is_recorded]))
        for number, at in self._times(candidate):
            if number == END:
                total.update(str(at).encode())
            else:
                change = changes.get(self.steps[number].event.key, _WHOLE)
                total.update(self._step_digest(number, at, change))
        return total.hexdigest()

    def _step_digest(self, number: int, at: int, changes: Changes) -> bytes:
        place = (number, changes, at)
        if place not in self._digests:
            step = self._changed(number, at, changes)
            event = step.event
            content = [number, at, step.author, event.type, event.stamp.verb, *event.key]
            content += [step.before, event.object]
            self._digests[place] = hashlib.sha256(canonical_json(content)).digest()
        return self._digests[place]

    def _times(self, candidate: Candidate) -> Iterator[tuple[int, int]]:
        """The steps of a candidate with their instants, and the end."""
        last: int | None = None
        at = 0
        for number in (*sorted(candidate.kept), END):
            time = max(candidate.until, last or 0) if number == END else self.steps[number].time
            if last is None:
                at = time
            else:
                gap = max(0, time - last)
                at += min(gap, CLOSED) if number in candidate.closed else gap
            last = time
            yield number, at

    def _changed(self, number: int, at: int, changes: Changes) -> Input:
        step = self.steps[number]
        earlier = step.time - at
        if changes == _WHOLE and not earlier:
            return step
        cuts, values = changes[0], dict(changes[1])
        event, before = step.event, step.before
        tree = trees.shifted(trees.without(event.object, cuts, values), earlier)
        if before is not None:
            before = trees.shifted(trees.without(before, cuts, values), earlier)
        fresh = msgspec.structs.replace(event, body=canonical_json(tree), tree=tree)
        return replace(step, event=fresh, before=before, time=Instant(at))

    def _is_creation(self, number: int) -> bool:
        step = self.steps[number]
        return step.before is None or step.event.type is EventType.OBJECT_CREATED

    @cached_property
    def _creations(self) -> Mapping[ObjectKey, Mapping[str, Sequence[int]]]:
        """The steps that create objects, by key and uid; none for those of controllers."""
        creations: dict[ObjectKey, dict[str, list[int]]] = defaultdict(dict)
        for number, step in enumerate(self.steps):
            if self._is_creation(number):
                creations[step.event.key].setdefault(step.event.uid, []).append(number)
        return creations

    def _lacks_creation(self, number: int, kept: frozenset[int]) -> bool:
        """Whether the step is about an object whose creation is left out."""
        event = self.steps[number].event
        makers = self._creations.get(event.key, {}).get(event.uid, ())
        return bool(makers) and not any(each in kept for each in makers)

    def _named(self, key: ObjectKey, tree: JsonView, *, is_whole: bool) -> Iterator[ObjectKey]:
        if key.namespace:
            yield ObjectKey(*api_resources.NAMESPACES, "", key.namespace)
        for owner in meta.owners(tree):
            if owner.uid in self._keys:
                yield self._keys[owner.uid]
        if not is_whole:
            return
        match key[:2]:
            case api_resources.PODS:
                yield from _named_by_pod(key, tree, is_whole=self.is_recorded)
            case api_resources.RESOURCE_CLAIMS:
                yield from _classes(tree)
                for result in dra.results(tree):
                    yield from self.slices_of(result.driver, result.pool)
                for consumer in dra.consumers(tree):
                    if consumer.resource == "pods":
                        yield ObjectKey(*api_resources.PODS, key.namespace, consumer.name)
            case api_resources.RESOURCE_CLAIM_TEMPLATES:
                yield from _classes(meta.spec(tree))
            case api_resources.RESOURCE_SLICES if node := dra.node_name(tree):
                yield ObjectKey(*api_resources.NODES, "", node)
            case api_resources.EVENTS:
                yield from _named_by_event(tree, self._keys)


def is_of(key: ObjectKey, resource: tuple[str, str]) -> bool:
    """Whether an object is of a kind, given as group and resource."""
    return (key.group, key.resource) == resource


def devices_of(steps: Iterable[Input]) -> int:
    """The number of devices that the slices of these steps publish."""
    devices = {
        (step.event.key.name, str(device.get("name")))
        for step in steps
        if is_of(step.event.key, api_resources.RESOURCE_SLICES)
        for device in dra.devices(step.event.object)
    }
    return len(devices)


def _named_by_pod(key: ObjectKey, tree: JsonView, *, is_whole: bool) -> Iterator[ObjectKey]:
    if node := core.node_name(tree):
        yield ObjectKey(*api_resources.NODES, "", node)
    for entry in core.resource_claims(tree):
        if name := entry.get("resourceClaimName"):
            yield ObjectKey(*api_resources.RESOURCE_CLAIMS, key.namespace, str(name))
        if name := entry.get("resourceClaimTemplateName"):
            yield ObjectKey(*api_resources.RESOURCE_CLAIM_TEMPLATES, key.namespace, str(name))
    if is_whole:
        for entry in core.resource_claim_statuses(tree):
            if name := entry.get("resourceClaimName"):
                yield ObjectKey(*api_resources.RESOURCE_CLAIMS, key.namespace, str(name))


def _named_by_event(tree: JsonView, keys: Mapping[Uid, ObjectKey]) -> Iterator[ObjectKey]:
    subject = core.event_object(tree).subject.uid
    if subject in keys:
        yield keys[subject]


def _classes(claim: JsonView) -> Iterator[ObjectKey]:
    for request in dra.requests(claim):
        exact = () if request.exactly is None else (request.exactly,)
        for ask in (*exact, *request.first_available):
            if ask.device_class_name:
                yield ObjectKey(*api_resources.DEVICE_CLASSES, "", ask.device_class_name)


def _cuts_by_key(candidate: Candidate) -> dict[ObjectKey, frozenset[Path]]:
    cuts: dict[ObjectKey, set[Path]] = defaultdict(set)
    for key, path in candidate.cuts:
        cuts[key].add(path)
    return {key: frozenset(parts) for key, parts in cuts.items()}


def _changes(candidate: Candidate) -> dict[ObjectKey, Changes]:
    values: dict[ObjectKey, set[tuple[Path, Number]]] = defaultdict(set)
    for key, path, value in candidate.values:
        values[key].add((path, value))
    cuts = _cuts_by_key(candidate)
    return {
        key: (cuts.get(key, frozenset()), frozenset(values.get(key, ())))
        for key in (*cuts, *values)
    }


def numbers_of(material: Material, keys: Collection[ObjectKey]) -> set[int]:
    """The steps of these objects."""
    return {number for key in keys for number in material.by_key.get(key, ())}
