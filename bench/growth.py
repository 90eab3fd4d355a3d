"""Measures how costs grow with a cluster: `python -m bench.growth [AXIS…] [--points N]`.

One size is doubled at a time, each in a process of its own, without a database. Costs are processor
time, and memory where it says so; the exponent is the slope of a line through the logarithms of all
points: 0 where the cost of one stays what it was, 1 where it doubles with the size. The cost of one
pod, event, write or history is shown, so whatever is above 0 grows faster than the whole, and
whatever is above 1 faster than the product of both.
"""

import argparse
import json
import math
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

import anyio
import anyio.lowlevel

from app.adapters import schemas
from app.adapters.telemetry import Telemetry
from app.api.application import create_app
from app.api.server.messages import Message
from app.bootstrap.histories import open_histories
from app.bootstrap.process_settings import settings
from app.bootstrap.serving import supervise
from app.bootstrap.stores import memory_store
from app.domain.devices.inventory import Inventory
from app.domain.log import ObjectKey
from app.domain.objects.write.commands import PatchObject, PatchType
from app.domain.values.json_tree import JsonObject
from bench import cluster, folding, memory, shapes
from bench.api import CLAIMS
from bench.cluster import Cluster
from bench.folder import temporary_data
from bench.processes import resident_megabytes
from bench.writer import BENCH, claim, make_namespace

Costs = Mapping[str, float]


async def _pods(made: Cluster, prefix: str, count: int) -> float:
    """Milliseconds for each of so many pods, from creating them until they run."""
    row = await shapes.arrive(made, shapes.template_pods(prefix, count), prefix)
    return row.spent.main / count * 1e3


async def by_nodes(size: int) -> Costs:
    """100 pods on so many nodes."""
    async with cluster.history_in_memory() as made:
        await cluster.prepare(made, size)
        return {"ms CPU a pod": await _pods(made, "pod", 100)}


async def by_pods(size: int) -> Costs:
    """100 pods more where so many run already, on 200 nodes."""
    async with cluster.history_in_memory() as made:
        await cluster.prepare(made, 200)
        await _pods(made, "held", size)
        return {"ms CPU a pod": await _pods(made, "more", 100)}


async def by_events(size: int) -> Costs:
    """A history of pods that are created and deleted, folded into all views of a server."""
    consumers = memory.Consumers(("controllers", "projections"))
    before, spent, count = resident_megabytes(), 0.0, 0
    for page in folding.pages(size):
        started = time.process_time()
        for event in page:
            consumers.fold(event)
        spent += time.process_time() - started
        count += len(page)
    return {"µs CPU an event": spent / count * 1e6, "MiB": resident_megabytes() - before}


async def by_rules(size: int) -> Costs:
    """A DeviceTaintRule of so many that each taint all devices of 200 nodes, two of each."""
    inventory = Inventory()
    for number in range(200):
        inventory.put_slice(cluster.slice_of(f"node-{number:05}", devices=2).tree)
    rules = [_rule(number) for number in range(size)]
    started = time.process_time()
    for rule in rules:
        inventory.put_rule(rule)
    return {"ms CPU a rule": (time.process_time() - started) / size * 1e3}


def _rule(number: int) -> JsonObject:
    taint = {"key": "bench", "effect": "NoSchedule"}
    spec = {"deviceSelector": {"driver": cluster.DRIVER}, "taint": taint}
    return {"metadata": {"name": f"rule-{number:05}"}, "spec": spec}


async def by_watchers(size: int) -> Costs:
    """A write that is sent to this many watches of its kind, as lines of an answer."""
    with temporary_data() as folder:
        chosen, store = settings(data=folder), memory_store()
        async with open_histories(store, chosen) as histories, anyio.create_task_group() as tasks:
            runtime = await histories.create("default")
            await make_namespace(runtime)
            await runtime.submit(claim("c"), actor=BENCH)
            app = create_app(histories, schemas=schemas.load, meter=Telemetry())
            heard, opened = 0, anyio.Semaphore(0)

            async def send(message: Message) -> None:
                nonlocal heard
                if message["type"] == "http.response.start":
                    opened.release()
                heard += message.get("body", b"").count(b"\n")

            query = f"watch=true&resourceVersion={runtime.head.revision}".encode()
            scope = {"type": "http", "method": "GET", "path": CLAIMS, "headers": []}
            for _ in range(size):
                tasks.start_soon(app, {**scope, "query_string": query}, anyio.sleep_forever, send)
            for _ in range(size):
                await opened.acquire()
            started, writes = time.process_time(), 100
            for number in range(writes):
                await runtime.submit(_touch(number), actor=BENCH)
                while heard < (number + 1) * size:
                    await anyio.lowlevel.checkpoint()
            spent = time.process_time() - started
            tasks.cancel_scope.cancel()
    return {"µs CPU a write": spent / writes * 1e6}


def _touch(number: int) -> PatchObject:
    return PatchObject(
        key=ObjectKey(cluster.GROUP, "resourceclaims", "default", "c"),
        version="v1",
        type=PatchType.MERGE,
        body={"metadata": {"annotations": {"turn": str(number)}}},
    )


async def by_histories(size: int) -> Costs:
    """A history, of so many that are open with all their controllers."""
    with temporary_data() as folder:
        chosen, store = settings(data=folder), memory_store()
        before, started = resident_megabytes(), time.process_time()
        async with open_histories(store, chosen) as histories:
            supervise(histories, store, chosen, with_projector=False)
            for number in range(size):
                runtime = await histories.create(f"h{number}")
                await make_namespace(runtime)
            opened = time.process_time() - started
            held = resident_megabytes() - before
            started = time.process_time()
            await anyio.sleep(IDLE_SECONDS)
            idle = time.process_time() - started
    return {
        "ms CPU to open one": opened / size * 1e3,
        "MiB for one": held / size,
        "ms CPU of one that is idle, a second": idle / IDLE_SECONDS / size * 1e3,
    }


IDLE_SECONDS = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A size that is doubled, from `first` on."""

    measure: Callable[[int], Awaitable[Costs]]
    first: int


AXES = {
    "nodes": Axis(measure=by_nodes, first=25),
    "pods": Axis(measure=by_pods, first=50),
    "events": Axis(measure=by_events, first=10_000),
    "rules": Axis(measure=by_rules, first=25),
    "watchers": Axis(measure=by_watchers, first=25),
    "histories": Axis(measure=by_histories, first=2),
}


def exponent(points: Sequence[tuple[int, float]]) -> float:
    """The slope of the line through the logarithms, by least squares. Costs of 0 are left out."""
    logs = [(math.log(size), math.log(cost)) for size, cost in points if cost > 0]
    if len(logs) < 2:
        return 0.0
    middle = sum(x for x, _ in logs) / len(logs), sum(y for _, y in logs) / len(logs)
    over = sum((x - middle[0]) * (y - middle[1]) for x, y in logs)
    return over / sum((x - middle[0]) ** 2 for x, _ in logs)


def curve(name: str, count: int) -> None:
    """Measure one axis and print its curves."""
    axis = AXES[name]
    points: dict[str, list[tuple[int, float]]] = {}
    for size in (axis.first << turn for turn in range(count)):
        command = [sys.executable, "-m", "bench.growth", "--one", name, str(size)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        for what, cost in json.loads(done.stdout.splitlines()[-1]).items():
            points.setdefault(what, []).append((size, cost))
    for what, measured in points.items():
        shown = ", ".join(f"{size}: {cost:.3g}" for size, cost in measured)
        print(f"{name:10} {what:38} exponent {exponent(measured):5.2f}   {shown}", flush=True)


def main(words: Sequence[str] = ()) -> None:
    """Measure the axes that are named, or all."""
    parser = argparse.ArgumentParser(prog="python -m bench.growth")
    parser.add_argument("axes", nargs="*", metavar="AXIS", help=", ".join(AXES))
    parser.add_argument("--points", type=int, default=5, help="how often a size is doubled, and 1")
    parser.add_argument("--one", nargs=2, metavar=("AXIS", "SIZE"), help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if options.one:
        name, size = options.one
        costs = anyio.run(AXES[name].measure, int(size), backend_options={"use_uvloop": True})
        print(json.dumps(costs))
        return
    if unknown := [name for name in options.axes if name not in AXES]:
        parser.error(f"no axis {unknown[0]!r}; there are {', '.join(AXES)}")
    for name in options.axes or AXES:
        curve(name, options.points)


if __name__ == "__main__":
    main(sys.argv[1:])
