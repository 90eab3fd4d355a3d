"""Writers as real processes, so that they can be killed.

Run as `python -m tests.contracts.processes ROLE URL HISTORY …`; each says what it did on a line of
its own, so that the test waits for a line and never for time.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import asyncpg
from anyio.abc import Process
from anyio.streams.text import TextReceiveStream

from app.adapters.postgres.database import open_database
from app.adapters.postgres.log import PostgresLog
from app.domain.errors import HeadMoved
from app.domain.log import HistoryId
from tests.contracts.building import claims


@asynccontextmanager
async def started(role: str, *arguments: object) -> AsyncIterator[Process]:
    """A process in a role; killed on leaving if it still runs."""
    command = [sys.executable, "-m", "tests.contracts.processes", role, *map(str, arguments)]
    async with await anyio.open_process(command, stderr=None) as process:
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()


async def line_of(process: Process) -> str:
    """The next thing that the process says; empty at its end."""
    assert process.stdout is not None
    text = ""
    async for part in TextReceiveStream(process.stdout):
        text += part
        if text.endswith("\n"):
            break
    return text.strip()


async def hold(url: str, history: int) -> None:
    """Lock the head inside a transaction, as an append does, and stay there."""
    connection = await asyncpg.connect(url)
    await connection.execute("BEGIN")
    await connection.execute(
        "UPDATE log_heads SET revision = revision + 1 WHERE history = $1", history
    )
    say("holding")
    await asyncio.Event().wait()


async def write(url: str, history: int, name: str, count: int) -> None:
    """Append so many events, one at a time, deciding again whenever another was first."""
    async with open_database(url) as database:
        log = PostgresLog(database)
        head = await log.head(HistoryId(history))
        say("ready")
        written = 0
        while written < count:
            events = claims(head, 1, prefix=name, user=name)
            try:
                head = await log.append(HistoryId(history), expected=head, events=events)
                written += 1
            except HeadMoved:
                head = await log.head(HistoryId(history))
    say("done")


def say(text: str) -> None:
    """One line to the test."""
    print(text, flush=True)


def main() -> None:
    """Play the role named by the arguments."""
    role, url, history, *rest = sys.argv[1:]
    if role == "hold":
        asyncio.run(hold(url, int(history)))
    else:
        asyncio.run(write(url, int(history), rest[0], int(rest[1])))


if __name__ == "__main__":
    main()
