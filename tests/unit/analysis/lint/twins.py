"""Changes of clean objects that look like a planted defect and are none.

Each is by the rule that its counterpart in `planting` breaks. It shares no code with the rules.
"""

from collections.abc import Callable

from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject
from tests.unit.analysis.lint import clean
from tests.unit.analysis.lint.planting import Garden, NothingToPlant, Planter

TWINS: dict[str, Planter] = {}
"""By the rule that is kept."""

KEY = "example.com/broken"


def like(rule: str) -> Callable[[Planter], Planter]:
    """The decorated function keeps the rule, barely."""

    def keep(twin: Planter) -> Planter:
        TWINS[rule] = twin
        return twin

    return keep


def new_object(kind: str, name: str, spec: JsonObject, version: str = "v1") -> JsonObject:
    head = {"apiVersion": f"resource.k8s.io/{version}", "kind": kind}
    return {**head, "metadata": {"name": name}, "spec": spec}


def _rule(garden: Garden, selector: JsonObject) -> None:
    """A rule whose taint a claim of the first class tolerates."""
    request = clean.exactly(garden.one("DeviceClass")["metadata"]["name"])
    request["exactly"]["tolerations"] = [
        {"key": KEY, "operator": "Exists", "effect": "NoSchedule"},
    ]
    garden.trees.append(clean.claim("tolerant", request))
    taint = {"key": KEY, "effect": "NoSchedule"}
    spec = {"taint": taint, "deviceSelector": selector}
    garden.trees.append(new_object("DeviceTaintRule", "narrow", spec))


def _patch(garden: Garden, name: str, chosen: JsonObject, priority: int) -> None:
    devices = {
        "filter": chosen,
        "priority": priority,
        "attributes": {"admin.example.com/shelf": {"int": priority}},
    }
    garden.trees.append(new_object("ResourceSlicePatch", name, {"devices": devices}, "v1alpha3"))


@like("rule-selects-everything")
def rule_for_one_driver(garden: Garden) -> None:
    _rule(garden, {"driver": garden.one("ResourceSlice")["spec"]["driver"]})


@like("rule-selects-nothing")
def rule_for_the_last_device_of_a_pool(garden: Garden) -> None:
    spec = garden.one("ResourceSlice", having="devices")["spec"]
    place = {"driver": spec["driver"], "pool": spec["pool"]["name"]}
    _rule(garden, {**place, "device": spec["devices"][-1]["name"]})


@like("toleration-without-effect")
def toleration_of_one_effect(garden: Garden) -> None:
    _, _, exact = garden.request()
    exact["tolerations"] = [{"key": KEY, "operator": "Exists", "effect": "NoExecute"}]


@like("patch-matches-nothing")
def patch_of_one_device(garden: Garden) -> None:
    tree, _, device = garden.device()
    _patch(garden, "one", {"driver": tree["spec"]["driver"], "device": device["name"]}, 1)


@like("patch-selector-fails")
def patch_whose_selector_asks_first(garden: Garden) -> None:
    driver = garden.one("ResourceSlice", having="devices")["spec"]["driver"]
    guarded = f'device.driver == "{driver}" || device.attributes["no.example.com"].?x.hasValue()'
    _patch(garden, "guarded", {"selectors": [{"cel": {"expression": guarded}}]}, 1)


@like("patch-priority-tie")
def patches_of_two_priorities(garden: Garden) -> None:
    tree, _, device = garden.device()
    driver = tree["spec"]["driver"]
    _patch(garden, "a-narrow", {"driver": driver, "device": device["name"]}, 8)
    _patch(garden, "b-wide", {"driver": driver}, 7)


@like("device-published-twice")
def devices_of_uuids_that_end_alike(garden: Garden) -> None:
    for number, tree in enumerate(garden.of("ResourceSlice", having="devices")):
        for index, device in enumerate(tree["spec"]["devices"]):
            uuid = {"string": f"{number}-{index}-one-and-the-same"}
            device.setdefault("attributes", {})["uuid"] = uuid


@like("attribute-type-differs")
def attribute_of_another_value(garden: Garden) -> None:
    devices = [
        device
        for tree in garden.of("ResourceSlice", having="devices")
        for device in tree["spec"]["devices"]
    ]
    for number, device in enumerate(devices):
        device.setdefault("attributes", {})["serial"] = {"int": number * 1_000_003}


@like("attribute-not-standard")
def attribute_named_nearly_as_the_standard_one(garden: Garden) -> None:
    _, _, device = garden.device()
    device.setdefault("attributes", {})["pciRootsSeen"] = {"int": 1}


@like("text-near-limit")
def value_of_forty_letters(garden: Garden) -> None:
    _, _, device = garden.device()
    device.setdefault("attributes", {})["serial"] = {"string": "s" * 40}


@like("capacity-negative")
def capacity_of_little(garden: Garden) -> None:
    _, _, device = garden.device()
    device.setdefault("capacity", {})["rest"] = {"value": "1m"}


@like("slice-obsolete")
def slices_that_all_go_on(garden: Garden) -> None:
    for tree in garden.pool(slices=1):
        tree["spec"]["pool"]["generation"] += 1


@like("pool-incomplete")
def slice_that_is_cut_in_two(garden: Garden) -> None:
    members = [tree for tree in garden.pool(slices=1) if len(tree["spec"].get("devices", ())) > 1]
    if not members:
        raise NothingToPlant
    first = garden.rng.choice(members)
    pool = first["spec"]["pool"]
    for tree in garden.of("ResourceSlice"):
        if tree["spec"]["driver"] == first["spec"]["driver"] and tree["spec"]["pool"] == pool:
            tree["spec"]["pool"] = {**pool, "resourceSliceCount": pool["resourceSliceCount"] + 1}
    second = json_tree.copy(first)
    second["metadata"]["name"] = "second-half"
    second["spec"]["devices"] = [first["spec"]["devices"].pop()]
    garden.trees.append(second)


@like("device-name-duplicate")
def device_of_one_name_in_another_pool(garden: Garden) -> None:
    tree, _, device = garden.device()
    pool = {"name": "elsewhere", "generation": 1, "resourceSliceCount": 1}
    own = {key: part for key, part in device.items() if key != "consumesCounters"}
    spec = {"driver": tree["spec"]["driver"], "pool": pool, "devices": [own]}
    place = {name: tree["spec"][name] for name in ("nodeName", "allNodes", "nodeSelector")
             if name in tree["spec"]}  # fmt: skip
    if not place:
        raise NothingToPlant
    garden.trees.append(new_object("ResourceSlice", "elsewhere", {**spec, **place}))
