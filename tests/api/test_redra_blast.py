"""Questions about changes through `/redra/v1`."""

import anyio
import pytest

from app.analysis.blast.bounds import BlastBounds
from app.api.server.limits import ApiLimits
from tests.api.serving import serving

PATH = "/redra/v1/histories/default/blast"
RULES = "/apis/resource.k8s.io/v1/devicetaintrules"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
DRIVER = "gpu.example.com"


def rule(name="rule", **taint):
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": name},
        "spec": {
            "deviceSelector": {"driver": DRIVER},
            "taint": {"key": "example.com/bad", "effect": "NoExecute", **taint},
        },
    }


def slice_of(*devices):
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "s"},
        "spec": {
            "driver": DRIVER,
            "nodeName": "n",
            "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": name} for name in devices],
        },
    }


async def test_proposal_is_answered_and_not_written():
    async with serving() as server:
        await server.post(SLICES, slice_of("a", "b"))
        found = await server.post(PATH, {"objects": [rule()]}, code=200)
        assert found["totals"]["devices_tainted"] == 2
        assert (found["revision"], found["effects"][0]["action"]) == (3, "created")
        await server.get(f"{RULES}/rule", code=404)
        assert (await server.get("/redra/v1/histories/default"))["revision"] == 3


async def test_rule_that_is_there_is_answered():
    async with serving() as server:
        await server.post(SLICES, slice_of("a"))
        await server.post(RULES, rule())
        found = await server.get(f"{PATH}?kind=devicetaintrule&name=rule")
        assert found["totals"]["devices_unallocatable"] == 1
        found = await server.post(PATH, {"delete": ["devicetaintrule/rule"]}, code=200)
        assert found["totals"]["devices_allocatable"] == 1


async def test_question_may_be_about_the_past():
    async with serving() as server:
        await server.post(SLICES, slice_of("a"))
        await server.post(RULES, rule("first"))
        found = await server.post(f"{PATH}?at=3", {"objects": [rule("first")]}, code=200)
        assert (found["revision"], found["effects"][0]["action"]) == (3, "created")
        found = await server.post(f"{PATH}?at=2", {"objects": [rule()]}, code=200)
        assert found["totals"]["devices_tainted"] == 0
        then = await server.post(f"{PATH}?at=2200-01-01T00:00:00Z", {"objects": [rule()]}, code=200)
        assert then["time"] == "2200-01-01T00:00:00.000000Z"


async def test_refused_proposal_gets_the_answer_of_its_write():
    async with serving() as server:
        status = await server.post(PATH, {"objects": [rule(effect="Bad")]}, code=422)
        assert status["reason"] == "Invalid"
        assert status["details"]["causes"][0]["field"] == "spec.taint.effect"
        await server.post(PATH, {"delete": ["devicetaintrule/nope"]}, code=404)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"objcts": []},
        {"objects": [{"kind": "Pod"}]},
        {"delete": ["x"]},
        {"objects": ["x"]},
        {"objects": [{"kind": "List", "items": [rule(), 1]}]},
    ],
    ids=str,
)
async def test_what_is_no_proposal_is_refused(body):
    async with serving() as server:
        await server.post(PATH, body, code=400)


@pytest.mark.parametrize("query", ["", "?kind=pod&name=x", "?kind=devicetaintrule"])
async def test_what_is_no_question_is_refused(query):
    async with serving() as server:
        await server.get(PATH + query, code=400)


async def test_rule_or_moment_that_is_not_there_is_not_found():
    async with serving() as server:
        await server.get(f"{PATH}?kind=devicetaintrule&name=nope", code=404)
        await server.post(f"{PATH}?at=99", {"objects": [rule()]}, code=404)


async def test_why_of_a_rule_tells_its_blast_radius():
    async with serving() as server:
        await server.post(SLICES, slice_of("a"))
        await server.post(RULES, rule())
        found = await server.get("/redra/v1/histories/default/why?kind=devicetaintrule&name=rule")
        assert found["blast"]["totals"]["devices_unallocatable"] == 1
        radius = found["reasons"]["children"][-1]
        assert radius["text"] == "what it does, against a state without it:"
        texts = [child["text"] for child in radius["children"]]
        assert "devices: 1 tainted, 1 can no longer be allocated" in texts


async def test_why_of_a_rule_lists_no_more_than_a_blast_answer_may():
    limits = ApiLimits(blast=BlastBounds(listed_max=1))
    async with serving(limits=limits) as server:
        await server.post(SLICES, slice_of("a", "b"))
        await server.post(RULES, rule())
        found = await server.get("/redra/v1/histories/default/why?kind=devicetaintrule&name=rule")
        assert found["blast"]["left_out"] == {"devices": 1}


async def test_questions_that_wait_for_their_turn_see_the_state_of_their_turn():
    async with serving() as server:
        await server.post(SLICES, slice_of("a"))
        told = []

        async def ask():
            found = await server.post(PATH, {"objects": [rule()]}, code=200)
            told.append(found["totals"]["devices_tainted"])

        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(ask)
        assert told == [1] * 5
