"""Simulated processes in one process: each has its own ports, views, writer and workers, over one
store in memory, under virtual time. Every kill is exact: at a call of a port, before or after its
effect. The seed draws the kills; the order of tasks that are ready at once may differ between runs.

Three processes share the work, as `redra up --no-workers` and two `redra work` would: the API with
the projector, the scheduler with the claim controller, and all the others.
"""

import asyncio
import random
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio

from app.adapters.memory import (
    MemoryLeases,
    MemoryLog,
    MemoryStore,
    MemoryViewStore,
    MemoryWakeUp,
)
from app.adapters.uids import DerivedUids
from app.analysis.views import ReleaseCompilers
from app.bootstrap.histories import views_of
from app.bootstrap.rules import rules_for
from app.bootstrap.stores import view_tables
from app.domain.controllers import registry
from app.domain.errors import LogError
from app.domain.log import Event, HistoryInfo
from app.domain.objects.profile import Profile
from app.domain.objects.write.commands import Command
from app.domain.values.json_tree import JsonObject
from app.ports import RuntimePorts
from app.service.folding.projecting import FoldingBounds, Projector
from app.service.runtime import HistoryRuntime, RuntimeBounds
from app.workers import projecting, supervisor
from app.workers.loop import LoopBounds
from app.workers.supervisor import WorkerSetting
from tests.cluster import T0, USER
from tests.crash.mortal import Life, Mortal, MortalWakeUp
from tests.crash.virtual_loop import LoopClock

PROFILE = Profile()
PLACERS = frozenset({"scheduling", "claims"})
REST_SECONDS = 40.0
"""A history that has not grown for so long is at rest: longer than leases and back-offs."""

CALLS_MAX = 300
WRITES_MAX = 30
"""The longest lives, in calls of ports; half of them are counted in calls that write."""


@dataclass(slots=True, kw_only=True)
class World:
    """The state that outlives every process: the store, the time, and the kills."""

    draw: random.Random
    clock: LoopClock
    kills_left: int
    killed: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    births: int = 0
    store: MemoryStore = field(default_factory=MemoryStore)
    wake_up: MemoryWakeUp = field(default_factory=MemoryWakeUp)
    views: MemoryViewStore = field(default_factory=lambda: MemoryViewStore(view_tables()))
    info: HistoryInfo | None = None

    def life(self) -> Life:
        """Draws the life of the next process; very short lives are as likely as long ones."""
        self.births += 1
        draw = random.Random(self.draw.getrandbits(64))
        only_writes = draw.random() < 0.5
        length = int((WRITES_MAX if only_writes else CALLS_MAX) ** draw.random())
        calls = length if self.kills_left > 0 else None
        return Life(self.births, draw, calls=calls, only_writes=only_writes)


class Process:
    """A sequence of processes with one task, each started after the death of the one before."""

    def __init__(self, world: World, name: str, only: frozenset[str]) -> None:
        self.name = name
        self._world = world
        self._only = only
        self._born = anyio.Event()
        self.runtime: HistoryRuntime | None = None
        self.life: Life | None = None

    async def keep_alive(self) -> None:
        """Starts the process again after every kill."""
        while True:
            life = self.life = self._world.life()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._live, life)
                await life.died.wait()
                self.runtime = None
                tasks.cancel_scope.cancel()
            if self._world.kills_left > 0:
                self._world.kills_left -= 1
                self._world.killed.append(f"{self.name} {life.where}")

    async def wait_runtime(self) -> tuple[HistoryRuntime, Life]:
        """Waits for a live process; returns its runtime and life."""
        while self.runtime is None or self.life is None or self.life.is_dead:
            await self._born.wait()
        return self.runtime, self.life

    async def _live(self, life: Life) -> None:
        world = self._world
        assert world.info is not None, "the history is made before any process"
        log = Mortal(life, MemoryLog(world.store, world.wake_up.grown))
        views: Any = Mortal(life, world.views)
        leases: Any = Mortal(life, MemoryLeases(world.store, world.clock))
        ports: Any = RuntimePorts(
            log=log,
            wake_up=MortalWakeUp(life, world.wake_up, lost=0.05),
            clock=world.clock,
            uids=DerivedUids(life.number),
            views=views,
        )
        runtime = HistoryRuntime(
            info=world.info,
            ports=ports,
            rules=rules_for(PROFILE),
            bounds=RuntimeBounds(poll_seconds=1.0, snapshot_every=150),
        )
        holder = f"{self.name}-{life.number}"
        bounds = LoopBounds(poll_seconds=2.0, lease_seconds=6.0, standby_seconds=1.0)
        setting = WorkerSetting(
            leases=leases,
            holder=holder,
            compilers=ReleaseCompilers(),
            bounds=bounds,
            only=self._only,
        )
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(runtime.running())
            tasks = await stack.enter_async_context(anyio.create_task_group())
            if self._only:
                tasks.start_soon(supervisor.run, runtime, setting)
            else:
                follow = partial(
                    projecting.run,
                    runtime,
                    views=views,
                    make=views_of(PROFILE.settings()),
                    bounds=FoldingBounds(page_max=200, snapshot_every=100),
                )
                tasks.start_soon(follow)
            self.runtime = runtime
            self._born.set()
            self._born = anyio.Event()
            try:
                await anyio.sleep_forever()
            finally:
                if runtime.troubles:
                    world.ended.append(f"{holder}: {runtime.troubles}")


class Client:
    """A client that repeats commands without an answer."""

    def __init__(self, api: Process) -> None:
        self._api = api
        self.repeats = 0

    async def send(self, command: Command, *, expected: tuple[type[Exception], ...]) -> None:
        """Sends a command until it is answered; an error of `expected` counts as an answer."""
        while True:
            runtime, life = await self._api.wait_runtime()
            try:
                if await _ask(runtime, life, command):
                    return
            except expected:
                return
            except LogError:
                pass
            self.repeats += 1

    async def wait_rest(self, world: World) -> None:
        """Waits until the history has not grown for REST_SECONDS."""
        assert world.info is not None
        while True:
            before = world.store.history(world.info.id).head.revision
            await anyio.sleep(REST_SECONDS)  # waits: virtual time
            if world.store.history(world.info.id).head.revision == before:
                return


async def _ask(runtime: HistoryRuntime, life: Life, command: Command) -> bool:
    """Submits a command; False when the process died before it answered. Raises its refusal."""
    problems: list[Exception] = []
    answered = False

    async def ask(scope: anyio.CancelScope) -> None:
        nonlocal answered
        try:
            await runtime.submit(command, actor=USER)
            answered = True
        except Exception as problem:
            problems.append(problem)
        scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, tasks.cancel_scope)
        await life.died.wait()
        tasks.cancel_scope.cancel()
    if problems:
        raise problems[0]
    return answered


async def begin(
    seed: int, kills: int, delay_millis: int | None = None
) -> tuple[World, list[Process]]:
    """Creates a world with an empty history; bindings take `delay_millis` in it."""
    clock = LoopClock(asyncio.get_running_loop(), T0)
    world = World(draw=random.Random(seed), clock=clock, kills_left=kills)
    log = MemoryLog(world.store)
    settings = PROFILE.settings()
    if delay_millis is not None:
        settings["controllers"] = {"bindDelayMillis": delay_millis}
    world.info = await log.create_history("story", seed=seed, settings=settings, created=T0)
    rest = frozenset(registry.NAMES) - PLACERS
    return world, [
        Process(world, "api", frozenset()),
        Process(world, "placing", PLACERS),
        Process(world, "others", rest),
    ]


def events_of(world: World) -> list[Event]:
    """The events of the log."""
    assert world.info is not None
    return world.store.history(world.info.id).events


async def check_tables(world: World) -> list[str]:
    """Names of view tables that differ from those of a projector that was never killed."""
    assert world.info is not None
    fresh = MemoryViewStore(view_tables())
    log = MemoryLog(world.store)
    differing = []
    for store in (fresh, world.views):
        projector = Projector(
            log=log,
            views=store,
            history=world.info.id,
            make=views_of(PROFILE.settings()),
            bounds=FoldingBounds(),
        )
        await projector.open()
        await projector.catch_up()
    for tables in view_tables().values():
        for table in tables:
            one = await fresh.rows(world.info.id, table.name)
            if one != await world.views.rows(world.info.id, table.name):
                differing.append(table.name)
    return differing


def objects_of(runtime: HistoryRuntime) -> list[JsonObject]:
    """All existing objects in the views of a process."""
    objects = runtime.views.objects
    found: Sequence[JsonObject | None] = [
        objects.get(key)
        for group, resource in objects.resources()
        for key in objects.keys(group, resource)
    ]
    return [tree for tree in found if tree is not None]
