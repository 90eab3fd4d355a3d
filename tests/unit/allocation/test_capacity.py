"""How much a request consumes, and what it leaves. Rows follow allocator.md 8."""

import pytest

from app.domain.allocation import capacity
from app.domain.allocation.capacity import Requested
from app.domain.devices import compiling
from app.domain.values import quantity
from tests.worlds.builders import (
    allocator,
    claim,
    device,
    holding,
    node,
    request,
    resource_slice,
    result,
    taken,
)

RANGE = {"default": "2", "validRange": {"min": "2", "step": "2", "max": "4"}}

AMOUNTS = [
    ("4", RANGE, None, "2"),
    ("4", RANGE, "1", "2"),
    ("4", RANGE, "3", "4"),
    ("4", RANGE, "6", "6"),
    ("10", None, None, "10"),
    ("10", None, "3.5", "3500m"),
    ("10", {"default": "1"}, "3", "3"),
    ("10", {}, None, "10"),
    ("10", {"validRange": {"min": "500m", "step": "500m"}}, "2.1", "3"),
    ("10", {"validRange": {"min": "1500"}}, "1", "1500"),
    ("9000", {"validRange": {"min": "1000", "step": "1"}}, "1024", "1Ki"),
    ("9000", {"validRange": {"min": "0", "step": "1000"}}, "900", "1k"),
    ("10", {"validValues": ["1", "4"]}, "2", "4"),
    ("10", {"validValues": ["1", "4"]}, "5", "5"),
    ("10", {"validValues": []}, "5", "5"),
]


@pytest.mark.parametrize(("value", "policy", "asked", "consumed"), AMOUNTS)
def test_amount_is_rounded_by_policy(
    value: str, policy: dict | None, asked: str | None, consumed: str
) -> None:
    tree = {"value": value, **({} if policy is None else {"requestPolicy": policy})}
    found = compiling.capacity_of({"x": tree}, "")["x"]
    requested = None if asked is None else Requested(amount=quantity.parse(asked))
    assert str(capacity.amount_of(requested, found).value) == consumed


VIOLATIONS = [
    ("3", RANGE, True),
    ("4", RANGE, False),
    ("6", RANGE, True),
    ("1", {"default": "1", "validRange": {"min": "2"}}, False),
    ("2", {"validValues": ["1"]}, True),
    ("7", {"default": "1"}, False),
    ("1Gi", {"default": "1Gi", "validValues": ["2Gi"]}, False),
    ("1024Mi", {"default": "1Gi", "validValues": ["2Gi"]}, True),
    ("4", {"validRange": {"step": "2", "max": "8"}}, False),
    ("3", {"validRange": {"step": "2", "max": "8"}}, True),
    ("8", {"validRange": {"step": "2", "max": "8"}}, False),
    ("10", {"validRange": {"step": "2", "max": "8"}}, True),
]


@pytest.mark.parametrize(("amount", "policy", "broken"), VIOLATIONS)
def test_policy_is_checked_in_upstreams_order(amount: str, policy: dict, broken: bool) -> None:
    found = compiling.policy_of({"requestPolicy": policy}, "")
    assert capacity.violates(quantity.parse(amount), found) is broken


def shared(value: str = "4", policy: dict | None = None, name: str = "d0") -> dict:
    tree = {"value": value, **({} if policy is None else {"requestPolicy": policy})}
    return device(name, allowMultipleAllocations=True, capacity={"memory": tree})


def asks(name: str, amount: str) -> dict:
    return request(name, 1, capacity={"requests": {"memory": amount}})


def test_two_requests_share_a_device_until_it_is_full() -> None:
    asked = allocator(resource_slice("s", shared(policy=RANGE)))
    two = claim(request("r0"), request("r1"))
    assert taken(asked.allocate(node(), [two])) == [["r0: d0", "r1: d0"]]
    three = claim(*(request(f"r{i}") for i in range(3)))
    assert taken(asked.allocate(node(), [three])) is None


def test_amount_above_the_maximum_skips_the_device_although_it_would_fit() -> None:
    asked = allocator(resource_slice("s", shared("10", RANGE)))
    assert taken(asked.allocate(node(), [claim(asks("r0", "6"))])) is None


def test_earlier_shares_count() -> None:
    earlier = holding(result("d0", shareID="s", consumedCapacity={"memory": "3"}))
    asked = allocator(resource_slice("s", shared(), shared(name="d1")), held=[earlier])
    found = asked.allocate(node(), [claim(asks("r0", "2"), asks("r1", "1"))])
    assert taken(found) == [["r0: d1", "r1: d0"]]


def test_capacity_that_the_device_lacks_skips_it() -> None:
    slices = resource_slice("s", device("d0"), shared(name="d1"))
    assert taken(allocator(slices).allocate(node(), [claim(asks("r0", "1"))])) == [["r0: d1"]]


def test_dedicated_device_honours_the_amount_without_recording_it() -> None:
    whole = device("d0", capacity={"memory": {"value": "4"}})
    found = allocator(resource_slice("s", whole)).allocate(node(), [claim(asks("r0", "3"))])
    entry = found.allocation_results(lambda: "x")[0]["devices"]["results"][0]
    assert "shareID" not in entry
    assert "consumedCapacity" not in entry
    none = allocator(resource_slice("s", whole)).allocate(node(), [claim(asks("r0", "5"))])
    assert taken(none) is None


def test_consumption_names_every_capacity_of_the_device() -> None:
    both = device(
        "d0",
        allowMultipleAllocations=True,
        capacity={"memory": {"value": "4Gi"}, "cores": {"value": "10",
                  "requestPolicy": {"default": "0"}}},
    )  # fmt: skip
    found = allocator(resource_slice("s", both)).allocate(node(), [claim(asks("r0", "1.5Gi"))])
    entry = found.allocation_results(lambda: "id")[0]["devices"]["results"][0]
    assert entry["shareID"] == "id"
    assert entry["consumedCapacity"] == {"cores": "0", "memory": "1536Mi"}


@pytest.mark.parametrize(
    ("policy", "amount", "note"),
    [
        (None, "3", ""),
        ({"default": "1"}, "3", ""),
        ({"default": "1"}, None, "nothing is requested, so the policy's default counts"),
        ({}, None, ""),
        ({"validValues": ["1", "4"]}, "4", ""),
        ({"validValues": ["1", "4"]}, "2", "2 is requested and rounded up by the request policy"),
        ({"validValues": ["1", "4"]}, "5", "allowed: 1, 4"),
        (RANGE, "1", "1 is requested and rounded up by the request policy"),
        (RANGE, "6", "allowed: at least 2, at most 4, in steps of 2"),
    ],
)
def test_policy_says_how_it_makes_an_amount(policy, amount, note):
    tree = {"value": "10", **({} if policy is None else {"requestPolicy": policy})}
    own = compiling.capacity_of({"x": tree}, "")["x"]
    requested = None if amount is None else Requested(amount=quantity.parse(amount))
    assert capacity.policy_note(requested, own) == note
