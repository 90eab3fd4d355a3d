"""A controller that fails by our own mistake harms neither its neighbours nor the API."""

import anyio
import pytest

from app.adapters.clock import VirtualClock
from app.adapters.memory import MemoryLeases, MemoryStore
from app.domain.devices.cel_selectors import CelCompiler
from app.workers import supervisor
from app.workers.supervisor import WorkerSetting
from tests.unit.service.builders import ALICE, START, namespace, running_history


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
        leases=MemoryLeases(store, VirtualClock(START)), holder="test", compiler=CelCompiler()
    )
    async with running_history(store=store) as history, anyio.create_task_group() as tasks:
        tasks.start_soon(supervisor.run, history, setting)
        with anyio.fail_after(5):
            await ran.wait()
            await history.submit(namespace("default"), actor=ALICE)
        assert history.troubles == {"breaks": "ValueError: a mistake of ours"}
        assert "controller breaks of history h failed" in caplog.text
        tasks.cancel_scope.cancel()
