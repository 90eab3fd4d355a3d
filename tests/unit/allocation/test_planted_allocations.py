"""The checker names each wrong that is planted into a right allocation, and only that."""

from typing import Any

import pytest

from app.domain.allocation import checking
from app.domain.allocation.checking.judge import Finding
from tests.worlds import differences
from tests.worlds.builders import (
    DRIVER,
    GATES,
    claim,
    device,
    device_class,
    distinct,
    match,
    node,
    request,
    resource_slice,
    result,
    taint,
)

TREE = dict[str, Any]
MODEL = f"device.attributes['{DRIVER}'].?model.orValue('')"

DEVICES = [
    device("a", model="m", slot=1),
    device("b", model="m", slot=2),
    device("c", model="n", slot=1),
    device("other", slot=3),
    device("tainted", model="m", slot=4, taints=[taint()]),
]


def case_of(claims: list[TREE], devices: list[TREE] = DEVICES) -> checking.Case:
    slices = [resource_slice("s", *devices)]
    given = {"slices": slices, "claims": claims, "classes": [device_class()], "features": GATES}
    return differences.case_of(given, node())


def problems(case: checking.Case, *allocations: TREE) -> list[str]:
    """The problems, each with the known issue that explains it, if any."""
    findings = checking.check(case, list(allocations))
    return [f"{one.problem} ({one.quirk})" if one.quirk else one.problem for one in findings]


def given(*results: TREE) -> TREE:
    """An allocation on the node, with what a scheduler writes beside the results."""
    only = {"key": "metadata.name", "operator": "In", "values": ["node"]}
    terms = {"nodeSelectorTerms": [{"matchFields": [only]}]}
    return {"devices": {"results": list(results)}, "nodeSelector": terms}


MATCHED = claim(request("r0", 2), constraints=[match("model"), distinct("slot")])


def test_right_allocation_has_no_problem() -> None:
    assert problems(case_of([MATCHED]), given(result("a"), result("b"))) == []


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("a c", [
            "the devices do not have a common value of gpu.example.com/model",
            "two devices share a value of gpu.example.com/slot (q6)",
        ]),
        ("a other", ["device gpu.example.com/pool/other has no attribute gpu.example.com/model"]),
        ("a tainted", ["device gpu.example.com/pool/tainted: it has the taint k:NoSchedule"]),
        ("a", ["request r0 has 1 of 2 devices"]),
        ("b a", ["devices of request r0 are not in the order in which they are listed"]),
        ("a a", [
            "request r0 has a device twice",
            "two devices share a value of gpu.example.com/slot (q6)",
            "device gpu.example.com/pool/a is taken twice",
        ]),
    ],
)  # fmt: skip
def test_planted_choice_of_devices_is_named(names: str, expected: list[str]) -> None:
    assert problems(case_of([MATCHED]), given(*map(result, names.split()))) == expected


@pytest.mark.parametrize(
    ("toleration", "is_right"),
    [
        ({"key": "k", "operator": "Exists"}, True),
        ({"key": "k", "operator": "Exists", "effect": "NoSchedule"}, True),
        ({"key": "k", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "k", "operator": "Equal", "value": "v"}, True),
        ({"key": "k", "operator": "Equal", "value": "w"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"operator": "Exists"}, True),
    ],
)
def test_taint_is_named_unless_the_request_tolerates_it(toleration: TREE, is_right: bool) -> None:
    case = case_of([claim(request("r0", 1, tolerations=[toleration]))])
    text = "device gpu.example.com/pool/tainted: it has the taint k:NoSchedule"
    copied = result("tainted", tolerations=[toleration])
    assert problems(case, given(copied)) == ([] if is_right else [text])


def test_claim_without_devices_is_named() -> None:
    assert "request r0 has no devices" in problems(case_of([MATCHED]), given())


def test_device_that_a_selector_excludes_is_named() -> None:
    case = case_of([claim(request("r0", 1, f"{MODEL} == 'm'"))])
    assert problems(case, given(result("b"))) == []
    text = "device gpu.example.com/pool/c: it is not selectable for request r0"
    assert problems(case, given(result("c"))) == [text]


@pytest.mark.parametrize(
    ("names", "is_right"), [("a b", True), ("a", False), ("b a", False), ("a b c", False)]
)
def test_request_for_all_devices_has_each_of_them_in_order(names: str, is_right: bool) -> None:
    case = case_of([claim(request("r0", 0, f"{MODEL} == 'm'"))], DEVICES[:3])
    found = problems(case, given(*map(result, names.split())))
    text = "request r0 does not have all devices, in their order"
    assert (found == []) is is_right
    assert (text in found) is not is_right


def test_more_devices_than_a_claim_can_have_are_named() -> None:
    names = [f"d{number:02}" for number in range(33)]
    devices = list(map(device, names))
    right = case_of([claim(request("r0", 32))], devices)
    assert problems(right, given(*map(result, names[:32]))) == []
    case = case_of([claim(request("r0", 33))], devices)
    assert problems(case, given(*map(result, names))) == ["33 devices exceed the limit of 32"]


def test_other_number_of_allocations_than_of_claims_is_named() -> None:
    case = case_of([MATCHED])
    whole = given(result("a"), result("b"))
    assert problems(case) == ["0 allocations for 1 claims"]
    assert problems(case, whole, whole) == ["2 allocations for 1 claims"]


def test_findings_as_json_name_a_quirk_where_one_explains_them() -> None:
    plain = checking.check(case_of([MATCHED]), [])
    explained = [Finding(claim="ns/c", problem="words", quirk="q4")]
    assert checking.findings_tree([*plain, *explained]) == [
        {"claim": "", "problem": "0 allocations for 1 claims"},
        {"claim": "ns/c", "problem": "words", "quirk": "q4"},
    ]
