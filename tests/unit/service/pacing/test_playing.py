"""A recording is shown at its pace, and what clients write lies over it."""

import pytest
from msgspec.structs import replace

from app.domain.errors import Expired, InputError
from app.domain.log import (
    Event,
    EventType,
    HistoryId,
    HistoryInfo,
    ObjectKey,
    Origin,
    Revision,
    Stamp,
)
from app.domain.objects.write.commands import RecordFact
from app.domain.values.identifiers import Uid
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import SECOND, Instant
from app.service.forking import ForkRequest
from app.service.pacing import stage
from app.service.pacing.player import PlayerState
from app.service.pacing.script import PlayedSpan, StopRule
from app.service.pacing.showing import Shown
from app.service.pacing.stage import StageTarget
from tests.unit.service.builders import ALICE, START, namespace
from tests.unit.service.pacing.world import (
    LATER,
    conflicts,
    create,
    delete,
    key,
    patch,
    world,
)


def first_event(revision: int, origin: Origin | None) -> Event:
    """An event of a recording that was shown."""
    return Event(
        revision=Revision(revision),
        type=EventType.OBJECT_CREATED,
        key=key("a"),
        uid=Uid("a"),
        body=b"{}",
        stamp=Stamp(time=START, actor=ALICE, verb="create", uid=Uid("a"), origin=origin),
    )


RECORDED = (
    (0, create("a", {"at": "0"})),
    (10, create("b", {"at": "10"})),
    (20, patch("a", {"data": {"at": "20"}})),
    (30, delete("b")),
    (40, create("c", {"at": "40"})),
)


async def test_events_are_shown_when_they_are_due_and_not_before() -> None:
    async with world() as here:
        player = await here.play(await here.record(*RECORDED))
        assert await here.data(player.info) == {"a": {"at": "0"}}
        await here.wait(9.9)
        assert await here.data(player.info) == {"a": {"at": "0"}}
        await here.wait(0.1)
        assert await here.data(player.info) == {"a": {"at": "0"}, "b": {"at": "10"}}
        await here.wait(10)
        assert await here.data(player.info) == {"a": {"at": "20"}, "b": {"at": "10"}}
        await here.wait(20)
        assert await here.data(player.info) == {"a": {"at": "20"}, "c": {"at": "40"}}
        assert player.state is PlayerState.ENDED
        assert await here.is_as_recorded(player)


async def test_log_is_not_searched_for_what_was_there_before_a_creation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each search is a request to the database; at a high pace most objects are new."""
    async with world() as here:
        parent = await here.record(*RECORDED, (50, delete("a")), (60, create("a")))
        searched = []
        read_object = here.log.read_object

        async def noted(history: HistoryId, key: ObjectKey, **bounds: int) -> list[Event]:
            if key.resource == "configmaps":
                searched.append(key.name)
            return await read_object(history, key, **bounds)

        monkeypatch.setattr(here.log, "read_object", noted)
        player = await here.play(parent)
        await here.wait(60)
        assert await here.is_as_recorded(player)
        # It was there when the replay began.
        assert searched == ["a"]


@pytest.mark.parametrize(("speed", "seconds"), [(0.5, 20.0), (10.0, 1.0), (100.0, 0.1)])
async def test_another_speed_shows_them_so_many_times_as_fast(speed: float, seconds: float) -> None:
    async with world() as here:
        player = await here.play(await here.record(*RECORDED), speed=speed)
        await here.wait(seconds * 0.999)
        assert "b" not in await here.data(player.info)
        await here.wait(seconds * 0.001)
        assert "b" in await here.data(player.info)
        await here.wait(seconds * 3)
        assert await here.is_as_recorded(player)


@pytest.mark.parametrize("speed", [1.0, 10.0])
async def test_lateness_is_that_of_the_latest_event_since_the_last_turn(speed: float) -> None:
    async with world() as here:
        player = await here.play(await here.record(*RECORDED), speed=speed)
        for seconds in (12, 10, 9):  # at 12, 22 and 31: 2, 2 and 1 late
            here.clock.advance_to(Instant(here.clock.now() + int(seconds / speed * SECOND)))
            await here.settle()
        assert player.lateness_max == 2 * SECOND / speed
        await player.seek("1")
        assert player.lateness_max == 0


@pytest.mark.parametrize("refused", [1, 20])
async def test_refused_request_before_a_creation_is_no_object_that_clients_deleted(
    refused: int,
) -> None:
    """It has the key of the object, and a body without a uid."""
    body: JsonObject = {"code": 404, "message": "not found"}
    request = RecordFact(type=EventType.REQUEST_OBSERVED.value, key=key("b"), body=body)
    async with world() as here:
        parent = await here.record(
            (0, create("a")), *((5, request) for _ in range(refused)), (10, create("b"))
        )
        player = await here.play(parent)
        await here.wait(10)
        assert not conflicts(await here.events(player.info))
        assert await here.is_as_recorded(player)


async def test_as_fast_as_it_goes_needs_no_time() -> None:
    async with world() as here:
        player = await here.play(await here.record(*RECORDED), speed=float("inf"))
        assert player.state is PlayerState.ENDED
        assert player.moment == Instant(START + 40 * SECOND)
        assert await here.is_as_recorded(player)


async def test_each_event_keeps_its_author_its_time_and_where_it_comes_from() -> None:
    async with world() as here:
        parent = await here.record(*RECORDED)
        player = await here.play(parent, speed=float("inf"))
        shown = [event for event in await here.events(player.info) if event.is_about_object]
        recorded = await here.log.read(parent.id, after=player.span.begin.revision, limit=100)
        for event, original in zip(shown, recorded, strict=True):
            assert event.type is original.type
            assert event.uid == original.uid
            assert event.stamp.actor == ALICE
            assert event.stamp.verb == original.stamp.verb
            assert event.stamp.time == original.stamp.time
            assert event.stamp.origin is not None
            assert event.stamp.origin.replayed == original.revision


async def test_time_of_the_history_is_the_moment_of_the_recording() -> None:
    async with world() as here:
        player = await here.play(await here.record(*RECORDED), speed=10)
        runtime = await here.runtime(player.info)
        await here.wait(1.5)
        assert runtime.clock.now() == START + 15 * SECOND
        await player.set_pace(paused=True)
        await here.wait(100)
        assert runtime.clock.now() == START + 15 * SECOND
        await player.set_pace(speed=1, paused=False)
        await here.wait(4)
        assert runtime.clock.now() == player.moment == START + 19 * SECOND
        await here.wait(100)
        assert runtime.clock.now() <= START + 41 * SECOND


async def test_pausing_shows_nothing_and_going_on_loses_nothing() -> None:
    async with world() as here:
        player = await here.play(await here.record(*RECORDED))
        await here.wait(5)
        await player.set_pace(paused=True)
        assert player.state is PlayerState.PAUSED
        await here.wait(1_000)
        assert await here.data(player.info) == {"a": {"at": "0"}}
        await player.set_pace(paused=False)
        await here.wait(35)
        assert await here.is_as_recorded(player)


async def test_step_stops_after_the_next_event_of_an_object() -> None:
    async with world() as here:
        player = await here.play(await here.record(*RECORDED), speed=0)
        await here.wait(1_000)
        assert await here.data(player.info) == {"a": {"at": "0"}}
        event = await player.step(StopRule(object=key("a")))
        assert event is not None
        assert event.stamp.time == START + 20 * SECOND
        assert await here.data(player.info) == {"a": {"at": "20"}, "b": {"at": "10"}}
        assert player.moment == START + 20 * SECOND
        await player.step(StopRule())
        assert await here.data(player.info) == {"a": {"at": "20"}}
        assert await player.step(StopRule(object=key("a"))) is None
        assert await player.step(StopRule(is_decision=True)) is None
        assert await here.data(player.info) == {"a": {"at": "20"}}


async def test_step_to_an_event_that_never_comes_lets_the_replay_run_on() -> None:
    async with world() as here:
        player = await here.play(await here.record(*RECORDED), speed=1)
        assert await player.step(StopRule(object=key("nobody"))) is None
        assert player.state is PlayerState.RUNNING


async def test_moving_forwards_shows_every_event_on_the_way() -> None:
    async with world() as here:
        player = await here.play(await here.record(*RECORDED), speed=0)
        runtime = await here.runtime(player.info)
        after = runtime.views.revision
        with runtime.subscribe(after=after, group="", resource="configmaps") as followed:
            await player.seek(str(player.span.end.revision))
            types = [event.type for event in await followed.next_batch(0)]
        assert types == [
            EventType.OBJECT_CREATED,
            EventType.OBJECT_UPDATED,
            EventType.OBJECT_DELETED,
            EventType.OBJECT_CREATED,
        ]
        assert await here.is_as_recorded(player)


async def test_moving_backwards_brings_the_objects_back_and_ends_what_followed() -> None:
    async with world() as here:
        player = await here.play(await here.record(*RECORDED), speed=float("inf"))
        runtime = await here.runtime(player.info)
        await here.write(player, create("mine"))
        old = runtime.views.revision
        followed = runtime.subscribe(after=old, group="", resource="configmaps")
        await player.set_pace(paused=True)
        await player.seek("2026-01-01T00:00:25Z")
        assert await here.data(player.info) == {"a": {"at": "20"}, "b": {"at": "10"}}
        assert player.moment == START + 25 * SECOND
        with pytest.raises(Expired, match="too old resource version"):
            followed.take()
        with (
            runtime.subscribe(after=old, group="", resource="configmaps") as late,
            pytest.raises(Expired, match="too old resource version"),
        ):
            await late.catch_up()
        floor = runtime.watches.floor
        assert floor == runtime.views.revision
        with runtime.subscribe(after=floor, group="", resource="configmaps") as fresh:
            await player.set_pace(speed=float("inf"), paused=False)
            await here.settle()
            names = [(event.type, event.key.name) for event in await fresh.next_batch(0)]
        assert names == [(EventType.OBJECT_DELETED, "b"), (EventType.OBJECT_CREATED, "c")]
        assert await here.is_as_recorded(player)


async def test_time_never_falls_however_often_somebody_goes_back() -> None:
    async with world() as here:
        player = await here.play(await here.record(*RECORDED), speed=10)
        for _ in range(3):
            await here.wait(3)
            await player.seek("2026-01-01T00:00:05Z")
        await here.wait(10)
        times = [event.stamp.time for event in await here.events(player.info)]
        assert times == sorted(times)
        assert await here.is_as_recorded(player)


async def test_playing_once_more_goes_on_in_the_same_history() -> None:
    async with world() as here:
        parent = await here.record(*RECORDED)
        first = await here.play(parent, speed=float("inf"))
        await here.write(first, create("mine"))
        old = (await here.runtime(first.info)).views.revision
        second = await here.play(parent, speed=0)
        assert second.info == first.info
        runtime = await here.runtime(second.info)
        assert runtime.watches.floor > old
        assert await here.data(second.info) == {"a": {"at": "0"}}


async def test_floor_is_known_after_a_restart() -> None:
    async with world() as here:
        player = await here.play(await here.record(*RECORDED), speed=float("inf"))
        await player.set_pace(paused=True)
        await player.seek("3")
        floor = (await here.runtime(player.info)).watches.floor
        await here.histories.close(player.info.name)
        assert (await here.runtime(player.info)).watches.floor == floor > 0


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        ("0", "0 is before the first event of cluster"),
        ("2025-01-01T00:00:00Z", "2025-01-01T00:00:00Z is before the first event of cluster"),
        ("6", "6 is after the end of what is played, revision 5"),
    ],
)
async def test_seek_says_at_which_end_a_moment_is_beyond_what_is_played(
    moment: str, text: str
) -> None:
    async with world() as here:
        parent = await here.record(*RECORDED)
        begin = await stage.first_state(here.log, parent)
        five = StageTarget(revision=Revision(5), time=Instant(START + 30 * SECOND))
        player = await here.play(parent, speed=0, span=PlayedSpan(begin=begin, end=five))
        with pytest.raises(InputError) as refusal:
            await player.seek(moment)
        assert (refusal.value.place, refusal.value.problem) == ("seek", text)
        await player.seek("5")
        assert await here.is_as_recorded(player, 5)


async def test_move_backwards_says_of_each_object_what_it_does_and_whence_it_comes() -> None:
    async with world() as here:
        parent = await here.record(*RECORDED)
        player = await here.play(parent, speed=float("inf"))
        events = await here.log.read(parent.id, after=Revision(0), limit=99)
        recorded = {each.key.name: each.uid for each in events}
        await player.set_pace(paused=True)
        before = (await here.runtime(player.info)).head.revision
        await player.seek("2026-01-01T00:00:15Z")
        *moved, fact = await here.log.read(player.info.id, after=before, limit=99)
        assert [
            (each.type, each.key.name, each.uid, each.stamp.origin and each.stamp.origin.replayed)
            for each in moved
        ] == [
            (EventType.OBJECT_DELETED, "c", recorded["c"], None),
            (EventType.OBJECT_UPDATED, "a", recorded["a"], 2),
            (EventType.OBJECT_CREATED, "b", recorded["b"], 3),
        ]
        assert fact.type is EventType.REPLAY_SOUGHT
        assert fact.object == {
            "history": "cluster",
            "revision": 3,
            "time": "2026-01-01T00:00:15.000000Z",
            "objects": 3,
            "message": "shown from revision 3 of cluster on, which is of "
            "2026-01-01T00:00:15.000000Z",
        }


async def test_replay_pauses_where_a_move_backwards_is_refused() -> None:
    async with world() as here:
        player = await here.play(await here.record(*RECORDED), changes_max=0)
        await here.wait(31)
        assert player.state is PlayerState.RUNNING
        with pytest.raises(InputError, match="more than 0 objects"):
            await player.seek("2026-01-01T00:00:00Z")
        assert player.state is PlayerState.PAUSED
        await here.wait(20)
        assert set(await here.data(player.info)) == {"a"}


async def test_recording_goes_on_without_conflicts_after_a_move_back_with_shifted_times() -> None:
    async with world() as here:
        steps = [
            (0, create("a", {"at": "0"}, annotations={"since": "2026-01-01T00:00:00Z"})),
            (10, patch("a", {"data": {"at": "10"}})),
            (20, patch("a", {"data": {"at": "20"}})),
        ]
        player = await here.play(await here.record(*steps), speed=10, shifts=True)
        await here.wait(2)
        await player.seek("2026-01-01T00:00:05Z")
        assert await here.data(player.info) == {"a": {"at": "0"}}
        await here.write(player, patch("a", {"data": {"mine": "1"}}))
        await here.wait(1)
        assert await here.data(player.info) == {"a": {"at": "10", "mine": "1"}}
        await here.wait(1)
        assert await here.data(player.info) == {"a": {"at": "20", "mine": "1"}}
        assert conflicts(await here.events(player.info)) == []


@pytest.mark.parametrize("page", [1, 2, 3, 100])
async def test_replay_begins_after_the_first_instant_of_its_recording(
    page: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "EVENTS_PAGE", page)
    async with world() as here:
        parent = await here.record(*RECORDED)
        begin = await stage.first_state(here.log, parent)
        assert begin == StageTarget(revision=Revision(2), time=START)
        runtime = await here.histories.create("short", settings={"profile": "1.36"})
        with pytest.raises(InputError, match="history short has no events to replay"):
            await stage.first_state(here.log, runtime.info)
        await runtime.submit(namespace("default"), actor=ALICE)
        await runtime.submit(namespace("other"), actor=ALICE)
        last = await stage.first_state(here.log, runtime.info)
        assert last == StageTarget(revision=Revision(2), time=LATER)


def test_origin_of_a_shown_event_is_its_own_with_the_revision_that_is_shown() -> None:
    origin = Origin(
        source="audit.log",
        position="line 7",
        resource_version="12",
        version="v1",
        time_quality="exact",
        quality="whole",
        losses=("status",),
        code=409,
        asked=5,
        answered=6,
    )
    shown = replace(origin, asked=0, answered=0, replayed=41)
    parent = HistoryInfo(id=HistoryId(1), name="cluster", seed=1)
    event = first_event(41, origin)
    assert stage.origin_of(event, parent) == shown
    assert stage.origin_of(first_event(41, None), parent) == Origin(
        source="history cluster", resource_version="41", replayed=41
    )


async def test_seek_beyond_what_is_played_is_refused() -> None:
    async with world() as here:
        player = await here.play(await here.record(*RECORDED), speed=0)
        with pytest.raises(InputError):
            await player.seek("0")
        with pytest.raises(InputError):
            await player.seek("yesterday evening")
        assert await here.data(player.info) == {"a": {"at": "0"}}


# ---- what clients write


async def test_fields_of_clients_stay_while_the_recording_goes_on() -> None:
    async with world() as here:
        player = await here.play(await here.record(*RECORDED))
        await here.write(player, patch("a", {"metadata": {"labels": {"mine": "x"}}}))
        await here.wait(40)
        tree = (await here.trees(player.info))["a"]
        assert tree["metadata"]["labels"] == {"mine": "x"}
        assert tree["data"] == {"at": "20"}
        assert conflicts(await here.events(player.info)) == []


async def test_field_that_both_changed_stays_the_clients_and_is_told() -> None:
    async with world() as here:
        player = await here.play(await here.record(*RECORDED))
        await here.write(player, patch("a", {"data": {"at": "mine"}}))
        await here.wait(40)
        assert (await here.data(player.info))["a"] == {"at": "mine"}
        assert conflicts(await here.events(player.info)) == [("a", "fields", ["data.at"])]
        assert player.counts[1] == 1
        (event,) = player.conflicts
        assert "data.at" in event.object["message"]


async def test_what_a_client_deleted_stays_deleted_and_is_told() -> None:
    async with world() as here:
        player = await here.play(await here.record(*RECORDED))
        await here.write(player, delete("a"))
        await here.wait(40)
        assert set(await here.data(player.info)) == {"c"}
        assert conflicts(await here.events(player.info)) == [("a", "deleted-here", [])]


async def test_what_a_client_deleted_before_the_recording_did_is_no_conflict() -> None:
    async with world() as here:
        player = await here.play(await here.record(*RECORDED))
        await here.wait(10)
        await here.write(player, delete("b"))
        await here.wait(30)
        assert conflicts(await here.events(player.info)) == []
        assert await here.is_as_recorded(player)


async def test_name_that_a_client_took_is_told_and_the_recorded_object_comes_when_it_is_free() -> (
    None
):
    async with world() as here:
        player = await here.play(await here.record(*RECORDED))
        await here.write(player, create("c", {"of": "client"}))
        await here.wait(40)
        assert (await here.data(player.info))["c"] == {"of": "client"}
        assert conflicts(await here.events(player.info)) == [("c", "other-object", [])]
        await here.write(player, delete("c"))
        await here.wait(1)
        assert await here.is_as_recorded(player)


async def test_finalizer_of_a_client_holds_what_the_recording_deletes() -> None:
    async with world() as here:
        player = await here.play(await here.record(*RECORDED))
        await here.wait(10)
        await here.write(player, patch("b", {"metadata": {"finalizers": ["mine.example.com/x"]}}))
        await here.wait(30)
        tree = (await here.trees(player.info))["b"]
        assert "deletionTimestamp" in tree["metadata"]
        assert conflicts(await here.events(player.info)) == [("b", "held", ["mine.example.com/x"])]
        await here.write(player, patch("b", {"metadata": {"finalizers": None}}))
        assert await here.is_as_recorded(player)


# ---- shifted times


async def test_shifted_times_are_those_at_which_objects_are_shown() -> None:
    async with world() as here:
        player = await here.play(await here.record(*RECORDED), speed=10, shifts=True)
        began = LATER
        await here.wait(4)
        shown = {
            name: tree["metadata"]["creationTimestamp"]
            for name, tree in (await here.trees(player.info)).items()
        }
        assert began == START + 86_400 * SECOND
        assert shown == {"a": "2026-01-02T00:00:00Z", "c": "2026-01-02T00:00:04Z"}
        events = [event for event in await here.events(player.info) if event.key == key("a")]
        created = {event.object["metadata"]["creationTimestamp"] for event in events}
        assert created == {"2026-01-02T00:00:00Z"}
        assert all(event.stamp.time >= LATER for event in events)


async def test_shifted_times_do_not_move_once_they_were_shown() -> None:
    async with world() as here:
        parent = await here.record(
            (0, create("a")), (10, create("b")), (20, patch("b", {"data": {"x": "1"}}))
        )
        player = await here.play(parent, speed=1, shifts=True)
        await here.wait(10)
        await player.set_pace(paused=True)
        await here.wait(100)
        await player.set_pace(speed=10, paused=False)
        await here.wait(1)
        created = {
            event.object["metadata"]["creationTimestamp"]
            for event in await here.events(player.info)
            if event.key == key("b")
        }
        assert created == {"2026-01-02T00:00:10Z"}
        assert (await here.data(player.info))["b"] == {"x": "1"}
        assert conflicts(await here.events(player.info)) == []


async def test_fork_of_a_replay_is_a_cluster_that_goes_on() -> None:
    async with world() as here:
        player = await here.play(await here.record(*RECORDED), speed=0)
        wanted = ForkRequest()
        made = await here.histories.fork(player.info.name, "on", "", wanted=wanted, actor=ALICE)
        assert player.info.is_paced
        assert not made.info.is_paced
        assert not made.info.is_decided_elsewhere
        before = (await here.runtime(made.info)).clock.now()
        await here.wait(5)
        assert (await here.runtime(made.info)).clock.now() == before + 5 * SECOND


async def test_what_is_recorded_of_a_deleted_object_is_forgotten() -> None:
    shown = Shown()
    shown.remember({key("a"): {"at": "1"}, key("b"): {"at": "1"}})
    shown.remember({key("a"): None, key("b"): {"at": "2"}, key("c"): None})
    assert shown.recorded == {key("b"): {"at": "2"}}


async def test_name_that_is_recorded_once_more_is_shown_without_a_conflict() -> None:
    async with world() as here:
        steps = [(10, create("a")), (20, delete("a")), (30, create("a", {"at": "30"}))]
        player = await here.play(await here.record(*steps))
        await here.wait(40)
        assert await here.is_as_recorded(player)
        assert conflicts(await here.events(player.info)) == []


@pytest.mark.parametrize("changes_max", [2, 3])
async def test_move_backwards_that_changes_too_much_is_refused_as_a_whole(changes_max: int) -> None:
    async with world() as here:
        parent = await here.record(*RECORDED)
        player = await here.play(parent, speed=float("inf"), changes_max=changes_max)
        await here.write(player, create("mine"))
        await player.set_pace(paused=True)
        shown, events = await here.data(player.info), await here.events(player.info)
        # It deletes `c` and `mine`, and creates `b`.
        if changes_max == 3:
            await player.seek("2026-01-01T00:00:25Z")
            assert await here.data(player.info) == {"a": {"at": "20"}, "b": {"at": "10"}}
            return
        with pytest.raises(InputError, match=r"more than 2 objects; .* REDRA_REPLAY_CHANGES_MAX"):
            await player.seek("2026-01-01T00:00:25Z")
        assert await here.data(player.info) == shown
        assert await here.events(player.info) == events
        assert player.revision == player.span.end.revision
