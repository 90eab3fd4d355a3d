"""A machine that plants one defect in clean objects and knows the place where it stands.

It shares no code with the rules: it changes the objects as they are written, as an author would
by mistake. A planter that finds nothing to change in these objects raises `NothingToPlant`.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject
from tests.unit.analysis.lint import clean


class NothingToPlant(Exception):
    """These objects have no place for the defect."""


@dataclass(kw_only=True)
class Garden:
    """The objects and the chance by which places are drawn."""

    rng: random.Random
    trees: list[JsonObject]
    planted: list[tuple[str, str]] = field(default_factory=list)
    implied: list[tuple[str, str, str]] = field(default_factory=list)

    def of(self, kind: str, *, having: str = "") -> list[JsonObject]:
        """The objects of a kind whose spec has a part that is not empty."""
        trees = [tree for tree in self.trees if tree["kind"] == kind]
        return [tree for tree in trees if not having or tree["spec"].get(having)]

    def one(self, kind: str, *, having: str = "") -> JsonObject:
        """One of them by chance."""
        trees = self.of(kind, having=having)
        if not trees:
            raise NothingToPlant
        return self.rng.choice(trees)

    def pool(self, *, slices: int) -> list[JsonObject]:
        """The slices of a pool that has at least so many."""
        pools: dict[str, list[JsonObject]] = {}
        for tree in self.of("ResourceSlice"):
            pools.setdefault(f"{tree['spec']['driver']} {tree['spec']['pool']['name']}", []).append(
                tree
            )
        large = [members for members in pools.values() if len(members) >= slices]
        if not large:
            raise NothingToPlant
        return self.rng.choice(large)

    def device(self, *, having: str = "") -> tuple[JsonObject, int, JsonObject]:
        """A device by chance: its slice, its number, itself."""
        places = [
            (tree, index, device)
            for tree in self.of("ResourceSlice", having="devices")
            for index, device in enumerate(tree["spec"]["devices"])
            if not having or device.get(having)
        ]
        if not places:
            raise NothingToPlant
        return self.rng.choice(places)

    def claim(self) -> tuple[JsonObject, str, JsonObject]:
        """A claim or template by chance, the path of its devices, and these."""
        tree = self.rng.choice([*self.of("ResourceClaim"), *self.of("ResourceClaimTemplate")])
        if tree["kind"] == "ResourceClaim":
            return tree, "spec.devices", tree["spec"]["devices"]
        return tree, "spec.spec.devices", tree["spec"]["spec"]["devices"]

    def request(self) -> tuple[JsonObject, str, JsonObject]:
        """A request by chance: its claim, its path, its exact part."""
        tree, path, devices = self.claim()
        index = self.rng.randrange(len(devices["requests"]))
        return tree, f"{path}.requests[{index}].exactly", devices["requests"][index]["exactly"]

    def driver_of_class(self, name: str) -> str:
        """The driver that the first selector of a class names."""
        return next(
            tree["spec"]["selectors"][0]["cel"]["expression"].split('"')[1]
            for tree in self.of("DeviceClass")
            if tree["metadata"]["name"] == name
        )

    def devices_of_class(self, name: str) -> list[JsonObject]:
        """What a class of these profiles chooses is known by its driver and type only."""
        driver = self.driver_of_class(name)
        return [
            device
            for tree in self.of("ResourceSlice")
            if tree["spec"]["driver"] == driver
            for device in tree["spec"].get("devices", ())
        ]

    def put(self, tree: JsonObject, path: str) -> None:
        """The defect stands there."""
        namespace = tree["metadata"].get("namespace", "")
        name = "/".join(filter(None, (namespace, tree["metadata"]["name"])))
        self.planted.append((f"{tree['kind']}/{name}", path))


Planter = Callable[[Garden], None]
PLANTERS: dict[str, Planter] = {}
"""By the rule that is to be broken."""


def plants(rule: str) -> Callable[[Planter], Planter]:
    """The decorated function breaks the rule."""

    def keep(planter: Planter) -> Planter:
        PLANTERS[rule] = planter
        return planter

    return keep


def _rule(name: str, selector: JsonObject | None, effect: str = "NoExecute") -> JsonObject:
    spec: JsonObject = {"taint": {"key": "example.com/broken", "effect": effect}}
    if selector is not None:
        spec["deviceSelector"] = selector
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": name},
        "spec": spec,
    }


def _patch(name: str, chosen: JsonObject, priority: int, value: int = 1) -> JsonObject:
    return {
        "apiVersion": "resource.k8s.io/v1alpha3",
        "kind": "ResourceSlicePatch",
        "metadata": {"name": name},
        "spec": {
            "devices": {
                "filter": chosen,
                "priority": priority,
                "attributes": {"admin.example.com/shelf": {"int": value}},
            }
        },
    }


@plants("object-invalid")
def count_of_zero_slices(garden: Garden) -> None:
    tree = garden.one("DeviceClass")
    tree["spec"]["extendedResourceName"] = "no domain"
    garden.put(tree, "spec.extendedResourceName")


@plants("field-unknown")
def wrapper_of_v1beta1(garden: Garden) -> None:
    tree, index, device = garden.device()
    device["basic"] = {"attributes": {}}
    garden.put(tree, f"spec.devices[{index}].basic")


@plants("selector-invalid")
def expression_with_a_typing_mistake(garden: Garden) -> None:
    tree, path, exact = garden.request()
    exact["selectors"] = [{"cel": {"expression": "device.drivr == 'a'"}}]
    garden.put(tree, f"{path}.selectors[0].cel.expression")


@plants("selector-too-costly")
def expression_with_nested_loops(garden: Garden) -> None:
    tree, path, exact = garden.request()
    inner = "['a','b','c','d','e','f','g','h','i','j']"
    text = f"{inner}.all(a, {inner}.all(b, {inner}.all(c, {inner}.all(d, {inner}.all(e, true)))))"
    exact["selectors"] = [{"cel": {"expression": f"{text} && {text} && {text}"}}]
    garden.put(tree, f"{path}.selectors[0].cel.expression")


@plants("selector-costly")
def expression_that_is_nearly_refused(garden: Garden) -> None:
    tree, path, exact = garden.request()
    inner = "['a','b','c','d','e','f','g','h','i','j']"
    text = f"{inner}.all(a, {inner}.all(b, {inner}.all(c, {inner}.all(d, true))))"
    exact["selectors"] = [{"cel": {"expression": " && ".join([text] * 13)}}]
    garden.put(tree, f"{path}.selectors[0].cel.expression")


@plants("object-duplicate")
def second_class_of_one_name(garden: Garden) -> None:
    tree = json_tree.copy(garden.one("DeviceClass"))
    garden.trees.append(tree)
    garden.put(tree, "metadata.name")


@plants("pool-incomplete")
def slice_that_was_never_written(garden: Garden) -> None:
    members = garden.pool(slices=1)
    for tree in members:
        tree["spec"]["pool"]["resourceSliceCount"] += 1
    garden.put(members[0], "spec.pool.resourceSliceCount")


@plants("pool-overfull")
def slice_too_many(garden: Garden) -> None:
    members = garden.pool(slices=2)
    for tree in members:
        tree["spec"]["pool"]["resourceSliceCount"] -= 1
    garden.put(members[0], "spec.pool.resourceSliceCount")


@plants("pool-counts-differ")
def slice_that_announces_another_number(garden: Garden) -> None:
    _, *others = garden.pool(slices=2)
    odd = garden.rng.choice(others)
    odd["spec"]["pool"]["resourceSliceCount"] += 1
    garden.put(odd, "spec.pool.resourceSliceCount")


@plants("slice-obsolete")
def slice_that_was_left_behind(garden: Garden) -> None:
    members = garden.pool(slices=1)
    old = json_tree.copy(garden.rng.choice(members))
    old["metadata"]["name"] = "left-behind"
    for tree in members:
        tree["spec"]["pool"]["generation"] = old["spec"]["pool"]["generation"] + 1
    garden.trees.append(old)
    garden.put(old, "spec.pool.generation")


@plants("device-name-duplicate")
def device_of_another_slice(garden: Garden) -> None:
    members = [tree for tree in garden.pool(slices=2) if tree["spec"].get("devices")]
    if len(members) < 2:
        raise NothingToPlant
    first, second = members[:2]
    index = garden.rng.randrange(len(second["spec"]["devices"]))
    second["spec"]["devices"][index]["name"] = garden.rng.choice(first["spec"]["devices"])["name"]
    garden.put(second, f"spec.devices[{index}].name")


@plants("counter-set-duplicate")
def set_of_another_slice(garden: Garden) -> None:
    first = garden.one("ResourceSlice", having="sharedCounters")
    second = json_tree.copy(first)
    second["metadata"]["name"] = "further-counters"
    members = [
        tree
        for tree in garden.of("ResourceSlice")
        if tree["spec"]["pool"]["name"] == first["spec"]["pool"]["name"]
        and tree["spec"]["driver"] == first["spec"]["driver"]
    ]
    kept = garden.rng.choice(second["spec"]["sharedCounters"])
    second["spec"]["sharedCounters"] = [kept]
    for tree in (*members, second):
        tree["spec"]["pool"]["resourceSliceCount"] = len(members) + 1
    garden.trees.append(second)
    garden.put(second, "spec.sharedCounters[0].name")


@plants("pool-node-mix")
def slice_for_all_nodes_in_a_pool_of_one(garden: Garden) -> None:
    members = [tree for tree in garden.pool(slices=2) if tree["spec"].get("devices")]
    if len(members) < 2 or "nodeName" not in members[-1]["spec"]:
        raise NothingToPlant
    odd = members[-1]
    del odd["spec"]["nodeName"]
    odd["spec"]["allNodes"] = True
    garden.put(members[1] if len(members) == 2 else odd, "spec")


@plants("counter-set-missing")
def device_that_consumes_of_no_set(garden: Garden) -> None:
    tree, index, device = garden.device(having="consumesCounters")
    if len(device["consumesCounters"]) > 1:
        raise NothingToPlant
    number = len(device["consumesCounters"])
    device["consumesCounters"].append({"counterSet": "nowhere", "counters": {"x": {"value": "1"}}})
    garden.put(tree, f"spec.devices[{index}].consumesCounters[{number}]")


@plants("counter-missing")
def device_that_consumes_no_counter_of_the_set(garden: Garden) -> None:
    tree, index, device = garden.device(having="consumesCounters")
    device["consumesCounters"][0]["counters"]["phantom"] = {"value": "1"}
    garden.put(tree, f"spec.devices[{index}].consumesCounters[0].counters[phantom]")


@plants("counter-set-unused")
def set_that_nobody_draws_on(garden: Garden) -> None:
    tree = garden.one("ResourceSlice", having="sharedCounters")
    sets = tree["spec"]["sharedCounters"]
    if len(sets) > 7:
        raise NothingToPlant
    sets.append({"name": "idle", "counters": {"memory": {"value": "1Gi"}}})
    garden.put(tree, f"spec.sharedCounters[{len(sets) - 1}]")


@plants("counter-unused")
def counter_that_nobody_draws_on(garden: Garden) -> None:
    tree = garden.one("ResourceSlice", having="sharedCounters")
    index = garden.rng.randrange(len(tree["spec"]["sharedCounters"]))
    counters = tree["spec"]["sharedCounters"][index]["counters"]
    if len(counters) > 25:
        raise NothingToPlant
    counters["idle"] = {"value": "3"}
    garden.put(tree, f"spec.sharedCounters[{index}].counters[idle]")


@plants("device-never-fits")
def device_that_draws_more_than_there_is(garden: Garden) -> None:
    tree, index, device = garden.device(having="consumesCounters")
    name = garden.rng.choice(sorted(device["consumesCounters"][0]["counters"]))
    device["consumesCounters"][0]["counters"][name] = {"value": "1000Ti"}
    garden.put(tree, f"spec.devices[{index}].consumesCounters[0].counters[{name}]")


@plants("counters-never-bind")
def set_that_holds_enough_for_all(garden: Garden) -> None:
    tree = garden.one("ResourceSlice", having="sharedCounters")
    index = garden.rng.randrange(len(tree["spec"]["sharedCounters"]))
    for counter in tree["spec"]["sharedCounters"][index]["counters"].values():
        counter["value"] = "1000Ti"
    garden.put(tree, f"spec.sharedCounters[{index}]")


@plants("partitions-overlap")
def two_devices_of_one_set(garden: Garden) -> None:
    pool = {"name": "boards", "generation": 1, "resourceSliceCount": 2}
    spec = {"driver": "board.example.com", "pool": pool, "allNodes": True}
    head = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice"}
    counters = {"slots": {"value": "1"}}
    consumed = [{"counterSet": "board", "counters": counters}]
    sets = [{"name": "board", "counters": counters}]
    devices = [{"name": f"part-{number}", "consumesCounters": consumed} for number in range(2)]
    declared = {**head, "metadata": {"name": "b-sets"}, "spec": {**spec, "sharedCounters": sets}}
    published = {**head, "metadata": {"name": "b-parts"}, "spec": {**spec, "devices": devices}}
    garden.trees += [declared, published]
    garden.put(declared, "spec.sharedCounters[0]")


@plants("attribute-type-differs")
def attribute_of_another_type(garden: Garden) -> None:
    members = [
        (tree, index, device, name)
        for tree in garden.of("ResourceSlice", having="devices")
        for index, device in enumerate(tree["spec"]["devices"])
        for name, value in device.get("attributes", {}).items()
        if "int" in value and index > 0
    ]
    if not members:
        raise NothingToPlant
    tree, index, device, name = garden.rng.choice(members)
    device["attributes"][name] = {"string": str(device["attributes"][name]["int"])}
    garden.put(tree, f"spec.devices[{index}].attributes[{name}]")


@plants("attribute-shadowed")
def attribute_by_both_names(garden: Garden) -> None:
    tree, index, device = garden.device(having="attributes")
    bare = [name for name in device["attributes"] if "/" not in name and "numa" not in name]
    if not bare:
        raise NothingToPlant
    name = garden.rng.choice(bare)
    device["attributes"][f"{tree['spec']['driver']}/{name}"] = device["attributes"][name]
    garden.put(tree, f"spec.devices[{index}].attributes[{name}]")


@plants("attribute-not-standard")
def root_under_a_name_of_its_own(garden: Garden) -> None:
    tree, index, device = garden.device()
    if "resource.kubernetes.io/pcieRoot" in device.get("attributes", {}):
        raise NothingToPlant
    device.setdefault("attributes", {})["pciRoot"] = {"string": "pci0000:00"}
    garden.put(tree, f"spec.devices[{index}].attributes[pciRoot]")


@plants("device-published-twice")
def two_devices_of_one_uuid(garden: Garden) -> None:
    tree = garden.one("ResourceSlice", having="devices")
    devices = tree["spec"]["devices"]
    if len(devices) < 2 or any("consumesCounters" in device for device in devices):
        raise NothingToPlant
    first, second = sorted(garden.rng.sample(range(len(devices)), 2))
    for index in (first, second):
        devices[index].setdefault("attributes", {})["uuid"] = {"string": "one-and-the-same"}
    garden.put(tree, f"spec.devices[{second}].attributes[uuid]")


@plants("capacity-negative")
def capacity_below_zero(garden: Garden) -> None:
    tree, index, device = garden.device()
    device.setdefault("capacity", {})["debt"] = {"value": "-1Gi"}
    garden.put(tree, f"spec.devices[{index}].capacity[debt].value")


@plants("shared-device-without-capacity")
def share_of_counters_only(garden: Garden) -> None:
    tree, index, device = garden.device(having="consumesCounters")
    device["allowMultipleAllocations"] = True
    device.pop("capacity", None)
    garden.put(tree, f"spec.devices[{index}]")


@plants("node-missing")
def node_that_is_gone(garden: Garden) -> None:
    slices = [tree for tree in garden.of("ResourceSlice") if "nodeName" in tree["spec"]]
    if not slices:
        raise NothingToPlant
    tree = garden.rng.choice(slices)
    if tree["spec"]["pool"]["resourceSliceCount"] > 1:
        raise NothingToPlant
    tree["spec"]["nodeName"] = "gone"
    garden.put(tree, "spec.nodeName")


@plants("node-selector-matches-nothing")
def selector_of_a_label_that_nobody_has(garden: Garden) -> None:
    slices = [
        tree
        for tree in garden.of("ResourceSlice")
        if "nodeName" in tree["spec"] and tree["spec"]["pool"]["resourceSliceCount"] == 1
    ]
    if not slices:
        raise NothingToPlant
    spec = garden.rng.choice(slices)
    del spec["spec"]["nodeName"]
    term = {"matchExpressions": [{"key": "rack", "operator": "In", "values": ["r9"]}]}
    spec["spec"]["nodeSelector"] = {"nodeSelectorTerms": [term]}
    garden.put(spec, "spec.nodeSelector")


@plants("device-nodes-alike")
def each_device_on_the_same_node(garden: Garden) -> None:
    slices = [
        tree
        for tree in garden.of("ResourceSlice", having="devices")
        if "nodeName" in tree["spec"]
        and tree["spec"]["pool"]["resourceSliceCount"] == 1
        and len(tree["spec"]["devices"]) > 1
    ]
    if not slices:
        raise NothingToPlant
    tree = garden.rng.choice(slices)
    name = tree["spec"].pop("nodeName")
    tree["spec"]["perDeviceNodeSelection"] = True
    for device in tree["spec"]["devices"]:
        device["nodeName"] = name
    garden.put(tree, "spec.perDeviceNodeSelection")


@plants("selector-fails")
def attribute_that_only_some_have(garden: Garden) -> None:
    tree, path, exact = garden.request()
    exact["selectors"] = [{"cel": {"expression": 'device.attributes["no.example.com"].x == 1'}}]
    garden.put(tree, f"{path}.selectors[0].cel.expression")


@plants("class-matches-nothing")
def class_of_a_driver_that_nobody_runs(garden: Garden) -> None:
    tree = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "empty"},
        "spec": {
            "selectors": [
                {"cel": {"expression": "true"}},
                {"cel": {"expression": "device.driver == 'nobody.example.com'"}},
            ]
        },
    }
    garden.trees.insert(garden.rng.randrange(len(garden.trees)), tree)
    garden.put(tree, "spec.selectors[1].cel.expression")


@plants("selector-matches-nothing")
def request_for_what_nobody_publishes(garden: Garden) -> None:
    tree, path, exact = garden.request()
    exact["selectors"] = [
        {"cel": {"expression": "true"}},
        {"cel": {"expression": "device.driver == 'nobody.example.com'"}},
    ]
    garden.put(tree, f"{path}.selectors[1].cel.expression")


@plants("alternative-never-taken")
def alternative_for_another_cluster(garden: Garden) -> None:
    tree, path, devices = garden.claim()
    index = garden.rng.randrange(len(devices["requests"]))
    exact = devices["requests"][index].pop("exactly")
    other = {**exact, "selectors": [{"cel": {"expression": "device.driver == 'b.example.com'"}}]}
    devices["requests"][index]["firstAvailable"] = [
        {"name": "wanted", **other},
        {"name": "possible", **exact},
    ]
    place = f"{path}.requests[{index}].firstAvailable[0].selectors[0].cel.expression"
    garden.put(tree, place)


@plants("config-for-no-driver")
def configuration_for_a_driver_that_is_spelled_wrong(garden: Garden) -> None:
    driver = garden.one("ResourceSlice", having="devices")["spec"]["driver"]
    config = {"opaque": {"driver": f"x{driver}", "parameters": {"sharing": "none"}}}
    if garden.rng.random() < 0.5:
        tree, path, devices = garden.claim()
    else:
        tree = garden.one("DeviceClass")
        path, devices = "spec", tree["spec"]
    devices["config"] = [*devices.get("config", ()), config]
    garden.put(tree, f"{path}.config[{len(devices['config']) - 1}].opaque.driver")


@plants("class-missing")
def class_that_is_spelled_wrong(garden: Garden) -> None:
    tree, path, exact = garden.request()
    exact["deviceClassName"] += "x"
    garden.put(tree, f"{path}.deviceClassName")


@plants("claim-asks-for-too-many")
def claim_for_many_devices(garden: Garden) -> None:
    name = garden.one("DeviceClass")["metadata"]["name"]
    if len(garden.devices_of_class(name)) < 3:
        raise NothingToPlant
    requests = [clean.exactly(name, f"r{number}") for number in range(garden.rng.randint(12, 20))]
    for request in requests:
        request["exactly"]["count"] = 3
    tree = clean.claim("greedy", *requests)
    garden.trees.append(tree)
    garden.put(tree, "spec.devices.requests")


@plants("request-exceeds-devices")
def request_for_more_than_there_are(garden: Garden) -> None:
    tree, path, exact = garden.request()
    devices = garden.devices_of_class(exact["deviceClassName"])
    if len(devices) > 25 or any("allowMultipleAllocations" in device for device in devices):
        raise NothingToPlant
    exact["count"] = len(devices) + 1
    garden.put(tree, f"{path}.count")


@plants("capacity-never-enough")
def request_for_capacity_that_nobody_has(garden: Garden) -> None:
    tree, path, exact = garden.request()
    exact["capacity"] = {"requests": {"lanes": "4"}}
    garden.put(tree, f"{path}.capacity.requests[lanes]")


@plants("constraint-never-holds")
def constraint_on_an_attribute_that_nobody_has(garden: Garden) -> None:
    tree, path, devices = garden.claim()
    devices["constraints"] = [{"matchAttribute": "resource.kubernetes.io/rack"}]
    garden.put(tree, f"{path}.constraints[0].matchAttribute")


@plants("taint-untolerated")
def taint_of_a_broken_device(garden: Garden) -> None:
    tree, index, device = garden.device()
    if len(tree["spec"]["devices"]) > 64:
        raise NothingToPlant
    taint = {"key": "example.com/broken", "effect": "NoSchedule"}
    device["taints"] = [taint]
    garden.put(tree, f"spec.devices[{index}].taints[0]")


@plants("toleration-without-effect")
def toleration_of_all_effects(garden: Garden) -> None:
    tree, path, exact = garden.request()
    exact["tolerations"] = [{"key": "example.com/broken", "operator": "Exists"}]
    garden.put(tree, f"{path}.tolerations[0]")


def _tolerate_all(garden: Garden) -> None:
    """A request that tolerates the taint of the rules here, so that only the rule is at fault."""
    name = garden.one("DeviceClass")["metadata"]["name"]
    request = clean.exactly(name)
    request["exactly"]["tolerations"] = [
        {"key": "example.com/broken", "operator": "Exists", "effect": effect}
        for effect in ("NoSchedule", "NoExecute")
    ]
    garden.trees.append(clean.claim("tolerant", request))


@plants("rule-selects-everything")
def rule_with_an_empty_selector(garden: Garden) -> None:
    _tolerate_all(garden)
    tree = _rule("everything", {}, garden.rng.choice(("NoSchedule", "NoExecute")))
    garden.trees.append(tree)
    garden.put(tree, "spec.deviceSelector")


@plants("rule-without-selector")
def rule_that_forgot_its_selector(garden: Garden) -> None:
    _tolerate_all(garden)
    tree = _rule("forgotten", None)
    garden.trees.append(tree)
    garden.put(tree, "spec")


@plants("rule-selects-nothing")
def rule_for_a_pool_that_is_gone(garden: Garden) -> None:
    driver = garden.one("ResourceSlice")["spec"]["driver"]
    tree = _rule("late", {"driver": driver, "pool": "gone"})
    garden.trees.append(tree)
    garden.put(tree, "spec.deviceSelector")


@plants("patch-matches-nothing")
def patch_of_a_driver_that_nobody_runs(garden: Garden) -> None:
    tree = _patch("idle", {"driver": "nobody.example.com"}, 1)
    garden.trees.append(tree)
    garden.put(tree, "spec.devices.filter")


@plants("patch-selector-fails")
def patch_whose_selector_fails(garden: Garden) -> None:
    expression = 'device.attributes["no.example.com"].x == 1'
    tree = _patch("failing", {"selectors": [{"cel": {"expression": expression}}]}, 1)
    garden.trees.append(tree)
    garden.put(tree, "spec.devices.filter.selectors")


@plants("patch-priority-tie")
def two_patches_of_one_priority(garden: Garden) -> None:
    tree, _, device = garden.device()
    driver = tree["spec"]["driver"]
    one = _patch("a-narrow", {"driver": driver, "device": device["name"]}, 7)
    other = _patch("b-wide", {"driver": driver}, 7, value=2)
    garden.trees += [one, other]
    garden.put(other, "spec.devices.priority")


@plants("count-near-limit")
def claim_with_thirty_requests(garden: Garden) -> None:
    name = garden.one("DeviceClass")["metadata"]["name"]
    tree = clean.claim("long", *(clean.exactly(name, f"r{number}") for number in range(30)))
    garden.trees.append(tree)
    garden.put(tree, "spec.devices.requests")
    devices = garden.devices_of_class(name)
    is_shared = any("allowMultipleAllocations" in device for device in devices)
    if not is_shared:
        if len(devices) >= 30:
            raise NothingToPlant  # partitions: whether thirty of them go together is not obvious
        garden.implied.append(("claim-never-fits", "ResourceClaim/default/long", "spec.devices"))


@plants("text-near-limit")
def value_of_sixty_letters(garden: Garden) -> None:
    tree, index, device = garden.device()
    device.setdefault("attributes", {})["serial"] = {"string": "s" * garden.rng.randint(58, 64)}
    garden.put(tree, f"spec.devices[{index}].attributes[serial].string")


@plants("refused-by-older-release")
def device_with_five_taints(garden: Garden) -> None:
    tree, index, device = garden.device()
    if len(tree["spec"]["devices"]) > 50:
        raise NothingToPlant
    device["taints"] = [{"key": f"example.com/t{number}", "effect": "None"} for number in range(5)]
    garden.put(tree, f"spec.devices[{index}].taints")


@plants("claim-never-fits")
def _contradiction(garden: Garden) -> None:
    """Two devices have the same value of an attribute, and two different ones."""
    tree, path, devices = garden.claim()
    name = garden.rng.choice(devices["requests"])["exactly"]["deviceClassName"]
    driver = garden.driver_of_class(name)
    offered = garden.devices_of_class(name)
    common = set.intersection(*(set(device.get("attributes", ())) for device in offered))
    if len(offered) < 2 or not common:
        raise NothingToPlant
    attribute = garden.rng.choice(sorted(common))
    attribute = attribute if "/" in attribute else f"{driver}/{attribute}"
    devices["requests"] = [clean.exactly(name, "one"), clean.exactly(name, "other")]
    devices["constraints"] = [{"matchAttribute": attribute}, {"distinctAttribute": attribute}]
    garden.put(tree, path)
