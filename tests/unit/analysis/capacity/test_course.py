"""The devices of a history from moment to moment are those of each moment read by itself.

The states are drawn at random: objects come, change, go, and come again as others of the same name;
some cannot be read. The verdict for a state is that of views which read this state alone.
"""

import random

import msgspec
import pytest

from app.analysis.capacity import largest, sampling
from app.analysis.capacity.sampling import DeviceCourse
from app.analysis.views import LiveViews, compiler_of
from app.domain.allocation.quirks import Quirks
from app.domain.log import Event, EventType, ObjectKey, Revision
from app.domain.log.event import Actor, Stamp
from app.domain.objects.profile import Profile
from app.domain.values.timestamps import Instant

DRIVER = "gpu.example.com"
NODES = ("n0", "n1")
STAMP = Stamp(time=Instant(0), actor=Actor(user="test"), verb="update")
PROFILE = Profile()


def drawn(chosen: random.Random, resource: str, name: str) -> dict:
    """A tree of the kind with a few varying fields."""
    size, kind = chosen.randrange(1, 4), chosen.choice(("big", "small"))
    match resource:
        case "nodes":
            return {"spec": {"unschedulable": chosen.random() < 0.3}}
        case "deviceclasses":
            expression = f'device.attributes["{DRIVER}"].kind == "{kind}"'
            return {"spec": {"selectors": [{"cel": {"expression": expression}}]}}
        case "resourceslices":
            memory = chosen.choice(("40Gi", "80Gi", "unreadable"))
            devices = [
                {
                    "name": f"gpu-{number}",
                    "attributes": {"kind": {"string": kind}},
                    "capacity": {"memory": {"value": memory}},
                }
                for number in range(size)
            ]
            pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
            return {"spec": {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": devices}}
        case "devicetaintrules":
            selector = {"driver": DRIVER, "pool": chosen.choice(NODES)}
            return {
                "spec": {
                    "deviceSelector": selector,
                    "taint": {"key": "example.com/bad", "effect": "NoSchedule"},
                }
            }
        case "resourceslicepatches":
            return {
                "spec": {
                    "priority": size,
                    "devices": {
                        "filter": {"pool": chosen.choice(NODES)},
                        "attributes": {f"{DRIVER}/kind": {"string": kind}},
                    },
                }
            }
        case _:
            result = {
                "request": "gpu", "driver": DRIVER, "pool": chosen.choice(NODES), "device": "gpu-0"
            }  # fmt: skip
            is_allocated = chosen.random() < 0.7
            return {
                "status": {"allocation": {"devices": {"results": [result]}}} if is_allocated else {}
            }


OBJECTS = [
    *[("", "nodes", "", name) for name in NODES],
    *[("resource.k8s.io", "resourceslices", "", name) for name in NODES],
    *[("resource.k8s.io", "deviceclasses", "", name) for name in ("big", "small")],
    *[("resource.k8s.io", "devicetaintrules", "", name) for name in ("r0", "r1")],
    *[("resource.k8s.io", "resourceslicepatches", "", name) for name in ("p0", "p1")],
    *[("resource.k8s.io", "resourceclaims", "default", name) for name in ("c0", "c1", "c2")],
]


def states(chosen: random.Random, count: int) -> list[list[Event]]:
    """The last events of all objects at successive moments."""
    present: dict[ObjectKey, Event] = {}
    made, revision = [], 0
    for _ in range(count):
        for place in chosen.sample(OBJECTS, 7):
            key, revision = ObjectKey(*place), revision + 1
            old = present.get(key)
            if old is not None and chosen.random() < 0.3:
                del present[key]
                continue
            keeps_uid = old is not None and chosen.random() < 0.5
            uid = old.uid if keeps_uid else f"uid-{revision}"
            tree = drawn(chosen, key.resource, key.name)
            tree["metadata"] = {"name": key.name, "namespace": key.namespace, "uid": uid}
            present[key] = Event(
                revision=Revision(revision),
                type=EventType.OBJECT_UPDATED,
                key=key,
                uid=uid,
                body=msgspec.json.encode(tree),
                stamp=STAMP,
            )
        made.append([present[key] for key in sorted(present)])
    return made


def facts(devices: largest.Devices) -> tuple:
    inventory = devices.inventory
    compiler = compiler_of(PROFILE)
    moment = sampling.of(Revision(1), Instant(0), devices, compiler, Quirks())
    effective = [
        (each.key, device.id, device.attributes, device.capacity, device.taints)
        for each in inventory.slices()
        for device in each.devices
    ]
    holders = [devices.allocated.holders((DRIVER, name, "gpu-0")) for name in NODES]
    held = [sorted(each) for each in holders]
    return moment, effective, held, list(inventory.rules()), sorted(inventory.patches())


def alone(events: list[Event]) -> tuple:
    views = LiveViews(PROFILE)
    for event in events:
        views.fold(event)
    return facts(largest.devices_of(views))


@pytest.mark.parametrize("seed", range(12))
def test_devices_of_each_moment_are_those_of_the_moment_alone(seed):
    chosen = random.Random(seed)
    several = states(chosen, 8)
    course = DeviceCourse(PROFILE)
    for events in [*several, *chosen.sample(several, 4)]:
        seen, expected = facts(course.move(events)), alone(events)
        assert (seen[0], seen[1:3], sorted(seen[3]), seen[4]) == (
            expected[0], expected[1:3], sorted(expected[3]), expected[4]
        )  # fmt: skip


def test_what_is_equal_at_two_moments_is_not_computed_again():
    events = max(states(random.Random(3), 12), key=lambda events: len(alone(events)[1]))
    course = DeviceCourse(PROFILE)
    before = {each.key: each for each in course.move(events).inventory.slices()}
    without_claims = [event for event in events if event.key.resource != "resourceclaims"]
    inventory = course.move(without_claims).inventory
    assert len(before) == len(NODES)
    assert all(inventory.slice(key) is each for key, each in before.items())
