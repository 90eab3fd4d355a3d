"""Warnings on writes of ResourceSlices: what makes the pool invalid as it stands now.

The API server does not look at other slices, and the scheduler says nothing until a pod fails. Here
a driver's author is told at once: a device name that another slice of the same generation uses, or
a counter set that no slice of the complete pool declares. Beyond upstream; never a refusal.
"""

from collections.abc import Iterable

from app.domain.log import ObjectKey
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.registry import RESOURCE
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject, JsonView

SLICES = (RESOURCE, "resourceslices")

SEARCHED_MAX = 1_000
"""In a cluster with more slices, only those of the same node are searched for the pool's others."""

WARNINGS_MAX = 8


def of_write(reader: ObjectsReader, key: ObjectKey, tree: JsonObject) -> tuple[str, ...]:
    """What to tell the author of a slice that is about to be stored; empty for a sound pool."""
    pool = json_tree.mapping(tree, "spec", "pool")
    count = json_tree.integer(pool, "resourceSliceCount") or 1
    if count < 2:
        return ()
    others = [
        found
        for place in _candidates(reader, tree)
        if place != key and (found := reader.get(place)) is not None and _is_same(tree, found)
    ]
    if not others:
        return ()
    warnings = _duplicates(tree, others)
    if len(others) + 1 == count:
        warnings += _missing_sets([tree, *others])
    return tuple(warnings[:WARNINGS_MAX])


def _candidates(reader: ObjectsReader, tree: JsonObject) -> Iterable[ObjectKey]:
    for owner in json_tree.objects(tree, "metadata", "ownerReferences"):
        if owner.get("kind") == "Node":
            return [
                key
                for key in reader.dependents(json_tree.text(owner, "uid"))
                if (key.group, key.resource) == SLICES
            ]
    found = list(reader.keys(*SLICES))
    return found if len(found) <= SEARCHED_MAX else []


def _is_same(tree: JsonView, other: JsonView) -> bool:
    """Whether both belong to the same generation of one pool."""
    return json_tree.get(tree, "spec", "driver") == json_tree.get(other, "spec", "driver") and all(
        json_tree.get(tree, "spec", "pool", field) == json_tree.get(other, "spec", "pool", field)
        for field in ("name", "generation")
    )


def _duplicates(tree: JsonView, others: list[JsonObject]) -> list[str]:
    taken = {
        json_tree.text(device, "name"): json_tree.text(other, "metadata", "name")
        for other in others
        for device in json_tree.objects(other, "spec", "devices")
    }
    return [
        f"spec.devices[{index}].name: {name} is also a device of ResourceSlice {taken[name]}: the "
        "pool is invalid and none of its devices will be allocated"
        for index, device in enumerate(json_tree.objects(tree, "spec", "devices"))
        if (name := json_tree.text(device, "name")) in taken
    ]


def _missing_sets(trees: list[JsonObject]) -> list[str]:
    known = {
        json_tree.text(counters, "name")
        for tree in trees
        for counters in json_tree.objects(tree, "spec", "sharedCounters")
    }
    missing: dict[str, str] = {}
    for tree in trees:
        for device in json_tree.objects(tree, "spec", "devices"):
            for used in json_tree.objects(device, "consumesCounters"):
                name = json_tree.text(used, "counterSet")
                if name not in known:
                    missing.setdefault(name, json_tree.text(device, "name"))
    return [
        f"spec: device {device} consumes counter set {name}, which no slice of the complete pool "
        "declares: the pool is invalid and none of its devices will be allocated"
        for name, device in sorted(missing.items())
    ]
