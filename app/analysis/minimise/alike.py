"""Objects that are alike: their steps differ only in names, uids, versions, instants and addresses.

A bound needs many of them: 256 pods of one claim, or as many as a node has devices. Which of them
stay does not matter then, only how many.

Example: of the pods a and b of claim x, and c of claim y, a and b are alike. All three are if x and
y are alike.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

from app.analysis.minimise.material import Candidate, Material
from app.domain.log import ObjectKey
from app.domain.log.chain import canonical_json

_Part = TypeVar("_Part")

Sort: TypeAlias = Hashable
"""The common part of objects that are alike."""

FEW = 16
"""The most parts that are alike and of which each is tried by itself.

Of more, the first, the one in the middle and the last stand for all.
"""

_ROUNDS = 3
"""The number of steps by which names are followed: pod, claim, class, and the objects it names."""

_GENERATED = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z|\d{1,3}(\.\d{1,3}){3}|[0-9a-f]{32,}"
)
"""Instants, the addresses that kubelets give to pods, and the ids of containers."""


class AlikeObjects:
    """The groups of objects of a material that are alike."""

    def __init__(self, material: Material) -> None:
        self._material = material
        self._contents: dict[ObjectKey, tuple[bytes, Sequence[str]]] = {}

    def sorts(self, candidate: Candidate) -> Mapping[ObjectKey, Sort]:
        """The sort of each object of a candidate, with what is left of it."""
        changes: dict[ObjectKey, set[Hashable]] = defaultdict(set)
        parts: list[tuple[ObjectKey, Hashable]] = [
            *candidate.cuts,
            *((key, (path, value)) for key, path, value in candidate.values),
        ]
        for key, change in parts:
            changes[key].add(change)
        by_key = self._material.by_key
        return {
            key: (
                sort,
                frozenset(changes.get(key, ())),
                tuple(number in candidate.kept for number in by_key[key]),
            )
            for key, sort in self._named_alike(self._material.keys(candidate)).items()
        }

    def _named_alike(self, keys: Sequence[ObjectKey]) -> Mapping[ObjectKey, int]:
        """The sort of each object: what it says, and the sorts of the objects that it names."""
        for key in keys:
            if key not in self._contents:
                self._contents[key] = self._content(key)
        sorts = {key: hash((key[:2], self._contents[key][0])) for key in keys}
        for _ in range(_ROUNDS):
            sorts = {
                key: hash((sort, tuple(self._sorts_of(sorts, name) for name in named)))
                for key, sort in sorts.items()
                for named in (self._contents[key][1],)
            }
        return sorts

    def _sorts_of(self, sorts: Mapping[ObjectKey, int], name: str) -> tuple[int, ...]:
        return tuple(sorted(sorts[key] for key in self._named[name] if key in sorts))

    @cached_property
    def _named(self) -> Mapping[str, Collection[ObjectKey]]:
        """The objects of each name and uid."""
        named: dict[str, set[ObjectKey]] = defaultdict(set)
        for step in self._material.steps:
            for name in {step.event.key.name, str(step.event.uid)} - {""}:
                named[name].add(step.event.key)
        return named

    def _content(self, key: ObjectKey) -> tuple[bytes, Sequence[str]]:
        """The content of an object's steps, and the names in it in their order."""
        named = self._named
        names = [key.namespace] if key.namespace in named else []

        def masked(tree: Any) -> Any:
            if isinstance(tree, dict):
                return {
                    _GENERATED.sub("@", name): masked(value)
                    for name, value in tree.items()
                    if name != "resourceVersion"
                }
            if isinstance(tree, list):
                return [masked(item) for item in tree]
            if isinstance(tree, str) and tree in named:
                names.append(tree)
                return "*"
            return _GENERATED.sub("@", tree) if isinstance(tree, str) else tree

        steps = [self._material.steps[number] for number in self._material.by_key[key]]
        content = [
            [step.event.type, step.event.stamp.verb, step.author, masked(step.event.object)]
            for step in steps
        ]
        return canonical_json(content), names


def crowds(parts: Iterable[_Part], sort_of: Callable[[_Part], Sort]) -> list[list[_Part]]:
    """The parts by sort, in the order of their first ones."""
    groups: dict[Sort, list[_Part]] = defaultdict(list)
    for part in parts:
        groups[sort_of(part)].append(part)
    return list(groups.values())


def examples(parts: Sequence[_Part]) -> list[_Part]:
    """The first, the middle and the last of many parts that are alike."""
    return [parts[0], parts[len(parts) // 2], parts[-1]]
