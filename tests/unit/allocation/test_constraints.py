"""Constraints: which values match, which are distinct, and for which requests."""

import pytest

from app.domain.allocation import Features
from app.domain.allocation.pruning import Pruner
from app.domain.allocation.usage import Usage
from tests.worlds.builders import (
    DRIVER,
    allocator,
    claim,
    device,
    distinct,
    first_available,
    match,
    node,
    request,
    resource_slice,
    taken,
    wish,
)

LISTS = Features.of_gates({"DRAListTypeAttributes": True, "DRAConsumableCapacity": True})
SCALARS = Features.of_gates({"DRAConsumableCapacity": True})


def fits(constraint: dict, *values: object, features: Features = SCALARS) -> bool:
    """Whether one device per value can be taken, each for a request of its own."""
    devices = [
        device(f"d{i}", attributes={} if value is None else {"x": value})
        for i, value in enumerate(values)
    ]
    given = claim(*(request(f"r{i}") for i in range(len(values))), constraints=[constraint])
    asked = allocator(resource_slice("s", *devices), features=features)
    return taken(asked.allocate(node(), [given])) is not None


MATCHES = [
    ([{"int": 1}, {"int": 1}], True, True),
    ([{"int": 1}, {"int": 2}], False, False),
    ([{"string": "a"}, {"string": "a"}], True, True),
    ([{"bool": True}, {"int": 1}], False, False),
    ([{"version": "1.0.0"}, {"version": "1.0.0+b"}], False, False),
    ([{"string": "1.0.0"}, {"version": "1.0.0"}], False, False),
    ([{"int": 1}, None], False, False),
    ([None], False, False),
    ([{"strings": ["a"]}], True, True),
    ([{"strings": ["a"]}, {"strings": ["a"]}], False, True),
    ([{"strings": ["a", "b"]}, {"string": "b"}], False, True),
    ([{"strings": ["a", "b"]}, {"strings": ["b", "c"]}, {"strings": ["a", "c"]}], False, False),
    ([{"ints": [1]}, {"strings": ["1"]}], False, False),
    ([{}], True, False),
]


@pytest.mark.parametrize(("values", "scalar", "listed"), MATCHES)
def test_match_constraint_accepts(values: list, scalar: bool, listed: bool) -> None:
    assert fits(match("x"), *values) is scalar
    assert fits(match("x"), *values, features=LISTS) is listed


DISTINCT = [
    ([{"int": 1}, {"int": 2}], True, True),
    ([{"int": 1}, {"int": 1}], False, False),
    ([{"int": 1}, {"string": "1"}], True, True),
    ([{"strings": ["a"]}, {"strings": ["b"]}], False, True),
    ([{"strings": ["a", "b"]}, {"string": "b"}], True, False),
    ([{"int": 1}, None], False, False),
]


@pytest.mark.parametrize(("values", "scalar", "listed"), DISTINCT)
def test_distinct_constraint_accepts(values: list, scalar: bool, listed: bool) -> None:
    assert fits(distinct("x"), *values) is scalar
    assert fits(distinct("x"), *values, features=LISTS) is listed


def test_short_key_counts_only_for_the_domain_of_the_driver() -> None:
    other = {"matchAttribute": "other.example.com/x", "requests": []}
    assert not fits(other, {"int": 1})
    assert fits({"matchAttribute": f"{DRIVER}/x", "requests": []}, {"int": 1})


def test_qualified_key_is_preferred_to_the_short_one() -> None:
    devices = [
        device("d0", attributes={"x": {"int": 1}, f"{DRIVER}/x": {"int": 2}}),
        device("d1", attributes={"x": {"int": 2}}),
    ]
    given = claim(request("r0", 2), constraints=[match("x")])
    assert taken(allocator(resource_slice("s", *devices)).allocate(node(), [given])) is not None


def test_constraint_of_one_alternative_ignores_the_others() -> None:
    devices = [device("d0", numa=0), device("d1", numa=1)]
    slices = resource_slice("s", *devices)

    def ask(scope: str) -> list | None:
        given = claim(
            first_available("r0", a=wish(2), b=wish(2)), constraints=[match("numa", scope)]
        )
        return taken(allocator(slices).allocate(node(), [given]))

    assert ask("r0") is None
    assert ask("r0/a") == [["r0/b: d0", "r0/b: d1"]]


def test_constraints_do_not_span_claims() -> None:
    slices = resource_slice("s", device("d0", numa=0), device("d1", numa=1))
    claims = [claim(request(), name=f"c{i}", constraints=[match()]) for i in range(2)]
    assert taken(allocator(slices).allocate(node(), claims)) == [["r0: d0"], ["r0: d1"]]


ALIKE = (
    {"x": {"int": 0}, "y": {"string": "c"}},
    {"x": {"int": 1}, "y": {"string": "a"}},
    {"x": {"int": 1}, "y": {"string": "b"}},
    {"x": {"int": 2}, "y": {"string": "a"}},
    {"x": {"string": "1"}, "y": {"string": "a"}},
    {"y": {"string": "a"}},
    {"x": {"int": 1}, "y": {"string": "a"}},
)
"""The attributes of devices, of which the second is taken for `r0`."""

SURE = [
    ([match("x")], [1, 2, 6]),
    ([match("y")], [1, 3, 4, 5, 6]),
    ([match("x"), match("y")], [1, 6]),
    ([match("y"), match("x")], [1, 6]),
    ([match("x", "r0", "r1"), match("y", "r0", "r2")], [1, 2, 6]),
    ([match("x", "r0", "r2"), match("y", "r0", "r1")], [1, 3, 4, 5, 6]),
    ([match("z")], []),
    ([match("x", "r1", "r2")], []),
    ([match("y"), match("x", "r1", "r2")], []),
    ([distinct("x")], []),
    ([match("x"), distinct("y")], []),
    ([distinct("y"), match("x")], []),
]


@pytest.mark.parametrize("features", [SCALARS, LISTS])
@pytest.mark.parametrize(("constraints", "sure"), SURE)
def test_devices_that_a_later_request_is_sure_to_accept(
    constraints: list, sure: list, features: Features
) -> None:
    """Only where a value is fixed that no later take can change; the others stay open."""
    assert sure_after_first(constraints, ALIKE, features) == (sure, [])


def sure_after_first(
    constraints: list, attributes: tuple, features: Features, *, at: int = 1
) -> tuple[list[int], ...]:
    """The devices that the second request and another claim are sure to accept after the first."""
    devices = [device(f"d{i}", attributes=each) for i, each in enumerate(attributes)]
    requests = [request(f"r{i}") for i in range(3)]
    claims = [claim(*requests, name=name, constraints=constraints) for name in ("claim", "another")]
    asked = allocator(resource_slice("s", *devices), features=features)
    problem = asked.allocate(node(), claims).case.problem
    usage = Usage(problem)
    pruner = Pruner(problem, usage)
    first, second, _ = (row for (row,) in problem.rows[0])
    elsewhere = problem.rows[1][1][0]
    pruner.after_failure(first, 0, 0, 0)
    usage.take(first, at, must=False)
    masks = [pruner._accepted(later, first) for later in (second, elsewhere)]
    return tuple([i for i in range(len(devices)) if mask >> i & 1] for mask in masks)


LISTED = [
    ({"x": {"strings": ["a"]}}, []),
    ({"x": {"strings": ["a", "b"]}}, []),
    ({"x": {"string": "a", "int": 1}}, []),
    ({"x": {"string": "a"}}, [0, 1, 2]),
    ({"x": {}}, []),
    ({}, [0, 1]),
]


@pytest.mark.parametrize("features", [SCALARS, LISTS])
@pytest.mark.parametrize(("other", "sure"), LISTED)
def test_nothing_is_sure_where_a_device_has_several_values(
    other: dict, sure: list, features: Features
) -> None:
    """A list of any device may narrow what the devices so far have in common."""
    plain = {"x": {"string": "a"}}
    assert sure_after_first([match("x")], (plain, plain, other), features, at=0) == (sure, [])


@pytest.mark.parametrize("features", [SCALARS, LISTS])
def test_nothing_is_sure_before_the_first_take(features: Features) -> None:
    missing = (ALIKE[0], {"y": {"string": "a"}}, *ALIKE[2:])
    assert sure_after_first([match("x")], missing, features) == ([], [])
