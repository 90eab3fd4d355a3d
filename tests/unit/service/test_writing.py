"""The one write path: durable answers, neighbours unharmed, no revision lost."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial

import anyio
import anyio.lowlevel
import pytest

from app.adapters.memory import MemoryLog, MemoryStore
from app.domain.errors import (
    AlreadyExists,
    ChainBroken,
    Expired,
    LogUnavailable,
    NotFound,
    Rejected,
    TooLarge,
)
from app.domain.log import (
    Event,
    EventType,
    Head,
    HistoryId,
    LeaseToken,
    ObjectKey,
    Revision,
)
from app.domain.log.chain import check_chain
from app.domain.objects.write.commands import Command, PatchObject, PatchType, RecordFact
from app.domain.values.timestamps import SECOND, Instant
from app.service.runtime import HistoryRuntime
from app.service.watches import Subscription
from app.service.writing import WriterBounds
from tests.unit.service.builders import (
    ALICE,
    START,
    config_map,
    deletion,
    namespace,
    running_history,
)
from tests.virtual_clock import VirtualClock


async def test_a_write_is_in_the_views_when_its_caller_hears_of_it() -> None:
    async with running_history() as history:
        outcome = await history.submit(namespace("default"), actor=ALICE)
        assert outcome.created
        assert outcome.event is not None
        assert history.views.objects.get(outcome.event.key) == outcome.tree
        assert outcome.tree is not None
        assert outcome.tree["metadata"]["resourceVersion"] == str(outcome.event.revision)


@pytest.mark.parametrize(
    ("writes", "order"),
    [(("a",), ["client", "caller", "loop"]), (("a", "b"), ["client", "loop", "caller", "caller"])],
    ids=["alone", "several"],
)
async def test_write_wakes_clients_that_watch_then_a_lone_caller_or_the_loops(
    writes: tuple[str, ...], order: list[str]
) -> None:
    async with running_history() as history:
        await history.submit(namespace("default"), actor=ALICE)
        woken: list[str] = []
        after = history.head.revision
        with (
            history.follow(after=after, reads=None) as loop,
            history.subscribe(after=after, resource="configmaps") as client,
        ):

            async def follow(subscription: Subscription, name: str) -> None:
                events = await subscription.wait_batch()
                woken.append(name)
                assert [event.key.name for event in events] == [*writes]

            async def write(name: str) -> None:
                await history.submit(config_map(name), actor=ALICE)
                woken.append("caller")

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(follow, loop, "loop")
                tasks.start_soon(follow, client, "client")
                await anyio.lowlevel.checkpoint()
                for name in writes:
                    tasks.start_soon(write, name)
        assert woken == order


async def test_a_rejected_command_costs_its_neighbours_nothing() -> None:
    async with running_history() as history:
        await history.submit(namespace("default"), actor=ALICE)
        problems: list[Exception] = []
        done: list[str] = []

        async def create(name: str) -> None:
            try:
                await history.submit(config_map(name), actor=ALICE)
                done.append(name)
            except Rejected as problem:
                problems.append(problem)

        async with anyio.create_task_group() as tasks:
            for name in ("a", "b", "a", "c", "b"):
                tasks.start_soon(create, name)
        assert sorted(done) == ["a", "b", "c"]
        assert [type(problem) for problem in problems] == [AlreadyExists, AlreadyExists]
        assert history.head.revision == 4


async def test_several_commands_are_appended_together_or_not_at_all() -> None:
    async with running_history() as history:
        await history.submit(namespace("default"), actor=ALICE)
        with pytest.raises(NotFound):
            await history.submit_all(
                [config_map("a"), config_map("b", namespace="nowhere")], actor=ALICE
            )
        assert history.head.revision == 1
        await history.submit_all([config_map("a"), config_map("b")], actor=ALICE)
        assert history.head.revision == 3


async def test_two_writers_of_one_history_lose_and_repeat_nothing() -> None:
    store = MemoryStore()
    async with running_history(store=store) as one, running_history(store=store, seed=8) as two:
        await one.submit(namespace("default"), actor=ALICE)

        async def create(number: int) -> None:
            writer = one if number % 2 else two
            await writer.submit(config_map(f"m{number}"), actor=ALICE)

        async with anyio.create_task_group() as tasks:
            for number in range(40):
                tasks.start_soon(create, number)
        assert await one.wait_for(Revision(41), 5.0)
        assert await two.wait_for(Revision(41), 5.0)
        events = await one.log.read(one.info.id, after=Revision(0), limit=100)
        assert len(events) == 41
        check_chain(events)
        assert one.views.objects.state_hash() == two.views.objects.state_hash()


class LosesTheAnswer(MemoryLog):
    """A log whose connection breaks after the commit: the caller cannot know the outcome."""

    breaks = False

    async def append(
        self,
        history: HistoryId,
        *,
        expected: Head,
        events: Sequence[Event],
        leases: Sequence[LeaseToken] = (),
    ) -> Head:
        head = await super().append(history, expected=expected, events=events, leases=leases)
        if self.breaks:
            self.breaks = False
            raise LogUnavailable("the connection was lost")
        return head


async def test_a_commit_whose_answer_was_lost_is_found_again() -> None:
    log = LosesTheAnswer(MemoryStore())
    async with running_history(log=log) as history:
        await history.submit(namespace("default"), actor=ALICE)
        log.breaks = True
        with history.follow(after=history.head.revision, reads=None) as loop:
            outcome = await history.submit(config_map("a"), actor=ALICE)
            assert outcome.created
            assert history.head.revision == 2
            with anyio.fail_after(5):
                assert await loop.wait_batch() == [outcome.event]


class Refuses(MemoryLog):
    """A log that is not reachable for a while."""

    down = False

    async def append(
        self,
        history: HistoryId,
        *,
        expected: Head,
        events: Sequence[Event],
        leases: Sequence[LeaseToken] = (),
    ) -> Head:
        if self.down:
            raise LogUnavailable("no server answers")
        return await super().append(history, expected=expected, events=events, leases=leases)

    async def head(self, history: HistoryId) -> Head:
        if self.down:
            raise LogUnavailable("no server answers")
        return await super().head(history)


async def test_a_write_that_cannot_be_stored_leaves_no_trace_and_the_next_one_works() -> None:
    log = Refuses(MemoryStore())
    async with running_history(log=log) as history:
        await history.submit(namespace("default"), actor=ALICE)
        log.down = True
        with pytest.raises(LogUnavailable):
            await history.submit(config_map("a"), actor=ALICE)
        assert history.views.objects.get(config_map("a").key) is None
        log.down = False
        assert (await history.submit(config_map("a"), actor=ALICE)).created


async def test_a_full_queue_refuses_at_once() -> None:
    from app.service.writing import WriterBounds

    async with running_history(writer=WriterBounds(queue_max=2)) as history:
        await history.submit(namespace("default"), actor=ALICE)
        problems: list[Exception] = []

        async def create(number: int) -> None:
            try:
                await history.submit(config_map(f"m{number}"), actor=ALICE)
            except LogUnavailable as problem:
                problems.append(problem)

        async with anyio.create_task_group() as tasks:
            for number in range(10):
                tasks.start_soon(create, number)
        assert problems
        assert all("already waiting" in str(problem) for problem in problems)


async def test_an_object_does_not_grow_beyond_what_is_stored() -> None:
    from app.service.writing import WriterBounds

    def grown(size: int) -> PatchObject:
        return PatchObject(
            key=config_map("m").key,
            version="v1",
            type=PatchType.MERGE,
            body={"data": {f"k{size}": "x" * size}},
        )

    async with running_history(writer=WriterBounds(object_bytes_max=2_000)) as history:
        await history.submit(namespace("default"), actor=ALICE)
        await history.submit(config_map("m"), actor=ALICE)
        await history.submit(grown(1_000), actor=ALICE)
        with pytest.raises(TooLarge, match="at most 2000 are stored"):
            await history.submit(grown(1_001), actor=ALICE)
        assert history.head.revision == 3
        await history.submit(grown(1), actor=ALICE)


async def test_a_follower_sees_every_event_once_from_any_start() -> None:
    async with running_history() as history:
        await history.submit(namespace("default"), actor=ALICE)
        for number in range(5):
            await history.submit(config_map(f"m{number}"), actor=ALICE)
        seen: list[int] = []
        with history.subscribe(after=Revision(2)) as followed:
            while batch := await followed.catch_up():
                seen += [event.revision for event in batch]
            await history.submit(deletion(config_map("m1")), actor=ALICE)
            await history.submit(config_map("m9"), actor=ALICE)
            while len(seen) < 6:
                seen += [event.revision for event in await followed.next_batch(5.0)]
        assert seen == [3, 4, 5, 6, 7, 8]


async def test_a_follower_of_some_resources_sees_them_and_what_is_about_no_object() -> None:
    reads = frozenset({("", "namespaces")})
    restart = RecordFact(
        key=ObjectKey("redra", "controllers", "", "claims"),
        type=EventType.CONTROLLER_RESTARTED,
        body={"controller": "claims"},
    )
    async with running_history() as history:
        await history.submit(namespace("a"), actor=ALICE)
        await history.submit(config_map("m0", namespace="a"), actor=ALICE)
        await history.submit(namespace("b"), actor=ALICE)
        with history.follow(after=Revision(0), reads=reads) as followed:
            past = await followed.catch_up()
            assert [event.revision for event in past] == [1, 3]
            assert await followed.catch_up() == []
            await history.submit(config_map("m1", namespace="a"), actor=ALICE)
            assert not followed.has_more
            await history.submit(restart, actor=ALICE)
            await history.submit_all([config_map("m2", namespace="a"), namespace("c")], actor=ALICE)
            assert [event.revision for event in followed.take()] == [5, 7]
            await history.submit(config_map("m3", namespace="a"), actor=ALICE)
            assert followed.take() == []
            # It need not begin again before what did not concern it.
            assert followed.after == history.head.revision


async def test_a_follower_that_falls_behind_is_cut_off() -> None:
    async with running_history(watch_queue_max=3) as history:
        await history.submit(namespace("default"), actor=ALICE)
        with history.subscribe(after=history.head.revision) as followed:
            for number in range(4):
                await history.submit(config_map(f"m{number}"), actor=ALICE)
            with pytest.raises(Expired):
                await followed.next_batch(1.0)


async def test_a_restart_continues_where_the_log_ends() -> None:
    store = MemoryStore()
    async with running_history(store=store) as history:
        await history.submit(namespace("default"), actor=ALICE)
        await history.submit(config_map("a"), actor=ALICE)
        before = history.views.objects.state_hash()
    async with running_history(store=store) as history:
        assert history.views.objects.state_hash() == before
        await history.submit(config_map("b"), actor=ALICE)
        assert history.head.revision == 3


class Slow(MemoryLog):
    """A log whose appends end when they are let go; `sizes` are those that have begun."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store)
        self.sizes: list[int] = []
        self.is_slow = False
        self.fails = False
        self.fails_again = False
        self.go = anyio.Event()

    async def append(
        self,
        history: HistoryId,
        *,
        expected: Head,
        events: Sequence[Event],
        leases: Sequence[LeaseToken] = (),
    ) -> Head:
        if self.is_slow:
            self.sizes.append(len(events))
            await self.go.wait()
            if self.fails:
                self.is_slow = self.fails = self.fails_again
                self.fails_again = False
                raise LogUnavailable("no server answers")
        return await super().append(history, expected=expected, events=events, leases=leases)


@asynccontextmanager
async def while_storing(log: Slow, submit: Callable[[str], Awaitable[None]]) -> AsyncIterator[None]:
    """Inside, config map `a` is being stored; on leaving that ends, and so does all the rest."""
    log.is_slow = True
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(submit, "a")
        await anyio.wait_all_tasks_blocked()
        yield
        await anyio.wait_all_tasks_blocked()
        log.go.set()


async def test_what_arrives_while_a_batch_is_stored_follows_it_in_one_append() -> None:
    log = Slow(MemoryStore())
    told: list[str] = []
    async with running_history(log=log) as history, anyio.create_task_group() as tasks:
        await history.submit(namespace("default"), actor=ALICE)

        async def create(name: str) -> None:
            outcome = await history.submit(config_map(name), actor=ALICE)
            assert outcome.event is not None
            assert history.views.objects.event(outcome.event.key) is outcome.event
            told.append(name)

        async with while_storing(log, create):
            for name in ("b", "c", "d"):
                tasks.start_soon(create, name)
            await anyio.wait_all_tasks_blocked()
            assert history.waiting_writes == 3
            assert told == [], "nothing of it is stored"
        assert await history.wait_for(Revision(5), 5.0)
        await anyio.wait_all_tasks_blocked()
        assert told == ["a", "b", "c", "d"]
        assert log.sizes == [1, 3]
        events = await log.read(history.info.id, after=Revision(0), limit=10)
        check_chain(events)
        assert [event.key.name for event in events] == ["default", "a", "b", "c", "d"]


async def test_loops_are_told_of_a_write_whose_caller_went_away_meanwhile() -> None:
    log = Slow(MemoryStore())
    async with running_history(log=log) as history:
        await history.submit(namespace("default"), actor=ALICE)
        callers = anyio.CancelScope()

        async def create(name: str) -> None:
            with callers:
                await history.submit(config_map(name), actor=ALICE)

        with history.follow(after=history.head.revision, reads=None) as loop:
            async with while_storing(log, create):
                callers.cancel()
            with anyio.fail_after(5):
                assert [event.key.name for event in await loop.wait_batch()] == ["a"]


async def test_what_was_decided_upon_a_batch_that_was_not_stored_is_decided_again() -> None:
    log = Slow(MemoryStore())
    told: list[str] = []
    async with running_history(log=log) as history, anyio.create_task_group() as tasks:
        await history.submit(namespace("default"), actor=ALICE)

        async def create(name: str) -> None:
            try:
                await history.submit(config_map(name), actor=ALICE)
                told.append(f"{name} created")
            except (LogUnavailable, AlreadyExists) as problem:
                told.append(f"{name} {type(problem).__name__}")

        async with while_storing(log, create):
            log.fails = True
            # Upon the first `a` the second one would be refused.
            for name in ("a", "b"):
                tasks.start_soon(create, name)
        assert await history.wait_for(Revision(3), 5.0)
        await anyio.wait_all_tasks_blocked()
        assert told == ["a LogUnavailable", "a created", "b created"]
        check_chain(await log.read(history.info.id, after=Revision(0), limit=10))


async def test_no_answer_stands_upon_a_write_that_was_not_stored() -> None:
    log = Slow(MemoryStore())
    told: list[str] = []

    def value(number: str) -> PatchObject:
        body = {"data": {"a": number}}
        return PatchObject(key=config_map("old").key, version="v1", type=PatchType.MERGE, body=body)

    async with running_history(log=log) as history, anyio.create_task_group() as tasks:
        await history.submit(namespace("default"), actor=ALICE)
        await history.submit(config_map("old"), actor=ALICE)

        async def submit(command: Command) -> None:
            try:
                outcome = await history.submit(command, actor=ALICE)
                event = outcome.event
                told.append("same" if event is None else f"{event.type} {event.revision}")
            except (LogUnavailable, Rejected) as problem:
                told.append(type(problem).__name__)

        # All in one batch: the writer is busy with another one while they arrive.
        async with while_storing(log, lambda name: submit(config_map(name))):
            log.fails = True
            log.fails_again = True
            for command in (
                value("2"),
                value("2"),
                config_map("new"),
                config_map("new"),
                deletion(config_map("old")),
                value("2"),
            ):
                tasks.start_soon(submit, command)
        await anyio.wait_all_tasks_blocked()
        # `a`, then the writes of the batch; then what had changed nothing, or had been refused.
        assert told == [*["LogUnavailable"] * 4, *["ObjectUpdated 3", "ObjectCreated 4", "same"]]
        tree = history.views.objects.get(config_map("old").key)
        assert tree is not None
        assert tree["data"] == {"a": "2"}


class Stumbles(MemoryLog):
    """A log that some events are too much for."""

    async def append(
        self,
        history: HistoryId,
        *,
        expected: Head,
        events: Sequence[Event],
        leases: Sequence[LeaseToken] = (),
    ) -> Head:
        if any(event.key.name == "odd" for event in events):
            raise TypeError("odd")
        return await super().append(history, expected=expected, events=events, leases=leases)


async def test_events_that_cannot_be_stored_do_not_end_the_history(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with running_history(log=Stumbles(MemoryStore())) as history:
        await history.submit(namespace("default"), actor=ALICE)
        with pytest.raises(LogUnavailable, match="cannot be stored: TypeError: odd"):
            await history.submit(config_map("odd"), actor=ALICE)
        assert (await history.submit(config_map("even"), actor=ALICE)).created
    assert "cannot be stored" in caplog.text


async def test_what_changes_nothing_is_not_answered_while_the_log_cannot_be_read() -> None:
    log = Refuses(MemoryStore())
    async with running_history(log=log) as history:
        await history.submit(namespace("default"), actor=ALICE)
        log.down = True
        for command in (namespace("default"), deletion(config_map("a"))):
            with pytest.raises(LogUnavailable):
                await history.submit(command, actor=ALICE)
        log.down = False
        with pytest.raises(AlreadyExists):
            await history.submit(namespace("default"), actor=ALICE)


async def test_refusal_upon_a_batch_is_told_when_that_is_stored() -> None:
    log = Slow(MemoryStore())
    told: list[str] = []
    async with running_history(log=log) as history, anyio.create_task_group() as tasks:
        await history.submit(namespace("default"), actor=ALICE)

        async def create(name: str) -> None:
            try:
                await history.submit(config_map(name), actor=ALICE)
                told.append("created")
            except AlreadyExists:
                assert history.views.objects.get(config_map(name).key) is not None
                told.append("refused")

        async with while_storing(log, create):
            tasks.start_soon(create, "a")
            await anyio.wait_all_tasks_blocked()
            assert told == []
        await anyio.wait_all_tasks_blocked()
        assert told == ["created", "refused"]
        assert history.head.revision == 2


async def test_what_was_decided_ahead_is_decided_again_when_another_writer_was_faster() -> None:
    store = MemoryStore()
    log = Slow(store)
    async with (
        running_history(log=log) as history,
        running_history(store=store, seed=8) as other,
        anyio.create_task_group() as tasks,
    ):
        await history.submit(namespace("default"), actor=ALICE)
        assert await other.wait_for(Revision(1), 5.0)

        async def create(name: str) -> None:
            await history.submit(config_map(name), actor=ALICE)

        async with while_storing(log, create):
            tasks.start_soon(create, "b")
            await anyio.wait_all_tasks_blocked()
            await other.submit(config_map("theirs"), actor=ALICE)
        assert await history.wait_for(Revision(4), 5.0)
        events = await log.read(history.info.id, after=Revision(0), limit=10)
        check_chain(events)
        assert [event.key.name for event in events] == ["default", "theirs", "a", "b"]


def release(log: Slow) -> None:
    """Let the append that is being stored end; the next one waits again."""
    stored, log.go = log.go, anyio.Event()
    stored.set()


async def test_batch_decided_upon_a_batch_decided_ahead_knows_both() -> None:
    log = Slow(MemoryStore())
    told: list[str] = []
    async with running_history(log=log) as history, anyio.create_task_group() as tasks:
        await history.submit(namespace("default"), actor=ALICE)

        async def submit(command: Command, label: str) -> None:
            try:
                outcome = await history.submit(command, actor=ALICE)
                told.append(f"{label} {outcome.event and outcome.event.revision}")
            except Rejected as refusal:
                told.append(f"{label} {type(refusal).__name__}")

        async def arrive(*commands: tuple[Command, str]) -> None:
            for command, label in commands:
                tasks.start_soon(submit, command, label)
            await anyio.wait_all_tasks_blocked()

        log.is_slow = True
        await arrive((config_map("a"), "a"))
        await arrive((config_map("b"), "b"), (deletion(config_map("a")), "no a"))
        release(log)
        await anyio.wait_all_tasks_blocked()
        assert told == ["a 2"]
        # Decided upon the second batch, which is being stored now and was decided upon the first.
        again = (config_map("b"), "b again"), (config_map("a"), "a again")
        await arrive(*again, (deletion(config_map("b")), "no b"), (deletion(config_map("c")), "c"))
        assert told == ["a 2"], "nothing is told before it is stored"
        release(log)
        await anyio.wait_all_tasks_blocked()
        assert told == ["a 2", "b 3", "no a 4"]
        await arrive((config_map("b"), "b at last"))
        for _ in range(2):
            release(log)
            await anyio.wait_all_tasks_blocked()
        assert told[3:] == [
            "b again AlreadyExists",
            "a again 5",
            "no b 6",
            "c NotFound",
            "b at last 7",
        ]
        assert log.sizes == [1, 2, 2, 1]
        events = await log.read(history.info.id, after=Revision(0), limit=10)
        check_chain(events)
        assert [event.key.name for event in events] == ["default", *"abaabb"]


async def test_writes_beyond_a_full_batch_are_stored_in_the_order_of_their_arrival() -> None:
    log = Slow(MemoryStore())
    async with (
        running_history(log=log, writer=WriterBounds(batch_max=2)) as history,
        anyio.create_task_group() as tasks,
    ):
        await history.submit(namespace("default"), actor=ALICE)

        async def create(name: str) -> None:
            await history.submit(config_map(name), actor=ALICE)

        log.is_slow = True
        # `b` and `c` fill the batch decided ahead; `e` must not pass `d`, which waits behind it.
        for names in ("abcd", "efg"):
            for name in names:
                tasks.start_soon(create, name)
                await anyio.wait_all_tasks_blocked()
            release(log)
            await anyio.wait_all_tasks_blocked()
        log.go.set()
        assert await history.wait_for(Revision(8), 5.0)
        assert log.sizes == [1, 2, 2, 2]
        events = await log.read(history.info.id, after=Revision(0), limit=10)
        check_chain(events)
        assert [event.key.name for event in events] == ["default", *"abcdefg"]


async def test_second_half_of_many_writes_is_decided_while_the_first_is_stored() -> None:
    log = Slow(MemoryStore())
    told: list[str] = []
    async with (
        running_history(log=log, writer=WriterBounds(halved_min=4)) as history,
        anyio.create_task_group() as tasks,
    ):
        await history.submit(namespace("default"), actor=ALICE)

        async def create(*names: str) -> None:
            try:
                await history.submit_all([config_map(name) for name in names], actor=ALICE)
                told.append(f"{names[0]} created")
            except AlreadyExists:
                told.append(f"{names[0]} refused")

        log.is_slow = True
        # Five commands: the first request has more than their half.
        for names in ("abc", "d", "a"):
            tasks.start_soon(create, *names)
        await anyio.wait_all_tasks_blocked()
        assert (log.sizes, told) == ([3], [])
        release(log)
        await anyio.wait_all_tasks_blocked()
        assert (log.sizes, told) == ([3, 1], ["a created"])
        # What arrives now is decided upon the second half, and three commands are not halved.
        for names in ("e", "f", "d"):
            tasks.start_soon(create, names)
        release(log)
        await anyio.wait_all_tasks_blocked()
        assert told[1:] == ["d created", "a refused"]
        log.go.set()
        assert await history.wait_for(Revision(7), 5.0)
        await anyio.wait_all_tasks_blocked()
        assert told[3:] == ["e created", "f created", "d refused"]
        assert log.sizes == [3, 1, 2]
        events = await log.read(history.info.id, after=Revision(0), limit=10)
        check_chain(events)
        assert [event.key.name for event in events] == ["default", *"abcdef"]


@pytest.mark.parametrize("names", ["ab", "abc", "abcd"])
async def test_queued_writes_are_decided_while_the_first_half_is_stored(names: str) -> None:
    log, clock = Slow(MemoryStore()), VirtualClock(START)
    async with (
        running_history(log=log, clock=clock, writer=WriterBounds(halved_min=2)) as history,
        anyio.create_task_group() as tasks,
    ):
        await history.submit(namespace("default"), actor=ALICE)
        log.is_slow = True
        for name in names:
            tasks.start_soon(partial(history.submit, config_map(name), actor=ALICE))
        await anyio.wait_all_tasks_blocked()
        assert log.sizes == [(len(names) + 1) // 2]
        # What is decided from now on has a later time.
        clock.advance_to(Instant(clock.now() + 3_600 * SECOND))
        log.go.set()
        assert await history.wait_for(Revision(1 + len(names)), 5.0)
        events = await log.read(history.info.id, after=Revision(0), limit=10)
        assert max(event.stamp.time for event in events) < START + 60 * SECOND


class Spliced(MemoryLog):
    """A log that gives two events at once, and from the third one on those of another log."""

    other: MemoryLog | None = None
    is_hidden = True

    async def read(
        self, history: HistoryId, *, after: Revision, limit: int, until: Revision | None = None
    ) -> list[Event]:
        if after >= 2 and self.other is not None:
            return await self.other.read(history, after=after, limit=limit, until=until)
        return await super().read(history, after=after, limit=min(limit, 2), until=until)

    async def head(self, history: HistoryId) -> Head:
        if self.is_hidden:
            return Head()
        return await (super() if self.other is None else self.other).head(history)

    async def append(
        self,
        history: HistoryId,
        *,
        expected: Head,
        events: Sequence[Event],
        leases: Sequence[LeaseToken] = (),
    ) -> Head:
        log = super() if self.other is None else self.other
        return await log.append(history, expected=expected, events=events, leases=leases)


async def written_behind(part: MemoryStore | None) -> Head:
    """The head after a write to a log of two pages, the second one of which is from a part."""
    store, other = MemoryStore(), part or MemoryStore()
    log = Spliced(store)
    async with running_history(log=log) as history:
        for each, seed in ((store, 8), (other, 9)):
            async with running_history(store=each, seed=seed) as writer:
                for name in "abcd":
                    await writer.submit(namespace(name), actor=ALICE)
        log.other = None if part is None else MemoryLog(part)
        log.is_hidden = False
        await history.submit(namespace("e"), actor=ALICE)
        return history.head


async def test_log_whose_pages_do_not_follow_each_other_is_refused() -> None:
    assert (await written_behind(None)).revision == 5
    with pytest.raises(ExceptionGroup) as problems:
        await written_behind(MemoryStore())
    assert problems.value.subgroup(ChainBroken)


async def test_second_half_is_decided_again_when_the_first_was_not_stored() -> None:
    log = Slow(MemoryStore())
    told: list[str] = []
    async with (
        running_history(log=log, writer=WriterBounds(halved_min=2)) as history,
        anyio.create_task_group() as tasks,
    ):
        await history.submit(namespace("default"), actor=ALICE)

        async def create(name: str) -> None:
            try:
                await history.submit(config_map(name), actor=ALICE)
                told.append("created")
            except (LogUnavailable, AlreadyExists) as problem:
                told.append(type(problem).__name__)

        log.is_slow = log.fails = True
        # Upon the first `a`, which is not stored, the second one would be refused.
        for name in "aab":
            tasks.start_soon(create, name)
        await anyio.wait_all_tasks_blocked()
        assert log.sizes == [1]
        log.go.set()
        assert await history.wait_for(Revision(3), 5.0)
        await anyio.wait_all_tasks_blocked()
        assert told == ["LogUnavailable", "created", "created"]


async def test_what_waits_when_the_writer_stops_is_refused() -> None:
    log = Slow(MemoryStore())
    told: list[str] = []

    async def create(history: HistoryRuntime, name: str) -> None:
        try:
            await history.submit(config_map(name), actor=ALICE)
        except LogUnavailable as problem:
            told.append(f"{name}: {problem}")

    async with anyio.create_task_group() as tasks, running_history(log=log) as history:
        await history.submit(namespace("default"), actor=ALICE)
        log.is_slow = True
        for name in ("a", "b"):
            tasks.start_soon(create, history, name)
            await anyio.wait_all_tasks_blocked()
    assert told == [
        "a: the writer was stopped",
        "b: the server is stopping, or is reading the history again",
    ]


class Unanswered(MemoryLog):
    """A log that stores appends, and whose answer to those of config maps never comes."""

    async def append(
        self,
        history: HistoryId,
        *,
        expected: Head,
        events: Sequence[Event],
        leases: Sequence[LeaseToken] = (),
    ) -> Head:
        head = await super().append(history, expected=expected, events=events, leases=leases)
        if events[0].key.resource == "configmaps":
            await anyio.sleep_forever()
        return head


async def test_what_was_stored_when_the_writer_stops_is_not_refused() -> None:
    """As when a history is renamed: a client who gets 503 sends the same again."""
    log = Unanswered(MemoryStore())
    told: list[str] = []

    async def create(history: HistoryRuntime, name: str) -> None:
        try:
            outcome = await history.submit(config_map(name), actor=ALICE)
            assert outcome.event is not None
            told.append(f"{name}: stored at {outcome.event.revision}")
        except LogUnavailable as problem:
            told.append(f"{name}: {problem}")

    async with anyio.create_task_group() as tasks, running_history(log=log) as history:
        await history.submit(namespace("default"), actor=ALICE)
        for name in ("a", "b"):
            tasks.start_soon(create, history, name)
            await anyio.wait_all_tasks_blocked()
    events = await log.read(history.info.id, after=Revision(0), limit=10)
    assert [event.key.name for event in events] == ["default", "a"]
    assert told == [
        "a: stored at 2",
        "b: the server is stopping, or is reading the history again",
    ]
