"""The pages of jobs: each job of a history in a list, with a button that cancels or removes it."""

from contextlib import asynccontextmanager
from dataclasses import replace

import anyio
import anyio.lowlevel
import pytest

from app.api.server.limits import ApiLimits, WaitBounds
from app.bootstrap.handover.exporting import Exported
from app.bootstrap.minimising.results import Minimised
from app.domain.errors import InputError
from app.service.answering.jobs import JobOutcome
from tests.api.serving import CONFIG_MAPS, config_map, serving
from tests.api.test_authentication import ROLES
from tests.api.test_jobs import DEFAULT, JSON, KEEP, Worker
from tests.api.test_readers import ALL, PATHS, bind, filled, headers, known
from tests.patience import PATIENCE_SECONDS
from tests.web.reading import read
from tests.web.test_safety import HOSTILE, check
from tests.web.test_sweeps import OWN, begin, main_of

PAGE = "/ui/h/default/jobs"
FOUND = Minimised(
    predicate="unschedulable", sighting=HOSTILE, is_recorded=False, was_recorded=False,
    is_of_recording=True, is_minimal=False, represented=0, events_before=532, events=12, inputs=3,
    objects=4, devices=1, trials=7, remembered=0, seconds=1.0,
).to_json()  # fmt: skip
EXPORTED = Exported(inputs=158, decisions=1, asserts=["the outcome of its pods, 28"]).to_json()
PROGRESS = {"events": 532, "steps": 40, "objects": 30, "devices": 2, "trials": 7, "remembered": 0,
            "doing": "leaving out"}  # fmt: skip
PAGE_OF_REPORT = {
    "outcome": "1 pod has another outcome", "subject": "default under 1.36", "notes": [],
    "reasons": [{"text": "pod default/web moves"}],
}  # fmt: skip


async def start(server, what, body):
    answer = await server.raw("POST", f"{DEFAULT}/{what}", body, **JSON)
    assert answer.status_code == 202, answer.text
    return answer.json()["id"]


async def cancel(server, page, name, **more):
    return await server.client.post(page, data={"cancel": name}, headers=OWN | more)


async def test_list_has_each_job_with_its_progress_and_its_result():
    worker = Worker()
    async with serving(worker=worker) as server:
        assert "No job of this history" in (await main_of(server, PAGE)).text
        name = await start(server, "minimise", {"keep": "unschedulable", "name": "small"})
        other = await start(server, "rehearse", {"to": "1.36"})
        await worker.wait_begun()
        worker.tells[0](PROGRESS)
        main = await main_of(server, PAGE)
        rows = main.one("tbody").all("tr")
        assert [row.one("th").text for row in rows] == [
            "Rehearsal under 1.36", "Smallest history with unschedulable",
        ]  # fmt: skip
        assert "waiting" in rows[0].text
        assert "leaving out: 40 inputs and 30 objects left, 7 tried" in rows[1].text
        assert PAGE in main.links, "the page looks again by itself"
        worker.end(JobOutcome(result=FOUND, files={"small.zip": b"zip"}))
        await server.get(f"{DEFAULT}/jobs/{name}?wait=60")
        await worker.wait_begun()
        worker.end(JobOutcome(result={"report": {}, "page": PAGE_OF_REPORT}))
        await server.get(f"{DEFAULT}/jobs/{other}?wait=60")
        main = await main_of(server, PAGE)
        rehearsed, small = main.one("tbody").all("tr")
        assert "12 of 532 events show it: " + " ".join(HOSTILE.split()) in small.text
        assert "The time ended before each part was tried" in small.text
        (file,) = [link for link in small.links if link.endswith("small.zip")]
        assert (await server.raw("GET", file)).content == b"zip"
        (there,) = [link for link in rehearsed.links if link.startswith("/ui/")]
        main = await main_of(server, there)
        assert "pod default/web moves" in main.text
        assert "default under 1.36" in main.text


@pytest.mark.parametrize(
    ("form", "progress", "result", "said"),
    [
        ("pytest", {}, {"handedOver": EXPORTED},
         "158 writes from outside, 1 decisionthe test asserts the outcome of its pods, 28"),
        ("bundle", {}, {"written": {"events": 1}}, "events: 1"),
        ("audit", {"done": 3, "total": 9}, {"written": {"events": 9}}, "events: 9"),
    ],
)  # fmt: skip
async def test_export_says_what_it_writes_and_has_written(form, progress, result, said):
    worker = Worker()
    async with serving(worker=worker) as server:
        name = await start(server, "export", {"form": form})
        await worker.wait_begun()
        if progress:
            worker.tells[0](progress)
            assert "3 of 9 events are written" in (await main_of(server, PAGE)).text
        worker.end(JobOutcome(result=result, files={"history": b""}))
        await server.get(f"{DEFAULT}/jobs/{name}?wait=60")
        row = (await main_of(server, PAGE)).one("tbody").one("tr")
        assert row.one("th").text == f"Export as {form}"
        assert said in row.text


@pytest.mark.parametrize("is_running", [True, False])
async def test_button_ends_a_job_and_leads_to_the_list(is_running):
    worker = Worker()
    async with serving(worker=worker) as server:
        name = await start(server, "minimise", KEEP)
        await worker.wait_begun()
        if not is_running:
            worker.end(JobOutcome(result=FOUND))
            await server.get(f"{DEFAULT}/jobs/{name}?wait=60")
        button = (await main_of(server, PAGE)).one("button", name="cancel")
        assert button.text == ("Cancel" if is_running else "Remove")
        assert button.attributes["value"] == name
        answer = await cancel(server, PAGE, name)
        assert (answer.status_code, answer.headers["location"]) == (303, PAGE)
        assert worker.running == 0
        assert "No job of this history" in (await main_of(server, PAGE)).text


async def test_sweep_is_cancelled_on_its_page():
    worker = Worker()
    async with serving(worker=worker) as server:
        place = (await begin(server)).headers["location"]
        await worker.wait_begun()
        name = place.rpartition("/")[2]
        for page in (place, "/ui/jobs"):
            button = (await main_of(server, page)).one("button", name="cancel")
            assert button.attributes["value"] == name
        assert (await cancel(server, place, "another")).status_code == 400
        answer = await cancel(server, place, name)
        assert (answer.status_code, answer.headers["location"]) == (303, "/ui/jobs")
        assert worker.running == 0


async def test_forms_of_other_sites_and_other_users_end_nothing():
    worker = Worker()
    async with filled(worker=worker) as server:
        minimise = "/redra/v1/histories/one/minimise"
        answer = await server.raw("POST", minimise, KEEP, **JSON, **headers("root"))
        name, page = answer.json()["id"], "/ui/h/one/jobs"
        await worker.wait_begun()
        foreign = {**headers("root"), "origin": "http://evil.test"}
        assert (await cancel(server, page, name, **foreign)).status_code == 403
        assert (await cancel(server, page, name, **headers("gus"))).status_code in (403, 404)
        for fields in ({}, {"cancel": name, "more": "1"}):
            answer = await server.client.post(page, data=fields, headers=OWN | headers("root"))
            assert answer.status_code == 400
        shown = await server.raw("GET", page, **headers("gus"))
        assert shown.status_code == 403 or name not in shown.text
        assert worker.running == 1


@pytest.mark.parametrize("query", ["?job=nope", "?other=1"])
async def test_addresses_that_lead_nowhere(query):
    async with serving(worker=Worker()) as server:
        answer = await server.raw("GET", PAGE + query)
        assert answer.status_code in (400, 404)
        check(answer.text)


LONG = ApiLimits(
    waits=WaitBounds(seconds=0), rehearse_at_once_events_max=0, diff_at_once_events_max=0,
    diffs_at_once_max=2,
)  # fmt: skip
COMPARED = {"is_same": True, "a": "default", "b": "night", "head": "No difference.", "notes": []}
STEP = {"doing": "running", "revision": 7, "until": 9}
LONG_PAGES = [
    ("again?by=decisions", "Decided again, compared by decisions", STEP,
     "running: revision 7 of 9", COMPARED, "No difference."),
    ("compare?with=night", "Comparison with night", {"events": 3}, "reads 3 events", COMPARED,
     "No difference."),
    ("rehearsal?to=1.36", "Rehearsal under 1.36", STEP, "running: revision 7 of 9",
     {"report": {}, "page": PAGE_OF_REPORT}, "pod default/web moves"),
]  # fmt: skip


@asynccontextmanager
async def begun(page, **more):
    """A server that works out a page, and its worker."""
    worker = Worker()
    async with serving(worker=worker, limits=LONG, **more) as server:
        await server.post("/redra/v1/histories", {"name": "night"})
        await server.post(CONFIG_MAPS, config_map())
        assert (await server.raw("GET", f"/ui/h/default/{page}")).status_code == 202
        await worker.wait_begun()
        yield server, worker


@pytest.mark.parametrize(("page", "title", "progress", "said", "result", "shown"), LONG_PAGES)
async def test_page_that_takes_long_has_progress_and_a_result_among_the_jobs(
    page, title, progress, said, result, shown
):
    path = f"/ui/h/default/{page}"
    async with begun(page) as (server, worker):
        worker.tells[0](progress)
        waiting = read((await server.raw("GET", path)).text)
        (row,) = (await main_of(server, PAGE)).one("tbody").all("tr")
        assert row.one("th").text == title
        for place in (waiting.one("main"), row):
            assert said in place.text
            assert "running" in place.text
        assert worker.running == 1, "looking begins nothing"
        worker.end(JobOutcome(result=result))
        with anyio.fail_after(PATIENCE_SECONDS):
            while "done" not in (row := (await main_of(server, PAGE)).one("tbody")).text:
                await anyio.lowlevel.checkpoint()
        assert row.one("th").links == [path]
        answer = await server.raw("GET", path)
        assert answer.status_code == 200
        assert shown in read(answer.text).one("main").text
        assert "No job of this history" in (await main_of(server, PAGE)).text


@pytest.mark.parametrize("page", [each[0] for each in LONG_PAGES])
@pytest.mark.parametrize("is_from_list", [True, False])
async def test_page_that_takes_long_is_cancelled_and_begun_anew(page, is_from_list):
    path = f"/ui/h/default/{page}"
    async with begun(page) as (server, worker):
        there = await server.raw("GET", PAGE if is_from_list else path)
        button = read(there.text).one("button", name="cancel")
        assert button.text == "Cancel"
        name = button.attributes["value"]
        assert (await cancel(server, PAGE, name, origin="http://evil.test")).status_code == 403
        assert worker.running == 1
        answer = await cancel(server, PAGE, name)
        assert (answer.status_code, answer.headers["location"]) == (303, PAGE)
        assert worker.running == 0
        assert "No job of this history" in (await main_of(server, PAGE)).text
        assert (await cancel(server, PAGE, name)).status_code == 404
        assert (await server.raw("GET", path)).status_code == 202
        await worker.wait_begun()
        assert worker.running == 1


@pytest.mark.parametrize(
    ("page", "kind"),
    [(each[0], kind) for each, kind in zip(LONG_PAGES, ("again", "diff", "rehearse"), strict=True)],
)
async def test_page_that_takes_long_is_among_the_jobs_of_the_api(page, kind):
    path = f"/ui/h/default/{page}"
    async with begun(page) as (server, worker):
        worker.tells[0](STEP)
        (item,) = (await server.get(f"{DEFAULT}/jobs"))["items"]
        assert (item["kind"], item["state"], item["progress"]) == (kind, "running", STEP)
        assert await server.get(f"{item['path']}?wait=0") == item | {
            "seconds": pytest.approx(item["seconds"], abs=PATIENCE_SECONDS)
        }
        ended = await server.raw("DELETE", item["path"])
        assert (ended.status_code, ended.json()["state"]) == (200, "cancelled")
        assert worker.running == 0
        assert (await server.get(f"{DEFAULT}/jobs"))["items"] == []
        assert (await server.raw("GET", item["path"])).status_code == 404
        assert (await server.raw("GET", path)).status_code == 202
        (item,) = (await server.get(f"{DEFAULT}/jobs"))["items"]
        await worker.wait_begun()
        result = next(each[4] for each in LONG_PAGES if each[0] == page)
        worker.end(JobOutcome(result=result))
        done = await server.get(f"{item['path']}?wait=20")
        assert (done["state"], done["result"]) == ("done", {"page": path})
        assert (await server.raw("GET", path)).status_code == 200


async def test_pages_that_wait_for_their_turn_are_jobs_and_begin_in_order():
    """They begin without a further request, and one that is cancelled gives its place away."""
    worker = Worker()
    async with serving(worker=worker, limits=replace(LONG, diffs_at_once_max=1)) as server:
        await server.post(CONFIG_MAPS, config_map())
        paths = [f"/ui/h/default/rehearsal?to={each}" for each in ("1.34", "1.35", "1.36", "1.37")]
        for path in paths:
            assert (await server.raw("GET", path)).status_code == 202
        await worker.wait_begun()
        last = read((await server.raw("GET", paths[3])).text).one("main")
        assert "1 other answer; this page has its turn after 2 that wait longer" in last.text
        items = (await server.get(f"{DEFAULT}/jobs"))["items"]
        assert [each["state"] for each in items] == ["running", *["waiting"] * 3]
        cancelled = await server.call("DELETE", items[1]["path"], None, 200)
        assert cancelled["state"] == "cancelled"
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.get, f"{items[2]['path']}?wait=20")
            worker.end(JobOutcome(result={"report": {}, "page": PAGE_OF_REPORT}))
            await worker.wait_begun()
            worker.end(JobOutcome(result={"report": {}, "page": PAGE_OF_REPORT}))
        assert (await server.raw("GET", paths[2])).status_code == 200
        await worker.wait_begun()
        (left,) = [
            each
            for each in (await server.get(f"{DEFAULT}/jobs"))["items"]
            if each["state"] == "running"
        ]
        assert left["path"] == items[3]["path"]


async def test_page_that_nobody_asks_for_any_more_loses_its_place_in_the_line():
    worker = Worker()
    waits = WaitBounds(seconds=0, kept_seconds=0)
    limits = replace(LONG, waits=waits, diffs_at_once_max=1)
    async with serving(worker=worker, limits=limits) as server:
        await server.post(CONFIG_MAPS, config_map())
        for release in ("1.35", "1.36"):
            await server.raw("GET", f"/ui/h/default/rehearsal?to={release}")
        await worker.wait_begun()
        worker.end(JobOutcome(result={"report": {}, "page": PAGE_OF_REPORT}))
        await anyio.wait_all_tasks_blocked()
        assert worker.running == 0
        assert (await server.get(f"{DEFAULT}/jobs"))["items"] == []


async def test_page_that_failed_says_why_among_the_jobs_and_is_removed():
    async with begun("again?by=decisions") as (server, worker):
        worker.end(InputError(HOSTILE))
        with anyio.fail_after(PATIENCE_SECONDS):
            while "failed" not in (row := (await main_of(server, PAGE)).one("tbody")).text:
                await anyio.lowlevel.checkpoint()
        assert " ".join(HOSTILE.split()) in row.text
        button = row.one("button", name="cancel")
        assert button.text == "Remove"
        await cancel(server, PAGE, button.attributes["value"])
        assert "No job of this history" in (await main_of(server, PAGE)).text


async def test_page_of_another_user_is_not_seen_and_not_cancelled():
    worker = Worker()
    limits = replace(LONG, diffs_at_once_max=1)
    options = {"credentials": known(), "authorization": ROLES}
    async with serving(worker=worker, limits=limits, **options) as server:
        for user in ("gus", "dan"):
            await bind(server, "", user, [PATHS, ALL])
        path = "/ui/h/default/rehearsal?to=1.36"
        assert (await server.raw("GET", path, **headers("gus"))).status_code == 202
        await worker.wait_begun()
        waits = read((await server.raw("GET", path, **headers("dan"))).text).one("main")
        assert "has its turn" in waits.text
        assert waits.one("button", name="cancel").text == "Cancel"
        mine, others = [
            read((await server.raw("GET", PAGE, **headers(user))).text).one("main")
            for user in ("gus", "dan")
        ]
        assert "waiting" in others.one("tbody").text
        assert "waiting" not in mine.one("tbody").text
        name = mine.one("button", name="cancel").attributes["value"]
        assert (await cancel(server, PAGE, name, **headers("dan"))).status_code == 404
        for user, count in (("gus", 1), ("dan", 1)):
            listed = await server.raw("GET", f"{DEFAULT}/jobs", **headers(user))
            assert len(listed.json()["items"]) == count
        job = f"{DEFAULT}/jobs/{name}"
        for user, code in (("gus", 200), ("dan", 404)):
            assert (await server.raw("GET", job, **headers(user))).status_code == code
        assert worker.running == 1
