"""Twins of defects in pools, counters, nodes, classes and requests: the nearest change without one.

As in `twins`: each keeps the rule that its counterpart in `planting` breaks.
"""

from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject
from tests.unit.analysis.lint import clean
from tests.unit.analysis.lint.planting import Garden, NothingToPlant
from tests.unit.analysis.lint.twins import KEY, TWINS, like, new_object

__all__ = ["TWINS"]


def _selects(garden: Garden, expression: str) -> None:
    """One request has this selector besides those of its class."""
    _, _, exact = garden.request()
    exact["selectors"] = [{"cel": {"expression": expression}}]


def _digits(garden: Garden, loops: int, times: int) -> None:
    """A selector that tries `loops` nested loops over ten letters, so many times."""
    text = "true"
    for number in range(loops):
        text = f"['a','b','c','d','e','f','g','h','i','j'].all(x{number}, {text})"
    _selects(garden, " && ".join([text] * times))


def _whole_pool(garden: Garden) -> JsonObject:
    """A slice with devices that is the only one of its pool, and names its node."""
    slices = [
        tree
        for tree in garden.of("ResourceSlice", having="devices")
        if "nodeName" in tree["spec"] and tree["spec"]["pool"]["resourceSliceCount"] == 1
    ]
    if not slices:
        raise NothingToPlant
    return garden.rng.choice(slices)


def _board(
    garden: Garden,
    sets: list[JsonObject],
    devices: list[JsonObject],
    note: str = "partitions-overlap",
) -> None:
    """A pool of its own: a slice of counter sets and one of devices, for all nodes.

    Of each set that is as it should be there is a note, which says whether its devices exclude
    one another.
    """
    garden.implied += [
        (note, "ResourceSlice/b-sets", f"spec.sharedCounters[{number}]")
        for number in range(len(sets))
    ]
    pool = {"name": "boards", "generation": 1, "resourceSliceCount": 2}
    spec = {"driver": "board.example.com", "pool": pool, "allNodes": True}
    garden.trees += [
        new_object("ResourceSlice", "b-sets", {**spec, "sharedCounters": sets}),
        new_object("ResourceSlice", "b-parts", {**spec, "devices": devices}),
    ]


def _part(name: str, counters: str, **amounts: str) -> JsonObject:
    drawn = {counter: {"value": amount} for counter, amount in amounts.items()}
    return {"name": name, "consumesCounters": [{"counterSet": counters, "counters": drawn}]}


def _set(name: str, **amounts: str) -> JsonObject:
    held = {counter: {"value": amount} for counter, amount in amounts.items()}
    return {"name": name, "counters": held}


@like("object-invalid")
def name_of_a_resource_with_a_domain(garden: Garden) -> None:
    garden.one("DeviceClass")["spec"]["extendedResourceName"] = "example.com/with-a-domain"


@like("field-unknown")
def attribute_that_is_called_basic(garden: Garden) -> None:
    _, _, device = garden.device()
    device.setdefault("attributes", {})["basic"] = {"bool": True}


@like("selector-invalid")
def expression_about_the_driver(garden: Garden) -> None:
    _selects(garden, "device.driver != 'a'")


@like("selector-too-costly")
def expression_with_two_nested_loops(garden: Garden) -> None:
    _digits(garden, 2, 3)


@like("selector-costly")
def expression_with_a_tenth_of_the_cost(garden: Garden) -> None:
    _digits(garden, 3, 4)


@like("object-duplicate")
def object_of_another_kind_with_that_name(garden: Garden) -> None:
    name = garden.one("DeviceClass")["metadata"]["name"]
    garden.trees.append(clean.claim(name, clean.exactly(name)))


@like("pool-overfull")
def further_pool_of_that_driver(garden: Garden) -> None:
    driver = garden.one("ResourceSlice")["spec"]["driver"]
    pool = {"name": "further", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": driver, "pool": pool, "allNodes": True, "devices": []}
    garden.trees.append(new_object("ResourceSlice", "further", spec))


@like("pool-counts-differ")
def numbers_that_grow_with_the_generation(garden: Garden) -> None:
    members = garden.pool(slices=2)
    pool = {**members[0]["spec"]["pool"], "resourceSliceCount": len(members) + 1}
    pool["generation"] += 1
    empty = json_tree.copy(members[0])
    empty["metadata"]["name"] = "last"
    for part in ("devices", "sharedCounters", "perDeviceNodeSelection"):
        empty["spec"].pop(part, None)
    empty["spec"]["devices"] = []
    for tree in (*members, empty):
        tree["spec"]["pool"] = pool
    garden.trees.append(empty)


@like("counter-set-duplicate")
def set_of_that_name_in_another_pool(garden: Garden) -> None:
    tree = garden.one("ResourceSlice", having="sharedCounters")
    name = tree["spec"]["sharedCounters"][0]["name"]
    parts = [_part(f"part-{number}", name, slots="2") for number in range(2)]
    whole = _part("whole", name, slots="4")
    _board(garden, [_set(name, slots="4")], [*parts, whole])


@like("pool-node-mix")
def pools_of_one_driver_for_a_node_and_for_all(garden: Garden) -> None:
    driver = _whole_pool(garden)["spec"]["driver"]
    pool = {"name": "fabric", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": driver, "pool": pool, "allNodes": True, "devices": []}
    garden.trees.append(new_object("ResourceSlice", "fabric", spec))


@like("counter-set-missing")
def two_sets_of_which_a_device_draws_on_both(garden: Garden) -> None:
    both = _part("whole", "left", slots="2")
    both["consumesCounters"] += _part("", "right", slots="2")["consumesCounters"]
    parts = [
        _part(f"{side}-{number}", side, slots="1") for side in ("left", "right") for number in "01"
    ]
    _board(garden, [_set("left", slots="2"), _set("right", slots="2")], [both, *parts])


@like("counter-missing")
def device_that_draws_on_some_of_the_counters(garden: Garden) -> None:
    parts = [_part(f"part-{number}", "board", slots="1") for number in range(2)]
    whole = _part("whole", "board", slots="2", memory="1Gi")
    _board(garden, [_set("board", slots="2", memory="1Gi")], [*parts, whole])


@like("counter-set-unused")
def set_that_one_device_draws_on(garden: Garden) -> None:
    parts = [_part(f"part-{number}", "board", slots="1") for number in range(3)]
    others = [_part(f"other-{number}", "idle", memory="1Gi") for number in range(2)]
    _board(garden, [_set("board", slots="2"), _set("idle", memory="1Gi")], [*parts, *others])


@like("counter-unused")
def counter_that_only_the_whole_draws_on(garden: Garden) -> None:
    parts = [_part(f"part-{number}", "board", slots="1") for number in range(2)]
    whole = _part("whole", "board", slots="2", mirror="1")
    _board(garden, [_set("board", slots="2", mirror="1")], [*parts, whole])


@like("device-never-fits")
def device_that_draws_all_there_is(garden: Garden) -> None:
    parts = [_part(f"part-{number}", "board", slots="1") for number in range(2)]
    _board(garden, [_set("board", slots="2")], [*parts, _part("whole", "board", slots="2")])


@like("counters-never-bind")
def set_that_lacks_one_for_all(garden: Garden) -> None:
    parts = [_part(f"part-{number}", "board", slots="1") for number in range(4)]
    _board(garden, [_set("board", slots="3")], parts)


@like("partitions-overlap")
def two_devices_for_which_there_is_just_enough(garden: Garden) -> None:
    parts = [_part(f"part-{number}", "board", slots="1") for number in range(2)]
    _board(garden, [_set("board", slots="2")], parts, "counters-never-bind")


@like("attribute-shadowed")
def attribute_of_that_name_in_another_domain(garden: Garden) -> None:
    _, _, device = garden.device(having="attributes")
    name = garden.rng.choice(sorted(device["attributes"])).rpartition("/")[2]
    device["attributes"][f"other.example.com/{name}"] = {"bool": True}


@like("shared-device-without-capacity")
def shared_device_with_a_capacity(garden: Garden) -> None:
    pool = {"name": "shared", "generation": 1, "resourceSliceCount": 1}
    device = {
        "name": "card",
        "allowMultipleAllocations": True,
        "capacity": {"memory": {"value": "8Gi"}},
    }
    spec = {"driver": "board.example.com", "pool": pool, "allNodes": True, "devices": [device]}
    garden.trees.append(new_object("ResourceSlice", "shared", spec))


@like("node-missing")
def node_that_is_there_and_not_ready(garden: Garden) -> None:
    node = garden.one("Node")
    node.setdefault("status", {})["conditions"] = [{"type": "Ready", "status": "False"}]


@like("node-selector-matches-nothing")
def selector_of_the_name_of_the_node(garden: Garden) -> None:
    spec = _whole_pool(garden)["spec"]
    field = {"key": "metadata.name", "operator": "In", "values": [spec.pop("nodeName")]}
    spec["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [field]}]}


@like("device-nodes-alike")
def each_device_on_a_node_or_on_all(garden: Garden) -> None:
    spec = _whole_pool(garden)["spec"]
    if len(spec["devices"]) < 2 or len(spec["devices"]) > 64:
        raise NothingToPlant
    name = spec.pop("nodeName")
    spec["perDeviceNodeSelection"] = True
    first, *others = spec["devices"]
    first["allNodes"] = True
    for device in others:
        device["nodeName"] = name


@like("selector-fails")
def attribute_that_is_asked_for_first(garden: Garden) -> None:
    _selects(garden, "!('x' in device.attributes['no.example.com']) || device.driver == 'no'")


@like("class-matches-nothing")
def class_of_one_device(garden: Garden) -> None:
    tree, _, device = garden.device()
    device.setdefault("attributes", {})["chosen"] = {"bool": True}
    expression = f"device.attributes['{tree['spec']['driver']}'].?chosen.orValue(false)"
    spec = {"selectors": [{"cel": {"expression": expression}}]}
    garden.trees.append(new_object("DeviceClass", "chosen", spec))


@like("selector-matches-nothing")
def request_for_the_driver_of_its_class(garden: Garden) -> None:
    _, _, exact = garden.request()
    driver = garden.driver_of_class(exact["deviceClassName"])
    exact["selectors"] = [
        {"cel": {"expression": "true"}},
        {"cel": {"expression": f"device.driver == '{driver}'"}},
    ]


@like("alternative-never-taken")
def alternative_of_more_devices_first(garden: Garden) -> None:
    name = garden.one("DeviceClass")["metadata"]["name"]
    if len(garden.devices_of_class(name)) < 2:
        raise NothingToPlant
    plain = {"deviceClassName": name, "allocationMode": "ExactCount", "count": 1}
    chosen = [{"name": "wanted", **plain}, {"name": "possible", **plain, "count": 2}]
    request = {"name": "first", "firstAvailable": chosen}
    garden.trees.append(clean.claim("choosing", request))


@like("config-for-no-driver")
def configuration_for_the_driver_of_the_class(garden: Garden) -> None:
    tree = garden.one("DeviceClass")
    driver = garden.driver_of_class(tree["metadata"]["name"])
    config = {"opaque": {"driver": driver, "parameters": {"sharing": "none"}}}
    tree["spec"]["config"] = [*tree["spec"].get("config", ()), config]


@like("class-missing")
def class_that_is_read_after_its_claim(garden: Garden) -> None:
    tree = json_tree.copy(garden.one("DeviceClass"))
    tree["metadata"]["name"] = "z-last"
    garden.trees.insert(0, clean.claim("first-read", clean.exactly("z-last")))
    garden.trees.append(tree)


@like("claim-asks-for-too-many")
def claim_for_as_many_as_a_claim_may_have(garden: Garden) -> None:
    devices = [{"name": f"port-{number}"} for number in range(32)]
    pool = {"name": "ports", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "port.example.com", "pool": pool, "allNodes": True, "devices": devices}
    garden.trees.append(new_object("ResourceSlice", "ports", spec))
    selector = {"cel": {"expression": "device.driver == 'port.example.com'"}}
    garden.trees.append(new_object("DeviceClass", "port", {"selectors": [selector]}))
    request = clean.exactly("port")
    request["exactly"]["count"] = 32
    garden.trees.append(clean.claim("all-ports", request))


@like("request-exceeds-devices")
def request_for_all_there_are(garden: Garden) -> None:
    claim_for_as_many_as_a_claim_may_have(garden)
    for device in garden.trees[-3]["spec"]["devices"][20:]:
        garden.trees[-3]["spec"]["devices"].remove(device)
    garden.trees[-1]["spec"]["devices"]["requests"][0]["exactly"]["count"] = 20


@like("capacity-never-enough")
def request_for_the_whole_capacity(garden: Garden) -> None:
    claim_for_as_many_as_a_claim_may_have(garden)
    garden.trees[-3]["spec"]["devices"][-1]["capacity"] = {"lanes": {"value": "4"}}
    exact = garden.trees[-1]["spec"]["devices"]["requests"][0]["exactly"]
    exact.update(count=1, capacity={"requests": {"lanes": "4"}})


@like("constraint-never-holds")
def constraint_that_two_devices_keep(garden: Garden) -> None:
    claim_for_as_many_as_a_claim_may_have(garden)
    for number, device in enumerate(garden.trees[-3]["spec"]["devices"]):
        device["attributes"] = {"rack": {"int": number // 2}}
    devices = garden.trees[-1]["spec"]["devices"]
    devices["requests"][0]["exactly"]["count"] = 2
    devices["constraints"] = [{"matchAttribute": "port.example.com/rack"}]


@like("taint-untolerated")
def taint_that_one_claim_tolerates(garden: Garden) -> None:
    claim_for_as_many_as_a_claim_may_have(garden)
    garden.trees[-3]["spec"]["devices"][0]["taints"] = [{"key": KEY, "effect": "NoSchedule"}]
    exact = garden.trees[-1]["spec"]["devices"]["requests"][0]["exactly"]
    exact["tolerations"] = [{"key": KEY, "operator": "Exists", "effect": "NoSchedule"}]


@like("rule-without-selector")
def rule_of_the_effect_none(garden: Garden) -> None:
    driver = garden.one("ResourceSlice")["spec"]["driver"]
    spec = {"taint": {"key": KEY, "effect": "None"}, "deviceSelector": {"driver": driver}}
    garden.trees.append(new_object("DeviceTaintRule", "told", spec))


@like("count-near-limit")
def claim_with_fewer_requests_than_nine_tenths(garden: Garden) -> None:
    claim_for_as_many_as_a_claim_may_have(garden)
    requests = [clean.exactly("port", f"r{number}") for number in range(28)]
    garden.trees[-1]["spec"]["devices"]["requests"] = requests


@like("refused-by-older-release")
def device_with_four_taints(garden: Garden) -> None:
    tree, _, device = garden.device()
    if len(tree["spec"]["devices"]) > 50:
        raise NothingToPlant
    device["taints"] = [{"key": f"example.com/t{number}", "effect": "None"} for number in range(4)]


@like("claim-never-fits")
def distinct_and_equal_attributes(garden: Garden) -> None:
    claim_for_as_many_as_a_claim_may_have(garden)
    for number, device in enumerate(garden.trees[-3]["spec"]["devices"]):
        device["attributes"] = {"rack": {"int": number // 2}, "port": {"int": number % 2}}
    devices = garden.trees[-1]["spec"]["devices"]
    devices["requests"] = [clean.exactly("port", "one"), clean.exactly("port", "other")]
    devices["constraints"] = [
        {"matchAttribute": "port.example.com/rack"},
        {"distinctAttribute": "port.example.com/port"},
    ]
