"""The present of a live history is now, also while nothing happens; a recording ends with its end.

The clock of the process is set ahead by ten minutes in which no event comes.
"""

from contextlib import asynccontextmanager

import pytest

from app.domain.log import Actor, ObjectKey
from app.domain.objects.profile import Profile
from app.domain.objects.write.commands import CreateObject, DeleteObject, UpdateObject
from app.domain.values import api_resources, timestamps
from app.domain.values.timestamps import SECOND, Instant
from tests.api.serving import claim, pod, serving
from tests.virtual_clock import VirtualClock

START = timestamps.parse("2026-03-01T02:00:00Z")
LATER = Instant(START + 600 * SECOND)


def slice_of(*devices):
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "s"},
        "spec": {
            "driver": "device.example.com",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "allNodes": True,
            "devices": [{"name": name} for name in devices],
        },
    }


async def create(runtime, place, tree):
    namespace = "" if place == api_resources.RESOURCE_SLICES else "default"
    key = ObjectKey(*place, namespace, tree["metadata"]["name"])
    command = CreateObject(key=key, version=tree["apiVersion"].rpartition("/")[2], tree=tree)
    await runtime.submit(command, actor=Actor(user="tester"))
    return key


async def allocate(runtime, key):
    result = {"request": "gpu", "driver": "device.example.com", "pool": "p", "device": "d0"}
    tree = {**runtime.views.objects.get(key)}
    tree["status"] = {"allocation": {"devices": {"results": [result]}}}
    command = UpdateObject(key=key, version="v1", tree=tree, subresource="status")
    await runtime.submit(command, actor=Actor(user="tester"))


@asynccontextmanager
async def quiet(*, is_recorded=False):
    """A history in which nothing has happened for ten minutes, and its path."""
    clock = VirtualClock(START)
    async with serving(clock=clock) as server:
        settings = Profile().settings() | ({"recorded": True} if is_recorded else {})
        runtime = await server.histories.create("h", settings=settings)
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
        command = CreateObject(
            key=ObjectKey("", "namespaces", "", "default"), version="v1", tree=namespace
        )
        await runtime.submit(command, actor=Actor(user="tester"))
        await create(runtime, api_resources.RESOURCE_SLICES, slice_of("d0"))
        await allocate(runtime, await create(runtime, api_resources.RESOURCE_CLAIMS, claim("held")))
        await create(runtime, api_resources.RESOURCE_CLAIMS, claim("idle"))
        ending = pod("ending", nodeName="n", terminationGracePeriodSeconds=30)
        ending["metadata"]["finalizers"] = ["example.com/hold"]
        key = await create(runtime, api_resources.PODS, ending)
        await runtime.submit(DeleteObject(key=key), actor=Actor(user="tester"))
        await create(runtime, api_resources.PODS, pod("waiting"))
        clock.advance_to(LATER)
        yield server, "/redra/v1/histories/h"


async def answers(server, path):
    """What answers say of the states that last."""
    scan = await server.get(f"{path}/scan")
    findings = await server.get(f"{path}/findings")
    pace = await server.get(f"{path}/pace")
    why = await server.get(f"{path}/why?kind=device&name=device.example.com/p/d0")
    page = await server.raw("GET", path.replace("/redra/v1/histories/", "/ui/h/") + "/findings")
    return {
        "scan": [one["message"] for one in scan["items"]],
        "findings": [one["text"] for one in findings["items"] if one["kind"] == "OverduePods"],
        "pace": [one["seconds"] for one in pace["pods"] if one["name"] == "waiting"],
        "why": [
            text.partition("still at ")[2] for text in texts(why["reasons"]) if "still" in text
        ],
        "page": "02:10:00" in page.text,
    }


def texts(reason):
    return [reason["text"], *(text for one in reason.get("children", ()) for text in texts(one))]


KEPT = "it is allocated, and nobody has ever reserved it"
LASTED = {
    "scan": [KEPT, "no pod has named it for 10 min"],
    "findings": ["1 pod should have ended and is still there: finalizer example.com/hold"],
    "pace": [600.0],
    "why": ["2026-03-01T02:10:00Z (10m)"],
    "page": True,
}
ENDED = {
    "scan": [],
    "findings": [],
    "pace": [0.0],
    "why": ["2026-03-01T02:00:00Z (0s)"],
    "page": False,
}


@pytest.mark.parametrize(("is_recorded", "expected"), [(False, LASTED), (True, ENDED)])
async def test_states_last_until_now_in_a_live_history_and_to_the_end_in_a_recording(
    is_recorded, expected
):
    async with quiet(is_recorded=is_recorded) as (server, path):
        assert await answers(server, path) == expected


@pytest.mark.parametrize(("moment", "time"), [("02:00:59", None), ("02:03:00", "3 min")])
async def test_instant_after_the_last_event_is_itself(moment, time):
    async with quiet() as (server, path):
        scan = await server.get(f"{path}/scan?at=2026-03-01T{moment}Z")
        expected = [] if time is None else [KEPT, f"no pod has named it for {time}"]
        assert [one["message"] for one in scan["items"]] == expected
        # The answer for a moment is not kept as that of the present.
        present = (await server.get(f"{path}/scan"))["items"]
        assert [one["message"] for one in present] == LASTED["scan"]


async def test_newest_revision_of_a_quiet_history_is_its_present():
    async with quiet() as (server, path):
        last = (await server.get(path))["revision"]
        for at, count in ((last, 2), (last - 1, 0)):
            assert len((await server.get(f"{path}/scan?at={at}"))["items"]) == count
