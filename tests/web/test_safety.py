"""Pages hold no markup but ours, load nothing from elsewhere, and open nothing that JSON closes."""

import re
from functools import partial
from urllib.parse import quote

import pytest

from app.domain.log import ObjectKey
from app.domain.values.texts import visible_text
from app.web.assets import all_assets
from tests import draws
from tests.api.serving import CONFIG_MAPS, pod, serving
from tests.api.test_readers import (
    READERS,
    WHY,
    filled,
    found_in,
    headers,
)
from tests.web.planted import PODS, note_fact
from tests.web.reading import read, ready

HOSTILE = "<script src=//evil.example></script><img src=x onerror=alert(1)>\"'`{{7*7}}&lt;b&gt;"
PAGES = (
    "",
    "lanes",
    "map",
    "timeline",
    "find?q=p",
    "object?kind=pod&name=p",
    "why?kind=pod&name=p",
)
TAGS = {
    "html", "head", "meta", "title", "link", "script", "body", "a", "header", "div", "span", "nav",
    "form", "label", "input", "kbd", "button", "strong", "time", "main", "h1", "h2", "p", "ol",
    "ul", "li", "footer", "table", "thead", "tbody", "tr", "th", "td", "select", "option",
    "section", "aside", "dl", "dt", "dd", "details", "summary", "ins", "del", "code", "svg", "g",
    "rect", "line", "polygon", "path", "text", "tspan", "br", "wbr", "defs", "pattern", "article",
    "h3", "noscript", "textarea",
}  # fmt: skip


def check(html):
    """Raise when a page holds what none of ours does."""
    root = read(html)
    scripts = root.all("script")
    assert len(scripts) == 1
    assert not scripts[0].text
    for node in root:
        assert not node.tag or node.tag in TAGS, node.tag
        assert not [name for name in node.attributes if name.startswith("on") or name == "style"]
        for name in ("href", "src", "action", "xlink:href"):
            address = node.attributes.get(name, "/")
            assert address.startswith(("/", "#", "?")), address
            assert not address.startswith("//"), address
    return root


@pytest.mark.parametrize("part", PAGES)
async def test_markup_in_objects_stays_text(part):
    async with serving() as server:
        tree = pod("p", nodeSelector={"x": "y"})
        tree["metadata"]["annotations"] = {"note": HOSTILE, "example.com/a": HOSTILE}
        await server.post(PODS, tree)
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        status = {"status": {"conditions": [{**condition, "message": HOSTILE}]}}
        await server.patch(f"{PODS}/p/status", status)
        event = {
            "metadata": {"name": "e"}, "type": "Warning", "reason": HOSTILE, "message": HOSTILE,
            "involvedObject": {"kind": HOSTILE, "namespace": HOSTILE, "name": HOSTILE},
        }  # fmt: skip
        await server.post("/api/v1/namespaces/default/events", event)
        answer = await server.raw("GET", f"/ui/h/default/{part}")
        assert answer.status_code == 200, answer.text
        root = check(answer.text)
        if part in ("", "timeline", "object?kind=pod&name=p"):
            assert " ".join(HOSTILE.split()) in root.one("main").text


@pytest.mark.parametrize(
    "part", ["find?q=", "timeline?text=", "timeline?kind=", "object?kind=pod&name="]
)
async def test_markup_in_addresses_stays_text(part):
    async with serving() as server:
        answer = await server.raw("GET", f"/ui/h/default/{part}{quote(HOSTILE)}")
        assert "evil.example" in answer.text
        check(answer.text)
        assert "<script src=//" not in answer.text


ACTING = "a\N{RIGHT-TO-LEFT OVERRIDE}b\N{ZERO WIDTH SPACE}\x9bc"
SPELT_OUT = r"a\u202eb\u200b\x9bc"


@pytest.mark.parametrize("part", ["", "timeline", "object?kind=pod&name=p"])
async def test_characters_that_act_on_others_are_spelt_out(part):
    async with serving() as server:
        tree = pod("p", nodeSelector={"x": "y"})
        tree["metadata"]["annotations"] = {"note": ACTING}
        await server.post(PODS, tree)
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        status = {"status": {"conditions": [{**condition, "message": ACTING}]}}
        await server.patch(f"{PODS}/p/status", status)
        event = {
            "metadata": {"name": "e"}, "type": "Warning", "reason": ACTING, "message": ACTING,
            "involvedObject": {"kind": "Pod", "namespace": "default", "name": ACTING},
        }  # fmt: skip
        await server.post("/api/v1/namespaces/default/events", event)
        answer = await server.raw("GET", f"/ui/h/default/{part}")
        assert answer.status_code == 200, answer.text
        assert visible_text.visible(answer.text) == answer.text
        assert SPELT_OUT in answer.text


@pytest.mark.parametrize("field", ["timeline?text", "lanes?name", "pace?name"])
async def test_fields_hold_what_was_typed_and_texts_show_it(field):
    async with serving() as server:
        answer = await server.raw("GET", f"/ui/h/default/{field}={quote(ACTING)}")
        fields = [node.attributes.get("value") for node in read(answer.text).all("input")]
        assert ACTING in fields
        rest = answer.text.replace(f'value="{ACTING}"', "")
        assert visible_text.visible(rest) == rest


async def test_names_of_histories_and_parts_are_escaped():
    async with serving() as server:
        for path in (
            f"/ui/h/{quote(HOSTILE, safe='')}/",
            f"/ui/h/default/{quote(HOSTILE, safe='')}",
        ):
            answer = await server.raw("GET", path)
            assert answer.status_code in (400, 404)
            assert "<img" not in answer.text


async def test_address_of_a_moment_holds_no_second_header():
    async with serving() as server:
        path = "/ui/h/default/timeline?moment=1%0d%0aset-cookie:%20a=b&text=%0d%0ay"
        answer = await server.raw("GET", path)
        assert answer.status_code == 303
        assert "set-cookie" not in answer.headers
        assert "\n" not in answer.headers["location"]


@pytest.mark.parametrize("path", ["/ui/", "/ui/h/default/", "/ui/h/none/", "/ui/h/default/why"])
async def test_policy_forbids_everything_foreign(path):
    async with serving() as server:
        answer = await server.raw("GET", path)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"


async def test_files_of_pages_are_ours_and_small():
    async with serving() as server:
        scripts = 0
        for name, asset in all_assets().items():
            answer = await server.raw("GET", asset.url)
            assert answer.content == asset.content
            assert "immutable" in answer.headers["cache-control"]
            text = answer.text.replace("http://www.w3.org/2000/svg", "")
            assert not re.search(r"https?://|//[a-z]+\.[a-z]", text), name
            scripts += text.count("\n") if name.endswith(".js") else 0
        assert scripts <= 1_200
        assert (await server.raw("GET", "/ui/static/none.js")).status_code == 404
        assert (await server.raw("GET", "/ui/static/%2e%2e/frame.py")).status_code in (400, 404)


JSON_OF = {
    "": "findings",
    "findings": "findings",
    "lanes": "lanes",
    "map": "map",
    "timeline?decisions=true": "timeline?decisions=true",
    "find?q=-": "find?q=-",
    WHY: WHY,
    "object?kind=pod&namespace=lab&name=p-lab": "object?kind=pod&namespace=lab&name=p-lab",
    "object?kind=secret&namespace=lab&name=s-lab": "object?kind=secret&namespace=lab&name=s-lab",
    "object?kind=secret&namespace=other&name=s-other":
        "object?kind=secret&namespace=other&name=s-other",
    "object?kind=node&name=node-one": "object?kind=node&name=node-one",
    "attempts?kind=pod&namespace=lab&name=p-lab": "attempts?kind=pod&namespace=lab&name=p-lab",
    "pace": "pace",
    "scan": "scan",
    "lint": "lint",
    "compare?with=one&by=objects": "diff?with=one&by=objects",
    "compare?with=default": "diff?with=default",
    "rehearsal?to=1.36": "rehearsal?to=1.36",
    "again?by=outcomes": "again?by=outcomes",
    "blast?kind=devicetaintrule&name=rule-one": "blast?kind=devicetaintrule&name=rule-one",
}  # fmt: skip
"""Pages and the answers that they show."""


@draws.in_turn("ways")
@pytest.mark.parametrize("reader", READERS)
async def test_page_opens_and_shows_what_its_answer_does(reader):
    async with filled() as server:
        for history in ("one", "default"):
            for part, answer in JSON_OF.items():
                json = await server.raw(
                    "GET", f"/redra/v1/histories/{history}/{answer}", **headers(reader)
                )
                path = f"/ui/h/{history}/{part}"
                page = await ready(partial(server.raw, "GET", path, **headers(reader)))
                assert page.status_code == json.status_code, (part, page.text, json.text)
                if page.status_code == 200:
                    main = read(page.text).one("main").text
                    assert found_in(main) == found_in(json.text), (part, main, json.text)
                    assert found_in(page.text) <= found_in(json.text) | found_in(part)


@draws.in_turn("ways")
@pytest.mark.parametrize("reader", READERS)
async def test_index_lists_what_its_answer_lists(reader):
    async with filled() as server:
        json = await server.raw("GET", "/redra/v1/histories", **headers(reader))
        page = await server.raw("GET", "/ui/", **headers(reader))
        assert page.status_code == json.status_code
        if json.status_code == 200:
            names = [row.one("th").text for row in read(page.text).one("tbody").all("tr")]
            assert names == [item["name"] for item in json.json()["items"]]


async def test_pages_need_a_name_where_answers_do():
    async with filled() as server:
        for path in ("/ui/", "/ui/h/one/", "/ui/h/none/", "/ui/h/one/timeline"):
            assert (await server.raw("GET", path)).status_code == 401


@pytest.mark.parametrize(
    "path", ["//ui/h/one/", "/ui//h/one/timeline", "/ui/h//one", "/uih/one", "/ui/x"]
)
async def test_other_ways_to_write_a_page_open_nothing(path):
    async with filled() as server:
        answer = await server.raw("GET", path, **headers("ann"))
        assert answer.status_code in (403, 404), answer.text
        assert not found_in(answer.text)


async def test_report_of_a_fact_is_escaped():
    async with serving() as server:
        await server.post(CONFIG_MAPS, {"metadata": {"name": "m"}, "data": {}})
        key = ObjectKey("redra", "gaps", "", "x")
        await note_fact(server, type="GapObserved", key=key, body={"message": HOSTILE})
        root = check((await server.raw("GET", "/ui/h/default/timeline")).text)
        assert " ".join(HOSTILE.split()) in root.one("main").text
