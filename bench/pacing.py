"""Measures how exactly a paced replay keeps its pace.

    python -m bench.pacing [RECORDING] [--speed 10]… [--seconds 10] [--rate 10]

A recording is played at 1x, 10x and 100x for so many seconds, or to its end, over the memory
adapters; without one, an invented recording of so many changes a second of its own time. Measured
for each event: when it was shown against when it was due. The pace is the recorded time that
passed, by the time that it took, against the speed. The processor time has that of the import.
"""

import argparse
import statistics
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio
from rich.console import Console
from rich.table import Table

from app.bootstrap.process_settings import settings
from app.bootstrap.recordings import RecordingFiles, import_history
from app.bootstrap.rules import rules_of
from app.bootstrap.stores import Store, find_history, memory_store
from app.domain.log import Actor, Draft, EventType, Head, HistoryInfo, ObjectKey, Revision, Stamp
from app.domain.log.chain import seal
from app.domain.values.timestamps import SECOND, Instant
from app.ports import EventLog
from app.service.histories import Histories
from app.service.pacing import stage
from app.service.pacing.player import Player, PlayerState
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


async def recorded(log: EventLog, count: int, rate: int) -> HistoryInfo:
    """A recording of so many changes after its first state."""
    info = await log.create_history("night", seed=0, settings={}, created=START)
    events, previous = [], (await log.head(info.id)).hash
    for number in range(OBJECTS + count):
        event = seal(draft(number, rate), Revision(number + 1), previous)
        previous = event.hash
        events.append(event)
    await log.append(info.id, expected=Head(hash=(await log.head(info.id)).hash), events=events)
    return info


@dataclass(frozen=True, slots=True, kw_only=True)
class Lags:
    """The pace that was kept, and the seconds after its due time at which each event was shown."""

    pace: float
    late: list[float]
    most_a_second: int


async def invented(log: EventLog, seconds: float, rate: int) -> tuple[HistoryInfo, StageTarget]:
    """A recording of so many changes a second, and the state in which it begins."""
    info = await recorded(log, int(seconds * rate), rate)
    return info, StageTarget(revision=Revision(OBJECTS), time=START)


async def imported(store: Store, path: Path) -> tuple[HistoryInfo, StageTarget]:
    """The recording of a file or folder, and the state in which it begins."""
    wanted = RecordingFiles(paths=(path,))
    await import_history(store, settings(), wanted, "night", lambda _done, _total: None)
    info = await find_history(store, "night")
    return info, await stage.first_state(store.log, info)


async def times_until(log: EventLog, info: HistoryInfo, last: Instant) -> dict[int, Instant]:
    """The time of each revision up to an instant."""
    times: dict[int, Instant] = {}
    while events := await log.read(info.id, after=Revision(len(times)), limit=5_000):
        times |= {event.revision: event.stamp.time for event in events if event.stamp.time <= last}
        if events[-1].stamp.time > last:
            break
    return times


async def lags(
    store: Store, parent: HistoryInfo, begin: StageTarget, speed: int, last: Instant
) -> Lags:
    """Play up to an instant, and hear of each event as a watcher does."""
    times = await times_until(store.log, parent, last)
    end = StageTarget(revision=Revision(max(times)), time=times[max(times)])
    histories = Histories(
        ports=store.ports,
        rules=rules_of,
        bounds=RuntimeBounds(),
        past_views_max=1,
        objects_max=10_000,
    )
    clock = store.ports.clock
    info = await stage.make(store.log, parent, begin, clock.now())
    player = Player(
        log=store.log,
        clock=clock,
        parent=parent,
        info=info,
        open_runtime=lambda: histories.open(info.name),
        span=PlayedSpan(begin=begin, end=end),
        speed=speed,
    )
    heard: list[tuple[Instant, float]] = []
    async with histories.running(), anyio.create_task_group() as tasks:
        await player.begin(is_new=True)
        runtime = await histories.open(info.name)
        began = clock.steady()
        with runtime.subscribe(after=runtime.views.revision) as followed:
            tasks.start_soon(player.run)
            while True:
                batch = await followed.next_batch(1.0)
                passed = (clock.steady() - began) / SECOND
                for event in batch:
                    if event.stamp.origin is not None and event.stamp.origin.replayed:
                        heard.append((times[event.stamp.origin.replayed], passed))
                if not batch and player.state is PlayerState.ENDED:
                    break
        tasks.cancel_scope.cancel()
    late = [passed - (time - begin.time) / SECOND / speed for time, passed in heard]
    pace = (heard[-1][0] - begin.time) / SECOND / heard[-1][1] / speed
    return Lags(pace=pace, late=sorted(late), most_a_second=most_a_second(heard, speed))


def most_a_second(heard: Sequence[tuple[Instant, float]], speed: int) -> int:
    """The events that are due in the busiest second of the replay."""
    counts = Counter(time // (speed * SECOND) for time, _ in heard)
    return max(counts.values())


async def measured(asked: argparse.Namespace, speed: int) -> Lags:
    """The lags of the asked recording at a speed."""
    store = memory_store()
    if asked.recording is None:
        parent, begin = await invented(store.log, asked.seconds * speed, asked.rate)
    else:
        parent, begin = await imported(store, asked.recording)
    last = Instant(begin.time + int(asked.seconds * speed * SECOND))
    return await lags(store, parent, begin, speed, last)


def main(arguments: Sequence[str] = ()) -> None:
    """Print one row for each speed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recording", nargs="?", type=Path)
    parser.add_argument("--speed", type=int, action="append")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rate", type=int, default=10)
    asked = parser.parse_args(arguments)
    columns = ("events", "most due in a second", "pace kept", "late, median", "late, p99", "CPU")
    table = Table("speed", *columns)
    for speed in asked.speed or SPEEDS:
        used = time.process_time()
        result = anyio.run(measured, asked, speed)
        used = time.process_time() - used
        late = result.late
        table.add_row(
            f"{speed}x",
            str(len(late)),
            str(result.most_a_second),
            f"{result.pace:.1%}",
            f"{statistics.median(late) * 1000:.1f} ms",
            f"{late[int(len(late) * 0.99)] * 1000:.1f} ms",
            f"{used:.1f} s",
        )
    Console().print(table)


if __name__ == "__main__":
    main(sys.argv[1:])
