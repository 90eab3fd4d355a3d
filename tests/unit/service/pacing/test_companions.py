"""A paced replay inside a server: what ends it ends nothing else."""

import math
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace

import anyio
import pytest

from app.bootstrap.histories import open_histories
from app.bootstrap.pacing.companions import Companions
from app.bootstrap.pacing.replay_request import ReplayWanted
from app.bootstrap.stores import Store, memory_store
from app.domain.errors import InputError, StaleLease
from app.domain.log import HistoryId, HistoryInfo, LeaseToken
from app.service.histories import Histories
from app.service.pacing.player import Player
from app.service.runtime import HistoryRuntime
from app.settings import Settings
from tests.patience import PATIENCE_SECONDS
from tests.unit.service.builders import ALICE, namespace
from tests.unit.service.pacing.world import create, delete, patch

PACED = "night~paced"


@dataclass(slots=True)
class Server:
    """Store, histories and notes of a server without its API."""

    store: Store
    histories: Histories
    settings: Settings
    stack: AsyncExitStack
    notes: list[str] = field(default_factory=list)
    conflicts: list[int | None] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)
    begun: list[str] = field(default_factory=list)

    async def record(self, name: str = "night") -> HistoryInfo:
        runtime = await self.histories.create(name, settings={"profile": "1.36"})
        for command in (namespace("default"), create("a"), create("b"), delete("a")):
            await runtime.submit(command, actor=ALICE)
        return runtime.info

    async def play(
        self,
        histories: Histories | None = None,
        stack: AsyncExitStack | None = None,
        **wanted: object,
    ) -> Companions:
        """What plays the recording, which has begun and is not running yet."""
        replay = ReplayWanted(history="night", on_end=self.conflicts.append, **wanted)
        companions = Companions(self.store, self.settings, (), replay, self.notes.append)
        await companions.open(stack or self.stack)
        await companions.begin(histories or self.histories)
        return companions

    async def run(self, companions: Companions) -> None:
        """Run the tasks of the server until no replay is played."""
        with anyio.fail_after(PATIENCE_SECONDS):
            async with anyio.create_task_group() as tasks:
                companions.start(tasks, lambda: self.ends.append("end"), self.begun.append)
                while companions.players:
                    await anyio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()


@asynccontextmanager
async def serving(**settings: object) -> AsyncIterator[Server]:
    values, store = Settings(**settings), memory_store()
    async with AsyncExitStack() as stack, open_histories(store, values) as histories:
        yield Server(store, histories, values, stack)


@pytest.mark.parametrize("ends", [False, True])
async def test_deletion_of_what_is_played_ends_the_replay_alone(ends: bool) -> None:
    async with serving() as server:
        await server.record()
        companions = await server.play(ends=ends)
        await server.histories.delete(PACED, by="alice")
        await server.run(companions)
        (note,) = server.notes
        assert note.startswith("night~paced is no longer played: ")
        assert PACED in note.partition(":")[2]
        assert bool(server.ends) == ends
        assert server.conflicts == [None] * ends
        runtime = await server.histories.open("night")
        assert await runtime.submit(create("c"), actor=ALICE)


async def test_replay_without_conflicts_ends_with_none_counted() -> None:
    async with serving() as server:
        await server.record()
        companions = await server.play(ends=True, speed=math.inf)
        with anyio.fail_after(PATIENCE_SECONDS):
            async with anyio.create_task_group() as tasks:
                companions.start(tasks, tasks.cancel_scope.cancel, server.begun.append)
        assert server.conflicts == [0]


@pytest.mark.parametrize("changes", [1, 2, 7])
@pytest.mark.parametrize("is_stopped", [False, True])
async def test_equal_conflicts_are_one_line_and_their_number(
    changes: int, is_stopped: bool
) -> None:
    """An object that a client deleted is in conflict with each of its recorded changes."""
    async with serving() as server:
        runtime = await server.histories.create("night", settings={"profile": "1.36"})
        written = [patch("a", {"data": {"at": str(at)}}) for at in range(changes)]
        for command in (namespace("default"), create("a"), create("b"), *written, delete("b")):
            await runtime.submit(command, actor=ALICE)
        companions = await server.play(ends=True, speed=0.0, begin="3")
        player = companions.players[PACED]
        replay = await server.histories.open(PACED)
        await replay.submit(delete("a"), actor=ALICE)
        with anyio.fail_after(PATIENCE_SECONDS):
            async with anyio.create_task_group() as tasks:
                companions.start(tasks, tasks.cancel_scope.cancel, server.begun.append)
                await player.set_pace(speed=math.inf, paused=False)
                while is_stopped and "conflict: " not in "".join(server.notes):
                    await anyio.lowlevel.checkpoint()
                if is_stopped:
                    tasks.cancel_scope.cancel()
        said = [note for note in server.notes if note.startswith("conflict")]
        first = "conflict: configmaps/default/a is not shown as recorded: "
        assert [note.startswith(first) for note in said] == [True, False][: min(changes, 2)]
        more = f"conflict, {changes - 1} more like it: configmaps/default/a is not shown"
        assert [note.startswith(more) for note in said[1:]] == [True] * (changes > 1)
        assert player.counts[1] == changes


async def test_renaming_of_what_is_played_ends_the_replay_alone() -> None:
    async with serving() as server:
        await server.record()
        companions = await server.play()
        await server.histories.rename(PACED, "morning")
        await server.run(companions)
        assert [note.partition(":")[0] for note in server.notes] == [
            "night~paced is no longer played"
        ]


async def take_over(server: Server, companions: Companions) -> Player:
    """Another process plays from now on: nobody renews the lease of the first any more."""
    player = companions.players[PACED]
    with anyio.fail_after(PATIENCE_SECONDS):
        while await server.store.leases.acquire(player.info.id, "replay", "x", seconds=60) is None:
            await anyio.lowlevel.checkpoint()
    return player


async def test_replay_whose_lease_was_taken_over_ends_alone() -> None:
    async with serving(lease_seconds=0.2) as server:
        await server.record()
        companions = await server.play(speed=0.0)
        await take_over(server, companions)
        await server.run(companions)
        (note,) = server.notes
        assert note.endswith("has been taken over")


async def test_replay_of_a_history_that_had_the_name_before_is_refused() -> None:
    async with serving() as server:
        await server.record()
        await server.play(speed=0.0)
        await server.histories.rename("night", "morning")
        await server.record()
        paced = await server.histories.info(PACED)
        before = await server.store.log.head(paced.id)
        with pytest.raises(InputError, match="night~paced is not a replay of this night"):
            await server.play(speed=0.0)
        assert await server.store.log.head(paced.id) == before


async def test_nothing_is_shown_under_a_lease_that_was_taken_over() -> None:
    async with serving(lease_seconds=0.2) as server:
        await server.record()
        player = await take_over(server, await server.play(speed=0.0, begin="3"))
        before = await server.store.log.head(player.info.id)
        with pytest.raises(StaleLease):
            await player.seek(str(player.span.end.revision))
        with pytest.raises(StaleLease):
            await player.seek("1")
        assert (await server.store.log.head(player.info.id)).revision == before.revision


async def test_lease_is_given_back_when_the_server_ends() -> None:
    async with serving(lease_seconds=3600) as server:
        await server.record()
        async with AsyncExitStack() as stack:
            companions = await server.play(stack=stack, speed=0.0)
            info = companions.players[PACED].info
            leases = server.store.leases
            assert await leases.acquire(info.id, "replay", "x", seconds=60) is None
        assert await leases.acquire(info.id, "replay", "x", seconds=60) is not None


async def test_lease_is_given_back_when_the_replay_alone_ends() -> None:
    async with serving(lease_seconds=3600) as server:
        await server.record()
        companions = await server.play()
        info = companions.players[PACED].info
        await server.histories.rename(PACED, "morning")
        await server.run(companions)
        assert await server.store.leases.acquire(info.id, "replay", "x", seconds=60) is not None


async def test_lease_is_renewed_while_the_first_state_is_shown() -> None:
    renewed = anyio.Event()

    async with serving(lease_seconds=0.2) as server:
        await server.record()
        leases = server.store.leases

        class Telling:
            acquire, release = leases.acquire, leases.release

            async def renew(self, history: HistoryId, token: LeaseToken, *, seconds: float) -> bool:
                renewed.set()
                return await leases.renew(history, token, seconds=seconds)

        server.store = replace(server.store, leases=Telling())

        class Slow:
            async def open(self, name: str) -> HistoryRuntime:
                await renewed.wait()
                return await server.histories.open(name)

        with anyio.fail_after(PATIENCE_SECONDS):
            await server.play(histories=Slow(), speed=0.0)
        assert renewed.is_set()


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"begin": "2199-01-01T00:00:00Z"}, "--from: the history ends before it"),
        ({"begin": "4", "end": "3"}, "--to: the end is before the beginning"),
    ],
)
async def test_end_before_the_beginning_is_refused(wanted: dict[str, str], said: str) -> None:
    async with serving() as server:
        await server.record()
        with pytest.raises(InputError) as caught:
            await server.play(**wanted)
        assert str(caught.value) == said
