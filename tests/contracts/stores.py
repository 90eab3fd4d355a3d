"""The ports of one store, opened together, whichever store it is."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TypeAlias

from app.adapters.clock import SystemClock
from app.adapters.memory import (
    MemoryLeases,
    MemoryLog,
    MemoryStore,
    MemoryViewStore,
    MemoryWakeUp,
)
from app.adapters.postgres.database import open_database
from app.adapters.postgres.leases import PostgresLeases
from app.adapters.postgres.log import PostgresLog
from app.adapters.postgres.views import PostgresViewStore
from app.adapters.postgres.wakeup import open_wake_up
from app.domain.log import HistoryId
from app.domain.log.projection import Column, Table
from app.ports import EventLog, Leases, ViewStore, WakeUp

DEVICES = Table(
    name="test_devices",
    key=("pool", "device"),
    columns=(
        Column(name="pool", type="text"),
        Column(name="device", type="integer"),
        Column(name="ready", type="boolean"),
        Column(name="seen", type="instant"),
        Column(name="free", type="decimal"),
        Column(name="taints", type="json"),
    ),
)
"""A view table with a column of every type, and no migration: stores make it for themselves."""

POOLS = Table(name="test_pools", key=("pool",), columns=(Column(name="pool", type="text"),))

PROJECTIONS = {"devices": (DEVICES, POOLS)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    log: EventLog
    wake_up: WakeUp
    leases: Leases
    views: ViewStore

    async def history(self, name: str = "h") -> HistoryId:
        """A new, empty history."""
        made = await self.log.create_history(name, seed=1, settings={}, created=_CREATED)
        return made.id


_CREATED = SystemClock().now()

OpenStores: TypeAlias = Callable[[], AbstractAsyncContextManager[Stores]]


@asynccontextmanager
async def memory_stores() -> AsyncIterator[Stores]:
    store = MemoryStore()
    wake_up = MemoryWakeUp()
    yield Stores(
        log=MemoryLog(store, wake_up.grown),
        wake_up=wake_up,
        leases=MemoryLeases(store, SystemClock()),
        views=MemoryViewStore(PROJECTIONS),
    )


@asynccontextmanager
async def postgres_stores(url: str) -> AsyncIterator[Stores]:
    async with open_database(url) as database, open_wake_up(url) as wake_up:
        yield Stores(
            log=PostgresLog(database),
            wake_up=wake_up,
            leases=PostgresLeases(database),
            views=PostgresViewStore(database, lambda: PROJECTIONS),
        )
