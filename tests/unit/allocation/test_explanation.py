"""Reasons: the first cause per device with numbers and names, within a bound of bytes."""

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from app.domain.allocation import Features
from app.domain.allocation.reasons import causes, dead_ends, explanation, summary
from app.domain.allocation.reasons.causes import CauseKind
from app.domain.allocation.usage import Usage
from tests.worlds.builders import (
    allocator,
    claim,
    counter_set,
    device,
    distinct,
    first_available,
    holding,
    match,
    node,
    request,
    resource_slice,
    result,
    taint,
    uses,
    wish,
)

INDEX = 'device.attributes["gpu.example.com"].index'


def reasons(slices: list, claims: list, **how) -> explanation.Explanation:
    asked = allocator(*slices, **how)
    return explanation.explain(asked.allocate(node(), claims))


def texts(found: explanation.Explanation) -> dict[str, str]:
    """The cause per device of the first request."""
    return {
        reason.device.rpartition("/")[2]: reason.cause.text if reason.cause else ""
        for reason in found.claims[0].requests[0].devices
    }


def test_each_device_names_its_first_cause() -> None:
    devices = [
        device("held", index=5),
        device("tainted", taints=[taint()], index=5),
        device("wrong", index=1),
        device("partition", consumesCounters=uses(mem=2), index=5),
        device("bound", bindingConditions=["c"], index=5),
        device("small", capacity={"memory": {"value": "1Gi"}}, index=5),
    ]
    slices = [
        resource_slice("s", *devices, count=2),
        resource_slice("c", count=2, sharedCounters=[counter_set(mem=1)]),
    ]
    given = [claim(request("r0", 1, f"{INDEX} == 5", capacity={"requests": {"memory": "2Gi"}}))]
    found = texts(reasons(slices, given, held=[holding(result("held"))]))
    assert found == {
        "held": "allocated to other/held",
        "tainted": "capacity memory is not defined by the device",
        "wrong": f"false: selector #0 of the request: {INDEX} == 5",
        "partition": "capacity memory is not defined by the device",
        "bound": "capacity memory is not defined by the device",
        "small": "capacity memory: needs 2Gi, 1Gi of 1Gi is free",
    }
    found = texts(reasons(slices, [claim(request("r0", 9))], held=[holding(result("held"))]))
    assert found["tainted"] == "taint k=v:NoSchedule is not tolerated"
    assert found["partition"] == (
        "counter mem of set set in gpu.example.com/pool: needs 2, 1 is left"
    )
    assert found["wrong"] == ""


def test_counter_names_who_holds_it() -> None:
    devices = [device(f"d{i}", consumesCounters=uses(mem=2)) for i in range(2)]
    slices = [
        resource_slice("s", *devices, count=2),
        resource_slice("c", count=2, sharedCounters=[counter_set(mem=3)]),
    ]
    found = reasons(slices, [claim(request())], held=[holding(result("d0"))])
    assert texts(found)["d1"].endswith("needs 2, 1 is left, held by other/held")
    assert found.text.startswith(
        "cannot allocate all claims: claim ns/claim: request r0 wants 1 device, 0 of 2 can be taken"
    )


def test_combination_that_fails_tells_how_far_the_search_got() -> None:
    slices = [resource_slice("s", device("d0", numa=0), device("d1", numa=1))]
    found = reasons(slices, [claim(request("a"), request("b"), constraints=[match()])])
    assert "not all together" in found.text
    assert found.picks == ("gpu.example.com/pool/d0 for request a",)
    assert found.deepest is not None
    assert [reason.cause.text for reason in found.deepest.devices if reason.cause] == [
        "taken by request a of claim ns/claim",
        "gpu.example.com/numa is 1, which does not match 0",
    ]


def test_allocation_tells_why_earlier_devices_were_passed_over() -> None:
    devices = [device("d0", taints=[taint()], numa=0), device("d1", numa=1), device("d2", numa=2),
               device("d3", numa=2)]  # fmt: skip
    given = [claim(request("r0", 2), constraints=[match()])]
    found = reasons([resource_slice("s", *devices)], given)
    assert found.outcome == "allocated"
    shown = [
        (
            reason.device[-2:],
            reason.chosen,
            reason.cause.kind.value if reason.cause else reason.note,
        )
        for reason in found.claims[0].requests[0].devices
    ]
    assert shown == [
        ("d0", False, "taint"),
        (
            "d1",
            False,
            "fits here, but the rest of the pod did not fit with it: request r0 wants 2 devices, "
            "0 of 4 can be taken: 2 against a constraint (gpu.example.com/numa does not match "
            "what is taken), 1 tainted (k=v:NoSchedule), 1 taken already for this pod (request "
            "r0 of claim ns/claim)",
        ),
        ("d2", True, ""),
        ("d3", True, ""),
    ]


def test_devices_behind_the_first_fit_were_not_reached() -> None:
    devices = [device(f"d{number}") for number in range(3)]
    found = reasons([resource_slice("s", *devices)], [claim(request())])
    assert [reason.note for reason in found.claims[0].requests[0].devices] == [
        "",
        "not reached: d0 was the first fit",
        "not reached: d0 was the first fit",
    ]


def test_refused_combination_tells_what_was_tried_first() -> None:
    devices = [device(f"d{number}", numa=number) for number in range(3)]
    given = [claim(request("a"), request("b"), constraints=[match()])]
    found = reasons([resource_slice("s", *devices)], given)
    assert [one.picks for one in found.tried] == [
        (f"gpu.example.com/pool/d{number} for request a",) for number in range(3)
    ]
    assert (
        "2 against a constraint (gpu.example.com/numa does not match" in found.tried[0].reason.text
    )
    # Each device for a, and at last nothing for a.
    assert found.given_up == 4


def test_without_effort_nothing_is_followed() -> None:
    slices = [resource_slice("s", device("d0", numa=0), device("d1", numa=1))]
    given = [claim(request("a"), request("b"), constraints=[match()])]
    found = explanation.explain(allocator(*slices).allocate(node(), given), effort_steps=0)
    assert (found.deepest, found.tried, found.given_up) == (None, (), 0)


def test_pools_that_cannot_be_used_are_named_with_their_problem() -> None:
    slices = [
        resource_slice("a", device("d0"), device("d0"), pool="twice"),
        resource_slice("b", device("d0"), pool="half", count=2),
    ]
    found = reasons(slices, [claim(request())])
    assert dict(found.pools) == {
        "gpu.example.com/twice": "invalid: duplicate device name d0",
        "gpu.example.com/half": "incomplete: 1 of 2 slices are there",
    }


def test_quirks_that_decide_are_named() -> None:
    devices = [device("d0", numa=0), device("d1", numa=1), device("d2", numa=0)]
    asked = allocator(resource_slice("s", *devices))
    answer = asked.allocate(node(), [claim(request("r0", 3), constraints=[distinct()])])
    assert explanation.quirks_in(asked, answer) == ("distinct-last-only",)


def test_explanation_is_json() -> None:
    slices = [resource_slice("s", device("d0", numa=0), device("d1", numa=1))]
    found = reasons(slices, [claim(request("a"), request("b"), constraints=[match()])])
    assert json.loads(json.dumps(found.tree())) == found.tree()


def many(nodes: int, devices: int) -> list:
    slices = [
        resource_slice(
            f"s{i:03}",
            *(device(f"d{j}", index=j, taints=[taint(key=f"k{j}")]) for j in range(devices)),
            pool=f"n{i:03}",
            node=f"n{i:03}",
        )
        for i in range(nodes)
    ]
    asked = allocator(*slices)
    return [asked.allocate(node(f"n{i:03}"), [claim(request())]) for i in range(nodes)]


def summarised(answers: list, bytes_max: int = 4_096, **into: object) -> dict:
    made = summary.CauseSummary()
    for answer in answers:
        made.add(answer.node.name, summary.causes_of(answer.case.problem))
    made.write(into, ["ns/claim"], bytes_max)
    return into


def test_summary_counts_equal_causes_of_all_nodes_together() -> None:
    found = summarised(many(5, 2))
    assert found["causesNodes"] == 5
    assert "together" not in found
    assert found["causes"] == [
        {
            "claim": "ns/claim",
            "request": "r0",
            "cause": "taint",
            "about": f"k{number}=v:NoSchedule",
            "nodes": 5,
            "devices": 5,
            "examples": [f"n00{node}: n00{node}/d{number}" for node in range(3)],
        }
        for number in range(2)
    ]


def test_summary_stays_within_its_bound_and_counts_what_it_cuts() -> None:
    answers = many(3, 100)
    for bound in (8_192, 2_048, 512, 200):
        found = summarised(answers, bound)
        assert len(json.dumps(found, separators=(",", ":")).encode()) <= bound
        shown = sum(cause["devices"] for cause in found["causes"])
        assert shown + found.get("causesDevicesCut", 0) == 300
        assert found.get("causesCut", 0) + len(found["causes"]) == 100


def test_summary_tells_nodes_on_which_only_the_combination_fails() -> None:
    slices = [resource_slice("s", device("d0", numa=0), device("d1", numa=1))]
    given = [claim(request("a"), request("b"), constraints=[match()])]
    found = summarised([allocator(*slices).allocate(node(), given)])
    assert found["together"] == 1
    assert [(one["request"], one["cause"], one["devices"]) for one in found["causes"]] == [
        ("a", "suitable", 2),
        ("b", "suitable", 2),
    ]


@pytest.mark.parametrize("mode", ["ExactCount", "All"])
def test_device_in_use_that_is_not_selected(mode: str) -> None:
    """Who holds it does not matter: it would not be taken if it were free."""
    slices = [resource_slice("s", device("held", index=1), device("taken", index=5))]
    wanted = request("r0", 1 if mode == "ExactCount" else 0, f"{INDEX} == 5")
    asked = allocator(*slices, held=[holding(result("held"), result("taken"))])
    answer = asked.allocate(node(), [claim(wanted)])
    first, second = explanation.explain(answer).claims[0].requests[0].devices
    assert first.cause is not None
    text = f"false: selector #0 of the request: {INDEX} == 5"
    assert (first.cause.kind, first.cause.text) == ("selector", text)
    assert second.cause is not None
    assert second.cause.text == "allocated to other/held"
    assert answer.case is not None
    counted = summary.causes_of(answer.case.problem).counted
    assert sum(one.devices for one in counted if one.kind == "allocated") == 1


def test_selector_that_fails_on_a_device_in_use_is_not_the_cause() -> None:
    """The search asks first which devices are in use, and never sees the error."""
    slices = [resource_slice("s", device("held"))]
    asked = allocator(*slices, held=[holding(result("held"))])
    answer = asked.allocate(node(), [claim(request("r0", 1, f"{INDEX} == 5"))])
    assert texts(explanation.explain(answer)) == {"held": "allocated to other/held"}


@pytest.mark.parametrize(
    ("asked", "kind", "about"),
    [
        ({"bw": "9"}, "capacity-policy", "capacity bw: 9, allowed: at least 1, at most 8"),
        ({"bw": "8"}, "capacity", "capacity bw"),
        ({"iops": "1"}, "capacity-missing", "capacity iops"),
    ],
)
def test_capacity_that_no_holder_has_to_do_with(asked: dict, kind: str, about: str) -> None:
    policy = {"default": "1", "validRange": {"min": "1", "max": "8"}}
    bw = {"value": "10", "requestPolicy": policy}
    slices = [resource_slice("s", device("d0", allowMultipleAllocations=True, capacity={"bw": bw}))]
    held = result("d0", shareID="s", consumedCapacity={"bw": "4"})
    given = claim(request("r0", 1, capacity={"requests": asked}))
    answer = allocator(*slices, held=[holding(held)]).allocate(node(), [given])
    (one,) = explanation.explain(answer).claims[0].requests[0].devices
    assert one.cause is not None
    assert (one.cause.kind, one.cause.about) == (kind, about)
    assert ("held by" in one.cause.text) is (kind == "capacity")
    assert answer.case is not None
    (counted,) = summary.causes_of(answer.case.problem).counted
    assert (counted.kind, counted.about) == (kind, about)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (
            {"a": "3", "b": "2", "c": "1"},
            "capacity a: needs 3, 1 of 5 is free, held by other/held; "
            "and capacity b: needs 2, 1 of 1 is free",
        ),
        (
            {"b": "2", "c": "9", "z": "1", "y": "1"},
            "capacity y is not defined by the device; and capacity z is not defined by the device; "
            "and capacity a: needs 5, 1 of 5 is free; and capacity b: needs 2, 1 of 1 is free; "
            "and capacity c: 9 is not allowed by the request policy "
            "(allowed: at least 1, at most 8)",
        ),
        (
            {"a": "1", "b": "1", "c": "0"},
            "",
        ),
    ],
)
def test_every_capacity_that_a_device_lacks_is_named(asked: dict, words: str) -> None:
    policy = {"default": "1", "validRange": {"min": "1", "max": "8"}}
    capacity = {
        "a": {"value": "5"}, "b": {"value": "1"}, "c": {"value": "9", "requestPolicy": policy}
    }  # fmt: skip
    slices = [resource_slice("s", device("d0", allowMultipleAllocations=True, capacity=capacity))]
    held = result("d0", shareID="s", consumedCapacity={"a": "4", "b": "0", "c": "1"})
    given = claim(request("r0", 1, capacity={"requests": asked}))
    answer = allocator(*slices, held=[holding(held)]).allocate(node(), [given])
    (one,) = explanation.explain(answer).claims[0].requests[0].devices
    assert ("" if one.cause is None else one.cause.text) == words


def test_every_counter_that_a_device_lacks_is_named() -> None:
    devices = [device("d0", consumesCounters=uses(mem=3, cores=2))]
    slices = [
        resource_slice(
            "s", device("held", consumesCounters=uses(mem=5, cores=1)), *devices, count=2
        ),
        resource_slice("c", count=2, sharedCounters=[counter_set(mem=6, cores=2)]),
    ]
    asked = allocator(*slices, held=[holding(result("held"))])
    said = texts(explanation.explain(asked.allocate(node(), [claim(request())])))["d0"]
    assert said == (
        "counter cores of set set in gpu.example.com/pool: needs 2, 1 is left, held by other/held; "
        "and counter mem of set set: needs 3, 1 is left"
    )


def test_device_for_other_nodes_says_so() -> None:
    there = device("there", nodeName="elsewhere")
    slices = [
        resource_slice("s", device("here", nodeName="node"), there, perDeviceNodeSelection=True)
    ]
    found = texts(reasons(slices, [claim(request("r0", 2))]))
    assert found == {"here": "", "there": "the device is for other nodes"}


def test_kinds_of_causes_have_words_of_their_own() -> None:
    kinds = [*CauseKind, causes.SUITABLE]
    assert list(causes.WORDS) == kinds
    assert len(set(causes.WORDS.values())) == len(kinds)
    assert not any("-" in words for words in causes.WORDS.values())
    assert causes.text_of("taint", "k=v:NoSchedule") == "tainted (k=v:NoSchedule)"
    assert causes.text_of("of-a-later-release", "") == "of-a-later-release"


LISTS = Features.of_gates({"DRAListTypeAttributes": True, "DRAConsumableCapacity": True})
NAME = "gpu.example.com/x"


@pytest.mark.parametrize(
    ("first", "second", "constraint", "words"),
    [
        ({"int": 1}, {"int": 2}, match("x"), f"{NAME} is 2, which does not match 1"),
        ({"string": "a"}, {"string": "b"}, match("x"), f"{NAME} is b, which does not match a"),
        (
            {"string": "1"},
            {"int": 1},
            match("x"),
            f"{NAME} is 1 (int), which does not match 1 (string)",
        ),
        ({"string": "a"}, {"string": ""}, match("x"), f'{NAME} is "", which does not match a'),
        ({"int": 1}, None, match("x"), f"has no attribute {NAME}, which a constraint needs"),
        (
            {"strings": ["b", "a"]},
            {"strings": ["d", "c"]},
            match("x"),
            f'{NAME} is ["c", "d"], which does not match ["a", "b"]',
        ),
        (
            {"ints": [10, 9]},
            {"strings": ["9", "10"]},
            match("x"),
            f'{NAME} is ["10", "9"] (string), which does not match [9, 10] (int)',
        ),
        (
            {"strings": ["1"]},
            {"ints": [1]},
            match("x"),
            f"{NAME} is [1] (int), which does not match 1 (string)",
        ),
        (
            {"bools": [True, False]},
            {"bool": True},
            distinct("x"),
            f"{NAME} is true, which is not distinct from [false, true]",
        ),
        (
            {"bool": True},
            {"bool": False},
            match("x"),
            f"{NAME} is false, which does not match true",
        ),
        ({"int": 1}, {"int": 1}, distinct("x"), f"{NAME} is 1, which is not distinct from 1"),
        (
            {"strings": ["b", "a"]},
            {"strings": ["c", "b"]},
            distinct("x"),
            f'{NAME} is ["b", "c"], which is not distinct from ["a", "b"]',
        ),
    ],
)
def test_value_against_a_constraint_is_named_beside_what_is_taken(
    first: dict, second: dict | None, constraint: dict, words: str
) -> None:
    """The first request has the first device, the second one asks for the other."""
    devices = [
        device(f"d{number}", attributes={} if value is None else {"x": value})
        for number, value in enumerate((first, second))
    ]
    asked = allocator(resource_slice("s", *devices), features=LISTS)
    given = claim(request("r0"), request("r1"), constraints=[constraint])
    problem = asked.allocate(node(), [given]).case.problem
    usage = Usage(problem)
    (row, *_), (other, *_) = problem.rows[0]
    assert usage.take(row, 0, must=False) is not None
    cause = causes.of(problem, usage, other, 1)
    assert cause is not None
    assert (cause.kind, cause.text) == (CauseKind.CONSTRAINT, words)


def test_first_dead_end_behind_each_beginning_is_remembered() -> None:
    rows = [SimpleNamespace(index=number) for number in range(4)]

    def stuck(*devices: int) -> None:
        takes = [SimpleNamespace(row=rows[at], device=each) for at, each in enumerate(devices)]
        usage = SimpleNamespace(results=[takes[:1], takes[1:]])
        found.stuck(cast(Any, rows[len(devices)]), 0, cast(Any, usage))

    def row_behind(*devices: int) -> int | None:
        dead_end = found.behind(tuple(enumerate(devices)))
        return None if dead_end is None else dead_end.row.index

    found = dead_ends.DeadEnds()
    for devices in ((0, 1, 2), (0, 3), (4,), (0, 1, 5)):
        stuck(*devices)
    assert [row_behind(*each) for each in ((0,), (0, 1), (0, 1, 2), (0, 1, 5))] == [3, 3, 3, 3]
    assert [row_behind(*each) for each in ((0, 3), (4,), (5,), (1,))] == [2, 1, None, None]
    assert (found.count, len(found.first)) == (4, dead_ends.FIRST_MAX)
    assert found.deepest is not None
    assert found.deepest.takes == ((0, 0), (1, 1), (2, 2))


def of_node(
    *counted: tuple[int, str, str, str, int, str],
    pools: tuple[str, ...] = (),
    is_short: bool = True,
) -> summary.NodeCauses:
    fields = ("claim", "request", "kind", "about", "devices", "example")
    return summary.NodeCauses(
        counted=tuple(
            summary.Counted(**dict(zip(fields, each, strict=True)))  # type: ignore[arg-type]  # in field order
            for each in counted
        ),
        pools=pools,
        is_short=is_short,
        may_be_kept=True,
    )


def sum_of(*nodes: summary.NodeCauses, left_out: int = 0, bytes_max: int = 4_096) -> dict:
    made = summary.CauseSummary()
    made.left_out = left_out
    for number, each in enumerate(nodes):
        made.add(f"n{number}", each)
    into: dict = {}
    made.write(into, ["ns/a", "ns/b"], bytes_max)
    return into


def test_summary_of_no_node_says_nothing() -> None:
    assert sum_of(left_out=3) == {}


def test_summary_adds_up_equal_causes_and_names_the_most_frequent_problems_of_pools() -> None:
    """Causes are equal in claim, request, kind and subject; those with most devices come first."""
    found = sum_of(
        of_node((0, "r", "taint", "t", 1, "a"), (1, "r", "taint", "t", 1, "a"), pools=("p", "q")),
        of_node((0, "r", "taint", "t", 2, "b"), (0, "s", "selector", "", 1, "c"), pools=("q",)),
        of_node((0, "r", "taint", "u", 1, "c"), is_short=False, pools=("o", "n", "m", "q", "p")),
        of_node((0, "r", "taint", "t", 1, "d"), is_short=False),
        of_node((0, "r", "taint", "t", 4, "e")),
        left_out=7,
    )
    tainted = {"request": "r", "cause": "taint"}
    assert found == {
        "causesNodes": 5,
        "causesNodesCut": 7,
        "together": 2,
        "pools": [
            {"problem": "q", "count": 3},
            {"problem": "p", "count": 2},
            {"problem": "m", "count": 1},
            {"problem": "n", "count": 1},
        ],
        "causes": [
            {
                **tainted,
                "claim": "ns/a",
                "about": "t",
                "nodes": 4,
                "devices": 8,
                "examples": ["n0: a", "n1: b", "n3: d"],
            },
            {
                **tainted,
                "claim": "ns/a",
                "about": "u",
                "nodes": 1,
                "devices": 1,
                "examples": ["n2: c"],
            },
            {
                "claim": "ns/a",
                "request": "s",
                "cause": "selector",
                "nodes": 1,
                "devices": 1,
                "examples": ["n1: c"],
            },
            {
                **tainted,
                "claim": "ns/b",
                "about": "t",
                "nodes": 1,
                "devices": 1,
                "examples": ["n0: a"],
            },
        ],
    }
    assert sum_of(of_node()) == {"causesNodes": 1, "causes": []}


def test_summary_leaves_out_examples_first_and_then_the_rarest_causes() -> None:
    """Each step is taken only where the one before is a byte too large."""
    causes = [(0, "r", "taint", f"t{number}", 9 - number, "d") for number in range(5)]
    nodes = (of_node(*causes), of_node(*causes))

    def size(tree: dict) -> int:
        return len(json.dumps(tree, ensure_ascii=False, separators=(",", ":")).encode())

    whole = sum_of(*nodes)
    assert [len(each["examples"]) for each in whole["causes"]] == [2] * 5
    assert sum_of(*nodes, bytes_max=size(whole)) == whole
    single = sum_of(*nodes, bytes_max=size(whole) - 1)
    assert [each["examples"] for each in single["causes"]] == [["n0: d"]] * 5
    assert sum_of(*nodes, bytes_max=size(single)) == single
    none = sum_of(*nodes, bytes_max=size(single) - 1)
    assert ["examples" in each for each in none["causes"]] == [False] * 5
    assert sum_of(*nodes, bytes_max=size(none)) == none
    two = sum_of(*nodes, bytes_max=size(none) - 1)
    assert two == {**none, "causes": none["causes"][:2], "causesCut": 3, "causesDevicesCut": 36}
    one = sum_of(*nodes, bytes_max=size(two) - 1)
    assert one == {**none, "causes": none["causes"][:1], "causesCut": 4, "causesDevicesCut": 52}
    left = sum_of(*nodes, bytes_max=1)
    assert left == {"causesNodes": 2, "causes": [], "causesCut": 5, "causesDevicesCut": 70}


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        (
            [claim(first_available("r0", a=wish(3), b=wish(4)))],
            "claim ns/claim: request r0/a wants 3 devices, 2 of 2 can be taken; "
            "request r0/b wants 4 devices, 2 of 2 can be taken",
        ),
        (
            [claim(request("r0"), request("r1", 3), request("r2", 4))],
            "claim ns/claim: request r1 wants 3 devices, 2 of 2 can be taken",
        ),
        (
            [claim(request("r0"), name="a"), claim(request("r1", 3), name="b")],
            "claim ns/b: request r1 wants 3 devices, 2 of 2 can be taken",
        ),
        (
            [claim(first_available("r0", a=wish(3), b=wish(1)), request("r1", 3))],
            "claim ns/claim: request r1 wants 3 devices, 2 of 2 can be taken",
        ),
    ],
)
def test_first_request_that_is_short_alone_is_named_with_all_its_alternatives(
    claims: list, words: str
) -> None:
    slices = [resource_slice("s", device("d0"), device("d1"))]
    found = reasons(slices, claims)
    assert found.text == f"cannot allocate all claims: {words}"
