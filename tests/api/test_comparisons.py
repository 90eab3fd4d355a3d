"""Comparisons of long histories over HTTP: another process works them out, with the same answer."""

from pathlib import Path

import anyio
import anyio.to_thread
import msgspec
import pytest

from app.api.server.limits import ApiLimits
from app.bootstrap.jobs import running, works
from app.service.answering.jobs import JobKind, JobOutcome
from app.settings import Settings
from tests import draws
from tests.api.serving import serving
from tests.api.test_jobs import Worker
from tests.api.test_secrets import keys
from tests.patience import PATIENCE_SECONDS
from tests.web.reading import read
from tests.web.test_comparing import both_variants

LONG = ApiLimits(diff_at_once_events_max=0)
"""Each comparison counts as long."""

SECRETS = "/h/{}/api/v1/namespaces/default/secrets"
BELOW = "/redra/v1/histories"

QUESTIONS = (
    f"{BELOW}/broken/diff?with=repaired",
    f"{BELOW}/broken/diff?with=repaired&by=outcomes",
    f"{BELOW}/broken/diff?with=repaired&at=9&page=true",
    f"{BELOW}/fork/diff?with=broken&by=objects",
    f"{BELOW}/fork/diff?with=broken&within=5",
    f"{BELOW}/broken/diff?with=fork&withAt=14",
    f"{BELOW}/fork/diff?with=fork&at=10&withAt=14",
)
PAGES = (
    "/ui/h/broken/compare?with=repaired",
    "/ui/h/fork/compare?with=broken&by=objects",
)


async def worker_here(log, wish, tell):
    """The work of a job's process, on the same bundles, in a thread of this one."""
    async with anyio.TemporaryDirectory() as name:
        folder = Path(name)
        await running._export_all(Settings(), log, wish, folder)
        parameters = msgspec.json.decode(msgspec.json.encode(wish.parameters))
        names = [source.name for source in wish.sources]
        done = await anyio.to_thread.run_sync(
            works.DONE_BY[wish.kind.value], folder, parameters, names, tell
        )
    return JobOutcome(result=msgspec.json.decode(msgspec.json.encode(done.result)))


async def filled(**options):
    """Two histories that differ, and a fork with another Secret than its parent."""
    store = await both_variants("tolerations-not-copied")
    async with serving(store=store, **options) as server:
        await server.post(f"{BELOW}/broken/fork", {"name": "fork", "at": "14"})
        for history, value in (("broken", "b25l"), ("fork", "dHdv")):
            secret = {"metadata": {"name": "key"}, "data": {"key": value, history: "eA=="}}
            await server.post(SECRETS.format(history), secret)
    return store


@draws.in_turn(
    "ways",
    each_day="api/test_comparisons.py::test_fork_with_recorded_inputs_is_compared_by_a_process",
)
async def test_answers_of_a_process_are_those_of_the_server(tmp_path):
    store = await filled(secrets=keys(tmp_path))
    async with serving(store=store) as server:
        answers = [await server.get(path) for path in QUESTIONS]
        pages = [read((await server.raw("GET", path)).text).one("main").text for path in PAGES]
    assert answers[0]["outcome"] == "different"
    assert "secrets/default/key" in str(answers[3])
    wishes = []

    async def worker(log, wish, tell):
        wishes.append(wish)
        return await worker_here(log, wish, tell)

    async with serving(store=store, limits=LONG, worker=worker) as server:
        for path, expected in zip(QUESTIONS, answers, strict=True):
            assert await server.get(path) == expected, path
        for path, expected in zip(PAGES, pages, strict=True):
            assert read((await server.raw("GET", path)).text).one("main").text == expected, path
    assert [wish.kind for wish in wishes] == [JobKind.DIFF] * len(QUESTIONS + PAGES)


async def test_history_with_secrets_in_plain_text_is_compared_by_the_server():
    store = await filled()
    async with serving(store=store) as server:
        expected = await server.get(QUESTIONS[3])
    async with serving(store=store, limits=LONG, worker=worker_here) as server:
        assert await server.get(QUESTIONS[3]) == expected


@draws.in_turn(
    "ways",
    each_day="api/test_comparisons.py::test_fork_with_recorded_inputs_is_compared_by_a_process",
)
async def test_process_of_its_own_answers():
    store = await both_variants("tolerations-not-copied")
    async with serving(store=store) as server:
        expected = await server.get(QUESTIONS[0])
    async with serving(store=store, limits=LONG) as server:
        assert await server.get(QUESTIONS[0]) == expected


async def test_fork_with_recorded_inputs_is_compared_by_a_process():
    wish = {"name": "again", "at": "18", "inputs": "recorded", "delete": ["pod/default/web"]}
    store = await both_variants("tolerations-not-copied")
    async with serving(store=store) as server:
        expected = await server.post(f"{BELOW}/broken/fork", wish)
    assert expected["report"]["diff"]["outcome"] == "different"
    wishes = []

    async def worker(log, wish, tell):
        wishes.append(wish)
        return await worker_here(log, wish, tell)

    store = await both_variants("tolerations-not-copied")
    async with serving(store=store, limits=LONG, worker=worker) as server:
        answer = await server.post(f"{BELOW}/broken/fork", wish)
    assert (answer["report"], answer["text"]) == (expected["report"], expected["text"])
    assert [(wish.kind, wish.parameters["form"]) for wish in wishes] == [(JobKind.DIFF, "fork")]


async def test_short_comparison_needs_no_process():
    worker = Worker()
    store = await both_variants("tolerations-not-copied")
    async with serving(store=store, worker=worker) as server:
        await server.get(QUESTIONS[0])
    assert worker.wishes == []


async def test_work_of_a_client_that_goes_away_ends():
    worker = Worker()
    store = await both_variants("tolerations-not-copied")
    async with serving(store=store, limits=LONG, worker=worker) as server:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.raw, "GET", QUESTIONS[0])
            with anyio.fail_after(PATIENCE_SECONDS):
                await worker.wait_begun()
            assert (await server.get(f"{BELOW}/broken"))["name"] == "broken"
            tasks.cancel_scope.cancel()
        assert worker.running == 0


@pytest.mark.parametrize(
    ("query", "code"),
    [("", 400), ("with=nobody", 404), ("with=repaired&by=x", 400), ("with=repaired&at=9999", 404)],
)
async def test_mistakes_start_no_process(query, code):
    worker = Worker()
    store = await both_variants("tolerations-not-copied")
    async with serving(store=store, limits=LONG, worker=worker) as server:
        answer = await server.raw("GET", f"{BELOW}/broken/diff?{query}")
        assert answer.status_code == code, answer.text
    assert worker.wishes == []


@pytest.mark.parametrize(
    ("question", "is_same"), [("by=decisions", True), ("by=decisions&quirk=c2=off", False)]
)
async def test_history_is_compared_with_itself_decided_again(question, is_same):
    store = await both_variants("toleration-without-effect")
    async with serving(store=store, worker=worker_here) as server:
        answer = await server.get(f"{BELOW}/broken/again?{question}")
        page = read((await server.raw("GET", f"/ui/h/broken/again?{question}")).text)
        ask = f"{BELOW}/broken/again?{question}&profile=1.1"
        assert (await server.raw("GET", ask)).status_code == 400
    assert (answer["outcome"] == "same") is is_same
    assert answer["b"]["history"] == "broken decided again"
    assert page.one(class_="verdict").text.startswith("The same" if is_same else "Different")


async def test_server_without_jobs_decides_nothing_again():
    async with serving(store=await both_variants("toleration-without-effect")) as server:
        server.app._redra.agains._worker = None
        answer = await server.raw("GET", f"{BELOW}/broken/again")
    assert answer.status_code == 400
    assert "redra diff --again" in answer.text
