"""No question changes what a server holds in memory, and so no later decision.

The questions are those that are served (`questions`), so that a new one is asked, too. After each
one the objects in memory are those of the log, and what views derive from them is as before
(`judging_memory`). At last a cluster lives on after all of them, and `verify` judges it.
"""

from contextlib import asynccontextmanager
from functools import partial

import anyio
import pytest

from app.adapters.clock import SystemClock
from app.adapters.memory import MemoryLeases, MemoryStore
from app.analysis.views import ReleaseCompilers
from app.bootstrap.gallery import incident_files
from app.domain.objects.profile import Profile
from app.domain.values import api_resources
from app.workers import supervisor
from app.workers.loop import LoopBounds
from app.workers.supervisor import WorkerSetting
from tests import draws
from tests.api import questions
from tests.api.judging_memory import changed, derived, events_below
from tests.api.questions import BELOW, World, no_worker
from tests.api.serving import serving
from tests.patience import PATIENCE_SECONDS
from tests.unit.service.test_replaying import verify
from tests.web import invented
from tests.web.test_incident_stories import stored
from tests.web.test_same_facts import world as crowded

ANSWERED = {200, 202, 400, 404, 422}
"""The status codes of questions, also of those that are refused: none fails."""


def gallery(name):
    return incident_files.read(name).incident


WORLDS = {"crowded": crowded, **{name: partial(gallery, name) for name in incident_files.names()}}
SOME = ("crowded", "counters-stay-booked", "placed-to-be-evicted", "extended-resources-stay")
"""Counters, evictions and extended resources beside what the first world has; by day."""

OTHERS = [draws.repeated(name) for name in WORLDS if name not in SOME]


@asynccontextmanager
async def asked(server):
    """The world of a server, whose memory is judged after each question and in the end."""
    await server.get(f"{BELOW}/findings")
    (runtime,) = server.histories.open_runtimes()
    views = [view["name"] for view in (await server.get(f"{BELOW}/views"))["items"]]
    world = World(runtime, views)
    events = list(world.events())
    for event in events:
        assert event.object
    before = runtime.head, derived(runtime.views), [id(event) for event in events]

    async def ask(question):
        json = {"content_type": "application/json"}
        answer = await server.raw(question.method, question.url, question.body, **json)
        assert answer.status_code in ANSWERED, f"{question}: {answer.text}"
        assert not changed(events), f"{question} changes objects"
        after = runtime.head, derived(runtime.views), [id(event) for event in world.events()]
        assert after == before, f"{question} changes views"
        return answer.status_code

    yield world, ask
    held = events_below(server.app, server.histories)
    assert {id(event) for event in events} <= {id(event) for event in held}
    assert not changed(held), "an object that is kept elsewhere in memory was changed"


def test_every_operation_and_page_has_its_questions():
    assert questions.without_row() == ([], [])


@pytest.mark.parametrize("name", [*map(draws.by_day, SOME), *OTHERS])
async def test_no_question_changes_objects_in_memory(name):
    async with (
        serving(store=await stored(WORLDS[name]()), worker=no_worker) as server,
        asked(server) as (world, ask),
    ):
        codes = {await ask(question) for question in questions.of_api(world)}
        assert 200 in codes


@pytest.mark.parametrize("name", [*map(draws.by_day, SOME[1:]), draws.repeated(SOME[0]), *OTHERS])
async def test_no_page_changes_objects_in_memory(name):
    async with (
        serving(store=await stored(WORLDS[name]()), worker=no_worker) as server,
        asked(server) as (world, ask),
    ):
        codes = {await ask(question) for question in questions.of_pages(world)}
        assert 200 in codes


def test_changed_object_is_noticed_wherever_it_is_kept():
    """The judge itself: an object that a cache of a closure holds, below a tuple and a mapping."""

    async def check():
        async with serving() as server:
            await server.get(f"{BELOW}/findings")
            (runtime,) = server.histories.open_runtimes()
            (kind, *_) = runtime.views.objects.resources()
            (event, *_) = runtime.views.objects.events(*kind)
            kept = {"a": (event,)}
            held = events_below(lambda: kept)
            assert held == [event]
            assert not changed(held)
            event.object["metadata"]["labels"] = {"x": "y"}
            assert changed(held) == [event]

    anyio.run(check)


@asynccontextmanager
async def living():
    """A server whose controllers run in it, with pods that have their devices."""
    store = MemoryStore()
    async with serving(store=store, worker=no_worker) as server:
        cards = [{"name": f"card-{number}"} for number in range(2)]
        await apply(
            server, invented.class_of("gpu", "d.test"), invented.node("n"),
            invented.slice_of("n", "d.test", "n", cards, nodeName="n"),
            invented.template("one", "default", invented.ask("gpu")),
            *(invented.pod(name, "default", template="one") for name in ("first", "second")),
            invented.pod("third", "default", template="one"),
        )  # fmt: skip
        (runtime,) = server.histories.open_runtimes()
        bounds = LoopBounds(poll_seconds=0.05, lease_seconds=30.0, standby_seconds=0.05)
        setting = WorkerSetting(
            leases=MemoryLeases(store, SystemClock()), holder="one", compilers=ReleaseCompilers(),
            bounds=bounds,
        )  # fmt: skip
        server.tasks.start_soon(supervisor.run, runtime, setting)
        yield server, runtime


PLACES = {
    "DeviceClass": "/apis/resource.k8s.io/v1/deviceclasses",
    "ResourceSlice": "/apis/resource.k8s.io/v1/resourceslices",
    "ResourceClaimTemplate": "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates",
    "Node": "/api/v1/nodes",
    "Pod": "/api/v1/namespaces/default/pods",
}


async def apply(server, *trees):
    for tree in trees:
        await server.post(PLACES[tree["kind"]], tree, content_type="application/json")


async def wait_until(runtime, holds):
    """Wait for events until the objects of the history are so."""
    with anyio.fail_after(PATIENCE_SECONDS):
        while not holds(runtime.views.objects):
            await runtime.wait_for(runtime.views.revision + 1, PATIENCE_SECONDS)


def bound(objects):
    pods = [objects.get(key) for key in objects.keys("", "pods")]
    return sum("nodeName" in pod["spec"] for pod in pods)


def claims(objects):
    return len([*objects.keys(*api_resources.RESOURCE_CLAIMS)])


def is_refused(objects):
    """Whether an Event, the last write about a pod that waits, tells that there is no room."""
    events = [objects.get(key) for key in objects.keys("", "events")]
    return any(event["reason"] == "FailedScheduling" for event in events)


async def test_cluster_that_lives_on_after_all_questions_is_verified():
    async with living() as (server, runtime):
        await wait_until(runtime, lambda objects: bound(objects) == 2 and is_refused(objects))
        async with asked(server) as (world, ask):
            for question in questions.of_api(world):
                if "/blast" in question.url or "/fit" in question.url:
                    await ask(question)
        for name in ("first", "second"):
            await server.delete(f"{PLACES['Pod']}/{name}?gracePeriodSeconds=0")
        await wait_until(runtime, lambda objects: bound(objects) == claims(objects) == 1)
        report = await verify(runtime.log, runtime.info, Profile())
    assert report.agrees
    assert report.violations_count == 0
