"""The search: order, limits, steps as upstream counts them, and bounds where it would explode."""

import pytest

from app.domain.allocation import (
    AllocatedState,
    Allocator,
    AllocatorVariant,
    Bounds,
    DoesNotFit,
    Failure,
    FailureScope,
)
from app.domain.devices.inventory import Inventory
from tests.worlds.builders import (
    ALL_ON,
    COMPILER,
    allocator,
    claim,
    counter_set,
    device,
    device_class,
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

KIND = 'device.attributes["gpu.example.com"].kind == "x"'
STEPS_FEW = 2_000


def plain(count: int) -> dict:
    return resource_slice("s", *(device(f"d{i}", index=i) for i in range(count)))


def xyy() -> dict:
    return resource_slice(
        "s", device("d0", kind="x"), device("d1", kind="y"), device("d2", kind="y")
    )


def steps(slices: list, claims: list, variant: AllocatorVariant) -> int:
    return allocator(*slices, variant=variant, prune=False).allocate(node(), claims).steps


STEP_ROWS = [
    ([plain(4)], [claim(request("r0", 5))], 16, 65),
    ([xyy()], [claim(request("r0", 2), request("r1", 1, KIND))], 12, 14),
    (
        [xyy()],
        [
            claim(
                first_available("r0", a=wish(3, KIND.replace('"x"', '"y"')), b=wish(2)),
                first_available("r1", a=wish(2), b=wish(1, KIND)),
            )
        ],
        26,
        32,
    ),
    (
        [plain(64)],
        [claim(*(first_available(f"r{i}", a=wish(32), b=wish(16)) for i in range(2)))],
        75,
        75,
    ),
]


@pytest.mark.parametrize(("slices", "claims", "combinations", "permutations"), STEP_ROWS)
def test_unpruned_search_takes_upstreams_steps(
    slices: list, claims: list, combinations: int, permutations: int
) -> None:
    assert steps(slices, claims, AllocatorVariant.EXPERIMENTAL) == combinations
    assert steps(slices, claims, AllocatorVariant.STABLE) == permutations


def test_greedy_first_choice_is_exchanged() -> None:
    answer = allocator(xyy()).allocate(node(), [claim(request("r0", 2), request("r1", 1, KIND))])
    assert taken(answer) == [["r0: d1", "r0: d2", "r1: d0"]]


def test_later_alternative_is_taken_when_what_follows_needs_it() -> None:
    given = claim(first_available("r0", a=wish(2), b=wish(1)), request("r1"))
    assert taken(allocator(plain(2)).allocate(node(), [given])) == [["r0/b: d0", "r1: d1"]]


def test_pools_are_searched_by_driver_and_name_and_slices_by_name() -> None:
    slices = [
        resource_slice("z", device("d1"), pool="pool-2"),
        resource_slice("y", device("d2"), pool="pool-10", count=2),
        resource_slice("x", device("d3"), pool="pool-10", count=2),
    ]
    answer = allocator(*slices).allocate(node(), [claim(request("r0", 3))])
    assert taken(answer) == [["r0: d3", "r0: d2", "r0: d1"]]


def test_mode_all_takes_every_device_or_nothing() -> None:
    given = [claim(request("r0", 0))]
    assert taken(allocator(plain(3)).allocate(node(), given)) == [["r0: d0", "r0: d1", "r0: d2"]]
    held = [holding(result("d1"))]
    assert taken(allocator(plain(3), held=held).allocate(node(), given)) is None


def test_share_is_not_taken_twice_within_one_request() -> None:
    shared = device("d0", allowMultipleAllocations=True)
    asked = allocator(resource_slice("s", shared))
    assert taken(asked.allocate(node(), [claim(request("r0", 2))])) is None
    both = claim(request("r0"), request("r1"))
    assert taken(asked.allocate(node(), [both])) == [["r0: d0", "r1: d0"]]


def counted(devices: int, **amounts: int) -> list:
    return [
        resource_slice(
            "s",
            *(device(f"d{i}", consumesCounters=uses(x=1), index=i) for i in range(devices)),
            count=2,
        ),
        resource_slice("c", count=2, sharedCounters=[counter_set(**amounts)]),
    ]


GROUPS = resource_slice("s", *(device(f"d{i}", numa=i // 8, index=i % 8) for i in range(128)))


def partitioned(gpus: int, mem: int, *, tainted: bool = False) -> list:
    """GPUs of seven partitions with a counter of their own each, and memory they share."""
    devices = [
        device(
            f"g{gpu}p{part}",
            numa=gpu,
            index=part,
            consumesCounters=uses(f"g{gpu}", mem=10, **{f"s{part}": 1}),
            taints=[taint()] if tainted and part == 0 else [],
        )
        for gpu in range(gpus)
        for part in range(7)
    ]
    slots = {f"s{part}": 1 for part in range(7)}
    sets = [counter_set(f"g{gpu}", mem=mem, **slots) for gpu in range(gpus)]
    return [
        resource_slice("s", *devices, count=2),
        resource_slice("c", count=2, sharedCounters=sets),
    ]


def cards(count: int) -> list:
    """Cards of seven slots with overlapping partitions: the whole card, two parts, each slot."""
    parts = [range(7), range(4), range(4, 7), *((slot,) for slot in range(7))]
    devices = [
        device(
            f"c{card}-{number}",
            size=len(part),
            consumesCounters=uses(f"c{card}", mem=len(part), **{f"s{slot}": 1 for slot in part}),
        )
        for card in range(count)
        for number, part in enumerate(parts)
    ]
    slots = {f"s{slot}": 1 for slot in range(7)}
    sets = [counter_set(f"c{card}", mem=7, **slots) for card in range(count)]
    return [
        resource_slice("s", *devices, count=2),
        resource_slice("c", count=2, sharedCounters=sets),
    ]


def shared(count: int) -> dict:
    return resource_slice(
        "s",
        *(
            device(
                f"d{i}",
                index=i,
                allowMultipleAllocations=True,
                capacity={"memory": {"value": str(10 + i)}},
            )
            for i in range(count)
        ),
    )


def asking(count: int, amount: str) -> dict:
    wishes = {"requests": {"memory": amount}}
    return claim(*(request(f"r{i}", capacity=wishes) for i in range(count)))


INDEX = 'device.attributes["gpu.example.com"].index'
HARD = [
    ("11 of 10", [plain(10)], [claim(*(request(f"r{i}") for i in range(11)))]),
    ("3 x 10 of 20", [plain(20)], [claim(*(request(f"r{i}", 10) for i in range(3)))]),
    (
        "3 x 10 of 20, each otherwise",
        [plain(20)],
        [claim(*(request(f"r{i}", 10, f"{INDEX} >= {i}") for i in range(3)))],
    ),
    (
        "9 of groups of 8",
        [GROUPS],
        [claim(*(request(f"r{i}") for i in range(9)), constraints=[match()])],
    ),
    (
        "8 of groups of 8, one of them excluded",
        [GROUPS],
        [claim(*(request(f"r{i}", 1, f"{INDEX} > 0") for i in range(8)), constraints=[match()])],
    ),
    ("a counter short", counted(24, x=7), [claim(request("a", 4), request("b", 4))]),
    (
        "7 alternatives of 17 of 16",
        [plain(16)],
        [claim(first_available("r", **{f"a{i}": wish(17) for i in range(7)}))],
    ),
    (
        "partitions that leave bookings behind",
        partitioned(2, 100, tainted=True),
        [claim(*(request(f"r{i}") for i in range(13)))],
    ),
    (
        "partitions of one GPU that has memory for fewer",
        partitioned(8, 30),
        [claim(*(request(f"r{i}") for i in range(4)), constraints=[match()])],
    ),
    ("a partition more than slots", cards(4), [claim(request("r", 29))]),
    (
        "a partition more than slots, by two requests",
        cards(4),
        [claim(request("a", 14), request("b", 15))],
    ),
    ("more shares than places", [shared(10)], [asking(32, "5")]),
    (
        "11 claims on 10 devices",
        [plain(10)],
        [claim(request("r", 1, f"{INDEX} != {i}"), name=f"c{i}") for i in range(11)],
    ),
]


@pytest.mark.parametrize(("slices", "claims"), [row[1:] for row in HARD], ids=[r[0] for r in HARD])
def test_hopeless_search_ends_soon(slices: list, claims: list) -> None:
    asked = allocator(*slices, bounds=Bounds(steps_max=STEPS_FEW))
    assert isinstance(asked.allocate(node(), claims), DoesNotFit)


def test_only_group_that_is_large_enough_is_found_soon() -> None:
    devices = [device(f"d{i}", numa=min(i // 7, 15), index=i) for i in range(113)]
    claims = [claim(request("r", 8), constraints=[match()])]
    answer = allocator(resource_slice("s", *devices)).allocate(node(), claims)
    assert taken(answer) == [[f"r: d{i}" for i in range(105, 113)]]
    assert answer.steps < STEPS_FEW


@pytest.mark.parametrize("count", [21, 22, 23, 27, 28])
def test_partitions_of_several_cards_are_found_soon(count: int) -> None:
    """The first device is a whole card, with which at most 22 partitions fit."""
    asked = allocator(*cards(4), bounds=Bounds(steps_max=STEPS_FEW))
    (names,) = taken(asked.allocate(node(), [claim(request("r", count))]))
    assert len(names) == count
    assert ("r: c0-0" in names) == (count <= 22)


def test_search_stops_at_its_bound_of_steps() -> None:
    claims = [claim(*(request(f"r{i}") for i in range(11)))]
    asked = allocator(plain(10), prune=False, bounds=Bounds(steps_max=1000))
    answer = asked.allocate(node(), claims)
    assert isinstance(answer, Failure)
    assert answer.timed_out
    assert answer.text == "filter operation aborted: context deadline exceeded"


def test_many_claims_do_not_exhaust_the_stack() -> None:
    shared = device("d0", allowMultipleAllocations=True)
    claims = [claim(request("r0"), name=f"c{i}") for i in range(2_000)]
    assert len(taken(allocator(resource_slice("s", shared)).allocate(node(), claims))) == 2_000


def test_answer_is_remembered_until_something_of_the_node_changes() -> None:
    inventory = Inventory()
    for name in ("n0", "n1"):
        inventory.put_slice(resource_slice(name, device("d0"), device("d1"), pool=name, node=name))
    state = AllocatedState()

    def ask(name: str) -> list | None:
        asked = Allocator(inventory, {"gpu": device_class()}, state, ALL_ON, compiler=COMPILER)
        return taken(asked.allocate(node(name), [claim(request())]))

    assert [ask("n0"), ask("n1"), ask("n0")] == [[["r0: d0"]]] * 3
    state.add_claim(holding(result("d0", pool="n0")))
    assert [ask("n0"), ask("n1")] == [[["r0: d1"]], [["r0: d0"]]]
    inventory.put_slice(resource_slice("n0", device("d7"), pool="n0", node="n0", generation=2))
    assert [ask("n0"), ask("n1")] == [[["r0: d7"]], [["r0: d0"]]]
    state.remove_claim(holding())
    inventory.put_rule(
        {
            "metadata": {"name": "rule"},
            "spec": {
                "deviceSelector": {"pool": "n1"},
                "taint": {"key": "k", "effect": "NoSchedule"},
            },
        }
    )
    assert [ask("n0"), ask("n1")] == [[["r0: d7"]], None]


def test_node_selector_that_cannot_be_read_ends_the_attempt_before_the_first_step() -> None:
    terms = [{"matchExpressions": [{"key": "zone", "operator": "Near", "values": ["a"]}]}]
    unreadable = resource_slice(
        "s", device("d0"), node=None, nodeSelector={"nodeSelectorTerms": terms}
    )
    answer = allocator(unreadable).allocate(node(), [claim(request("r0"))])
    assert isinstance(answer, Failure)
    assert (answer.scope, answer.steps, answer.case) == (FailureScope.FATAL, 0, None)
    assert "failed to perform node selection for slice s" in answer.text
    assert not answer.timed_out


@pytest.mark.parametrize("variant", AllocatorVariant)
def test_request_for_no_device_leaves_all_to_the_others(variant: AllocatorVariant) -> None:
    """The API gives each request a count; input of a command may have none."""
    for counts, expected in (
        ((0, 1), [("r1", "d0")]),
        ((1, 0), [("r0", "d0")]),
        ((0, 0), []),
        ((1, 0, 2), [("r0", "d0"), ("r2", "d1"), ("r2", "d2")]),
    ):
        wanted = [request(f"r{number}", 1) for number in range(len(counts))]
        for each, count in zip(wanted, counts, strict=True):
            each["exactly"]["count"] = count
        given = claim(*wanted)
        answer = allocator(plain(3), variant=variant).allocate(node(), [given])
        (results,) = answer.allocation_results(str)
        found = [
            (each["request"], each["device"]) for each in results["devices"].get("results", [])
        ]
        assert found == expected
