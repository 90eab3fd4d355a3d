"""Pairs of runs that differ in one known place: the comparison names it as the root of all.

The inputs of a recording from outside are decided twice by the same control plane: as they are, and
altered in one place. Nothing else differs, so nothing else can be the cause of a difference.

Alterations come by day: the root of each is found by the same comparison.
"""

import random
from collections import Counter
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace

import msgspec
import pytest

from app.analysis.diff.compare import compare
from app.analysis.diff.report import DiffReport
from app.analysis.diff.sides import Side
from app.analysis.minimise.material import Candidate, Material, numbers_of
from app.analysis.replay.inputs import Input
from app.analysis.replay.variants import Switches
from app.bootstrap import process_settings
from app.bootstrap.engines import Engines
from app.bootstrap.minimising import sources
from app.bootstrap.minimising.sources import Source
from app.domain.log import EventType, ObjectKey
from app.domain.log.chain import canonical_json
from app.domain.log.event import Actor
from app.domain.objects.profile import RULES_GATE
from app.domain.values import api_resources, timestamps
from app.domain.values.fields import meta
from app.domain.values.identifiers import Uid
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import SECOND, Instant
from app.service import diffing
from app.service.replays.trials import Runner
from tests import draws
from tests.shared_data import shared_path

NAMES = ("j-api-versions", "c-multihost-tpu", "a-quickstart", "e-taints") + (
    ("e-taints-rules-ignored",) if draws.WHOLE else ()
)
PROFILE = "1.36.3"
"""The release of all runs, in which rules count."""

MOVED = 7 * SECOND


@dataclass(frozen=True)
class Altered:
    """The altered inputs, and the name of the root."""

    steps: list[Input]
    root: str
    switches: Switches = Switches()


Alter = Callable[[Material, random.Random], Altered | None]


def by_users(material: Material, resource: tuple[str, str]) -> list[ObjectKey]:
    """Objects of a kind that somebody made during the recording who is no controller."""
    began = material.steps[0].time
    firsts = {key: material.steps[numbers[0]] for key, numbers in material.by_key.items()}
    return [
        key
        for key, first in firsts.items()
        if key[:2] == resource
        and first.event.type is EventType.OBJECT_CREATED
        and first.time > began
        and meta.controller(first.event.object) is None
    ]


def left_out(material: Material, drawn: random.Random) -> Altered | None:
    """A pod that nobody makes."""
    pods = by_users(material, api_resources.PODS)
    if not pods:
        return None
    key = drawn.choice(pods)
    gone = set(numbers_of(material, [key]))
    return Altered([step for step in material.steps if step.number not in gone], str(key))


def later(material: Material, drawn: random.Random) -> Altered | None:
    """A pod that comes seconds later, with all that happens to it."""
    pods = by_users(material, api_resources.PODS)
    if not pods:
        return None
    key = drawn.choice(pods)
    steps = [
        replace(step, time=Instant(step.time + MOVED)) if step.event.key == key else step
        for step in material.steps
    ]
    return Altered(sorted(steps, key=lambda step: step.time), str(key))


def patched(
    material: Material,
    drawn: random.Random,
    resource: tuple[str, str],
    change: Callable[[JsonObject], None],
) -> Altered | None:
    """An object that is another one from its first write on."""
    keys = [key for key in material.by_key if key[:2] == resource]
    if not keys:
        return None
    key = drawn.choice(keys)

    def alter(tree: JsonObject | None) -> JsonObject | None:
        if tree is None:
            return None
        changed: JsonObject = deepcopy(tree)
        change(changed)
        return changed

    steps = []
    for step in material.steps:
        if step.event.key == key:
            tree = alter(step.event.object) or {}
            event = msgspec.structs.replace(
                step.event, body=canonical_json(tree), tree=tree, reading=None
            )
            step = replace(step, event=event, before=alter(step.before))
        steps.append(step)
    return Altered(steps, str(key))


def narrow_class(material: Material, drawn: random.Random) -> Altered | None:
    """A class that selects no device."""

    def change(tree: JsonObject) -> None:
        tree["spec"]["selectors"] = [{"cel": {"expression": "false"}}]

    return patched(material, drawn, api_resources.DEVICE_CLASSES, change)


def fewer_devices(material: Material, drawn: random.Random) -> Altered | None:
    """A slice that lacks its first device."""

    def change(tree: JsonObject) -> None:
        tree["spec"]["devices"] = (tree["spec"].get("devices") or [])[1:]

    return patched(material, drawn, api_resources.RESOURCE_SLICES, change)


def tainted_device(material: Material, drawn: random.Random) -> Altered | None:
    """A slice whose first device has a taint from the beginning on."""

    def change(tree: JsonObject) -> None:
        for device in (tree["spec"].get("devices") or [])[:1]:
            device["taints"] = [{"key": "planted", "effect": "NoExecute"}]

    return patched(material, drawn, api_resources.RESOURCE_SLICES, change)


def cordoned(material: Material, drawn: random.Random) -> Altered | None:
    """A node that takes no pods."""

    def change(tree: JsonObject) -> None:
        tree["spec"]["unschedulable"] = True

    return patched(material, drawn, api_resources.NODES, change)


def wanting_more(material: Material, drawn: random.Random) -> Altered | None:
    """A template whose requests want two devices more."""

    def change(tree: JsonObject) -> None:
        for request in tree["spec"]["spec"]["devices"]["requests"]:
            if "exactly" in request:
                request["exactly"]["count"] = request["exactly"].get("count", 1) + 2

    return patched(material, drawn, api_resources.RESOURCE_CLAIM_TEMPLATES, change)


def rule(material: Material, drawn: random.Random) -> Altered | None:
    """A rule that evicts from the pool of a slice, made at a drawn moment."""
    slices = [
        step.event.object["spec"]
        for step in material.steps
        if step.event.key[:2] == api_resources.RESOURCE_SLICES
    ]
    pool = drawn.choice(slices)
    before = drawn.choice(material.steps[len(material.steps) // 4 :])
    uid = Uid("00000000-0000-4000-8000-000000000001")
    at = timestamps.micro_text(before.time)
    tree = {
        "apiVersion": "resource.k8s.io/v1beta2",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "planted", "uid": uid, "creationTimestamp": at},
        "spec": {
            "deviceSelector": {"driver": pool["driver"], "pool": pool["pool"]["name"]},
            "taint": {"key": "planted", "effect": "NoExecute", "timeAdded": at},
        },
    }
    stamp = before.event.stamp
    event = msgspec.structs.replace(
        before.event,
        type=EventType.OBJECT_CREATED,
        key=ObjectKey(*api_resources.DEVICE_TAINT_RULES, "", "planted"),
        uid=uid,
        body=canonical_json(tree),
        tree=tree,
        reading=None,
        stamp=msgspec.structs.replace(stamp, actor=Actor(user="me"), time=before.time),
    )
    steps = list(material.steps)
    steps.insert(before.number, Input(event=event, before=None, time=before.time, author="me"))
    gates = Switches(gates={RULES_GATE: True})
    return Altered(steps, str(event.key), gates)


def another_release(material: Material, drawn: random.Random) -> Altered | None:
    """The inputs as they are, decided by another release."""
    profile = drawn.choice(("1.34", "1.35", "1.36.2", "1.37"))
    return Altered(list(material.steps), "settings", Switches(profile=profile))


def another_gate(material: Material, drawn: random.Random) -> Altered | None:
    """The inputs as they are, decided with a gate off."""
    has_counters = any("consumesCounters" in str(step.event.body) for step in material.steps)
    gate = "DRAPartitionableDevices" if has_counters else "DRADeviceTaints"
    return Altered(list(material.steps), "settings", Switches(gates={gate: False}))


ALTERATIONS: Mapping[str, Alter] = {
    alter.__name__: alter
    for alter in (
        left_out,
        later,
        narrow_class,
        fewer_devices,
        tainted_device,
        cordoned,
        wanting_more,
        rule,
        another_release,
        another_gate,
    )
}

_SOURCES: dict[str, Source] = {}
_SIDES: dict[tuple[str, bool], Side] = {}


async def source_of(name: str) -> Source:
    if name not in _SOURCES:
        settings = process_settings.settings(profile=PROFILE)
        paths = (shared_path("histories", name),)
        _SOURCES[name] = await sources.read_files(settings, paths, PROFILE)
    return _SOURCES[name]


def ran(source: Source, material: Material, switches: Switches = Switches()) -> Side:
    settings = {name: value for name, value in source.info.settings.items() if name != "recorded"}
    info = msgspec.structs.replace(source.info, settings=settings)
    last = Instant(max(source.last, *(step.time for step in material.steps)))
    candidate = Candidate(kept=frozenset(range(len(material.steps))), until=last)
    return Runner(material, info, Engines()).run(candidate, switches).side


def numbered(steps: list[Input]) -> list[Input]:
    return [replace(step, number=number) for number, step in enumerate(steps)]


async def planted(name: str, alteration: str, seed: int) -> tuple[DiffReport, str] | None:
    """The comparison of the inputs with themselves, altered, and the root; None without a place.

    A gate that the altered inputs need is on in both runs.
    """
    source = await source_of(name)
    drawn = random.Random(f"{name} {alteration} {seed}")
    altered = ALTERATIONS[alteration](source.decided, drawn)
    if altered is None:
        return None
    has_rules = altered.switches.gates.get(RULES_GATE, False)
    if (name, has_rules) not in _SIDES:
        both = altered.switches if has_rules else Switches()
        _SIDES[name, has_rules] = ran(source, source.decided, both)
    material = replace(source.decided, steps=numbered(altered.steps))
    other = ran(source, material, altered.switches)
    return await diffing.drive(compare(_SIDES[name, has_rules], other)), altered.root


@draws.BY_DAY
@pytest.mark.parametrize("alteration", ALTERATIONS)
async def test_the_only_altered_place_is_the_root_of_every_difference(alteration: str) -> None:
    different = Counter[str]()
    for name in NAMES:
        for seed in draws.seeds(1):
            pair = await planted(name, alteration, seed)
            if pair is None:
                continue
            report, root = pair
            roots = {each.pair.name: each.root.name for each in report.differences}
            assert set(roots.values()) <= {root}, f"{name}, seed {seed}: {roots}"
            assert report.unexplained == 0
            different[name] += len(roots)
    # The alterations are not idle.
    assert different.total() > 2, different


@draws.BY_DAY
@pytest.mark.parametrize("name", NAMES)
async def test_inputs_that_are_decided_twice_are_the_same(name: str) -> None:
    source = await source_of(name)
    report = await diffing.drive(compare(ran(source, source.decided), ran(source, source.decided)))
    assert report.is_same
    assert report.changes == ()
    assert report.same > 2
