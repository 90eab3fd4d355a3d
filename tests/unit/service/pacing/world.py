"""A recorded cluster in memory, and a player of it in virtual time."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
from anyio.lowlevel import checkpoint

from app.adapters.memory import MemoryLog, MemoryStore, MemoryViewStore, MemoryWakeUp
from app.adapters.uids import DerivedUids
from app.bootstrap.rules import rules_of
from app.domain.log import Event, EventType, HistoryInfo, ObjectKey, Revision
from app.domain.objects.write.commands import (
    Command,
    CreateObject,
    DeleteObject,
    PatchObject,
    PatchType,
)
from app.domain.objects.write.replaying import rebasing
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import SECOND, Instant
from app.ports import RuntimePorts
from app.service.histories import Histories
from app.service.pacing import stage
from app.service.pacing.player import Player, PlayerBounds
from app.service.pacing.script import PlayedSpan
from app.service.pacing.stage import StageTarget
from app.service.runtime import HistoryRuntime, RuntimeBounds
from tests.unit.service.builders import ALICE, START, namespace
from tests.virtual_clock import VirtualClock

LATER = Instant(START + 86_400 * SECOND)
"""When the recording is played: a day after it was made."""


def key(name: str) -> ObjectKey:
    return ObjectKey("", "configmaps", "default", name)


def create(name: str, data: JsonObject | None = None, **metadata: object) -> Command:
    tree = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", **metadata},
        "data": data or {},
    }
    return CreateObject(key=key(name), version="v1", tree=tree)


def patch(name: str, body: JsonObject) -> Command:
    return PatchObject(key=key(name), version="v1", type=PatchType.MERGE, body=body)


def delete(name: str) -> Command:
    return DeleteObject(key=key(name))


@dataclass(slots=True)
class World:
    store: MemoryStore
    log: MemoryLog
    clock: VirtualClock
    histories: Histories
    tasks: anyio.abc.TaskGroup
    scopes: list[anyio.CancelScope] = field(default_factory=list)

    async def record(self, *steps: tuple[float, Command]) -> HistoryInfo:
        """A cluster whose commands come so many seconds after its beginning."""
        runtime = await self.histories.create("cluster", settings={"profile": "1.36"})
        await runtime.submit(namespace("default"), actor=ALICE)
        for seconds, command in steps:
            self.clock.advance_to(Instant(START + int(seconds * SECOND)))
            await runtime.submit(command, actor=ALICE, verb="")
        self.clock.advance_to(LATER)
        return runtime.info

    async def play(
        self,
        parent: HistoryInfo,
        *,
        speed: float = 1.0,
        shifts: bool = False,
        span: PlayedSpan | None = None,
        **bounds: int,
    ) -> Player:
        """A player that has begun; without `span` it plays the whole recording."""
        if span is None:
            head = await self.log.head(parent.id)
            end = StageTarget(revision=head.revision, time=head.time)
            span = PlayedSpan(begin=await stage.first_state(self.log, parent), end=end)
        begin = span.begin
        info = await self.histories.find(stage.name_of(parent.name))
        is_new = info is None
        if info is None:
            info = await stage.make(self.log, parent, begin, self.clock.now())
        name = info.name
        player = Player(
            log=self.log,
            clock=self.clock,
            parent=parent,
            info=info,
            open_runtime=lambda: self.histories.open(name),
            span=span,
            speed=speed,
            shifts=shifts,
            bounds=PlayerBounds(**bounds),
        )
        await player.begin(is_new=is_new)
        self.tasks.start_soon(player.run)
        await self.settle()
        return player

    async def settle(self) -> None:
        """Let everybody do what is due by now."""
        for _ in range(60):
            await checkpoint()

    async def wait(self, seconds: float) -> None:
        """Let time pass, in steps at which something is due."""
        end = Instant(self.clock.now() + int(seconds * SECOND))
        while (due := self.clock.due()) is not None and due <= end:
            self.clock.advance_to(due)
            await self.settle()
        self.clock.advance_to(end)
        await self.settle()

    async def runtime(self, info: HistoryInfo) -> HistoryRuntime:
        return await self.histories.open(info.name)

    async def write(self, player: Player, command: Command) -> None:
        """What a client writes between recorded events."""
        runtime = await self.runtime(player.info)
        await runtime.submit(command, actor=ALICE)

    async def events(self, info: HistoryInfo) -> list[Event]:
        """The events of a history after it was forked."""
        after = info.parent_revision
        return await self.log.read(info.id, after=after, limit=10_000)

    async def trees(self, info: HistoryInfo) -> dict[str, JsonObject]:
        """The config maps that exist, by name."""
        objects = (await self.runtime(info)).views.objects
        return {event.key.name: event.object for event in objects.events("", "configmaps")}

    async def data(self, info: HistoryInfo) -> dict[str, object]:
        """The data of the config maps that exist, by name."""
        return {name: tree.get("data", {}) for name, tree in (await self.trees(info)).items()}

    async def is_as_recorded(self, player: Player, revision: int = 0) -> bool:
        """Whether the replay shows exactly the objects of the recording at a revision."""
        until = Revision(revision or player.span.end.revision)
        recorded = await self.log.objects_at(player.parent.id, until, limit=10_000)
        present = (await self.runtime(player.info)).views.objects
        shown = [event for place in present.resources() for event in present.events(*place)]
        by_key = {event.key: event.object for event in shown}
        return by_key.keys() == {event.key for event in recorded} and all(
            rebasing.is_same(by_key[event.key], event.object) for event in recorded
        )


def conflicts(events: list[Event]) -> list[tuple[str, str, list[str]]]:
    """Name, kind and places of the conflicts among events."""
    return [
        (event.key.name, event.object["conflict"], event.object["places"])
        for event in events
        if event.type is EventType.CONFLICT_OBSERVED
    ]


@asynccontextmanager
async def world() -> AsyncIterator[World]:
    store, wake_up, clock = MemoryStore(), MemoryWakeUp(), VirtualClock(START)
    log = MemoryLog(store, wake_up.grown)
    histories = Histories(
        ports=RuntimePorts(
            log=log, wake_up=wake_up, clock=clock, uids=DerivedUids(7), views=MemoryViewStore({})
        ),
        rules=rules_of,
        bounds=RuntimeBounds(poll_seconds=60.0),
        past_views_max=4,
        objects_max=1_000,
    )
    async with histories.running(), anyio.create_task_group() as tasks:
        yield World(store, log, clock, histories, tasks)
        tasks.cancel_scope.cancel()
