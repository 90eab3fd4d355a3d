"""A paced replay inside a server: what ends it ends nothing else."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

import anyio
import pytest

from app.bootstrap.histories import open_histories
from app.bootstrap.pacing.companions import Companions
from app.bootstrap.pacing.wanted import ReplayWanted
from app.bootstrap.stores import Store, memory_store
from app.domain.errors import InputError
from app.domain.log import HistoryInfo
from app.service.histories import Histories
from app.settings import Settings
from tests.unit.service.builders import ALICE, namespace
from tests.unit.service.pacing.world import create, delete

PACED = "night~paced"


@dataclass(slots=True)
class Server:
    store: Store
    histories: Histories
    settings: Settings
    stack: AsyncExitStack
    notes: list[str] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)

    async def record(self, name: str = "night") -> HistoryInfo:
        runtime = await self.histories.create(name, settings={"profile": "1.36"})
        for command in (namespace("default"), create("a"), create("b"), delete("a")):
            await runtime.submit(command, actor=ALICE)
        return runtime.info

    async def play(self, **wanted: object) -> Companions:
        """What plays the recording, which has begun and is not running yet."""
        replay = ReplayWanted(history="night", **wanted)
        companions = Companions(self.store, self.settings, (), replay, self.notes.append)
        await companions.open(self.stack)
        await companions.begin(self.histories)
        return companions

    async def run(self, companions: Companions) -> None:
        """Run the tasks of the server until no replay is played."""
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                companions.start(tasks, lambda: self.ends.append("end"))
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
        assert note.startswith("night~paced is played no more: ")
        assert PACED in note.partition(":")[2]
        assert bool(server.ends) == ends
        runtime = await server.histories.open("night")
        assert await runtime.submit(create("c"), actor=ALICE)


async def test_renaming_of_what_is_played_ends_the_replay_alone() -> None:
    async with serving() as server:
        await server.record()
        companions = await server.play()
        await server.histories.rename(PACED, "morning")
        await server.run(companions)
        assert [note.partition(":")[0] for note in server.notes] == [
            "night~paced is played no more"
        ]


async def test_replay_whose_lease_was_taken_over_ends_alone() -> None:
    async with serving(lease_seconds=0.2) as server:
        await server.record()
        companions = await server.play(speed=0.0)
        info = companions.players[PACED].info
        with anyio.fail_after(20):
            while await server.store.leases.acquire(info.id, "replay", "x", seconds=60) is None:
                await anyio.lowlevel.checkpoint()
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
        with pytest.raises(InputError, match="night~paced is no replay of this night"):
            await server.play(speed=0.0)
        assert await server.store.log.head(paced.id) == before
