"""Answers of earlier attempts: reused while nothing has changed, and only then."""

from collections.abc import Callable

import pytest

from app.domain.allocation import AllocatedState, Allocator, search
from app.domain.devices.inventory import Inventory
from tests.worlds.builders import (
    ALL_ON,
    COMPILER,
    claim,
    counter_set,
    device,
    device_class,
    holding,
    node,
    request,
    resource_slice,
    result,
    taken,
    uses,
)

SLICE = resource_slice("s", device("d0"), device("d1"))
CLASSES = {"gpu": device_class()}


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Counts the searches since the last question."""
    made = 0
    run = search.run

    def counted(*arguments: object, **how: object) -> object:
        nonlocal made
        made += 1
        return run(*arguments, **how)  # type: ignore[arg-type]  # passed on as they came

    def told() -> int:
        nonlocal made
        since, made = made, 0
        return since

    monkeypatch.setattr(search, "run", counted)
    return told


def allocator(inventory: Inventory, state: AllocatedState) -> Allocator:
    return Allocator(inventory, CLASSES, state, ALL_ON, compiler=COMPILER)


def test_next_claim_of_the_same_kind_is_answered_without_a_search(searches) -> None:
    asked = allocator(Inventory.of_slices([SLICE]), AllocatedState())
    for name in ("a", "b", "c"):
        assert taken(asked.allocate(node(), [claim(request("r0"), name=name)])) == [["r0: d0"]]
    assert searches() == 1


def test_answer_that_nothing_fits_is_remembered_too(searches) -> None:
    asked = allocator(Inventory.of_slices([SLICE]), AllocatedState())
    for name in ("a", "b"):
        assert taken(asked.allocate(node(), [claim(request("r0", 3), name=name)])) is None
    assert searches() == 1


def test_other_question_is_searched(searches) -> None:
    asked = allocator(Inventory.of_slices([SLICE]), AllocatedState())
    assert taken(asked.allocate(node(), [claim(request("r0", 1))])) == [["r0: d0"]]
    assert taken(asked.allocate(node(), [claim(request("r0", 2))])) == [["r0: d0", "r0: d1"]]
    assert searches() == 2


def test_claim_that_takes_a_device_ends_what_was_remembered_of_its_node(searches) -> None:
    state = AllocatedState()
    asked = allocator(Inventory.of_slices([SLICE]), state)
    assert taken(asked.allocate(node(), [claim(request("r0"), name="a")])) == [["r0: d0"]]
    holder = holding(result("d0"))
    state.add_claim(holder)
    assert taken(asked.allocate(node(), [claim(request("r0"), name="b")])) == [["r0: d1"]]
    state.remove_claim(holder)
    assert taken(asked.allocate(node(), [claim(request("r0"), name="c")])) == [["r0: d0"]]
    assert searches() == 3


def test_other_state_of_the_same_devices_has_its_own_answers() -> None:
    inventory = Inventory.of_slices([SLICE])
    free = allocator(inventory, AllocatedState())
    used = allocator(inventory, AllocatedState.of_claims([holding(result("d0"))]))
    for _ in range(2):
        assert taken(free.allocate(node(), [claim(request("r0"))])) == [["r0: d0"]]
        assert taken(used.allocate(node(), [claim(request("r0"))])) == [["r0: d1"]]


def test_answer_of_a_node_that_reads_counters_of_another_first_is_not_remembered() -> None:
    """The slices announce different counts, so one node takes its part of the pool for the whole.
    Parity: allocator.md 2.4 and 7.
    """
    slices = []
    for name, count, amount in (("whole", 4, 2), ("part", 2, 1)):
        drawing = [device(f"{name}-{n}", consumesCounters=uses(name, x=n)) for n in (1, 2)]
        where = {"node": name, "count": count}
        slices += [
            resource_slice(f"{name}-devices", *drawing, **where),
            resource_slice(f"{name}-sets", sharedCounters=[counter_set(name, x=amount)], **where),
        ]
    inventory, state, claims = (
        Inventory.of_slices(slices),
        AllocatedState(),
        [claim(request("r", 2))],
    )

    def answers(*names: str) -> list:
        asked = allocator(inventory, state)
        return [taken(asked.allocate(node(name), claims)) for name in names]

    assert answers("part", "whole") == [None, [["r: whole-1", "r: whole-2"]]]
    assert answers("whole", "part") == [None, None]
    assert answers("part", "whole") == [None, [["r: whole-1", "r: whole-2"]]]


def test_answer_to_a_request_that_grew_on_another_node_is_neither_remembered_nor_recalled() -> None:
    """1.5Gi are 3.5Gi after the node with a policy was asked. Parity: allocator.md 16, Q20."""
    ruled = {"value": "10Gi", "requestPolicy": {"default": "1Gi"}}
    shared = device("s", allowMultipleAllocations=True, capacity={"memory": ruled})
    slices = [resource_slice("s", shared, node="shared", pool="shared")]
    for name in ("one", "two"):
        plain = [device(each, capacity={"memory": {"value": "2Gi"}}) for each in "pq"]
        slices.append(resource_slice(name, *plain, node=name, pool=name))
    inventory, state = Inventory.of_slices(slices), AllocatedState()
    half = {"requests": {"memory": "1.5Gi"}}
    claims = [claim(request("r0"), request("r1", 1, capacity=half))]

    def answers(*names: str) -> list:
        asked = allocator(inventory, state)
        return [taken(asked.allocate(node(name), claims)) for name in names]

    both, fits = [["r0: s", "r1: s"]], [["r0: p", "r1: q"]]
    assert answers("shared", "one", "two") == [both, None, None]
    assert answers("one", "two") == [fits, fits]
    assert answers("one", "shared", "two", "one") == [fits, both, None, None]
