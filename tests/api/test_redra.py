"""What redra offers beyond Kubernetes."""

import json
import re

import anyio
import pytest

from app.adapters.memory import MemoryLeases, MemoryStore
from app.api.server.limits import ApiLimits
from app.bootstrap.gallery import incident_files
from app.domain.values.timestamps import SECOND, Instant
from tests.api.serving import CLAIMS, CONFIG_MAPS, claim, config_map, serving
from tests.virtual_clock import VirtualClock

HISTORY = "/redra/v1/histories/default"


async def test_index_names_the_paths():
    async with serving() as server:
        assert "/redra/v1/histories" in (await server.get("/redra/v1"))["paths"]


async def test_history_tells_its_end():
    async with serving() as server:
        found = await server.get(HISTORY)
        assert (found["name"], found["revision"], found["profile"]) == ("default", 2, "1.37")


async def test_history_is_made():
    async with serving() as server:
        made = await server.post("/redra/v1/histories", {"name": "n", "profile": "1.35"})
        assert made["profile"] == "1.35"
        assert (await server.get("/h/n/version"))["minor"] == "35"


BAD = [
    {"name": "Upper"},
    {"name": "a..b"},
    {"name": "a.-b"},
    {"name": "a" * 64},
    {"name": "n", "profile": "1.2"},
    {"name": "n", "gates": {"Nonsense": True}},
    {"nmae": "n"},
    {},
]


@pytest.mark.parametrize("body", BAD, ids=lambda body: json.dumps(body))
async def test_history_that_cannot_be_made_is_refused(body):
    async with serving() as server:
        status = await server.post("/redra/v1/histories", body, code=400)
        assert status["reason"] == "BadRequest"


async def test_second_history_of_a_name_is_refused():
    async with serving() as server:
        status = await server.post("/redra/v1/histories", {"name": "default"}, code=409)
        assert status["reason"] == "AlreadyExists"


async def test_events_are_json_lines_in_order():
    async with serving() as server:
        await server.post(CONFIG_MAPS, config_map(a="b"))
        answer = await server.raw("GET", f"{HISTORY}/events?after=1")
        lines = [json.loads(line) for line in answer.text.splitlines()]
        assert [line["revision"] for line in lines] == [2, 3]
        assert lines[1]["object"]["data"] == {"a": "b"}
        assert lines[1]["stamp"]["verb"] == "create"


async def test_events_are_bounded():
    async with serving() as server:
        answer = await server.raw("GET", f"{HISTORY}/events?limit=1")
        assert len(answer.text.splitlines()) == 1
        answer = await server.raw("GET", f"{HISTORY}/events?at=1")
        assert len(answer.text.splitlines()) == 1


async def test_followed_events_end_at_their_limit_and_time():
    async with serving() as server:
        async with server.watch(f"{HISTORY}/events?follow=true&limit=2") as following:
            assert [(await following.line())["revision"] for _ in range(2)] == [1, 2]
            assert await following.end() == b""
        async with server.watch(f"{HISTORY}/events?follow=true&timeoutSeconds=1") as following:
            await following.line()
            await following.end()


@pytest.mark.parametrize("part", ["why?kind=pod&name=x&namespace=%00", "decisions?name=a%00b"])
async def test_parameter_with_the_character_0_is_refused(part):
    async with serving() as server:
        refused = await server.get(f"{HISTORY}/{part}", 400)
        assert "the character 0" in refused["message"]


async def test_events_can_be_followed():
    async with (
        serving() as server,
        server.watch(f"{HISTORY}/events?follow=true&after=2") as following,
    ):
        await server.post(CONFIG_MAPS, config_map())
        assert (await following.line())["name"] == "m"


async def test_views_are_described_and_read():
    async with serving() as server:
        listed = await server.get(f"{HISTORY}/views")
        assert {"pools", "claims", "timeline"} <= {view["name"] for view in listed["items"]}
        rows = await server.get(f"{HISTORY}/views/activity")
        assert rows["revision"] == 2
        assert rows["items"]


async def test_view_of_the_past_is_of_that_revision():
    async with serving() as server:
        await server.post(CONFIG_MAPS, config_map())
        await server.get(f"{HISTORY}/views/activity")
        assert (await server.get(f"{HISTORY}/views/activity?at=1"))["revision"] == 1
        assert (await server.get(f"{HISTORY}/views/activity"))["revision"] == 3


async def test_controllers_of_a_history_are_told_with_what_switched_them():
    async with serving() as server:
        path = "/api/v1/namespaces/kube-system"
        off = {"metadata": {"annotations": {"redra.dev/controllers-off": "scheduling, claims"}}}
        await server.patch(path, off)
        items = (await server.get(f"{HISTORY}/controllers"))["items"]
        states = {item["name"]: item["state"] for item in items}
        assert [name for name, state in states.items() if state == "off"] == [
            "claims",
            "scheduling",
        ]
        assert states["eviction"] == "on"


async def test_controllers_are_told_with_the_process_that_runs_each():
    clock, store = VirtualClock(), MemoryStore()
    leases = MemoryLeases(store, clock)
    async with serving(store=store, leases=leases) as server:
        history = (await server.histories.info("default")).id
        await leases.acquire(history, "scheduling", "host-7", seconds=10)
        await leases.acquire(history, "claims", "host-8", seconds=3)
        for seconds, wanted in ((0, {"scheduling": "host-7", "claims": "host-8"}),
                                (5, {"scheduling": "host-7"}), (11, {})):  # fmt: skip
            clock.advance_to(Instant(seconds * SECOND))
            items = (await server.get(f"{HISTORY}/controllers"))["items"]
            assert {each["name"]: each["run_by"] for each in items if each["run_by"]} == wanted
        assert {each["name"] for each in items} >= {"scheduling", "claims", "eviction"}


async def test_decisions_can_be_read():
    async with serving() as server:
        assert await server.get(f"{HISTORY}/decisions") == {"items": [], "next": 0}


async def test_reasons_of_a_claim_are_told():
    async with serving() as server:
        await server.post(CLAIMS, claim())
        found = await server.get(f"{HISTORY}/why?kind=resourceclaim&name=c")
        assert found["subject"]
        assert found["reasons"]["text"]
        then = await server.get(f"{HISTORY}/why?kind=resourceclaim&name=c&at=3")
        assert then["revision"] == 3
        await server.get(f"{HISTORY}/why?kind=resourceclaim&name=c&at=2", code=404)


async def test_others_are_answered_while_many_nodes_are_explained():
    async with serving() as server:
        for number in range(20):
            node = {"metadata": {"name": f"n{number}"}, "status": {"allocatable": {"pods": "9"}}}
            await server.post("/api/v1/nodes", node)
        spec = {"containers": [{"name": "c", "image": "i"}]}
        await server.post(
            "/api/v1/namespaces/default/pods", {"metadata": {"name": "p"}, "spec": spec}
        )
        ended = []

        async def ask(name, path):
            await server.get(path)
            ended.append(name)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, "why", f"{HISTORY}/why?kind=pod&name=p")
            tasks.start_soon(ask, "version", "/version")
        assert ended == ["version", "why"]


@pytest.mark.parametrize(
    ("method", "part", "said"),
    [
        ("GET", "scan?att=3", 'there is no parameter "att" here: do you mean at?'),
        ("GET", "scan?at=1&at=2", 'the parameter "at" is given 2 times'),
        ("GET", "findings?namespace=a&namespace=", 'the parameter "namespace" is given 2 times'),
        ("GET", "jobs?x=1", 'there is no parameter "x" here: it has none'),
        ("POST", "fork?at=1", 'there is no parameter "at" here: it has none'),
    ],
)
async def test_parameter_that_would_be_passed_over_is_refused(method, part, said):
    async with serving() as server:
        body = {"name": "made"}
        refused = await (
            server.get(f"{HISTORY}/{part}", 400)
            if method == "GET"
            else server.post(f"{HISTORY}/{part}", body, code=400)
        )
        assert refused["message"] == said
        histories = await server.get("/redra/v1/histories")
        assert [each["name"] for each in histories["items"]] == ["default"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"name": "made", "gates": {"DRADeviceTaints": "yes"}}', "a valid boolean"),
        (b'{"name": "made", "quirks": {"q3": 1}}', "a valid boolean"),
        (b'{"name": "made", "name": "other"}', "the field 'name' occurs 2 times in one object"),
        (b'{"name": "made", "patch": {"a": {"b": 1, "b": 2}}}', "the field 'b' occurs 2 times"),
        (b'{"name": "made", "at": 3}', "at: Input should be a valid string"),
        (b'{"name": "made", "apply": [{"apiVersion": "v1"}]}', "apply[0]: it has no kind"),
        (b'{"name": "made", "apply": [{"kind": 5}]}', "apply[0]: it has no kind"),
        (b'{"name": "made", "apply": [{"kind": "Pod"}]}', "apply[0]: it has no apiVersion"),
    ],
)
async def test_fork_with_a_value_of_another_type_or_a_field_twice_is_refused(body, said):
    async with serving() as server:
        answer = await server.raw("POST", f"{HISTORY}/fork", body)
        assert answer.status_code == 400
        assert said in answer.json()["message"]
        histories = await server.get("/redra/v1/histories")
        assert [each["name"] for each in histories["items"]] == ["default"]


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("minimise", {"keep": "nonsense"}, "keep: 'nonsense' is not a predicate"),
        ("export", {"form": "pytest", "never": ["nonsense"]}, "never: 'nonsense' is not a"),
        ("blast", {}, "no change is proposed; propose objects, objects to delete, or nodes"),
        ("fork", {"name": "f", "inputs": "recorded"}, "let the inputs end at a later one"),
    ],
)
async def test_refusal_names_fields_of_the_request_and_no_options(path, body, said):
    async with serving() as server:
        refused = await server.post(
            f"{HISTORY}/{path}", body, code=400, content_type="application/json"
        )
        message = refused["message"]
        assert said in message
        assert not re.search(r"(^|\W)--?[a-z]", message), message


@pytest.mark.parametrize("query", ["", "kind=pod", "name=c", "kind=nonsense&name=c"])
async def test_question_that_cannot_be_understood_is_refused(query):
    async with serving() as server:
        assert (await server.raw("GET", f"{HISTORY}/why?{query}")).status_code in (400, 404)


async def test_health_of_each_history_is_told():
    async with serving() as server:
        (item,) = (await server.get("/redra/v1/workers"))["items"]
        assert (item["history"], item["problem"]) == ("default", "")


async def test_document_describes_every_path():
    async with serving() as server:
        document = await server.get("/redra/v1/openapi.json")
        index = (await server.get("/redra/v1"))["paths"]
        assert set(document["paths"]) == set(index) - {"/redra/v1/openapi.json"}


async def test_history_is_linted_with_each_finding_at_its_place():
    pool = {"name": "pool", "generation": 1, "resourceSliceCount": 2}
    spec = {"driver": "gpu.example.com", "allNodes": True, "pool": pool, "devices": []}
    async with serving() as server:
        tree = {"metadata": {"name": "one"}, "spec": spec}
        await server.post("/apis/resource.k8s.io/v1/resourceslices", tree)
        report = await server.get(f"{HISTORY}/lint?ignore=pool-incomplete-for")
        (finding,) = report["findings"]
        assert (finding["rule"], finding["severity"]) == ("pool-incomplete", "error")
        assert finding["place"]["object"] == "ResourceSlice/one"
        assert report["objects"] == 1
        assert (await server.get(f"{HISTORY}/lint?at=2"))["objects"] == 0


LINT_MISTAKES = {
    "ignore=no-such-rule": (400, "there is no rule 'no-such-rule'; choose from "),
    "profile=0.9": (400, "0.9"),
    "at=9999": (404, "history 'default' has no revision 9999: it ends at 2"),
}


@pytest.mark.parametrize("query", LINT_MISTAKES)
async def test_lint_with_a_mistake_is_refused(query):
    code, text = LINT_MISTAKES[query]
    async with serving() as server:
        answer = await server.get(f"{HISTORY}/lint?{query}", code)
        assert text in answer["message"]


async def test_history_that_is_too_long_is_not_linted():
    async with serving(limits=ApiLimits(lint_events_max=1)) as server:
        answer = await server.get(f"{HISTORY}/lint", 413)
        assert answer["message"] == "2 events are more than 1: use redra lint"


async def test_incidents_are_listed_and_shown():
    async with serving() as server:
        items = (await server.get("/redra/v1/incidents"))["items"]
        assert [item["name"] for item in items] == incident_files.names()
        shown = await server.get("/redra/v1/incidents/rules-not-seen")
        assert shown["finding"][0] == "pod web is evicted"
        assert shown["story"].startswith("# The scheduler does not see DeviceTaintRules")
        answer = await server.get("/redra/v1/incidents/no-such-thing", 404)
        assert answer["message"].startswith("there is no incident 'no-such-thing'")


MISSING = [
    "/redra/v2",
    "/redra/v1/x",
    f"{HISTORY}/x",
    "/redra/v1/histories/nope",
    f"{HISTORY}/views/x",
]


@pytest.mark.parametrize("path", MISSING)
async def test_what_is_not_offered_is_not_found(path):
    async with serving() as server:
        assert (await server.raw("GET", path)).status_code == 404
