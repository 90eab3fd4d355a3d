"""Each page shows what the JSON of the same question says: nothing else, nothing less."""

from types import SimpleNamespace

import pytest

from app.analysis.device_map import DeviceMapRequest
from app.analysis.explain.reasons import Reason
from app.analysis.map_answers import DeviceMap
from app.api.ui import responses
from app.domain.log.doubts import Affects, Doubt
from app.web.frame import PARTS, Frame, linked
from app.web.links import Links
from app.web.pages import devices, why
from tests import draws
from tests.api.serving import CLAIMS, claim, pod, serving
from tests.web.invented import slice_of
from tests.web.planted import PODS, plant
from tests.web.reading import Node, read

JSON = "/redra/v1/histories/default"
UI = "/ui/h/default"


async def page(server, path, code=200):
    answer = await server.raw("GET", path)
    assert answer.status_code == code, answer.text
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    return read(answer.text)


def place(one):
    return f"{one['namespace']}/{one['name']}" if one["namespace"] else one["name"]


@pytest.mark.parametrize("seed", range(6))
async def test_planted_troubles_are_found(seed):
    async with serving() as server:
        planted = await plant(server, seed)
        answer = await server.get(f"{JSON}/findings")
        items = {(item["kind"], item["text"].partition(": ")[2]): item for item in answer["items"]}
        for cause, names in planted.waiting.items():
            item = items.pop(("WaitingPods", cause))
            assert (item["count"], item["present"]) == (len(names), len(names))
            assert {one["name"] for one in item["objects"]} <= names
            assert item["severity"] == "error"
            assert 0 < item["first"] <= item["last"] <= answer["revision"]
        if planted.evicted:
            item = items.pop(("EvictedPods", "Drained: for repair"))
            assert item["count"] == len(planted.evicted)
        if planted.orphaned:
            item = items.pop(("StuckClaims", "reserved for a pod that does not exist"))
            assert {one["name"] for one in item["objects"]} == planted.orphaned
        found = [item for (kind, _), item in items.items() if kind == "UnusablePools"]
        assert sum(item["count"] for item in found) == len(planted.incomplete)
        others = {kind for kind, _ in items} - {"UnusablePools"}
        assert others <= {"BrokenInvariant", "DoubtedInvariant", "KnownIssue"}
        assert ("BrokenInvariant" in others) <= bool(planted.orphaned)


@pytest.mark.parametrize("seed", range(2))
async def test_findings_page_says_what_the_json_says(seed):
    async with serving() as server:
        await plant(server, seed)
        answer = await server.get(f"{JSON}/findings")
        shown = (await page(server, f"{UI}/")).one("ol", "findings").all("li", "finding")
        assert len(shown) == len(answer["items"])
        for node, item in zip(shown, answer["items"], strict=True):
            assert node.one("h2").text == item["text"]
            assert node.one("p", "severity").text == item["severity"]
            facts = node.one("p", "facts").text
            assert f"{item['count']} in all" in facts
            assert f"revision {item['first']}" in facts
            names = [link.one("span", "name").text for link in node.all("a", "object")]
            assert names == [place(one) for one in item["objects"]]


ADMIN_CLAIM = {
    "metadata": {"name": "watch"},
    "spec": {
        "devices": {
            "requests": [{"name": "r", "exactly": {"deviceClassName": "gpu", "adminAccess": True}}]
        }
    },
}


async def test_history_without_troubles_says_so():
    async with serving() as server:
        root = await page(server, f"{UI}/")
        assert "Nothing is wrong here." in root.one("main").text
        assert not root.all("li", "finding")
        nothing = "There is no pod, no claim and no ResourceSlice at this moment."
        assert nothing in root.one("main").text
        assert "every pool is complete" not in root.one("main").text
        published = slice_of("s", "d.test", "p", [{"name": "x"}], allNodes=True)
        await server.post("/apis/resource.k8s.io/v1/resourceslices", published)
        root = await page(server, f"{UI}/")
        assert nothing not in root.one("main").text
        assert "every pool is complete" in root.one("main").text


async def test_history_without_findings_says_that_refused_writes_are_in_none():
    """A claim without the label that it needs is refused: nobody but its sender sees why."""
    async with serving() as server:
        answer = await server.raw("POST", CLAIMS, ADMIN_CLAIM)
        assert answer.status_code == 422
        said = (await server.get(f"{JSON}/findings"))["unseen"]
        assert said.startswith("No refused write is in this history")
        for part in ("", "report"):
            text = read((await server.raw("GET", f"{UI}/{part}")).text).text
            assert said in text
        await server.post(PODS, pod("w"))
        assert (await server.get(f"{JSON}/findings"))["unseen"] == ""
        assert said not in (await page(server, f"{UI}/")).text


async def test_nothing_is_known_before_the_first_event():
    text = "nothing is known before revision 1, with which the history begins"
    async with serving() as server:
        answer = await server.get(f"{JSON}/findings?at=0")
        assert [item["text"] for item in answer["items"]] == [text]
        root = await page(server, f"{UI}@0/")
        (item,) = root.all("li", "finding")
        assert item.one("h2").text == text
        assert "ended" not in item.one("p", "facts").text
        assert "Nothing is wrong" not in root.one("main").text


async def test_pod_that_was_bound_waits_no_longer():
    async with serving() as server:
        await server.post(PODS, pod("w"))
        first = (await server.get(f"{JSON}/findings"))["items"]
        assert [(item["kind"], item["present"]) for item in first] == [("WaitingPods", 1)]
        body = {"target": {"kind": "Node", "name": "node-1"}, "metadata": {"name": "w"}}
        await server.post(f"{PODS}/w/binding", body)
        assert (await server.get(f"{JSON}/findings"))["items"] == []
        past = (await server.get(f"{JSON}/findings?at={first[0]['last']}"))["items"]
        assert [(item["kind"], item["present"]) for item in past] == [("WaitingPods", 1)]


@pytest.mark.parametrize("query", ["", "?kind=PodCreated", "?name=waits-0", "?text=uses+no+claims"])
async def test_timeline_page_has_the_rows_of_the_json(query):
    async with serving() as server:
        await plant(server, 1)
        answer = await server.get(f"{JSON}/timeline{query}")
        assert answer["items"]
        rows = (await page(server, f"{UI}/timeline{query}")).one("tbody").all("tr")
        shown = [[cell.text for cell in row.all("td")] for row in rows]
        told = [
            [str(item["revision"]), item["time"][:23].replace("T", " "), item["kind"]]
            for item in answer["items"]
        ]
        assert [cells[:3] for cells in shown] == told
        assert [cells[3].rpartition(" ")[2] for cells in shown] == [
            place(item) for item in answer["items"]
        ]
        assert [cells[4] for cells in shown] == [
            " ".join(item["text"].split()) for item in answer["items"]
        ]


async def test_pages_of_a_timeline_hold_every_entry_once():
    async with serving() as server:
        await plant(server, 2)
        view = await server.get(f"{JSON}/views/timeline")
        wanted = [row["revision"] for row in view["items"]][::-1]
        revisions, before = [], 0
        while True:
            part = await server.get(f"{JSON}/timeline?limit=3&before={before}&decisions=true")
            revisions += [item["revision"] for item in part["items"]]
            before = part["next"]
            if not before:
                break
        assert revisions == wanted


async def test_why_page_has_the_whole_tree():
    async with serving() as server:
        await server.post(CLAIMS, claim("c"))
        question = "why?kind=resourceclaim&name=c"
        answer = await server.get(f"{JSON}/{question}")
        root = await page(server, f"{UI}/{question}")
        assert root.one("h1").text == "Why ResourceClaim default/c"
        assert answer["outcome"] in root.one("p", "verdict").text
        assert [node.text for node in root.all("span", "reason")] == list(
            texts(answer["reasons"].get("children", []))
        )


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("taint a.test/b=true:NoExecute", ["taint a.test/", "b=", "true:", "NoExecute"]),
        ("node n: 2 devices", ["node n: 2 devices"]),
        ("at 2026-11-21T07:59:01Z", ["at 2026-11-21T07:59:01Z"]),
    ],
)
def test_lines_of_reasons_break_where_names_are_joined(text, parts):
    broken = str(linked(text, None)).split("<wbr>")
    assert [read(part).text for part in broken] == parts


@pytest.mark.parametrize(
    ("text", "count", "shown"),
    [
        ("selects 8 of 9 devices", 8, 0),
        ("request gpu wants 1 device, 0 of 4 can be taken", 4, 0),
        ("gpu-0, gpu-1: taint is not tolerated", 2, 2),
        ("gpu-4: taint is not tolerated", 4, 4),
        ("pool a.test/4/4.5: not complete", 4, 4),
        ("allocated to web", 1, 0),
    ],
)
def test_count_is_shown_beside_a_reason_that_does_not_say_it(text, count, shown):
    (entry,), _ = why.bounded([Reason(text=text, count=count)], left=9)
    assert entry["tally"] == shown


@pytest.mark.parametrize("part", [part for part, _ in PARTS])
async def test_each_page_says_below_its_title_what_it_shows(part):
    async with serving() as server:
        main = (await page(server, f"{UI}/{'' if part == 'findings' else part}")).one("main")
        first, second = [one for one in main.children if isinstance(one, Node)][:2]
        assert (first.tag, second.attributes.get("class")) == ("h1", "lead")


@pytest.mark.parametrize("kinds", [(), ("pods",), ("pods", "nodes")])
def test_what_a_recording_lacks_is_one_note_that_unfolds(kinds):
    doubts = tuple(
        Doubt(code="gap", affects=Affects.CONTENT, kind=kind, count=3, text="not recorded")
        for kind in kinds
    )
    answer = DeviceMap(history="h", revision=0, pools=(), doubts=doubts)
    frame = Frame(links=Links(history="h"), part="map")
    root = read(devices.page(frame, answer, DeviceMapRequest(), ()).decode())
    lines = [one.text for each in root.all(class_="note") for one in each.all("li")]
    assert lines == [f"{kind}: not recorded (3)" for kind in kinds]
    assert len(root.all(class_="note")) == bool(kinds)


async def test_noun_of_an_object_is_singular():
    async with serving() as server:
        await server.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "web"}})
        root = await page(server, f"{UI}/find?q=web")
        assert [one.text for one in root.all("span", "noun")] == ["ConfigMap"]


async def test_behaviour_of_every_release_does_not_list_them():
    async with serving() as server:
        rows = (await page(server, f"{UI}/behaviours")).one("tbody").all("tr")
        releases = {row.all("td")[0].text: row.all("td")[3].text for row in rows}
        assert releases["C1"] == "all"
        assert releases["C15"].split(", ")[-1] == "1.36.2"


def texts(reasons):
    for reason in reasons:
        yield " ".join(reason["text"].split())
        yield from texts(reason.get("children", []))


async def test_object_page_has_fields_versions_and_relations():
    async with serving() as server:
        await server.post(CLAIMS, claim("c", labels={"a": "1"}))
        await server.patch(f"{CLAIMS}/c", {"metadata": {"labels": {"a": "2", "b": "3"}}})
        question = "object?kind=resourceclaim&name=c"
        answer = await server.get(f"{JSON}/{question}")
        newest, oldest = answer["versions"]
        assert {(one["path"], one["old"], one["new"]) for one in newest["changes"]} >= {
            ("metadata.labels.a", "1", "2"),
            ("metadata.labels.b", None, "3"),
        }
        assert oldest["changes"] == []
        fields = {one["path"]: one for one in answer["fields"]}
        assert fields["metadata.labels.a"]["revision"] == newest["revision"]
        assert fields["metadata.name"]["revision"] == oldest["revision"]
        root = await page(server, f"{UI}/{question}")
        rows = root.one("table", "fields").one("tbody").all("tr")
        assert [row.all("td")[0].text for row in rows] == [one["path"] for one in answer["fields"]]
        diff = [node.text for node in root.all("ul", "diff")[0].all("li")]
        assert "metadata.labels.a: 1 → 2" in diff
        related = [node.text for node in root.one("ul", "relations").all("li")]
        assert related == ["class gpu.example.com not there"]
        classes = "/apis/resource.k8s.io/v1/deviceclasses"
        await server.post(classes, {"metadata": {"name": "gpu.example.com"}, "spec": {}})
        await server.delete(f"{classes}/gpu.example.com")
        relations = (await page(server, f"{UI}/{question}")).one("ul", "relations")
        assert relations.text == "class gpu.example.com gone"
        assert len(relations.links) == 1
        assert [one["relation"] for one in answer["relations"]] == ["class"]


async def test_object_of_an_earlier_name_is_another_one():
    async with serving() as server:
        await server.post(PODS, pod("again"))
        await server.delete(f"{PODS}/again")
        made = await server.post(PODS, pod("again"))
        answer = await server.get(f"{JSON}/object?kind=pods&name=again")
        fields = {one["path"]: one for one in answer["fields"]}
        assert fields["metadata.uid"]["value"] == made["metadata"]["uid"]
        revision = int(made["metadata"]["resourceVersion"])
        assert {one["revision"] for one in answer["fields"]} == {revision}
        assert answer["versions"][0]["changes"] == []


async def test_value_of_a_secret_is_on_no_page():
    async with serving() as server:
        secret = {"metadata": {"name": "s"}, "data": {"key": "dmFsdWUtb2YtcGFnZXM="}}
        await server.post("/api/v1/namespaces/default/secrets", secret)
        for path in (f"{UI}/object?kind=secrets&name=s", f"{JSON}/object?kind=secrets&name=s"):
            answer = await server.raw("GET", path)
            assert answer.status_code == 200
            assert "dmFsdWUtb2YtcGFnZXM" not in answer.text
            assert "data.key" in answer.text.replace("<wbr>", "")


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("waits", {"waits-0", "waits-1"}),
        ("pod/waits-1", {"waits-1"}),
        ("po/waits-1", {"waits-1"}),
        ("default/waits-0", {"waits-0"}),
        ("WAITS-0", {"waits-0"}),
        ("claim/waits", set()),
        ("nothing", set()),
    ],
)
async def test_objects_are_found_by_what_one_remembers(query, names):
    async with serving() as server:
        for name in ("waits-0", "waits-1", "other"):
            await server.post(PODS, pod(name))
        answer = await server.get(f"{JSON}/find?q={query}")
        assert {one["name"] for one in answer["items"]} == names
        root = await page(server, f"{UI}/find?q={query}")
        hits = root.all("ol", "relations")
        links = hits[0].all("a", "object") if hits else []
        assert {node.text.rpartition("/")[2] for node in links} == names
        reasons = [node.attributes["href"] for hit in hits for node in hit.all("a", "why")]
        assert {address.rpartition("name=")[2] for address in reasons} == names


async def test_index_lists_the_histories():
    async with serving() as server:
        await server.post("/redra/v1/histories", {"name": "night"})
        root = await page(server, "/ui/")
        listed = (await server.get("/redra/v1/histories"))["items"]
        rows = root.one("tbody").all("tr")
        assert [row.one("th").text for row in rows] == [item["name"] for item in listed]
        assert [row.all("td")[1].text for row in rows] == [str(item["revision"]) for item in listed]


PARTS = (
    "",
    "lanes",
    "map",
    "timeline",
    "find?q=p",
    "why?kind=pod&name=p",
    "object?kind=pod&name=p",
)


@draws.in_turn("ways")
@pytest.mark.parametrize("part", PARTS)
async def test_pinned_page_leads_on_within_its_moment(part):
    async with serving() as server:
        await server.post(PODS, pod("p"))
        await server.post(PODS, pod("p-next"))
        root = await page(server, f"/ui/h/default@3/{part}")
        nav = root.all("nav", aria_label="Pages")[0]
        assert all(link.startswith("/ui/h/default@3/") for link in nav.links)
        assert "revision 3 of 4" in root.one("span", "shown").text
        assert "p-next" not in root.one("main").text
        for link in sorted({*root.links}):
            if link.startswith("/"):
                answer = await server.raw("GET", link)
                assert answer.status_code == 200, (link, answer.text)


async def test_form_of_a_moment_leads_to_its_address():
    async with serving() as server:
        answer = await server.raw("GET", f"{UI}/timeline?kind=PodCreated&moment=2")
        assert answer.status_code == 303
        assert answer.headers["location"] == "/ui/h/default@2/timeline?kind=PodCreated"
        answer = await server.raw("GET", f"{UI}@2/timeline?moment=")
        assert answer.headers["location"] == "/ui/h/default/timeline"


@pytest.mark.parametrize(
    ("path", "code", "told", "ways"),
    [
        ("/ui/h/none/", 404, 'history "none" not found', []),
        ("/ui/h/default@99/", 404, "ends at 2", [f"{UI}/"]),
        ("/ui/h/default@noon/", 400, "neither a revision nor an instant", [f"{UI}/"]),
        ("/ui/h/default/nothing", 404, "there is no page", [f"{UI}/"]),
        ("/ui/nowhere", 404, 'there is no page "/ui/nowhere"', []),
        ("/ui/h/default/why/web", 404, 'there is no page "/ui/h/default/why/web"', []),
        ("/ui/h/default/why", 400, "the parameter kind is missing", [f"{UI}/"]),
        ("/ui/h/default/object?kind=pod&name=x", 404, 'pods "x" not found',
         [f"{UI}/find?q=x", f"{UI}/"]),
        ("/ui/h/default/timeline?before=x", 400, "before must be a number", [f"{UI}/"]),
    ],
)  # fmt: skip
async def test_what_cannot_be_shown_is_said_on_a_page_that_leads_on(path, code, told, ways):
    async with serving() as server:
        root = await page(server, path, code)
        assert told in root.one("p", "problem").text
        step = {400: "Correct the address", 404: "Check the spelling"}[code]
        assert root.one("p", "lead").text.startswith(step)
        assert root.one("main").links == [*ways, "/ui/"]


async def test_page_of_a_mistake_in_redra_says_what_to_do_and_not_what_is_inside():
    request = SimpleNamespace(path="/ui/h/default/why", query={})
    answer = responses.problem(KeyError("secret"), 500, request)
    main = read(answer.body.decode()).one("main")
    assert main.one("p", "problem").text == "Internal error: KeyError"
    assert "Load the page again" in main.one("p", "lead").text
    assert "report it" in main.one("p", "lead").text
    assert "secret" not in main.text
    assert main.links == ["/ui/"]


async def test_pages_are_only_read():
    async with serving() as server:
        for method in ("POST", "PUT", "DELETE", "PATCH"):
            answer = await server.raw(method, f"{UI}/")
            assert answer.status_code == 405


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ("lanes", "There is no pod, claim or node."),
        ("map", "No ResourceSlice is published."),
        ("pace", "No pod has been created."),
        ("lint", "There is nothing to check."),
    ],
)
async def test_page_without_rows_blames_no_filter_that_nobody_has_set(part, text):
    async with serving() as server:
        main = (await page(server, f"{UI}/{part}")).one("main")
        assert text in main.text
        assert "filter." not in main.text
        assert "later moment" not in main.text, "it is the latest moment"
        past = (await page(server, f"{UI}@1/{part}")).one("main")
        assert "later moment" in past.text or part == "lint"


@pytest.mark.parametrize(
    "part", ["lanes?name=no", "map?pool=no", "pace?name=no", "timeline?name=no"]
)
async def test_filter_that_matches_nothing_is_named(part):
    async with serving() as server:
        text = (await page(server, f"{UI}/{part}")).one("main").text
        assert "matches the filter. Remove a part of it." in text
