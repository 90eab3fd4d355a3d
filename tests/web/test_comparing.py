"""Two releases, two histories: where they part first stands on top, with the reasons of both."""

import re

import pytest

from app.adapters.memory import MemoryLog, MemoryStore, MemoryWakeUp
from app.analysis.incidents.incident import IncidentVariant
from app.bootstrap.gallery import incident_files, playing
from app.domain.log import Head
from tests.api.serving import serving
from tests.web.reading import read

JSON = "/redra/v1/histories"


async def both_variants(name):
    """The played incident with its defect and without, as histories of these names."""
    incident, store = incident_files.read(name).incident, MemoryStore()
    log = MemoryLog(store, MemoryWakeUp().grown)
    for variant in IncidentVariant:
        info = await log.create_history(
            str(variant), seed=0, settings=incident.cluster_of(variant).settings(),
            created=playing.START, hash=Head().hash,
        )  # fmt: skip
        events = list(playing.play(incident, variant).events)
        await log.append(info.id, expected=Head(), events=events)
    return store


async def main_of(server, path):
    answer = await server.raw("GET", path)
    assert answer.status_code == 200, answer.text
    return read(answer.text).one("main")


def history_of(link):
    return re.match("/ui/h/([^@/]+)", link)[1]


def texts_of(reason):
    return [
        reason["text"],
        *(text for each in reason.get("children", ()) for text in texts_of(each)),
    ]


@pytest.mark.parametrize(
    ("name", "pod", "nodes"),
    [
        ("alternatives-are-not-scored", "web", ("n1", "n2")),
        ("patch-with-a-failing-selector", "web", ("", "n1")),
    ],
)
async def test_first_difference_has_the_reasons_of_both_sides(name, pod, nodes):
    async with serving(store=await both_variants(name)) as server:
        main = await main_of(server, "/ui/h/broken/compare?with=repaired")
        sides = main.one(class_="pair").all("section")
        assert len(sides) == 2
        order = [one.text for one in main.all("h2")]
        assert order[0] == "First difference"
        assert order[-1] == "Compare with something else"
        for side, node, history in zip(sides, nodes, ("broken", "repaired"), strict=True):
            assert f"pod default/{pod}" in side.text
            assert (f"runs on {node}" if node else "waits") in side.one("p", "facts").text
            (link,) = [link for link in side.links if "/why" in link and "kind=pods" in link][:1]
            moment = re.search(rf"/h/{history}@(\d+)/why", link)[1]
            query = f"why?kind=pod&namespace=default&name={pod}&at={moment}"
            answer = await server.get(f"{JSON}/{history}/{query}")
            for text in texts_of(answer["reasons"])[1:]:
                assert " ".join(text.split()) in side.text
        # What follows stands below the trees, and nothing of the comparison is lost.
        report = await server.get(f"{JSON}/broken/diff?with=repaired")
        for each in report["differences"]:
            assert each["subject"].removeprefix("pods/") in main.text
        headings = [each.text for each in main.all("h2")]
        assert headings[:2] == [
            "First difference", "First differences, and what follows from each",
        ]  # fmt: skip


async def test_pod_that_only_one_side_evicts_is_asked_when_it_is_evicted():
    async with serving(store=await both_variants("tolerations-not-copied")) as server:
        main = await main_of(server, "/ui/h/broken/compare?with=repaired")
        evicted, spared = (side.text for side in main.one(class_="pair").all("section"))
        assert " evicted on " in evicted
        assert "DeletionByDeviceTaintManager" in evicted
        assert "tainted" in evicted
        assert " runs on " in spared
        assert "has not started" not in spared
        report = await server.get(f"{JSON}/broken/diff?with=repaired")
        (pod,) = [each["a"] for each in report["differences"] if "spared" in each["classes"]]
        assert f"broken at revision {pod['evictedRevision']}" in evicted


async def test_what_is_said_of_a_side_leads_into_its_history():
    async with serving(store=await both_variants("tolerations-not-copied")) as server:
        for own, other in (("broken", "repaired"), ("repaired", "broken")):
            main = await main_of(server, f"/ui/h/{own}/compare?with={other}")
            sides = main.one(class_="pair").all("section")
            for side, history in zip(sides, (own, other), strict=True):
                assert any("/object?" in link for link in side.links)
                assert {history_of(link) for link in side.links} == {history}
                for link in side.links:
                    await main_of(server, link)


async def test_histories_that_are_the_same_part_nowhere():
    async with serving(store=await both_variants("claim-waits-for-a-pod")) as server:
        main = await main_of(server, "/ui/h/broken/compare?with=broken")
        assert main.one("p", "verdict").text.startswith("The same")
        assert not main.all(class_="pair")


async def test_release_is_compared_with_another_one():
    async with serving(store=await both_variants("alternatives-are-not-scored")) as server:
        main = await main_of(server, "/ui/h/broken/compare")
        (form,) = [each for each in main.all("form") if each.all("select", name="to")]
        assert form.attributes["action"] == "/ui/h/broken/rehearsal"
        releases = [each.attributes["value"] for each in form.all("option")]
        assert {"1.34", "1.35", "1.37"} <= set(releases)
        (chosen,) = [each for each in form.all("option") if "selected" in each.attributes]
        assert chosen.attributes["value"] == "1.37", "the newest one"
        form = (await main_of(server, "/ui/h/broken/rehearsal")).one("form")
        (chosen,) = [each for each in form.all("option") if "selected" in each.attributes]
        assert chosen.attributes["value"] == "1.37"
        answer = await server.get(f"{JSON}/broken/rehearsal?to=1.35")
        main = await main_of(server, "/ui/h/broken/rehearsal?to=1.35")
        assert answer["decisions"]["differences"], "the pod is placed otherwise in 1.35"
        for each in answer["decisions"]["differences"]:
            assert each["subject"].removeprefix("pods/") in main.text
        assert answer["outcome"] in main.one("p", "verdict").text.lower()


async def test_json_of_a_rehearsal_has_the_titles_of_incidents():
    async with serving(store=await both_variants("rules-not-seen")) as server:
        answer = await server.get(f"{JSON}/broken/rehearsal?to=1.37")
        (shown,) = answer["defects"]["shown"]
        incident = incident_files.read(shown["incident"]).incident
        assert (shown["number"], shown["title"]) == (incident.number, incident.title)
        assert shown["title"] != "rules-not-seen"
