"""Measures the cost of a fork by the length of its parent.

    python -m bench.forking [--events 100 10000 1000000]

The parent has so many events about a thousand claims. Measured: making the fork at its last
revision, with its first event; a page of the objects there, read through the fork; and the fork of
that fork.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

import anyio
from rich.console import Console
from rich.table import Table

from app.adapters.clock import SystemClock
from app.adapters.memory import MemoryWakeUp
from app.adapters.postgres import migrating
from app.adapters.postgres.database import open_database
from app.adapters.postgres.log import PostgresLog
from app.adapters.postgres.server import EmbeddedServer
from app.adapters.uids import DerivedUids
from app.bootstrap.rules import rules_of
from app.domain.log import Actor, Draft, EventType, Head, HistoryInfo, Revision
from app.domain.log.chain import seal
from app.domain.values.timestamps import Instant
from app.ports import RuntimePorts
from app.service.forking import Forker, ForkRequest
from app.service.runtime import RuntimeBounds
from bench import figures
from bench.log import draft

OBJECTS = 1_000
BATCH = 5_000
ACTOR = Actor(user="bench")

T = TypeVar("T")


def update(number: int) -> Draft:
    """One more version of one of the claims."""
    made = draft(number % OBJECTS + 1)
    if number > OBJECTS:
        made.type = EventType.OBJECT_UPDATED
    return made


async def filled(log: PostgresLog, count: int) -> HistoryInfo:
    """A history of so many events."""
    info = await log.create_history(f"parent-{count}", seed=0, settings={}, created=Instant(0))
    head = Head()
    previous = head.hash
    while head.revision < count:
        events = []
        for number in range(head.revision + 1, min(head.revision + BATCH, count) + 1):
            event = seal(update(number), Revision(number), previous)
            previous = event.hash
            event.tree = None
            events.append(event)
        head = await log.append(info.id, expected=head, events=events)
    return info


async def timed(what: Callable[[], Awaitable[T]]) -> tuple[T, float]:
    """What it gives, and the milliseconds that it took."""
    start = time.perf_counter()
    found = await what()
    return found, (time.perf_counter() - start) * 1_000


async def run(lengths: list[int], folder: Path) -> None:
    """Measure and print."""
    table = Table(title="forks")
    titles = ("events of the parent", "fork", "objects at its end", "fork of the fork")
    for title in titles:
        table.add_column(title, justify="right")
    async with EmbeddedServer(folder) as server:
        await migrating.migrate(server.url)
        async with open_database(server.url) as database:
            log = PostgresLog(database)
            ports = RuntimePorts(
                log=log, wake_up=MemoryWakeUp(), clock=SystemClock(), uids=DerivedUids(0)
            )
            forker = Forker(ports=ports, rules=rules_of, bounds=RuntimeBounds())

            async def fork(parent: HistoryInfo, name: str) -> HistoryInfo:
                return (await forker.fork(parent, name, "", ForkRequest(), ACTOR)).info

            for count in lengths:
                parent = await filled(log, count)
                first, made = await timed(lambda: fork(parent, f"fork-{count}"))  # noqa: B023
                end = (await log.head(first.id)).revision
                objects, read = await timed(
                    lambda: log.objects_at(first.id, end, limit=BATCH)  # noqa: B023
                )
                assert len(objects) == min(count, OBJECTS)
                _, again = await timed(lambda: fork(first, f"again-{count}"))  # noqa: B023
                if count == 1_000_000:
                    figures.note("forking.million_events", made)
                row = (f"{made:.1f} ms", f"{read:.0f} ms", f"{again:.1f} ms")
                table.add_row(f"{count:,}", *row)
    Console(file=sys.stdout).print(table)


def main(arguments: Sequence[str] = ()) -> None:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, nargs="+", default=[100, 10_000, 1_000_000])
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="redra-bench-") as folder:
        anyio.run(run, options.events, Path(folder))


if __name__ == "__main__":
    main(sys.argv[1:])
