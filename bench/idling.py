"""How long the main process waits for the log while pods wait: `python -m bench.idling [SHAPE…]`.

The log is in memory. An append takes as long as PostgreSQL needs for it on the other core:
`--append-ms`, and `--event-us` for each event. Nobody waits for that time: it is skipped when this
process has nothing to do, and counted. The clock is processor time plus skipped time, so other
processes hardly change a figure, and the rate is that of a process that has a core to itself. HTTP,
the driver and the projector are not part of it.
"""

import argparse
import asyncio
import selectors
import sys
import time
from collections.abc import Awaitable, Sequence
from functools import partial

import anyio

from app.adapters.memory import (
    MemoryLeases,
    MemoryLog,
    MemoryStore,
    MemoryViewStore,
    MemoryWakeUp,
)
from app.adapters.uids import RandomUids
from app.bootstrap.stores import Store, view_tables
from app.domain.log import Event, Head, HistoryId, LeaseToken
from app.domain.values.timestamps import SECOND, Instant
from app.ports import RuntimePorts
from bench import cluster, shapes
from bench.cluster import DEVICES

SHAPES = ("fill", "steady", "shared")
"""Pods with a claim each; pods that come and go beside held devices; pods of few claims."""

HELD_PERCENT = 90

START = Instant(1_790_000_000 * SECOND)


class SkippedTime:
    """The time of a process that waits for nothing: processor time and the waits that it skips."""

    def __init__(self) -> None:
        self.skipped = 0.0
        self.appends = 0
        self.events = 0

    def seconds(self) -> float:
        """Seconds of both kinds since the process began."""
        return time.process_time() + self.skipped

    def now(self) -> Instant:
        """The present instant."""
        return Instant(START + self.steady())

    def steady(self) -> int:
        """Microseconds since the process began."""
        return int(self.seconds() * SECOND)

    async def wait_until(self, instant: Instant) -> None:
        """Return at or after `instant`."""
        while instant > (now := self.now()):  # noqa: ASYNC110 (time, not an event)
            await anyio.sleep((instant - now) / SECOND)


class SkippingSelector(selectors.DefaultSelector):
    """Skips the time for which the loop would wait, unless a file is ready."""

    def __init__(self, clock: SkippedTime) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """The files that are ready now; without a timer in the loop, those that become ready."""
        ready = super().select(0 if timeout is not None else None)
        if timeout is not None and timeout > 0 and not ready:
            self._clock.skipped += timeout
        return ready


class SkippingLoop(asyncio.SelectorEventLoop):
    """An event loop by a clock that skips waits."""

    def __init__(self, clock: SkippedTime) -> None:
        super().__init__(SkippingSelector(clock))
        self._clock = clock

    def time(self) -> float:
        """The loop's time."""
        return self._clock.seconds()


class SlowLog(MemoryLog):
    """The log in memory, in which an append takes the time that a database needs."""

    def __init__(
        self,
        store: MemoryStore,
        wake_up: MemoryWakeUp,
        clock: SkippedTime,
        append: float,
        event: float,
    ) -> None:
        super().__init__(store, wake_up.grown)
        self._clock = clock
        self._append_seconds, self._event_seconds = append, event

    async def append(
        self,
        history: HistoryId,
        *,
        expected: Head,
        events: Sequence[Event],
        leases: Sequence[LeaseToken] = (),
    ) -> Head:
        """Append all events or none after the time of an append."""
        self._clock.appends += 1
        self._clock.events += len(events)
        await anyio.sleep(self._append_seconds + len(events) * self._event_seconds)
        return await super().append(history, expected=expected, events=events, leases=leases)


def slow_store(clock: SkippedTime, append: float, event: float) -> Store:
    """A store in memory by that clock, whose appends take as many seconds."""
    held, wake_up = MemoryStore(), MemoryWakeUp()
    views = MemoryViewStore(view_tables())
    ports = RuntimePorts(
        log=SlowLog(held, wake_up, clock, append, event),
        wake_up=wake_up,
        clock=clock,
        uids=RandomUids(),
        views=views,
    )
    return Store(url="memory:", ports=ports, leases=MemoryLeases(held, clock), views=views)


async def measure(shape: str, pods: int, nodes: int, clock: SkippedTime, store: Store) -> None:
    """Run a shape, and print where the time of its pods went."""
    async with cluster.history_in_memory(store) as made:
        await cluster.prepare(made, nodes, pods_a_node=max(pods, shapes.Size().pods))
        if shape == "fill":
            await told(clock, shapes.arrive(made, shapes.template_pods("pod", pods), shape))
        elif shape == "steady":
            held = nodes * DEVICES * HELD_PERCENT // 100
            await shapes.arrive(made, shapes.template_pods("held", held), "")
            await told(clock, shapes.churn(made, pods, shape))
        else:
            claims = -(-pods // shapes.SHARERS)
            names = [f"shared-{number}" for number in range(claims)]
            await cluster.submit_all(made.runtime, [cluster.claim(name) for name in names])
            sharing = [
                cluster.pod(f"pod-{number:05}", claim=names[number % claims], cpu="10m")
                for number in range(pods)
            ]
            await told(clock, shapes.arrive(made, sharing, shape))


async def told(clock: SkippedTime, work: Awaitable[shapes.Row]) -> None:
    """Wait for the work of some pods, and print what it took."""
    began, skipped = clock.seconds(), clock.skipped
    appends, events = clock.appends, clock.events
    row = await work
    seconds, idle = clock.seconds() - began, clock.skipped - skipped
    print(
        f"{row.name}: {row.pods / seconds:.0f} pods/s, {(seconds - idle) / row.pods * 1e3:.2f} ms "
        f"CPU and {idle / row.pods * 1e3:.2f} ms idle a pod ({idle / seconds:.0%}); "
        f"{(clock.events - events) / row.pods:.1f} events in "
        f"{(clock.appends - appends) / row.pods:.3f} appends a pod",
        flush=True,
    )


def main(arguments: Sequence[str] = ()) -> None:
    """Run the shapes that are named, or all."""
    parser = argparse.ArgumentParser(prog="bench.idling", description=__doc__)
    parser.add_argument("shapes", nargs="*", metavar="SHAPE", help=", ".join(SHAPES))
    parser.add_argument("--pods", type=int, default=500, help="pods that are measured")
    parser.add_argument("--nodes", type=int, default=100, help=f"nodes of {DEVICES} devices")
    parser.add_argument("--append-ms", type=float, default=1.0, help="time of an append")
    parser.add_argument("--event-us", type=float, default=60.0, help="time of each of its events")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.shapes if name not in SHAPES]:
        parser.error(f"no shape {unknown[0]!r}; there are {', '.join(SHAPES)}")
    if options.pods > options.nodes * DEVICES:
        parser.error(f"{options.nodes} nodes have too few devices for {options.pods} pods")
    for shape in options.shapes or SHAPES:
        clock = SkippedTime()
        store = slow_store(clock, options.append_ms / 1e3, options.event_us / 1e6)
        anyio.run(
            *(measure, shape, options.pods, options.nodes, clock, store),
            backend_options={"loop_factory": partial(SkippingLoop, clock)},
        )


if __name__ == "__main__":
    main(sys.argv[1:])
