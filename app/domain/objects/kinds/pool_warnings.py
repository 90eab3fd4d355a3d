"""Warnings on writes of ResourceSlices about an invalid pool.

The API server does not check other slices, and the scheduler reports nothing until a pod fails.
Here a driver's author gets the warning at once: a device name or counter set that another slice of
the same generation has, a counter that no slice of the complete pool declares, more slices than
announced, an outdated generation. Beyond upstream; a write is never refused for it.
"""

from collections.abc import Iterable

from app.domain.log import ObjectKey
from app.domain.objects.reader import ObjectsReader
from app.domain.values import api_resources, json_tree
from app.domain.values.fields import dra, entries, meta
from app.domain.values.json_tree import JsonObject, JsonView

SEARCHED_MAX = 1_000
"""The largest number of slices that are all searched for the pool's other slices; in a cluster with
more, only slices of the same node are searched."""

WARNINGS_MAX = 8


def of_write(reader: ObjectsReader, key: ObjectKey, tree: JsonObject) -> tuple[str, ...]:
    """The warnings for the author of a slice before it is stored; empty for a valid pool."""
    count = dra.pool(tree).resource_slice_count or 1
    if count < 2:
        return ()
    known = [
        other_slice
        for place in _candidates(reader, tree)
        if place != key
        and (other_slice := reader.get(place)) is not None
        and _is_same_pool(tree, other_slice)
    ]
    generation = dra.pool(tree).generation
    generations = [dra.pool(other_slice).generation for other_slice in known]
    newer = max((other for other in generations if other > generation), default=None)
    if newer is not None:
        return (
            f"spec.pool.generation: {generation} is out of date, the pool has generation {newer}: "
            "none of the devices of this slice will be allocated",
        )
    others = [
        other_slice for other_slice in known if dra.pool(other_slice).generation == generation
    ]
    if not others:
        return ()
    warnings = _duplicates(tree, others) + _duplicate_sets(tree, others)
    if len(others) + 1 == count:
        warnings += _missing_counters([tree, *others])
    elif len(others) >= count:
        warnings.append(
            f"spec.pool.resourceSliceCount: {len(others) + 1} slices of generation {generation} "
            f"are there and {count} are announced: the pool is incomplete and none of its devices "
            "will be allocated"
        )
    return tuple(warnings[:WARNINGS_MAX])


def _candidates(reader: ObjectsReader, tree: JsonObject) -> Iterable[ObjectKey]:
    for owner in meta.owners(tree):
        if owner.kind == "Node":
            return [
                key
                for key in reader.dependents(owner.uid)
                if (key.group, key.resource) == api_resources.RESOURCE_SLICES
            ]
    keys = list(reader.keys(*api_resources.RESOURCE_SLICES))
    return keys if len(keys) <= SEARCHED_MAX else []


def _is_same_pool(tree: JsonView, other: JsonView) -> bool:
    return all(
        json_tree.get(tree, "spec", *path) == json_tree.get(other, "spec", *path)
        for path in (("driver",), ("pool", "name"))
    )


def _duplicates(tree: JsonView, others: list[JsonObject]) -> list[str]:
    owners = {
        entries.name(device): meta.name(other) for other in others for device in dra.devices(other)
    }
    return [
        f"spec.devices[{index}].name: {name} is also a device of ResourceSlice {owners[name]}: the "
        "pool is invalid on nodes of both, and none of its devices will be allocated there"
        for index, device in enumerate(dra.devices(tree))
        if (name := entries.name(device)) in owners
    ]


def _duplicate_sets(tree: JsonView, others: list[JsonObject]) -> list[str]:
    owners = {
        entries.name(counters): meta.name(other)
        for other in others
        for counters in dra.shared_counters(other)
    }
    return [
        f"spec.sharedCounters[{index}].name: {name} is also a counter set of ResourceSlice "
        f"{owners[name]}: the pool is invalid on nodes of both, and none of its devices will be "
        "allocated there"
        for index, counters in enumerate(dra.shared_counters(tree))
        if (name := entries.name(counters)) in owners
    ]


def _missing_counters(trees: list[JsonObject]) -> list[str]:
    known = {
        entries.name(counters): dra.counters(counters)
        for tree in trees
        for counters in dra.shared_counters(tree)
    }
    missing: dict[str, str] = {}
    for tree in trees:
        for device in dra.devices(tree):
            for used in dra.consumptions(device):
                name = dra.counter_set(used)
                lacking = (
                    [
                        f"counter {counter} of set {name}"
                        for counter in used.get("counters") or ()
                        if counter not in known[name]
                    ]
                    if name in known
                    else [f"counter set {name}"]
                )
                for what in lacking:
                    missing.setdefault(what, entries.name(device))
    return [
        f"spec: device {device} consumes {what}, which no slice of the complete pool "
        "declares: the pool is invalid and none of its devices will be allocated"
        for what, device in sorted(missing.items())
    ]
