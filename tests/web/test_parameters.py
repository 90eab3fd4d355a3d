"""What stands in the address of a page is read, shown or refused: nothing is passed over."""

import re
from urllib.parse import quote

import pytest

from app.api.ui import parameters, routes
from tests import draws
from tests.api.serving import pod, serving
from tests.web.planted import PODS
from tests.web.reading import read

JUNK = "fo~o"
SUBJECT = {"kind": "pods", "namespace": "default", "name": "w"}
VALID = {
    "again": {"by": "outcomes"},
    "attempts": SUBJECT,
    "blast": {"kind": "devicetaintrule", "name": "all"},
    "compare": {"with": "default"},
    "object": SUBJECT,
    "rehearsal": {"to": "1.36"},
    "why": SUBJECT,
}
"""What a page needs beside the parameter that is tried."""

PAGES = sorted(parameters.NAMES)


def address(part, moment="", **values):
    text = "&".join(f"{name}={quote(value)}" for name, value in values.items())
    at = f"@{quote(moment)}" if moment else ""
    return f"/ui/h/default{at}/{'' if part == routes.LANDING else part}?{text}"


async def ask(server, url):
    answer = await server.raw("GET", url)
    return answer.status_code, read(answer.text)


def test_every_page_has_its_parameters_in_the_table():
    assert set(PAGES) == {*routes._PARTS, routes.LIVE}


@draws.in_turn("rows of refusals")
@pytest.mark.parametrize("part", PAGES)
async def test_parameter_that_a_page_does_not_read_is_refused(part):
    async with serving() as server:
        await server.post(PODS, pod("w"))
        strangers = {"at", "nonsense"} | {
            name for names in parameters.NAMES.values() for name in names
        } - set(parameters.NAMES[part])  # fmt: skip
        for name in sorted(strangers):
            url = address(part, **VALID.get(part, {}), **{name: "1"})
            code, shown = await ask(server, url)
            assert code == 400, url
            assert f'"{name}"' in shown.one("main").text, url


@draws.in_turn("rows of refusals")
@pytest.mark.parametrize(
    ("part", "name"), [(part, name) for part in PAGES for name in parameters.NAMES[part]]
)
async def test_value_that_cannot_be_meant_is_refused_or_shown(part, name):
    async with serving() as server:
        await server.post(PODS, pod("w"))
        url = address(part, **VALID.get(part, {}) | {name: JUNK})
        code, shown = await ask(server, url)
        main = shown.one("main")
        inputs = {field.attributes.get("value") for field in main.all("input")}
        if code == 200:
            assert JUNK in inputs or JUNK in main.text, f"{url} is passed over"
        else:
            assert code in (400, 404), url
            assert JUNK in main.text, f"{url}: {main.text}"


@draws.in_turn("rows of refusals")
@pytest.mark.parametrize("moment", [JUNK, "999999", "2026-99-99", "-5 parsecs"])
@pytest.mark.parametrize("part", PAGES)
async def test_moment_that_is_none_is_refused_with_its_text(part, moment):
    async with serving() as server:
        await server.post(PODS, pod("w"))
        needed = VALID.get(part, {}) if part != "blast" else {}
        code, shown = await ask(server, address(part, moment, **needed))
        assert code in (400, 404)
        assert re.search(r"moment|revision|there is no", shown.one("main").text)


async def test_list_of_histories_has_no_parameters():
    async with serving() as server:
        code, shown = await ask(server, "/ui/?since=foo")
        assert code == 400
        assert '"since"' in shown.one("main").text


@pytest.mark.parametrize("name", ["by", "within", "withAt"])
async def test_parameter_of_a_comparison_with_nothing_is_refused(name):
    async with serving() as server:
        await server.post(PODS, pod("w"))
        code, shown = await ask(server, address("compare", **{name: "1"}))
        assert code == 400
        assert f'"{name}" has no effect without "with"' in shown.one("main").text
