"""A recorded history in memory, and a client of the server that serves it, in one process."""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx

from app.adapters import schemas
from app.adapters.clock import SystemClock
from app.adapters.memory import MemoryLog, MemoryStore, MemoryWakeUp
from app.adapters.telemetry import Telemetry
from app.adapters.uids import RandomUids
from app.api.application import create_app
from app.bootstrap.answers.limits import api_limits
from app.bootstrap.rules import rules_for
from app.domain.log import Event, Head, Revision, chain
from app.domain.objects.profile import Profile
from app.domain.values.timestamps import Instant
from app.ports import RuntimePorts
from app.service.histories import Histories
from app.service.runtime import RuntimeBounds
from app.settings import Settings


@dataclass(frozen=True, slots=True)
class Recorded:
    """A client of the server, and the last revision of the history."""

    client: httpx.AsyncClient
    last: Revision


@asynccontextmanager
async def recorded_history(
    name: str, pages: Iterable[Sequence[Event]], settings: Settings = Settings()
) -> AsyncIterator[Recorded]:
    """Chain the events of all pages to a history of that name, and serve it until the end."""
    wake_up = MemoryWakeUp()
    log = MemoryLog(MemoryStore(), wake_up.grown)
    stored = {"profile": "1.37", "recorded": True}
    info = await log.create_history(name, seed=0, settings=stored, created=Instant(0))
    head = Head()
    for page in pages:
        events, previous = [], head.hash
        for event in page:
            events.append(chain.relinked(event, event.body, previous))
            previous = events[-1].hash
        head = await log.append(info.id, expected=head, events=events)
    ports = RuntimePorts(log=log, wake_up=wake_up, clock=SystemClock(), uids=RandomUids())
    histories = Histories(
        ports=ports,
        rules=lambda _: rules_for(Profile()),
        bounds=RuntimeBounds(),
        past_views_max=4,
        objects_max=1_000_000,
    )
    async with histories.running():
        limits = api_limits(settings)
        app = create_app(histories, schemas=schemas.load, meter=Telemetry(), limits=limits)
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://redra", timeout=600
        ) as client:
            yield Recorded(client, head.revision)
