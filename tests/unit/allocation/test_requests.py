"""Checks before the search: their order and their exact texts."""

import pytest

from app.domain.allocation import AllocatorVariant, Failure, FailureScope, Features
from tests.worlds.builders import (
    ALL_ON,
    allocator,
    claim,
    device,
    device_class,
    distinct,
    first_available,
    node,
    request,
    resource_slice,
    taken,
    wish,
)

NONE = Features()
SLICE = resource_slice("s", device("d0"))


def error(claims: list, *, features: Features = ALL_ON, slices: tuple = (SLICE,), **how) -> str:
    answer = allocator(*slices, features=features, **how).allocate(node(), claims)
    assert isinstance(answer, Failure), answer
    assert answer.scope is FailureScope.FATAL
    return answer.text


ROWS = [
    (
        claim(first_available("r", a=wish())),
        NONE,
        "claim ns/claim, request r: has subrequests, "
        "but the DRAPrioritizedList feature is disabled",
    ),
    (
        claim(request("r", capacity={"requests": {}})),
        NONE,
        "claim ns/claim, request r: has capacity requests, "
        "but the DRAConsumableCapacity feature is disabled",
    ),
    (
        claim(first_available("r", a=wish(capacity={"requests": {"m": "1"}}))),
        Features(prioritized_list=True),
        "claim ns/claim, subrequest a: has capacity requests, "
        "but the DRAConsumableCapacity feature is disabled",
    ),
    (
        claim(request("r", selectors=[{}])),
        NONE,
        "claim ns/claim, request r, selector #0: CEL expression empty (unsupported selector type?)",
    ),
    (
        claim(request("r", adminAccess=False)),
        NONE,
        "claim ns/claim, request r: admin access is requested, but the feature is disabled",
    ),
    (
        claim(request("r", deviceClassName="")),
        NONE,
        "claim ns/claim, request r: missing device class name (unsupported request type?)",
    ),
    (
        claim(first_available("r", a=wish(), b=wish(deviceClassName="none"))),
        ALL_ON,
        "claim ns/claim, request b: could not retrieve device class none: "
        'deviceclass.resource.k8s.io "none" not found',
    ),
    (
        claim(request("r", allocationMode="Some")),
        NONE,
        "claim ns/claim, request r: unsupported count mode Some",
    ),
    (
        claim(request("a", 20), request("b", 13)),
        NONE,
        "claim ns/claim: number of requested devices 33 exceeds the claim limit of 32",
    ),
    (
        claim(request("r"), constraints=[{"requests": ["r"]}]),
        NONE,
        "claim ns/claim, constraint #0: empty constraint (unsupported constraint type?)",
    ),
    (
        claim(request("r", 1, "device.nope")),
        NONE,
        "claim ns/claim: selector #0: CEL compile error: ",
    ),
    (
        claim(request("r", 1, 'device.attributes["x"].y == 1')),
        NONE,
        "claim ns/claim: selector #0 on device gpu.example.com/pool/d0: "
        "CEL runtime error: no such key: y",
    ),
]


@pytest.mark.parametrize(("given", "features", "text"), ROWS, ids=range(len(ROWS)))
def test_request_is_refused_in_upstreams_words(given: dict, features: Features, text: str) -> None:
    assert error([given], features=features).startswith(text)


def test_errors_of_the_first_claim_come_first() -> None:
    first = claim(request("a", 33), name="first")
    second = claim(request("b", deviceClassName=""), name="second")
    assert error([first, second]).startswith("claim ns/first:")


def test_stable_variant_does_not_know_distinct_constraints() -> None:
    found = error([claim(request("r"), constraints=[distinct()])], variant=AllocatorVariant.STABLE)
    assert found.endswith("constraint #0: empty constraint (unsupported constraint type?)")


def test_mode_all_is_refused_by_an_incomplete_pool_of_any_driver() -> None:
    other = resource_slice("o", device("d9"), pool="other", count=2, driver="z.example.com")
    found = error([claim(request("r", 0))], slices=(SLICE, other))
    assert found == (
        "claim ns/claim, request r: asks for all devices, "
        "but resource pool z.example.com/other is currently being updated"
    )


def test_q11_a_later_alternative_in_mode_all_is_checked_before_the_search() -> None:
    other = resource_slice("o", device("d9"), device("d9"), pool="other")
    found = error([claim(first_available("r", a=wish(), b=wish(0)))], slices=(SLICE, other))
    assert found.endswith("resource pool gpu.example.com/other is currently invalid")


def test_selector_error_of_an_earlier_pool_precedes_the_pool_error() -> None:
    bad = resource_slice("a", device("d0", attributes={"x": {}}), pool="a")
    incomplete = resource_slice("b", device("d0"), pool="b", count=2)
    found = error(
        [claim(request("r", 0))],
        slices=(bad, incomplete),
        classes=[device_class("gpu", "true")],
    )
    assert "unsupported attribute value" in found


def test_error_prevents_later_alternatives() -> None:
    given = claim(first_available("r", a=wish(1, 'device.attributes["x"].y == 1'), b=wish()))
    assert "no such key" in error([given])


def test_only_the_smallest_alternative_counts_for_the_limit() -> None:
    given = claim(first_available("r", big=wish(500), small=wish(1)))
    assert taken(allocator(SLICE).allocate(node(), [given])) == [["r/small: d0"]]


def test_no_claims_and_no_requests_succeed() -> None:
    assert taken(allocator(SLICE).allocate(node(), [])) == []
    assert taken(allocator(SLICE).allocate(node(), [claim()])) == [[]]


def test_invalid_pool_is_an_error_of_the_node_when_nothing_else_fits() -> None:
    invalid = resource_slice("s", device("d0"), device("d0"))
    answer = allocator(invalid).allocate(node(), [claim(request())])
    assert isinstance(answer, Failure)
    assert (answer.scope, answer.text) == (
        FailureScope.NODE,
        "invalid resource pools were encountered",
    )
    valid = resource_slice("t", device("d1"), pool="valid")
    assert taken(allocator(invalid, valid).allocate(node(), [claim(request())])) == [["r0: d1"]]


def test_features_choose_the_first_variant_that_supports_them() -> None:
    assert Features.of_profile("1.34").variant() is AllocatorVariant.STABLE
    assert Features.of_profile("1.36").variant() is AllocatorVariant.INCUBATING
    assert (
        Features.of_gates({"DRAListTypeAttributes": True}).variant()
        is AllocatorVariant.EXPERIMENTAL
    )
    assert not Features.of_profile("1.36").taint_rules
    assert Features.of_profile("1.37").taint_rules
    with pytest.raises(KeyError):
        Features.of_profile("1.2")


def test_binding_conditions_need_both_gates() -> None:
    gates = {"DRADeviceBindingConditions": True, "DRAResourceClaimDeviceStatus": False}
    assert not Features.of_gates(gates).binding_conditions
