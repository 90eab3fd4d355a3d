"""Rehearsals of long histories over HTTP: a job answers, and the server's own loop does no work.

A short history stands for a long one; the work of its job ends when a test says so.
"""

import anyio
import pytest

from app.api.server.limits import ApiLimits, WaitBounds
from app.domain.errors import InputError, LogUnavailable
from app.domain.values import timestamps
from app.service.answering.jobs import JobKind, JobOutcome
from tests.api.serving import CONFIG_MAPS, config_map, serving
from tests.api.test_authentication import ROLES
from tests.api.test_jobs import DEFAULT, Worker
from tests.api.test_readers import ALL, PATHS, bind, headers, known
from tests.patience import PATIENCE_SECONDS
from tests.virtual_clock import VirtualClock
from tests.web.reading import read

REHEARSAL = f"{DEFAULT}/rehearsal?to=1.36"
PAGE = "/ui/h/default/rehearsal?to=1.36"
LONG = ApiLimits(rehearse_at_once_events_max=0, waits=WaitBounds(seconds=0))
"""Each history counts as long, and no request waits."""


async def begun(server, path=REHEARSAL, **more):
    """The path of the job to which a rehearsal leads."""
    answer = await server.raw("GET", path, **more)
    assert answer.status_code == 202, answer.text
    assert answer.headers["location"] == answer.json()["path"]
    return answer.json()["path"]


async def test_long_history_is_rehearsed_by_a_job_that_further_requests_find():
    worker = Worker()
    async with serving(worker=worker, limits=LONG) as server:
        path = await begun(server)
        await worker.wait_begun()
        worker.tells[0]({"doing": "running", "revision": 1, "until": 2})
        assert (await server.get(path))["progress"]["doing"] == "running"
        assert await begun(server) == path
        other = await begun(server, f"{DEFAULT}/rehearsal?to=1.35")
        assert other != path
        worker.end(JobOutcome(result={"report": {"outcome": "so"}, "page": {}}))
        assert await server.get(f"{REHEARSAL}&wait=60") == {"outcome": "so"}
        assert await server.get(REHEARSAL) == {"outcome": "so"}
        assert [wish.kind for wish in worker.wishes] == [JobKind.REHEARSE] * len(worker.wishes)
        await server.delete(path)
        await server.delete(other)
        assert worker.running == 0
        assert await begun(server) not in (path, other), "what is forgotten is worked out anew"


async def test_later_event_makes_another_answer():
    worker = Worker()
    async with serving(worker=worker, limits=LONG) as server:
        path = await begun(server, f"{REHEARSAL}&at=1")
        worker.end(JobOutcome(result={"report": {}, "page": {}}))
        await server.get(f"{path}?wait=60")
        await server.post(CONFIG_MAPS, config_map())
        assert await begun(server, f"{REHEARSAL}&at=1") != path


@pytest.mark.parametrize(
    ("problem", "code"),
    [(InputError("it is not so"), 400), (LogUnavailable("away"), 503), (KeyError("oh"), 500)],
    ids=["input", "log", "defect"],
)
async def test_job_that_fails_answers_with_its_error_and_is_not_found_again(problem, code):
    worker = Worker()
    async with serving(worker=worker, limits=LONG) as server:
        path = await begun(server)
        worker.end(problem)
        answer = await server.raw("GET", f"{REHEARSAL}&wait=60")
        assert answer.status_code == code
        assert await begun(server) != path


async def test_each_user_has_a_job_of_their_own():
    worker = Worker()
    options = {"credentials": known(), "authorization": ROLES}
    async with serving(worker=worker, limits=LONG, **options) as server:
        for user in ("gus", "dan"):
            await bind(server, "", user, [PATHS, ALL])
        paths = [await begun(server, **headers(user)) for user in ("gus", "dan", "gus")]
        assert paths[0] == paths[2] != paths[1]
        await server.get(paths[0], 404, **headers("dan"))


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("", 400),
        ("to=0.9", 400),
        ("to=1.36&gate=x=on", 400),
        ("to=1.36&wait=x", 400),
        ("to=1.36&at=9999", 404),
    ],
)
async def test_mistakes_begin_no_job(query, code):
    worker = Worker()
    async with serving(worker=worker, limits=LONG) as server:
        answer = await server.raw("GET", f"{DEFAULT}/rehearsal?{query}")
        assert answer.status_code == code, answer.text
        assert (await server.get(f"{DEFAULT}/jobs"))["items"] == []


async def test_relative_moment_is_named_with_the_answer_and_in_the_result_of_a_job():
    worker = Worker()
    begin = timestamps.parse("2026-03-10T12:00:00Z")
    async with serving(worker=worker, limits=LONG, clock=VirtualClock(begin)) as server:
        await server.post(CONFIG_MAPS, config_map())
        path = await begun(server, f"{REHEARSAL}&at=0s")
        await worker.wait_begun()
        meaning = worker.wishes[0].parameters["asOf"]["asOf"]
        assert meaning == "0s before now, 2026-03-10T12:00:00Z, is 2026-03-10T12:00:00Z"
        worker.end(JobOutcome(result={"report": {"asOf": meaning, "outcome": "so"}, "page": {}}))
        await server.get(f"{path}?wait=60")
        answer = await server.get(f"{REHEARSAL}&at=0s")
        assert answer == {"asOf": meaning, "outcome": "so"}
        head = (await server.get(DEFAULT))["revision"]
        assert await server.get(f"{REHEARSAL}&at={head}") == {"outcome": "so"}


async def test_page_of_a_long_history_is_that_of_a_short_one(monkeypatch):
    async with serving() as server:
        await server.post(CONFIG_MAPS, config_map())
        expected = read((await server.raw("GET", PAGE)).text).one("main").text
        api, shown = server.app._redra.rehearsals, []
        report = api.report

        async def kept(*question):
            shown.append(await report(*question))
            return shown[-1]

        monkeypatch.setattr(api, "report", kept)
        await server.raw("GET", PAGE)
    worker = Worker()
    limits = ApiLimits(rehearse_at_once_events_max=0)
    async with serving(worker=worker, limits=limits) as server:
        await server.post(CONFIG_MAPS, config_map())
        worker.end(JobOutcome(result=shown[0]))
        with anyio.fail_after(PATIENCE_SECONDS):
            answer = await server.raw("GET", PAGE)
        assert read(answer.text).one("main").text == expected
        (wish,) = worker.wishes
        assert wish.parameters["to"] == "1.36"
        assert (await server.get(f"{DEFAULT}/jobs"))["items"] == []
