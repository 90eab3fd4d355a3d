"""Sweeps in the browser: the form that starts one, and the page of its runs."""

import re

import pytest

from app.analysis.sweep import columns
from app.api.server.limits import ApiLimits
from app.domain.errors import InputError
from app.service.answering.jobs import JobBounds, JobOutcome
from app.web import sweeps as own_file
from app.web.pages import sweeps
from tests.api.serving import serving
from tests.api.test_jobs import JOBS, Worker
from tests.api.test_readers import filled, headers
from tests.web.reading import read
from tests.web.test_safety import HOSTILE, check

PAGE, START = "/ui/jobs", "/ui/sweep"
FORM = "application/x-www-form-urlencoded"
OWN = {"origin": "http://redra"}
WIDE = 90


def run(number, history="prod", problem="", **more):
    """A row as `redra sweep` makes it; one that failed has no result."""
    made_of = {"profile": "", "gates": "", "quirks": "", "change": "", "seed": 0}
    row = {"cell": number, "history": history, **made_of, "problem": problem}
    if problem:
        return row | more
    measured = {
        "pods": 7, "placed": 5 + number, "waiting": 2, "evicted": 0, "boundMean": 1.25,
        "boundP50": 1.0, "boundP99": 2.5, "boundMax": 2.5, "notDone": 0, "differing": number,
        "largest": {"gpu": 4, "mig": 11},
        "stranded": {"d.test/memory": {"amount": 2048.0, "of": 8192.0, "share": 0.25}},
    }  # fmt: skip
    return row | measured | more


def outcome(*rows):
    """The result of a sweep with these runs."""
    failed = sum(bool(row["problem"]) for row in rows)
    files = {"table.csv": b"cell\n", "index.html": b"<html>"}
    return JobOutcome(
        result={"rows": list(rows), "ran": len(rows) - failed, "failed": failed}, files=files
    )


async def begin(server, **fields):
    """The answer to the form."""
    return await server.client.post(START, data={"histories": "default", **fields}, headers=OWN)


async def main_of(server, path, code=200, **more):
    answer = await server.raw("GET", path, **more)
    assert answer.status_code == code, answer.text
    assert len(answer.content) <= 150_000
    return check(answer.text).one("main")


async def test_form_starts_the_plan_and_leads_to_the_page_of_its_runs():
    worker = Worker()
    async with serving(worker=worker) as server:
        gates = "DRAPartitionableDevices=false\r\n\r\nDRADeviceTaints=true,DRAPrioritizedList=off"
        answer = await begin(
            server, profiles=["1.36", "1.37"], gates=gates, quirks="c2=off", seeds="3", name="all",
        )  # fmt: skip
        assert answer.status_code == 303, answer.text
        await worker.wait_begun()
        (wish,) = worker.wishes
        assert wish.parameters["plan"] == {
            "histories": ["default"],
            "profiles": ["", "1.36", "1.37"],
            "gates": [
                {}, {"DRAPartitionableDevices": False},
                {"DRADeviceTaints": True, "DRAPrioritizedList": False},
            ],
            "quirks": [{}, {"c2": False}],
            "seeds": 3,
        }  # fmt: skip
        place = answer.headers["location"]
        worker.tells[0]({"done": 2, "total": 54})
        main = await main_of(server, place)
        assert "2 of 54 runs are done" in main.text
        assert place in main.links
        worker.end(outcome(run(0), run(1, profile="1.37", problem="it has no such gate")))
        (job,) = (await server.get(JOBS))["items"]
        await server.get(f"{JOBS}/{job['id']}?wait=60")
        main = await main_of(server, place)
        assert main.one("h1").text == "Sweep all"
        assert "1 of 2 runs failed" in main.text
        assert "it has no such gate" in main.all("table")[0].text
        for name in ("table.csv", "index.html"):
            (link,) = [link for link in main.links if link.endswith(name)]
            assert (await server.raw("GET", link)).status_code == 200
        listed = await main_of(server, PAGE)
        assert place in listed.links
        assert "Sweep all" in listed.text


REFUSED = {
    "no history": ({"histories": ""}, "choose a history"),
    "unknown history": ({"histories": "nope"}, '"nope"'),
    "release": ({"profiles": "0.9"}, "0.9"),
    "switch": ({"gates": "DRADeviceTaints"}, "gates must be NAME=true or NAME=false"),
    "gate": ({"gates": "NoSuchGate=true"}, "NoSuchGate"),
    "quirk": ({"quirks": "z99=on"}, "z99"),
    "orders": ({"seeds": "-1"}, 'must be a whole number, not "-1"'),
    "no orders": ({"seeds": "0"}, "1 or more"),
    "too many": ({"seeds": "20"}, "20 runs are more than 9"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
async def test_plan_that_is_refused_keeps_what_was_typed_and_starts_nothing(name):
    fields, words = REFUSED[name]
    bounds = JobBounds(cells_max=9)
    async with serving(worker=Worker(), limits=ApiLimits(jobs=bounds)) as server:
        answer = await begin(server, **{"name": "mine", **fields})
        assert answer.status_code == 200, answer.text
        main = check(answer.text).one("main")
        assert words in main.one(class_="refused").text
        typed = main.one("form")
        assert typed.one("input", name="name").attributes["value"] == "mine"
        for field in fields.keys() & {"gates", "quirks"}:
            assert typed.one("textarea", name=field).text == fields[field]
        assert (await server.get(JOBS))["items"] == []


async def test_forms_of_other_sites_start_nothing():
    async with serving(worker=Worker()) as server:
        data = {"histories": "default"}
        for header in ({"origin": "http://evil.test"}, {"sec-fetch-site": "cross-site"}):
            answer = await server.client.post(START, data=data, headers=header)
            assert answer.status_code == 403
        answer = await server.client.post(START, json=data, headers=OWN)
        assert answer.status_code == 400
        assert (await server.get(JOBS))["items"] == []
        assert (await server.raw("POST", PAGE, data, **OWN)).status_code in (403, 405)


async def test_page_has_the_rights_of_the_answer():
    worker = Worker()
    async with filled(worker=worker) as server:
        data = {"histories": "one"}
        for reader in ("bob", "gus"):
            answer = await server.client.post(START, data=data, headers=headers(reader) | OWN)
            assert answer.status_code == 403, reader
        answer = await server.client.post(START, data=data, headers=headers("root") | OWN)
        assert answer.status_code == 303, answer.text
        place = answer.headers["location"]
        await main_of(server, place, **headers("root"))
        for reader in ("bob", "gus"):
            answer = await server.raw("GET", place, **headers(reader))
            assert answer.status_code in (403, 404), reader
            answer = await server.raw("GET", PAGE, **headers(reader))
            assert answer.status_code == 403 or place not in answer.text


@pytest.mark.parametrize("count", [1, sweeps.RUNS_MAX, 2 * sweeps.RUNS_MAX + 1])
async def test_each_run_is_on_one_page_in_the_table_and_in_each_picture(count):
    worker = Worker()
    rows = [run(number, largest={f"class-{one}": one for one in range(WIDE)} if not number else {})
            for number in range(count)]  # fmt: skip
    async with serving(worker=worker) as server:
        place = (await begin(server)).headers["location"]
        worker.end(outcome(*rows))
        (job,) = (await server.get(JOBS))["items"]
        await server.get(f"{JOBS}/{job['id']}?wait=60")
        shown, path = [], place
        while path:
            main = await main_of(server, path)
            numbers = [
                row.one("th").text.removesuffix(" base")
                for row in main.all("table")[0].one("tbody").all("tr")
            ]
            shown += numbers
            pictures = main.all(class_="picture")
            assert 0 < len(pictures) <= sweeps.PICTURES_MAX
            is_hatched = any(picture.all("rect", "lacking") for picture in pictures)
            assert ("A hatched column" in main.text) is is_hatched
            for picture in pictures:
                titles = [one.text for one in picture.all("title")]
                assert [re.match(r"run (\d+)", one)[1] for one in titles] == numbers
            assert len(main.all("rect")) < 2_000
            path = next((one.attributes["href"] for one in main.all("a", rel="next")), "")
        assert shown == [str(number) for number in range(count)]


async def test_picture_and_table_carry_the_same_values():
    worker = Worker()
    rows = [run(0), run(1, placed=3, boundMean=0.5), run(2, problem="broken")]
    async with serving(worker=worker) as server:
        place = (await begin(server)).headers["location"]
        worker.end(outcome(*rows))
        (job,) = (await server.get(JOBS))["items"]
        await server.get(f"{JOBS}/{job['id']}?wait=60")
        main = await main_of(server, place)
        tables = [table.text for table in main.all("table")]
        drawn = {}
        for heading, picture in zip(main.all("h2"), main.all(class_="picture"), strict=True):
            titles = [one.text.rpartition(": ")[2] for one in picture.all("title")]
            heights = [float(one.attributes["height"]) for one in picture.all("rect", "claim")]
            drawn[heading.text] = titles
            known = [float(one) for one in titles if one != "broken"]
            assert len(heights) == len(known) == 2
            # The columns are as high as their values, one to the other.
            assert heights[0] * known[1] == pytest.approx(heights[1] * known[0], abs=0.3)
            assert len(picture.all("rect", "lacking")) == 1
            for value in known:
                assert any(f"{value:g}" in text for text in tables), value
        assert "A hatched column" in main.text
        assert drawn["Pods placed"] == ["5", "3", "broken"]
        assert drawn["Largest claim of class mig"] == ["11", "11", "broken"]
        assert drawn["Stranded share of counter d.test/memory"] == ["0.25", "0.25", "broken"]


async def test_columns_are_words_with_their_units_and_the_runs_to_compare_with_are_marked():
    worker = Worker()
    rows = [run(0), run(1, profile="1.37"), run(2, seed=1), run(3, "other", problem="broken"),
            run(4, seed=1, quirks="c2=false"), run(5, "other", seed=1)]  # fmt: skip
    names = columns.columns_of(rows)
    file = read(own_file.page([columns.flat(row, names) for row in rows], names, "all"))
    async with serving(worker=worker) as server:
        place = (await begin(server)).headers["location"]
        worker.end(outcome(*rows))
        (job,) = (await server.get(JOBS))["items"]
        await server.get(f"{JOBS}/{job['id']}?wait=60")
        main = await main_of(server, place)
    for page in (main, file):
        headings = [one.text for table in page.all("table") for one in table.one("thead").all("th")]
        assert "mean seconds to binding" in headings
        assert "devices in the largest claim of class mig" in headings
        assert not [one for one in headings if re.search(r"[a-z][A-Z]", one)]
    runs = [row.one("th").text for row in main.all("table")[0].one("tbody").all("tr")]
    assert runs == ["0 base", "1", "2 base", "3 base", "4", "5 base"]
    runs = [row.all("td")[0].text for row in file.one("tbody").all("tr")]
    assert runs == ["0 (base)", "1", "2 (base)", "3 (base)", "4", "5 (base)"]


async def test_failure_and_markup_are_text():
    worker = Worker()
    async with serving(worker=worker) as server:
        place = (await begin(server, name=HOSTILE)).headers["location"]
        worker.end(InputError(HOSTILE))
        (job,) = (await server.get(JOBS))["items"]
        await server.get(f"{JOBS}/{job['id']}?wait=60")
        main = await main_of(server, place)
        assert " ".join(HOSTILE.split()) in main.one(class_="refused").text
        assert " ".join(HOSTILE.split()) in main.one("h1").text
        place = (await begin(server)).headers["location"]
        worker.end(outcome(run(0, problem=HOSTILE, history=HOSTILE)))
        job = (await server.get(JOBS))["items"][-1]
        await server.get(f"{JOBS}/{job['id']}?wait=60")
        assert " ".join(HOSTILE.split()) in (await main_of(server, place)).text


async def test_addresses_that_lead_nowhere():
    async with serving(worker=Worker()) as server:
        for path, code in {
            f"{PAGE}/nope": 404, f"{PAGE}/nope/files": 404, f"{PAGE}?from=3": 400,
            f"{PAGE}/nope?with=b": 400, "/ui/sweep/x": 404,
        }.items():  # fmt: skip
            assert (await server.raw("GET", path)).status_code == code, path
        answer = await server.raw("GET", START)
        assert (answer.status_code, answer.headers["location"]) == (303, PAGE)
        index = read((await server.raw("GET", "/ui/")).text).one("main")
        compare = read((await server.raw("GET", "/ui/h/default/compare")).text).one("main")
        assert PAGE in index.links
        assert PAGE in compare.links
