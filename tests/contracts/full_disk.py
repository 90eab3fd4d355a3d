"""Fills the disk under an embedded server, then frees some of it again.

`python -m tests.contracts.full_disk FOLDER`, FOLDER being on a small file system of its own. Says
what the log answered and what it held, a line each.
"""

import os
import shutil
import sys
import time
from pathlib import Path

import anyio

from app.adapters.postgres import migrating
from app.adapters.postgres.database import open_database
from app.adapters.postgres.log import PostgresLog
from app.adapters.postgres.server import EmbeddedServer
from app.domain.errors import HeadMoved, LogUnavailable
from app.domain.log import Head, HistoryId, Revision
from app.domain.log.chain import check_chain
from tests.contracts.building import START, claims

BALLAST_BYTES = 40 << 20
"""What is freed in the end."""
LEFT_BYTES = 32 << 20
"""What is left for the log: some appends, and a segment of the write-ahead log."""
RECOVERY_SECONDS = 60.0


def leave(folder: Path, size: int) -> None:
    """Take all of the disk but `size` bytes."""
    with (folder / "others").open("wb") as others:
        os.posix_fallocate(others.fileno(), 0, shutil.disk_usage(folder).free - size)


async def fill(log: PostgresLog, history: HistoryId) -> Head:
    """Append until refused; returns the last head that was acknowledged."""
    head = Head()
    while True:
        try:
            head = await log.append(history, expected=head, events=claims(head, 2_000))
        except LogUnavailable as problem:
            print("refused:", problem, flush=True)
            return head


async def recover(log: PostgresLog, history: HistoryId) -> Head:
    """Append one event as soon as the log takes it again."""
    deadline = time.monotonic() + RECOVERY_SECONDS
    while True:
        try:
            head = await log.head(history)
            return await log.append(history, expected=head, events=claims(head, 1))
        except (LogUnavailable, HeadMoved):
            assert time.monotonic() < deadline, "not taken again"
            await anyio.sleep(0.05)  # waits: for PostgreSQL to recover


async def main(folder: Path) -> None:
    """The whole scene."""
    ballast = folder / "ballast"
    ballast.write_bytes(bytes(BALLAST_BYTES))
    async with EmbeddedServer(folder / "server") as server:
        await migrating.migrate(server.url)
        async with open_database(server.url) as database:
            log = PostgresLog(database)
            history = (await log.create_history("h", seed=0, settings={}, created=START)).id
            leave(folder, LEFT_BYTES)
            acknowledged = await fill(log, history)
            ballast.unlink()
            head = await recover(log, history)
            assert head.revision > acknowledged.revision
            after, hash = Revision(0), bytes(32)
            while page := await log.read(history, after=after, limit=5_000):
                hash = check_chain(page, after=after, hash=hash)
                after = page[-1].revision
            assert after == head.revision
            print("recovered:", acknowledged.revision > 0, flush=True)


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]))
