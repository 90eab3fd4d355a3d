"""Imports an altered audit log and asks a server about its end."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from app.adapters.memory import MemoryStore
from tests.adversary.log import Json, Log
from tests.api.serving import Server, serving
from tests.truth.altered.asking import PROFILE, import_log

BELOW = "/redra/v1/histories/default"


@dataclass(frozen=True)
class Served:
    """A server with the imported log."""

    server: Server
    revision: int

    async def ask(self, question: str, **parameters: object) -> Json:
        """The answer about the end of the log."""
        query = urlencode({**parameters, "at": self.revision})
        answer: Json = await self.server.get(f"{BELOW}/{question}?{query}")
        return answer

    async def propose(self, proposal: Json) -> Json:
        """What a change at the end of the log would do."""
        place = f"{BELOW}/blast?at={self.revision}"
        answer: Json = await self.server.post(place, proposal, code=200)
        return answer


@asynccontextmanager
async def served(log: Log, folder: Path) -> AsyncIterator[Served]:
    """A server with a log that is imported by way of a file in the folder."""
    store = MemoryStore()
    result = await import_log(log, folder, store, name="default")
    async with serving(store=store, profile=PROFILE) as server:
        yield Served(server, result.head.revision)
