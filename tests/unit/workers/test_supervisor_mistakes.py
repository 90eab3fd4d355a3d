"""A controller that fails by our own mistake harms neither its neighbours nor the API."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from app.adapters.memory import MemoryLeases, MemoryStore, MemoryViewStore, MemoryWakeUp
from app.analysis.views import ReleaseCompilers
from app.domain.controllers.plan import Plan, Views
from app.domain.log import Event
from app.domain.values.timestamps import Instant
from app.service.folding.projecting import FoldingBounds
from app.service.runtime import HistoryRuntime
from app.workers import projecting, supervisor
from app.workers.loop import ControllerLoop, LoopBounds
from app.workers.supervisor import WorkerSetting
from projections.activity import ActivityProjection
from tests.patience import PATIENCE_SECONDS
from tests.unit.service.builders import ALICE, START, config_map, namespace, running_history
from tests.virtual_clock import VirtualClock


async def test_a_failing_controller_is_told_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Breaks:
        name = "breaks"

        async def run(self) -> None:
            raise ValueError("a mistake of ours")

    class Works:
        name = "works"

        async def run(self) -> None:
            ran.set()
            await anyio.sleep_forever()

    ran = anyio.Event()
    store = MemoryStore()
    monkeypatch.setattr(supervisor, "loops_of", lambda _runtime, _setting: [Breaks(), Works()])
    setting = WorkerSetting(
        leases=MemoryLeases(store, VirtualClock(START)), holder="test", compilers=ReleaseCompilers()
    )
    async with running_history(store=store) as history, anyio.create_task_group() as tasks:
        tasks.start_soon(supervisor.run, history, setting)
        with anyio.fail_after(PATIENCE_SECONDS):
            await ran.wait()
            await history.submit(namespace("default"), actor=ALICE)
        assert history.troubles == {"breaks": "ValueError: a mistake of ours"}
        assert "controller breaks of history h failed" in caplog.text
        tasks.cancel_scope.cancel()


async def test_loops_end_without_a_word_when_another_process_deletes_the_history(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = MemoryStore()
    setting = WorkerSetting(
        leases=MemoryLeases(store, VirtualClock(START)), holder="test", compilers=ReleaseCompilers()
    )
    async with running_history(store=store) as history:
        info = history.info
        await history.log.delete_history(info.id, at=START, by="alice")
        for loop in supervisor.loops_of(history, setting)[:2]:
            with anyio.fail_after(PATIENCE_SECONDS):
                await supervisor._keep_running(loop, history)
        with anyio.fail_after(PATIENCE_SECONDS):
            await projecting.follow_log(
                info,
                log=history.log,
                wake_up=MemoryWakeUp(),
                views=MemoryViewStore({}),
                make=lambda: [ActivityProjection()],
                bounds=FoldingBounds(),
                idle_seconds=1.0,
            )
        assert (history.troubles, caplog.text) == ({}, "")


class Clumsy:
    """Greets configuration objects one by one, and breaks at those of a certain name."""

    name = "namespaces"
    reads = frozenset({("", "configmaps")})

    def __init__(self, greeted: list[str], all_greeted: anyio.Event, *, in_fold: bool) -> None:
        self._queue: list[str] = []
        self._greeted = greeted
        self._all_greeted = all_greeted
        self._in_fold = in_fold

    def fold(self, event: Event, views: Views) -> None:
        if event.key.resource != "configmaps":
            return
        if self._in_fold and event.key.name == "odd":
            raise ValueError("odd cannot be folded")
        self._queue.append(event.key.name)

    def step(self, views: Views, now: Instant) -> Plan | None:
        if not self._queue:
            return None
        found = self._queue.pop(0)
        if found == "odd":
            raise ValueError("odd cannot be greeted")
        self._greeted.append(found)
        if {"first", "last"} <= set(self._greeted):
            self._all_greeted.set()
        return Plan(controller=self.name, key=found)

    def settled(self, plan: Plan, problem: str | None, now: Instant) -> None:
        raise AssertionError("there was nothing to settle")

    def due(self) -> Instant | None:
        return None

    def redecide(self, views: Views, decision: Event) -> Plan | None:
        return None


@pytest.mark.parametrize("in_fold", [False, True])
async def test_one_odd_object_does_not_stop_the_work_on_others(
    in_fold: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    verb = "folded" if in_fold else "greeted"
    told = f"ValueError: odd cannot be {verb}; its cause is skipped"
    async with clumsy_at_work(monkeypatch, in_fold=in_fold, calm_seconds=60.0) as (
        history,
        greeted,
    ):
        assert history.troubles == {"namespaces": told}
        assert "odd" not in greeted
        assert caplog.text.count("skips") == 1


async def test_trouble_is_over_after_a_calm_while(monkeypatch: pytest.MonkeyPatch) -> None:
    async with clumsy_at_work(monkeypatch, in_fold=False, calm_seconds=0.0) as (history, _):
        with anyio.fail_after(PATIENCE_SECONDS):
            while history.troubles:  # noqa: ASYNC110 - troubles are a dict, not an event
                await anyio.sleep(0.01)  # waits: for the next renewal of a lease
        assert not history.troubles


@asynccontextmanager
async def clumsy_at_work(
    monkeypatch: pytest.MonkeyPatch, *, in_fold: bool, calm_seconds: float
) -> AsyncIterator[tuple[HistoryRuntime, list[str]]]:
    """A history with an odd object; the controller has greeted all others."""
    greeted: list[str] = []
    all_greeted = anyio.Event()
    store = MemoryStore()
    leases = MemoryLeases(store, VirtualClock(START))
    monkeypatch.setattr(supervisor, "RESTART_SECONDS", 0.0)
    async with running_history(store=store) as history, anyio.create_task_group() as tasks:
        loop = ControllerLoop(
            "namespaces",
            history,
            lambda: Clumsy(greeted, all_greeted, in_fold=in_fold),
            leases=leases,
            holder="test",
            bounds=LoopBounds(calm_seconds=calm_seconds, poll_seconds=0.01, lease_seconds=0.03),
        )
        monkeypatch.setattr(supervisor, "loops_of", lambda _runtime, _setting: [loop])
        await history.submit(namespace("default"), actor=ALICE)
        for name in ("first", "odd", "last"):
            await history.submit(config_map(name), actor=ALICE)
        setting = WorkerSetting(leases=leases, holder="test", compilers=ReleaseCompilers())
        tasks.start_soon(supervisor.run, history, setting)
        with anyio.fail_after(PATIENCE_SECONDS):
            await all_greeted.wait()
        yield history, greeted
        tasks.cancel_scope.cancel()
