"""Controllers are switched off and on again while a history goes on."""

import anyio

from app.domain.controllers import registry, switching
from app.domain.log import ObjectKey
from app.domain.objects.write.commands import PatchObject, PatchType
from app.workers import supervisor
from app.workers.supervisor import LoopSwitches
from tests.unit.workers.test_workers import (
    USER,
    cluster,
    is_bound,
    make,
    make_pod,
    setting_of,
    wait_until,
)


async def annotate(runtime, *names):
    patch = PatchObject(
        key=switching.KUBE_SYSTEM,
        version="v1",
        type=PatchType.MERGE,
        body=switching.annotation_patch(names),
    )
    await runtime.submit(patch, actor=USER)


async def make_system_namespace(runtime):
    await make(
        runtime, "", "namespaces", {"kind": "Namespace", "metadata": {"name": "kube-system"}}
    )


async def test_scheduler_that_is_switched_off_places_nothing_until_it_is_on_again():
    async with cluster() as (store, runtime):
        await make_system_namespace(runtime)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(supervisor.run, runtime, setting_of(store))
            await make_pod(runtime, "before")
            await wait_until(runtime, lambda: is_bound(runtime, "before"))

            await annotate(runtime, "scheduling")
            await wait_until(runtime, lambda: "scheduling" not in runtime.leading)
            await make_pod(runtime, "between")
            claims = ("resource.k8s.io", "resourceclaims", "default")
            # The controller of claims goes on: it makes the claim of the pod that nobody places.
            await wait_until(runtime, lambda: len(list(runtime.views.objects.keys(*claims))) == 2)
            assert not is_bound(runtime, "between")

            await annotate(runtime)
            await wait_until(runtime, lambda: is_bound(runtime, "between"))
            tasks.cancel_scope.cancel()


async def test_switch_that_was_set_before_the_start_holds():
    async with cluster() as (_, runtime):
        await make_system_namespace(runtime)
        await annotate(runtime, "scheduling", "no-such-controller")
        assert switching.switched_off(runtime.views.objects) == {"scheduling"}
        switches = LoopSwitches(runtime)
        assert [name for name in registry.NAMES if not switches.is_on(name)] == ["scheduling"]


def test_history_without_its_namespaces_has_all_controllers_on():
    class Nothing:
        def get(self, key: ObjectKey) -> None:
            return None

    assert switching.switched_off(Nothing()) == frozenset()
