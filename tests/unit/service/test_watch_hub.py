"""The hub of watches: who is offered what, who is cut off, who is counted."""

import random

import anyio
import pytest

from app.adapters.memory import MemoryLog, MemoryStore
from app.domain.controllers.plan import DECISIONS
from app.domain.errors import Expired
from app.domain.log import Actor, Event, EventType, HistoryId, ObjectKey, Revision, Stamp
from app.domain.values.timestamps import Instant
from app.service.watches import Watches
from tests.patience import PATIENCE_SECONDS

PODS, NODES = ("", "pods"), ("", "nodes")
ENDED = "the history is being read again, or the server is stopping; list and watch again"


def hub(queue_max=3):
    watches = Watches(MemoryLog(MemoryStore()), HistoryId(1), queue_max=queue_max, recent_max=50)
    watches.start(Revision(0))
    return watches


def written(revision, group_resource=PODS):
    group, resource = group_resource
    return Event(
        revision=Revision(revision),
        type=EventType.OBJECT_CREATED,
        key=ObjectKey(group, resource, "ns", f"o{revision}"),
        uid=f"u{revision}",
        body=b"{}",
        stamp=Stamp(time=Instant(revision), actor=Actor(user="alice"), verb="create"),
    )


def publish(watches, events):
    watches.hand_to_clients(events)
    watches.hand_to_loops(events)


def revisions(events):
    return [event.revision for event in events]


def test_follower_may_be_as_far_behind_as_its_queue_is_long():
    watches = hub(queue_max=3)
    with watches.subscribe(after=Revision(0), group_resource=PODS) as follower:
        for revision in (1, 2, 3):
            publish(watches, [written(revision)])
        assert revisions(follower.take()) == [1, 2, 3]
        publish(watches, [written(revision) for revision in (4, 5, 6, 7)])
        with pytest.raises(Expired, match="more than 3 events behind"):
            follower.take()


def test_every_reader_is_offered_what_it_reads_and_nothing_else():
    """Several readers, of which those in the middle read nothing of it."""
    watches = hub(queue_max=9)
    reads = [frozenset(places) for places in ((PODS,), (("", "x"),), (PODS, NODES), (NODES,))]
    followers = [watches.subscribe(after=Revision(0), reads=each) for each in reads]
    publish(watches, [written(1, PODS)])
    publish(watches, [written(2, PODS), written(3, NODES)])
    assert [revisions(each.take()) for each in followers] == [[1, 2], [], [1, 2, 3], [3]]


@pytest.mark.parametrize("seed", range(20))
def test_each_reader_gets_what_a_look_at_every_event_gives(seed):
    """Batches of events about objects, decisions and restarts, some of which concern everybody."""
    draw = random.Random(seed)
    places = [PODS, NODES, ("", "x"), DECISIONS, ("redra", "controllers")]
    types = [EventType.OBJECT_CREATED, EventType.DECISION_RECORDED, EventType.CONTROLLER_RESTARTED]
    watches = hub(queue_max=1_000)
    reads = [None, *(frozenset(draw.sample(places, draw.randint(1, 4))) for _ in range(6))]
    followers = [watches.subscribe(after=Revision(0), reads=each) for each in reads]
    clients = [watches.subscribe(after=Revision(0), group_resource=each) for each in places]
    events: list[Event] = []
    for _ in range(draw.randint(1, 8)):
        batch = []
        for _ in range(draw.randint(1, 6)):
            made = written(len(events) + len(batch) + 1, draw.choice(places))
            made.type = draw.choice(types[: draw.choice((1, 3))])
            batch.append(made)
        publish(watches, batch)
        events += batch
    for each, follower in zip(reads, followers, strict=True):
        wanted = [
            event
            for event in events
            if each is None or event.key[:2] in each or event.type is EventType.CONTROLLER_RESTARTED
        ]
        assert revisions(follower.take()) == revisions(wanted), each
    for each, client in zip(places, clients, strict=True):
        there = [event for event in events if event.key[:2] == each]
        assert revisions(client.take()) == revisions(there), each


def test_event_that_was_seen_is_not_handed_on_again():
    watches = hub()
    with watches.subscribe(after=Revision(2), group_resource=PODS) as follower:
        publish(watches, [written(2), written(3)])
        assert revisions(follower.take()) == [3]
        assert follower.take() == []


def test_clients_are_counted_and_controllers_are_not():
    watches = hub()
    readers = watches.subscribe(after=Revision(0), reads=frozenset((PODS,)))
    with watches.subscribe(after=Revision(0), group_resource=PODS), watches.guest():
        assert (watches.count_clients(), watches.count()) == (2, 3)
    assert (watches.count_clients(), watches.count()) == (0, 1)
    readers.close()
    assert watches.count() == 0


def test_follower_that_left_is_offered_nothing():
    watches = hub()
    follower = watches.subscribe(after=Revision(0), reads=frozenset((PODS,)))
    other = watches.subscribe(after=Revision(0), reads=frozenset((PODS,)))
    follower.close()
    publish(watches, [written(1)])
    assert not follower.has_more
    assert revisions(other.take()) == [1]


def test_end_tells_everybody_to_list_and_watch_again():
    watches = hub()
    pods = watches.subscribe(after=Revision(0), group_resource=PODS)
    loop = watches.subscribe(after=Revision(0), reads=frozenset((PODS,)))
    watches.end()
    for each in (pods, loop, watches.subscribe(after=Revision(0), reads=None)):
        with pytest.raises(Expired) as problem:
            each.take()
        assert str(problem.value) == ENDED


async def test_end_stops_who_is_still_reading_what_was_before():
    watches = hub()
    publish(watches, [written(1), written(2)])
    follower = watches.subscribe(after=Revision(0), group_resource=PODS)
    assert revisions(await follower.catch_up()) == [1, 2]
    late = watches.subscribe(after=Revision(0), group_resource=PODS)
    watches.end()
    with pytest.raises(Expired) as problem:
        await late.catch_up()
    assert str(problem.value) == ENDED


async def test_iteration_goes_on_with_what_is_published():
    watches = hub()
    with watches.subscribe(after=Revision(0), group_resource=PODS) as follower:
        publish(watches, [written(1)])
        batches = aiter(follower)
        assert revisions(await anext(batches)) == [1]
        publish(watches, [written(2)])
        with anyio.fail_after(PATIENCE_SECONDS):
            assert revisions(await anext(batches)) == [2]


async def test_waiting_for_growth_ends_when_there_is_something_or_no_time():
    watches = hub()
    with (
        watches.subscribe(after=Revision(0), group_resource=PODS) as follower,
        anyio.fail_after(PATIENCE_SECONDS),
    ):
        assert await follower.grown(0.001) is False
        publish(watches, [written(1)])
        assert await follower.grown(3600) is True
        assert revisions(follower.take()) == [1]


@pytest.mark.parametrize(("after", "is_served"), [(4, False), (5, True), (6, True)])
async def test_client_follows_from_the_floor_of_a_moved_replay_and_not_from_before(
    after: int, is_served: bool
) -> None:
    """The own loops go on; clients from before get the words of a server that has compacted."""
    watches = hub(queue_max=9)
    publish(watches, [written(revision) for revision in range(1, 8)])
    early = watches.subscribe(after=Revision(7), group_resource=PODS)
    loop = watches.subscribe(after=Revision(4), reads=frozenset((PODS,)))
    watches.turn(Revision(5))
    with pytest.raises(Expired, match=r"^too old resource version: 7 \(5\)"):
        early.take()
    assert revisions(await loop.catch_up()) == [5, 6, 7]
    client = watches.subscribe(after=Revision(after), group_resource=PODS)
    if is_served:
        assert revisions(await client.catch_up()) == list(range(after + 1, 8))
    else:
        with pytest.raises(Expired, match=r"^too old resource version: 4 \(5\)"):
            await client.catch_up()
