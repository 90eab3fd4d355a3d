"""The readers of the checker: quantities, amounts, node selection."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.allocation.checking import amounts, judge, results, stock
from app.domain.allocation.checking.judge import Case
from app.domain.values import quantity
from app.domain.values.quantity import QuantityError

NUMBERS = [
    ("1Gi", Fraction(2**30)),
    ("1.5Gi", Fraction(3 * 2**29)),
    ("100m", Fraction(1, 10)),
    ("2e3", Fraction(2000)),
    ("1E", Fraction(10**18)),
    ("0.1n", Fraction(1, 10**9)),
    ("-0.5", Fraction(-1, 2)),
    ("16Ei", Fraction(2**63 - 1)),
    (7, Fraction(7)),
    (None, Fraction(0)),
]


@pytest.mark.parametrize(("written", "number"), NUMBERS)
def test_quantity_is_read_as_an_exact_number(written: object, number: Fraction) -> None:
    assert amounts.read(written) == number


@pytest.mark.parametrize("text", ["", " ", "1K", "1 Gi", "1.2.3", "Gi1", "1e", "x", "1m3"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        amounts.read(text)


SUFFIXES = ["", "n", "u", "m", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti", "e2", "e-3", "E1"]


@given(st.from_regex(r"[+-]?[0-9]{1,9}(\.[0-9]{0,9})?", fullmatch=True), st.sampled_from(SUFFIXES))
def test_both_readers_of_quantities_agree(digits: str, suffix: str) -> None:
    text = digits + suffix
    try:
        expected = quantity.parse(text).nanos
    except QuantityError:
        with pytest.raises(ValueError, match="is not a quantity"):
            amounts.read(text)
    else:
        assert amounts.read(text) * 10**9 == expected


RANGE = {"validRange": {"min": "2", "step": "2", "max": "4"}, "default": "2"}
VALUES = {"validValues": ["1", "4"], "default": "1"}
CONSUMED = [
    (RANGE, None, 2, False),
    (RANGE, "1", 2, False),
    (RANGE, "3", 4, False),
    (RANGE, "6", 6, True),
    (VALUES, "2", 4, False),
    (VALUES, "5", 5, True),
    (None, "3", 3, False),
    (None, None, 10, False),
]


@pytest.mark.parametrize(("policy", "asked", "amount", "breaks"), CONSUMED)
def test_amount_follows_the_policy(
    policy: dict | None, asked: str | None, amount: int, breaks: bool
) -> None:
    capacity = {"value": "10"} | ({"requestPolicy": policy} if policy else {})
    found = amounts.consumed(capacity, asked)
    assert found == amount
    assert amounts.breaks_policy(capacity, found) is breaks


ROOM = [
    (RANGE, 0, 4),
    (RANGE, 7, 2),
    (RANGE, 9, None),
    ({"validRange": {"min": "2"}}, 3, 7),
    ({"validRange": {"min": "2"}}, 9, None),
    (VALUES, 5, 4),
    (VALUES, 7, 1),
    (VALUES, 10, None),
    ({"default": "1"}, 4, 6),
    (None, 4, 6),
    (None, 12, -2),
]


@pytest.mark.parametrize(("policy", "held", "amount"), ROOM)
def test_room_for_a_request_follows_the_policy(policy: dict | None, held: int, amount: int) -> None:
    """Each larger request has no room: it consumes more, or breaks the policy."""
    capacity = {"value": "10"} | ({"requestPolicy": policy} if policy else {})
    assert amounts.most(capacity, Fraction(held)) == amount
    larger = amounts.consumed(capacity, f"{(amount or 0) * 1000 + 1}m")
    assert larger + held > 10 or amounts.breaks_policy(capacity, larger)


NODE = {"metadata": {"name": "n", "labels": {"zone": "a", "rank": "3"}}}


def selection(operator: str, *values: str, key: str = "zone") -> dict:
    requirement = {"key": key, "operator": operator, "values": list(values)}
    return {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}}


def named(operator: str, *names: str) -> dict:
    """A selection by the name of the node."""
    requirement = {"key": "metadata.name", "operator": operator, "values": list(names)}
    return {"nodeSelector": {"nodeSelectorTerms": [{"matchFields": [requirement]}]}}


SELECTIONS = [
    ({"nodeName": "n"}, True),
    ({"nodeName": "m", "allNodes": True}, False),
    ({"allNodes": True}, True),
    ({}, False),
    (selection("In", "a", "b"), True),
    (selection("NotIn", "a"), False),
    (selection("NotIn", "a", key="absent"), True),
    (selection("Exists"), True),
    (selection("DoesNotExist"), False),
    (selection("Gt", "2", key="rank"), True),
    (selection("Lt", "3", key="rank"), False),
    (selection("Gt", "2", key="zone"), False),
    ({"nodeSelector": {"nodeSelectorTerms": [{}]}}, False),
    (named("In", "n"), True),
    (named("In", "m", "n"), True),
    (named("In", "m"), False),
    (named("NotIn", "n"), False),
    (named("NotIn", "m"), True),
]


@pytest.mark.parametrize(("place", "is_chosen"), SELECTIONS)
def test_node_is_chosen_by_name_flag_or_selector(place: dict, is_chosen: bool) -> None:
    assert stock.is_selected(place, NODE) is is_chosen


@pytest.mark.parametrize("partitionable", [True, False])
def test_slice_with_devices_and_counters_is_read_for_both(partitionable: bool) -> None:
    """Up to 1.34 one slice has both. Parity: objects.md 7.1."""
    use = [{"counterSet": "gpu", "counters": {"memory": {"value": "6Gi"}}}]
    spec = {
        "driver": "d",
        "nodeName": "n1",
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": name, "consumesCounters": use} for name in ("a", "b")],
        "sharedCounters": [{"name": "gpu", "counters": {"memory": {"value": "10Gi"}}}],
    }
    slices = [{"metadata": {"name": "both"}, "spec": spec}]
    claims = [
        {
            "metadata": {"name": name, "namespace": "x"},
            "spec": {
                "devices": {
                    "requests": [
                        {
                            "name": "r",
                            "exactly": {
                                "deviceClassName": "c",
                                "allocationMode": "ExactCount",
                                "count": 1,
                            },
                        }
                    ]
                }
            },
        }
        for name in ("one", "two")
    ]

    def allocation(device: str) -> dict:
        result = {"request": "r", "driver": "d", "pool": "p", "device": device}
        terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]
        return {
            "devices": {"results": [result]},
            "nodeSelector": {"nodeSelectorTerms": terms},
        }

    def problems(*devices: str) -> list[str]:
        case = Case(
            node={"metadata": {"name": "n1"}},
            claims=claims[: len(devices)],
            classes={"c": {"metadata": {"name": "c"}, "spec": {}}},
            slices=slices,
            selects=lambda *_: True,
            gates={"DRAPartitionableDevices": partitionable},
        )
        return [each.problem for each in judge.check(case, [allocation(each) for each in devices])]

    if partitionable:
        assert problems("a") == []
        (problem,) = problems("a", "b")
        assert "memory" in problem
    else:
        assert problems("a") != []


@pytest.mark.parametrize(
    ("mode", "is_right"), [({"count": 0}, True), ({"allocationMode": "All"}, False)]
)
def test_request_without_devices_is_right_only_if_it_wants_none(mode: dict, is_right: bool) -> None:
    """Mode All needs at least one device. Parity: allocator.md 4."""
    exactly = {"deviceClassName": "c", "allocationMode": "ExactCount", **mode}
    requests = [{"name": "r", "exactly": exactly}]
    case = Case(
        node={"metadata": {"name": "n1"}},
        claims=[{"metadata": {"name": "one"}, "spec": {"devices": {"requests": requests}}}],
        classes={"c": {"metadata": {"name": "c"}, "spec": {}}},
        slices=[],
        selects=lambda *_: True,
    )
    findings = judge.check(case, [{"devices": {}}])
    assert [each.problem for each in findings] == ([] if is_right else ["request r has no devices"])


ON_N1 = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}


@pytest.mark.parametrize(
    ("devices", "selector", "problem"),
    [
        (
            {"results": [{"adminAccess": True}]},
            {"nodeSelectorTerms": [ON_N1]},
            "device d/p/a: adminAccess is true, not absent",
        ),
        (
            {"results": [{}], "config": [{"source": "FromClaim", "requests": ["r"]}]},
            {"nodeSelectorTerms": [ON_N1]},
            'config is [{"source": "FromClaim", "requests": ["r"]}], not []',
        ),
        (
            {"results": [{}]},
            None,
            'nodeSelector is absent, not {"nodeSelectorTerms": [{"matchFields": [{"key": '
            '"metadata.name", "operator": "In", "values": ["n1"]}]}]}',
        ),
    ],
)
def test_value_that_differs_is_named_as_json(
    devices: dict, selector: dict | None, problem: str
) -> None:
    exactly = {"deviceClassName": "c", "allocationMode": "ExactCount", "count": 1}
    spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    published = {"driver": "d", "nodeName": "n1", "pool": pool, "devices": [{"name": "a"}]}
    case = Case(
        node={"metadata": {"name": "n1"}},
        claims=[{"metadata": {"name": "one", "namespace": "x"}, "spec": spec}],
        classes={"c": {"metadata": {"name": "c"}, "spec": {}}},
        slices=[{"metadata": {"name": "s"}, "spec": published}],
        selects=lambda *_: True,
    )
    own = {"request": "r", "driver": "d", "pool": "p", "device": "a"}
    results = [{**own, **each} for each in devices["results"]]
    allocation: dict = {"devices": {**devices, "results": results}}
    if selector is not None:
        allocation["nodeSelector"] = selector
    assert problem in [each.problem for each in judge.check(case, [allocation])]


def published(
    name: str, *devices: dict, pool: str = "p", generation: int = 2, **more: object
) -> dict:
    """A slice of driver `d` on node `n1`, unless `more` says otherwise."""
    spec = {
        "driver": "d",
        "nodeName": "n1",
        "pool": {"name": pool, "generation": generation, "resourceSliceCount": 1},
        "devices": list(devices),
        **more,
    }
    return {"metadata": {"name": name}, "spec": spec}


SHARED = {"name": "c", "allowMultipleAllocations": True}
AMOUNT = {"capacity": {"memory": {"value": "1Gi"}}}
DRAWING = {
    "name": "d9",
    "consumesCounters": [{"counterSet": "s", "counters": {"slots": {"value": "1"}}}],
}


@pytest.mark.parametrize(
    ("quirks", "others", "shared", "consumable", "quirk"),
    [
        ({"q3", "q7", "q12"}, [], None, True, ""),
        # Another driver draws counters of a pool of that name: the books may be those of it.
        ({"q3"}, [published("x", DRAWING, driver="e")], None, True, "q3"),
        ({"q3"}, [published("x", {"name": "d9"}, driver="e")], None, True, ""),
        (set(), [published("x", DRAWING, driver="e")], None, True, ""),
        ({"q3"}, [published("x", DRAWING, driver="e", pool="other")], None, True, ""),
        ({"q3"}, [published("x", DRAWING, pool="other")], None, True, ""),
        ({"q3", "q12"}, [published("x", DRAWING, driver="e")], None, True, "q3"),
        # Another node still reads slices of the generation before.
        ({"q12"}, [published("x", nodeName="n2", generation=1)], None, True, "q12"),
        ({"q3", "q7"}, [published("x", nodeName="n2", generation=1)], None, True, ""),
        # A share without amounts gives the counters of its device back.
        ({"q7"}, [], SHARED, True, "q7"),
        ({"q3", "q12"}, [], SHARED, True, ""),
        ({"q7"}, [], {**SHARED, **AMOUNT}, True, ""),
        ({"q7"}, [], {"name": "c"}, True, ""),
        ({"q7"}, [], SHARED, False, ""),
    ],
)
def test_overdrawn_counter_is_explained_by_a_quirk_that_can_have_made_it(
    quirks: set, others: list, shared: dict | None, consumable: bool, quirk: str
) -> None:
    use = [{"counterSet": "gpu", "counters": {"memory": {"value": "6Gi"}}}]
    devices = [{"name": name, "consumesCounters": use} for name in ("a", "b")]
    counters = [{"name": "gpu", "counters": {"memory": {"value": "10Gi"}}}]
    own = published("s", *devices, *([shared] if shared else []), sharedCounters=counters)
    exactly = {"deviceClassName": "c", "allocationMode": "ExactCount", "count": 2}
    spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    case = Case(
        node={"metadata": {"name": "n1"}},
        claims=[{"metadata": {"name": "one", "namespace": "x"}, "spec": spec}],
        classes={"c": {"metadata": {"name": "c"}, "spec": {}}},
        slices=[own, *others],
        selects=lambda *_: True,
        gates={"DRAPartitionableDevices": True, "DRAConsumableCapacity": consumable},
        quirks=frozenset(quirks),
    )
    result = {"request": "r", "driver": "d", "pool": "p"}
    allocation = {
        "devices": {"results": [{**result, "device": name} for name in ("a", "b")]},
        "nodeSelector": {"nodeSelectorTerms": [ON_N1]},
    }
    (finding,) = judge.check(case, [allocation])
    assert finding.problem == "counter memory of set gpu in pool d/p is overdrawn"
    assert finding.quirk == quirk


def test_request_of_which_two_alternatives_are_used_is_named_with_both() -> None:
    alternatives = [
        {"name": name, "deviceClassName": "c", "allocationMode": "ExactCount", "count": 1}
        for name in ("b", "a")
    ]
    spec = {"devices": {"requests": [{"name": "r", "firstAvailable": alternatives}]}}
    case = Case(
        node={"metadata": {"name": "n1"}},
        claims=[{"metadata": {"name": "one", "namespace": "x"}, "spec": spec}],
        classes={"c": {"metadata": {"name": "c"}, "spec": {}}},
        slices=[published("s", {"name": "a"}, {"name": "b"})],
        selects=lambda *_: True,
        gates={"DRAPrioritizedList": True},
    )
    results = [
        {"request": f"r/{name}", "driver": "d", "pool": "p", "device": name} for name in ("a", "b")
    ]
    selector = {"nodeSelectorTerms": [ON_N1]}
    allocation = {"devices": {"results": results}, "nodeSelector": selector}
    problems = [each.problem for each in judge.check(case, [allocation])]
    assert "request r mixes alternatives r/a, r/b" in problems


def piece(place: dict[str, Any], **tree: Any) -> stock.Piece:
    return stock.Piece(key=("d", "p", "x"), tree={"name": "x", **tree}, place=place, taints=())


def selecting(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"nodeSelector": {"nodeSelectorTerms": list(terms)}}


def zone(*values: str) -> dict[str, Any]:
    return {"key": "zone", "operator": "In", "values": list(values)}


def only(name: str) -> dict[str, Any]:
    field = {"key": "metadata.name", "operator": "In", "values": [name]}
    return {"nodeSelectorTerms": [{"matchFields": [field]}]}


A_TERM, B_TERM = {"matchExpressions": [zone("a")]}, {"matchExpressions": [zone("b")]}
LOCAL, EVERYWHERE, IN_ZONE = {"nodeName": "n1"}, {"allNodes": True}, selecting(A_TERM)


@pytest.mark.parametrize(
    ("pieces", "is_stable", "expected"),
    [
        ([], False, None),
        ([piece(EVERYWHERE)], False, None),
        ([piece(LOCAL)], False, only("here")),
        ([piece(LOCAL)], True, only("n1")),
        ([piece(EVERYWHERE), piece(LOCAL)], False, only("here")),
        # the experimental allocator binds a device to the node of the pod
        ([piece(EVERYWHERE, bindsToNode=True)], False, only("here")),
        ([piece(EVERYWHERE, bindsToNode=False)], False, None),
        ([piece(EVERYWHERE, bindsToNode=True)], True, None),
        ([piece(IN_ZONE)], False, {"nodeSelectorTerms": [A_TERM]}),
        ([piece(IN_ZONE), piece(IN_ZONE)], False, {"nodeSelectorTerms": [A_TERM]}),
        (
            [piece(IN_ZONE), piece(selecting(B_TERM))],
            False,
            {"nodeSelectorTerms": [{"matchExpressions": [zone("a"), zone("b")]}]},
        ),
        ([piece(IN_ZONE), piece(LOCAL)], False, only("here")),
        (
            [piece(selecting({"matchFields": [zone("a")]})), piece(IN_ZONE)],
            False,
            {"nodeSelectorTerms": [{"matchExpressions": [zone("a")], "matchFields": [zone("a")]}]},
        ),
    ],
)
def test_nodes_of_an_allocation_are_those_of_all_its_devices(
    pieces: list[stock.Piece], is_stable: bool, expected: dict[str, Any] | None
) -> None:
    node = {"metadata": {"name": "here"}}
    assert results.node_selector(node, pieces, is_stable=is_stable) == expected


@pytest.mark.parametrize("is_on", [True, False])
@pytest.mark.parametrize("consumes", [True, False])
def test_device_that_consumes_counters_is_given_only_where_they_are_counted(
    is_on: bool, consumes: bool
) -> None:
    """The counters of its pool stand in a slice of their own."""
    counters = [{"name": "set", "counters": {"memory": {"value": "4"}}}]
    drawn = [{"counterSet": "set", "counters": {"memory": {"value": "3"}}}]
    device = {"name": "a", **({"consumesCounters": drawn} if consumes else {})}
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 2 if is_on else 1}
    own = {"driver": "d", "nodeName": "n1", "pool": pool}
    slices = [{"metadata": {"name": "s"}, "spec": {**own, "devices": [device]}}]
    if is_on:
        slices.append({"metadata": {"name": "t"}, "spec": {**own, "sharedCounters": counters}})
    exactly = {"deviceClassName": "c", "allocationMode": "ExactCount", "count": 1}
    case = Case(
        node={"metadata": {"name": "n1"}},
        claims=[
            {
                "metadata": {"name": "one", "namespace": "x"},
                "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
            }
        ],
        classes={"c": {"metadata": {"name": "c"}, "spec": {}}},
        slices=slices,
        selects=lambda *_: True,
        gates={"DRAPartitionableDevices": is_on},
    )
    result = {"request": "r", "driver": "d", "pool": "p", "device": "a"}
    found = judge.check(case, [{"devices": {"results": [result]}, "nodeSelector": only("n1")}])
    said = [each.problem.endswith("it consumes counters, which are switched off") for each in found]
    assert said == [True] * (consumes and not is_on)
