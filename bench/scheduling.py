"""2,500 pods with a claim each on 500 nodes of 10 devices: durable, through the log, end to end."""

import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel

from app.bootstrap import collecting
from app.bootstrap.choices import settings
from app.bootstrap.histories import open_histories
from app.bootstrap.projecting import keep_process
from app.bootstrap.serving import supervise
from app.bootstrap.stores import Store, open_store
from app.domain.log import ObjectKey
from app.domain.objects.commands import CreateObject
from app.service.runtime import HistoryRuntime
from app.settings import Settings
from bench.folder import temporary_data
from bench.writer import BENCH, make_namespace

NODES = int(os.environ.get("NODES", "500"))
DEVICES = 10
PODS = int(os.environ.get("PODS", "2500"))
DRIVER = "gpu.example.com"


def create(group: str, resource: str, kind: str, namespace: str, name: str, body: Any) -> Any:
    """A command that creates one object."""
    version = f"{group}/v1" if group else "v1"
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    tree = {"apiVersion": version, "kind": kind, "metadata": metadata} | body
    key = ObjectKey(group, resource, namespace, name)
    return CreateObject(key=key, version="v1", tree=tree)


def node(name: str) -> Any:
    """A ready node."""
    amounts = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    ready = [{"type": "Ready", "status": "True"}]
    status = {"allocatable": amounts, "capacity": amounts, "conditions": ready}
    return create("", "nodes", "Node", "", name, {"status": status})


def slice_of(name: str) -> Any:
    """A node's slice."""
    devices = [
        {"name": f"gpu-{number}", "attributes": {"index": {"int": number}}}
        for number in range(DEVICES)
    ]
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": devices}
    return create("resource.k8s.io", "resourceslices", "ResourceSlice", "", name, {"spec": spec})


def pod(name: str) -> Any:
    """A pod that asks for a device through a template."""
    spec = {
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
        "containers": [{"name": "c", "image": "i:1", "resources": {"requests": {"cpu": "100m"}}}],
    }
    return create("", "pods", "Pod", "default", name, {"spec": spec})


async def until_nodes_are_ready(runtime: HistoryRuntime) -> None:
    """Wait until the node controller has taken its taint off every node."""
    objects = runtime.views.objects
    with runtime.subscribe(after=runtime.head.revision, resource="nodes") as followed:
        while any(
            (objects.get(key) or {}).get("spec", {}).get("taints")
            for key in objects.keys("", "nodes")
        ):
            await followed.next_batch(60.0)


async def prepare(runtime: HistoryRuntime, nodes: int) -> None:
    """What the pods need: namespace, class, template, nodes and their slices."""
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    spec = {"spec": {"spec": {"devices": {"requests": [request]}}}}
    group, chosen = "resource.k8s.io", {"spec": {"selectors": [selector]}}
    await make_namespace(runtime)
    for command in (
        create(group, "deviceclasses", "DeviceClass", "", "gpu", chosen),
        create(group, "resourceclaimtemplates", "ResourceClaimTemplate", "default", "gpu", spec),
    ):
        await runtime.submit(command, actor=BENCH)
    for number in range(0, nodes, 50):
        names = [f"node-{index:04}" for index in range(number, min(number + 50, nodes))]
        await runtime.submit_all([node(name) for name in names], actor=BENCH)
        await runtime.submit_all([slice_of(name) for name in names], actor=BENCH)
    await until_nodes_are_ready(runtime)


async def schedule(runtime: HistoryRuntime, pods: int) -> tuple[float, list[float]]:
    """Create pods until all are bound: seconds in all, and sorted seconds from create to bound."""
    created: dict[str, float] = {}
    waited: list[float] = []
    done = anyio.Event()

    async def watch() -> None:
        with runtime.subscribe(after=runtime.head.revision, resource="pods") as followed:
            bound: set[str] = set()
            while len(bound) < pods:
                for event in await followed.next_batch(60.0):
                    name = event.key.name
                    if event.object["spec"].get("nodeName") and name not in bound:
                        bound.add(name)
                        waited.append(time.perf_counter() - created[name])
            done.set()

    async def arrive(names: list[str]) -> None:
        for name in names:
            created[name] = time.perf_counter()
            await runtime.submit(pod(name), actor=BENCH)

    started = time.perf_counter()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch)
        await anyio.lowlevel.checkpoint()
        names = [f"pod-{number:05}" for number in range(pods)]
        for lane in range(16):
            tasks.start_soon(arrive, names[lane::16])
        await done.wait()
    return time.perf_counter() - started, sorted(waited)


@asynccontextmanager
async def history() -> AsyncIterator[tuple[Store, Settings, HistoryRuntime]]:
    """An empty history on a database of its own, with all controllers and the projector."""
    collecting.expect_large_heap()
    with temporary_data() as folder:
        chosen = settings(data=folder)
        async with open_store(chosen, migrate=True) as store, open_histories(store, chosen) as all_:
            supervise(all_, store, chosen, with_projector=False)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(keep_process, store, chosen, fail)
                yield store, chosen, await all_.create("bench")
                tasks.cancel_scope.cancel()


def fail(trouble: str | None) -> None:
    """A projector that ended would make the figures too good."""
    assert trouble is None, trouble


def resident_megabytes(process: int | str = "self") -> int:
    """What a process holds in memory now."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") >> 20


def projector_megabytes() -> int:
    """What the process that writes the view tables holds in memory."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    of_ours = (child for child in children if b"project" in _arguments(child))
    return sum(resident_megabytes(child) for child in of_ours)


def _arguments(process: str) -> list[bytes]:
    return Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")


async def measure() -> None:
    """Pods per second from the first create to the last binding."""
    async with history() as (_, _, runtime):
        await prepare(runtime, NODES)
        spent = time.process_time()
        took, waited = await schedule(runtime, PODS)
        spent = time.process_time() - spent
        print(
            f"{NODES} nodes, {PODS} pods: {PODS / took:.0f} pods/s bound, create to bound p50 "
            f"{waited[PODS // 2]:.2f} s, p99 {waited[PODS * 99 // 100]:.2f} s, "
            f"{runtime.head.revision} events, {spent / PODS * 1e3:.2f} ms CPU a pod, "
            f"{resident_megabytes()} MiB resident and {projector_megabytes()} in the projector"
        )


def main() -> None:
    """Run the measurement."""
    anyio.run(measure, backend_options={"use_uvloop": True})


if __name__ == "__main__":
    main()
