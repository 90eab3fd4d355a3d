"""What is asked about a device, a node or a quota is answered with what decides about pods."""

import pytest

from tests.web.invented import ask, cel, claim, class_of, node, pod, slice_of, space, template
from tests.web.test_named_causes import DRIVER, why

LABEL = "resource.kubernetes.io/admin-access"
DEVICES = "c.deviceclass.resource.k8s.io/devices"


def in_zone(zone):
    wanted = {"key": "x.test/zone", "operator": "In", "values": [zone]}
    return {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}}


def devices_with_nodes_of_their_own():
    devices = [{"name": "by-zone", **in_zone("a")}, {"name": "by-name", "nodeName": "n"}]
    job = pod("job", "lab", claim="want")
    job["spec"]["nodeSelector"] = {"x.test/zone": "b"}
    return (
        {"apply": [space("lab"), class_of("c", DRIVER), node("n", {"x.test/zone": "a"}),
                   node("m", {"x.test/zone": "b"}),
                   slice_of("s", DRIVER, "rack", devices, perDeviceNodeSelection=True),
                   claim("want", "lab", ask("c")), job]},
        {"wait": 5},
    )  # fmt: skip


def partition_that_blocks_the_whole():
    def part(name, tiles):
        drawn = {"counterSet": "die", "counters": {"tiles": {"value": str(tiles)}}}
        return {"name": name, "consumesCounters": [drawn], "attributes": {"tiles": {"int": tiles}}}

    counters = slice_of("counters", DRIVER, "n", [], of=2, nodeName="n")
    del counters["spec"]["devices"]
    tiles = {"tiles": {"value": "8"}}
    counters["spec"]["sharedCounters"] = [{"name": "die", "counters": tiles}]
    small = ask("c", selectors=cel(f"device.attributes['{DRIVER}'].tiles == 2"))
    return (
        {"apply": [space("lab"), class_of("c", DRIVER), node("n"), counters,
                   slice_of("s", DRIVER, "n", [part("whole", 8), part("quarter", 2)],
                            of=2, nodeName="n"),
                   claim("small", "lab", small), pod("job", "lab", claim="small")]},
        {"wait": 5},
    )  # fmt: skip


def quota_that_refuses():
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hard": {DEVICES: "1"}},
             "metadata": {"name": "few", "namespace": "lab"}}  # fmt: skip
    return (
        {"apply": [space("lab"), class_of("c", DRIVER), node("n"), quota,
                   template("one", "lab", ask("c")),
                   slice_of("s", DRIVER, "n", [{"name": "x"}, {"name": "y"}], nodeName="n")]},
        {"wait": 5},
        {"apply": [pod("first", "lab", template="one")]},
        {"wait": 5},
        {"apply": [pod("job", "lab", template="one")]},
        {"wait": 5},
    )  # fmt: skip


def namespace_without_its_label():
    return (
        {"apply": [space("lab", **{LABEL: "true"}), class_of("c", DRIVER), node("n"),
                   slice_of("s", DRIVER, "n", [{"name": "x"}], nodeName="n"),
                   template("see", "lab", ask("c", adminAccess=True))]},
        {"patch": {"metadata": {"labels": {LABEL: None}}}, "of": "namespace/lab"},
        {"apply": [pod("job", "lab", template="see")]},
        {"wait": 20},
    )  # fmt: skip


def resource_with_an_s():
    tree = class_of("c", DRIVER)
    tree["spec"]["extendedResourceName"] = "x.test/card"
    job = pod("job", "lab", claim="no")
    del job["spec"]["resourceClaims"]
    amounts = {"x.test/cards": "1"}
    job["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    return (
        {"apply": [space("lab"), tree, node("n"),
                   slice_of("s", DRIVER, "n", [{"name": "x"}], nodeName="n"), job]},
        {"wait": 5},
    )  # fmt: skip


ROWS = [
    (devices_with_nodes_of_their_own, "pod/job",
     f"2 devices of pool {DRIVER}/rack are for other nodes: by-zone for nodes with x.test/zone In "
     "a (n); by-name for node n"),
    (devices_with_nodes_of_their_own, f"device/{DRIVER}/rack/by-zone",
     "for nodes with x.test/zone In a (n)"),
    (devices_with_nodes_of_their_own, "node/n", f"2 of 2 devices of pool {DRIVER}/rack are for it"),
    (devices_with_nodes_of_their_own, "node/m", "no driver publishes devices for it"),
    (partition_that_blocks_the_whole, f"device/{DRIVER}/n/whole",
     "2 of 8 of counter die/tiles is used, by quarter of lab/small"),
    (quota_that_refuses, "resourcequota/few", f"1 of 1 {DEVICES} used"),
    (quota_that_refuses, "resourcequota/few", "pod job waits for a claim that it refuses"),
    (quota_that_refuses, "pod/job", f"raise {DEVICES} of quota few to 2, or delete what uses it"),
    (namespace_without_its_label, "pod/job", f"label namespace lab {LABEL}=true"),
    (namespace_without_its_label, "pod/job",
     f"namespace lab had the label {LABEL}=true until it was changed, by redra"),
    (resource_with_an_s, "pod/job",
     "no deviceclass stands for x.test/cards; do you mean x.test/card?"),
    (resource_with_an_s, "pod/job",
     "no change of claims or devices was tried: no node looks at devices for the pod"),
]  # fmt: skip


@pytest.mark.parametrize("make", dict.fromkeys(row[0] for row in ROWS))
async def test_answer_names_what_decides(make):
    for _, about, told in (row for row in ROWS if row[0] is make):
        assert told in await why(make(), about, help="true")
