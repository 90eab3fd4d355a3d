"""Variations of a history's inputs: objects left out, objects patched, other arrival times."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from app.analysis.minimise.material import Candidate, Material, numbers_of
from app.analysis.replay.inputs import Input
from app.analysis.sweep.plans import InputChange
from app.domain.errors import InputError
from app.domain.log import ObjectKey
from app.domain.log.chain import canonical_json
from app.domain.objects import registry as kinds
from app.domain.values import api_resources
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import SECOND, Instant


def varied(material: Material, change: InputChange | None, seed: int, jitter: float) -> Material:
    """The material with a change, its pods arriving by a seed. Raises InputError.

    The steps keep their numbers.
    """
    steps = list(material.steps)
    if change is not None:
        steps = _changed(material, change)
    if seed:
        steps = _arriving(replace(material, steps=steps), seed, jitter)
    return Material(
        steps=steps,
        made=material.made,
        is_recorded=material.is_recorded,
    )


def _changed(material: Material, change: InputChange) -> list[Input]:
    gone = [key for name in change.delete for key in _keys(material, name, change)]
    whole = Candidate(kept=frozenset(range(len(material.steps))), until=Instant(0))
    kept = material.without(whole, numbers_of(material, gone)).kept
    steps = [material.steps[number] for number in sorted(kept)]
    for name, patch in change.patch.items():
        keys = _keys(material, name, change)
        steps = [_patched(step, patch) if step.event.key in keys else step for step in steps]
    return steps


def _keys(material: Material, name: str, change: InputChange) -> list[ObjectKey]:
    """The objects with a name of the form KIND/NAME or KIND/NAMESPACE/NAME."""
    kind, _, place = name.partition("/")
    namespace, _, short = place.rpartition("/")
    wanted = kind.lower()
    fitting = [
        key
        for key in material.by_key
        if key.name == short
        and namespace in ("", key.namespace)
        and wanted in (key.resource, _kind(key), f"{key.resource}.{key.group}")
    ]
    if not fitting:
        raise InputError(
            f"nothing from outside is called {name!r} in this history",
            place=f"changes: {change.name}",
            cure="write KIND/NAME or KIND/NAMESPACE/NAME",
        )
    return fitting


def _kind(key: ObjectKey) -> str:
    kind = kinds.find(key.group, key.resource)
    return "" if kind is None else kind.kind.lower()


def _patched(step: Input, patch: JsonObject) -> Input:
    tree = _merged(step.event.object, patch)
    event = msgspec.structs.replace(step.event, body=canonical_json(tree), tree=tree)
    before = None if step.before is None else _merged(step.before, patch)
    return replace(step, event=event, before=before)


def _merged(tree: Any, patch: Any) -> Any:
    """Applies a merge patch (RFC 7396)."""
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(tree) if isinstance(tree, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merged(merged.get(name), value)
    return merged


def _arriving(material: Material, seed: int, jitter: float) -> list[Input]:
    """Moves each pod up to `jitter` seconds earlier or later, with all writes about it.

    A pod does not arrive before the objects that it names.
    """
    made: dict[ObjectKey, Instant] = {}
    for step in material.steps:
        made.setdefault(step.event.key, step.time)
    shifts = {
        key: round((2 * _share(seed, key) - 1) * jitter * SECOND)
        for key in material.by_key
        if key[:2] == api_resources.PODS
    }
    moved: list[tuple[int, int, Input]] = []
    last: dict[ObjectKey, int] = {}
    for number, step in enumerate(material.steps):
        key = step.event.key
        at = step.time + shifts.get(key, 0)
        if key in shifts:
            needed = [made[each] for each in material.needs(number) if each in made]
            at = max(at, *needed, last.get(key, 0)) if needed else max(at, last.get(key, 0))
            last[key] = at
        moved.append((at, number, replace(step, time=Instant(at))))
    return [step for _, _, step in sorted(moved, key=lambda each: each[:2])]


def _share(seed: int, key: ObjectKey) -> float:
    """A number from 0 to 1, determined by the seed and the pod."""
    digest = hashlib.sha256(f"arrival {seed} {key}".encode()).digest()
    return int.from_bytes(digest[:8]) / 2**64


def latest(steps: Sequence[Input]) -> Instant:
    """The instant of the last step."""
    return Instant(max((step.time for step in steps), default=0))
