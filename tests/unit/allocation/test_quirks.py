"""Each defect of upstream in its smallest scenario, as upstream has it and repaired."""

from itertools import combinations

import pytest

from app.domain.allocation import Allocation, Failure, Features, Quirks, checking
from app.domain.allocation.quirks import NOT_SWITCHES
from app.domain.allocation.reasons import explanation
from tests.worlds import differences
from tests.worlds.builders import (
    GATES,
    allocator,
    claim,
    counter_set,
    device,
    device_class,
    distinct,
    first_available,
    holding,
    match,
    node,
    request,
    resource_slice,
    result,
    taint,
    taken,
    uses,
    wish,
)

LISTS = Features.of_gates({"DRAListTypeAttributes": True})


def check(slices: list, claims: list, quirk: str, *, broken, repaired, **world) -> None:
    """The answer with the defect and with it repaired, pruned and not."""
    for prune in (True, False):
        asked = allocator(*slices, prune=prune, **world)
        assert taken(asked.allocate(node(), claims)) == broken
        asked = allocator(*slices, prune=prune, quirks=Quirks.named(quirk), **world)
        assert taken(asked.allocate(node(), claims)) == repaired


def judged(slices: list, claims: list, *repaired: str) -> checking.Case:
    """What the checker needs to judge an answer of `check`'s allocators."""
    given = {"slices": slices, "claims": claims, "classes": [device_class()], "features": GATES}
    return differences.case_of(given, node(), quirks=Quirks.named(*repaired))


def counted(*devices: dict, **amounts: int) -> list:
    """A pool of devices and one counter set."""
    return [
        resource_slice("devices", *devices, count=2),
        resource_slice("sets", count=2, sharedCounters=[counter_set(**amounts)]),
    ]


def test_q1_counters_of_a_tainted_device_stay_booked() -> None:
    devices = [
        device("d0", consumesCounters=uses(mem=40), taints=[taint()]),
        device("d1", consumesCounters=uses(mem=20)),
    ]
    check(
        counted(*devices, mem=40),
        [claim(request())],
        "q1",
        broken=None,
        repaired=[["r0: d1"]],
    )


def test_q2_a_share_that_is_undone_keeps_its_counters() -> None:
    shared = device(
        "d0",
        allowMultipleAllocations=True,
        consumesCounters=uses(a=4),
        capacity={"memory": {"value": "4"}},
    )
    devices = [shared, device("d1", consumesCounters=uses(a=8), kind=1)]
    claims = [
        claim(
            request("r0"),
            request("r1", 1, f'device.attributes["{"gpu.example.com"}"].?kind.orValue(0) == 1'),
        )
    ]
    devices.append(device("d2", kind=0))
    check(
        counted(*devices, a=8),
        claims,
        "q2",
        broken=None,
        repaired=[["r0: d2", "r1: d1"]],
    )


def test_q3_pools_of_one_name_share_their_books() -> None:
    slices = [
        resource_slice("a", device("d0", consumesCounters=uses(x=1)), driver="a", count=2),
        resource_slice("as", driver="a", count=2, sharedCounters=[counter_set(x=1)]),
        resource_slice("b", device("d0", consumesCounters=uses(x=1)), driver="b", count=2),
        resource_slice("bs", driver="b", count=2, sharedCounters=[counter_set(x=1)]),
    ]
    claims = [claim(request("r0"), request("r1"))]
    check(slices, claims, "q3", broken=None, repaired=[["r0: d0", "r1: d0"]])


@pytest.mark.parametrize(
    ("other", "quirk"),
    [
        ([resource_slice("nic", device("eth0"), driver="nic.example.com")], ""),
        (
            [
                resource_slice("b", device("e", consumesCounters=uses(x=1)), driver="b", count=2),
                resource_slice("bs", driver="b", count=2, sharedCounters=[counter_set(x=1)]),
            ],
            "q3",
        ),
    ],
)
def test_pool_of_another_driver_explains_an_overdrawn_counter_if_it_has_books(
    other: list, quirk: str
) -> None:
    pool = counted(*(device(name, consumesCounters=uses(x=1)) for name in ("d0", "d1")), x=1)
    case = judged([*pool, *other], [claim(request("r0", 2))])
    findings = checking.check(case, [{"devices": {"results": [result("d0"), result("d1")]}}])
    assert [one.quirk for one in findings if "overdrawn" in one.problem] == [quirk]


def test_q4_an_overdrawn_counter_blocks_devices_that_do_not_use_it() -> None:
    devices = [
        device("d0", consumesCounters=uses("s1", x=2)),
        device("d1", consumesCounters=uses("s2", x=1)),
    ]
    slices = [
        resource_slice("devices", *devices, count=2),
        resource_slice(
            "sets", count=2, sharedCounters=[counter_set("s1", x=1), counter_set("s2", x=1)]
        ),
    ]
    check(
        slices,
        [claim(request())],
        "q4",
        broken=None,
        repaired=[["r0: d1"]],
        held=[holding(result("d0"))],
    )


@pytest.mark.parametrize(("repaired", "is_blocked"), [((), True), (("q4",), False)])
def test_q4_alone_gives_an_overdrawn_counter_as_the_reason_of_other_devices(
    repaired: tuple[str, ...], is_blocked: bool
) -> None:
    """Device `d1` is too large for its own counter, which is the reason either way."""
    devices = [
        device("d0", consumesCounters=uses(x=2)),
        device("d1", consumesCounters=uses(y=2)),
        device("d2", consumesCounters=uses(y=1)),
    ]
    asked = allocator(
        *counted(*devices, x=1, y=1), held=[holding(result("d0"))], quirks=Quirks.named(*repaired)
    )
    explained = explanation.explain(asked.allocate(node(), [claim(request("r0", 2))]))
    listed = explained.claims[0].requests[0].devices
    reasons = {one.device: "" if one.cause is None else one.cause.text for one in listed}
    pool = "gpu.example.com/pool"
    text = f"counter y of set set in {pool}: needs 2, 1 is left"
    assert reasons[f"{pool}/d1"] == text
    text = f"counter x of set set in {pool}: needs 0, -1 is left, held by other/held"
    assert reasons[f"{pool}/d2"] == (text if is_blocked else "")


def test_device_that_gives_to_a_counter_can_be_had_where_that_is_overdrawn() -> None:
    devices = [
        device("d0", consumesCounters=uses(x=2)),
        device("d1", consumesCounters=uses(y=1)),
        device("d2", consumesCounters=uses(x=-1)),
    ]
    slices = counted(*devices, x=1, y=1)
    held = [holding(result("d0"))]
    # With `d2` no counter is overdrawn any more, so that `d1` can be had beside it.
    answers = {"broken": [["r0: d2", "r1: d1"]], "repaired": [["r0: d1", "r1: d2"]]}
    check(slices, [claim(request(), request("r1"))], "q4", **answers, held=held)
    answers = {"broken": [["r0: d2"]], "repaired": [["r0: d1"]]}
    check(slices, [claim(request())], "q4", **answers, held=held)


def test_q5_common_values_are_not_widened_again() -> None:
    devices = [
        device("d0", numa=["a", "b"], kind=0),
        device("d1", numa=["a"], kind=0),
        device("d2", numa=["b"], kind=0),
        device("d3", numa=["b"], kind=1),
    ]
    only = 'device.attributes["gpu.example.com"].kind == 1'
    claims = [claim(request("r0", 2, 'device.attributes["gpu.example.com"].kind == 0'),
                    request("r1", 1, only), constraints=[match()])]  # fmt: skip
    check(
        [resource_slice("s", *devices)],
        claims,
        "q5",
        broken=None,
        repaired=[["r0: d0", "r0: d2", "r1: d3"]],
        features=LISTS,
    )


def test_q6_distinct_compares_only_neighbours_of_one_request() -> None:
    devices = [device("d0", numa=0), device("d1", numa=1), device("d2", numa=0)]
    check(
        [resource_slice("s", *devices)],
        [claim(request("r0", 3), constraints=[distinct()])],
        "q6",
        broken=[["r0: d0", "r0: d1", "r0: d2"]],
        repaired=None,
    )


def test_q7_an_undone_share_without_capacity_spares_its_counters() -> None:
    devices = [
        device("d0", allowMultipleAllocations=True, consumesCounters=uses(x=1)),
        device("d1", consumesCounters=uses(x=1), kind=1),
    ]
    want = 'device.attributes["gpu.example.com"].?kind.orValue(0) == 1'
    claims = [
        claim(
            first_available("r0", a=wish(1, "!(" + want + ")"), b=wish(1, want)),
            request("r1", 1, want),
        )
    ]
    asked = allocator(*counted(*devices, x=1))
    assert taken(asked.allocate(node(), claims)) is None


def test_q7_repaired_an_undone_share_is_booked_again_beside_what_q2_keeps() -> None:
    shared = device("d0", allowMultipleAllocations=True, consumesCounters=uses(x=1))
    check(
        counted(shared, x=1),
        [claim(first_available("r0", two=wish(2), one=wish(1)))],
        "q7",
        broken=[["r0/one: d0"]],
        repaired=None,
    )


def test_q9_a_device_with_admin_access_is_in_use_for_later_claims() -> None:
    slices = [resource_slice("s", device("d0"), device("d1"))]
    admin = claim(request(adminAccess=True), name="admin")
    normal = claim(request(), name="normal")
    check(
        slices,
        [admin, normal],
        "q9",
        broken=[["r0: d0"], ["r0: d1"]],
        repaired=[["r0: d0"], ["r0: d0"]],
    )
    asked = allocator(*slices, quirks=Quirks.named("q9"))
    answer = asked.allocate(node(), [admin, normal])
    case = judged(slices, [admin, normal], "q9")
    assert not checking.check(case, answer.allocation_results(lambda: "share"))
    assert taken(allocator(*slices).allocate(node(), [normal, admin])) == [["r0: d0"], ["r0: d0"]]


def test_q9_repaired_a_claim_still_gets_each_device_once() -> None:
    slices = [resource_slice("s", device("d0"), device("d1"))]
    asked = claim(request("r0", 1, adminAccess=True), request("r1"))
    check(
        slices,
        [asked],
        "q9",
        broken=[["r0: d0", "r1: d1"]],
        repaired=[["r0: d0", "r1: d1"]],
    )
    check(slices[:1], [claim(request("r0", 2, adminAccess=True), request("r1"))], "q9",
          broken=None, repaired=None)  # fmt: skip


def test_q10_a_constraint_in_mode_all_ends_the_attempt() -> None:
    slices = [resource_slice("s", device("d0", numa=0), device("d1", numa=1))]
    claims = [claim(request("r0", 0), constraints=[match()])]
    answer = allocator(*slices).allocate(node(), claims)
    assert isinstance(answer, Failure)
    assert answer.text == (
        "claim ns/claim, request r0: cannot add device gpu.example.com/pool/d1 "
        "because a claim constraint would not be satisfied"
    )
    repaired = allocator(*slices, quirks=Quirks.named("q10")).allocate(node(), claims)
    assert not isinstance(repaired, Failure)


def test_q11_an_alternative_in_mode_all_that_is_never_reached_ends_the_attempt() -> None:
    slices = [
        resource_slice("s", device("d0")),
        resource_slice("o", device("d9"), pool="other", count=2),
    ]
    first = claim(first_available("r", a=wish(), b=wish(0)))
    check(slices, [first], "q11", broken=None, repaired=[["r/a: d0"]])
    reached = claim(first_available("r", a=wish(2), b=wish(0)))
    check(slices, [reached], "q11", broken=None, repaired=None)
    for quirks in (Quirks(), Quirks.named("q11")):
        answer = allocator(*slices, quirks=quirks).allocate(node(), [reached])
        assert isinstance(answer, Failure)
        assert answer.text.endswith("other is currently being updated")


def test_q12_a_newer_generation_elsewhere_goes_unnoticed() -> None:
    slices = [
        resource_slice("here", device("d0")),
        resource_slice("there", device("d0"), generation=2, node="other"),
    ]
    check(slices, [claim(request())], "q12", broken=[["r0: d0"]], repaired=None)


def pool_on(node: str, *drawn: int, amount: int, generation: int = 1, count: int = 2) -> list:
    """A part of the pool that a node takes for the whole: devices and a counter set of its own."""
    use = [device(f"{node}-{n}", consumesCounters=uses(node, x=n)) for n in drawn]
    sets = [counter_set(node, x=amount)]
    where = {"generation": generation, "count": count, "node": node}
    return [
        resource_slice(f"{node}-devices", *use, **where),
        resource_slice(f"{node}-sets", sharedCounters=sets, **where),
    ]


@pytest.mark.parametrize(
    ("generation", "count"),
    [(1, 2), (2, 2), (1, 4)],
    ids=["parts of one generation", "a newer one", "parts of which one is the whole"],
)
def test_q12_counters_of_the_node_asked_first_hold_for_all_and_the_checker_knows(
    generation: int, count: int
) -> None:
    slices = [
        *pool_on("first", 1, amount=1),
        *pool_on("node", 1, 2, amount=2, generation=generation, count=count),
    ]
    claims = [claim(request("r0", 2))]

    def second(*repaired: str) -> list:
        asked = allocator(*slices, quirks=Quirks.named(*repaired))
        asked.allocate(node("first"), claims)
        answer = asked.allocate(node(), claims)
        if taken(answer) is None:
            return []
        found = answer.allocation_results(lambda: "x")
        return [one.quirk for one in checking.check(judged(slices, claims, *repaired), found)]

    assert second() == ["q12"]
    assert second("q3") == ["q12"]
    assert second("q12") == []
    assert second("q3", "q12") == []


def test_q13_an_obsolete_generation_makes_a_pool_disappear() -> None:
    slices = [
        resource_slice("here", device("d0"), count=2),
        resource_slice("there", device("d0"), generation=2, node="other"),
    ]
    answer = allocator(*slices).allocate(node(), [claim(request("r0", 0))])
    assert taken(answer) is None
    assert not isinstance(answer, Failure)
    repaired = allocator(*slices, quirks=Quirks.named("q13"))
    answer = repaired.allocate(node(), [claim(request("r0", 0))])
    assert isinstance(answer, Failure)
    assert answer.text.endswith("resource pool gpu.example.com/pool is currently being updated")


def test_q15_binding_conditions_move_the_whole_pool_back() -> None:
    slices = [
        resource_slice("p1", device("d1"), device("d2", bindingConditions=["c"]), pool="p1"),
        resource_slice("p2", device("d3"), pool="p2"),
    ]
    check(
        slices,
        [claim(request("r0", 2))],
        "q15",
        broken=[["r0: d3", "r0: d1"]],
        repaired=[["r0: d1", "r0: d2"]],
    )


def test_q16_an_allocated_device_with_a_bad_attribute_harms_only_mode_all() -> None:
    slices = [resource_slice("s", device("d0", attributes={"x": {}}), device("d1"))]
    held = [holding(result("d0"))]
    classes = [
        {"metadata": {"name": "gpu"}, "spec": {"selectors": [{"cel": {"expression": "true"}}]}}
    ]
    counting = allocator(*slices, held=held, classes=classes)
    assert taken(counting.allocate(node(), [claim(request())])) == [["r0: d1"]]
    everything = allocator(*slices, held=held, classes=classes)
    answer = everything.allocate(node(), [claim(request("r0", 0))])
    assert isinstance(answer, Failure)
    assert "unsupported attribute value" in answer.text
    for prune in (True, False):
        repaired = allocator(
            *slices, held=held, classes=classes, quirks=Quirks.named("q16"), prune=prune
        )
        answer = repaired.allocate(node(), [claim(request("r0", 0))])
        assert taken(answer) == [["r0: d1"]]


@pytest.mark.parametrize("count", [0, 1])
def test_q16_a_tainted_device_with_a_bad_attribute_ends_the_attempt(count: int) -> None:
    slices = [
        resource_slice("s", device("d0", attributes={"x": {}}, taints=[taint()]), device("d1"))
    ]
    claims = [claim(request("r0", count))]
    classes = [
        {"metadata": {"name": "gpu"}, "spec": {"selectors": [{"cel": {"expression": "true"}}]}}
    ]
    assert isinstance(allocator(*slices, classes=classes).allocate(node(), claims), Failure)
    check(slices, claims, "q16", broken=None, repaired=[["r0: d1"]], classes=classes)
    tolerant = [claim(request("r0", count, tolerations=[{"operator": "Exists"}]))]
    check(slices, tolerant, "q16", broken=None, repaired=None, classes=classes)


def test_q18_an_alternative_that_failed_leaves_traces_for_the_next() -> None:
    devices = [
        device("d0", consumesCounters=uses(mem=2), taints=[taint()]),
        device("d1", consumesCounters=uses(mem=2)),
    ]
    big = 'device.attributes["gpu.example.com"].?kind.orValue(0) == 1'
    check(
        counted(*devices, mem=2),
        [claim(first_available("r", big=wish(1, "!(" + big + ") && true"), small=wish(1)))],
        "q18",
        broken=None,
        repaired=None,
    )
    plain = [
        claim(
            first_available(
                "r",
                wide=wish(2),
                tolerant=wish(1, tolerations=[{"operator": "Exists"}]),
            )
        )
    ]
    check(
        counted(*devices, mem=2),
        plain,
        "q18",
        broken=None,
        repaired=[["r/tolerant: d0"]],
    )


def test_q18_repaired_the_next_alternative_sees_the_values_of_before_the_failed_one() -> None:
    """Quirk q5 keeps values narrow; what an alternative narrowed ends with it nevertheless."""
    devices = [
        device("d0", numa=["a", "b"], kind=0),
        device("d1", numa=["a"], kind=1),
        device("d2", numa=["b"], kind=2),
    ]
    first, second, third = (
        f'device.attributes["gpu.example.com"].kind == {kind}' for kind in range(3)
    )
    check(
        [resource_slice("s", *devices)],
        [
            claim(
                request("r0", 1, first),
                first_available("r1", two=wish(2, second), one=wish(1, third)),
                constraints=[match()],
            )
        ],
        "q18",
        broken=None,
        repaired=[["r0: d0", "r1/one: d2"]],
        features=Features.of_gates({**GATES, "DRAListTypeAttributes": True}),
    )


@pytest.mark.parametrize(("amount", "fits"), [(4, True), (5, False)])
def test_q18_repaired_shares_of_earlier_requests_count_for_the_next_alternative(
    amount: int, fits: bool
) -> None:
    shared = device(
        "d0", allowMultipleAllocations=True, capacity={"memory": {"value": "10"}}, kind=0
    )
    first, other = (f'device.attributes["gpu.example.com"].kind == {kind}' for kind in range(2))
    answer = [["r0: d0", "r1/one: d0"]] if fits else None
    check(
        [resource_slice("s", shared, device("d1", kind=1))],
        [
            claim(
                request("r0", 1, first, capacity={"requests": {"memory": "6"}}),
                first_available(
                    "r1",
                    two=wish(2, other),
                    one=wish(1, first, capacity={"requests": {"memory": str(amount)}}),
                ),
            )
        ],
        "q18",
        broken=answer,
        repaired=answer,
    )


def test_q19_selectors_and_constraints_see_the_qualified_attribute() -> None:
    both = {"x": {"int": 1}, "gpu.example.com/x": {"int": 2}}
    devices = [device("d0", attributes=both), device("d1", x=2)]
    selector = 'device.attributes["gpu.example.com"].x == 2'
    asked = allocator(resource_slice("s", *devices))
    found = asked.allocate(node(), [claim(request("r", 2, selector), constraints=[match("x")])])
    assert taken(found) == [["r: d0", "r: d1"]]
    assert "q19" in NOT_SWITCHES
    with pytest.raises(KeyError):
        Quirks.named("q19")


def test_q17_a_share_without_capacity_books_its_counters_again() -> None:
    shared = device("d0", allowMultipleAllocations=True, consumesCounters=uses(x=4))
    check(
        counted(shared, x=4),
        [claim(request())],
        "q17",
        broken=None,
        repaired=[["r0: d0"]],
        held=[holding(result("d0", shareID="s1"))],
    )


@pytest.mark.parametrize(
    ("asked", "consumed"), [("1.5Gi", "3584Mi"), ("1Gi", "1Gi"), ("1536Mi", "1536Mi")]
)
def test_q20_checking_enlarges_an_amount_in_decimal_form(asked: str, consumed: str) -> None:
    shared = device(
        "d0",
        allowMultipleAllocations=True,
        capacity={"memory": {"value": "10Gi", "requestPolicy": {"default": "1Gi"}}},
    )
    claims = [
        claim(
            request("r0", 1, capacity={"requests": {"memory": "1Gi"}}),
            request("r1", 1, capacity={"requests": {"memory": asked}}),
        )
    ]
    found = allocator(resource_slice("s", shared)).allocate(node(), claims)
    results = found.allocation_results(lambda: "x")[0]["devices"]["results"]
    assert results[1]["consumedCapacity"] == {"memory": consumed}
    repaired = allocator(resource_slice("s", shared), quirks=Quirks.named("q20"))
    results = repaired.allocate(node(), claims).allocation_results(lambda: "x")
    expected = {"1.5Gi": "1536Mi"}.get(asked, asked)
    assert results[0]["devices"]["results"][1]["consumedCapacity"] == {"memory": expected}


def test_q20_what_grew_on_one_device_is_consumed_on_another_and_the_checker_knows() -> None:
    small = {"value": "2Gi", "requestPolicy": {"default": "1Gi"}}
    ranged = {"default": "1Gi", "validRange": {"min": "1Gi"}}
    devices = [
        device("d0", allowMultipleAllocations=True, capacity={"memory": small}),
        device(
            "d1",
            allowMultipleAllocations=True,
            capacity={"memory": {"value": "10Gi", "requestPolicy": ranged}},
        ),
    ]
    half = {"requests": {"memory": "0.5Gi"}}
    slices = [resource_slice("s", *devices)]
    claims = [claim(request("r0"), request("r1", 1, capacity=half))]
    answer = allocator(*slices).allocate(node(), claims)
    found = answer.allocation_results(lambda: "x")
    second = found[0]["devices"]["results"][1]
    assert (second["device"], second["consumedCapacity"]) == ("d1", {"memory": "2560Mi"})
    findings = checking.check(judged(slices, claims), found)
    assert [one.quirk for one in findings] == ["q20"]


def test_q20_what_grew_on_one_node_shortens_the_list_of_the_next_and_the_checker_knows() -> None:
    ruled = {"value": "10Gi", "requestPolicy": {"default": "1Gi"}}
    sizes = (1, 2, 3, 9, 8)
    devices = [device(f"d{size}", capacity={"memory": {"value": f"{size}Gi"}}) for size in sizes]
    shared = device("s", allowMultipleAllocations=True, capacity={"memory": ruled})
    slices = [resource_slice("there", shared, node="other"), resource_slice("here", *devices)]
    listed = {"requests": {"memory": "1.5Gi"}}
    claims = [
        claim(request("r0"), name="one"),
        claim(request("r0", 0, capacity=listed), name="all"),
    ]

    def answer(*repaired: str) -> Allocation:
        asked = allocator(*slices, quirks=Quirks.named(*repaired))
        asked.allocate(node("other"), claims)
        found = asked.allocate(node(), claims)
        assert isinstance(found, Allocation)
        return found

    grown, whole = answer(), answer("q20")
    assert taken(grown)[1] == ["r0: d3", "r0: d9", "r0: d8"]
    assert taken(whole)[1] == ["r0: d2", "r0: d3", "r0: d9", "r0: d8"]

    def findings(chosen: set[str], *repaired: str) -> list:
        found = whole.allocation_results(lambda: "x")
        devices = found[1]["devices"]
        devices["results"] = [one for one in devices["results"] if one["device"] in chosen]
        return [one.quirk for one in checking.check(judged(slices, claims, *repaired), found)]

    every = ["d2", "d3", "d9", "d8"]
    explained = [{"d3", "d9", "d8"}, {"d9", "d8"}, {"d9"}]
    for length in (1, 2, 3):
        for chosen in map(set, combinations(every, length)):
            assert findings(chosen) == (["q20"] if chosen in explained else [""]), chosen
            assert findings(chosen, "q20") == [""], chosen
    assert findings(set(every)) == []


def test_q20_undoing_what_grew_makes_room_for_more_than_a_device_has() -> None:
    """The undone share takes back 3.5Gi of 2.5Gi, so 11Gi of the 10Gi are free."""
    devices = [
        device(
            name,
            allowMultipleAllocations=True,
            capacity={"memory": {"value": value, "requestPolicy": {"default": "1Gi"}}},
        )
        for name, value in (("d0", "10Gi"), ("d1", "2Gi"))
    ]
    slices = [resource_slice("s", *devices)]
    half, large = ({"requests": {"memory": value}} for value in ("0.5Gi", "11Gi"))
    second = first_available("r1", half=wish(2, capacity=half), large=wish(1, capacity=large))
    claims = [claim(request("r0"), second)]
    whole = [["r0: d0", "r1/half: d0", "r1/half: d1"]]
    check(slices, claims, "q20", broken=[["r0: d1", "r1/large: d0"]], repaired=whole)
    found = allocator(*slices).allocate(node(), claims).allocation_results(lambda: "x")
    findings = checking.check(judged(slices, claims), found)
    assert [(one.problem, one.quirk) for one in findings] == [
        ("device gpu.example.com/pool/d0 capacity memory is overdrawn", "q20")
    ]


@pytest.mark.parametrize("asked", [["-1Gi", "11Gi"], ["11Gi", "-1Gi"]])
def test_share_of_a_negative_amount_makes_room_for_what_follows(asked: list) -> None:
    """Not refused before the changes of allocator.md 18."""
    memory = {"memory": {"value": "10Gi"}}
    devices = [device("d0", allowMultipleAllocations=True, capacity=memory), device("d1")]
    requests = [
        request(f"r{number}", 1, capacity={"requests": {"memory": amount}})
        for number, amount in enumerate(asked)
    ]
    for prune in (True, False):
        found = allocator(resource_slice("s", *devices), prune=prune)
        answer = taken(found.allocate(node(), [claim(*requests)]))
        assert answer == ([["r0: d0", "r1: d0"]] if asked[0] == "-1Gi" else None)


def test_q8_a_list_that_lacks_capacity_pollutes_what_follows() -> None:
    shared = device(
        "d0", allowMultipleAllocations=True, capacity={"memory": {"value": "2"}}, numa=0
    )
    plain = device("d1", numa=1)
    claims = [
        claim(
            request("r0", 1, "device.allowMultipleAllocations"),
            first_available("r1", everything=wish(0), one=wish(1)),
            constraints=[match("numa", "r1")],
        )
    ]
    check(
        [resource_slice("s", shared, plain)],
        claims,
        "q8",
        broken=None,
        repaired=[["r0: d0", "r1/one: d1"]],
    )


def test_unknown_mark_is_refused() -> None:
    with pytest.raises(KeyError):
        Quirks.named("no-such-quirk")


def test_marks_and_numbers_switch_the_same() -> None:
    assert Quirks.named("counter-leak") == Quirks.named("q1", "Q2")
    assert Quirks.named("counter-leak").repaired() == ("q1", "q2")
