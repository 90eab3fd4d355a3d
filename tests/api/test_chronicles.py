"""Long histories are read to their end, or the answer says that they cannot be."""

import anyio
import msgspec
import pytest

from app.adapters.memory import MemoryLog, MemoryStore, MemoryWakeUp
from app.analysis.findings.report import Findings
from app.api.redra.answers import Answers
from app.api.server.limits import ApiLimits
from app.cli.looking.showing import findings_lines
from app.domain.errors import NotFound
from app.domain.log import Head
from app.domain.values.timestamps import Instant
from app.service.answering.errands import Errand
from tests.api.serving import CONFIG_MAPS, config_map, serving
from tests.cluster import Cluster
from tests.patience import PATIENCE_SECONDS
from tests.virtual_clock import VirtualClock

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


async def test_findings_of_a_log_that_is_still_read_say_so_and_nothing_lasts_until_now(monkeypatch):
    """The claim is released in an event that is not read yet; by now it would be late."""
    cluster = Cluster()
    cluster.node()
    cluster.slice()
    cluster.device_class()
    cluster.claim("held")
    cluster.pod("job", claim="held")
    cluster.settle()
    cluster.delete("pods", "job", grace_seconds=0)
    gone = len(cluster.line.events)
    cluster.wait(90)
    cluster.claim("later")
    store = MemoryStore()
    log = MemoryLog(store, MemoryWakeUp().grown)
    info = await log.create_history("default", seed=1, settings={}, created=Instant(0))
    await log.append(info.id, expected=Head(), events=cluster.line.events)
    now = cluster.line.events[-1].stamp.time
    limits = ApiLimits(chronicle_events_max=gone, findings_wait_seconds=0)
    async with serving(store=store, clock=VirtualClock(now), limits=limits) as server:
        runtime = await server.histories.open("default")
        monkeypatch.setattr(runtime.errands, "begin", lambda *_: Errand())
        first = await server.get("/redra/v1/histories/default/findings")
        monkeypatch.undo()
        answer = await server.get("/redra/v1/histories/default/findings")
        while answer["examined"] < answer["revision"]:
            answer = await server.get("/redra/v1/histories/default/findings")
    assert first["examined"] == gone < first["revision"]
    said = f"read up to revision {gone} of {first['revision']}; what only later events show may "
    assert said in first["note"]
    broken = [one["text"] for one in first["items"] if one["kind"] == "BrokenInvariant"]
    assert (broken, answer["note"]) == ([], "")
    shown = msgspec.convert(first | {"items": []}, type=Findings)
    assert [said in line for line in findings_lines(shown, [], "default")] == [True]
