"""What `diff` says of drawn pairs, compared with what a model states from the one change.

The classes of each pod, the pod or change directly before it, and the root of all: the model says
them before the comparison is asked, and shares no code with it.
"""

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from app.analysis.diff.causes import Root, RootKind
from app.analysis.diff.compare import compare
from app.analysis.diff.report import DiffReport
from app.domain.errors import Rejected
from app.domain.log import HistoryId, HistoryInfo
from app.domain.objects.profile import Profile
from app.domain.values.json_tree import JsonObject
from app.service import diffing
from tests import draws
from tests.cluster import DRIVER, Cluster
from tests.simulation import stated_differences as stated
from tests.simulation.stated_differences import CHANGE, Step, World

APART = 40
"""Seconds between steps: more than the longest back-off of the scheduler."""

SETTINGS = "settings"
PAIRS_MAX = 12


def published(world: World, names: Mapping[str, str], tainted: frozenset[str]) -> list[JsonObject]:
    devices: list[JsonObject] = []
    for name, model in names.items():
        device: JsonObject = {"name": name, "attributes": {"model": {"string": model}}}
        if name in tainted:
            device["taints"] = [{"key": "example.com/bad", "effect": "NoExecute"}]
        if world.slots:
            counters = {"slots": {"value": "1"}}
            device["consumesCounters"] = [{"counterSet": "all", "counters": counters}]
        devices.append(device)
    return devices


def begun(world: World) -> Cluster:
    cluster = Cluster(Profile(gates={} if world.has_taints else {"DRADeviceTaints": False}))
    model = f'device.attributes["{DRIVER}"].model'
    cluster.device_class(
        selector=" || ".join(f'{model} == "{each}"' for each in sorted(world.selected))
    )
    cluster.template()
    cluster.node("n0")
    if world.pods_max:
        cluster.create("v1", "ResourceQuota", "quota", spec={"hard": {"pods": str(world.pods_max)}})
    priorities = {step.priority for step in world.steps if step.verb == "pod"}
    for value in sorted(priorities):
        more = {"value": value, "preemptionPolicy": "Never"}
        cluster.create("scheduling.k8s.io/v1", "PriorityClass", f"p{value}", **more)
    count = 2 if world.slots else 1
    pool = {"name": "n0", "generation": 1, "resourceSliceCount": count}
    if world.slots:
        counters = [{"name": "all", "counters": {"slots": {"value": str(world.slots)}}}]
        spec = {"driver": DRIVER, "nodeName": "n0", "pool": pool, "sharedCounters": counters}
        cluster.create("resource.k8s.io/v1", "ResourceSlice", "n0-counters", spec=spec)
    devices = published(world, dict(world.devices), world.tainted)
    spec = {"driver": DRIVER, "nodeName": "n0", "pool": pool, "devices": devices}
    cluster.create("resource.k8s.io/v1", "ResourceSlice", "n0-slice", spec=spec)
    return cluster.settle()


def ran(world: World) -> Cluster:
    cluster = begun(world)
    tainted = set(world.tainted)
    for step in world.steps:
        match step.verb:
            case "pod":
                try:
                    cluster.pod(step.name, template="gpu", priorityClassName=f"p{step.priority}")
                except Rejected:
                    assert world.pods_max, step
            case "kill" if cluster.get("pods", step.name):
                cluster.kill(step.name)
            case "cordon":
                cluster.patch("nodes", "n0", {"spec": {"unschedulable": True}})
            case "taint":
                tainted.add(step.name)
                tree = dict(cluster.must("resourceslices", "n0-slice"))
                devices = published(world, dict(world.devices), frozenset(tainted))
                cluster.update(
                    "resourceslices", tree | {"spec": {**tree["spec"], "devices": devices}}
                )
            case "publish":
                devices = published(world, dict.fromkeys(world.late, "a"), frozenset())
                cluster.slice("n0", devices, name="z-late", pool="z-late")
            case _:
                pass
        cluster.settle().wait(APART)
    return cluster


def drawn_world(drawn: random.Random) -> World:
    """Pods that come and go, more than there are devices, and one step in which time passes."""
    count = drawn.randrange(2, 5)
    priorities = drawn.sample(range(1, 100), 8)
    names = [f"pod-{number}" for number in range(count + drawn.randrange(1, 4))]
    steps = [Step("pod", name, priorities[number]) for number, name in enumerate(names)]
    for name in drawn.sample(names, drawn.randrange(1, 4)):
        steps.insert(drawn.randrange(names.index(name) + 1, len(steps) + 1), Step("kill", name))
    devices = tuple((f"gpu-{number}", drawn.choice("aab")) for number in range(count))
    return World(tuple(steps), devices)


def a_device(drawn: random.Random, world: World) -> str:
    return drawn.choice(world.devices)[0]


def with_step(drawn: random.Random, world: World, step: Step) -> tuple[World, World]:
    """The world with a step in which time passes, and the one with another step in its place."""
    place = drawn.randrange(1, len(world.steps) + 1)
    pair = [(*world.steps[:place], each, *world.steps[place:]) for each in (Step(), step)]
    return replace(world, steps=pair[0]), replace(world, steps=pair[1])


def put_off(drawn: random.Random, world: World, verb: str) -> tuple[World, World, str] | None:
    """The world, and the one in which a step of this kind comes one to three steps later."""
    places = [number for number, step in enumerate(world.steps) if step.verb == verb]
    if not places:
        return None
    place = drawn.choice(places)
    rest = [*world.steps[:place], *world.steps[place + 1 :]]
    later = drawn.randrange(place, min(place + 3, len(rest)) + 1)
    step = world.steps[place]
    both = [
        (*rest[:place], one, *rest[place:later], other, *rest[later:])
        for one, other in ((step, Step()), (Step(), step))
    ]
    return replace(world, steps=both[0]), replace(world, steps=both[1]), step.name


Pair = tuple[World, World, str]
"""Two worlds, and the name of the change; several names where the change shows in several."""

Alteration = Callable[[random.Random, World], Pair | None]


def removed(drawn: random.Random, world: World) -> Pair:
    gone = a_device(drawn, world)
    fewer = tuple(each for each in world.devices if each[0] != gone)
    return world, replace(world, devices=fewer), "n0-slice"


def renamed(drawn: random.Random, world: World) -> Pair:
    old = a_device(drawn, world)
    other = tuple(("other" if name == old else name, model) for name, model in world.devices)
    return world, replace(world, devices=other), "n0-slice"


def tainted(drawn: random.Random, world: World) -> Pair:
    return world, replace(world, tainted=frozenset({a_device(drawn, world)})), "n0-slice"


def tainted_later(drawn: random.Random, world: World) -> Pair:
    return *with_step(drawn, world, Step("taint", a_device(drawn, world))), "n0-slice"


def cordoned(drawn: random.Random, world: World) -> Pair:
    return *with_step(drawn, world, Step("cordon")), "n0"


def lowered(drawn: random.Random, world: World) -> Pair:
    one = replace(world, slots=len(world.devices))
    return one, replace(world, slots=drawn.randrange(1, len(world.devices))), "n0-counters"


def narrower(drawn: random.Random, world: World) -> Pair:
    return world, replace(world, selected=frozenset("a")), "gpu"


def raised(drawn: random.Random, world: World) -> Pair:
    """Pods wait for devices that others give back, and the last of them has another priority."""
    more = [Step("pod", f"last-{number}", drawn.randrange(1, 90)) for number in range(3)]
    pods = [step for step in world.steps if step.verb == "pod"]
    kills = [step for step in world.steps if step.verb == "kill"]
    one = replace(world, steps=(*pods, *more, *kills))
    last = replace(more[-1], priority=100)
    return one, replace(world, steps=(*pods, *more[:-1], last, *kills)), last.name


def limited(drawn: random.Random, world: World) -> Pair:
    return replace(world, pods_max=100), replace(world, pods_max=drawn.randrange(2, 5)), "quota"


def switched(drawn: random.Random, world: World) -> Pair:
    """Without the gate, the API also drops the taint of the slice, which differs then."""
    one = replace(world, tainted=frozenset({a_device(drawn, world)}))
    return one, replace(one, has_taints=False), f"{SETTINGS} n0-slice"


def delayed(drawn: random.Random, world: World) -> Pair | None:
    place = drawn.randrange(1, len(world.steps))
    steps = (*world.steps[:place], Step("publish"), *world.steps[place:])
    pair = put_off(drawn, replace(world, steps=steps, late=("late-0", "late-1")), "publish")
    return pair and (*pair[:2], "z-late")


def killed_later(drawn: random.Random, world: World) -> Pair | None:
    return put_off(drawn, world, "kill")


def left_out(drawn: random.Random, world: World) -> Pair:
    pods = [step for step in world.steps if step.verb == "pod"]
    one = drawn.choice(pods)
    gone = [Step() if each.name == one.name else each for each in world.steps]
    return world, replace(world, steps=tuple(gone)), one.name


ALTERATIONS: Mapping[str, Alteration] = {
    each.__name__: each
    for each in (
        removed,
        renamed,
        tainted,
        tainted_later,
        cordoned,
        lowered,
        narrower,
        raised,
        limited,
        switched,
        delayed,
        killed_later,
        left_out,
    )
}


async def compared(a: World, b: World) -> DiffReport:
    sides = []
    for world, name in ((a, "A"), (b, "B")):
        profile = Profile(gates={} if world.has_taints else {"DRADeviceTaints": False})
        info = HistoryInfo(id=HistoryId(1), name="drawn", settings=profile.settings())
        sides.append(diffing.side_of(info, ran(world).line.events, name))
    return await diffing.drive(compare(*sides))


def root_of(root: Root) -> str:
    return SETTINGS if root.kind is RootKind.SETTINGS else root.name.rpartition("/")[2]


async def judge(alteration: str, seed: int) -> Counter[str]:
    """Compares a drawn pair with what the model states; counts the classes that were said."""
    drawn = random.Random(f"stated {alteration} {seed}")
    pair = ALTERATIONS[alteration](drawn, drawn_world(drawn))
    if pair is None:
        return Counter()
    a, b, subject = pair
    if drawn.random() < 0.5:
        a, b = b, a
    pods = {"a": stated.lived(a), "b": stated.lived(b)}
    wanted = {}
    for name in {**pods["a"], **pods["b"]}:
        said = stated.classes(pods["a"].get(name), pods["b"].get(name))
        if said:
            wanted[name] = said
    report = await compared(a, b)
    shown = {
        each.pair.name.rpartition("/")[2]: each
        for each in report.differences
        if not each.is_about_words
    }
    words = f"{alteration} {seed}"
    assert {n: {c.value for c in each.classes} for n, each in shown.items()} == wanted, words
    for name, each in shown.items():
        near = each.chain[0].pair.name.rpartition("/")[2] if each.chain else CHANGE
        assert near in stated.before(name, pods, subject), (words, name, near)
        assert root_of(each.root) in subject.split(), (words, name, each.root)
    return Counter(each for said in wanted.values() for each in said)


@pytest.mark.parametrize("alteration", ALTERATIONS)
async def test_classes_and_causes_are_those_that_follow_from_the_change(alteration: str) -> None:
    """Pairs are drawn until one differs, or several with more draws."""
    different = 0
    for seed in range(PAIRS_MAX * draws.FACTOR):
        different += bool(await judge(alteration, seed))
        if different == draws.FACTOR:
            break
    assert different, "the alteration is idle"


@pytest.mark.parametrize(("alteration", "seed"), [("removed", 9), ("raised", 33), ("raised", 48)])
async def test_device_of_one_side_is_looked_at_in_its_place(alteration: str, seed: int) -> None:
    """What only one side could have comes first, at a moment that shows what the other one had."""
    assert await judge(alteration, seed)


async def test_only_the_text_changes_where_a_class_that_selects_nothing_is_made() -> None:
    sides = []
    for name in ("A", "B"):
        cluster = begun(World((), (("gpu-0", "a"),)))
        cluster.template("worded", class_name="absent")
        if name == "B":
            cluster.device_class("absent", selector="false")
        cluster.pod("worded", template="worded")
        cluster.settle().wait(APART)
        info = HistoryInfo(id=HistoryId(1), name="drawn")
        sides.append(diffing.side_of(info, cluster.line.events, name))
    (difference,) = (await diffing.drive(compare(*sides))).differences
    assert [each.value for each in difference.classes] == ["said otherwise"]
    assert (root_of(difference.root), difference.chain) == ("absent", [])
