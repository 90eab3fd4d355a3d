"""The placements that the pods of one step assume of each other; none outlives the step."""

import pytest

from app.domain.allocation import AllocatedState
from app.domain.controllers.scheduling.framework import pod_spec
from app.domain.controllers.scheduling.framework.nodes import NodeIndex
from app.domain.controllers.scheduling.plugins.dynamic_resources.device_map import DeviceIndex
from app.domain.controllers.scheduling.plugins.dynamic_resources.extended_resources import (
    ExtendedClaim,
)
from app.domain.controllers.scheduling.scheduling_cycle.assuming import Assumptions
from app.domain.controllers.scheduling.scheduling_cycle.attempt import Attempt
from app.domain.log import ObjectKey
from app.domain.objects.write.commands import UpdateObject
from app.domain.values.json_tree import JsonObject

POOL = ("gpu.example.com", "n1")
NOTHING: tuple[list[int], list[int], list[int]] = ([], [], [])


def claim_of(number: int) -> JsonObject:
    return {"metadata": {"name": f"c{number}", "namespace": "ns", "uid": f"uid-{number}"}}


def allocation_of(number: int) -> JsonObject:
    device = {"driver": POOL[0], "pool": POOL[1], "device": f"gpu-{number}"}
    return {"devices": {"results": [{"request": "gpu", **device}]}}


class World:
    """One node, and what is assumed about it: pod, claim and device have one number each."""

    def __init__(self) -> None:
        self.nodes = NodeIndex()
        self.nodes.put({"metadata": {"name": "n1"}})
        self.allocated = AllocatedState()
        self.assumed = Assumptions(self.nodes, DeviceIndex(self.nodes))

    def add(self, number: int) -> None:
        metadata = {"name": f"p{number}", "namespace": "ns", "uid": f"u{number}"}
        pod = pod_spec.read({"metadata": metadata, "spec": {"containers": []}})
        claim = claim_of(number)
        result = Attempt(
            outcome="Scheduled",
            node="n1",
            allocations=(allocation_of(number),),
            extended=ExtendedClaim(tree=claim, mappings=()),
        )
        key = ObjectKey("resource.k8s.io", "resourceclaims", "ns", f"c{number}")
        written = UpdateObject(key=key, version="v1", tree=claim)
        self.assumed.add(pod, result, self.allocated, (written,))

    def in_force(self, first: int | None = None) -> tuple[list[int], list[int], list[int]]:
        """What counts inside."""
        with self.assumed.in_force(self.allocated, first):
            return self.counted()

    def decide(self, number: int) -> tuple[list[int], list[int], list[int]]:
        """What counts when a pod is decided about, which is assumed from then on."""
        with self.assumed.in_force(self.allocated):
            before = self.counted()
            self.add(number)
        return before

    def counted(self) -> tuple[list[int], list[int], list[int]]:
        """Pods on the node, devices that are taken, claims that are known as they are left."""
        info = self.nodes.get("n1")
        assert info is not None
        return (
            [int(name[1:]) for _, name in info.pods],
            [n for n in range(9) if self.allocated.is_dedicated((*POOL, f"gpu-{n}"))],
            [int(key.name[1:]) for key in self.assumed.written],
        )


def all_of(*numbers: int) -> tuple[list[int], list[int], list[int]]:
    return (list(numbers), list(numbers), list(numbers))


@pytest.fixture
def world() -> World:
    return World()


def test_each_decision_of_a_step_assumes_the_earlier_ones(world: World) -> None:
    assert [world.decide(number) for number in (1, 2, 3)] == [all_of(), all_of(1), all_of(1, 2)]
    assert world.counted() == NOTHING


def test_assumptions_that_stay_in_force_give_the_same_decisions(world: World) -> None:
    with world.assumed.staying():
        assert [world.decide(number) for number in (1, 2, 3)] == [all_of(), all_of(1), all_of(1, 2)]
        assert world.counted() == all_of(1, 2, 3), "the next one has nothing to put in again"
    assert world.counted() == NOTHING


def test_reading_the_assumptions_in_force_changes_no_node(world: World) -> None:
    """Assumptions in force change no node, so that answers about it stay valid."""
    with world.assumed.staying():
        world.decide(1)
        version = world.nodes.version
        assert world.in_force() == all_of(1)
        assert world.nodes.version == version
    world.in_force()
    assert world.nodes.version > version


@pytest.mark.parametrize("stays", [False, True])
def test_first_assumptions_of_a_step_can_be_read_alone(world: World, stays: bool) -> None:
    """Attempts without news are reported at the end of a step, each with its assumptions."""

    def check() -> None:
        for number in (1, 2, 3):
            world.decide(number)
        assert world.in_force(1) == all_of(1)
        assert world.in_force(0) == NOTHING
        assert world.in_force(2) == all_of(1, 2)
        assert world.in_force() == all_of(1, 2, 3)
        assert world.in_force(7) == all_of(1, 2, 3), "there are no more"

    if stays:
        with world.assumed.staying():
            check()
    else:
        check()
    assert world.counted() == NOTHING


def test_assumptions_count_from_their_enforcement_to_the_end_of_the_step(world: World) -> None:
    world.assumed.hold(("ns", "p8"), [(claim_of(8), allocation_of(8))])
    world.decide(1)
    with world.assumed.staying():
        assert world.counted() == NOTHING, "no pod has been tried yet"
        world.assumed.enforce(world.allocated)
        assert world.counted() == ([1], [1, 8], [1])
        assert world.decide(2) == ([1], [1, 8], [1])
        world.assumed.enforce(world.allocated)
        assert world.counted() == ([1, 2], [1, 2, 8], [1, 2])
    assert world.counted() == NOTHING


def test_a_new_step_assumes_nothing_of_the_last(world: World) -> None:
    with world.assumed.staying():
        world.decide(1)
        world.assumed.clear()
        assert world.counted() == NOTHING
        assert world.decide(2) == NOTHING
        assert world.decide(3) == all_of(2)
    assert world.counted() == NOTHING


def test_claims_in_flight_count_inside_only(world: World) -> None:
    """Their pods hold their nodes already; staying or not, they are counted once."""
    world.assumed.hold(("ns", "p8"), [(claim_of(8), allocation_of(8))])
    assert world.in_force() == ([], [8], [])
    with world.assumed.staying():
        assert world.decide(1) == ([], [8], [])
        assert world.in_force() == ([1], [1, 8], [1])
    assert world.counted() == NOTHING
    world.assumed.let_go(("ns", "p8"))
    assert world.in_force() == all_of(1)


def test_error_within_a_step_leaves_no_assumption(world: World) -> None:
    world.assumed.hold(("ns", "p8"), [(claim_of(8), allocation_of(8))])

    def fail() -> None:
        with world.assumed.staying():
            world.decide(1)
            with world.assumed.in_force(world.allocated):
                raise ValueError("anything")

    with pytest.raises(ValueError):
        fail()
    assert world.counted() == NOTHING
