"""From the landing page of an incident to its cause in three clicks, by following links."""

import re
from collections import deque
from functools import partial
from urllib.parse import urlencode

import pytest

from app.adapters.memory import MemoryLog, MemoryStore, MemoryWakeUp
from app.analysis.incidents.incident import IncidentVariant
from app.bootstrap.gallery import incident_files, playing
from app.cli.explaining import page, parts
from app.domain.log import Head
from tests import draws
from tests.api.serving import serving
from tests.web import (
    apart_incidents,
    asked_incidents,
    counted_incidents,
    deeper_incidents,
    field_incidents,
    invented,
    later_incidents,
    left_incidents,
    misplaced_incidents,
    mixed_incidents,
    more_incidents,
    night_incidents,
    node_incidents,
    overlooked_incidents,
    quiet_incidents,
    refused_incidents,
    reported_incidents,
    rollout_incidents,
    stranger_incidents,
    thread_incidents,
    walked_incidents,
    withdrawn_incidents,
)
from tests.web.reading import read

HOME = "/ui/h/default/"
CLICKS_MAX = 3
PAGES_MAX = 60
FOLLOWED = re.compile(r"/(why|object|scan)(\?|$)")

SHOWN_AS = {
    "alternatives-are-not-scored": "could be had on node n2",
    "attribute-without-its-domain": "has no attribute resource.kubernetes.io/pcieRoot",
    "claim-waits-for-a-pod": "a claim gets its devices only with a pod",
    "common-values-stay-narrow": "upstream's defect",
    "counters-stay-booked": "counters stay booked when a device is refused for a taint",
    "device-name-in-two-slices": "duplicate device name gpu-0",
    "no-preemption-for-devices": "gpu-0: allocated to default/a",
    "patch-with-a-failing-selector": "patch shelf changes nothing on 1 device",
    "tolerated-taint-is-cancelled": "tolerated until",
    "tolerated-time-starts-anew": "has begun anew",
}
"""Words that tell the cause of incidents that no page names by number or name."""

NOT_ON_PAGES = {
    "admin-access-needs-a-label": "the API told the cause to who sent the claim and kept nothing: "
    "there is no object that a page could be about",
}
"""Incidents whose cause no page within three clicks tells, and why."""


def played(incident):
    """The events of the incident as it goes wrong."""
    return list(playing.play(incident, IncidentVariant.BROKEN).events)


async def stored(incident):
    """The played incident as a history that can be served."""
    store = MemoryStore()
    log = MemoryLog(store, MemoryWakeUp().grown)
    info = await log.create_history(
        "default", seed=0, settings=incident.cluster.settings(), created=playing.START,
        hash=Head().hash,
    )  # fmt: skip
    await log.append(info.id, expected=Head(), events=played(incident))
    return store


def names_cause(name, incident, text):
    """Whether a page names the incident, its number, its cause or its message."""
    numbers = [number.strip() for number in incident.number.split(",") if number.strip()]
    said = [" ".join(fact.says.split()) for fact in incident.finding if fact.says]
    words = [name, *said, *([SHOWN_AS[name]] if name in SHOWN_AS else [])]
    is_numbered = any(re.search(rf"\b{number}\b", text, re.IGNORECASE) for number in numbers)
    return is_numbered or any(word in text for word in words)


async def clicks_to_the_cause(server, names_the_cause):
    """How many links lead from the landing page to a page whose text names the cause.

    None when they are too many.
    """
    clicks, waiting = {HOME: 0}, deque([HOME])
    while waiting:
        url = waiting.popleft()
        answer = await server.raw("GET", url)
        if answer.status_code == 404:
            continue
        assert answer.status_code == 200, (url, answer.text)
        main = read(answer.text).one("main")
        if names_the_cause(main.text):
            return clicks[url]
        if clicks[url] == CLICKS_MAX:
            continue
        for link in main.links:
            if FOLLOWED.search(link) and link not in clicks and len(clicks) < PAGES_MAX:
                clicks[link] = clicks[url] + 1
                waiting.append(link)
    return None


@draws.in_turn("rows of ways")
@pytest.mark.parametrize("name", incident_files.names())
async def test_cause_is_three_clicks_from_the_landing_page(name):
    incident = incident_files.read(name).incident
    async with serving(store=await stored(incident)) as server:
        clicks = await clicks_to_the_cause(server, partial(names_cause, name, incident))
    if name in NOT_ON_PAGES:
        assert clicks is None, "it is told now: take it from the table"
    else:
        assert clicks is not None
        assert clicks <= CLICKS_MAX


@draws.in_turn("rows of clicks")
@pytest.mark.parametrize(
    "make",
    [
        *invented.INVENTED,
        *more_incidents.MORE,
        *later_incidents.LATER,
        *field_incidents.FIELD,
        *reported_incidents.REPORTED,
        *night_incidents.NIGHT,
        *walked_incidents.WALKED,
        *deeper_incidents.DEEPER,
        *rollout_incidents.ROLLOUTS,
        *mixed_incidents.MIXED,
        *node_incidents.NODES,
        *refused_incidents.REFUSED,
        *counted_incidents.COUNTED,
        *misplaced_incidents.MISPLACED,
        *quiet_incidents.QUIET,
        *asked_incidents.ASKED,
        *thread_incidents.THREADS,
        *apart_incidents.APART,
        *apart_incidents.CROWDED,
        *overlooked_incidents.OVERLOOKED,
        *overlooked_incidents.PLACED,
        *withdrawn_incidents.WITHDRAWN,
        *stranger_incidents.STRANGERS,
        *stranger_incidents.TOLD,
    ],
    ids=lambda make: make.__name__,
)
@pytest.mark.parametrize("seed", [1, draws.by_day(2)])
async def test_cause_of_an_incident_that_is_in_no_list_is_three_clicks_away(make, seed):
    made = make(invented.Names(seed))

    def names_the_cause(text):
        return all(re.search(part, text) for part in made.told)

    async with serving(store=await stored(made.incident())) as server:
        clicks = await clicks_to_the_cause(server, names_the_cause)
    assert clicks is not None
    assert clicks <= CLICKS_MAX


@pytest.mark.parametrize("make", apart_incidents.APART, ids=lambda make: make.__name__)
async def test_node_that_has_the_devices_comes_first_with_its_reason(make):
    """Also on the landing page."""
    made = make(invented.Names(5))
    async with serving(store=await stored(made.incident())) as server:
        asked = {"kind": "pod", "namespace": "lab", "name": made.about}
        answer = await server.get(f"/redra/v1/histories/default/why?{urlencode(asked)}")
        items = (await server.get("/redra/v1/histories/default/findings"))["items"]
    said = [" ".join(texts(one)) for one in answer["reasons"]["children"]]
    nodes = [text for text in said if re.match(r"(2 nodes \(.*?\)|\S+): ", text)]
    assert len(nodes) > 1
    assert [apart_incidents.WOULD_DO in one for one in nodes] == [one is nodes[0] for one in nodes]
    (item,) = (one for one in items if one["kind"] == "WaitingPods" and one["present"])
    assert apart_incidents.WOULD_DO in item["causes"][0]


async def test_reasons_about_other_objects_lead_to_the_reasons_of_these():
    made = apart_incidents.node_with_the_devices_has_no_cpu_left(invented.Names(5))
    async with serving(store=await stored(made.incident())) as server:
        asked = {"kind": "pod", "namespace": "lab", "name": "job"}
        page_of_pod = await server.raw("GET", f"{HOME}why?{urlencode(asked)}")
        links = read(page_of_pod.text).one("ul", "reasons").links
        there = [
            link for link in dict.fromkeys(links) if re.search(r"/why\?kind=(nodes|pods&)", link)
        ]
        pages = [read((await server.raw("GET", link)).text).one("h1").text for link in there]
    assert any(text.startswith("Why node full") for text in pages)
    # The pod that takes the cpu is not the one in question.
    assert any(text.startswith("Why pod lab/web") for text in pages)
    assert "Why pod lab/job" not in pages


@pytest.mark.parametrize("asked", ["device/{0}/n/x", "pool/{0}/n", "pod/job"])
async def test_each_link_of_a_page_of_reasons_leads_somewhere(asked):
    """Devices and pools are no objects: they have no page of their own, and no lanes."""
    driver = "d.test"
    steps = (
        {"apply": [*reported_incidents.lab(driver, reported_incidents.one(driver)),
                   invented.claim("want", "lab", invented.ask("c")),
                   invented.pod("job", "lab", claim="want")]},
        {"wait": 5},
    )  # fmt: skip
    made = invented.Invented(told=(), steps=steps)
    kind, _, name = asked.format(driver).partition("/")
    async with serving(store=await stored(made.incident())) as server:
        asked_for = {"kind": kind, "namespace": "lab", "name": name}
        answer = await server.raw("GET", f"{HOME}why?{urlencode(asked_for)}")
        assert answer.status_code == 200
        links = [link for link in read(answer.text).one("main").links if link.startswith(HOME[:-1])]
        states = {link: (await server.raw("GET", link)).status_code for link in links}
    assert set(states.values()) == {200}, states


async def test_device_whose_sharing_has_ended_is_not_the_defect_of_a_device_in_two_claims():
    made = night_incidents.driver_ends_the_sharing_of_a_device(invented.Names(1))
    async with serving(store=await stored(made.incident())) as server:
        assert (await server.get("/redra/v1/histories/default/scan"))["items"] == []


TOLD_OF_PODS = [
    *more_incidents.MORE,
    *(make for make in later_incidents.LATER if make(invented.Names(3)).about),
    *field_incidents.FIELD,
    *reported_incidents.REPORTED,
    *(make for make in night_incidents.NIGHT if make(invented.Names(3)).about),
    *walked_incidents.WALKED,
    *walked_incidents.RUNNING,
    *deeper_incidents.DEEPER,
    *rollout_incidents.ROLLOUTS,
    *mixed_incidents.MIXED,
    *node_incidents.NODES,
    *refused_incidents.REFUSED,
    *counted_incidents.COUNTED,
    *misplaced_incidents.MISPLACED,
    *quiet_incidents.QUIET,
    *asked_incidents.ASKED,
    *apart_incidents.APART,
    *apart_incidents.CROWDED,
    *overlooked_incidents.OVERLOOKED,
    *overlooked_incidents.PLACED,
    *withdrawn_incidents.WITHDRAWN,
    *stranger_incidents.STRANGERS,
    *stranger_incidents.TOLD,
    *left_incidents.TOLD,
]


@draws.in_turn("rows of ways")
@pytest.mark.parametrize("make", TOLD_OF_PODS, ids=lambda make: make.__name__)
async def test_cause_of_an_incident_is_in_text_and_json(make):
    made = make(invented.Names(3))
    async with serving(store=await stored(made.incident())) as server:
        kind, _, name = made.about.rpartition("/")
        asked = {"kind": kind or "pod", "namespace": "lab", "name": name}
        answer = await server.get(f"/redra/v1/histories/default/why?{urlencode(asked)}")
    text = " ".join(line.strip("│├└─ ") for line in page(*parts(answer), 100))
    said = " ".join((answer["text"], *texts(answer["reasons"])))
    for part in made.told:
        assert re.search(part, text), text
        assert re.search(part, said), said


async def test_false_part_of_a_selector_is_marked():
    made = later_incidents.selector_is_false_in_its_middle(invented.Names(1))
    async with serving(store=await stored(made.incident())) as server:
        answer = await server.raw("GET", f"{HOME}why?kind=pod&namespace=lab&name=job")
    main = read(answer.text).one("main")
    assert [mark.text for mark in main.all("mark")] == [made.told[0]]
    # The values below it do not repeat the part, which is marked right above.
    assert f"{made.told[0]} is false" not in main.text


async def test_summaries_of_reasons_hold_no_links():
    """A summary is a button: screen readers do not tell of links in it."""
    made = later_incidents.selector_is_false_in_its_middle(invented.Names(1))
    async with serving(store=await stored(made.incident())) as server:
        answer = await server.raw("GET", f"{HOME}why?kind=pod&namespace=lab&name=job")
    reasons = read(answer.text).one("ul", "reasons")
    (decided,) = (each for each in reasons.all("summary") if " decided " in each.text)
    revision = re.search(r"\(revision (\d+)", decided.text)[1]
    assert not [link for summary in reasons.all("summary") for link in summary.links]
    assert any(f"@{revision}/" in link for link in reasons.links)


async def test_recorded_decision_names_its_requests_and_leads_to_what_provoked_it():
    made = later_incidents.selector_is_false_in_its_middle(invented.Names(1))
    async with serving(store=await stored(made.incident())) as server:
        answer = await server.raw("GET", f"{HOME}why?kind=pod&namespace=lab&name=job")
        recorded = read(answer.text).one("aside")
        (link,) = recorded.links
        provoked = read((await server.raw("GET", link)).text).one("span", "shown").text
    assert "claim lab/want, request dev" in recorded.text
    assert re.search(r"revision (\d+)", recorded.text)[1] in provoked


def texts(reason):
    """What a tree of reasons says, line by line."""
    yield reason["text"]
    for child in reason.get("children", ()):
        yield from texts(child)


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_nothing_is_wrong_in_a_healthy_cluster(seed):
    made = invented.healthy(invented.Names(seed))
    async with serving(store=await stored(made.incident())) as server:
        history = "/redra/v1/histories/default"
        found = await server.get(f"{history}/findings")
        assert found["items"] == []
        assert (await server.get(f"{history}/scan"))["items"] == []
        pods = (await server.get("/api/v1/pods"))["items"]
    assert [bool(pod["spec"].get("nodeName")) for pod in pods] == [True] * 6


@draws.in_turn("ways")
@pytest.mark.parametrize(
    ("name", "pod", "issue"),
    [
        ("allocation-without-a-time", "web", "C13"),
        ("too-many-consumers", "last", "C14"),
        ("one-error-ends-all", "web", "C16"),
        ("claim-named-twice", "web", "C18"),
        ("scoring-fails-for-shared-claims", "second", "R2"),
    ],
)
async def test_page_of_a_waiting_pod_names_the_known_issue(name, pod, issue):
    incident = incident_files.read(name).incident
    async with serving(store=await stored(incident)) as server:
        answer = await server.raw("GET", f"/ui/h/default/why?kind=pod&namespace=default&name={pod}")
    assert answer.status_code == 200
    assert re.search(rf"known issues? .*\b{issue}\b", read(answer.text).one("main").text)
