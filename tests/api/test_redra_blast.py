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
REQUEST = {"name": "r", "exactly": {"deviceClassName": "gpu"}}


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


async def test_object_of_another_moment_is_not_found_and_said_to_be_there():
    """As `why` says it: what came later, what was deleted before; similar names for all others."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n-1"}}
    claim = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [REQUEST]}}}
    claims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
    async with serving() as server:
        await server.post("/api/v1/nodes", {**node, "metadata": {"name": "n-0"}})
        await server.post(RULES, rule("early"))
        await server.delete(f"{RULES}/early")
        before = (await server.get("/redra/v1/histories/default"))["revision"]
        await server.post("/api/v1/nodes", node)
        await server.post(claims, claim)
        for body, said in (
            ({"delete": ["node/n-1"]}, "; one was created later, at 2"),
            ({"cordon": ["n-1"]}, "; one was created later, at 2"),
            ({"drain": ["n-1"]}, "; one was created later, at 2"),
            ({"delete": ["claim/c"]}, "; one was created later, at 2"),
            ({"delete": ["claim/default/c"]}, "; one was created later, at 2"),
            ({"delete": ["devicetaintrule/early"]}, f"; it was deleted at revision {before}, at 2"),
            ({"delete": ["node/n-2"]}, "; do you mean n-0?"),
        ):
            refused = await server.post(f"{PATH}?at={before}", body, code=404)
            assert f"not found{said}" in refused["message"]
            assert ("do you mean" in refused["message"]) is ("do you mean" in said)
        await server.post(PATH, {"delete": ["node/n-1", "claim/c"]}, code=200)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"delete": ["foo/bar"]}, "there is no kind 'foo'; "),
        ({"delete": ["nodez/n"]}, "there is no kind 'nodez'; do you mean node"),
        ({"delete": ["lease/n"]}, "Lease changes no devices; use "),
        ({"objects": [{"kind": "DeviceTaintRul", "apiVersion": "v1"}]},
         "there is no kind 'DeviceTaintRul'; do you mean devicetaintrule"),
        ({"objects": [{"kind": "Lease", "apiVersion": "v1"}]}, "Lease changes no devices; use "),
        ({"objects": [{"kind": "secret", "apiVersion": "v1"}]}, "Secret changes no devices; use "),
        ({"objects": [{"kind": "node", "apiVersion": "v1"}]}, "no kind 'node'; write Node"),
        ({"objects": [{"apiVersion": "v1"}]}, "an object without kind changes no devices; use "),
    ],
)  # fmt: skip
async def test_kind_that_does_not_exist_is_no_kind_that_changes_no_devices(body, said):
    async with serving() as server:
        assert said in (await server.post(PATH, body, code=400))["message"]


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
