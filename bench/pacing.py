"""Measures how exactly a paced replay keeps its pace.

    python -m bench.pacing [--seconds 10] [--rate 10]

A recording of so many changes a second of its own time is played at 1x, 10x and 100x for so many
seconds, over the memory adapters. Measured for each event: when it was shown against when it was
due. The pace is the recorded time that passed, by the time that it took, against the speed.
"""

import argparse
import statistics
import sys
from collections.abc import Sequence

import anyio
from rich.console import Console
from rich.table import Table

from app.adapters.clock import SystemClock
from app.adapters.memory import MemoryLog, MemoryStore, MemoryWakeUp
from app.adapters.uids import RandomUids
from app.bootstrap.rules import rules_of
from app.domain.log import Actor, Draft, EventType, Head, HistoryInfo, ObjectKey, Revision, Stamp
from app.domain.log.chain import seal
from app.domain.values.timestamps import SECOND, Instant
from app.ports import RuntimePorts
from app.service.histories import Histories
from app.service.pacing import stage
from app.service.pacing.player import Player
from app.service.pacing.script import PlayedSpan
from app.service.pacing.stage import StageTarget
from app.service.runtime import RuntimeBounds

SPEEDS = (1, 10, 100)
OBJECTS = 100
START = Instant(1_767_225_600 * SECOND)
ACTOR = Actor(user="bench")
KEY = ObjectKey("", "configmaps", "default", "")


def draft(number: int, rate: int) -> Draft:
    """A change of one of the objects, or the first of them."""
    name = f"m{number % OBJECTS}"
    tree = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "data": {"number": str(number)},
    }
    is_new = number < OBJECTS
    time = START if is_new else Instant(START + (number - OBJECTS + 1) * SECOND // rate)
    return Draft(
        type=EventType.OBJECT_CREATED if is_new else EventType.OBJECT_UPDATED,
        key=KEY._replace(name=name),
        uid=f"uid-{name}",
        tree=tree,
        stamp=Stamp(time=time, actor=ACTOR, verb="create" if is_new else "update"),
    )


async def recorded(log: MemoryLog, count: int, rate: int) -> HistoryInfo:
    """A recording of so many changes after its first state."""
    info = await log.create_history("night", seed=0, settings={}, created=START)
    events, previous = [], (await log.head(info.id)).hash
    for number in range(OBJECTS + count):
        event = seal(draft(number, rate), Revision(number + 1), previous)
        previous = event.hash
        events.append(event)
    await log.append(info.id, expected=Head(hash=(await log.head(info.id)).hash), events=events)
    return info


async def lags(speed: int, seconds: float, rate: int) -> tuple[float, list[float]]:
    """The pace that was kept, and by how much later than due each event was shown."""
    wake_up, clock = MemoryWakeUp(), SystemClock()
    log = MemoryLog(MemoryStore(), wake_up.grown)
    count = int(seconds * speed * rate)
    parent = await recorded(log, count, rate)
    ports = RuntimePorts(log=log, wake_up=wake_up, clock=clock, uids=RandomUids())
    histories = Histories(
        ports=ports, rules=rules_of, bounds=RuntimeBounds(), past_views_max=1, objects_max=10_000
    )
    head = await log.head(parent.id)
    begin = StageTarget(revision=Revision(OBJECTS), time=START)
    info = await stage.make(log, parent, begin, clock.now())
    player = Player(
        log=log,
        clock=clock,
        parent=parent,
        info=info,
        open_runtime=lambda: histories.open(info.name),
        span=PlayedSpan(begin=begin, end=StageTarget(revision=head.revision, time=head.time)),
        speed=speed,
    )
    late: list[float] = []
    async with histories.running(), anyio.create_task_group() as tasks:
        await player.begin(is_new=True)
        runtime = await histories.open(info.name)
        began = clock.steady()
        with runtime.subscribe(after=runtime.views.revision) as followed:
            tasks.start_soon(player.run)
            while len(late) < count:
                for event in await followed.next_batch(60.0):
                    due = (event.stamp.time - START) / speed
                    late.append((clock.steady() - began - due) / SECOND)
        took = (clock.steady() - began) / SECOND
        tasks.cancel_scope.cancel()
    return (head.time - START) / SECOND / took / speed, late


def main(arguments: Sequence[str] = ()) -> None:
    """Print one row for each speed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rate", type=int, default=10)
    asked = parser.parse_args(arguments)
    table = Table("speed", "events", "pace kept", "late, median", "late, p99")
    for speed in SPEEDS:
        pace, late = anyio.run(lags, speed, asked.seconds, asked.rate)
        ordered = sorted(late)
        p99 = ordered[int(len(ordered) * 0.99)]
        table.add_row(
            f"{speed}x",
            str(len(late)),
            f"{pace:.1%}",
            f"{statistics.median(late) * 1000:.1f} ms",
            f"{p99 * 1000:.1f} ms",
        )
    Console().print(table)


if __name__ == "__main__":
    main(sys.argv[1:])
