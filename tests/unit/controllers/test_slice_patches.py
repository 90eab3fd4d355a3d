"""A patch whose selector fails is reported once, with the device."""

from typing import Any

from app.domain.controllers.record import commands_of
from app.domain.controllers.slice_patches import PatchWarningReconciler
from app.domain.log import ObjectKey
from app.domain.objects.write.commands import Command, CreateObject
from app.domain.values.timestamps import Instant
from app.service.runtime import HistoryRuntime
from tests.unit.service.builders import ALICE, namespace, running_history

GROUP = "resource.k8s.io"


def create(resource: str, version: str, kind: str, name: str, spec: dict[str, Any]) -> CreateObject:
    tree = {
        "apiVersion": f"{GROUP}/{version}",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }
    return CreateObject(key=ObjectKey(GROUP, resource, "", name), version=version, tree=tree)


def a_slice() -> CreateObject:
    devices = [{"name": f"d{number}", "attributes": {"a": {"int": number}}} for number in range(3)]
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "d.example.com", "nodeName": "n", "pool": pool, "devices": devices}
    return create("resourceslices", "v1", "ResourceSlice", "s", spec)


def a_patch(expression: str) -> CreateObject:
    spec = {
        "devices": {
            "filter": {"selectors": [{"cel": {"expression": expression}}]},
            "attributes": {"d.example.com/health": {"string": "bad"}},
        }
    }
    return create("resourceslicepatches", "v1alpha3", "ResourceSlicePatch", "quarantine", spec)


async def told_by(history: HistoryRuntime) -> list[Command]:
    """What a fresh controller says to the whole log, appended as it says it."""
    controller = PatchWarningReconciler()
    said: list[Command] = []
    seen = 0
    for _ in range(10):
        for event in await history.log.read(history.info.id, after=seen, limit=100):
            controller.fold(event, history.views)
            seen = event.revision
        plan = controller.step(history.views, Instant(history.head.time + 1))
        if plan is None:
            return said
        await history.submit_all(commands_of(plan), actor=ALICE)
        said.extend(plan.commands)
    raise AssertionError("the controller never comes to an end")


async def test_failing_selector_is_told_once_with_a_device_and_a_count() -> None:
    async with running_history() as history:
        for command in (namespace("default"), a_slice()):
            await history.submit(command, actor=ALICE)
        expression = 'device.attributes["d.example.com"].nope == 1'
        await history.submit(a_patch(expression), actor=ALICE)
        said = await told_by(history)
        assert len(said) == 1
        assert isinstance(said[0], CreateObject)
        assert said[0].tree["involvedObject"]["name"] == "quarantine"
        assert said[0].tree["type"] == "Warning"
        assert (
            said[0]
            .tree["message"]
            .startswith("not applied to device d.example.com/p/d0 and 2 more: ")
        )
        assert await told_by(history) == [], "a restart says nothing twice"


async def test_selector_that_merely_does_not_match_is_no_news() -> None:
    async with running_history() as history:
        for command in (namespace("default"), a_slice(), a_patch('device.driver == "other"')):
            await history.submit(command, actor=ALICE)
        assert await told_by(history) == []
