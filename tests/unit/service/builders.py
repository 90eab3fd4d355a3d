"""A history in memory, for tests of the service."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from app.adapters import schemas
from app.adapters.memory import MemoryLog, MemoryStore, MemoryWakeUp
from app.adapters.uids import DerivedUids
from app.domain.log import Actor, ObjectKey
from app.domain.objects.profile import Profile
from app.domain.objects.rules import Rules
from app.domain.objects.write.commands import CreateObject, DeleteObject
from app.domain.values.timestamps import Instant
from app.ports import EventLog, RuntimePorts, ViewStore
from app.service.runtime import HistoryRuntime, RuntimeBounds
from tests.virtual_clock import VirtualClock

ALICE = Actor(user="alice")
START = Instant(1_767_225_600_000_000)


def rules() -> Rules:
    return Rules(profile=Profile(), schemas=schemas.load("1.37"))


@asynccontextmanager
async def running_history(
    *,
    log: EventLog | None = None,
    store: MemoryStore | None = None,
    seed: int = 7,
    own_rules: Rules | None = None,
    views: ViewStore | None = None,
    clock: VirtualClock | None = None,
    **bounds: Any,
) -> AsyncIterator[HistoryRuntime]:
    wake_up = MemoryWakeUp()
    ports = RuntimePorts(
        log=log or MemoryLog(store or MemoryStore(), wake_up.grown),
        wake_up=wake_up,
        clock=clock or VirtualClock(START),
        uids=DerivedUids(seed),
        views=views,
    )
    info = await ports.log.find_history("h")
    if info is None:
        info = await ports.log.create_history("h", seed=7, settings={}, created=START)
    runtime = HistoryRuntime(
        info=info,
        ports=ports,
        rules=own_rules or rules(),
        bounds=RuntimeBounds(poll_seconds=0.05, **bounds),
    )
    async with runtime.running():
        yield runtime


def namespace(name: str) -> CreateObject:
    tree = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    return CreateObject(key=ObjectKey("", "namespaces", "", name), version="v1", tree=tree)


def config_map(name: str, namespace: str = "default") -> CreateObject:
    tree = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": {"a": "1"},
    }
    key = ObjectKey("", "configmaps", namespace, name)
    return CreateObject(key=key, version="v1", tree=tree)


def deletion(command: CreateObject) -> DeleteObject:
    return DeleteObject(key=command.key)
