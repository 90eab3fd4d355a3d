"""How far a run of a recording goes: to its end, to an instant, or until it is over."""

from collections.abc import Callable
from functools import cache

import pytest

from app.analysis.replay import tolerances
from app.analysis.replay.differences import compare
from app.analysis.replay.traces import Trace
from app.analysis.replay.variants import Variant
from app.analysis.replay.writers import DECIDED, Writers
from app.bootstrap.control_planes import ControlPlanes
from app.domain.log import Event, HistoryId, HistoryInfo
from app.domain.values.timestamps import SECOND, Instant
from app.service.replays.deciding.run import Run
from app.service.replays.deciding.runs import Runs
from app.service.replays.replaying import ReplayBounds
from tests.cluster import T0, Cluster
from tests.unit.analysis.replay.test_recording import recording_of, story


@cache
def recorded() -> Cluster:
    return story()


FIRST_LOOKS = 3
"""A run may ask whether it is over some times before it must be told so."""


def runs_of(cluster: Cluster) -> Runs:
    recording = recording_of(cluster)
    recording.finish()
    return Runs(
        recording,
        ControlPlanes(HistoryInfo(id=HistoryId(1), name="h"), names=DECIDED),
        Writers(DECIDED),
        cluster.line.head.revision,
        Instant(recording.last + tolerances.TABLE.afterwards),
        lambda step, revision, until: None,
        ReplayBounds(),
    )


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
