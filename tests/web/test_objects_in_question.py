"""What is asked about a device, a node or a quota is answered with what decides about pods."""

import pytest

from app.domain.values.timestamps import SECOND
from tests.api.serving import serving
from tests.virtual_clock import VirtualClock
from tests.web.invented import (
    Invented,
    ask,
    cel,
    claim,
    class_of,
    node,
    pod,
    rule,
    slice_of,
    space,
    template,
)
from tests.web.test_incident_stories import played, stored
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
    """A device that draws on another counter of the set takes no part in it."""

    def part(name, tiles, counter="tiles"):
        drawn = {"counterSet": "die", "counters": {counter: {"value": str(tiles)}}}
        return {"name": name, "consumesCounters": [drawn], "attributes": {"tiles": {"int": tiles}}}

    counters = slice_of("counters", DRIVER, "n", [], of=2, nodeName="n")
    del counters["spec"]["devices"]
    amounts = {"tiles": {"value": "8"}, "lanes": {"value": "8"}}
    counters["spec"]["sharedCounters"] = [{"name": "die", "counters": amounts}]
    small, lanes = (
        ask("c", selectors=cel(f"device.attributes['{DRIVER}'].tiles == {number}"))
        for number in (2, 4)
    )
    parts = [part("link", 4, "lanes"), part("whole", 8), part("quarter", 2)]
    return (
        {"apply": [space("lab"), class_of("c", DRIVER), node("n"), counters,
                   slice_of("s", DRIVER, "n", parts, of=2, nodeName="n"),
                   claim("lanes", "lab", lanes), pod("net", "lab", claim="lanes"),
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


def quota_for_less_than_one():
    """Nothing uses the quota, and the claim asks for more than it has."""
    steps = quota_that_refuses()
    two = template("one", "lab", ask("c", count=2))
    made = [two if tree["kind"] == "ResourceClaimTemplate" else tree for tree in steps[0]["apply"]]
    return ({"apply": made}, *steps[1:])


def namespace_without_its_label():
    return (
        {"apply": [space("lab", **{LABEL: "true"}), class_of("c", DRIVER), node("n"),
                   slice_of("s", DRIVER, "n", [{"name": "x"}], nodeName="n"),
                   template("see", "lab", ask("c", adminAccess=True))]},
        {"patch": {"metadata": {"labels": {LABEL: None}}}, "of": "namespace/lab"},
        {"apply": [pod("job", "lab", template="see")]},
        {"wait": 20},
    )  # fmt: skip


def namespace_with_its_label_again():
    return (
        *namespace_without_its_label(),
        {"patch": {"metadata": {"labels": {LABEL: "true"}}}, "of": "namespace/lab"},
    )


def quota_that_was_raised():
    more = {"patch": {"spec": {"hard": {DEVICES: "2"}}}, "of": "resourcequota/lab/few"}
    return (*quota_that_refuses(), more)


def quota_that_is_used_by_more():
    """Until the claim is tried again, others take what the quota has got."""
    more = {"patch": {"spec": {"hard": {DEVICES: "3"}}}, "of": "resourcequota/lab/few"}
    two = claim("two", "lab", ask("c", count=2))
    return (*quota_that_refuses(), more, {"apply": [two]})


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


def placed_when_its_time_was_over():
    late = {"key": "x.test/hot", "operator": "Exists", "effect": "NoExecute",
            "tolerationSeconds": 60}  # fmt: skip
    return (
        {"apply": [space("lab"), class_of("c", DRIVER), node("n"),
                   slice_of("s", DRIVER, "n", [{"name": "x"}], nodeName="n"),
                   rule("hot", DRIVER, key="x.test/hot", effect="NoExecute")]},
        {"wait": 120},
        {"apply": [claim("want", "lab", ask("c", tolerations=[late])),
                   pod("job", "lab", claim="want")]},
        {"wait": 30},
    )  # fmt: skip


def kubelet_that_is_off():
    here = node("n")
    here["metadata"]["annotations"] = {"redra.dev/kubelet": "off"}
    return (
        {"apply": [space("lab"), class_of("c", DRIVER), here,
                   slice_of("s", DRIVER, "n", [{"name": "x"}], nodeName="n"),
                   claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
        {"wait": 90},
        {"apply": [space("later")]},
    )  # fmt: skip


def class_that_was_deleted():
    return (
        {"apply": [space("lab"), class_of("c", DRIVER), node("n"),
                   slice_of("s", DRIVER, "n", [{"name": "x"}], nodeName="n")]},
        {"delete": "deviceclass/c"},
        {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
        {"wait": 5},
    )  # fmt: skip


def node_without_processors_left():
    big = pod("big", "lab", claim="none")
    del big["spec"]["resourceClaims"]
    big["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "15500m"}}
    return (
        {"apply": [space("lab"), class_of("c", DRIVER), node("n"), big,
                   slice_of("s", DRIVER, "n", [{"name": "x"}], nodeName="n")]},
        {"wait": 5},
        {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
        {"wait": 5},
    )  # fmt: skip


def node_that_lacks_three_resources():
    big, job = pod("big", "lab", claim="none"), pod("job", "lab", claim="want")
    del big["spec"]["resourceClaims"]
    big["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "15500m", "memory": "1Gi"}}
    job["spec"]["containers"][0].setdefault("resources", {})["requests"] = {
        "cpu": "1",
        "memory": "9000Gi",
        "x.test/card": "1",
    }
    job["spec"]["containers"][0]["resources"]["limits"] = {"x.test/card": "1"}
    return (
        {"apply": [space("lab"), class_of("c", DRIVER), node("n"), node("m"), big,
                   slice_of("s", DRIVER, "n", [{"name": "x"}], nodeName="n")]},
        {"wait": 5},
        {"apply": [claim("want", "lab", ask("c")), job]},
        {"wait": 5},
    )  # fmt: skip


ROWS = [
    (node_that_lacks_three_resources, "pod/job", " of which its pod requests 15.5; this pod "),
    (node_that_lacks_three_resources, "pod/job", " of which its pod requests 1Gi; this pod "),
    (node_that_lacks_three_resources, "pod/job", "node m has 64Gi memory; this pod "),
    (node_that_lacks_three_resources, "pod/job",
     "nodes m, n offer no x.test/card; this pod requests 1"),
    (node_without_processors_left, "pod/job",
     "node n has 16 cpu, of which its pod requests 15.5; this pod requests 1"),
    (node_without_processors_left, "pod/job", "pod lab/big requests 15.5"),
    (class_that_was_deleted, "deviceclass/c", "1 pod waits for it: lab/job"),
    (namespace_without_its_label, "resourceclaimtemplate/see", "1 pod names it: job"),
    (namespace_without_its_label, "resourceclaimtemplate/see",
     "no claim was made from it for pod job: spec.devices.requests[0].adminAccess: Forbidden"),
    (kubelet_that_is_off, "pod/job",
     "the kubelet of node n has reported nothing about it; the node's annotation "
     "redra.dev/kubelet=off leaves its pods to a real kubelet"),
    (placed_when_its_time_was_over, "pod/job",
     "counts from when the taint was set and was over when the claim got the device"),
    (placed_when_its_time_was_over, "claim/want",
     "its reservation for job was removed: pod is gone"),
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
    (quota_that_refuses, "pod/job", f"have quota few allow 2 of {DEVICES}, or delete what uses it"),
    (namespace_without_its_label, "pod/job", f"see that namespace lab has the label {LABEL}=true"),
    (namespace_with_its_label_again, "pod/job",
     f"namespace lab has the label {LABEL}=true by now: the next try is not refused for it"),
    (quota_that_was_raised, "pod/job",
     "quota few has room for the claim by now: the next try is not refused for it"),
    (quota_that_is_used_by_more, "pod/job", f"have quota few allow 4 of {DEVICES}, or"),
    (namespace_without_its_label, "pod/job",
     "the claim controller tries again by itself, after pauses that double up to 1000 s; "),
    (namespace_without_its_label, "pod/job",
     f"namespace lab had the label {LABEL}=true until it was changed, by redra"),
    (resource_with_an_s, "pod/job",
     "no DeviceClass stands for x.test/cards; do you mean x.test/card?"),
    (resource_with_an_s, "pod/job",
     "no change of claims or devices was tried: no node looks at devices for the pod"),
]  # fmt: skip


@pytest.mark.parametrize("make", dict.fromkeys(row[0] for row in ROWS))
async def test_answer_names_what_decides(make):
    for _, about, told in (row for row in ROWS if row[0] is make):
        assert told in await why(make(), about, help="true")


@pytest.mark.parametrize("make", [namespace_with_its_label_again, quota_that_was_raised])
async def test_what_is_so_by_now_is_not_proposed(make):
    said = await why(make(), "pod/job", help="true")
    assert "by now: the next try is not refused for it" in said
    assert "have quota" not in said
    assert "see that namespace" not in said


async def test_deletion_is_not_proposed_where_the_claim_alone_is_over_its_quota():
    said = await why(quota_for_less_than_one(), "pod/job", help="true")
    assert f"have quota few allow 2 of {DEVICES}" in said
    assert "delete what uses it" not in said


async def test_claim_with_which_a_pod_waits_is_in_use():
    said = await why(
        (*quota_that_is_used_by_more(),
         {"apply": [pod("more", "lab", claim="two"), pod("done", "lab", claim="none")]},
         {"wait": 5}),
        "resourcequota/few",
    )  # fmt: skip
    assert "claim lab/two counts for 2" in said
    assert "nobody uses it" not in said
    assert "and nobody uses it: it is reserved for no pod" in await why(
        quota_that_is_used_by_more(), "resourcequota/few"
    )


async def test_device_of_the_asked_node_is_not_for_other_nodes():
    twice = [slice_of(name, DRIVER, "n", [{"name": "x"}], of=2, nodeName="n") for name in "st"]
    told = await why((
        {"apply": [space("lab"), class_of("c", DRIVER), node("n"), *twice,
                   claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
        {"wait": 5},
    ))  # fmt: skip
    assert "duplicate device name x" in told
    assert "other nodes" not in told


@pytest.mark.parametrize(("change", "count"), [({}, 1), ({"redra.dev/kubelet": "on"}, 0)])
async def test_pod_that_its_kubelet_leaves_alone_is_a_finding(change, count):
    steps = kubelet_that_is_off()
    steps[0]["apply"][2]["metadata"]["annotations"].update(change)
    made = Invented(told=(), steps=steps).incident()
    async with serving(store=await stored(made)) as server:
        items = (await server.get("/redra/v1/histories/default/findings"))["items"]
    assert sum(one["kind"] == "UnstartedPods" for one in items) == count


@pytest.mark.parametrize(("seconds", "count"), [(30, 0), (90, 1)])
async def test_state_of_a_live_history_is_late_when_nothing_has_happened_for_long(seconds, count):
    steps = (
        {"apply": [space("lab"), class_of("c", DRIVER), node("n"),
                   slice_of("s", DRIVER, "n", [{"name": "x"}], nodeName="n"),
                   claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
        {"wait": 5},
        {"delete": "pod/lab/job", "now": True},
    )  # fmt: skip
    made = Invented(told=(), steps=steps, off=("claims",)).incident()
    now = played(made)[-1].stamp.time + seconds * SECOND
    async with serving(store=await stored(made), clock=VirtualClock(now)) as server:
        items = (await server.get("/redra/v1/histories/default/findings"))["items"]
    broken = [one for one in items if "The pod that a claim is reserved for exists" in one["text"]]
    assert len(broken) == count
