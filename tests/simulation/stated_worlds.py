"""Drawn worlds of `stated_differences` as clusters, and the changes in which two of them differ."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from app.domain.errors import Rejected
from app.domain.objects.profile import Profile
from app.domain.values.json_tree import JsonObject
from tests.cluster import DRIVER, Cluster
from tests.simulation.stated_differences import Step, World

APART = 40
"""Seconds between steps: more than the longest back-off of the scheduler."""

SETTINGS = "settings"


@dataclass(frozen=True)
class Place:
    """Where a world is: its node, its class and template, and the beginning of its names."""

    node: str = "n0"
    device_class: str = "gpu"
    prefix: str = ""


ALONE = Place()


def published(
    world: World, place: Place, names: Mapping[str, str], tainted: frozenset[str]
) -> list[JsonObject]:
    """The devices of a slice of a world."""
    devices: list[JsonObject] = []
    for name, model in names.items():
        attributes = {"model": {"string": model}, "place": {"string": place.node}}
        device: JsonObject = {"name": name, "attributes": attributes}
        if name in tainted:
            device["taints"] = [{"key": "example.com/bad", "effect": "NoExecute"}]
        if world.slots:
            counters = {"slots": {"value": "1"}}
            device["consumesCounters"] = [{"counterSet": "all", "counters": counters}]
        devices.append(device)
    return devices


def cluster_of(worlds: Mapping[Place, World]) -> Cluster:
    """A cluster with these worlds, before their first step."""
    one = next(iter(worlds.values()))
    cluster = Cluster(Profile(gates={} if one.has_taints else {"DRADeviceTaints": False}))
    steps = [step for world in worlds.values() for step in world.steps]
    for value in sorted({step.priority for step in steps if step.verb == "pod"}):
        more = {"value": value, "preemptionPolicy": "Never"}
        cluster.create("scheduling.k8s.io/v1", "PriorityClass", f"p{value}", **more)
    for place, world in worlds.items():
        _begin(cluster, place, world)
    return cluster.settle()


def _begin(cluster: Cluster, place: Place, world: World) -> None:
    node, attribute = place.node, f'device.attributes["{DRIVER}"]'
    models = " || ".join(f'{attribute}.model == "{each}"' for each in sorted(world.selected))
    cluster.device_class(
        place.device_class, selector=f'{attribute}.place == "{node}" && ({models})'
    )
    cluster.template(place.device_class, class_name=place.device_class)
    cluster.node(node)
    if world.pods_max:
        cluster.create("v1", "ResourceQuota", "quota", spec={"hard": {"pods": str(world.pods_max)}})
    count = 2 if world.slots else 1
    pool = {"name": node, "generation": 1, "resourceSliceCount": count}
    if world.slots:
        counters = [{"name": "all", "counters": {"slots": {"value": str(world.slots)}}}]
        spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "sharedCounters": counters}
        cluster.create("resource.k8s.io/v1", "ResourceSlice", f"{node}-counters", spec=spec)
    devices = published(world, place, dict(world.devices), world.tainted)
    spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices}
    cluster.create("resource.k8s.io/v1", "ResourceSlice", f"{node}-slice", spec=spec)


def ran(worlds: Mapping[Place, World]) -> Cluster:
    """The cluster after all steps; those of one number come directly one after the other."""
    cluster = cluster_of(worlds)
    tainted = {place: set(world.tainted) for place, world in worlds.items()}
    for number in range(max(len(world.steps) for world in worlds.values())):
        for place, world in worlds.items():
            if number < len(world.steps):
                _take_step(cluster, place, world, world.steps[number], tainted[place])
        cluster.settle().wait(APART)
    return cluster


def _take_step(cluster: Cluster, place: Place, world: World, step: Step, tainted: set[str]) -> None:
    name, slice_name = f"{place.prefix}{step.name}", f"{place.node}-slice"
    match step.verb:
        case "pod":
            priority = f"p{step.priority}"
            try:
                cluster.pod(name, template=place.device_class, priorityClassName=priority)
            except Rejected:
                assert world.pods_max, step
        case "kill" if cluster.get("pods", name):
            cluster.kill(name)
        case "cordon":
            cluster.patch("nodes", place.node, {"spec": {"unschedulable": True}})
        case "taint":
            tainted.add(step.name)
            tree = dict(cluster.must("resourceslices", slice_name))
            devices = published(world, place, dict(world.devices), frozenset(tainted))
            cluster.update("resourceslices", tree | {"spec": {**tree["spec"], "devices": devices}})
        case "publish":
            devices = published(world, place, dict.fromkeys(world.late, "a"), frozenset())
            late = f"{place.prefix}z-late"
            cluster.slice(place.node, devices, name=late, pool=late)
        case _:
            pass


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
