"""Durable appends per second by batch size; `python -m bench.log`.

One writer appends 1.5 KB claims to an embedded server with fsync on, so that each figure is what a
group writer gets when so many commands wait. Compare the rows with each other: the disk decides
about the first ones.
"""

import argparse
import platform
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import anyio
from rich.console import Console
from rich.table import Table

from app.adapters.postgres import migrating
from app.adapters.postgres.database import open_database
from app.adapters.postgres.log import PostgresLog
from app.adapters.postgres.server import EmbeddedServer
from app.domain.log import Actor, Draft, Event, EventType, Head, ObjectKey, Revision, Stamp
from app.domain.log.chain import seal
from app.domain.values.timestamps import Instant

BATCHES = (1, 8, 32, 256, 4_096)
BODY_BYTES = 1_500


def draft(number: int) -> Draft:
    """A claim of about BODY_BYTES."""
    name = f"claim-{number:07}"
    tree = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"00000000-0000-4000-8000-{number:012}",
            "creationTimestamp": "2026-01-02T03:04:05Z",
        },
        "spec": {
            "devices": {
                "requests": [
                    {
                        "name": f"request-{place}",
                        "exactly": {
                            "deviceClassName": "gpu.example.com",
                            "allocationMode": "ExactCount",
                            "count": 1,
                            "selectors": [{"cel": {"expression": "device.driver == 'gpu'"}}],
                        },
                    }
                    for place in range(7)
                ]
            }
        },
    }
    return Draft(
        type=EventType.OBJECT_CREATED,
        key=ObjectKey("resource.k8s.io", "resourceclaims", "default", name),
        uid=f"00000000-0000-4000-8000-{number:012}",
        tree=tree,
        stamp=Stamp(
            time=Instant(1_770_000_000_000_000 + number),
            actor=Actor(user="system:serviceaccount:default:driver", agent="bench"),
            verb="create",
            request_id=f"request-{number}",
        ),
    )


def batch_after(head: Head, size: int) -> list[Event]:
    """Sealed events that follow the head."""
    events: list[Event] = []
    previous = head.hash
    for number in range(head.revision + 1, head.revision + size + 1):
        event = seal(draft(number), Revision(number), previous)
        previous = event.hash
        events.append(event)
    return events


async def append_rate(log: PostgresLog, size: int, seconds: float) -> tuple[float, float]:
    """Events per second in time spent appending, and the median milliseconds of one append."""
    info = await log.create_history(f"bench-{size}", seed=0, settings={}, created=Instant(0))
    head = Head()
    took: list[float] = []
    while sum(took) < seconds:
        events = batch_after(head, size)
        start = time.perf_counter()
        head = await log.append(info.id, expected=head, events=events)
        took.append(time.perf_counter() - start)
    return head.revision / sum(took), sorted(took)[len(took) // 2] * 1_000


async def read_rate(log: PostgresLog) -> float:
    """Events per second read back in pages of 5,000."""
    info = await log.find_history(f"bench-{BATCHES[-1]}")
    assert info is not None
    after, start = Revision(0), time.perf_counter()
    while page := await log.read(info.id, after=after, limit=5_000):
        after = page[-1].revision
    return after / (time.perf_counter() - start)


async def run(seconds: float, folder: Path) -> None:
    """Measure and print."""
    body = len(batch_after(Head(), 1)[0].body)
    table = Table(title=f"appends, {body} bytes a body, {platform.machine()}, fsync on")
    for title in ("batch", "events/s", "ms per append", "times batch 1"):
        table.add_column(title, justify="right")
    async with EmbeddedServer(folder) as server:
        await migrating.migrate(server.url)
        async with open_database(server.url) as database:
            log = PostgresLog(database)
            first = 0.0
            for size in BATCHES:
                rate, median = await append_rate(log, size, seconds)
                first = first or rate
                table.add_row(f"{size:,}", f"{rate:,.0f}", f"{median:.2f}", f"{rate / first:.1f}")
            read = await read_rate(log)
    console = Console(file=sys.stdout)
    console.print(table)
    console.print(f"reading back: {read:,.0f} events/s")


def main(arguments: Sequence[str] = ()) -> None:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0, help="appending time per row")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="redra-bench-") as folder:
        anyio.run(run, options.seconds, Path(folder))


if __name__ == "__main__":
    main(sys.argv[1:])
