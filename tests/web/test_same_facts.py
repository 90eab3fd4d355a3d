"""Text, JSON and page of one question carry the same facts: a row for each question.

A row takes the facts out of the JSON, as words that each form has to have. A question that has
no row fails, and so does a row that says of a form that there is none.
"""

import re
import socket
from collections.abc import Callable
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass

import anyio
import httpx
import pytest
import uvicorn

from app.api.redra import document
from app.api.server.connections import ConnectionBounds, connection_class
from app.api.ui import parameters, routes
from app.bootstrap.gallery import incident_files
from tests import draws
from tests.api.serving import running_app
from tests.api.test_jobs import Worker
from tests.command_line import redra
from tests.patience import PATIENCE_SECONDS
from tests.virtual_clock import VirtualClock
from tests.web.invented import (
    Invented,
    ask,
    claim,
    class_of,
    node,
    pod,
    rule,
    slice_of,
    space,
    template,
)
from tests.web.reading import read, ready
from tests.web.test_incident_stories import stored
from tests.web.test_sweeps import outcome, run

BELOW = "/redra/v1/histories/default"
UI = "/ui/h/default"
THIRD = "kind=pods&namespace=lab&name=third"


def world():
    """Pods that run and one that waits, a pool that is not whole, a taint, a claim nobody uses."""
    cards = [{"name": f"card-{number}"} for number in range(2)]
    return Invented(
        told=(),
        steps=(
            {"apply": [space("lab"), class_of("gpu", "d.test"), node("n"), node("m"),
                       slice_of("left", "d.test", "n", cards, nodeName="n"),
                       slice_of("right", "d.test", "m", cards, of=2, nodeName="m"),
                       template("one", "lab", ask("gpu"))]},
            {"apply": [pod("first", "lab", template="one"), pod("second", "lab", template="one")]},
            {"wait": 10},
            {"apply": [pod("third", "lab", template="one"), claim("idle", "lab", ask("gpu"))]},
            {"wait": 10},
            {"apply": [rule("repair", "d.test", key="x.test/repair", effect="NoSchedule")]},
            {"wait": 10},
        ),
    ).incident()  # fmt: skip


WORLDS = {
    "crowded": world,
    "booked": lambda: incident_files.read("counters-stay-booked").incident,
    "defect": lambda: incident_files.read("toleration-without-effect").incident,
}


@asynccontextmanager
async def listening(store, **options):
    """A real server on a port of its own: commands ask it as people do.

    Its clock stands still, so that a duration is the same in each form of an answer.
    """
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        async with (
            running_app(store=store, clock=VirtualClock(), **options) as (app, _),
            anyio.create_task_group() as tasks,
        ):
            config = uvicorn.Config(
                app, http=connection_class(ConnectionBounds()), lifespan="off", log_config=None,
                log_level="critical", timeout_graceful_shutdown=1,
            )  # fmt: skip
            server = uvicorn.Server(config)
            server.capture_signals = nullcontext
            tasks.start_soon(server.serve, [listener])
            with anyio.fail_after(PATIENCE_SECONDS):
                while not server.started:
                    await anyio.lowlevel.checkpoint()
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
            server.should_exit = True


def reasons_of(answer):
    def texts(reason):
        yield reason["text"]
        for child in reason.get("children", ()):
            yield from texts(child)

    below = [text for child in answer["reasons"]["children"] for text in texts(child)]
    return [answer["subject"], answer["outcome"], answer["text"], *below]


def findings_of(answer):
    return (
        [fact for item in answer["items"] for fact in (item["text"], *item["causes"])]
        + [one["name"] for item in answer["items"] for one in item["objects"]]
        + [
            one[name]
            for one in answer["knownDefects"]
            for name in ("title", "certainty", "severity")
        ]
    )


def entries_of(answer):
    return [
        fact
        for item in answer["items"]
        for fact in (str(item["revision"]), item["kind"], item["name"], item["text"])
    ]


def devices_of(answer):
    facts = []
    for pool in answer["pools"]:
        states = [device["state"] for device in pool["devices"]]
        facts += [f"{pool['driver']}/{pool['pool']}", pool["problem"]]
        facts += [f"{states.count(state)} {state}" for state in set(states)]
    return facts


def largest_of(answer):
    """Name, devices, free and the largest claim of the last moment; several spellings of each."""
    return [
        rf"{one['name']}:? {one['free']} of {one['devices']} devices? free"
        rf"|{one['name']} {one['devices']} {one['allocatable']} {one['free']} "
        rf"(at least )?{one['largest']}"
        for one in answer["moments"][-1]["classes"]
    ]


def sightings_of(answer):
    names = ("incident", "message", "title", "repair")
    return [one[name] for one in answer["items"] for name in names]


def copies_of(answer):
    return [
        fact
        for one in answer["items"]
        # What preemption came to is in JSON alone: nobody is evicted for the next copy.
        for said in [
            re.split(r"[.,]? (?:no new claims|still not|preemption:)", one["limit"]["text"])[0]
        ]
        for fact in (one["subject"], str(one["count"]), said)
    ]


def changes_of(answer):
    facts = [f"{one['kind']} {one['name']}" for one in answer["effects"]]
    facts += [one["device"] for one in answer["devices"]]
    facts += [one["name"] for one in answer["classes"]]
    facts += [f"{one['driver']}/{one['pool']}" for one in answer["pools"]]
    facts += [f"pods: {answer['totals']['pods_evicted'] or 'none'} would be evicted"]
    return facts


def attempts_of(answer):
    return [
        fact
        for one in answer["items"]
        for fact in (f"attempt {one['number']}", one["outcome"], str(one["revision"]))
    ]


def differences_of(answer):
    return [one["subject"].removeprefix("pods/") for one in answer["differences"]]


def both_sides_of(answer):
    named = [answer[side]["history"] for side in "ab"]
    return [*named, *differences_of(answer)]


def broken_rules_of(answer):
    return [
        fact
        for one in answer["findings"]
        for fact in (one["severity"], one["rule"], one["place"]["object"], one["message"],
                     one["cure"])
    ]  # fmt: skip


def fields_of(answer):
    return [one["path"] for one in answer["fields"]] + [
        str(one["revision"]) for one in answer["versions"]
    ]


def lanes_of(answer):
    return [fact for lane in answer["lanes"] for fact in (lane["name"], *states_of(lane))]


def states_of(lane):
    return [one["state"] for one in lane["states"]] + [one["kind"] for one in lane["marks"]]


def pace_of(answer):
    return [str(answer["count"]), str(answer["waiting"])] + [one["name"] for one in answer["pods"]]


def rehearsal_of(answer):
    return [one.partition(": ")[2] for one in answer["settings"] if one.startswith("gate ")]


@dataclass(frozen=True, kw_only=True)
class Row:
    """A question: its JSON, its page and its command, or why there is none."""

    json: str
    facts: Callable
    page: str = ""
    no_page: str = ""
    command: tuple = ()
    no_command: str = ""
    proposal: dict | None = None
    form: dict | None = None
    is_about_crowd: bool = False
    is_of_few: bool = False
    """Whether the page draws things together where there are many in one place."""

    is_pattern: bool = False


DELETION = "devicetaintrule/repair"
PICTURE = "a picture; its events are those of `redra timeline`"

ROWS = {
    "why": Row(json=f"why?{THIRD}", page=f"why?{THIRD}", command=("why", "pod/lab/third"),
               facts=reasons_of, is_about_crowd=True),
    "findings": Row(json="findings", page="", command=("findings",), facts=findings_of),
    "timeline": Row(json="timeline?limit=100", page="timeline?limit=100",
                    command=("timeline",), facts=entries_of),
    "map": Row(json="map", page="map", command=("map",), facts=devices_of),
    "capacity": Row(json="capacity", page="capacity", command=("capacity",), facts=largest_of,
                    is_pattern=True),
    "scan": Row(json="scan", page="scan", command=("scan",), facts=sightings_of),
    "fit": Row(json="fit", page="capacity", form={"manifest": ""}, command=("fit",),
               facts=copies_of),
    "blast": Row(json="blast", proposal={"delete": [DELETION]}, page="blast",
                 form={"manifest": "", "delete": DELETION},
                 command=("blast", "--delete", DELETION), facts=changes_of, is_about_crowd=True),
    "attempts": Row(json=f"attempts?{THIRD}", page=f"attempts?{THIRD}",
                    command=("why", "pod/lab/third"), facts=attempts_of, is_about_crowd=True),
    "diff": Row(json="diff?with=other", page="compare?with=other",
                command=("diff", "default", "other"), facts=differences_of, is_about_crowd=True),
    "again": Row(json="again?quirk=c2=off", page="again?by=decisions&quirk=c2=off",
                 command=("diff", "default", "--again", "--quirk", "c2=off"), facts=both_sides_of,
                 is_about_crowd=True),
    "object": Row(json=f"object?{THIRD}", page=f"object?{THIRD}", facts=fields_of,
                  no_command="kubectl get -o yaml, `redra log`", is_about_crowd=True),
    "lint": Row(json="lint", page="lint", command=("lint", "--history", "default"),
                facts=broken_rules_of),
    "lanes": Row(json="lanes", page="lanes", facts=lanes_of, no_command=PICTURE,
                 is_of_few=True),
    "pace": Row(json="pace", page="pace", facts=pace_of, no_command=PICTURE),
    "find": Row(json="find?q=third", page="find?q=third", is_about_crowd=True,
                facts=lambda answer: [one["name"] for one in answer["items"]]
                + [one[part] for one in answer["gone"] for part in ("name", "by")],
                no_command="completion of words asks it"),
    "rehearsal": Row(json="rehearsal?to=1.36", page="rehearsal?to=1.36", facts=rehearsal_of,
                     no_command="`redra rehearse` opens the data itself: its page of text is held "
                     "by tests/simulation/test_rehearsals.py", is_about_crowd=True),
}  # fmt: skip

WITHOUT_FACTS = {("crowded", "scan")}
"""The question to which the answer is that there is nothing."""

NO_QUESTIONS = {
    "events", "decisions", "controllers", "views", "views/{view}", "trace", "entries", "head",
    "replay", "rename", "copy", "fork", "jobs", "jobs/{job}", "jobs/{job}/files/{file}", "minimise",
    "rehearse", "export",
}  # fmt: skip
"""What hands out records, or changes something, and answers no question by itself."""

OTHER_PAGES = {
    "behaviours": "a table of redra, `redra profiles`", "compare": "diff",
    "fork": "makes a history; tests/web/test_more_pages.py",
    "jobs": "work under way; tests/web/test_jobs.py",
    routes.LANDING: "findings",
    "report": "pages of the others bound together", "live": "tells that there is more",
}  # fmt: skip


def test_every_question_has_a_row():
    below = "/histories/{history}/"
    paths = {path.removeprefix(below) for path, *_ in document._OPERATIONS if below in path}
    assert paths - NO_QUESTIONS == set(ROWS)
    assert set(parameters.NAMES) - set(OTHER_PAGES) == set(ROWS) - {"findings", "diff", "fit"}


def squeezed(text):
    """The text without the lines of trees, and with each run of blanks as one."""
    return re.sub(r"[\s│├└─]+", " ", text)


def lacking(row, facts, text):
    text = squeezed(text)
    if row.is_pattern:
        return [fact for fact in facts if not re.search(fact, text)]
    return [fact for fact in facts if squeezed(fact) not in text]


def words_of(tree):
    """The text of a page, each element set off from the next as the cells of a table are."""
    parts = [words_of(child) if hasattr(child, "tag") else child for child in tree.children]
    return " ".join(parts)


@draws.in_turn("rows of ways")
@pytest.mark.parametrize(
    ("made", "name"),
    [
        (made, name)
        for made in WORLDS
        for name, row in ROWS.items()
        if made == "crowded" or not (row.is_about_crowd or row.is_of_few)
    ],
)
async def test_text_json_and_page_carry_the_same_facts(made, name):
    row = ROWS[name]
    store = await stored(WORLDS[made]())
    async with (
        listening(store) as url,
        httpx.AsyncClient(base_url=url, timeout=PATIENCE_SECONDS) as client,
    ):
        if name == "diff":
            await client.post(f"{BELOW}/fork", json={"name": "other", "at": "40"})
        if row.proposal is None:
            answer = await client.get(f"{BELOW}/{row.json}")
        else:
            answer = await client.post(f"{BELOW}/{row.json}", json=row.proposal)
        assert answer.status_code == 200, answer.text
        facts = [fact for fact in row.facts(answer.json()) if fact]
        assert bool(facts) != ((made, name) in WITHOUT_FACTS)
        if row.form is None:
            page = await ready(lambda: client.get(f"{UI}/{row.page}"))
        else:
            page = await client.post(f"{UI}/{row.page}", data=row.form, headers={"origin": url})
        assert page.status_code == 200, page.text
        main = read(page.text).one("main")
        assert lacking(row, facts, f"{main.text} {words_of(main)}") == []
        if row.no_command:
            assert not row.command
            return
        wide = {"COLUMNS": "100000", "REDRA_BLAST_EXAMPLES_MAX": "1000"}
        code, text, error = await anyio.to_thread.run_sync(
            lambda: redra(*row.command, "--server", url, **wide)
        )
        assert code in (0, 1), error
        assert lacking(row, facts, text) == []


def runs_of(answer):
    """Each run as the line of a table."""
    for row in answer["result"]["rows"]:
        made_of = [
            row[name] for name in ("history", "profile", "gates", "quirks", "change", "seed")
        ]
        if row["problem"]:
            yield " ".join(map(str, filter(None, [*made_of[:-1], str(made_of[-1])])))
            yield row["problem"]
            continue
        result = [row[name] for name in ("placed", "waiting", "evicted", "boundMean")]
        known = [*made_of, *result, "memory 25.0%", row["differing"]]
        yield " ".join(str(one) for one in known if one != "")


async def test_text_json_and_page_of_a_sweep_carry_the_same_facts(tmp_path):
    rows = [
        run(0, "default", boundMean=1.234567),
        run(1, "default", profile="1.37", gates="DRADeviceTaints=false", quirks="c2=false", seed=3),
        run(2, "default", problem="no release has this gate"),
    ]
    worker = Worker()
    for _ in range(2):
        worker.end(outcome(*rows))
    plan = tmp_path / "plan.yaml"
    plan.write_text("histories: [default]\n")
    async with (
        listening(await stored(world()), worker=worker) as url,
        httpx.AsyncClient(base_url=url, timeout=PATIENCE_SECONDS) as client,
    ):
        body = {"plan": {"histories": ["default"]}}
        job = (await client.post("/redra/v1/sweep", json=body)).json()
        answer = (await client.get(f"{job['path']}?wait=60")).json()
        facts = list(runs_of(answer))
        assert len(facts) == 4
        page = await client.get(f"/ui/jobs/{answer['id']}")
        assert page.status_code == 200, page.text
        assert lacking(ROWS["map"], facts, words_of(read(page.text).one("main"))) == []
        code, text, error = await anyio.to_thread.run_sync(
            lambda: redra("sweep", plan, "-o", tmp_path / "out", "--server", url, COLUMNS="100000")
        )
        assert code == 1, error
        assert lacking(ROWS["map"], facts, text) == []
