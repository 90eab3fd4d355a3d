"""Answers about recordings that lack a kind, a body or a line name what they lack.

Every answer that is worked out from objects says that it is unsure, and of which kind; none denies
what the whole recording shows. Whole recordings are sure. Rows come by day.
"""

import random
import re
from collections.abc import Iterable
from urllib.parse import urlencode

import msgspec
import pytest

from app.analysis.findings import pods
from app.analysis.map_answers import DeviceMap
from app.cli.looking.showing import map_lines
from tests import draws
from tests.adversary.catalogue import QUICKSTART, TAINTS, TPU
from tests.adversary.log import Json, Log
from tests.adversary.lossy import level
from tests.truth.altered.lines import state
from tests.truth.altered.recorded import condition_of, until
from tests.truth.altered.served import BELOW, Served, served
from tests.truth.altered.test_why_blind import DENIAL, GROUPED, without
from tests.truth.facts import Facts
from tests.truth.raw import Key
from tests.truth.states.comparing import sentences

MOMENTS = {QUICKSTART: 295, TAINTS: 429, TPU: 240}
"""Moments at which pods wait and others run."""

JUDGED = ("resourceslices", "devicetaintrules", "deviceclasses", "nodes", "resourceclaims")
KINDS = ("resourceslices", "deviceclasses", "resourceclaims", "nodes", "pods")
QUESTIONS = ("map", "lanes", "capacity", "findings")


def named(answer: Json) -> set[str]:
    """The kinds whose content an answer doubts."""
    return {one["kind"] for one in answer["doubts"] if one["affects"] == "content"}


async def doubted(history: Served, question: str) -> tuple[str, set[str]]:
    """The certainty of an answer, and the kinds that it doubts."""
    answer = await history.ask(question)
    return answer["certainty"], named(answer)


@draws.BY_DAY
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MOMENTS)
async def test_answers_name_the_kind_that_was_not_recorded(name, kind, tmp_path):
    log = without(until(name, MOMENTS[name]), kind)
    async with served(log, tmp_path) as history:
        for question in QUESTIONS:
            certainty, kinds = await doubted(history, question)
            assert (certainty, GROUPED[kind] in kinds) == ("unsure", True), question


async def test_eviction_for_a_rule_that_nobody_recorded_makes_answers_unsure(tmp_path):
    """Nothing tells that rules are left out but what they did: devices may be tainted still."""
    log = without(until(TAINTS, MOMENTS[TAINTS]), "devicetaintrules")
    async with served(log, tmp_path) as history:
        for question in ("map", "lanes", "findings"):
            answer = await history.ask(question)
            assert answer["certainty"] == "unsure", question
            assert [one for one in answer["doubts"] if "is evicted for a taint" in one["text"]]


@draws.BY_DAY
@pytest.mark.parametrize("name", MOMENTS)
async def test_answers_about_whole_recordings_are_sure(name, tmp_path):
    async with served(until(name, MOMENTS[name]), tmp_path) as history:
        for question in QUESTIONS:
            assert await doubted(history, question) == ("sure", set()), question


@draws.BY_DAY
@pytest.mark.parametrize("to", ["Request", "Metadata"])
@pytest.mark.parametrize("name", MOMENTS)
async def test_answers_about_recordings_without_bodies_are_unsure(name, to, tmp_path):
    log = until(name, MOMENTS[name]).copy()
    level(to, lambda line: True)(log)
    async with served(log, tmp_path) as history:
        for question in QUESTIONS:
            certainty, kinds = await doubted(history, question)
            assert certainty == "unsure", question
            assert GROUPED["pods"] in kinds, question


async def test_map_of_unrecorded_claims_says_so_in_text_and_on_its_page(tmp_path):
    log = without(until(QUICKSTART, MOMENTS[QUICKSTART]), "resourceclaims")
    async with served(log, tmp_path) as history:
        answer = msgspec.convert(await history.ask("map"), DeviceMap)
        lines = map_lines(answer, "no pool", with_devices=False)
        page = (await history.server.raw("GET", "/ui/h/default/map")).text
        lanes = (await history.server.raw("GET", "/ui/h/default/lanes")).text
    assert [one for one in lines if "resourceclaims: none was recorded" in one]
    assert "resourceclaims: none was recorded" in page
    assert "resourceclaims: none was recorded" in lanes


async def test_map_of_unrecorded_slices_does_not_say_that_none_is_published(tmp_path):
    log = without(until(QUICKSTART, MOMENTS[QUICKSTART]), "resourceslices")
    async with served(log, tmp_path) as history:
        answer = msgspec.convert(await history.ask("map"), DeviceMap)
    assert {one.state for one in answer.pools} == {"unpublished"}
    assert {each.state for one in answer.pools for each in one.devices} == {"unpublished"}
    for pools in (answer.pools, ()):
        shown = msgspec.structs.replace(answer, pools=pools)
        lines = map_lines(shown, "no pool", with_devices=False)
        assert any(line.startswith("unsure: ") for line in lines)
        assert pools or lines[0] == f"no pool was recorded by revision {answer.revision}"


DENIALS = re.compile(
    DENIAL.pattern + r"|\bno (slice|pod|claim|driver|device|allocated claim|claim on)\b|nobody\b"
    r"|\bfree now|is there\b"
)
"""The words in which an answer denies an object, or says that nobody has a device."""

BLIND = {
    "resourceslices": r"slice|publish|no driver|no device can",
    "resourceclaims": r"claim|free now|nobody",
    "deviceclasses": r"class",
    "nodes": r"\bno node|\bnodes? .*(does not exist|is gone)|there is none",
    "pods": r"\bno pod|\bpods: none|\bpod .*(does not exist|is gone)",
}
"""What a denial is about that a recording without a kind cannot know."""


def denials(texts: Iterable[str], kind: str) -> list[str]:
    """The denials of what objects of a kind may be, without what the recording cites."""
    return [
        one
        for one in texts
        if DENIALS.search(one)
        and re.search(BLIND[kind], one)
        and not re.search(r"the recorded scheduler said|recorded|unsure", one)
    ]


def objects(facts: Facts) -> list[Key]:
    keys = [("device", "", "/".join(id)) for id in facts.devices]
    keys += [("pool", "", "/".join(place)) for place in facts.pools]
    return sorted([*keys, *(key for key in facts.state if key[0] in JUDGED)])


@draws.BY_DAY
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MOMENTS)
async def test_nothing_is_denied_that_was_not_recorded(name, kind, tmp_path):
    whole = until(name, MOMENTS[name])
    keys = objects(Facts(state(whole.lines)))
    wrong: list[str] = []
    async with served(without(whole, kind), tmp_path) as history:
        items = (await history.ask("findings"))["items"]
        said = {line["text"] for line in items if line["kind"] != "KnownIssue"}
        said |= {cause for line in items for cause in line["causes"]}
        recorded = {one for one in said if one.partition(": ")[2] in refusals_of(whole)}
        wrong += denials(said - recorded, kind)
        for key in random.Random(f"{name} {kind}").sample(keys, min(12, len(keys))):
            wrong += [f"why {key[0]} {key[2]}: {one}" for one in await why(history, key, kind)]
    assert wrong == []


async def why(history: Served, key: Key, kind: str) -> list[str]:
    """What `why` denies of an object; one that is not found is doubted."""
    query = urlencode({"kind": key[0], "namespace": key[1], "name": key[2], "at": history.revision})
    answer = await history.server.raw("GET", f"{BELOW}/why?{query}")
    body = answer.json()
    if answer.status_code == 404:
        return [] if "unsure: " in body["message"] else [body["message"]]
    own = [body["text"], *sentences(body["reasons"])]
    return [*([] if body["certainty"] == "unsure" else ["it is sure"]), *denials(own, kind)]


def refusals_of(log: Log) -> set[str]:
    """The causes that the scheduler of the recording wrote itself."""
    said: set[str] = set()
    for message in filter(None, map(condition_of, log.lines)):
        said |= {message, pods.first_cause(message)}
    return said
