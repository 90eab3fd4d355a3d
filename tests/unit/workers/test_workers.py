"""Loops over a history in memory: leases, restarts, several processes."""

from collections.abc import Callable
from contextlib import asynccontextmanager

import anyio
import pytest

from app.analysis.views import ReleaseCompilers
from app.bootstrap.rules import rules_for
from app.bootstrap.stores import memory_store
from app.domain.controllers import reconcilers, registry
from app.domain.controllers.plan import Reconciler
from app.domain.errors import InputError
from app.domain.log import Actor, ObjectKey
from app.domain.objects import profile as profiles
from app.domain.objects.write.commands import (
    CreateObject,
    DeleteObject,
    PatchObject,
    PatchType,
)
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from app.service.histories import Histories
from app.service.runtime import HistoryRuntime, RuntimeBounds
from app.workers import priming, supervisor
from app.workers.loop import LoopBounds
from app.workers.priming import Priming
from app.workers.supervisor import WorkerSetting
from tests.patience import PATIENCE_SECONDS

USER = Actor(user="alice", groups=("system:masters",))
RESOURCE = "resource.k8s.io"


def histories_of(store) -> Histories:
    return Histories(
        ports=store.ports,
        rules=lambda info: rules_for(profiles.from_settings(info.settings)),
        bounds=RuntimeBounds(poll_seconds=0.05),
        past_views_max=2,
        objects_max=10_000,
    )


def setting_of(store, holder: str = "one", replayed_max: int = 50_000, **more) -> WorkerSetting:
    bounds = LoopBounds(
        poll_seconds=0.05, lease_seconds=0.6, standby_seconds=0.05, replayed_max=replayed_max
    )
    return WorkerSetting(
        leases=store.leases, holder=holder, compilers=ReleaseCompilers(), bounds=bounds, **more
    )


@asynccontextmanager
async def cluster(settings: JsonObject | None = None):
    store = memory_store()
    async with histories_of(store).running() as histories:
        runtime = await histories.create("test", settings=settings)
        await make(
            runtime, "", "namespaces", {"kind": "Namespace", "metadata": {"name": "default"}}
        )
        await make(
            runtime,
            RESOURCE,
            "deviceclasses",
            {"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}},
        )
        room = {"cpu": "8", "memory": "8Gi", "pods": "110"}
        await make(
            runtime,
            "",
            "nodes",
            {
                "kind": "Node",
                "metadata": {"name": "n1"},
                "status": {
                    "allocatable": room,
                    "conditions": [{"type": "Ready", "status": "True"}],
                },
            },
        )
        devices = [{"name": f"gpu-{number}"} for number in range(32)]
        await make(
            runtime,
            RESOURCE,
            "resourceslices",
            {
                "kind": "ResourceSlice",
                "metadata": {"name": "slice"},
                "spec": {
                    "driver": "gpu.example.com",
                    "nodeName": "n1",
                    "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
                    "devices": devices,
                },
            },
        )
        request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
        await make(
            runtime,
            RESOURCE,
            "resourceclaimtemplates",
            {
                "kind": "ResourceClaimTemplate",
                "metadata": {"name": "gpu", "namespace": "default"},
                "spec": {"spec": {"devices": {"requests": [request]}}},
            },
        )
        yield store, runtime


async def make(runtime: HistoryRuntime, group: str, resource: str, tree: JsonObject) -> None:
    metadata = tree["metadata"]
    tree["apiVersion"] = f"{group}/v1" if group else "v1"
    key = ObjectKey(group, resource, metadata.get("namespace", ""), metadata["name"])
    await runtime.submit(CreateObject(key=key, version="v1", tree=tree), actor=USER)


async def make_pod(runtime: HistoryRuntime, name: str, template: str = "gpu") -> None:
    await make(
        runtime,
        "",
        "pods",
        {
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "containers": [{"name": "c", "image": "i:1"}],
                "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": template}],
            },
        },
    )


def is_bound(runtime: HistoryRuntime, name: str) -> bool:
    tree = runtime.views.objects.get(ObjectKey("", "pods", "default", name))
    return tree is not None and "nodeName" in tree["spec"]


async def wait_until(runtime: HistoryRuntime, condition: Callable[[], bool]) -> None:
    with anyio.fail_after(PATIENCE_SECONDS):
        while not condition():
            await runtime.wait_for(runtime.views.revision + 1, 0.1)


async def decisions(runtime: HistoryRuntime) -> list[str]:
    """Names of the pods that the scheduler decided about, in order."""
    events = await runtime.log.read(runtime.info.id, after=0, limit=10_000)
    return [
        event.object["name"]
        for event in events
        if event.type == "DecisionRecorded" and event.object["controller"] == "scheduling"
    ]


async def test_pods_are_scheduled_by_the_loops():
    async with cluster() as (store, runtime), anyio.create_task_group() as tasks:
        tasks.start_soon(supervisor.run, runtime, setting_of(store))
        for number in range(8):
            await make_pod(runtime, f"pod-{number}")
        await wait_until(runtime, lambda: all(is_bound(runtime, f"pod-{n}") for n in range(8)))
        tasks.cancel_scope.cancel()
    assert sorted(await decisions(runtime)) == [f"pod-{n}" for n in range(8)]


@pytest.mark.parametrize(
    ("release", "place"),
    [("1.36", "class faulty: selector #0"), ("1.37", "gpu.example.com/n1/gpu-0")],
)
async def test_error_of_a_selector_has_the_words_of_the_release(release: str, place: str) -> None:
    """Parity: allocator.md 11."""
    faulty = {"cel": {"expression": 'device.attributes["gpu.example.com"].nope == "x"'}}
    request = {"name": "gpu", "exactly": {"deviceClassName": "faulty"}}
    async with (
        cluster({"profile": release}) as (store, runtime),
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(supervisor.run, runtime, setting_of(store))
        tree = {"kind": "DeviceClass", "metadata": {"name": "faulty"}}
        await make(runtime, RESOURCE, "deviceclasses", {**tree, "spec": {"selectors": [faulty]}})
        tree = {"kind": "ResourceClaimTemplate", "metadata": {"name": "faulty"}}
        tree["metadata"]["namespace"] = "default"
        spec = {"spec": {"devices": {"requests": [request]}}}
        await make(runtime, RESOURCE, "resourceclaimtemplates", {**tree, "spec": spec})
        await make_pod(runtime, "pod", template="faulty")
        pod = ObjectKey("", "pods", "default", "pod")

        def message() -> str:
            condition = meta.condition(runtime.views.objects.get(pod) or {}, "PodScheduled")
            return "" if condition is None else condition.message

        await wait_until(runtime, lambda: "CEL runtime error" in message())
        tasks.cancel_scope.cancel()
    assert (place in message(), "on device" in message()) == (True, release == "1.37")


async def test_only_the_named_controllers_run():
    async with cluster() as (store, runtime), anyio.create_task_group() as tasks:
        only = frozenset({"claims"})
        tasks.start_soon(supervisor.run, runtime, setting_of(store, only=only))
        await make_pod(runtime, "pod")
        await wait_until(
            runtime, lambda: len(list(runtime.views.objects.keys(RESOURCE, "resourceclaims"))) == 1
        )
        assert not is_bound(runtime, "pod")
        tasks.cancel_scope.cancel()


def test_unknown_name_is_refused_in_words():
    with pytest.raises(InputError, match="there is no controller 'scheduler'"):
        supervisor.check_names(["scheduler"])


async def test_second_process_takes_over_and_decides_nothing_twice():
    async with cluster() as (store, runtime):
        async with anyio.create_task_group() as first:
            first.start_soon(supervisor.run, runtime, setting_of(store, "one"))
            await make_pod(runtime, "a")
            await wait_until(runtime, lambda: is_bound(runtime, "a"))
            first.cancel_scope.cancel()
        async with anyio.create_task_group() as second:
            second.start_soon(supervisor.run, runtime, setting_of(store, "two"))
            await make_pod(runtime, "b")
            await wait_until(runtime, lambda: is_bound(runtime, "b"))
            second.cancel_scope.cancel()
        assert await decisions(runtime) == ["a", "b"]


@pytest.mark.parametrize("replayed_max", [0, 3])
async def test_long_history_is_not_folded_from_its_beginning(replayed_max):
    async with cluster() as (store, runtime):
        async with anyio.create_task_group() as first:
            first.start_soon(supervisor.run, runtime, setting_of(store, "one"))
            for number in range(31):
                await make_pod(runtime, f"pod-{number}")
            await wait_until(runtime, lambda: all(is_bound(runtime, f"pod-{n}") for n in range(31)))
            first.cancel_scope.cancel()
        async with anyio.create_task_group() as second:
            setting = setting_of(store, "two", replayed_max=replayed_max)
            second.start_soon(supervisor.run, runtime, setting)
            for name in ("last", "too-many"):
                await make_pod(runtime, name)
            await wait_until(runtime, lambda: is_bound(runtime, "last"))
            second.cancel_scope.cancel()
        placed = await decisions(runtime)
        assert placed.count("last") == 1
        assert len(placed) == len(set(placed)), "nothing is decided twice"


async def make_slow_device(runtime: HistoryRuntime) -> None:
    """A device of its own class that nobody makes ready, and a template for it."""
    device = {"name": "d", "bindingConditions": ["ready"], "bindingFailureConditions": ["failed"]}
    pool = {"name": "slow", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "slow.example.com", "nodeName": "n1", "pool": pool, "devices": [device]}
    tree = {"kind": "ResourceSlice", "metadata": {"name": "slow"}, "spec": spec}
    await make(runtime, RESOURCE, "resourceslices", tree)
    selector = {"cel": {"expression": "device.driver == 'slow.example.com'"}}
    exactly = {"deviceClassName": "gpu", "selectors": [selector]}
    requests = [{"name": "gpu", "exactly": exactly}]
    metadata = {"name": "slow", "namespace": "default"}
    template = {"metadata": metadata, "spec": {"spec": {"devices": {"requests": requests}}}}
    template["kind"] = "ResourceClaimTemplate"
    await make(runtime, RESOURCE, "resourceclaimtemplates", template)


async def test_scheduler_that_starts_from_a_list_goes_on_waiting_for_devices_of_a_placed_pod():
    async with cluster() as (store, runtime):
        await make_slow_device(runtime)
        async with anyio.create_task_group() as first:
            first.start_soon(supervisor.run, runtime, setting_of(store, "one"))
            await make_pod(runtime, "slow", "slow")
            while await decisions(runtime) != ["slow"]:
                await runtime.wait_for(runtime.views.revision + 1, 0.1)
            first.cancel_scope.cancel()
        async with anyio.create_task_group() as second:
            setting = setting_of(store, "two", replayed_max=0)
            second.start_soon(supervisor.run, runtime, setting)
            await make_pod(runtime, "last")
            await wait_until(runtime, lambda: is_bound(runtime, "last"))
            second.cancel_scope.cancel()
        assert await decisions(runtime) == ["slow", "last"]


async def test_scheduler_goes_on_waiting_for_a_placed_pod_wherever_the_replayed_events_begin():
    async with cluster() as (store, runtime):
        await make_slow_device(runtime)
        async with anyio.create_task_group() as first:
            first.start_soon(supervisor.run, runtime, setting_of(store, "one"))
            await make_pod(runtime, "slow", "slow")
            created = runtime.views.revision
            while await decisions(runtime) != ["slow"]:
                await runtime.wait_for(runtime.views.revision + 1, 0.1)
            first.cancel_scope.cancel()
        body = {"metadata": {"labels": {"written": "again"}}}
        key = ObjectKey("", "pods", "default", "slow")
        label = PatchObject(key=key, version="v1", type=PatchType.MERGE, body=body)
        await runtime.submit(label, actor=USER)
        profile, seen = runtime.rules.profile, {}
        compiler, options = ReleaseCompilers().of(profile), registry.options_from({})

        def make_scheduler() -> Reconciler:
            features = runtime.views.features
            return reconcilers.controller("scheduling", profile, features, compiler, options)

        for begin in range(created - 1, (last := runtime.views.revision) + 1):
            scheduler, revision = await Priming(runtime, last - begin).prime(
                make_scheduler, lambda reconciler, event: reconciler.fold(event, runtime.views)
            )
            now = Instant(runtime.head.time + 1)
            seen[begin] = (revision, scheduler.due(), scheduler.step(runtime.views, now))
        revision, due, plan = seen[created - 1]
        assert (revision, plan) == (last, None)
        assert due is not None, "it looks at the devices again"
        assert seen == dict.fromkeys(seen, (revision, due, plan))


async def test_controllers_that_pods_wait_for_lead_first_in_a_long_history(monkeypatch):
    monkeypatch.setattr(priming, "GATHERED_FROM", 0)
    async with cluster() as (store, runtime), anyio.create_task_group() as tasks:
        loops = supervisor.loops_of(runtime, setting_of(store))
        for loop in reversed(loops):
            tasks.start_soon(loop.run)
        await wait_until(runtime, lambda: len(runtime.leading) == len(loops))
        assert set([*runtime.leading][: len(registry.AWAITED)]) == registry.AWAITED
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("written", [False, True])
async def test_pod_gc_that_starts_from_a_list_counts_from_the_removal_of_the_node(written: bool):
    async with cluster() as (store, runtime), anyio.create_task_group() as tasks:
        spec = {"containers": [{"name": "c", "image": "i:1"}], "nodeName": "n1"}
        metadata = {"name": "orphan", "namespace": "default"}
        await make(runtime, "", "pods", {"kind": "Pod", "metadata": metadata, "spec": spec})
        node = ObjectKey("", "nodes", "", "n1")
        await runtime.submit(DeleteObject(key=node), actor=USER)
        removal = runtime.views.objects.revision
        if written:
            key, body = ObjectKey("", "pods", "default", "orphan"), {"metadata": {"labels": {}}}
            body["metadata"]["labels"] = {"written": "again"}
            label = PatchObject(key=key, version="v1", type=PatchType.MERGE, body=body)
            await runtime.submit(label, actor=USER)
        replayed = runtime.views.objects.revision - removal
        loops = supervisor.loops_of(runtime, setting_of(store, replayed_max=replayed))
        tasks.start_soon(next(loop for loop in loops if loop.name == "pod-gc").run)
        await wait_until(runtime, lambda: "pod-gc" in runtime.leading)
        (queue,) = runtime.leading["pod-gc"].queues
        (_, _, name, _), cause = queue.take(Instant(2**62))
        assert (name, cause) == ("orphan", removal)
        tasks.cancel_scope.cancel()


async def test_pod_gc_that_starts_waits_for_no_pod_whose_node_was_written_last():
    async with cluster() as (store, runtime), anyio.create_task_group() as tasks:
        spec = {"containers": [{"name": "c", "image": "i:1"}], "nodeName": "n1"}
        metadata = {"name": "calm", "namespace": "default"}
        await make(runtime, "", "pods", {"kind": "Pod", "metadata": metadata, "spec": spec})
        labelled = PatchObject(
            key=ObjectKey("", "nodes", "", "n1"),
            version="v1",
            type=PatchType.MERGE,
            body={"metadata": {"labels": {"rack": "a"}}},
        )
        await runtime.submit(labelled, actor=USER)
        loops = supervisor.loops_of(runtime, setting_of(store, replayed_max=1))
        tasks.start_soon(next(loop for loop in loops if loop.name == "pod-gc").run)
        await wait_until(runtime, lambda: "pod-gc" in runtime.leading)
        (queue,) = runtime.leading["pod-gc"].queues
        assert len(queue) == 0
        tasks.cancel_scope.cancel()


async def test_two_processes_share_the_work_without_deciding_twice():
    async with cluster() as (store, runtime), anyio.create_task_group() as tasks:
        tasks.start_soon(supervisor.run, runtime, setting_of(store, "one"))
        tasks.start_soon(supervisor.run, runtime, setting_of(store, "two"))
        for number in range(10):
            await make_pod(runtime, f"pod-{number}")
        await wait_until(runtime, lambda: all(is_bound(runtime, f"pod-{n}") for n in range(10)))
        tasks.cancel_scope.cancel()
    assert sorted(await decisions(runtime)) == sorted(f"pod-{n}" for n in range(10))


async def test_loop_whose_lease_was_taken_stops_leading():
    async with cluster() as (store, runtime), anyio.create_task_group() as tasks:
        loops = supervisor.loops_of(runtime, setting_of(store, "one"))
        loop = next(found for found in loops if found.name == "claims")
        tasks.start_soon(loop.run)
        await wait_until(runtime, lambda: loop.leads)
        token = None
        with anyio.fail_after(PATIENCE_SECONDS):
            while token is None:
                token = await _steal(store, runtime)
        await make_pod(runtime, "pod")
        await wait_until(runtime, lambda: not loop.leads)
        assert list(runtime.views.objects.keys(RESOURCE, "resourceclaims")) == []
        tasks.cancel_scope.cancel()


async def _steal(store, runtime):
    """Take the lease by force: give it back in the holder's name, then acquire it."""
    mine = await store.leases.acquire(runtime.info.id, "claims", "one", seconds=60)
    if mine is not None:
        await store.leases.release(runtime.info.id, mine)
    return await store.leases.acquire(runtime.info.id, "claims", "thief", seconds=60)


EVICTED_ONE = {
    "type": "EvictionInProgress",
    "status": "False",
    "reason": "Completed",
    "message": "1 pod evicted since starting the controller.",
    "observedGeneration": 1,
    "lastTransitionTime": "2020-01-01T00:00:00Z",
}


async def make_rule(runtime: HistoryRuntime) -> ObjectKey:
    """A rule whose status says that a pod was evicted because of it, long ago."""
    key = ObjectKey(RESOURCE, "devicetaintrules", "", "bad")
    taint = {"key": "example.com/bad", "effect": "NoExecute"}
    tree = {"kind": "DeviceTaintRule", "metadata": {"name": "bad"}, "spec": {"taint": taint}}
    await make(runtime, RESOURCE, "devicetaintrules", tree)
    status = {"status": {"conditions": [EVICTED_ONE]}}
    command = PatchObject(
        key=key, version="v1", type=PatchType.MERGE, body=status, subresource="status"
    )
    await runtime.submit(command, actor=USER)
    return key


async def restarts(runtime: HistoryRuntime) -> list[str]:
    """The holders that restarts in the log name."""
    events = await runtime.log.read(runtime.info.id, after=0, limit=10_000)
    return [event.object["holder"] for event in events if event.type == "ControllerRestarted"]


@pytest.mark.parametrize(
    ("settings", "replayed_max", "holders", "reason"),
    [
        ({}, 0, [], "Completed"),
        ({"quirks": {"c7": True}}, 0, ["one", "two"], "NotStarted"),
        ({"quirks": {"c7": True}}, 50_000, ["one", "two"], "NotStarted"),
    ],
)
async def test_each_term_is_a_restart_that_forgets_evictions_with_quirk_c7(
    settings, replayed_max, holders, reason
):
    async with cluster(settings) as (store, runtime):
        key = await make_rule(runtime)
        for holder in ("one", "two"):
            async with anyio.create_task_group() as tasks:
                only = frozenset({"rule-status"})
                setting = setting_of(store, holder, replayed_max=replayed_max, only=only)
                tasks.start_soon(supervisor.run, runtime, setting)
                await make(runtime, RESOURCE, "devicetaintrules", other_rule(holder))
                await wait_until(runtime, lambda name=holder: has_status(runtime, name))
                tasks.cancel_scope.cancel()
        assert await restarts(runtime) == holders
        conditions = runtime.views.objects.get(key)["status"]["conditions"]
        assert [found["reason"] for found in conditions] == [reason]


def other_rule(name: str) -> JsonObject:
    taint = {"key": "example.com/other", "effect": "NoSchedule"}
    return {"kind": "DeviceTaintRule", "metadata": {"name": name}, "spec": {"taint": taint}}


def has_status(runtime: HistoryRuntime, name: str) -> bool:
    tree = runtime.views.objects.get(ObjectKey(RESOURCE, "devicetaintrules", "", name))
    return bool(tree is not None and tree.get("status", {}).get("conditions"))
