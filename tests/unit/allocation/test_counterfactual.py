"""What would have helped: smallest changes, each proven by allocating."""

import random

import pytest

from app.domain.allocation import Allocation, Allocator, Failure
from app.domain.allocation.allocator import Answer
from app.domain.allocation.features import AllocatorVariant
from app.domain.allocation.reasons import counterfactual
from app.domain.allocation.reasons.changes import FrozenObject, ReleaseClaim
from app.domain.allocation.reasons.patching import PatchAttribute
from app.domain.values import identifiers
from tests.together import together
from tests.worlds.builders import (
    DRIVER,
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


def what_would_help(
    allocator: Allocator,
    answer: Answer,
    *,
    changes_max: int = counterfactual.CHANGES_MAX,
    tries_max: int = counterfactual.TRIES_MAX,
) -> list[counterfactual.Help]:
    steps = counterfactual.what_would_help_in_steps(
        allocator, answer, changes_max=changes_max, tries_max=tries_max
    )
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return done.value


def helps(slices: list, claims: list, *, held: list | None = None, **effort) -> list[str]:
    asked = allocator(*slices, held=held)
    answer = asked.allocate(node(), claims)
    return [found.text for found in what_would_help(asked, answer, **effort)]


def test_claims_that_fit_need_no_help() -> None:
    assert helps([resource_slice("s", device("d0"))], [claim(request())]) == []


def test_releasing_a_claim_or_tolerating_a_taint_is_found() -> None:
    slices = [resource_slice("s", device("d0"), device("d1", taints=[taint()]))]
    assert sorted(helps(slices, [claim(request())], held=[holding(result("d0"))])) == [
        "release claim other/held",
        "tolerate taint k=v:NoSchedule in request r0 of claim ns/claim",
    ]


@pytest.mark.parametrize(("often", "seldom"), [("a", "b"), ("b", "a")])
def test_cause_of_the_most_devices_is_told_first(often: str, seldom: str) -> None:
    taints = [often, seldom, often, often]
    devices = [device(f"d{n}", taints=[taint(each)]) for n, each in enumerate(taints)]
    assert helps([resource_slice("s", *devices)], [claim(request())]) == [
        f"tolerate taint {each}=v:NoSchedule in request r0 of claim ns/claim"
        for each in (often, seldom)
    ]


def test_selector_that_excludes_everything_is_named() -> None:
    found = helps([resource_slice("s", device("d0"))], [claim(request("r0", 1, "false"))])
    assert found == ["drop selector #0 (false) in request r0 of claim ns/claim"]


def test_highest_count_that_fits_is_named() -> None:
    slices = [resource_slice("s", device("d0"), device("d1"))]
    assert helps(slices, [claim(request("r0", 4))]) == [
        "lower count to 2 in request r0 of claim ns/claim"
    ]


def test_constraint_is_dropped_where_nothing_matches() -> None:
    slices = [resource_slice("s", device("d0", numa=0), device("d1", numa=1))]
    found = helps(slices, [claim(request("a"), request("b"), constraints=[match()])])
    assert found == ["drop constraint #0 (gpu.example.com/numa) of claim ns/claim"]


def test_counter_is_enlarged_by_what_is_missing() -> None:
    devices = [device(f"d{i}", consumesCounters=uses(mem=3)) for i in range(2)]
    slices = [
        resource_slice("s", *devices, count=2),
        resource_slice("c", count=2, sharedCounters=[counter_set(mem=5)]),
    ]
    found = helps(slices, [claim(request())], held=[holding(result("d0"))])
    assert "add 1 to counter mem of set set in pool gpu.example.com/pool" in found
    assert "release claim other/held" in found


def test_smallest_enlargement_of_a_counter_is_named() -> None:
    """The device that draws most comes first; adding what the other one lacks is enough."""
    devices = [device(f"d{size}", consumesCounters=uses(mem=size)) for size in (4, 1)]
    slices = [
        resource_slice("s", device("held", consumesCounters=uses(mem=5)), *devices, count=2),
        resource_slice("c", count=2, sharedCounters=[counter_set(mem=5)]),
    ]
    found = helps(slices, [claim(request())], held=[holding(result("held"))])
    assert [text for text in found if text.startswith("add")] == [
        "add 1 to counter mem of set set in pool gpu.example.com/pool"
    ]


def test_less_capacity_is_asked_for() -> None:
    shared = device("d0", allowMultipleAllocations=True, capacity={"memory": {"value": "4Gi"}})
    given = claim(request("r0", 1, capacity={"requests": {"memory": "6Gi"}}))
    assert helps([resource_slice("s", shared)], [given]) == [
        "ask for 4Gi of memory in request r0 of claim ns/claim"
    ]


def test_of_several_amounts_the_largest_is_asked_for_once() -> None:
    """Also for each capacity by itself, and for each request."""
    shared = [
        device(f"d{amount}", allowMultipleAllocations=True, capacity={"memory": {"value": amount}})
        for amount in ("1Gi", "4Gi", "2Gi")
    ]
    given = claim(request("r0", 1, capacity={"requests": {"memory": "6Gi"}}))
    assert helps([resource_slice("s", *shared)], [given]) == [
        "ask for 4Gi of memory in request r0 of claim ns/claim"
    ]


@pytest.mark.parametrize(
    ("policy", "asked", "helps_with"),
    [
        ({"validRange": {"min": "1", "max": "8"}}, "9", "8"),
        ({"validRange": {"min": "2", "step": "3"}}, "10", "8"),
        ({"validValues": ["1", "6", "20"]}, "7", "6"),
    ],
)
def test_the_most_that_a_policy_allows_is_asked_for(
    policy: dict, asked: str, helps_with: str
) -> None:
    bw = {"value": "10", "requestPolicy": {"default": "6", **policy}}
    shared = device("d0", allowMultipleAllocations=True, capacity={"bw": bw})
    given = claim(request("r0", 1, capacity={"requests": {"bw": asked}}))
    assert f"ask for {helps_with} of bw in request r0 of claim ns/claim" in helps(
        [resource_slice("s", shared)], [given]
    )


def test_capacity_that_no_device_has_is_not_asked_for() -> None:
    shared = device("d0", allowMultipleAllocations=True, capacity={"bw": {"value": "10"}})
    given = claim(request("r0", 1, capacity={"requests": {"bw": "1", "iops": "5"}}))
    assert helps([resource_slice("s", shared)], [given]) == [
        "ask for no iops in request r0 of claim ns/claim"
    ]


def test_two_changes_are_found_when_one_does_not_help() -> None:
    both = device("d0", taints=[taint()])
    given = [claim(request("r0", 1, "false"))]
    slices = [resource_slice("s", both)]
    assert (
        helps(slices, given)
        == [
            "drop selector #0 (false) in request r0 of claim ns/claim "
            "and tolerate taint k=v:NoSchedule in request r0 of claim ns/claim"
        ]
        or helps(slices, given, changes_max=1) == []
    )


def test_effort_is_bounded() -> None:
    slices = [resource_slice("s", *(device(f"d{i}", taints=[taint(f"k{i}")]) for i in range(30)))]
    assert helps(slices, [claim(request("r0", 3))], tries_max=5) == []


def test_changes_leave_the_world_as_it_was() -> None:
    slices = [resource_slice("s", device("d0"))]
    asked = allocator(*slices, held=[holding(result("d0"))])
    given = claim(first_available("r0", a=wish(2), b=wish(1)))
    answer = asked.allocate(node(), [given])
    before = str(given)
    assert what_would_help(asked, answer)
    assert str(given) == before
    assert not isinstance(asked.allocate(node(), [given]), Allocation)


@together(range(40), str)
def test_every_claim_whose_release_helps_is_named(seed: int) -> None:
    """By counting: as many devices of the model are free then as are asked for."""
    draw = random.Random(seed)
    models = [draw.choice("ab") for _ in range(draw.randrange(2, 60))]
    holder_of = {
        number: draw.randrange(len(models))
        for number in range(len(models))
        if draw.random() < draw.choice((0.7, 1.0))
    }
    held = [
        holding(
            *(result(f"d{number}") for number in holder_of if holder_of[number] == holder),
            name=f"c{holder}",
        )
        for holder in sorted(set(holder_of.values()))
    ]
    wanted = draw.choice("ab")
    fitting = [number for number, model in enumerate(models) if model == wanted]
    free = len([number for number in fitting if number not in holder_of])
    count = free + draw.randrange(1, 3)
    slices = [
        resource_slice("s", *(device(f"d{number}", model=m) for number, m in enumerate(models)))
    ]
    selector = f'device.attributes["gpu.example.com"].model == "{wanted}"'
    asked = allocator(*slices, held=held)
    answer = asked.allocate(node(), [claim(request("r0", count, selector))])
    released = {
        help_.text.removeprefix("release claim other/")
        for help_ in what_would_help(asked, answer)
        if help_.is_release and not help_.has_untried
    }
    gained = {f"c{h}": sum(holder_of.get(n) == h for n in fitting) for h in holder_of.values()}
    assert released == {name for name, more in gained.items() if free + more >= count}


@together(range(30), str)
def test_error_of_another_node_is_known_as_allocating_there_says(seed: int) -> None:
    """A node errs when a device without the attribute is looked at, which a holder prevents.

    A node all of whose free devices have it does not err; one with free devices that all lack it
    does. What else decides is the order of the devices, so a new allocator is asked as well.
    """
    draw = random.Random(seed)
    nodes = ("a", "b", "c")
    has_numa = {
        (draw.choice((name, "shared")), name, number): draw.random() < 0.6
        for name in nodes
        for number in range(draw.randrange(1, 4))
    }
    pools = sorted({pool for pool, _, _ in has_numa})
    slices = []
    for pool in pools:
        names = sorted({name for one, name, _ in has_numa if one == pool})
        for name in names:
            own = [
                device(f"{name}{number}", **({"numa": 0} if has else {}))
                for (one, owner, number), has in has_numa.items()
                if (one, owner) == (pool, name)
            ]
            slices.append(
                resource_slice(f"{pool}-{name}", *own, pool=pool, node=name, count=len(names))
            )
    holder_of = {place: f"c{draw.randrange(3)}" for place in has_numa if draw.random() < 0.6}
    held = [
        holding(
            *(
                result(f"{name}{number}", pool=pool)
                for (pool, name, number), holder in holder_of.items()
                if holder == one
            ),
            name=one,
        )
        for one in sorted(set(holder_of.values()))
    ]
    asked = allocator(*slices, held=held)
    wanted = claim(request("r0", 1, 'device.attributes["gpu.example.com"].numa == 0'))
    for name in nodes:
        answer = asked.allocate(node(name), [wanted])
        for released in sorted(set(holder_of.values())):
            free = [
                has
                for place, has in has_numa.items()
                if place[1] == name and holder_of.get(place, released) == released
            ]
            fails = counterfactual.still_fails(
                asked, answer, [ReleaseClaim(claim=f"other/{released}")], own={}
            )
            left = [one for one in held if one["metadata"]["name"] != released]
            alone = allocator(*slices, held=left).allocate(node(name), [wanted])
            assert fails is isinstance(alone, Failure), (name, released)
            if all(free):
                assert not fails, (name, released)
            elif not any(free):
                assert fails, (name, released)


def test_claims_that_share_a_device_are_all_named() -> None:
    shared = device("d0", allowMultipleAllocations=True, capacity={"memory": {"value": "4Gi"}})
    given = claim(request("r0", 1, capacity={"requests": {"memory": "1Gi"}}))
    held = [
        holding(
            result("d0", shareID=f"s{number}", consumedCapacity={"memory": "1Gi"}),
            name=f"c{number}",
        )
        for number in range(4)
    ]
    found = helps([resource_slice("s", shared)], [given], held=held)
    assert sorted(text for text in found if text.startswith("release")) == [
        f"release claim other/c{number}" for number in range(4)
    ]


def test_releases_are_some_among_others_when_not_all_were_tried() -> None:
    slices = [resource_slice("s", *(device(f"d{number}") for number in range(6)))]
    held = [holding(result(f"d{number}"), name=f"c{number}") for number in range(6)]
    asked = allocator(*slices, held=held)
    answer = asked.allocate(node(), [claim(request())])
    found = what_would_help(asked, answer, tries_max=4)
    assert [one.has_untried for one in found if one.is_release] == [True] * 4
    found = what_would_help(asked, answer)
    assert [one.has_untried for one in found if one.is_release] == [False] * 6


def counted(*counts: int, of: int = 1, **more: object) -> list:
    """A pool whose slices of one device each state these numbers of slices."""
    return [
        resource_slice(f"s{number}", device(f"d{number}"), count=count, generation=of, **more)
        for number, count in enumerate(counts)
    ]


COUNTED = "state {} as resourceSliceCount in pool gpu.example.com/pool"


def test_slices_that_state_another_number_are_counted() -> None:
    for slices, number in (
        (counted(3, 3), 2),
        (counted(1, 2, of=2), 2),
        (counted(1, 1), 2),
        ([*counted(2, of=2), resource_slice("old", device("d9"), count=2)], 1),
    ):
        assert helps(slices, [claim(request("r0", number))]) == [COUNTED.format(number)]


def test_slices_are_counted_for_a_request_for_all_devices_of_a_pool() -> None:
    """It is refused before any device is checked: a device that is not published may be meant."""
    assert helps(counted(3, 3), [claim(request("r0", 0))]) == [COUNTED.format(2)]
    taken = [holding(result("d0"))]
    (both,) = helps(counted(3, 3), [claim(request("r0", 0))], held=taken)
    assert both == f"{COUNTED.format(2)} and release claim other/held"


def test_slices_are_not_counted_where_that_does_not_help_or_no_number_is_known() -> None:
    assert helps(counted(0), [claim(request())]) == []
    (both,) = helps(counted(3), [claim(request("r0", 2))])
    assert both == f"{COUNTED.format(1)} and lower count to 1 in request r0 of claim ns/claim"
    behind = [*counted(1), resource_slice("new", device("d9"), generation=2, node="other")]
    assert helps(behind, [claim(request())]) == []


LEFT_OUT = "leave out of slice{} the devices that slice{} of pool gpu.example.com/pool {}"


@pytest.mark.parametrize(
    ("slices", "losing", "keeping", "count"),
    [
        ({"a": "d0 d1", "b": "d1 d2"}, " b", " a", 3),
        ({"a": "d0", "b": "d1 d0", "c": "d2 d1"}, "s b and c", "s a and b", 3),
        ({"a": "d0", "b": "d0", "c": "d0 d1"}, "s b and c", " a", 2),
    ],
)
def test_device_that_several_slices_have_is_left_to_the_first(slices, losing, keeping, count):
    made = [
        resource_slice(name, *map(device, names.split()), count=len(slices))
        for name, names in slices.items()
    ]
    said = LEFT_OUT.format(losing, keeping, "have" if " and " in keeping else "has")
    assert helps(made, [claim(request())]) == [said]
    # A device is there once, however often it was published.
    lowered = f"lower count to {count} in request r0 of claim ns/claim"
    assert helps(made, [claim(request("r0", 4))]) == [f"{said} and {lowered}"]


def misnamed(*, counter: str = "mem") -> list:
    """A pool whose devices consume counters under names that no set of it has."""
    devices = [
        device("d0", consumesCounters=uses("typo", **{counter: 3})),
        device("d1", consumesCounters=uses("other", mem=1)),
    ]
    return [
        resource_slice("s", *devices, count=2),
        resource_slice("c", count=2, sharedCounters=[counter_set("set", mem=5)]),
    ]


def test_counter_sets_that_a_pool_lacks_are_named_as_those_that_it_has() -> None:
    assert helps(misnamed(), [claim(request())]) == [
        "let the devices of pool gpu.example.com/pool consume counter set set instead of typo and "
        "set instead of other"
    ]


def test_no_counter_set_is_named_that_lacks_a_counter() -> None:
    assert helps(misnamed(counter="cores"), [claim(request())]) == []


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"string": "a"}, "a"),
        ({"bool": False}, "false"),
        ({"strings": ["a", "b"]}, '["a", "b"]'),
        ({"bools": [True]}, "[true]"),
    ],
)
def test_attribute_to_be_set_is_named_as_json(value: dict, text: str) -> None:
    owner = identifiers.parse_device("d/p/x")
    change = PatchAttribute(device=owner, name="d/a", value=FrozenObject.of(value))
    expected = f"set attribute d/a of device d/p/x to {text}, in its "
    expected += "driver or by a ResourceSlicePatch"
    assert change.text == expected


def test_selectors_are_dropped_one_by_one() -> None:
    """Each excludes the device by itself, so that without one of them the other still does."""
    selectors = [f"device.attributes['{DRIVER}'].model == '{name}'" for name in ("y", "z")]
    slices = [resource_slice("s", device("d0", model="x"))]
    request_name = "in request r0 of claim ns/claim"
    assert helps(slices, [claim(request("r0", 1, *selectors))]) == [
        " and ".join(f"drop selector #0 ({text}) {request_name}" for text in selectors)
    ]
    assert helps(slices, [claim(request("r0", 1, *selectors))], changes_max=1) == []


@pytest.mark.parametrize("variant", AllocatorVariant)
def test_allocator_for_another_world_is_of_the_same_variant(variant: AllocatorVariant) -> None:
    """Upstream's stable allocator does not know `distinctAttribute`, and refuses such a claim."""
    slices = [resource_slice("s", device("a", slot=1), device("b", slot=2))]
    claims = [claim(request("r0", 2), constraints=[distinct("slot")])]
    asked = allocator(*slices, variant=variant)
    first = asked.allocate(node(), claims)
    refused = variant is AllocatorVariant.STABLE
    assert isinstance(first, Allocation) is not refused
    elsewhere = asked.on_world(asked.inventory, asked.classes, asked.state)
    for other in (elsewhere, asked.repaired("q1"), asked.on_world(
        asked.inventory.copy(), asked.classes, asked.state, remembers=False
    )):  # fmt: skip
        assert isinstance(other.allocate(node(), claims), Allocation) is not refused
