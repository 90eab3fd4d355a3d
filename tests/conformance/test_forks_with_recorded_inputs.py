"""Forks of recordings with recorded inputs: alone, beside a change, and upon a change.

Recordings that go on without a change come by day, as do those of which each is altered, or
verified, in the same way.
"""

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from app.adapters.clock import SystemClock
from app.adapters.memory import MemoryWakeUp
from app.adapters.uids import DerivedUids
from app.analysis.diff.report import DiffReport
from app.analysis.edits import Apply, DeleteEdit, Edit, PatchEdit
from app.analysis.replay.unapplied import Unapplied
from app.bootstrap import replays, stores
from app.bootstrap.control_planes import ForkPlanes
from app.bootstrap.rules import rules_of
from app.bootstrap.stores import Store
from app.domain.controllers import registry
from app.domain.errors import InputError
from app.domain.log import Actor, Event, EventType, HistoryInfo, ObjectKey, Revision
from app.domain.values import timestamps
from app.domain.values.fields import core, meta
from app.domain.values.timestamps import SECOND
from app.ports import EventLog, RuntimePorts
from app.service import diffing
from app.service.diffing import Comparison, ComparisonAspect, Ending
from app.service.forking import Forker, ForkRequest, ForkSwitches
from app.service.replays.replaying import silent
from app.service.runtime import RuntimeBounds
from app.settings import Settings
from tests import draws
from tests.imports import import_once
from tests.shared_data import shared_path

ME = Actor(user="me")

NAMES = ["a-quickstart", "b-mig-partitions", "c-multihost-tpu", "e-taints", "j-api-versions"]

LONG = ("b-mig-partitions", "e-taints")
"""These are forked once with each run of the tests, late, so that little goes on."""

SOAK = "i-soak-short"
"""A fork of it takes up to minutes, so it is forked with more draws alone."""

UNRELATED = Apply(
    tree={
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "unrelated", "namespace": "default"},
        "data": {"a": "b"},
    }
)


@dataclass(frozen=True)
class ForkOutcome:
    """Inputs of a fork, those that do not apply, what is unlike anyway; the comparison."""

    inputs: int
    unapplied: Sequence[Unapplied]
    unlike: Sequence[ObjectKey]
    diff: DiffReport


@dataclass(frozen=True)
class Recording:
    """An imported recording, to be forked."""

    store: Store
    info: HistoryInfo

    @property
    def log(self) -> EventLog:
        return self.store.log

    async def events(self, info: HistoryInfo) -> list[Event]:
        return await self.log.read(info.id, after=Revision(0), limit=1_000_000)

    async def fork(
        self,
        at: int | str,
        *edits: Edit,
        switches: ForkSwitches = ForkSwitches(),
        until: int = 0,
        settings: Settings = Settings(),
    ) -> tuple[HistoryInfo, ForkOutcome]:
        ports = RuntimePorts(
            log=self.log, wake_up=MemoryWakeUp(), clock=SystemClock(), uids=DerivedUids(7)
        )
        bounds = RuntimeBounds(poll_seconds=60.0)
        forker = Forker(ports, rules_of, bounds, ForkPlanes(settings))
        last = Revision(until or (await self.log.head(self.info.id)).revision)
        wanted = ForkRequest(switches=switches, edits=edits, until=last)
        name = f"fork-{at}-{len(await self.log.histories())}"
        made = await forker.fork(self.info, name, str(at), wanted, ME)
        comparison = Comparison(by=ComparisonAspect.DECISIONS, schemas=rules_of(self.info).schemas)
        sides = (Ending(history=self.info), Ending(history=made.info))
        diff = await diffing.compare_histories(self.log, *sides, comparison)
        assert isinstance(diff, DiffReport)
        assert made.continued is not None
        outcome = ForkOutcome(
            inputs=made.continued.inputs,
            unapplied=made.continued.unapplied,
            unlike=made.continued.unlike,
            diff=diff,
        )
        return made.info, outcome


async def recorded(name: str, profile: str = "1.36") -> Recording:
    """A recording as `redra import` makes it."""
    store = stores.memory_store()
    settings = {"profile": profile, "recorded": True}
    paths = [shared_path("histories", name)]
    result = await import_once(store.log, paths, name=name, settings=settings)
    return Recording(store, result.history)


def moments_of(name: str, events: Sequence[Event]) -> list[int]:
    """Revisions at which a recording is forked: drawn ones, and with more draws special ones.

    Special are the beginning of what happened, its end, the middle of the busiest second, and the
    revisions between the request of a removal and the removal.
    """
    last = events[-1].revision
    drawn = random.Random(name)
    early, late = drawn.randrange(1, last // 2), drawn.randrange(last // 2, last - 1)
    if not draws.WHOLE:
        return [late] if name in LONG else [early, late]
    several = range(2 * draws.FACTOR)
    first = next(each.revision for each in events if each.stamp.verb == "create")
    seconds: dict[int, list[int]] = defaultdict(list)
    asked: dict[str, int] = {}
    removals = []
    for event in events:
        if event.revision > first:
            seconds[event.stamp.time // SECOND].append(event.revision)
        if event.type is EventType.OBJECT_DELETED and event.uid in asked:
            removals.append(drawn.randrange(asked[event.uid], event.revision))
        elif event.is_about_object and meta.is_deleting(event.object):
            asked.setdefault(event.uid, event.revision)
    busiest = max(seconds.values(), key=len)
    moments = {early, late, first, last - 1, busiest[len(busiest) // 2]}
    moments |= {drawn.randrange(first, last - 1) for _ in several}
    moments |= {drawn.choice(removals) for _ in several if removals}
    return sorted(moments)


@draws.in_turn("ways")
@pytest.mark.parametrize("name", [*NAMES, draws.repeated(SOAK)])
@pytest.mark.timeout(0)  # The number of moments is bounded, and the machine decides the time.
async def test_fork_without_a_change_ends_with_the_decisions_of_its_source(name: str) -> None:
    recording = await recorded(name)
    for at in moments_of(name, await recording.events(recording.info)):
        _, report = await recording.fork(at)
        assert report.diff.is_same, f"at {at}: {report.diff.to_json()['differences']}"
        assert (report.unapplied, report.unlike) == ((), ()), f"at {at}"


@draws.in_turn("ways")
async def test_attempts_under_way_at_the_moment_end_as_they_did() -> None:
    """A pod was refused because of its claim, which another one has written by the moment.

    Its condition and its Event come later. At the first moment the Event has the instant of the
    attempt, at the second the request of the condition had come. Nothing that is changed from the
    moment on changes them, and the pod is not tried again before.
    """
    recording = await recorded("c-multihost-tpu")
    for at, edits in ((119, ()), (119, (UNRELATED,)), (227, ())):
        _, report = await recording.fork(at, *edits)
        assert report.diff.is_same, f"at {at}: {report.diff.to_json()['differences']}"
        assert (report.unapplied, report.unlike) == ((), ()), f"at {at}"


@draws.in_turn("ways")
async def test_claim_that_is_allocated_for_a_pod_that_is_gone_is_written_as_recorded() -> None:
    """The binding cycle had begun; the scheduler writes the claim and takes it back afterwards."""
    recording = await recorded("b-mig-partitions")
    _, report = await recording.fork(771)
    assert report.diff.is_same, report.diff.to_json()["differences"]
    assert (report.unapplied, report.unlike) == ((), ())


async def test_pod_that_was_just_marked_for_its_removal_ends_in_a_fork() -> None:
    """The deletion had been requested before the fork; the log has its two revisions apart."""
    recording = await recorded("c-multihost-tpu")
    events = await recording.events(recording.info)
    marks = [
        mark.revision
        for mark in events
        if mark.key.name == "second-6cb647f4dd-tdzdf"
        and mark.is_about_object
        and mark.object["metadata"].get("deletionGracePeriodSeconds") == 0
    ]
    at = marks[0]
    info, report = await recording.fork(at)
    later = [event for event in await recording.events(info) if event.revision > at]
    ends = [event.key.name for event in later if event.type is EventType.OBJECT_DELETED]
    assert "second-6cb647f4dd-tdzdf" in ends
    assert report.diff.is_same, report.diff.to_json()["differences"]


@draws.in_turn("ways")
@pytest.mark.parametrize("name", ["a-quickstart", "c-multihost-tpu", "j-api-versions"])
async def test_nothing_follows_from_an_edit_that_concerns_nobody(name: str) -> None:
    recording = await recorded(name)
    last = (await recording.log.head(recording.info.id)).revision
    _, report = await recording.fork(last // 3, UNRELATED)
    assert report.diff.is_same, report.diff.to_json()["differences"]
    assert report.unapplied == ()


@draws.in_turn("ways")
async def test_evicted_pods_stay_where_the_rule_is_deleted() -> None:
    recording = await recorded("e-taints")
    events = await recording.events(recording.info)
    rule = "evict-worker-2"
    at = next(event.revision for event in events if event.key.name == rule)
    info, report = await recording.fork(at, DeleteEdit(name=f"devicetaintrule/{rule}"))
    classes = {
        each.pair.name.removeprefix("taints/"): [found.value for found in each.classes]
        for each in report.diff.differences
    }
    spared = {"sh-0": ["spared"], "sh-1": ["spared"], "web-6c7b8c75c5-c566t": ["spared"]}
    # Its ReplicaSet needs no other pod then.
    assert classes == {**spared, "web-6c7b8c75c5-b2svm": ["only in A"]}
    assert {each.root.name for each in report.diff.differences} == {
        f"devicetaintrules.resource.k8s.io/{rule}"
    }
    left = {(each.key.name, each.author.partition(":")[0]) for each in report.unapplied}
    assert (rule, "kubernetes-admin") in left
    assert ("web-6c7b8c75c5-b2svm", "replicaset-controller") in left
    assert await recording.events(recording.info) == events
    # The gone rule is not deleted a second time, and no evicted pod ends.
    later = (await recording.events(info))[at + 2 :]
    assert not [each for each in later if each.key.name in spared and is_end(each)]


def is_end(event: Event) -> bool:
    return event.type is EventType.OBJECT_DELETED and event.key.resource == "pods"


ONE_EDIT: list[tuple[str, str, str, Edit]] = [
    (
        "a-quickstart",
        "1.36",
        "07:58:57",
        PatchEdit(
            name="deviceclass/gpu.example.com",
            body={"spec": {"selectors": [{"cel": {"expression": "false"}}]}},
        ),
    ),
    ("e-taints-rules-ignored", "1.36.2", "08:01:53", DeleteEdit(name="node/worker-2")),
]


@draws.in_turn("wrongs")
@pytest.mark.parametrize(
    ("name", "profile", "clock", "edit"), ONE_EDIT, ids=[r[0] for r in ONE_EDIT]
)
async def test_the_only_edit_is_the_root_of_every_difference(
    name: str, profile: str, clock: str, edit: Edit
) -> None:
    """The inputs and the rules are the same otherwise, so nothing else can be the cause."""
    recording = await recorded(name, profile)
    events = await recording.events(recording.info)
    at = sum(timestamps.micro_text(each.stamp.time)[11:19] <= clock for each in events)
    _, report = await recording.fork(at, edit)
    assert len(report.diff.differences) > 2
    (change,) = report.diff.changes
    assert {each.root.name for each in report.diff.differences} == {str(change.key)}


@draws.in_turn("ways")
async def test_pod_that_moves_is_followed_to_the_end_of_the_work_on_its_node() -> None:
    """A pod is placed when the last recorded input has passed, and others run on another node."""
    recording = await recorded("e-taints")
    cordon = PatchEdit(name="node/worker-1", body={"spec": {"unschedulable": True}})
    info, report = await recording.fork(500, cordon)
    classes = {
        each.pair.name: {found.value for found in each.classes} for each in report.diff.differences
    }
    assert classes["taints/web-6c7b8c75c5-b2svm"] == {"moved", "later"}
    assert "newly unschedulable" not in set().union(*classes.values())
    nodes: dict[str, str] = {}
    moved = set()
    for event in (await recording.events(info))[500:]:
        if event.key.resource != "pods":
            continue
        nodes[event.uid] = core.node_name(event.object) or nodes.get(event.uid, "")
        writer = event.stamp.actor.user.partition("system:node:")[2]
        if writer.startswith("worker-"):
            assert writer == nodes[event.uid], event.key
            if event.key.name in ("n-3", "web-6c7b8c75c5-fq97s"):
                moved.add((event.key.name, writer, event.object["status"].get("hostIP")))
    host = next(
        event.object["status"]["hostIP"]
        for event in await recording.events(recording.info)
        if event.key.resource == "pods"
        and core.node_name(event.object) == "worker-2"
        and event.object["status"].get("hostIP")
    )
    assert {("n-3", "worker-2", host), ("web-6c7b8c75c5-fq97s", "worker-2", host)} <= moved


@draws.in_turn("ways")
async def test_nothing_is_made_in_a_namespace_that_is_deleted() -> None:
    recording = await recorded("c-multihost-tpu")
    events = await recording.events(recording.info)
    at = next(each.revision for each in events if each.key.namespace == "tpu")
    made = {each.uid for each in events[at:] if each.type is EventType.OBJECT_CREATED}
    info, report = await recording.fork(at, DeleteEdit(name="namespace/tpu"))
    later = (await recording.events(info))[at:]
    assert not [each for each in later if each.uid in made and each.key.namespace == "tpu"]
    kinds = {found.value for each in report.diff.differences for found in each.classes}
    assert kinds == {"only in A"}


@draws.in_turn("ways")
async def test_inputs_go_on_up_to_a_moment() -> None:
    recording = await recorded("a-quickstart")
    last = (await recording.log.head(recording.info.id)).revision
    _, whole = await recording.fork(last // 3)
    events = await recording.events(recording.info)
    until = events[last // 2].revision
    info, part = await recording.fork(last // 3, until=until)
    assert part.inputs < whole.inputs
    assert part.diff is not None
    assert part.diff.is_same
    ends = (await recording.events(info))[-1].stamp.time
    assert ends < events[-1].stamp.time


@pytest.mark.parametrize(("at", "until"), [(50, 50), (50, 20)])
async def test_fork_without_inputs_to_go_on_is_refused(at: int, until: int) -> None:
    recording = await recorded("j-api-versions")
    with pytest.raises(InputError, match="no inputs after revision 50"):
        await recording.fork(at, until=until)
    assert [info.name for info in await recording.log.histories()] == ["j-api-versions"]
    assert await recording.log.unfinished() == []


async def test_fork_with_more_events_of_its_own_than_may_be_is_refused() -> None:
    recording = await recorded("j-api-versions")
    message = "more than 5 events of its own; end it at an earlier moment"
    with pytest.raises(InputError, match=message):
        await recording.fork(50, settings=Settings(decide_events_max=5))
    assert [info.name for info in await recording.log.histories()] == ["j-api-versions"]
    assert await recording.log.unfinished() == []
    info, _ = await recording.fork(50)
    own = [each for each in await recording.events(info) if each.revision > 51]
    await recording.fork(50, until=60, settings=Settings(decide_events_max=len(own)))


@draws.in_turn("ways")
@pytest.mark.parametrize("name", NAMES)
async def test_fork_with_recorded_inputs_is_verified_but_for_what_had_a_pace(name: str) -> None:
    """What controllers without a pace decide can be made again from the log of the fork."""
    recording = await recorded(name)
    last = (await recording.log.head(recording.info.id)).revision
    info, _ = await recording.fork(random.Random(f"verified {name}").randrange(1, last // 2))
    verified = await replays.verify(recording.store, Settings(), info.name, "", silent)
    assert [each.subject for each in verified.decisions.differences] == []
    unpaced = [
        event
        for event in await recording.events(info)
        if event.type is EventType.DECISION_RECORDED
        and event.object["inputs"].get("paced")
        and event.object["controller"] not in registry.PACED
    ]
    assert unpaced == []
