"""The shapes of scheduling work that are measured, each on a cluster of its own.

All are durable through the log, decided by the workers, written to tables by the projector. A shape
tells its rows to `Report`; `bench.scheduling` is the command line.
"""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import anyio.lowlevel

from app.domain.log import Event, EventType, ObjectKey
from app.domain.objects.write.commands import CreateObject, DeleteObject
from app.domain.values import json_tree
from app.service.runtime import HistoryRuntime
from bench import cluster, processes
from bench.cluster import DEVICES, GROUP, WAIT_SECONDS, Cluster
from bench.processes import Usage
from bench.writer import BENCH

LANES = 16
"""Clients that create or delete at the same time, each waiting for its answer."""

CHURNING = 32
"""Pods of the steady state that are between their create and their delete."""

SHARERS = 250
"""Pods on each shared claim; a claim may be reserved for 256."""

RULE = "storm"


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How large a shape is made."""

    nodes: int = 500
    pods: int = 2_500


@dataclass(slots=True, kw_only=True)
class Followed:
    """When each pod was seen bound, running and gone, by name."""

    bound: dict[str, float] = field(default_factory=dict)
    running: dict[str, float] = field(default_factory=dict)
    gone: dict[str, float] = field(default_factory=dict)
    claims_gone: int = 0
    changed: anyio.Event = field(default_factory=anyio.Event)
    awaited: dict[str, anyio.Event] = field(default_factory=dict)

    def fold(self, event: Event) -> None:
        """Note the first time of each."""
        if event.key.resource == "resourceclaims":
            self.claims_gone += event.type is EventType.OBJECT_DELETED
            return
        name, now = event.key.name, time.perf_counter()
        if event.type is EventType.OBJECT_DELETED:
            self.gone[name] = now
        elif name not in self.running and json_tree.text(event.object, "spec", "nodeName"):
            self.bound.setdefault(name, now)
            if (waiting := self.awaited.pop(name, None)) is not None:
                waiting.set()
            if json_tree.text(event.object, "status", "phase") == "Running":
                self.running[name] = now

    async def wait_until_bound(self, pod: str) -> None:
        """Wait for one pod without a look at the others; who waits for all of them gives up."""
        if pod not in self.bound:
            await self.awaited.setdefault(pod, anyio.Event()).wait()

    async def wait_until(self, holds: Callable[[], bool]) -> None:
        """Wait for it; raises TimeoutError when nothing happens any more."""
        while not holds():
            with anyio.fail_after(WAIT_SECONDS):
                await self.changed.wait()


@asynccontextmanager
async def followed(runtime: HistoryRuntime) -> AsyncIterator[Followed]:
    """Follow pods and claims while the block runs."""
    found = Followed()

    async def follow() -> None:
        with runtime.subscribe(after=runtime.head.revision) as subscription:
            while True:
                for event in await subscription.wait_batch():
                    if event.key.resource in ("pods", "resourceclaims"):
                        found.fold(event)
                found.changed.set()
                found.changed = anyio.Event()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(follow)
        await anyio.lowlevel.checkpoint()
        yield found
        tasks.cancel_scope.cancel()


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of figures. `waited` are seconds, sorted; CPU counts until all has come to rest."""

    name: str
    pods: int
    seconds: float
    waited: Sequence[float]
    spent: Usage
    remark: str = ""


Report = Callable[[Row], None]
Measure = Callable[[Cluster, Size, Report], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What is measured, how large it is in full, and how many devices it needs at a size."""

    measure: Measure
    size: Size = Size()
    held: Callable[[Size], int] = lambda size: size.pods


async def arrive(made: Cluster, pods: Sequence[CreateObject], name: str) -> Row:
    """Create pods as fast as clients can and wait until all run: seconds from create to bound."""
    runtime, created = made.runtime, dict[str, float]()

    async def create(lane: Sequence[CreateObject]) -> None:
        for command in lane:
            created[command.key.name] = time.perf_counter()
            await runtime.submit(command, actor=BENCH)

    before, started = processes.usage(), time.perf_counter()
    async with followed(runtime) as seen, anyio.create_task_group() as tasks:
        for lane in range(LANES):
            tasks.start_soon(create, pods[lane::LANES])
        await seen.wait_until(lambda: len(seen.running) == len(pods))
    await made.rest()
    return Row(
        name=name,
        pods=len(pods),
        seconds=max(seen.bound.values()) - started,
        waited=sorted(seen.bound[pod] - then for pod, then in created.items()),
        spent=processes.usage().since(before),
    )


def template_pods(prefix: str, count: int) -> list[CreateObject]:
    """Pods with a claim each from the template."""
    return [cluster.pod(f"{prefix}-{number:05}") for number in range(count)]


async def half_and_half(made: Cluster, size: Size, report: Report) -> None:
    """Fill half of the devices, then measure as many pods again: 5000pods_500nodes."""
    await cluster.prepare(made, size.nodes)
    report(await arrive(made, template_pods("first", size.pods), "pods on the empty cluster"))
    report(await arrive(made, template_pods("second", size.pods), "as many again"))


async def churn(made: Cluster, count: int, name: str) -> Row:
    """Pods that are deleted as soon as they are bound, CHURNING at a time, until all are gone."""
    runtime, names = made.runtime, iter(range(count))
    waited: list[float] = []

    async def live(seen: Followed) -> None:
        for number in names:
            pod = f"churn-{number:05}"
            created = time.perf_counter()
            command = cluster.pod(pod)
            await runtime.submit(command, actor=BENCH)
            await seen.wait_until_bound(pod)
            waited.append(seen.bound[pod] - created)
            await runtime.submit(DeleteObject(key=command.key), actor=BENCH)

    before, started = processes.usage(), time.perf_counter()
    async with followed(runtime) as seen, anyio.create_task_group() as tasks:
        for _ in range(min(CHURNING, count)):
            tasks.start_soon(live, seen)
        await seen.wait_until(lambda: len(seen.gone) == count and seen.claims_gone == count)
    await made.rest()
    return Row(
        name=name,
        pods=count,
        seconds=max(seen.bound.values()) - started,
        waited=sorted(waited),
        spent=processes.usage().since(before),
    )


def _held(size: Size, percent: int) -> int:
    return size.nodes * DEVICES * percent // 100


def steady(percent: int) -> Measure:
    """The steady state while so much of the devices is held all the time."""

    async def measure(made: Cluster, size: Size, report: Report) -> None:
        held = _held(size, percent)
        await cluster.prepare(made, size.nodes)
        if held:
            await arrive(made, template_pods("held", held), "")
        report(await churn(made, size.pods, f"steady, {percent} % of the devices held"))

    return measure


def _claims(size: Size) -> int:
    return -(-size.pods // SHARERS)


async def shared_claims(made: Cluster, size: Size, report: Report) -> None:
    """Many pods on few named claims."""
    claims = _claims(size)
    await cluster.prepare(made, size.nodes, pods_a_node=size.pods)
    await cluster.submit_all(made.runtime, [cluster.claim(f"shared-{n}") for n in range(claims)])
    pods = [
        cluster.pod(f"pod-{number:05}", claim=f"shared-{number % claims}", cpu="10m")
        for number in range(size.pods)
    ]
    report(await arrive(made, pods, f"pods on {claims} shared claims"))


async def taint_storm(made: Cluster, size: Size, report: Report) -> None:
    """One rule taints every device: from its create until each pod is marked, and gone."""
    await cluster.prepare(made, size.nodes)
    await arrive(made, template_pods("pod", size.pods), "")
    runtime, rule = made.runtime, cluster.rule(RULE)
    before, started = processes.usage(), time.perf_counter()
    async with followed(runtime) as seen:
        await runtime.submit(rule, actor=BENCH)
        await seen.wait_until(lambda: len(seen.gone) == size.pods)
        await _wait_until_completed(runtime, rule.key)
        completed = time.perf_counter() - started
    await made.rest()
    gone = sorted(then - started for then in seen.gone.values())
    report(
        Row(
            name="pods evicted by one rule, taint to gone",
            pods=size.pods,
            seconds=gone[-1],
            waited=gone,
            spent=processes.usage().since(before),
            remark=f"rule status Completed after {completed:.1f} s",
        )
    )


async def _wait_until_completed(runtime: HistoryRuntime, key: ObjectKey) -> None:
    """Wait until the rule's condition is complete; upstream checks 10 s after an eviction."""
    objects = runtime.views.objects
    place = (GROUP, key.resource)
    with runtime.subscribe(after=runtime.head.revision, group=place[0], resource=place[1]) as rules:
        with anyio.fail_after(WAIT_SECONDS):
            while not any(
                condition.get("reason") == "Completed"
                for condition in json_tree.objects(objects.get(key) or {}, "status", "conditions")
            ):
                await rules.wait_batch()


SHAPES: Mapping[str, Shape] = {
    "5000pods_500nodes": Shape(measure=half_and_half, held=lambda size: 2 * size.pods),
    "steady_empty": Shape(measure=steady(0), held=lambda _: 1),
    "steady_half": Shape(measure=steady(50), held=lambda size: _held(size, 50) + 1),
    "steady_full": Shape(measure=steady(98), held=lambda size: _held(size, 98) + 1),
    "shared_claims": Shape(measure=shared_claims, size=Size(pods=1_500), held=_claims),
    "taint_storm": Shape(measure=taint_storm, size=Size(pods=1_000)),
}
"""Every shape by its name."""
