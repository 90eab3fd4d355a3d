"""The inventory: pools, views of nodes, rules and patches, kept up to date slice by slice."""

from random import Random

import pytest

from app.domain.devices import model, nodes
from app.domain.devices.inventory import Inventory, SliceChange
from app.domain.devices.nodes import Node, NodeSelectionError
from app.domain.devices.pools import PoolState, Reading
from app.domain.errors import InputError
from tests.counting import counted
from tests.worlds import merging
from tests.worlds.builders import (
    COMPILER,
    DRIVER,
    counter_set,
    device,
    device_class,
    resource_slice,
    uses,
)

READING = Reading(partitionable=True)
POOL = (DRIVER, "pool")


def here(name: str = "node", **labels: str) -> Node:
    return Node(name=name, labels=labels)


def inventory_of(*slices: dict) -> Inventory:
    return Inventory.of_slices(list(slices))


def names(found: Inventory, node: Node | None = None, reading: Reading = READING) -> list[str]:
    return [device.id[2] for device in found.node_view(node or here(), reading).devices]


def states(found: Inventory, node: Node | None = None) -> dict[str, str]:
    pools = found.node_view(node or here(), READING).pools
    return {pool.id[1]: f"{pool.state.value} {pool.problem}".strip() for pool in pools}


SETS = [counter_set("s", x=1)]
VALIDITY = [
    ([resource_slice("a", device("d"), device("d"))], "invalid duplicate device name d"),
    (
        [resource_slice("a", count=2, sharedCounters=SETS * 2), resource_slice("b", count=2)],
        "invalid duplicate counter set name s",
    ),
    (
        [resource_slice("a", device("d"), sharedCounters=SETS * 2)],
        "invalid duplicate counter set name s",
    ),
    (
        [resource_slice("a", device("d", consumesCounters=uses("s", x=1)))],
        "invalid counter set s not found",
    ),
    (
        [
            resource_slice("a", device("d", consumesCounters=uses("s", y=1)), count=2),
            resource_slice("b", count=2, sharedCounters=SETS),
        ],
        "invalid counter y not found in counter set s",
    ),
    ([resource_slice("a", device("d"), count=3)], "incomplete 1 of 3 slices are there"),
    (
        [resource_slice("a", device("d"), count=0)],
        "incomplete how many slices it has was not recorded",
    ),
    (
        [resource_slice("a", device("d")), resource_slice("b", device("e"))],
        "incomplete 2 of 1 slices are there",
    ),
    (
        [
            resource_slice("a", device("d"), count=2),
            resource_slice("b", device("e", consumesCounters=uses("s", x=1)), count=2, node="o"),
        ],
        "invalid counter set s not found",
    ),
]


@pytest.mark.parametrize(("slices", "state"), VALIDITY)
def test_pool_says_why_it_cannot_be_used(slices: list, state: str) -> None:
    assert states(inventory_of(*slices)) == {"pool": state}


def test_counters_of_a_slice_with_devices_are_those_of_its_pool() -> None:
    (pool,) = (
        inventory_of(resource_slice("a", device("d"), sharedCounters=SETS))
        .node_view(here(), READING)
        .pools
    )
    assert list(pool.counters) == ["s"]
    assert [found.id[2] for _, found in pool.devices()] == ["d"]


def test_view_of_one_slice_is_like_that_of_a_slice_among_others() -> None:
    one = resource_slice("a", device("d"), device("e"), pool="own")
    alone = inventory_of(one).node_view(here(), READING)
    among = inventory_of(one, resource_slice("b", device("f"), pool="two")).node_view(
        here(), READING
    )
    assert [found.id for found in alone.devices] == [found.id for found in among.devices[:2]]
    assert [each.name for each in alone.slices] == [each.name for each in among.slices[:2]]
    assert alone.pool_index == among.pool_index[:2]
    assert [pool.id for pool in alone.usable] == [pool.id for pool in among.usable[:1]]
    assert (alone.is_uniform, alone.traits) == (among.is_uniform, among.traits)


def test_highest_relevant_generation_counts() -> None:
    old = resource_slice("a", device("old"))
    new = resource_slice("b", device("new"), generation=2)
    assert names(inventory_of(old, new)) == ["new"]
    assert names(inventory_of(new, old)) == ["new"]


def test_pool_with_a_newer_generation_elsewhere_disappears() -> None:
    old = resource_slice("a", device("d"), count=2)
    assert states(inventory_of(old, resource_slice("b", node="other", generation=2))) == {}


def test_slices_for_other_nodes_complete_a_pool() -> None:
    mine = resource_slice("a", device("d"), count=2)
    theirs = resource_slice("b", device("e"), count=2, node="other")
    assert names(inventory_of(mine, theirs)) == ["d"]


def test_without_partitions_counter_slices_are_ignored_but_counted() -> None:
    slices = [
        resource_slice("a", device("d"), count=2),
        resource_slice("b", count=2, sharedCounters=SETS),
        resource_slice("c", device("e", allNodes=True), pool="p", node=None,
                       perDeviceNodeSelection=True),
    ]  # fmt: skip
    assert names(inventory_of(*slices)) == ["e", "d"] or names(inventory_of(*slices)) == ["d", "e"]
    assert names(inventory_of(*slices), reading=Reading(partitionable=False)) == ["d"]


def test_stable_variant_looks_at_counter_slices_of_other_nodes() -> None:
    counters = resource_slice("c", count=2, node="other", sharedCounters=SETS, pool="far")
    stable = Reading(partitionable=True, counter_slices_everywhere=True)
    assert inventory_of(counters).node_view(here(), READING).pools == ()
    assert [p.state for p in inventory_of(counters).node_view(here(), stable).pools] == [
        PoolState.INCOMPLETE
    ]


def test_node_selectors_decide_which_nodes_see_a_slice() -> None:
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]
    shared = resource_slice("s", device("d"), node=None, nodeSelector={"nodeSelectorTerms": terms})
    assert names(inventory_of(shared), here(zone="a")) == ["d"]
    assert names(inventory_of(shared), here(zone="b")) == []


def test_unreadable_selector_is_an_error_when_it_is_asked() -> None:
    bad = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In",
                                                   "values": ["a", "b"]}]}]}  # fmt: skip
    found = inventory_of(resource_slice("s", device("d"), node=None, nodeSelector=bad))
    with pytest.raises(NodeSelectionError) as caught:
        found.node_view(here(), READING)
    text = str(caught.value)
    assert text.startswith(
        "gather pool information: failed to perform node selection for slice s: "
        "failed to parse node selector &NodeSelector{"
    )
    assert text.endswith("must have one element")
    per_device = resource_slice("s", device("d", nodeSelector=bad), node=None,
                                perDeviceNodeSelection=True)  # fmt: skip
    with pytest.raises(NodeSelectionError, match="node selection for device d in slice s"):
        inventory_of(per_device).node_view(here(), READING)


def test_name_is_looked_at_before_the_selector() -> None:
    choice = nodes.choice_of({"nodeName": "other", "allNodes": True})
    assert not choice.matches(here())


def local(name: str, *devices: dict, **how: object) -> dict:
    return resource_slice(name, *devices, pool=name, node=name, **how)


def test_change_of_one_pool_leaves_the_views_of_other_nodes_alone() -> None:
    found = Inventory()
    for name in ("a", "b"):
        found.put_slice(local(name, device("d")))
    before = {name: found.node_view(here(name), READING) for name in ("a", "b")}
    found.put_slice(local("a", device("e"), generation=2))
    assert found.node_view(here("b"), READING) is before["b"]
    assert names(found, here("a")) == ["e"]
    found.remove_slice("a")
    assert names(found, here("a")) == []
    assert found.node_view(here("b"), READING) is before["b"]


def test_shared_slice_reaches_every_node_and_copies_are_independent() -> None:
    found = Inventory()
    found.put_slice(local("a", device("d")))
    assert names(found, here("a")) == ["d"]
    copied = found.copy()
    copied.put_slice(resource_slice("net", device("n"), pool="net", node=None, allNodes=True))
    assert names(copied, here("a")) == ["d", "n"]
    assert names(found, here("a")) == ["d"]


def test_pool_of_the_whole_cluster_names_generation_and_problem() -> None:
    found = inventory_of(resource_slice("a", device("d"), generation=3, count=2))
    pool = found.pool(POOL)
    assert pool is not None
    assert (pool.generation, pool.state) == (3, PoolState.INCOMPLETE)
    assert found.pool(("x", "y")) is None


def rule(name: str = "rule", **spec: object) -> dict:
    return {
        "metadata": {"name": name},
        "spec": {"taint": {"key": "k", "value": name, "effect": "NoSchedule"}, **spec},
    }


def tainted(found: Inventory, node: str) -> list[str]:
    view = found.node_view(here(node), READING)
    return [f"{d.id[2]}:{t.value}" for d in view.devices for t in d.taints]


def test_rules_taint_matching_devices_and_only_touched_views_change() -> None:
    found = Inventory()
    for name in ("a", "b"):
        found.put_slice(local(name, device("d"), device("e")))
    before = found.node_view(here("b"), READING)
    changes = found.put_rule(rule("r2", deviceSelector={"pool": "a", "device": "e"}))
    ((old, new),) = [(change.old, change.new) for change in changes]
    assert ([len(each.taints) for each in old.devices], len(new.devices[1].taints)) == ([0, 0], 1)
    found.put_rule(rule("r1", deviceSelector={"pool": "a"}))
    assert tainted(found, "a") == ["d:r1", "e:r1", "e:r2"]
    assert found.node_view(here("b"), READING) is before
    assert found.put_rule(rule("r1", deviceSelector={"pool": "a"})) == ()
    found.remove_rule("r1")
    assert tainted(found, "a") == ["e:r2"]


def test_rule_that_selects_other_devices_now_taints_the_former_ones_no_longer() -> None:
    inventory_ = Inventory()
    for name in ("a", "b"):
        inventory_.put_slice(local(name, device("d")))
    inventory_.put_rule(rule(deviceSelector={"pool": "a"}))
    changes = inventory_.put_rule(rule(deviceSelector={"pool": "b"}))
    assert len(changes) == 2
    assert tainted(inventory_, "a") == []
    assert tainted(inventory_, "b") == ["d:rule"]


def test_q14_rule_without_selector_taints_everything_unless_repaired() -> None:
    for repaired in (False, True):
        found = Inventory(rules_without_selector_match=not repaired)
        found.put_slice(local("a", device("d")))
        found.put_rule(rule())
        assert tainted(found, "a") == ([] if repaired else ["d:rule"])


def test_rules_in_any_order_taint_what_each_says_that_it_matches() -> None:
    """Hundreds of puts and removals, with two names for each part of a device's id."""
    draw = Random(7)
    for repaired in (False, True):
        found = Inventory(rules_without_selector_match=not repaired)
        for pool in ("a", "b"):
            own = [{"key": "own", "effect": "NoExecute"}] if pool == "b" else []
            found.put_slice(local(pool, device("d"), device("e", taints=own)))
        for _ in range(150):
            name = f"r{draw.randrange(12):02}"
            if draw.random() < 0.3:
                found.remove_rule(name)
            else:
                parts = {"driver": [DRIVER, "other"], "pool": ["a", "b"], "device": ["d", "e"]}
                selector = {
                    part: draw.choice(of) for part, of in parts.items() if draw.random() < 0.5
                }
                spec = {} if draw.random() < 0.2 else {"deviceSelector": selector}
                found.put_rule(rule(name, **spec))
            found = found.copy() if draw.random() < 0.1 else found
            for resource_slice_ in found.slices():
                for each in resource_slice_.devices:
                    matching = [
                        known
                        for known, compiled in sorted(found.rules().items())
                        if compiled.matches(each.id, without_selector=not repaired)
                    ]
                    own = ["own"] if each.id[1:] == ("b", "e") else []
                    rules_of = [taint.rule or taint.key for taint in each.taints]
                    assert rules_of == own + matching


@pytest.mark.parametrize("selector", [None, {"driver": DRIVER}, {"driver": DRIVER, "pool": "a"}])
def test_rule_costs_no_more_where_many_rules_taint_the_same_devices(selector: dict | None) -> None:
    def calls(count: int) -> int:
        found = Inventory()
        found.put_slice(local("a", *(device(f"d{number}") for number in range(20))))
        spec = {} if selector is None else {"deviceSelector": selector}
        made = [rule(f"r{number:03}", **spec) for number in range(count)]
        return counted(lambda: [found.put_rule(each) for each in made])[1]

    assert calls(80) < 2.2 * calls(40)


def patch(name: str = "patch", **devices: object) -> dict:
    return {"metadata": {"name": name, **devices.pop("metadata", {})}, "spec": {"devices": devices}}


def patched(*patches: dict, classes: tuple = (), **fields: object) -> model.Device:
    found = Inventory(compiler=COMPILER)
    for one in classes:
        found.put_class(one)
    for one in patches:
        found.put_patch(one)
    found.put_slice(local("a", device("d", **fields)))
    return found.node_view(here("a"), READING).devices[0]


def test_patch_that_is_removed_changes_devices_no_longer() -> None:
    inventory_ = Inventory(compiler=COMPILER)
    inventory_.put_slice(local("a", device("d", x=1)))
    before = names_and_attributes(inventory_)
    assert inventory_.put_patch(patch(attributes={f"{DRIVER}/x": {"int": 2}}))
    assert names_and_attributes(inventory_) != before
    assert inventory_.remove_patch("patch")
    assert names_and_attributes(inventory_) == before
    assert inventory_.remove_patch("patch") == ()


def names_and_attributes(inventory_: Inventory) -> list[tuple[str, dict]]:
    devices = inventory_.node_view(here("a"), READING).devices
    return [(each.id[2], dict(each.attributes)) for each in devices]


def test_patch_overrides_adds_and_removes_attributes() -> None:
    found = patched(
        patch(
            attributes={
                f"{DRIVER}/model": {"string": "new"},
                "x.example.com/added": {"int": 1},
                f"{DRIVER}/gone": {"null": {}},
            }
        ),
        model="old",
        gone=True,
    )
    assert dict(found.attributes) == {
        "model": {"string": "new"},
        "x.example.com/added": {"int": 1},
    }
    assert sorted((one.name, one.removed) for one in found.patches) == [
        (f"{DRIVER}/gone", True),
        (f"{DRIVER}/model", False),
        ("x.example.com/added", False),
    ]


def test_precedence_is_priority_then_age_per_attribute_and_name_where_revisions_are_unknown() -> (
    None
):
    def one(name: str, value: int, created: str, **more: object) -> dict:
        attributes = {"x.example.com/a": {"int": value}, f"x.example.com/{name}": {"int": value}}
        return patch(name, metadata={"creationTimestamp": created}, attributes=attributes, **more)

    found = patched(
        one("old", 1, "2020-01-01T00:00:00Z"),
        one("new", 2, "2021-01-01T00:00:00Z"),
        one("top", 3, "2022-01-01T00:00:00Z", priority=1),
    )
    assert found.attributes["x.example.com/a"] == {"int": 3}
    assert found.attributes["x.example.com/new"] == {"int": 2}
    found = patched(
        one("old", 1, "2020-01-01T00:00:00Z"),
        one("b", 4, "2020-01-01T00:00:00Z"),
    )
    assert found.attributes["x.example.com/a"] == {"int": 4}


def of_one_second(*revisions: tuple[str, int, str]) -> dict:
    """The attribute that patches of one second and priority give, put at these revisions."""
    found = Inventory(compiler=COMPILER)
    found.put_slice(local("a", device("d")))
    for name, revision, uid in revisions:
        metadata = {"creationTimestamp": "2020-01-01T00:00:00Z", "uid": uid}
        attributes = {"x.example.com/a": {"string": name}}
        found.put_patch(patch(name, metadata=metadata, attributes=attributes), revision=revision)
    return found.node_view(here("a"), READING).devices[0].attributes["x.example.com/a"]


@pytest.mark.parametrize(
    ("puts", "winner"),
    [
        ([("z", 3, "1"), ("a", 4, "2")], "z"),
        ([("a", 4, "2"), ("z", 3, "1")], "z"),
        # A change makes no patch younger; one of the same name that is made anew is.
        ([("z", 3, "1"), ("a", 4, "2"), ("z", 9, "1")], "z"),
        ([("z", 3, "1"), ("a", 4, "2"), ("z", 9, "3")], "a"),
    ],
)
def test_of_patches_of_one_second_the_one_created_first_wins(puts: list, winner: str) -> None:
    assert of_one_second(*puts) == {"string": winner}


def test_removal_of_higher_priority_is_not_undone() -> None:
    found = patched(
        patch("top", priority=1, attributes={f"{DRIVER}/model": {"null": {}}}),
        patch("low", attributes={f"{DRIVER}/model": {"string": "x"}}),
        model="old",
    )
    assert "model" not in found.attributes
    assert f"{DRIVER}/model" not in found.attributes


def test_attribute_and_capacity_of_one_name_are_decided_apart() -> None:
    name = f"{DRIVER}/memory"
    found = patched(
        patch("top", priority=1, attributes={name: {"string": "hbm"}}),
        patch("low", attributes={name: {"string": "ddr"}}, capacity={name: {"value": "2Gi"}}),
        capacity={"memory": {"value": "1Gi"}},
        memory="unknown",
    )
    assert dict(found.attributes) == {"memory": {"string": "hbm"}}
    assert dict(found.capacity_tree) == {"memory": {"value": "2Gi"}}


def test_name_in_another_domain_leaves_the_drivers_own_alone() -> None:
    name = "x.example.com/model"
    found = patched(patch(attributes={name: {"string": "new"}}), model="old")
    assert dict(found.attributes) == {"model": {"string": "old"}, name: {"string": "new"}}
    found = patched(patch(attributes={name: {"null": {}}}), model="old")
    assert dict(found.attributes) == {"model": {"string": "old"}}


def test_patched_capacity_keeps_its_request_policy() -> None:
    policy = {"default": "1"}
    found = patched(
        patch(capacity={f"{DRIVER}/memory": {"value": "2Gi"}}),
        capacity={"memory": {"value": "1Gi", "requestPolicy": policy}},
    )
    assert dict(found.capacity_tree) == {"memory": {"value": "2Gi", "requestPolicy": policy}}
    assert str(found.capacity["memory"].value) == "2Gi"


FILTERS = [
    ({}, True),
    ({"driver": DRIVER, "pool": "a", "device": "d"}, True),
    ({"driver": DRIVER}, True),
    ({"driver": "other.example.com"}, False),
    ({"pool": "a"}, True),
    ({"pool": "d"}, False),
    ({"device": "d"}, True),
    ({"device": "other"}, False),
    ({"driver": DRIVER, "pool": "a", "device": "other"}, False),
    ({"driver": DRIVER, "pool": "b", "device": "d"}, False),
    ({"deviceClassName": "yes"}, True),
    ({"deviceClassName": "yes", "pool": "b"}, False),
    ({"deviceClassName": "yes", "selectors": [{"cel": {"expression": "false"}}]}, False),
    ({"deviceClassName": "no", "selectors": [{"cel": {"expression": "true"}}]}, False),
    ({"deviceClassName": "no"}, False),
    ({"deviceClassName": "absent"}, False),
    ({"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]}, True),
    ({"selectors": [{"cel": {"expression": "false"}}]}, False),
    ({"selectors": [{"cel": {"expression": each}} for each in ("true", "false")]}, False),
]


@pytest.mark.parametrize(("chosen", "applies"), FILTERS)
def test_filter_of_a_patch_chooses_devices(chosen: dict, applies: bool) -> None:
    found = patched(
        patch(filter=chosen, attributes={"x.example.com/a": {"int": 1}}),
        classes=(device_class("yes", "true"), device_class("no", "false")),
    )
    assert ("x.example.com/a" in found.attributes) is applies


def test_patch_whose_selector_fails_leaves_the_device_alone_and_is_reported() -> None:
    found = Inventory(compiler=COMPILER)
    found.put_slice(local("a", device("d"), device("e", x=1)))
    failing = [{"cel": {"expression": f'device.attributes["{DRIVER}"].x == 1'}}]
    found.put_patch(patch(filter={"selectors": failing}, attributes={"y.io/z": {"int": 1}}))
    view = found.node_view(here("a"), READING)
    assert ["y.io/z" in device.attributes for device in view.devices] == [False, True]
    problems = list(found.patch_problems())
    assert [(one.patch, one.device[2]) for one in problems] == [("patch", "d")]
    assert "no such key: x" in problems[0].problem


def test_selectors_see_the_published_device() -> None:
    chosen = [{"cel": {"expression": f'"model" in device.attributes["{DRIVER}"]'}}]
    found = patched(
        patch("a", attributes={f"{DRIVER}/model": {"string": "x"}}),
        patch("b", filter={"selectors": chosen}, attributes={"y.io/z": {"int": 1}}),
    )
    assert "y.io/z" not in found.attributes
    assert "x" in str(found.attributes)


def test_class_that_changes_is_noticed_by_patches() -> None:
    found = Inventory(compiler=COMPILER)
    found.put_slice(local("a", device("d")))
    found.put_patch(patch(filter={"deviceClassName": "c"}, attributes={"y.io/z": {"int": 1}}))
    assert found.put_class(device_class("c", "true"))
    assert "y.io/z" in found.node_view(here("a"), READING).devices[0].attributes
    assert found.remove_class("c")
    assert "y.io/z" not in found.node_view(here("a"), READING).devices[0].attributes


def test_merged_object_shows_what_rules_and_patches_changed() -> None:
    found = Inventory(compiler=COMPILER)
    found.put_slice(local("a", device("d", model="m"), device("e")))
    found.put_rule(rule(deviceSelector={"device": "d"}))
    tree = merging.merged_tree(found.slice("a"))
    assert tree["spec"]["devices"][0]["taints"] == [
        {"key": "k", "value": "rule", "effect": "NoSchedule"}
    ]
    assert tree["spec"]["devices"][1] == device("e")


def test_gates_switch_the_merges_off() -> None:
    found = Inventory(compiler=COMPILER, with_rules=False, with_patches=False)
    found.put_slice(local("a", device("d")))
    assert found.put_rule(rule()) == ()
    assert found.put_patch(patch(attributes={"y.io/z": {"int": 1}})) == ()
    only = found.node_view(here("a"), READING).devices[0]
    assert (only.taints, dict(only.attributes)) == ((), {})


def test_unreadable_quantity_names_its_place() -> None:
    with pytest.raises(InputError) as caught:
        inventory_of(resource_slice("s", device("d", capacity={"m": {"value": "x"}})))
    assert caught.value.place == "ResourceSlice s: spec.devices[0].capacity[m].value"


def test_value_of_a_patch_that_is_no_object_names_its_place() -> None:
    for field in ("attributes", "capacity"):
        with pytest.raises(InputError) as caught:
            patched(patch("p", **{field: {"m": 5}}))
        assert caught.value.place == f"ResourceSlicePatch p: spec.devices.{field}[m]"


def test_change_of_a_slice_shows_it_before_and_after() -> None:
    found = inventory_of()

    def steps(changes: tuple[SliceChange, ...]) -> list[tuple[list[str] | None, ...]]:
        return [
            tuple(each and [one.id[2] for one in each.devices] for each in (change.old, change.new))
            for change in changes
        ]

    assert steps(found.put_slice(local("a", device("d")))) == [(None, ["d"])]
    assert steps(found.put_slice(local("a", device("d"), device("e")))) == [(["d"], ["d", "e"])]
    assert steps(found.remove_slice("a")) == [(["d", "e"], None)]
    assert steps(found.remove_slice("a")) == []


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("é", "é"),
        ("", '""'),
        (True, "true"),
        (None, "null"),
        (3, "3"),
        ({"ü": ["ñ"]}, '{"ü": ["ñ"]}'),
    ],
)
def test_value_of_a_field_is_shown_as_json_and_a_text_without_its_quotes(value, text) -> None:
    assert model.value_text(value) == text


def test_node_that_is_gone_is_forgotten():
    found = inventory_of(resource_slice("a", device("d")))
    kept = found.node_view(here("other"), READING)
    gone = found.node_view(here(), READING)
    found.forget_node("node")
    assert found.node_view(here(), READING) is not gone
    assert names(found) == ["d"]
    assert found.node_view(here("other"), READING) is kept


def test_forgotten_node_sees_what_was_written_meanwhile():
    found = inventory_of()
    found.put_slice(resource_slice("a", device("d")))
    assert names(found) == ["d"]
    found.forget_node("node")
    found.put_slice(resource_slice("a", device("e")))
    assert names(found) == ["e"]
