"""A part of what is wrong, and a part of the map: by namespace, by labels of nodes."""

import re
from urllib.parse import quote

import anyio
import pytest

from tests.api.serving import serving
from tests.command_line import redra
from tests.web import invented
from tests.web.invented import ask, class_of, node, pod, rule, slice_of, space, template
from tests.web.reading import read
from tests.web.test_incident_stories import stored
from tests.web.test_same_facts import listening

HISTORY = "/redra/v1/histories/default"
OF_OBJECTS = ("WaitingPods", "EvictedPods", "StuckClaims", "UnusedClaims", "TaintedDevices")


def world():
    """Two teams: pods that wait in both, evicted ones in one; two nodes in two zones."""
    cards = [{"name": f"card-{number}"} for number in range(2)]
    return invented.Invented(
        told=(),
        steps=(
            {"apply": [space("red"), space("blue"), space("idle"), class_of("gpu", "d.test"),
                       node("n", {"zone": "a"}), node("m", {"zone": "b"}),
                       slice_of("left", "d.test", "n", cards, nodeName="n"),
                       slice_of("right", "d.test", "m", cards, of=2, nodeName="m"),
                       template("one", "red", ask("gpu")), template("one", "blue", ask("gpu"))]},
            {"apply": [pod(f"r{number}", "red", template="one") for number in range(3)]},
            {"wait": 10},
            {"apply": [pod(f"b{number}", "blue", template="one") for number in range(2)]},
            {"wait": 10},
            {"apply": [rule("repair", "d.test", key="x.test/repair", effect="NoExecute")]},
            {"wait": 60},
        ),
    )  # fmt: skip


async def test_findings_of_namespaces_are_those_of_all_taken_apart():
    async with serving(store=await stored(world().incident())) as server:
        whole = (await server.get(f"{HISTORY}/findings"))["items"]
        parts = {
            name: (await server.get(f"{HISTORY}/findings?namespace={name}"))["items"]
            for name in ("red", "blue", "idle")
        }
    for name, items in parts.items():
        for item in items:
            assert {one["namespace"] for one in item["objects"]} <= {name}
    assert parts["idle"] == []
    for kind in OF_OBJECTS:
        counted = [sum(one["count"] for one in items if one["kind"] == kind)
                   for items in (whole, *parts.values())]  # fmt: skip
        assert counted[0] == sum(counted[1:]), kind
    assert {item["kind"] for item in whole} >= {"WaitingPods", "EvictedPods", "UnusablePools"}
    assert "UnusablePools" not in {item["kind"] for items in parts.values() for item in items}


async def test_commands_ask_for_a_part():
    async with listening(await stored(world().incident())) as url:

        async def told(*words):
            return await anyio.to_thread.run_sync(lambda: redra(*words, "--server", url))

        code, findings, _ = await told("findings", "-n", "blue")
        assert code == 1
        assert "pods/blue/b0 (" in findings
        assert re.search(r"\bred\b", findings) is None
        code, shown, _ = await told("map", "-l", "zone=b")
        assert code == 0
        assert "d.test/m" in shown
        assert "d.test/n" not in shown
        _, told_wide, _ = await told("map", "-l", "zone=b", "-o", "wide")
        assert "card-1: " in told_wide
        code, rows, _ = await told("timeline", "-l", "zone=a", "-o", "wide")
        assert code == 0
        title, *lines = rows.splitlines()
        assert "BECAUSE" in title
        assert lines
        assert all("nodes n" in line for line in lines)
        first, final = lines[0].split(), (await told("timeline"))[1].splitlines()[-1].split()
        words = ("--since", "2", "--until", "3", "--kind", "PodEvicted")
        code, said, _ = await told("timeline", *words)
        assert code == 0
        assert said.startswith("no entry matches since 2 until 3: the history goes from rev")
        assert first[1] in said
        assert f" to {final[0]} (" in said
        assert len(said.splitlines()) == 1
        code, _, error = await told("timeline", "-l", "zone=c")
        assert code == 2
        assert "do you mean zone=" in error


async def test_namespace_that_does_not_occur_is_refused_with_the_nearest():
    async with serving(store=await stored(world().incident())) as server:
        for path in (f"{HISTORY}/findings", "/ui/h/default/"):
            answer = await server.raw("GET", f"{path}?namespace=bleu")
            assert answer.status_code == 404
            assert "do you mean blue" in answer.text


@pytest.mark.parametrize(
    ("labels", "pools"),
    [("zone=a", {"n"}), ("zone in (a,b)", {"n", "m"}), ("zone!=a", {"m"}), ("rack", set())],
)
async def test_map_shows_the_pools_of_nodes_with_the_labels(labels, pools):
    async with serving(store=await stored(world().incident())) as server:
        answer = await server.get(f"{HISTORY}/map?labels={quote(labels)}")
        page = await server.raw("GET", f"/ui/h/default/map?labels={quote(labels)}")
        refused = await server.raw("GET", f"{HISTORY}/map?labels={quote('=a')}")
    assert {one["pool"] for one in answer["pools"]} == pools
    shown = [one.text for one in read(page.text).all("article", "map-pool")]
    assert len(shown) == len(pools)
    assert refused.status_code in (400, 422)
