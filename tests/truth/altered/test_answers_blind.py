"""Answers about recordings that lack a kind, a body or a line name what they lack.

Every answer that is worked out from objects says that it is unsure, and of which kind; none denies
what the whole recording shows. Whole recordings are sure. Rows come by day.
"""

import msgspec
import pytest

from app.analysis.map_answers import DeviceMap
from app.cli.looking.showing import map_lines
from tests import draws
from tests.adversary.catalogue import QUICKSTART, TAINTS, TPU
from tests.adversary.log import Json
from tests.adversary.lossy import level
from tests.truth.altered.recorded import until
from tests.truth.altered.served import Served, served
from tests.truth.altered.test_why_blind import GROUPED, without

MOMENTS = {QUICKSTART: 295, TAINTS: 429, TPU: 240}
"""Moments at which pods wait and others run."""

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
    lines = map_lines(answer, "no pool", with_devices=False)
    assert lines[0] == f"no pool was recorded by revision {answer.revision}"
