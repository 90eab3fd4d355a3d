"""Compares forks that replay recorded inputs with an independent judge.

A script runs on redra's control plane, which gives a history. A fork at the moment of a planted
change, with that change as an edit and the history's later inputs, must give each pod the device,
the eviction or the wait that the judge computes (`expected_differences.Play`).
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from heapq import heapify, heappop, heappush
from typing import Any
from unittest import mock

import pytest

from app.adapters.clock import SystemClock
from app.adapters.memory import MemoryLog, MemoryStore, MemoryWakeUp
from app.adapters.uids import DerivedUids
from app.analysis.diff.causes import RootKind
from app.analysis.diff.report import DiffReport
from app.analysis.edits import Apply, DeleteEdit, Edit, PatchEdit
from app.bootstrap.control_planes import ForkPlanes
from app.bootstrap.rules import rules_of
from app.domain.controllers.quirks import ControllerQuirks
from app.domain.log import Actor, Event, EventType, HistoryInfo, Revision
from app.domain.log.event import GENESIS
from app.domain.objects.write.commands import Propagation
from app.domain.values.timestamps import SECOND, Instant
from app.ports import RuntimePorts
from app.service import diffing
from app.service.diffing import Comparison, ComparisonAspect, Ending
from app.service.forking import Forker, ForkRequest, MadeFork
from app.service.replays.deciding import continuing
from app.service.replays.deciding.continuing import Control
from app.service.runtime import RuntimeBounds
from app.settings import Settings
from tests import draws
from tests.cluster import DRIVER, T0, Cluster
from tests.simulation import scripted
from tests.simulation.expected_differences import Act, Fate, Play, Script, draw, plant
from tests.simulation.test_differences import devices, is_as_played

SEEDS = draws.seeds(12)
ACTS = 16
EDITS = ("lose", "taint", "select", "cordon", "republish")
ME = Actor(user="me")
UNRELATED = Apply(
    tree={
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "other", "namespace": "default"},
    }
)
UNRELATED_CLASS = Apply(
    tree={
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "other"},
        "spec": {"selectors": [{"cel": {"expression": "false"}}]},
    }
)


@dataclass
class Forked(Play):
    """Plays the rest of a script with the recorded inputs.

    A pod finishes as long after it got its device as in the recording; a pod that did not finish
    there does not finish here. `is_clear` becomes false when two acts happen at one instant.
    """

    recorded: Mapping[str, Fate] = field(default_factory=dict)
    is_clear: bool = True

    def run(self) -> Mapping[str, Fate]:
        queue = [(act.time, number, act) for number, act in enumerate(self.script.acts)]
        heapify(queue)
        times = {act.time for act in self.script.acts}
        pending: list[tuple[float, int, Act]] = []
        while queue:
            time, number, act = heappop(queue)
            if act.what != "finish" or number >= len(self.script.acts):
                self._do(act)
            elif self._was_recorded(act):
                pending.append((time, number, act))
            while self._settle(act.part, time):
                pass
            for entry in list(pending):
                here = self.fates[entry[2].name]
                if here.placed is None:
                    continue
                pending.remove(entry)
                there = self.recorded[entry[2].name].placed or 0.0
                due = max(time, entry[0] + max(0.0, here.placed - there))
                self.is_clear &= due == entry[0] or due not in times
                times.add(due)
                heappush(queue, (due, len(self.script.acts) + entry[1], entry[2]))
        return self.fates

    def _was_recorded(self, act: Act) -> bool:
        there = self.recorded[act.name]
        return there.placed is not None and there.evicted is None and there.ended == act.time


async def recorded(cluster: Cluster, script: Script) -> tuple[MemoryLog, HistoryInfo]:
    """The recorded history of a cluster."""
    log, events = MemoryLog(MemoryStore()), cluster.line.events
    settings = {**cluster.profile.settings(), "quirks": asdict(ControllerQuirks(c2=script.c2))}
    info = await log.create_history(
        "base", seed=1, settings=settings, created=Instant(0), hash=GENESIS
    )
    await log.append(info.id, expected=await log.head(info.id), events=events)
    return log, info


def edit_of(cluster: Cluster, script: Script, act: Act) -> Edit:
    """The planted act as an edit."""
    slices = cluster.must("resourceslices", f"n{act.part}-slice")
    spec = slices["spec"]
    pool = {**spec["pool"], "generation": spec["pool"]["generation"] + 1}
    match act.what:
        case "lose":
            kept = [device for device in spec["devices"] if device["name"] != act.name]
            body = {"spec": {"devices": kept, "pool": pool}}
            return PatchEdit(name=f"resourceslice/n{act.part}-slice", body=body)
        case "republish":
            return PatchEdit(name=f"resourceslice/n{act.part}-slice", body={"spec": {"pool": pool}})
        case "select":
            expression = f'device.attributes["{DRIVER}"].model == "a"'
            body = {"spec": {"selectors": [{"cel": {"expression": expression}}]}}
            return PatchEdit(name=f"deviceclass/{act.name}", body=body)
        case "cordon":
            return PatchEdit(name=f"node/{act.name}", body={"spec": {"unschedulable": True}})
        case _:
            device, _, effect = act.value.partition(":")
            selector = {"driver": DRIVER, "pool": f"n{act.part}", "device": device}
            taint = {"key": scripted.KEY, "value": "true", "effect": effect}
            return Apply(
                tree={
                    "apiVersion": "resource.k8s.io/v1",
                    "kind": "DeviceTaintRule",
                    "metadata": {"name": act.name},
                    "spec": {"deviceSelector": selector, "taint": taint},
                }
            )


async def fork(
    log: MemoryLog, info: HistoryInfo, at: Revision, *edits: Edit
) -> tuple[MadeFork, list[Event]]:
    ports = RuntimePorts(log=log, wake_up=MemoryWakeUp(), clock=SystemClock(), uids=DerivedUids(7))
    forker = Forker(ports, rules_of, RuntimeBounds(poll_seconds=60.0), ForkPlanes(Settings()))
    until = (await log.head(info.id)).revision
    made = await forker.fork(info, f"f{at}", str(at), ForkRequest(edits=edits, until=until), ME)
    return made, await log.read(made.info.id, after=Revision(0), limit=1_000_000)


def evictions(events: list[Event]) -> set[str]:
    """The pods that were evicted because of a taint."""
    return {
        event.key.name
        for event in events
        if event.key.resource == "pods" and event.type is not EventType.OBJECT_DELETED
        for condition in event.object.get("status", {}).get("conditions", ())
        if condition["type"] == "DisruptionTarget"
    }


@draws.in_turn("ways")
async def test_nothing_else_comes_of_a_fork_without_a_change() -> None:
    # The moment of 107 lies amid what happened at one instant.
    for seed in (*SEEDS[: len(SEEDS) // 4], 107):
        script = draw(random.Random(seed), parts=2, acts=ACTS)
        cluster = scripted.run(script)
        log, info = await recorded(cluster, script)
        at = Revision(random.Random(seed).randrange(1, len(cluster.line.events)))
        made, _ = await fork(log, info, at)
        comparison = Comparison(by=ComparisonAspect.DECISIONS, schemas=rules_of(info).schemas)
        report = await diffing.compare_histories(
            log, Ending(history=info), Ending(history=made.info), comparison
        )
        assert isinstance(report, DiffReport)
        assert report.is_same, f"seed {seed} at {at}: {report.to_json()['differences']}"
        assert made.continued is not None
        assert (made.continued.unapplied, made.continued.unlike) == ((), ())


async def test_pod_without_a_claim_is_put_to_its_template_and_is_not_spared() -> None:
    """Its template is deleted in the fork, so it never runs; there, a rule evicted it."""
    cluster = Cluster()
    cluster.node("n1")
    cluster.device_class()
    cluster.slice("n1", devices=1)
    cluster.template()
    cluster.settle()
    cluster.wait(5)
    at = cluster.line.events[-1].revision
    cluster.pod("late", template="gpu")
    cluster.settle()
    cluster.wait(60)
    cluster.create(
        "resource.k8s.io/v1",
        "DeviceTaintRule",
        "rule",
        spec={
            "deviceSelector": {"driver": DRIVER, "pool": "n1"},
            "taint": {"key": scripted.KEY, "effect": "NoExecute"},
        },
    )
    cluster.settle()
    cluster.wait(60)
    assert evictions(cluster.line.events) == {"late"}
    log = MemoryLog(MemoryStore())
    info = await log.create_history(
        "base", seed=1, settings=cluster.profile.settings(), created=Instant(0), hash=GENESIS
    )
    await log.append(info.id, expected=await log.head(info.id), events=cluster.line.events)
    made, _ = await fork(log, info, at, DeleteEdit(name="resourceclaimtemplate/gpu"))
    assert made.continued is not None
    assert made.continued.inputs == len(("the pod", "the rule"))
    comparison = Comparison(by=ComparisonAspect.DECISIONS, schemas=rules_of(info).schemas)
    report = await diffing.compare_histories(
        log, Ending(history=info), Ending(history=made.info), comparison
    )
    assert isinstance(report, DiffReport)
    (difference,) = report.differences
    assert [each.value for each in difference.classes] == ["newly unschedulable"]
    assert difference.root.kind is RootKind.CHANGE
    assert difference.root.name == "resourceclaimtemplates.resource.k8s.io/default/gpu"
    assert report.unexplained == 0


@pytest.mark.parametrize("has_room", [True, False], ids=["room", "victim"])
async def test_pod_that_the_recording_does_not_try_gets_a_device_that_is_free_later(
    has_room: bool,
) -> None:
    """The change taints the device; later its holder is evicted, and the other pod tolerates it.

    Attempts that fail after the change are not written, because the recording shows none. Without
    room on the node, the pod evicts one of lower priority.
    """
    cluster = Cluster()
    cluster.node("n1", cpu="4")
    cluster.device_class()
    cluster.slice("n1", devices=1)
    cluster.create("scheduling.k8s.io/v1", "PriorityClass", "high", value=1000)
    lasting = {"key": scripted.KEY, "operator": "Exists", "effect": "NoExecute"}
    cluster.template("short", tolerations=[{**lasting, "tolerationSeconds": 20}])
    cluster.template("long", tolerations=[lasting])
    cluster.pod("holder", template="short", priorityClassName="high")
    cluster.pod("victim", requests={"cpu": "1" if has_room else "3"})
    cluster.settle()
    cluster.pod("waiting", template="long", requests={"cpu": "3"}, priorityClassName="high")
    cluster.settle().wait(60)
    at = cluster.line.events[-1].revision
    cluster.wait(60)
    cluster.create("v1", "ResourceQuota", "wide", spec={"hard": {"pods": "50"}})
    cluster.settle().wait(60)
    script = Script(devices=(), acts=())
    log, info = await recorded(cluster, script)
    uid = cluster.must("pods", "waiting")["metadata"]["uid"]
    find_control = continuing.find_control

    async def untried(*given: Any, **named: Any) -> Control:
        control = await find_control(*given, **named)
        return replace(control, variant=replace(control.variant, untried=frozenset({uid})))

    tainted = edit_of(cluster, script, Act(0, 1, "taint", "rule", "gpu-0:NoExecute"))
    with mock.patch.object(continuing, "find_control", untried):
        _, unrelated = await fork(log, info, at, UNRELATED)
        _, freed = await fork(log, info, Revision(at + 1), tainted)
    began = unrelated[at].stamp.time
    assert {event.stamp.time for event in unrelated[at:] if event.uid == uid} <= {began}
    assert evictions(freed) == ({"holder"} if has_room else {"holder", "victim"})
    last = {event.key.name: event for event in freed if event.key.resource == "pods"}
    assert last["waiting"].object["spec"]["nodeName"] == "n1"


async def test_recorded_creation_of_a_pod_that_runs_here_already_changes_nothing() -> None:
    """Its ReplicaSet made it earlier here, because another pod was deleted, under that name."""
    cluster = Cluster()
    cluster.node("n1")
    labels = {"app": "web"}
    pod = {"containers": [{"name": "c", "image": "i"}]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    cluster.create("apps/v1", "ReplicaSet", "web", spec=spec)
    cluster.settle().wait(5)
    (first,) = cluster.names("pods")
    at = cluster.line.events[-1].revision
    cluster.wait(60)
    cluster.patch("replicasets", "web", {"spec": {"replicas": 2}})
    cluster.settle().wait(60)
    log, info = await recorded(cluster, Script(devices=(), acts=()))
    _, events = await fork(log, info, at, DeleteEdit(name=f"pod/{first}"))
    bound: set[str] = set()
    pods: dict[str, Event] = {}
    for event in events:
        if event.key.resource == "pods":
            has_node = "nodeName" in event.object["spec"]
            assert has_node or event.uid not in bound
            bound |= {event.uid} if has_node else set()
            pods[event.uid] = event
    alive = [each for each in pods.values() if each.type is not EventType.OBJECT_DELETED]
    assert [each.object["spec"].get("nodeName") for each in alive] == ["n1"] * 2


@pytest.mark.parametrize("propagation", [None, *Propagation])
async def test_pods_of_a_deleted_job_stay_or_go_as_they_did(
    propagation: Propagation | None,
) -> None:
    """By default they stay; the log has no options of the request, only what came of it."""
    cluster = Cluster()
    cluster.node("n1")
    pod = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}
    cluster.create("batch/v1", "Job", "work", spec={"template": {"spec": pod}})
    cluster.settle().wait(5)
    at = cluster.line.events[-1].revision
    cluster.delete("jobs", "work", propagation=propagation)
    cluster.settle().wait(60)
    log, info = await recorded(cluster, Script(devices=(), acts=()))
    _, events = await fork(log, info, at, UNRELATED)
    here, there = map(left_of, (events, cluster.line.events))
    assert here == there
    assert ("pods", False) in there or propagation in (
        Propagation.BACKGROUND,
        Propagation.FOREGROUND,
    )
    assert ("pods", True) in there or propagation in (None, Propagation.ORPHAN)


def left_of(events: Sequence[Event]) -> set[tuple[str, bool]]:
    """The kinds of pods and jobs that are left at the end, and whether they are to be deleted."""
    last = {event.key: event for event in events if event.key.resource in ("pods", "jobs")}
    return {
        (event.key.resource, "deletionTimestamp" in event.object["metadata"])
        for event in last.values()
        if event.type is not EventType.OBJECT_DELETED
    }


async def test_pod_whose_attempts_said_nothing_new_waits_for_the_one_before_it() -> None:
    """Such attempts wrote nothing; one decision covers all of them."""
    cluster = Cluster()
    cluster.node("n1")
    cluster.device_class()
    cluster.slice("n1", 1)
    cluster.template()
    for name in ("holder", "first", "second"):
        cluster.pod(name, template="gpu")
        cluster.settle().wait(10)
    cluster.wait(1_000)
    cluster.finish("holder")
    cluster.settle().wait(400)
    log, info = await recorded(cluster, Script(devices=(), acts=()))
    gone = [event for event in cluster.line.events if event.key.name.startswith("holder-")]
    (at,) = [each.revision for each in gone if each.type is EventType.OBJECT_DELETED]
    _, events = await fork(log, info, at, UNRELATED_CLASS)
    pods = [event for event in events if event.key.resource == "pods"]
    assert {each.key.name for each in pods if "nodeName" in each.object["spec"]} == {
        "holder",
        "first",
    }


async def test_pod_whose_reason_was_stated_before_the_moment_keeps_its_place_in_the_queue() -> None:
    """Its later attempts wrote nothing; the pod behind it stated its reason after the moment."""
    cluster = Cluster()
    cluster.node("n1")
    cluster.device_class()
    cluster.slice("n1", devices=1)
    bearing = [{"key": scripted.KEY, "operator": "Exists"}]
    cluster.template("plain")
    cluster.template("tolerant", tolerations=bearing)
    names = ("holder", "gone", "ahead", "behind")
    for rank, name in enumerate(names):
        value = 1_000 - rank
        never = {"preemptionPolicy": "Never"}
        cluster.create("scheduling.k8s.io/v1", "PriorityClass", f"p-{name}", value=value, **never)
    for name in names[:3]:
        template = "tolerant" if name == "ahead" else "plain"
        cluster.pod(name, template=template, priorityClassName=f"p-{name}")
        cluster.settle().wait(1_000)
    at = cluster.line.events[-1].revision
    cluster.wait(1_000)
    cluster.pod("behind", template="tolerant", priorityClassName="p-behind")
    cluster.settle().wait(2_000)
    cluster.finish("holder")
    cluster.settle().wait(400)
    assert devices(cluster.line.events) == {"holder": "gpu-0", "gone": "gpu-0"}
    script = Script(devices=(), acts=())
    log, info = await recorded(cluster, script)
    tainted = edit_of(cluster, script, Act(0, 1, "taint", "rule", "gpu-0:NoSchedule"))
    _, events = await fork(log, info, at, tainted)
    assert devices(events) == {"holder": "gpu-0", "ahead": "gpu-0"}


async def test_pod_of_a_removed_node_goes_when_it_went() -> None:
    """PodGC waits 40 s from the removal of the node, of which the objects show nothing."""
    cluster = Cluster()
    cluster.node("n1")
    cluster.pod("orphan")
    cluster.settle().wait(100)
    cluster.delete("nodes", "n1")
    cluster.settle().wait(10)
    cluster.pod("other")
    cluster.settle()
    at = cluster.line.events[-1].revision
    cluster.wait(70)
    cluster.pod("later")
    cluster.settle().wait(5)
    assert cluster.get("pods", "orphan") is None
    log, info = await recorded(cluster, Script(devices=(), acts=()))
    made, events = await fork(log, info, at)
    there, here = [
        [event.stamp.time for event in each if event.key.name == "orphan"][-1]
        for each in (cluster.line.events, events)
    ]
    assert (here - there) // SECOND == 0
    comparison = Comparison(by=ComparisonAspect.DECISIONS, schemas=rules_of(info).schemas)
    report = await diffing.compare_histories(
        log, Ending(history=info), Ending(history=made.info), comparison
    )
    assert isinstance(report, DiffReport)
    assert report.is_same


async def test_pod_is_put_to_one_on_its_way_that_has_its_device() -> None:
    """The other pod is tried a little earlier, and its claim is written a little later."""
    cluster = Cluster()
    cluster.node("n1")
    cluster.device_class()
    cluster.slice("n1", devices=2)
    cluster.template()
    cluster.settle()
    at = cluster.line.events[-1].revision
    cluster.wait(6.01)
    cluster.pod("moved", template="gpu")
    cluster.settle().wait(30)
    log, info = await recorded(cluster, Script(devices=(), acts=()))
    spec = {
        "containers": [{"name": "main", "image": "busybox:1"}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
    }
    tree = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "another", "namespace": "default"},
        "spec": spec,
    }
    made, events = await fork(log, info, at, Apply(tree=tree))
    assert devices(events) == {"another": "gpu-0", "moved": "gpu-1"}
    comparison = Comparison(by=ComparisonAspect.DECISIONS, schemas=rules_of(info).schemas)
    report = await diffing.compare_histories(
        log, Ending(history=info), Ending(history=made.info), comparison
    )
    assert isinstance(report, DiffReport)
    causes = {each.pair.name: each.root.name for each in report.differences}
    assert set(causes.values()) == {"pods/default/another"}
    (moved,) = [each for each in report.differences if each.pair.name == "default/moved"]
    assert moved.parting is not None
    assert moved.parting.device.endswith("n1/gpu-0")
    assert (moved.parting.a, moved.parting.b) == ("chosen", "taken by a pod that was on its way")


@pytest.mark.parametrize("edits", [(), (UNRELATED,)], ids=["no change", "another object"])
async def test_pod_that_terminates_at_the_moment_ends_when_it_ended(edits: Sequence[Edit]) -> None:
    """Its recorded kubelet ends it 20 s later; no emulated one does."""
    cluster = Cluster()
    cluster.node("n1")
    cluster.pod("leaving")
    cluster.settle().wait(5)
    cluster.delete("pods", "leaving")
    cluster.settle().wait(9)
    cluster.pod("other")
    cluster.settle()
    at = cluster.line.events[-1].revision
    cluster.wait(11)
    cluster.kill("leaving")
    ended = cluster.line.now
    log, info = await recorded(cluster, Script(devices=(), acts=()))
    made, events = await fork(log, info, at, *edits)
    assert made.continued is not None
    assert made.continued.unapplied == ()
    last = [event for event in events if event.key.name == "leaving"][-1]
    assert (last.type, last.stamp.time) == (EventType.OBJECT_DELETED, ended)


@draws.in_turn("ways")
async def test_each_pod_of_a_changed_world_fares_as_the_judge_says() -> None:
    judged = changed = 0
    for seed in SEEDS:
        drawn = random.Random(seed)
        before = draw(drawn, parts=1, acts=ACTS)
        after, planted = plant(drawn, before)
        acts = [act for act in after.acts if act.is_planted]
        if not planted or planted[0].what not in EDITS:
            continue
        (act,) = acts
        base, told = scripted.run(before), Play(before).run()
        if not is_as_played(base, told):
            continue
        moment = T0 + int(scripted.EPOCH_SECONDS * (act.time + 1)) * SECOND
        events = base.line.events
        at = max(event.revision for event in events if event.stamp.time < moment)
        judge = Forked(after, recorded=told)
        wanted = judge.run()
        if not judge.is_clear:
            continue
        log, info = await recorded(base, before)
        _, forked = await fork(log, info, at, edit_of(base, before, act))
        judged += 1
        given = {name: fate.device for name, fate in wanted.items() if fate.device}
        assert devices(forked) == given, f"seed {seed}: {planted}"
        evicted = {name for name, fate in wanted.items() if fate.evicted is not None}
        assert evictions(forked) == evicted, f"seed {seed}: {planted}"
        changed += wanted != told
    assert judged > len(SEEDS) // 4
    assert changed > len(SEEDS) // 8
