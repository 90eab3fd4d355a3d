"""The choice of the next candidate: from large parts to small ones, until no part can go.

`Reduction.steps` is a generator of candidates, as those of `thinning`. The order of the passes is
that of the dependencies, so that every candidate is well formed.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from itertools import chain, count
from typing import TypeAlias, TypeVar

from app.analysis.minimise import alike, trees
from app.analysis.minimise import material as materials
from app.analysis.minimise.alike import FEW, AlikeObjects, Sort
from app.analysis.minimise.material import END, Candidate, Device, Material
from app.analysis.minimise.predicates import Sighting
from app.analysis.minimise.thinning import Pass, Thinning, Tries
from app.domain.log import ObjectKey
from app.domain.values import api_groups, api_resources
from app.domain.values.timestamps import Instant

_Part = TypeVar("_Part")

_ObjectPart: TypeAlias = tuple[ObjectKey, trees.Path]

INFRASTRUCTURE = (
    api_resources.NAMESPACES,
    api_resources.NODES,
    api_resources.RESOURCE_SLICES,
    api_resources.RESOURCE_SLICE_PATCHES,
    api_resources.DEVICE_CLASSES,
    api_resources.DEVICE_TAINT_RULES,
)
"""The resources that any pod may depend on without naming them."""

_WORKLOADS = (
    api_resources.PODS,
    api_resources.RESOURCE_CLAIMS,
    api_resources.RESOURCE_CLAIM_TEMPLATES,
)

SIGHTINGS_MAX = (12, 6, 3, 2, 2)
"""The number of sightings tried per scope, from the smallest scope to the largest."""

NEAR, FAR = (0, 1), (2, 3, 4)
"""Scopes with few objects around a sighting, and those with all existing or earlier objects."""

HALVES = 32
"""The search for an end stops at a range of 1/32 of the steps; later passes try single steps."""


class Reduction:
    """The search for the smallest candidate; `best` is the smallest that showed it so far.

    `width` candidates are tried together, not counting those for which `is_out` tells at once that
    they do not show it. `is_decided` means that each candidate is decided anew: what names an
    object that is not there then ends as in a cluster. `report_progress` is called with each pass
    and each success.
    """

    def __init__(
        self,
        material: Material,
        start: Candidate,
        controllers: Sequence[str],
        *,
        is_decided: bool = False,
        width: int = 1,
        is_out: Callable[[Candidate], bool] = lambda _: False,
        report_progress: Callable[[Pass | Candidate], None] = lambda _: None,
    ) -> None:
        self.is_minimal = False
        self._material = material
        self._alike = AlikeObjects(material)
        self._controllers = controllers
        self._is_decided = is_decided
        self._thinning = Thinning(
            start, width=width, is_out=is_out, report_progress=report_progress
        )

    @property
    def best(self) -> Candidate:
        """The smallest candidate that showed it so far."""
        return self._thinning.best

    @property
    def represented(self) -> int:
        """The most parts that are alike of which the last round tried only three by themselves."""
        return self._thinning.represented

    def steps(self, sightings: Sequence[Sighting]) -> Tries:
        """The whole search. `sightings` are the matches in the start, the gravest first."""
        start = self.best
        yield from self.jump(sightings)
        if self.best == start:
            yield from self.shorten()
        yield from self.passes()

    def passes(self) -> Tries:
        """All passes, repeated until none of them leaves out anything more.

        This ends: each round but the last makes the candidate smaller.
        """
        while not self.is_minimal:
            before, self._thinning.represented = self.best, 0
            yield from self._nodes()
            yield from self._devices()
            yield from self._slices()
            yield from self._objects()
            yield from self._single_steps()
            yield from self._running()
            yield from self._times()
            yield from self._fields()
            yield from self._numbers()
            if self._is_decided:
                yield from self._alone()
            self.is_minimal = self.best == before

    def jump(
        self, sightings: Sequence[Sighting], scopes: Sequence[int] = range(len(SIGHTINGS_MAX))
    ) -> Tries:
        """Cuts off the time after a sighting, keeps few objects around it, and then more.

        Any sighting is sufficient: in smaller scopes more of them are tried.
        """
        start = self.best
        guesses = [self._guesses(each) for each in sightings]
        for scope in scopes:
            most = SIGHTINGS_MAX[scope]
            tries = [each[scope] for each in guesses[:most]]
            yield from self._thinning.first([each for each in dict.fromkeys(tries) if each.kept])
            if self.best != start:
                return

    def is_all(self, sightings: Sequence[Sighting], scopes: Sequence[int]) -> bool:
        """Whether one of these scopes around a sighting is everything."""
        guesses = (self._guesses(each) for each in sightings)
        return any(each[scope] == self.best for each in guesses for scope in scopes)

    def narrow(self, sightings: Sequence[Sighting]) -> Tries:
        """Leaves out the devices, pods and claims that share none with a sighting.

        What it shares are its own devices, or those that consume counters of the same sets.
        Example: of eight GPUs with partitions, the partition of the pod, or its whole GPU.
        """
        published = self._material.devices(self.best)
        keys = self._material.keys(self.best)
        around = {key for key in keys if key[:2] in INFRASTRUCTURE}
        tries: dict[Candidate, None] = {}
        for sighting in sightings:
            own = published.keys() & {
                *self._material.devices_given_to(sighting.objects),
                *sighting.devices,
            }
            for wanted in (own, self._material.sharing(own)) if own else ():
                others = [device for device in published if device not in wanted]
                narrower = self._without_devices(self.best, others)
                holders = self._material.holders(wanted)
                about = around | self._material.needed_by({*sighting.objects, *holders})
                workloads = [key for key in keys if key[:2] in _WORKLOADS and key not in about]
                tries[self._without_objects(narrower, workloads)] = None
                tries[narrower] = None
        yield from self._thinning.first([each for each in tries if each.kept and each != self.best])

    def _guesses(self, sighting: Sighting) -> list[Candidate]:
        """Candidates for a sighting, from few objects to all before its end.

        The scopes are its objects with what they need; also the infrastructure of the cluster; also
        the workloads that existed at the same time; also all workloads of its namespaces; and
        everything.
        """
        material, best = self._material, self._before(sighting.at)
        keys = material.keys(best)
        about = material.needed_by(sighting.objects)
        around = {key for key in keys if key[:2] in INFRASTRUCTURE}
        workloads = {key for key in keys if key[:2] in _WORKLOADS}
        namespaces = {key.namespace for key in sighting.objects if key.namespace}
        beside = {key for key in workloads if key.namespace in namespaces}
        since = min(
            (material.began(key) for key in sighting.objects if key in workloads),
            default=Instant(0),
        )
        there = {key for key in workloads if (end := material.ended(key)) is None or end >= since}
        scopes = (
            about,
            about | around,
            about | around | there,
            about | around | there | beside,
            set(keys),
        )
        return [
            self._without_objects(best, [key for key in keys if key not in wanted])
            for wanted in map(material.with_events, scopes)
        ]

    def _before(self, end: Instant | None) -> Candidate:
        """The best candidate without the steps after an instant."""
        if end is None or end >= self.best.until:
            return self.best
        over = [n for n in self.best.kept if self._material.steps[n].time > end]
        return replace(self._material.without(self.best, over), until=end)

    def shorten(self) -> Tries:
        """Bisects for an early end that shows it, where the instant is unknown."""
        numbers = sorted(self.best.kept)
        low, high = 0, len(numbers)
        while high - low > 1:
            middle = (low + high) // 2
            over = self._material.steps[numbers[middle]].time
            shorter = self._material.without(self.best, numbers[middle:])
            yield from self._thinning.first([replace(shorter, until=over)])
            if self.best.until == over:
                high = middle
            else:
                low = middle
            if high - low <= len(numbers) // HALVES:
                return

    def _nodes(self) -> Tries:
        """Leaves out nodes with their slices and with the pods that ran there."""
        keys = [
            key
            for key in self._material.keys(self.best)
            if materials.is_of(key, api_resources.NODES)
        ]
        yield from self._thinning.thin("nodes", keys, self._without_objects)

    def _devices(self) -> Tries:
        """Leaves out devices with the claims that were given them, and so with their pods.

        Without the claim alone, the device would be free for others; without the device alone, the
        claim would have none.
        """
        gone = self.best.cuts
        devices = [
            device for device, cuts in self._material.devices(self.best).items() if not cuts <= gone
        ]
        yield from self._thinning.thin("devices", devices, self._without_devices)

    def _slices(self) -> Tries:
        """Leaves out slices of pools that stay; neither a slice nor the count can go alone."""
        slices = self._material.shared_pools(self.best)
        yield from self._thinning.thin("slices", slices, self._material.without_slices)

    def _objects(self) -> Tries:
        keys = sorted(self._material.keys(self.best), key=_noise_first)
        sorts, thin = self._alike.sorts(self.best), self._thinning.thin
        yield from thin("objects", keys, self._without_objects, sort_of=sorts.__getitem__)

    def _alone(self) -> Tries:
        """Leaves out single objects and keeps those that name them, as the API does.

        A namespace takes along what is in it.
        """
        keys = [
            key
            for key in sorted(self._material.keys(self.best), key=_noise_first)
            if not materials.is_of(key, api_resources.NAMESPACES)
        ]
        sorts, thin = self._alike.sorts(self.best), self._thinning.thin
        remove = self._material.without_alone
        yield from thin("objects alone", keys, remove, sort_of=sorts.__getitem__)

    def _single_steps(self) -> Tries:
        # Fewest steps depend on the last ones.
        numbers = sorted(self.best.kept, reverse=True)
        sorts, material = self._alike.sorts(self.best), self._material

        def sort_of(number: int) -> Sort:
            key = material.steps[number].event.key
            return sorts[key], material.by_key[key].index(number)

        yield from self._thinning.thin("events", numbers, material.without, sort_of=sort_of)

    def _running(self) -> Tries:
        names = [name for name in self._controllers if name not in self.best.off]
        yield from self._thinning.thin(
            "controllers", names, lambda best, parts: replace(best, off=best.off | set(parts))
        )

    def _times(self) -> Tries:
        gaps = [n for n in (*sorted(self.best.kept)[1:], END) if n not in self.best.closed]
        yield from self._thinning.thin(
            "times", gaps, lambda best, parts: replace(best, closed=best.closed | set(parts))
        )

    def _fields(self) -> Tries:
        """Level by level: whole parts of objects first, then the contents of parts that stay.

        What is alike goes together first: a field of all slices, or the items of all their lists.
        Parts of one object would fail together as soon as it needs one of them. The levels end
        with the deepest object.
        """
        for depth in count(1):
            there = self._paths(depth)
            if not there and not self._paths(depth, kept=True):
                return
            groups = alike.crowds(there, _kind_of)
            yield from self._thinning.thin("fields and items", groups, _cut_all)
            cuts = self.best.cuts
            left = [parts for parts in groups if len(parts) > 1 and cuts.isdisjoint(parts)]
            most = max(map(len, left), default=0) // 2
            yield from self._thinning.thin(
                "single fields and items",
                list(chain.from_iterable(left)),
                _cut,
                most=most,
                sort_of=self._sort_of_part(),
            )

    def _numbers(self) -> Tries:
        """Reduces numbers and quantities, each as far as possible."""
        now = {(key, path): value for key, path, value in self.best.values}
        numbers: dict[tuple[ObjectKey, trees.Path], trees.Number] = {}
        for number in sorted(self.best.kept):
            event = self._material.steps[number].event
            for path, value in trees.numbers(event.object):
                if not self._is_cut(event.key, path):
                    numbers[event.key, path] = now.get((event.key, path), value)
        self._thinning.report_progress(Pass(name="numbers", parts=len(numbers)))
        sort_of = self._sort_of_part()
        for crowd in alike.crowds(numbers, lambda part: (sort_of(part), numbers[part])):
            some = [[part] for part in crowd]
            if len(crowd) > FEW:
                # Once all are smaller, the next round tries the examples.
                some = [crowd, *([part] for part in alike.examples(crowd))]
            for parts in some:
                before = self.best
                yield from self._lower(parts, numbers[parts[0]])
                if len(parts) > 1 and self.best != before:
                    break
            else:
                self._thinning.note_represented(len(crowd))

    def _lower(self, parts: Sequence[_ObjectPart], value: trees.Number) -> Tries:
        """Lowers numbers that are equal, by halves, to one of which one less does not show it."""
        before, smaller = self.best, trees.smaller(value)
        tries = [_with_numbers(before, parts, less) for less in smaller]
        yield from self._thinning.first(tries)
        if self.best == before:
            return
        place = tries.index(self.best)
        low, high = (trees.amount(each) for each in (0, *smaller)[place : place + 2])
        while high - low > 1:
            middle, last = (low + high) // 2, self.best
            less = trees.with_amount(value, middle)
            yield from self._thinning.first([_with_numbers(last, parts, less)])
            low, high = (middle, high) if self.best == last else (low, middle)

    def _sort_of_part(self) -> Callable[[_ObjectPart], Sort]:
        """The function that gives parts at the same path of objects that are alike one sort."""
        sorts = self._alike.sorts(self.best)
        return lambda part: (sorts[part[0]], part[1])

    def _paths(self, depth: int, *, kept: bool = False) -> list[tuple[ObjectKey, trees.Path]]:
        """The existing parts at this depth; with `kept`, also those that must stay.

        They are named as in the whole objects, because fields that identify list items may be cut.
        """
        parts: dict[tuple[ObjectKey, trees.Path], None] = {}
        for number in sorted(self.best.kept):
            step = self._material.steps[number]
            for tree in (step.before, step.event.object):
                if tree is not None:
                    listed = trees.every_path(tree, depth) if kept else trees.paths(tree, depth)
                    parts |= dict.fromkeys((step.event.key, path) for path in listed)
        return [(key, path) for key, path in parts if not self._is_cut(key, path)]

    def _is_cut(self, key: ObjectKey, path: trees.Path) -> bool:
        cuts = self.best.cuts
        return any((key, path[:length]) in cuts for length in range(1, len(path) + 1))

    def _without_devices(self, best: Candidate, devices: Collection[Device]) -> Candidate:
        published = self._material.devices(best)
        cuts = best.cuts.union(*(published[device] for device in devices))
        claims = self._material.holders(devices)
        return self._without_objects(replace(best, cuts=cuts), claims)

    def _without_objects(self, best: Candidate, keys: Iterable[ObjectKey]) -> Candidate:
        return self._material.without(best, materials.numbers_of(self._material, list(keys)))


def _cut(best: Candidate, parts: Iterable[_ObjectPart]) -> Candidate:
    return replace(best, cuts=best.cuts | set(parts))


def _cut_all(best: Candidate, groups: Iterable[Sequence[_ObjectPart]]) -> Candidate:
    return _cut(best, chain.from_iterable(groups))


def _kind_of(part: _ObjectPart) -> Sort:
    """The same field, or items of the same list, of objects of one kind."""
    key, path = part
    return (*key[:2], *map(trees.kind_of, path))


def _with_numbers(best: Candidate, parts: Iterable[_ObjectPart], value: trees.Number) -> Candidate:
    changed = set(parts)
    others = {each for each in best.values if each[:2] not in changed}
    values = {(*part, value) for part in changed}
    return replace(best, values=frozenset(others | values))


def _noise_first(key: ObjectKey) -> tuple[int, str, str, str, str]:
    """The sort key: objects that affect device decisions least first, grouped by namespace."""
    if key[:2] in _WORKLOADS:
        rank = 1
    elif key[:2] in INFRASTRUCTURE or key.group == api_groups.RESOURCE:
        rank = 2
    else:
        rank = 0
    return rank, key.namespace, key.group, key.resource, key.name
