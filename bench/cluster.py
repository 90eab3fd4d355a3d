"""A cluster to measure on: a durable history with all controllers, its nodes, slices and pods."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio

from app.bootstrap import garbage_collection
from app.bootstrap.histories import open_histories, views_of
from app.bootstrap.process_settings import settings
from app.bootstrap.projecting import keep_process
from app.bootstrap.serving import supervise
from app.bootstrap.stores import Store, memory_store, open_store
from app.domain.log import ObjectKey
from app.domain.objects.write.commands import CreateObject
from app.domain.values.json_tree import JsonObject
from app.service.runtime import HistoryRuntime
from app.settings import Settings
from bench.folder import temporary_data
from bench.writer import BENCH, make_namespace

DEVICES = 10
DRIVER = "gpu.example.com"
GROUP = "resource.k8s.io"
TEMPLATE = "gpu"

WAIT_SECONDS = 120.0
"""The longest pause in which nothing happens; a measurement that hangs ends with an error."""

TOGETHER = 50
"""Objects of the cluster that are made in one append."""

LOOK_SECONDS = 0.1
"""The pause between two looks at how far the tables are written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A history and its stores; a history in memory has no tables."""

    store: Store
    settings: Settings
    runtime: HistoryRuntime
    has_tables: bool = True

    async def rest(self) -> None:
        """Wait until every view table has been written up to the head."""
        if not self.has_tables:
            return
        views = len(views_of(self.runtime.info.settings)())
        with anyio.fail_after(WAIT_SECONDS):
            while True:
                written = await self.store.views.checkpoints(self.runtime.info.id)
                head = self.runtime.head.revision
                if len(written) == views and all(found.revision >= head for found in written):
                    return
                await anyio.sleep(LOOK_SECONDS)


def create(
    group: str, resource: str, kind: str, namespace: str, name: str, body: JsonObject
) -> CreateObject:
    """A command that creates one object."""
    version = f"{group}/v1" if group else "v1"
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    tree = {"apiVersion": version, "kind": kind, "metadata": metadata, **body}
    key = ObjectKey(group, resource, namespace, name)
    return CreateObject(key=key, version="v1", tree=tree)


def node(name: str, *, pods: int = 110) -> CreateObject:
    """A ready node that takes so many pods."""
    amounts = {"cpu": "64", "memory": "256Gi", "pods": str(pods)}
    ready = [{"type": "Ready", "status": "True"}]
    status = {"allocatable": amounts, "capacity": amounts, "conditions": ready}
    return create("", "nodes", "Node", "", name, {"status": status})


def slice_of(name: str, *, devices: int = DEVICES) -> CreateObject:
    """A node's slice."""
    listed = [
        {"name": f"gpu-{number}", "attributes": {"index": {"int": number}}}
        for number in range(devices)
    ]
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": listed}
    return create(GROUP, "resourceslices", "ResourceSlice", "", name, {"spec": spec})


def pod(name: str, *, claim: str = "", cpu: str = "100m") -> CreateObject:
    """A pod that requests a device, through the template or a named existing claim."""
    entry = {"resourceClaimName": claim} if claim else {"resourceClaimTemplateName": TEMPLATE}
    container = {"name": "c", "image": "i:1", "resources": {"requests": {"cpu": cpu}}}
    spec = {"resourceClaims": [{"name": "gpu", **entry}], "containers": [container]}
    return create("", "pods", "Pod", "default", name, {"spec": spec})


def claim(name: str) -> CreateObject:
    """A claim for one device, to be shared."""
    return create(
        GROUP, "resourceclaims", "ResourceClaim", "default", name, {"spec": _claim_spec()}
    )


def rule(name: str) -> CreateObject:
    """A rule that evicts from every device of the driver."""
    taint = {"key": "example.com/unhealthy", "value": "yes", "effect": "NoExecute"}
    spec = {"deviceSelector": {"driver": DRIVER}, "taint": taint}
    body: JsonObject = {"apiVersion": f"{GROUP}/v1beta2", "kind": "DeviceTaintRule"}
    key = ObjectKey(GROUP, "devicetaintrules", "", name)
    tree = {**body, "metadata": {"name": name}, "spec": spec}
    return CreateObject(key=key, version="v1beta2", tree=tree)


def _claim_spec() -> JsonObject:
    return {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}


async def prepare(cluster: Cluster, nodes: int, *, pods_a_node: int = 110) -> None:
    """Creates the objects that pods need: namespace, class, template, nodes and slices."""
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    template: JsonObject = {"spec": {"spec": _claim_spec()}}
    runtime = cluster.runtime
    chosen: JsonObject = {"spec": {"selectors": [selector]}}
    await make_namespace(runtime)
    await submit_all(
        runtime,
        [
            create(GROUP, "deviceclasses", "DeviceClass", "", "gpu", chosen),
            create(
                *(GROUP, "resourceclaimtemplates", "ResourceClaimTemplate"),
                *("default", TEMPLATE, template),
            ),
        ],
    )
    for number in range(0, nodes, TOGETHER):
        names = [f"node-{index:04}" for index in range(number, min(number + TOGETHER, nodes))]
        await submit_all(runtime, [node(name, pods=pods_a_node) for name in names])
        await submit_all(runtime, [slice_of(name) for name in names])
    await _wait_until_nodes_are_ready(runtime)
    await cluster.rest()


async def submit_all(runtime: HistoryRuntime, commands: Sequence[CreateObject]) -> None:
    """Append all of them together."""
    await runtime.submit_all(commands, actor=BENCH)


async def _wait_until_nodes_are_ready(runtime: HistoryRuntime) -> None:
    """Wait until the node controller has removed its taint from every node."""
    objects = runtime.views.objects
    with runtime.subscribe(after=runtime.head.revision, resource="nodes") as followed:
        while any(
            (objects.get(key) or {}).get("spec", {}).get("taints")
            for key in objects.keys("", "nodes")
        ):
            await followed.next_batch(WAIT_SECONDS)


@asynccontextmanager
async def history() -> AsyncIterator[Cluster]:
    """An empty history on a database of its own, with all controllers and the projector."""
    garbage_collection.expect_large_heap()
    garbage_collection.look_once()
    with temporary_data() as folder:
        chosen = settings(data=folder)
        async with open_store(chosen, migrate=True) as store, open_histories(store, chosen) as all_:
            supervise(all_, store, chosen, with_projector=False)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(keep_process, store, chosen, fail)
                runtime = await all_.create("bench")
                yield Cluster(store=store, settings=chosen, runtime=runtime)
                assert not runtime.troubles, runtime.troubles
                tasks.cancel_scope.cancel()


@asynccontextmanager
async def history_in_memory(store: Store | None = None) -> AsyncIterator[Cluster]:
    """An empty history with all controllers, without database and projector."""
    garbage_collection.expect_large_heap()
    garbage_collection.look_once()
    with temporary_data() as folder:
        chosen, store = settings(data=folder), store or memory_store()
        async with open_histories(store, chosen) as histories:
            supervise(histories, store, chosen, with_projector=False)
            runtime = await histories.create("bench")
            yield Cluster(store=store, settings=chosen, runtime=runtime, has_tables=False)
            assert not runtime.troubles, runtime.troubles


def fail(trouble: str | None) -> None:
    """Fails the measurement: without the projector the figures would be too good."""
    assert trouble is None, trouble
