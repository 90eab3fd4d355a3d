"""Forks of recordings that run on: running pods are affected only if there is a cause.

Recordings that run on without a change come by day.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from app.adapters.clock import SystemClock
from app.adapters.memory import MemoryLog, MemoryStore, MemoryWakeUp
from app.adapters.uids import DerivedUids
from app.analysis.edits import DeleteEdit, Edit
from app.analysis.views import compiler_of, features_of
from app.bootstrap.rules import rules_of
from app.domain.controllers import reconcilers, registry
from app.domain.log import Actor, Event, EventType, HistoryInfo, Revision
from app.domain.log.chain import check_chain, genesis_of
from app.domain.objects import profile as profiles
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import SECOND, Instant
from app.ports import RuntimePorts
from app.service.forking import Forker, ForkRequest, ForkSwitches
from app.service.replays.reconciling import ReplayTimeline
from app.service.runtime import RuntimeBounds
from tests import draws
from tests.imports import import_once
from tests.shared_data import shared_path

ACTOR = Actor(user="me")
MINUTE = 60 * SECOND


@dataclass(frozen=True)
class Recording:
    """An imported recording, to be forked."""

    log: MemoryLog
    info: HistoryInfo

    async def events(self, info: HistoryInfo) -> list[Event]:
        return await self.log.read(info.id, after=Revision(0), limit=1_000_000)

    async def fork(
        self, at: int, *edits: Edit, switches: ForkSwitches = ForkSwitches()
    ) -> ReplayTimeline:
        """The timeline of a fork, with everything that happened up to there and the edits."""
        ports = RuntimePorts(
            log=self.log, wake_up=MemoryWakeUp(), clock=SystemClock(), uids=DerivedUids(7)
        )
        forker = Forker(ports=ports, rules=rules_of, bounds=RuntimeBounds(poll_seconds=60.0))
        wanted = ForkRequest(switches=switches, edits=edits)
        name = f"fork-{len(await self.log.histories())}"
        info = (await forker.fork(self.info, name, str(at), wanted, ACTOR)).info
        events = await self.events(info)
        assert check_chain(events, hash=genesis_of(info)) == (await self.log.head(info.id)).hash
        profile = profiles.from_settings(info.settings)
        line = ReplayTimeline(
            rules=rules_of(info),
            uids=DerivedUids(7),
            start=events[-1].stamp.time,
        )
        for event in events[: at + 1]:
            line.append(event)
        # As each controller's loop begins with a fork.
        line.controllers = reconcilers.controllers(
            profile,
            features_of(profile),
            compiler_of(profile),
            registry.options_from(info.settings),
        )
        for event in line.views.objects.left_over(line.head.revision):
            for controller in line.controllers:
                controller.fold(event, line.views)
        for event in events[at + 1 :]:
            line.append(event)
        line.settle()
        return line


async def recorded(name: str, **settings: object) -> Recording:
    """A recording as `redra import` makes it."""
    log = MemoryLog(MemoryStore())
    paths = [shared_path("histories", name)]
    chosen = {"profile": "1.36", "recorded": True, **settings}
    result = await import_once(log, paths, name=name, settings=chosen)
    return Recording(log, result.history)


def running(line: ReplayTimeline) -> dict[str, str]:
    """The node of each pod that stays somewhere and is not ending, by uid.

    Containers that end by themselves end on emulated nodes, too.
    """
    pods = (line.views.objects.get(key) for key in line.views.objects.keys("", "pods"))
    return {
        meta.uid(pod): core.node_name(pod)
        for pod in pods
        if pod and core.node_name(pod) and not meta.is_deleting(pod) and meta.phase(pod) != "Failed"
    }


async def busiest(recording: Recording) -> int:
    """The first revision at which most pods run."""
    nodes: dict[str, str] = {}
    best, most = 0, -1
    for event in await recording.events(recording.info):
        if event.key.resource == "pods" and event.is_about_object:
            pod = event.object
            runs = core.node_name(pod) and not meta.is_deleting(pod) and not core.is_finished(pod)
            if runs and event.type is not EventType.OBJECT_DELETED:
                nodes[event.uid] = core.node_name(pod)
            else:
                nodes.pop(event.uid, None)
            if len(nodes) > most:
                best, most = event.revision, len(nodes)
    return best


@draws.BY_DAY
@pytest.mark.parametrize(
    "name", ["a-quickstart", "b-mig-partitions", "c-multihost-tpu", "j-api-versions"]
)
async def test_what_runs_in_a_recording_runs_on_in_its_fork(name: str) -> None:
    recording = await recorded(name)
    at = await busiest(recording)
    line = await recording.fork(at)
    before = running(line)
    line.advance(Instant(line.now + 30 * MINUTE))
    assert len(before) > 2
    assert before.items() <= running(line).items()
    assert line.refusals == []
    assert evictions(line, at) == set()
    assert not [each for each in outcomes(line, at) if each[0] == "eviction"]


def outcomes(line: ReplayTimeline, since: int) -> list[tuple[str, str, str]]:
    """What controllers have decided after a revision: controller, outcome, subject."""
    return [
        (event.object["controller"], event.object["outcome"], event.object["name"])
        for event in line.events
        if event.revision > since and event.type is EventType.DECISION_RECORDED
    ]


def evictions(line: ReplayTimeline, since: int) -> set[str]:
    """Names of pods that the taint manager has evicted after a revision."""
    return {
        str(event.object["involvedObject"]["name"])
        for event in line.events
        if event.revision > since
        and event.key.resource == "events"
        and event.type is EventType.OBJECT_CREATED
        and event.object.get("message") == "Marking for deletion"
    }


RULES = [
    ("e-taints", "evict-worker-2"),
    ("e-taints-rules-ignored", "evict-worker-2"),
    *([("e-taints", "maintenance"), ("e-taints", "dev-ne")] if draws.WHOLE else ()),
    *([("i-soak-short", "rule-147")] if draws.WHOLE else ()),
]
"""Rules that evict pods in recordings, with the effect from which on they do."""


@draws.in_turn("ways")
@pytest.mark.parametrize(("name", "rule"), RULES)
async def test_pods_stay_where_the_rule_that_evicted_them_is_deleted(name: str, rule: str) -> None:
    recording = await recorded(name)
    events = await recording.events(recording.info)
    evicts = next(each.revision for each in events if each.key.name == rule and is_evicting(each))
    with_rule = await recording.fork(evicts)
    with_rule.advance(Instant(with_rule.now + 10 * MINUTE))
    recording = await recorded(name)
    without = await recording.fork(evicts, DeleteEdit(name=f"devicetaintrule/{rule}"))
    before = running(without)
    without.advance(Instant(without.now + 10 * MINUTE))
    # Others are evicted for what slices say.
    spared = evictions(with_rule, evicts) - evictions(without, evicts)
    assert spared
    cancelled = {each for _, outcome, each in outcomes(without, evicts) if outcome == "Cancelled"}
    assert spared <= cancelled
    stays = running(without)
    pods = {meta.uid(pod): meta.name(pod) for pod in every_pod(without)}
    assert {uid for uid in before if pods.get(uid) in spared} <= stays.keys()
    if name.startswith("e-"):
        assert evictions(without, evicts) == set()
        assert before.items() <= stays.items()
    if rule == "evict-worker-2":
        assert {outcome for _, outcome, _ in outcomes(without, evicts)} == {"Cancelled"}
        assert cancelled <= evictions(with_rule, evicts)


def is_evicting(event: Event) -> bool:
    """Whether an event is about a rule that evicts."""
    taint = event.object.get("spec", {}).get("taint", {}) if event.is_about_object else {}
    return event.key.resource == "devicetaintrules" and taint.get("effect") == "NoExecute"


def every_pod(line: ReplayTimeline) -> Iterator[JsonObject]:
    for key in line.views.objects.keys("", "pods"):
        if (pod := line.views.objects.get(key)) is not None:
            yield pod
