"""Attempts, pace, proposals and comparisons: pages beside their JSON, and who may post a form."""

from urllib.parse import urlencode

import pytest
import yaml

from app.api.server.limits import ApiLimits
from tests.api.serving import CLAIMS, claim, pod, serving
from tests.api.test_readers import filled, headers
from tests.web.invented import Invented, ask, class_of, node, space, template
from tests.web.invented import pod as incident_pod
from tests.web.invented import slice_of as slice_of_incident
from tests.web.planted import PODS, SLICES, plant, slice_of
from tests.web.reading import read
from tests.web.test_incident_stories import stored

JSON = "/redra/v1/histories/default"
UI = "/ui/h/default"
FORM = {"content_type": "application/x-www-form-urlencoded"}
RULE = b"""\
apiVersion: resource.k8s.io/v1beta2
kind: DeviceTaintRule
metadata: {name: all}
spec:
  deviceSelector: {driver: gpu.example.com}
  taint: {key: example.com/repair, effect: NoExecute}
"""


async def page(server, path, code=200):
    answer = await server.raw("GET", path)
    assert answer.status_code == code, answer.text
    return read(answer.text)


async def condition(server, name, message):
    status = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                              "message": message}]}  # fmt: skip
    await server.patch(f"{PODS}/{name}/status", {"status": status})


async def test_attempts_of_a_recording_are_what_its_scheduler_wrote():
    async with serving() as server:
        await server.post(PODS, pod("w"))
        said = "0/3 nodes are available: 1 Insufficient cpu, 2 cannot allocate all claims. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."  # noqa: E501
        await condition(server, "w", said)
        await condition(server, "w", "resource claim default/c is in the process of being made")
        body = {"target": {"kind": "Node", "name": "node-7"}, "metadata": {"name": "w"}}
        await server.post(f"{PODS}/w/binding", body)
        answer = await server.get(f"{JSON}/attempts?kind=pod&name=w")
        assert [item["outcome"] for item in answer["items"]] == [
            "Unschedulable", "Unschedulable", "Scheduled",
        ]  # fmt: skip
        assert not answer["is_decided"]
        assert answer["items"][0]["verdicts"] == [
            {"text": "Insufficient cpu", "nodes": 1},
            {"text": "cannot allocate all claims", "nodes": 2},
        ]
        assert answer["items"][2]["node"] == "node-7"
        rows = (await page(server, f"{UI}/attempts?kind=pod&name=w")).one("tbody").all("tr")
        assert [row.one("a", "revision").text for row in rows] == [
            str(item["revision"]) for item in answer["items"]
        ]
        assert "2 cannot allocate all claims" in rows[0].text
        assert "in the process of being made" in rows[1].text
        assert "node-7" in rows[2].text
        assert {len(row.all("td")) for row in rows} == {4}, "no column that the recording lacks"
        past = await server.get(
            f"{JSON}/attempts?kind=pod&name=w&at={answer['items'][0]['revision']}"
        )
        assert len(past["items"]) == 1


async def test_attempts_for_a_pod_late_in_a_long_history_are_told_at_once():
    async with serving(limits=ApiLimits(chronicle_events_max=2)) as server:
        for number in range(9):
            await server.post(PODS, pod(f"p-{number}"))
        await condition(server, "p-8", "resource claim default/c is in the process of being made")
        answer = await server.get(f"{JSON}/attempts?kind=pod&name=p-8")
        assert [item["outcome"] for item in answer["items"]] == ["Unschedulable"]


@pytest.mark.parametrize(
    ("query", "code"),
    [("kind=pod&name=none", 404), ("kind=node&name=node-1", 400), ("kind=pod", 400), ("", 400)],
)
async def test_attempts_of_what_has_none_are_refused(query, code):
    async with serving() as server:
        await server.post(PODS, pod("w"))
        await server.get(f"{JSON}/attempts?{query}", code=code)
        root = await page(server, f"{UI}/attempts?{query}", code=code)
        assert root.one("p", "problem").text


@pytest.mark.parametrize("seed", range(2))
async def test_pace_page_has_the_pods_of_the_json(seed):
    async with serving() as server:
        await plant(server, seed)
        answer = await server.get(f"{JSON}/pace")
        root = await page(server, f"{UI}/pace")
        names = [
            row.one("span", "name").text for row in root.all("table", "stack")[-1].all("tr")[1:]
        ]
        assert names == [f"{one['namespace']}/{one['name']}" for one in answer["pods"]]
        steps = root.all("table")[0].one("tbody").all("tr")
        assert [row.all("td")[1].text for row in steps] == [
            str(step["count"]) for step in answer["steps"]
        ]
        # A step that no pod has ended has no duration: 0.00 s would be the shortest of all.
        for row, step in zip(steps, answer["steps"], strict=True):
            durations = [cell.text for cell in row.all("td")[2:]]
            assert ("–" in durations) is (step["count"] == 0)
            assert set(durations) == {"–"} or all(one.endswith(" s") for one in durations)
        assert {step["count"] for step in answer["steps"]} > {0}
        nobody = await page(server, f"{UI}/pace?name=no-such-pod")
        assert "No pod matches the filter." in nobody.one("main").text


def world_that_waits():
    """A pod that gets a node a minute after it was made."""
    late = class_of("late", "d.test")
    card = slice_of_incident("s", "d.test", "n", [{"name": "card"}], nodeName="n")
    return Invented(
        told=(),
        steps=(
            {"apply": [space("lab"), node("n"), card, template("one", "lab", ask("late"))]},
            {"apply": [incident_pod("slow", "lab", template="one")]},
            {"wait": 60},
            {"apply": [late]},
            {"wait": 60},
        ),
    )


async def test_columns_of_pace_have_amounts_clocks_and_lead_to_their_moments():
    async with serving(store=await stored(world_that_waits().incident())) as server:
        answer = await server.get(f"{JSON}/pace")
        root = await page(server, f"{UI}/pace")
    picture = root.one("div", "course").one("svg")
    assert max(one["p99"] for one in answer["stretches"]) == 60
    texts = [text.text for text in picture.all("text")]
    assert "60.0 s" in texts
    assert "0 s" in texts
    assert answer["stretches"][0]["begin"][11:19] in texts
    led = [link.attributes["href"] for link in picture.all("a")]
    assert led == [
        f"/ui/h/default@{one['revision']}/pace" for one in answer["stretches"] if one["revision"]
    ]


async def test_writer_is_told_with_its_program_and_the_whole_user_agent_in_a_title():
    agent = "kubectl/v1.37.1 (linux/amd64) kubernetes/abcdef0"
    async with serving() as server:
        await server.post(PODS, pod("w"), user_agent=agent)
        root = await page(server, f"{UI}/object?kind=pods&namespace=default&name=w")
    said = [one for one in root.all("span") if one.attributes.get("title") == agent]
    assert said
    assert {one.text for one in said} <= {"with kubectl/v1.37.1", "kubectl/v1.37.1"}


def form(**fields):
    return urlencode(fields).encode()


async def taken(server):
    """A pod on a device of a slice."""
    await server.post(SLICES, slice_of("p"))
    await server.post(PODS, pod("user", nodeName="node-1"))
    there = await server.get(f"{PODS}/user")
    await server.post(CLAIMS, claim("held"))
    result = {"request": "gpu", "driver": "gpu.example.com", "pool": "p", "device": "gpu-0"}
    user = {"resource": "pods", "name": "user", "uid": there["metadata"]["uid"]}
    status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": [user]}
    await server.patch(f"{CLAIMS}/held/status", {"status": status})


async def test_proposal_says_what_the_json_says_and_writes_nothing():
    async with serving() as server:
        await taken(server)
        before = (await server.get("/redra/v1/histories/default"))["revision"]
        body = form(manifest=RULE.decode())
        answer = await server.raw("POST", f"{UI}/blast", body, **FORM)
        assert answer.status_code == 200, answer.text
        told = await server.post(f"{JSON}/blast", {"objects": [yaml.safe_load(RULE)]}, code=200)
        assert told["claims"]
        root = read(answer.text)
        main = root.one("main").text
        for one in told["claims"]:
            assert f"{one['namespace']}/{one['name']}" in main
            for trouble in one["troubles"]:
                assert trouble["device"] in main
        for one in told["devices"]:
            assert one["device"] in main
        assert root.one("textarea").text == " ".join(RULE.decode().split())
        order = [one.text for one in root.all("h2")]
        assert order[0] == "What would happen"
        assert order[-1] == "Try another change", "what was asked stands below the answer"
        after = (await server.get("/redra/v1/histories/default"))["revision"]
        assert after == before
        await server.get("/apis/resource.k8s.io/v1beta2/devicetaintrules/all", code=404)


async def test_deleted_claim_is_told_on_the_page_as_in_the_json():
    async with serving() as server:
        await taken(server)
        named = f"resourceclaim/{CLAIMS.split('/')[-2]}/held"
        answer = await server.raw("POST", f"{UI}/blast", form(delete=named), **FORM)
        assert answer.status_code == 200, answer.text
        (deletion,) = (await server.post(f"{JSON}/blast", {"delete": [named]}, code=200))[
            "claim_deletions"
        ]
        main = read(answer.text).one("main").text
        assert "Claims that are deleted" in main
        for name in (*deletion["devices"], *deletion["reserved_for"]):
            assert name in main
        assert deletion["devices"]


@pytest.mark.parametrize("how", ["cordon", "drain"])
async def test_closed_node_is_told_on_the_page_as_in_the_json(how):
    async with serving(store=await stored(world_that_waits().incident())) as server:
        answer = await server.raw("POST", f"{UI}/blast", form(**{how: "n"}), **FORM)
        told = await server.post(f"{JSON}/blast", {how: ["n"]}, code=200)
    assert answer.status_code == 200, answer.text
    root = read(answer.text)
    main = root.one("main").text
    (effect,) = told["effects"]
    assert f"{effect['kind']} {effect['name']}: {effect['action']}" in main
    assert {one["fate"] for one in told["pods"]} == ({"drained"} if how == "drain" else set())
    for one in told["pods"]:
        assert f"{one['namespace']}/{one['name']}" in main
    assert root.one("input", name=how).attributes["value"] == "n"


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({}, "no change is proposed"),
        ({"cordon": "no-such-node"}, "no-such-node"),
        ({"drain": "no-such-node"}, "no-such-node"),
        ({"manifest": "kind: Nonsense"}, ""),
        ({"manifest": "a: [b"}, ""),
        ({"manifest": "<b>&"}, ""),
        ({"delete": "resourceslice/none"}, "none"),
    ],
)
async def test_proposal_that_cannot_be_is_refused_on_the_page_that_keeps_it(fields, says):
    async with serving() as server:
        answer = await server.raw("POST", f"{UI}/blast", form(**fields), **FORM)
        root = read(answer.text)
        refusal = root.one("p", "refused").text
        assert refusal.startswith("Refused: ")
        assert says in refusal
        assert root.one("textarea").text == fields.get("manifest", "")


async def test_form_forks_the_history_at_its_moment_with_its_change():
    async with serving() as server:
        await taken(server)
        before = (await server.get("/redra/v1/histories/default"))["revision"]
        await server.post(PODS, pod("later"))
        body = form(name="what-if", manifest=RULE, delete="pod/default/user")
        answer = await server.raw("POST", f"{UI}@{before}/fork", body, **FORM)
        assert (answer.status_code, answer.headers["location"]) == (303, "/ui/h/what-if/")
        await server.get("/h/what-if/apis/resource.k8s.io/v1beta2/devicetaintrules/all")
        deleted = await server.get(f"/h/what-if{PODS}/user")
        assert deleted["metadata"]["deletionTimestamp"]
        await server.get(f"/h/what-if{PODS}/later", code=404)
        # The history itself is as it was.
        assert "deletionTimestamp" not in (await server.get(f"{PODS}/user"))["metadata"]
        await server.get("/apis/resource.k8s.io/v1beta2/devicetaintrules/all", code=404)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({}, "the fork has no name"),
        ({"name": "default"}, "already exists"),
        ({"name": "No Name"}, "No Name"),
        ({"name": "other", "drain": "n"}, "a fork drains no node"),
        ({"name": "other", "cordon": "none"}, "none"),
        ({"name": "other", "delete": "pod/default/none"}, "none"),
        ({"name": "other", "manifest": "- a"}, "document 1: not an object"),
        ({"name": "other", "manifest": "kind: Nonsense"}, ""),
        ({"name": "other", "manifest": "a: [b"}, ""),
    ],
)
async def test_fork_that_cannot_be_is_refused_on_the_page_that_keeps_the_form(fields, says):
    async with serving() as server:
        answer = await server.raw("POST", f"{UI}/fork", form(**fields), **FORM)
        assert answer.status_code == 200
        root = read(answer.text)
        assert says in root.one("p", "refused").text
        assert root.one("input", name="name").attributes["value"] == fields.get("name", "")
        names = [one["name"] for one in (await server.get("/redra/v1/histories"))["items"]]
        assert names == ["default"]


FOREIGN = (
    {"origin": "http://evil.example"},
    {"origin": "null"},
    {"origin": "http://redra.evil.example"},
    {"origin": "http://redra:81"},
    {"origin": "http://["},
    {"origin": "http://[redra]"},
    {"sec_fetch_site": "cross-site"},
    {"sec_fetch_site": "same-site"},
    {"sec_fetch_site": "none"},
    {"sec_fetch_site": "same-origin", "origin": "http://evil.example"},
)


@pytest.mark.parametrize("part", ["blast", "capacity", "fork"])
@pytest.mark.parametrize("given", FOREIGN)
async def test_form_of_another_site_is_refused(given, part):
    async with serving() as server:
        answer = await server.raw("POST", f"{UI}/{part}", form(manifest="x"), **FORM, **given)
        assert answer.status_code == 403, answer.text


@pytest.mark.parametrize("given", [{}, {"origin": "http://redra", "sec_fetch_site": "same-origin"}])
async def test_form_of_our_own_is_taken(given):
    async with serving() as server:
        answer = await server.raw("POST", f"{UI}/blast", form(manifest="x"), **FORM, **given)
        assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("kind", ["", "text/plain", "application/json", "multipart/form-data"])
async def test_only_forms_are_posted(kind):
    async with serving() as server:
        answer = await server.raw("POST", f"{UI}/blast", b"manifest=x", content_type=kind)
        assert answer.status_code == 400, answer.text


@pytest.mark.parametrize("path", ["", "timeline", "compare", "pace", "report", "lanes"])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
async def test_other_pages_take_no_form(method, path):
    async with serving() as server:
        assert (await server.raw(method, f"{UI}/{path}", b"x=1", **FORM)).status_code == 405
        assert (await server.raw(method, "/ui/", b"x=1", **FORM)).status_code == 405


@pytest.mark.parametrize("reader", ["ann", "bob", "cat", "dan"])
async def test_proposal_is_for_those_whose_answer_it_is(reader):
    async with filled() as server:
        sent = await server.raw(
            "POST", "/redra/v1/histories/one/blast", {"delete": ["resourceslice/slice-one"]},
            **headers(reader),
        )  # fmt: skip
        shown = await server.raw(
            "POST", "/ui/h/one/blast", form(delete="resourceslice/slice-one"),
            **headers(reader), **FORM,
        )  # fmt: skip
        assert shown.status_code == sent.status_code


@pytest.mark.parametrize("change", [{}, {"delete": "resourceslice/slice-one"}])
@pytest.mark.parametrize("reader", ["ann", "bob", "cat", "dan"])
async def test_fork_of_a_form_is_for_those_who_may_fork(reader, change):
    async with filled() as server:
        named = {"name": "sent", **({"delete": [*change.values()]} if change else {})}
        sent = await server.raw(
            "POST", "/redra/v1/histories/one/fork", named, **headers(reader)
        )  # fmt: skip
        shown = await server.raw(
            "POST", "/ui/h/one/fork", form(name="shown", **change), **headers(reader), **FORM
        )
        assert (sent.status_code, shown.status_code) in ((201, 303), (403, 403))


async def test_links_to_other_histories_work_at_a_revision_that_those_do_not_have():
    async with serving() as server:
        long = await server.post("/redra/v1/histories", {"name": "long"})
        head = long["revision"]
        assert (await server.get("/redra/v1/histories/default"))["revision"] < head
        own = await page(server, f"/ui/h/long@{head}/compare")
        (link,) = [link for link in own.one("ul", "relations").links if "with=default" in link]
        assert (await page(server, link)).one("p", "verdict").text
        # A moment that was asked for is not replaced.
        assert (await server.raw("GET", f"{link}&withAt={head}")).status_code == 404


async def test_comparison_page_tells_what_the_json_tells():
    async with serving() as server:
        await plant(server, 2)
        head = (await server.get("/redra/v1/histories/default"))["revision"]
        await server.post("/redra/v1/histories/default/fork", {"name": "other"})
        await server.post("/h/other/api/v1/namespaces/default/pods", pod("only-there"))
        assert "other" in (await page(server, f"{UI}/compare")).one("ul", "relations").text
        same = await page(server, f"{UI}@{head}/compare?with=other&withAt={head}")
        assert same.one("p", "verdict").text.startswith("The same")
        for by in ("decisions", "outcomes", "objects"):
            answer = await server.get(f"{JSON}/diff?with=other&by={by}")
            main = (await page(server, f"{UI}/compare?with=other&by={by}")).one("main")
            verdict = main.one("p", "verdict").text
            assert verdict.startswith("The same" if answer["outcome"] == "same" else "Different")
            for one in answer["differences"]:
                assert one["subject"].removeprefix("pods/") in main.text
        for query, code in (
            ("with=none", 404),
            ("with=other&by=x", 400),
            ("with=other&within=x", 400),
        ):
            await page(server, f"{UI}/compare?{query}", code=code)


async def test_sighted_defect_has_title_repair_and_a_number_that_leads_to_its_row():
    rule = yaml.safe_load(RULE)
    del rule["spec"]["deviceSelector"]
    async with serving() as server:
        await server.post("/apis/resource.k8s.io/v1beta2/devicetaintrules", rule)
        (item,) = (await server.get(f"{JSON}/scan"))["items"]
        shown = (await page(server, f"{UI}/scan")).one("li", "finding")
        assert shown.one("h2").text == item["title"] != item["incident"]
        assert shown.one("p", "repair").text == f"What to do {item['repair']}"
        assert "no release repairs it" in shown.text
        links = [link for link in shown.links if "behaviours" in link]
        assert [link.rpartition("#")[2] for link in links] == ["c1", "q14"]
        for link in links:
            there, _, name = link.partition("#")
            row = (await page(server, there)).one("tr", id=name)
            assert row.all("td")[0].text == name.upper()
            assert "without a selector" in row.all("td")[1].text


async def test_entries_about_the_history_itself_do_not_lead_to_a_page_of_an_object():
    async with serving() as server:
        await server.post(PODS, pod("w"))
        await server.post("/redra/v1/histories/default/fork", {"name": "other"})
        rows = (await page(server, "/ui/h/other/timeline")).one("tbody").all("tr")
        assert "HistoryForked" in rows[0].text
        links = [link for row in rows for link in row.links if "/object?" in link]
        assert links
        for link in links:
            await page(server, link)


async def test_search_names_a_deleted_object_and_leads_to_the_timeline_for_other_names():
    async with serving() as server:
        await server.post(PODS, pod("gone"))
        await server.delete(f"{PODS}/gone?gracePeriodSeconds=0")
        found = (await page(server, f"{UI}/find?q=pod/gone")).one("main")
        (hit,) = found.one("ol").all("li")
        assert "gone was deleted at" in hit.text
        # One sentence in one box: the boxes of a line are laid out apart from each other.
        fate = hit.one("span", "fate").text
        assert fate.startswith("was deleted at ")
        assert "(revision " in fate
        assert "".join(one for one in hit.children if isinstance(one, str)).strip() == ""
        assert found.all("p", "nothing") == []
        (link,) = (await page(server, f"{UI}/find?q=pod/never")).one("p", "nothing").links
        rows = (await page(server, link.replace("never", "gone"))).one("tbody").all("tr")
        assert {"gone" in row.text for row in rows} == {True}
