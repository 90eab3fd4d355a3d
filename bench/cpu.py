"""CPU time per write and per projected event, without a database: `python -m bench.cpu`.

Unlike rates, CPU time is the same on a busy machine and on an idle one. The writer runs against the
log in memory, so the figure covers deciding, sealing, folding into the views and handing on.
"""

import argparse
import cProfile
import pstats
import sys
import time
from collections.abc import Callable, Sequence

import anyio
import anyio.lowlevel

from app.bootstrap import garbage_collection
from app.bootstrap.histories import views_of
from app.bootstrap.rules import rules_for
from app.bootstrap.stores import Store, memory_store
from app.domain.log import Event, HistoryInfo, ObjectKey, Revision
from app.domain.objects.profile import Profile
from app.domain.objects.write.commands import Command, PatchObject, PatchType
from app.domain.values.timestamps import Instant
from app.service.folding.projecting import FoldingBounds, Projector
from app.service.runtime import HistoryRuntime, RuntimeBounds
from bench.cluster import node, pod
from bench.writer import BENCH, claim, make_namespace

TURNS = 500_000
"""Turns of the loop that the processor's present speed is measured by."""

CREATES = 8_000
CALLERS = 32


def turn_seconds() -> float:
    """CPU seconds of one turn of a plain loop now, which shows the effect of other processes."""
    started = time.process_time()
    total = 0
    for number in range(TURNS):
        total += number
    return (time.process_time() - started) / TURNS


async def submit_all(runtime: HistoryRuntime, commands: Sequence[Command]) -> float:
    """CPU microseconds for each of the commands, submitted by CALLERS concurrent callers."""

    async def call(lane: Sequence[Command]) -> None:
        for command in lane:
            await runtime.submit(command, actor=BENCH)

    started = time.process_time()
    async with anyio.create_task_group() as tasks:
        for number in range(CALLERS):
            tasks.start_soon(call, commands[number::CALLERS])
    return (time.process_time() - started) / len(commands) * 1e6


def finish(number: int) -> Command:
    """The writes of a kubelet when a pod has started."""
    status = {"phase": "Running", "podIP": f"10.0.{number // 250}.{number % 250 + 1}"}
    return PatchObject(
        key=ObjectKey("", "pods", "default", f"pod-{number:05}"),
        version="v1",
        type=PatchType.MERGE,
        body={"status": status},
        subresource="status",
    )


async def project(
    store: Store, info: HistoryInfo, profile: Profile, events: Sequence[Event], size: int
) -> tuple[float, float]:
    """CPU microseconds an event of a projector, and the longest CPU seconds it kept the loop."""
    projector = Projector(
        log=store.log,
        views=memory_store().views,
        history=info.id,
        make=views_of(profile.settings()),
        bounds=FoldingBounds(page_max=size),
    )
    await projector.open()
    longest = 0.0

    async def wait_for_turns() -> None:
        nonlocal longest
        while True:
            before = time.process_time()
            await anyio.lowlevel.checkpoint()
            longest = max(longest, time.process_time() - before)

    started = time.process_time()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait_for_turns)
        for first in range(0, len(events), size):
            await projector.take(events[first : first + size], at_head=True)
        tasks.cancel_scope.cancel()
    return (time.process_time() - started) / len(events) * 1e6, longest


async def measure(show: Callable[[str, float], None]) -> list[Event]:
    """Report each kind of write; returns the events that were made."""
    store = memory_store()
    profile = Profile()
    info = await store.log.create_history("bench", seed=1, settings={}, created=Instant(0))
    runtime = HistoryRuntime(
        info=info, ports=store.ports, rules=rules_for(profile), bounds=RuntimeBounds()
    )
    async with runtime.running():
        await make_namespace(runtime)
        half = CREATES // 2
        show("create a claim", await submit_all(runtime, [claim(f"c-{n}") for n in range(CREATES)]))
        show("create a node", await submit_all(runtime, [node(f"node-{n}") for n in range(half)]))
        show("create a pod", await submit_all(runtime, [pod(f"pod-{n:05}") for n in range(half)]))
        show("patch a pod's status", await submit_all(runtime, [finish(n) for n in range(half)]))
    events = await store.log.read(info.id, after=Revision(0), limit=1_000_000)
    for size in (200, 5_000):
        spent, longest = await project(store, info, profile, events, size)
        show(f"project an event, {size} at once", spent)
        print(f"    others wait at most {longest * 1e3:.0f} ms CPU")
    return events


def main(arguments: Sequence[str] = ()) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="bench.cpu", description=__doc__)
    parser.add_argument("--profile", action="store_true", help="print where the time goes")
    options = parser.parse_args(arguments)
    garbage_collection.expect_large_heap()
    profiler = cProfile.Profile() if options.profile else None

    def show(what: str, spent: float) -> None:
        turns = spent / turn_seconds() / 1e6
        print(f"{what:36} {spent:7.1f} µs CPU, as {turns:6.0f} turns of a loop")
        if profiler is not None:
            profiler.disable()
            pstats.Stats(profiler, stream=sys.stdout).sort_stats("cumtime").print_stats(75)
            profiler.clear()
            profiler.enable()

    if profiler is not None:
        profiler.enable()
    anyio.run(measure, show, backend_options={"use_uvloop": True})


if __name__ == "__main__":
    main(sys.argv[1:])
