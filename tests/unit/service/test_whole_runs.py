"""How far a run of a recording goes: to its end, to an instant, or until it is over."""

from collections.abc import Callable, Sequence
from functools import cache

import pytest

from app.adapters.memory import MemoryLog, MemoryStore
from app.analysis.replay.differences import compare
from app.analysis.replay.traces import Trace
from app.analysis.replay.variants import Variant
from app.analysis.replay.writers import DECIDED
from app.analysis.verify.invariants.violations import LATE_AFTER
from app.bootstrap.control_planes import ControlPlanes
from app.domain.controllers.registry import ControllerOptions
from app.domain.log import Event, EventType, HistoryInfo, Revision
from app.domain.log.event import GENESIS
from app.domain.values.fields import core
from app.domain.values.timestamps import SECOND, Instant
from app.service.replays.deciding.replay import Pacing, Proofs, decide_again
from app.service.replays.deciding.run import Run
from app.service.replays.replaying import ReplayBounds
from tests.cluster import T0, Cluster
from tests.unit.analysis.replay.test_recording import story
from tests.unit.service.recorded_runs import runs_of


@cache
def recorded() -> Cluster:
    return story()


FIRST_LOOKS = 3
"""A run may ask whether it is over some times before it must be told so."""


async def made(
    is_over: Callable[[Trace, Instant], bool] | None = None, until: float | None = None
) -> Run:
    end = None if until is None else Instant(T0 + int(until * SECOND))
    return await runs_of(recorded()).run(
        Variant(is_paced=False), end, keep_events=True, is_over=is_over
    )


def inputs(events: list[Event] | tuple[Event, ...]) -> list[str]:
    """What the user of the story wrote, in order."""
    return [
        f"{each.stamp.verb} {each.key.resource}/{each.key.name}"
        for each in events
        if each.is_about_object and each.stamp.actor.user == "alice"
    ]


async def test_run_that_nothing_ends_has_all_inputs() -> None:
    run = await made()
    assert not run.is_cut_short
    assert inputs(tuple(run.timeline.events)) == inputs(recorded().line.events)
    asked: list[Instant] = []

    def is_over(trace: Trace, now: Instant) -> bool:
        asked.append(now)
        return False

    other = await made(is_over)
    assert not other.is_cut_short
    assert inputs(tuple(other.timeline.events)) == inputs(recorded().line.events)
    assert asked == sorted(asked)
    assert len(asked) >= FIRST_LOOKS


@pytest.mark.parametrize("looks", [1, 2, FIRST_LOOKS])
async def test_run_that_is_over_is_cut_short_and_has_fewer_inputs(looks: int) -> None:
    asked: list[Instant] = []

    def is_over(trace: Trace, now: Instant) -> bool:
        asked.append(now)
        return len(asked) == looks

    run = await made(is_over)
    assert run.is_cut_short
    assert len(asked) == looks
    begun = inputs(tuple(run.timeline.events))
    whole = inputs(recorded().line.events)
    assert begun == whole[: len(begun)]
    assert len(begun) < len(whole)


async def test_run_up_to_an_instant_has_the_inputs_until_then_and_is_whole() -> None:
    until = 100.0
    run = await made(until=until)
    expected = [e for e in recorded().line.events if e.stamp.time <= T0 + until * SECOND]
    assert not run.is_cut_short
    assert inputs(tuple(run.timeline.events)) == inputs(expected)
    assert run.timeline.now == T0 + until * SECOND


@pytest.mark.parametrize("is_paced", [False, True])
async def test_run_of_a_history_gives_what_was_recorded(is_paced: bool) -> None:
    runs = runs_of(recorded())
    run = await runs.run(Variant(is_paced=is_paced))
    there = runs.recording.trace
    assert compare(there, run.trace).different == {}
    assert set(there.node_of) == set(run.trace.node_of) != set()
    assert set(there.evicted) == set(run.trace.evicted) != set()


async def kept(cluster: Cluster | None = None) -> tuple[MemoryLog, HistoryInfo]:
    """The story, or a cluster, in a log."""
    cluster, log = cluster or recorded(), MemoryLog(MemoryStore())
    info = await log.create_history(
        "h", seed=1, settings=cluster.profile.settings(), created=Instant(0), hash=GENESIS
    )
    await log.append(info.id, expected=await log.head(info.id), events=cluster.line.events)
    return log, info


def wrong_plane(info: HistoryInfo) -> ControlPlanes:
    """A control plane without the controller that evicts pods."""
    return ControlPlanes(info, names=tuple(name for name in DECIDED if name != "eviction"))


def deletions(events: Sequence[Event]) -> set[str]:
    return {
        event.key.name
        for event in events
        if event.key.resource == "pods" and event.type is EventType.OBJECT_DELETED
    }


@pytest.mark.parametrize("until", [0, 40])
@pytest.mark.parametrize("pace", [Pacing.RECORDED, Pacing.VIRTUAL])
async def test_history_that_is_decided_again_is_beside_what_was_recorded(
    until: int, pace: Pacing
) -> None:
    """The recorded events go up to the same revision; those of the run are its own."""
    log, info = await kept()
    head = (await log.head(info.id)).revision
    end = Revision(until) if until else head
    again = await decide_again(
        log,
        info,
        until=end,
        plane=ControlPlanes(info, names=DECIDED),
        bounds=ReplayBounds(page_max=7),
        pace=pace,
    )
    whole = recorded().line.events
    assert [each.revision for each in again.recorded] == [each.revision for each in whole[:end]]
    assert inputs(tuple(again.events)) == inputs(whole[:end])
    assert again.not_done == {}
    assert again.judged == {}


@pytest.mark.parametrize("runs_max", [0, 30])
async def test_differences_of_a_history_that_is_decided_again_are_judged_if_runs_are_left(
    runs_max: int,
) -> None:
    """Nobody evicts the pod here, and no switch gives what was recorded."""
    log, info = await kept()
    again = await decide_again(
        log,
        info,
        until=(await log.head(info.id)).revision,
        plane=wrong_plane(info),
        bounds=ReplayBounds(),
        proofs=Proofs(runs_max=runs_max),
    )
    gone = deletions(again.recorded) - deletions(again.events)
    assert gone == set()
    (evicted,) = evicted_pods(again.recorded)
    assert evicted_pods(again.events) == set()
    judged = {uid for uid, each in again.judged.items()}
    assert judged == ({evicted} if runs_max else set())


@pytest.mark.parametrize("seconds", [300, 30])
@pytest.mark.parametrize("is_at_work", [True, False])
async def test_scheduler_that_was_not_at_work_is_left_out_of_a_history_that_is_decided_again(
    seconds: int, is_at_work: bool
) -> None:
    """One that had work for less than a minute may just have been about to begin."""
    off = frozenset(() if is_at_work else ("scheduling",))
    cluster = Cluster(options=ControllerOptions(off=off))
    cluster.node()
    cluster.wait(2).pod("p")
    cluster.wait(seconds).node("n2")
    log, info = await kept(cluster)
    until = (await log.head(info.id)).revision
    plane = ControlPlanes(info, names=DECIDED)
    again = await decide_again(log, info, until=until, plane=plane, bounds=ReplayBounds())
    nodes = {core.node_name(event.object) for event in again.events if event.key.name == "p"}
    is_left_out = not is_at_work and seconds > LATE_AFTER / SECOND
    assert nodes == ({""} if is_left_out else {"", "n1"})
    left_out = {"all that redra's scheduler does, which was not at work in A": 1}
    assert again.not_done == (left_out if is_left_out else {})


def evicted_pods(events: Sequence[Event]) -> set[str]:
    """The uids of the pods that were evicted because of a taint."""
    return {
        event.uid
        for event in events
        if event.key.resource == "pods"
        for condition in event.object.get("status", {}).get("conditions", ())
        if condition["type"] == "DisruptionTarget"
    }
