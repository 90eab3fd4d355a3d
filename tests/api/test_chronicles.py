"""What happened in long histories is read to its end, or it is said that it cannot be."""

import anyio
import pytest

from app.adapters.memory import MemoryLog
from app.api.redra.answers import Answers
from app.api.server.limits import ApiLimits
from app.domain.errors import NotFound
from tests.api.serving import CONFIG_MAPS, config_map, serving
from tests.patience import PATIENCE_SECONDS

FEW = ApiLimits(chronicles_max=1, chronicle_events_max=2)
"""Of one history something is kept, and each turn reads two events."""


async def fill(server, name):
    """A history that takes several turns to read."""
    await server.post("/redra/v1/histories", {"name": name})
    for number in range(6):
        await server.post(f"/h/{name}{CONFIG_MAPS}", config_map(f"m-{number}"))
    return await server.histories.open(name)


async def test_log_that_gives_nothing_more_ends_the_reading_of_it(monkeypatch):
    async with serving() as server:
        runtime = await fill(server, "gone")
        answers = Answers(server.histories, FEW)
        await answers.chronicle(runtime)

        async def read(*_, **__):
            return []

        monkeypatch.setattr(MemoryLog, "read", read)
        with anyio.fail_after(PATIENCE_SECONDS), pytest.raises(NotFound, match='history "gone"'):
            await answers.whole_chronicle(runtime, runtime.views.revision)


async def test_history_that_is_closed_ends_the_reading_of_it():
    async with serving() as server:
        runtime = await fill(server, "closed")
        answers = Answers(server.histories, FEW)
        await answers.chronicle(runtime)
        await server.histories.close("closed")
        with anyio.fail_after(PATIENCE_SECONDS), pytest.raises(NotFound, match='history "closed"'):
            await answers.whole_chronicle(runtime, runtime.views.revision)


async def test_more_histories_than_are_kept_are_read_to_their_ends_at_once():
    async with serving() as server:
        answers = Answers(server.histories, FEW)
        runtimes = [await fill(server, name) for name in ("one", "two", "three")]
        revisions = {}

        async def read(runtime):
            chronicle = await answers.whole_chronicle(runtime, runtime.views.revision)
            revisions[runtime.info.name] = chronicle.revision

        with anyio.fail_after(PATIENCE_SECONDS):
            async with anyio.create_task_group() as tasks:
                for runtime in runtimes:
                    tasks.start_soon(read, runtime)
        assert revisions == {one.info.name: one.views.revision for one in runtimes}


async def test_findings_are_of_the_whole_log_however_long_it_is():
    async with serving(limits=FEW) as server:
        await fill(server, "long")
        answer = await server.get("/redra/v1/histories/long/findings")
        assert (answer["examined"], answer["revision"] > 2) == (answer["revision"], True)
