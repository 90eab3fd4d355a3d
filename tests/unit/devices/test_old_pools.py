"""Older generations of a pool that some nodes still see as complete, and views that are renewed.

A node sees its own slices and those for all nodes. When a newer generation is for other nodes
alone, the scheduler goes on with the older one (quirk Q12).
"""

import msgspec
import pytest

from app.domain.devices.inventory import Inventory
from app.domain.devices.nodes import Node, NodeSelectionError
from app.domain.devices.pools import Reading, old_pools
from tests.worlds.builders import DRIVER, counter_set, device, resource_slice

POOL = (DRIVER, "pool")
READING = Reading(partitionable=True)
ANYWHERE = Node(name="plain", labels={})
BROKEN = {
    "nodeSelectorTerms": [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a", "b"]}]}
    ]
}
"""A selector by the name of a node has one value."""


def seen(slices: list[dict], nodes: str, reading: Reading = READING) -> list[tuple]:
    """What of the pool is still usable: names of slices, of devices and of nodes, generations."""
    everywhere = Inventory.of_slices(slices).slices_of(POOL)
    answers = old_pools(everywhere, [Node(name=name, labels={}) for name in nodes], reading)
    return [
        (
            sorted(one.slices),
            [each.id[2] for each in one.devices()],
            list(one.nodes),
            (one.pool.generation, one.newest),
        )
        for one in answers
    ]


def piece(name: str, node: str, generation: int, count: int = 1) -> dict:
    return resource_slice(name, device(f"of-{name}"), node=node, generation=generation, count=count)


TWO_OLD = [piece("a", "a", 2), piece("b", "b", 1), piece("c", "c", 3)]


def test_each_older_generation_is_for_the_nodes_that_see_no_newer_one() -> None:
    assert seen(TWO_OLD, "abcd") == [
        (["a"], ["of-a"], ["a"], (2, 3)),
        (["b"], ["of-b"], ["b"], (1, 3)),
    ]
    assert seen(TWO_OLD, "cb") == [(["b"], ["of-b"], ["b"], (1, 3))]


def test_nodes_that_see_the_same_slices_share_an_older_pool() -> None:
    shared = resource_slice("old", device("x"), node=None, allNodes=True, generation=1)
    assert seen([shared, piece("new", "n", 2)], "amn") == [(["old"], ["x"], ["a", "m"], (1, 2))]


@pytest.mark.parametrize(
    ("slices", "reading"),
    [
        ([piece("a", "a", 3), piece("b", "b", 3)], READING),
        ([], READING),
        (TWO_OLD, msgspec.structs.replace(READING, newer_unnoticed=False)),
        ([piece("a", "a", 1, count=2), piece("c", "c", 2)], READING),
    ],
    ids=["one generation", "no slices", "newer ones are noticed", "the older is incomplete"],
)
def test_no_older_generation_is_usable(slices: list[dict], reading: Reading) -> None:
    assert seen(slices, "abc", reading) == []


def test_node_on_which_a_selector_cannot_be_read_hides_no_other_node() -> None:
    """Devices are looked at in their order, so that the node of the first one gets no error."""
    devices = [device("of-b", nodeName="b"), device("x", nodeSelector=BROKEN)]
    odd = resource_slice("odd", *devices, node=None, perDeviceNodeSelection=True)
    slices = [odd, piece("c", "c", 3)]
    with pytest.raises(NodeSelectionError):
        Inventory.of_slices(slices).node_view(Node(name="a", labels={}), READING)
    assert [nodes for _, _, nodes, _ in seen(slices, "ab")] == [["b"]]


def names(inventory: Inventory, node: Node) -> list[str]:
    return [each.id[2] for each in inventory.node_view(node, READING).devices]


@pytest.mark.parametrize("of_node", [True, False], ids=["of one node", "of all nodes"])
def test_view_of_a_node_is_renewed_with_each_change_of_its_slices(*, of_node: bool) -> None:
    where: dict = {"node": "plain"} if of_node else {"node": None, "allNodes": True}
    inventory = Inventory()
    for number in range(4):
        inventory.put_slice(resource_slice("s", device(f"d{number}"), **where))
        assert names(inventory, ANYWHERE) == [f"d{number}"]
    inventory.remove_slice("s")
    assert names(inventory, ANYWHERE) == []


def test_view_stays_while_slices_of_other_nodes_change() -> None:
    inventory = Inventory.of_slices([piece("here", "plain", 1)])
    view = inventory.node_view(ANYWHERE, READING)
    inventory.put_slice(resource_slice("there", device("x"), pool="other", node="other"))
    assert inventory.node_view(ANYWHERE, READING) is view


def test_slice_of_another_node_in_the_same_pool_renews_the_view() -> None:
    """The pool is complete for both nodes, or for none."""
    inventory = Inventory.of_slices([piece("here", "plain", 1, count=2)])
    assert names(inventory, ANYWHERE) == []
    inventory.put_slice(piece("there", "other", 1, count=2))
    assert names(inventory, ANYWHERE) == ["of-here"]
    inventory.remove_slice("there")
    assert names(inventory, ANYWHERE) == []


def test_counters_of_another_node_renew_the_view() -> None:
    user = device("d", consumesCounters=[{"counterSet": "s", "counters": {"x": {"value": "1"}}}])
    inventory = Inventory.of_slices([resource_slice("here", user, node="plain", count=2)])
    counters = resource_slice("sets", node="other", count=2, sharedCounters=[counter_set("s", x=1)])
    assert names(inventory, ANYWHERE) == []
    inventory.put_slice(counters)
    assert names(inventory, ANYWHERE) == ["d"]
    inventory.remove_slice("sets")
    assert names(inventory, ANYWHERE) == []


def test_pool_has_plain_counters_as_long_as_all_of_it_is_of_one_generation() -> None:
    inventory = Inventory.of_slices([piece("a", "a", 1)])
    assert inventory.has_plain_counters(POOL)
    inventory.put_slice(piece("b", "b", 2))
    assert not inventory.has_plain_counters(POOL)
    inventory.remove_slice("b")
    assert inventory.has_plain_counters(POOL)
