"""Compares forks of recorded fleet worlds with worlds in which the change was really made.

A world runs on slow controllers and is recorded. It runs again from its seed up to a quiet moment;
there the change is made, and its users do what they did before, at the same instants. It runs so at
several paces of the controllers. What all of these worlds do to a pod, the fork of the recording
does too. They know nothing of forks, of replays and of differences.
"""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from app.analysis.edits import Apply, DeleteEdit, Edit, PatchEdit
from app.domain.errors import Rejected
from app.domain.log import Event, EventType, ObjectKey
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.write.commands import (
    Command,
    CreateObject,
    DeleteObject,
    PatchObject,
    PatchType,
    UpdateObject,
)
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import SECOND, Instant, micro_text
from tests import draws
from tests.cluster import USER
from tests.conformance.soak_lines import retell
from tests.conformance.soak_recordings import Load, SlowControlPlane
from tests.conformance.test_forks_of_fleets import RULE, load
from tests.simulation import fleet_acts
from tests.simulation.fleet_world import FleetWorld

pytestmark = pytest.mark.timeout(0)
"""Runs are bounded in number; how long they take is a matter of the machine."""

ACTS = 60
PACES = 3
WORKLOADS = {
    fleet_acts.deploy,
    fleet_acts.scale,
    fleet_acts.undeploy,
    fleet_acts.run_job,
    fleet_acts.forget_job,
}
"""Pods of controllers have other names in each world, so nobody could find them again."""

PLAIN = {act: weight for act, weight in fleet_acts.ACTS.items() if act not in WORKLOADS}
GROUP = "resource.k8s.io"
DRAWN = re.compile(r"-c\d-[a-z0-9]{5}$")
"""The end of the name of a claim that was made for a pod."""

Outcome = tuple[bool, bool, str]


@dataclass(frozen=True)
class Change:
    """A change as edits of a fork, and as the writes of a user."""

    edits: tuple[Edit, ...]
    writes: tuple[Command, ...]


class NotedWorld:
    """A world, with what its users wrote and when. `marks` are the instants after each act."""

    def __init__(self, seed: int, acts: int) -> None:
        self.plane = SlowControlPlane(Load(seed=seed))
        self.world = FleetWorld(seed, self.plane)
        self.line = self.world.cluster.line
        self.written: list[tuple[Instant, Command]] = []
        self.marks: list[tuple[Instant, int]] = []
        submit = self.line.submit

        def note(command: Command, **named: object) -> object:
            before = len(self.line.events)
            outcome = submit(command, **named)
            # A write that changes nothing is no event, so no recording holds it.
            if len(self.line.events) > before:
                self.written.append((self.line.now, command))
            return outcome

        self.line.submit = note
        for _ in range(acts):
            self.world.step(PLAIN)
            self.marks.append((self.line.now, len(self.written)))
        self.line.submit = submit

    def rest(self) -> None:
        """Waits until nothing of the scheduler waits."""
        self.world.cluster.wait(60)
        while self.plane.waits_until > self.line.now:
            self.world.cluster.wait(15)

    def quiet_acts(self) -> list[int]:
        """The acts after which nothing is under way, with a part of the world before and after."""
        times = [each.stamp.time for each in self.line.events if each.key.resource != "events"]
        return [
            number
            for number, (now, _) in enumerate(self.marks[: -ACTS // 4])
            if number > 8 and not any(now - 8 * SECOND < at < now + 2 * SECOND for at in times)
        ]


def changed(seed: int, act: int, noted: NotedWorld, change: Change, pace: int) -> Sequence[Event]:
    """The events of the world in which a change is made after an act, at another pace."""
    other = NotedWorld(seed, act + 1)
    assert other.marks[act] == noted.marks[act]
    other.plane._chance = random.Random(f"pace {pace}")
    for write in change.writes:
        other.line.submit(write, actor=USER)
    other.line.settle()
    for at, command in noted.written[noted.marks[act][1] :]:
        other.line.advance(Instant(max(at, other.line.now)))
        here = as_here(command, other.line.views.objects)
        try:
            if here is not None:
                other.line.submit(here, actor=USER)
        except Rejected:
            continue  # It does not apply in this world.
        other.line.settle()
    other.line.advance(Instant(max(noted.line.now, other.line.now)))
    return other.line.events


def as_here(command: Command, objects: ObjectsReader) -> Command | None:
    """What a user would write in this world; None about an object that it does not have."""
    if isinstance(command, CreateObject):
        return msgspec.structs.replace(command, tree=owned(command.tree, objects))
    key = command.key
    if objects.get(key) is None and DRAWN.search(key.name):
        keys = objects.keys(key.group, key.resource)
        near = [each for each in keys if each[:3] == key[:3] and each.name[:-5] == key.name[:-5]]
        key = near[0] if len(near) == 1 else key
    ours = objects.get(key)
    if ours is None:
        return None
    if isinstance(command, UpdateObject) and key.resource == "resourceclaims":
        place = ("status", "allocation", "devices")
        if json_tree.get(ours, *place) != json_tree.get(command.tree, *place):
            return None
        body = {"status": {"devices": command.tree["status"]["devices"]}}
        merge = PatchType.MERGE
        return PatchObject(key=key, version="v1", type=merge, body=body, subresource="status")
    if isinstance(command, UpdateObject):
        tree = owned(command.tree, objects)
        newest = {**tree["metadata"], "resourceVersion": "", "uid": ours["metadata"]["uid"]}
        return msgspec.structs.replace(command, tree={**tree, "metadata": newest})
    return msgspec.structs.replace(command, key=key)


def owned(tree: JsonObject, objects: ObjectsReader) -> JsonObject:
    """The tree with the uids that its nodes have in this world."""
    references = []
    for each in tree["metadata"].get("ownerReferences", ()):
        node = objects.get(ObjectKey("", "nodes", "", each["name"]))
        references.append(each if node is None else {**each, "uid": node["metadata"]["uid"]})
    if not references:
        return tree
    return {**tree, "metadata": {**tree["metadata"], "ownerReferences": references}}


def outcomes(events: Sequence[Event]) -> Mapping[str, Outcome]:
    """Of each pod, whether it was bound and evicted, and how it ended, from the events alone."""
    ends: dict[str, Outcome] = {}
    for event in events:
        if event.key.resource != "pods" or not event.is_about_object:
            continue
        tree = event.object
        bound, evicted, _ = ends.get(event.key.name, (False, False, ""))
        evicted |= any(
            each["type"] == "DisruptionTarget" and each["status"] == "True"
            for each in json_tree.objects(tree, "status", "conditions")
        )
        is_gone = event.type is EventType.OBJECT_DELETED
        end = "gone" if is_gone else json_tree.text(tree, "status", "phase")
        ends[event.key.name] = (bound or "nodeName" in tree["spec"], evicted, end)
    return ends


def patched(kind: str, key: ObjectKey, body: JsonObject) -> Change:
    path = [kind, *([key.namespace] if key.namespace else []), key.name]
    write = PatchObject(key=key, version="v1", type=PatchType.MERGE, body=body)
    return Change((PatchEdit(name="/".join(path), body=body),), (write,))


def deleted(world: FleetWorld) -> Change:
    name = world.random.choice(world.find("nodes"))["metadata"]["name"]
    write = DeleteObject(key=ObjectKey("", "nodes", "", name))
    return Change((DeleteEdit(name=f"node/{name}"),), (write,))


def tainted(world: FleetWorld) -> Change:
    key = ObjectKey(GROUP, "devicetaintrules", "", "planted")
    write = CreateObject(key=key, version="v1beta2", tree=RULE)
    return Change((Apply(tree=RULE),), (write,))


def pod_deleted(world: FleetWorld) -> Change:
    running = [
        pod["metadata"]
        for pod in world.find("pods")
        if "nodeName" in pod["spec"] and pod["status"]["phase"] not in ("Succeeded", "Failed")
    ]
    pod = world.random.choice(running)
    key = ObjectKey("", "pods", pod["namespace"], pod["name"])
    edit = DeleteEdit(name=f"pod/{pod['namespace']}/{pod['name']}")
    return Change((edit,), (DeleteObject(key=key),))


def slice_deleted(world: FleetWorld) -> Change:
    name = world.random.choice(world.find("resourceslices"))["metadata"]["name"]
    write = DeleteObject(key=ObjectKey(GROUP, "resourceslices", "", name))
    return Change((DeleteEdit(name=f"resourceslice/{name}"),), (write,))


def quota_lowered(world: FleetWorld) -> Change:
    """The namespace `team` may have one device only."""
    quota = world.cluster.must("resourcequotas", "devices", "team")
    hard = dict.fromkeys(quota["spec"]["hard"], "1")
    key = ObjectKey("", "resourcequotas", "team", "devices")
    return patched("resourcequota", key, {"spec": {"hard": hard}})


@draws.in_turn("ways")
@pytest.mark.parametrize(
    ("seed", "change"),
    [
        (301, deleted),
        (300, tainted),
        (304, tainted),
        (306, deleted),
        (316, pod_deleted),
        (317, pod_deleted),
        (313, quota_lowered),
        draws.repeated(343, quota_lowered),
        draws.repeated(327, slice_deleted),
        draws.repeated(360, slice_deleted),
        draws.repeated(362, pod_deleted),
    ],
)
async def test_fork_does_what_the_world_does_in_which_the_change_is_made(
    seed: int, change: Callable[[FleetWorld], Change], tmp_path: Path
) -> None:
    noted = NotedWorld(seed, ACTS)
    noted.rest()
    retell(noted.line.events, noted.plane.late, tmp_path, random.Random(seed), answers=30)
    recording = await load(tmp_path, noted.world.profile)
    events = await recording.events(recording.info)
    act = random.Random(seed).choice(noted.quiet_acts())
    moment = noted.marks[act][0]
    planted = change(NotedWorld(seed, act + 1).world)
    fork, outcome = await recording.fork(micro_text(moment), *planted.edits)
    assert outcome.diff.unexplained == 0
    here = outcomes(await recording.events(fork))
    last = events[-1].stamp.time
    # The fork ends with the recording, which leaves open what is under way then.
    worlds = [
        outcomes([event for event in world if event.stamp.time <= until])
        for world in (changed(seed, act, noted, planted, pace) for pace in range(PACES))
        for until in (last, noted.line.now)
    ]
    agreed = {
        name: end for name, end in worlds[0].items() if all(w.get(name) == end for w in worlds)
    }
    assert len(agreed) > len(worlds[0]) * 3 // 4
    assert {name: here.get(name) for name in agreed} == agreed
    there = outcomes(events)
    assert {name: there.get(name) for name in agreed} != agreed, "the change does nothing"
