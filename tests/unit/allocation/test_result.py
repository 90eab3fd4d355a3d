"""The allocation as an API object: entries, configs, node selector."""

import pytest

from app.analysis.views import features_of
from app.domain.allocation import Failure, Features
from app.domain.objects.profile import Profile
from tests.worlds.builders import (
    ALL_ON,
    DRIVER,
    allocator,
    claim,
    device,
    device_class,
    first_available,
    node,
    request,
    resource_slice,
    wish,
)

OPAQUE = {"opaque": {"driver": DRIVER, "parameters": {"a": 1}}}
LOCAL = {
    "nodeSelectorTerms": [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node"]}]}
    ]
}


def allocation(claims: list, *slices: dict, **how) -> dict:
    answer = allocator(*slices, **how).allocate(node(zone="a"), claims)
    return answer.allocation_results(lambda: "share")[0]


def test_worked_example_of_the_specification() -> None:
    classes = [device_class("c1", config=[OPAQUE]), device_class("c2")]
    given = claim(
        request("a", deviceClassName="c1"),
        first_available("b", big=wish(9, deviceClassName="c1"), small=wish(deviceClassName="c2")),
        config=[{"requests": ["b/small"], **OPAQUE}],
    )
    found = allocation([given], resource_slice("s", device("d0"), device("d1")), classes=classes)
    assert found == {
        "devices": {
            "results": [
                {"request": "a", "driver": DRIVER, "pool": "pool", "device": "d0"},
                {"request": "b/small", "driver": DRIVER, "pool": "pool", "device": "d1"},
            ],
            "config": [
                {"source": "FromClass", "requests": ["a"], **OPAQUE},
                {"source": "FromClaim", "requests": ["b/small"], **OPAQUE},
            ],
        },
        "nodeSelector": LOCAL,
    }


CONFIGS = [
    (["r0", "r1"], [{"source": "FromClaim", **OPAQUE}]),
    ([], [{"source": "FromClaim", **OPAQUE}]),
    (["r1"], [{"source": "FromClaim", "requests": ["r1"], **OPAQUE}]),
    (["r1", "r9"], [{"source": "FromClaim", "requests": ["r1", "r9"], **OPAQUE}]),
    (["r9"], []),
]


@pytest.mark.parametrize(("names", "expected"), CONFIGS)
def test_claim_config_is_kept_for_requests_that_it_names(names: list, expected: list) -> None:
    given = claim(request("r0"), request("r1"), config=[{"requests": names, **OPAQUE}])
    found = allocation([given], resource_slice("s", device("d0"), device("d1")))
    assert found["devices"].get("config", []) == expected


# names in the claim's config, classes of the two requests, requests of the class's and the claim's
# entries up to 1.36, and since 1.37
RELEASES = [
    (["r0", "r1"], ("c", "c"), (["r0", "r1"], ["r0", "r1"]), (None, None)),
    (["r0", "r1"], ("c", "gpu"), (["r0"], ["r0", "r1"]), (["r0"], None)),
    (["r1"], ("c", "c"), (["r0", "r1"], ["r1"]), (None, ["r1"])),
    (["r1"], ("c", "gpu"), (["r0"], ["r1"]), (["r0"], ["r1"])),
    ([], ("gpu", "c"), (["r1"], None), (["r1"], None)),
]


@pytest.mark.parametrize("release", ["1.34", "1.35", "1.36", "1.36.2", "1.37"])
@pytest.mark.parametrize(("names", "used", "before", "since"), RELEASES)
def test_configs_of_both_sources_list_their_requests_up_to_1_36(
    release: str, names: list, used: tuple, before: tuple, since: tuple
) -> None:
    features = features_of(Profile(version=release))
    given = claim(
        request("r0", deviceClassName=used[0]),
        request("r1", deviceClassName=used[1]),
        config=[{"requests": names, **OPAQUE}],
    )
    classes = [device_class(), device_class("c", config=[OPAQUE])]
    slices = resource_slice("s", device("d0"), device("d1"))
    entries = allocation([given], slices, classes=classes, features=features)["devices"]["config"]
    listed = tuple(entry.get("requests") for entry in entries)
    assert [entry["source"] for entry in entries] == ["FromClass", "FromClaim"]
    assert listed == (since if release == "1.37" else before)


@pytest.mark.parametrize(("release", "listed"), [("1.36", ["r/small"]), ("1.37", None)])
def test_single_request_keeps_its_name_in_configs_up_to_1_36(release: str, listed: list) -> None:
    features = features_of(Profile(version=release))
    given = claim(
        first_available("r", big=wish(9), small=wish(deviceClassName="c")),
        config=[{"requests": ["r/small"], **OPAQUE}],
    )
    classes = [device_class(), device_class("c", config=[OPAQUE])]
    slices = resource_slice("s", device("d0"))
    entries = allocation([given], slices, classes=classes, features=features)["devices"]["config"]
    assert [entry.get("requests") for entry in entries] == [listed, listed]


def test_tolerations_and_conditions_are_copied() -> None:
    toleration = {"operator": "Exists", "tolerationSeconds": 5}
    ready = device("d0", bindingConditions=["ready"], bindingFailureConditions=["bad"])
    given = [claim(request("r0", tolerations=[toleration]))]
    entry = allocation(given, resource_slice("s", ready))["devices"]["results"][0]
    assert entry["tolerations"] == [toleration]
    assert entry["bindingConditions"] == ["ready"]
    assert entry["bindingFailureConditions"] == ["bad"]
    off = Features(prioritized_list=True)
    assert allocator(resource_slice("s", ready), features=off).allocate(node(), given).steps


def terms(key: str, *values: str) -> dict:
    expression = {"key": key, "operator": "In", "values": list(values)}
    return {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}


def network(name: str, selector: dict, *devices: dict, **how: object) -> dict:
    return resource_slice(name, *devices, pool=name, node=None, nodeSelector=selector, **how)


def test_selectors_of_network_pools_are_united() -> None:
    slices = [
        network("a", terms("zone", "a", "b"), device("d0")),
        network("b", terms("zone", "b", "a"), device("d1")),
        network("c", terms("zone", "a"), device("d2")),
    ]
    found = allocation([claim(request("r0", 3))], *slices)
    assert found["nodeSelector"] == {
        "nodeSelectorTerms": [
            {
                "matchExpressions": [
                    {"key": "zone", "operator": "In", "values": ["a", "b"]},
                    {"key": "zone", "operator": "In", "values": ["a"]},
                ]
            }
        ]
    }


def test_one_local_device_names_the_node_alone() -> None:
    slices = [network("a", terms("zone", "a"), device("d0")), resource_slice("s", device("d1"))]
    assert allocation([claim(request("r0", 2))], *slices)["nodeSelector"] == LOCAL


def test_device_that_binds_to_its_node_names_the_node() -> None:
    slices = network("a", terms("zone", "a"), device("d0", bindsToNode=True))
    assert allocation([claim(request())], slices)["nodeSelector"] == LOCAL


def test_devices_for_all_nodes_need_no_selector() -> None:
    slices = resource_slice("s", device("d0"), node=None, allNodes=True)
    assert "nodeSelector" not in allocation([claim(request())], slices)


def test_per_device_selection_counts_instead_of_the_slice() -> None:
    mixed = resource_slice(
        "s",
        device("d0", nodeName="other"),
        device("d1", nodeSelector=terms("zone", "a")),
        node=None,
        perDeviceNodeSelection=True,
    )
    found = allocation([claim(request())], mixed)
    assert found["devices"]["results"][0]["device"] == "d1"
    assert found["nodeSelector"] == terms("zone", "a")


def test_selector_of_several_terms_ends_the_attempt() -> None:
    twice = {"nodeSelectorTerms": terms("zone", "a")["nodeSelectorTerms"] * 2}
    answer = allocator(network("a", twice, device("d0"))).allocate(
        node(zone="a"), [claim(request())]
    )
    assert isinstance(answer, Failure)
    assert answer.text == (
        "create NodeSelector for claim claim: unsupported ResourceSlice.NodeSelector with 2 terms"
    )


def test_admin_access_is_marked_only_where_it_was_asked_for() -> None:
    given = [claim(request("r0", adminAccess=True), request("r1"))]
    found = allocation(given, resource_slice("s", device("d0"), device("d1")), features=ALL_ON)
    assert [entry.get("adminAccess") for entry in found["devices"]["results"]] == [True, None]
