"""Scenarios in conformance form, and input that cannot be used."""

import pytest

from app.domain.allocation import scenarios
from app.domain.errors import InputError
from tests.worlds import literal_scenarios
from tests.worlds.builders import (
    COMPILER,
    claim,
    device,
    device_class,
    node,
    request,
    resource_slice,
)

SETTINGS = scenarios.ScenarioSettings(compiler=COMPILER)


def scenario(**fields: object) -> dict:
    given = {
        "features": {},
        "nodes": [node()],
        "classes": [device_class()],
        "slices": [resource_slice("s", device("d0"), device("d1"))],
        "claims": [claim(request())],
    }
    return {"name": "one", "input": {**given, **fields}}


def test_answer_has_a_result_per_node_and_the_steps() -> None:
    found = scenarios.run(scenario(nodes=[node(), node("other")]), SETTINGS)
    assert found["name"] == "one"
    assert [one["node"] for one in found["results"]] == ["node", "other"]
    assert found["results"][0]["allocations"] is not None
    assert found["results"][1] == {"node": "other", "allocations": None}
    assert found["steps"] > 0
    assert "elapsedMs" not in found


def test_time_is_the_callers() -> None:
    ticks = iter(range(100))
    settings = scenarios.ScenarioSettings(compiler=COMPILER, timer=lambda: float(next(ticks)))
    assert scenarios.run(scenario(), settings)["elapsedMs"] == 1000.0


def test_allocations_of_one_pod_count_for_the_next() -> None:
    pods = [{"name": f"p{i}", "claims": [claim(request(), name=f"c{i}")]} for i in range(3)]
    found = scenarios.run(scenario(pods=pods, claims=None), SETTINGS)
    assert [pod.get("node") for pod in found["pods"]] == ["node", "node", None]


def test_fatal_error_ends_the_attempt_of_a_pod() -> None:
    pods = [{"name": "p", "claims": [claim(request("r", deviceClassName="none"))]}]
    nodes = [node("a"), node("b")]
    found = scenarios.run(scenario(pods=pods, claims=None, nodes=nodes), SETTINGS)
    assert [one["errorScope"] for one in found["pods"][0]["results"]] == ["fatal"]


@pytest.mark.parametrize("order", [("good", "bad"), ("bad", "good"), ("good", "other", "bad")])
def test_fatal_error_on_any_node_leaves_the_pod_without_one(order: tuple[str, ...]) -> None:
    slices = [
        resource_slice("good", device("d", numa=1), pool="good", node="good"),
        resource_slice("bad", device("d"), pool="bad", node="bad"),
    ]
    numa = 'device.attributes["gpu.example.com"].numa == 1'
    strict, plain = claim(request("r", 1, numa), name="s"), claim(request(), name="p")
    pods = [{"name": "strict", "claims": [strict]}, {"name": "plain", "claims": [plain]}]
    nodes = [node(name) for name in order]
    given = scenario(pods=pods, claims=None, nodes=nodes, slices=slices)
    found = scenarios.run(given, SETTINGS)
    first, second = found["pods"]
    assert "node" not in first
    assert first["results"][-1]["node"] == "bad"
    assert first["results"][-1]["errorScope"] == "fatal"
    # What the earlier node could have given is free for the next pod.
    assert second["node"] == order[0]
    assert [pod.get("node") for pod in literal_scenarios.run(given)["pods"]] == [None, order[0]]


BAD = [
    ({"slices": {}}, "input.slices", "must be a list"),
    ({"classes": {}}, "input.classes", "must be a list"),
    ({"slices": [{"metadata": {"name": "s"}}]}, "input.slices[0].spec", "must be an object"),
    ({"nodes": [1]}, "input.nodes[0]", "must be an object, not a number"),
    ({"features": {"DRAAdminAccess": 1}}, "input.features.DRAAdminAccess", "true or false"),
    ({"claims": [{"spec": {}}]}, "input.claims[0].metadata", "missing"),
    (
        {"claims": [claim({"name": "r"})]},
        "input.claims[0].spec.devices.requests[0]",
        "exactly or firstAvailable",
    ),
    (
        {"claims": [claim(request("r", "2"))]},
        "input.claims[0].spec.devices.requests[0].count",
        "integer",
    ),
    (
        {"slices": [resource_slice("s", device("d", capacity={"m": {"value": "1K"}}))]},
        "spec.devices[0].capacity[m].value",
        "suffix",
    ),
    ({"slices": [{"metadata": {"name": "s"}, "spec": {}}]}, "slices[0].spec.pool", "an object"),
    *(
        (
            {"slices": [resource_slice("s", device("d"), device("e", **{field: odd}))]},
            f"input.slices[0].spec.devices[1].{field}{inside}",
            problem,
        )
        for field in ("attributes", "capacity")
        for odd, inside, problem in (
            ([1], "", "must be an object, not a list"),
            ({"m": 1}, "[m]", "must be an object, not a number"),
        )
    ),
    *(
        (
            {"slices": [resource_slice("s", device("d", **{field: {"a": 1}}))]},
            f"input.slices[0].spec.devices[0].{field}",
            "must be a list",
        )
        for field in ("consumesCounters", "taints")
    ),
    (
        {"slices": [resource_slice("s", device("d"), sharedCounters={"a": 1})]},
        "input.slices[0].spec.sharedCounters",
        "must be a list",
    ),
    (
        {"slices": [resource_slice("s", *(device(f"d{i}") for i in range(5_000)))]},
        "input.slices[0].spec.devices",
        "at most 4096",
    ),
    (
        {"claims": [claim(request("r", 1, "x" * 1_000_000))]},
        "selectors[0].cel.expression",
        "characters",
    ),
]


@pytest.mark.parametrize(("fields", "place", "problem"), BAD)
def test_bad_input_names_the_path_of_the_field(fields: dict, place: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        scenarios.run(scenario(**fields), SETTINGS)
    assert place in caught.value.place
    assert problem in caught.value.problem


def test_scenario_without_input_is_refused() -> None:
    with pytest.raises(InputError, match="input"):
        scenarios.run({"name": "x"}, SETTINGS)


def test_marks_that_decide_are_found() -> None:
    devices = [device("d0", numa=0), device("d1", numa=1), device("d2", numa=0)]
    given = claim(
        request("r0", 3),
        constraints=[{"distinctAttribute": "gpu.example.com/numa", "requests": []}],
    )
    found = scenario(slices=[resource_slice("s", *devices)], claims=[given])
    assert scenarios.marks_that_matter(found, SETTINGS) == ["distinct-last-only"]
