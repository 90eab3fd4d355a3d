"""What would help does help: each proposal is carried out in a twin cluster, and the pod runs."""

import re

import pytest

from app.domain.values import json_tree
from tests.cluster import DRIVER, Cluster
from tests.unit.service.test_explaining import asking, texts

ROOT = "resource.kubernetes.io/pcieRoot"


def patch(name, attributes, device=""):
    chosen = {"driver": DRIVER} | ({"device": device} if device else {})
    return {
        "apiVersion": "resource.k8s.io/v1alpha3",
        "kind": "ResourceSlicePatch",
        "metadata": {"name": name},
        "spec": {"devices": {"filter": chosen, "attributes": attributes}},
    }


def pod_of(cluster, **spec):
    cluster.create("resource.k8s.io/v1", "ResourceClaim", "want", spec={"devices": spec})
    cluster.pod("p", claim="want")
    return cluster.settle()


def begun(*devices, **more):
    cluster = Cluster()
    cluster.node("n0")
    cluster.slice("n0", list(devices))
    cluster.device_class(**more)
    return cluster


def request(name="gpu", **more):
    return {"name": name, "exactly": {"deviceClassName": "gpu", **more}}


def patch_that_hides():
    """An administrator's patch gives the device another model."""
    cluster = begun({"name": "a", "attributes": {"model": {"string": "large"}}})
    cluster.apply(patch("hide", {f"{DRIVER}/model": {"string": "small"}}))
    selector = {"cel": {"expression": f"device.attributes['{DRIVER}'].model == 'large'"}}
    return pod_of(cluster, requests=[request(selectors=[selector])])


def attribute_left_out():
    """One of two devices does not say at which root it is."""
    cluster = begun({"name": "a", "attributes": {ROOT: {"string": "pci0000:00"}}}, {"name": "b"})
    both = [request("left"), request("right")]
    return pod_of(cluster, requests=both, constraints=[{"matchAttribute": ROOT}])


def attribute_that_a_selector_needs():
    """The only free device lacks the attribute that the held one has."""
    cluster = begun({"name": "a", "attributes": {"model": {"string": "large"}}}, {"name": "b"})
    selector = {
        "cel": {"expression": f"device.attributes['{DRIVER}'].?model.orValue('') == 'large'"}
    }
    cluster.create("resource.k8s.io/v1", "ResourceClaim", "held",
                   spec={"devices": {"requests": [request(selectors=[selector])]}})  # fmt: skip
    cluster.pod("holds", claim="held")
    cluster.settle()
    return pod_of(cluster, requests=[request(selectors=[selector])])


def cordon():
    """The node with the device is cordoned."""
    cluster = begun({"name": "a"})
    cluster.patch("nodes", "n0", {"spec": {"unschedulable": True}})
    return pod_of(cluster, requests=[request()])


def cordon_and_count():
    """The node is cordoned, and has fewer devices than are asked for."""
    cluster = begun({"name": "a"}, {"name": "b"})
    cluster.patch("nodes", "n0", {"spec": {"unschedulable": True}})
    return pod_of(cluster, requests=[request(allocationMode="ExactCount", count=3)])


def drain_and_rule():
    """The node was tainted for its maintenance, its devices by a rule."""
    cluster = begun({"name": "a"})
    taint = {"key": "example.com/drain", "effect": "NoSchedule"}
    cluster.patch("nodes", "n0", {"spec": {"taints": [taint]}})
    cluster.rule("service", effect="NoSchedule")
    cluster.settle()
    return pod_of(cluster, requests=[request()])


def label_that_no_node_has():
    """The pod selects a label that the node with the device lacks."""
    cluster = begun({"name": "a"})
    return pod_with(cluster, nodeSelector={"disk": "ssd"})


def affinity_that_no_node_fits():
    """The pod's node affinity wants another zone; the label is the cloud's, not the user's."""
    cluster = begun({"name": "a"})
    zone = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["z1"]}
    large = {"key": "size", "operator": "Gt", "values": ["4"]}
    return pod_with(cluster, affinity=node_affinity({"matchExpressions": [zone, large]}))


def affinity_by_operators():
    """Two terms; the second needs one label less."""
    cluster = begun({"name": "a"})
    cluster.patch("nodes", "n0", {"metadata": {"labels": {"spot": "yes", "size": "4"}}})
    first = [{"key": "disk", "operator": "Exists"}, {"key": "fast", "operator": "Exists"},
             {"key": "spot", "operator": "NotIn", "values": ["yes"]}]  # fmt: skip
    second = [{"key": "size", "operator": "Gt", "values": ["4"]},
              {"key": "spot", "operator": "DoesNotExist"}]  # fmt: skip
    terms = [{"matchExpressions": first}, {"matchExpressions": second}]
    return pod_with(cluster, affinity=node_affinity(*terms))


def request_over_what_is_free():
    """Another pod uses all but 12 of 32 CPUs."""
    cluster = begun({"name": "a"})
    cluster.pod("hog", requests={"cpu": "20"})
    cluster.settle()
    return pod_with(cluster, requests={"cpu": "16"})


def requests_for_two_resources():
    """CPU and memory are both short."""
    cluster = begun({"name": "a"})
    cluster.pod("hog", requests={"cpu": "31500m", "memory": "60Gi"})
    cluster.settle()
    return pod_with(cluster, requests={"cpu": "1", "memory": "8Gi"})


def spread_that_forbids():
    """The other zone has no device, and the spread allows no further pod in this one."""
    cluster = begun({"name": "a"}, {"name": "b"})
    cluster.node("n1")
    spread = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname",
              "whenUnsatisfiable": "DoNotSchedule",
              "labelSelector": {"matchLabels": {"app": "w"}}}  # fmt: skip
    more = {"topologySpreadConstraints": [spread], "labels": {"app": "w"}}
    cluster.create("resource.k8s.io/v1", "ResourceClaim", "of-first",
                   spec={"devices": {"requests": [request()]}})  # fmt: skip
    labelled_pod(cluster, "first", "of-first", **more)
    cluster.settle()
    return pod_with(cluster, **more)


def anti_affinity_that_forbids():
    """The only node has a pod that the pod avoids."""
    cluster = begun({"name": "a"})
    labelled_pod(cluster, "first", "", labels={"app": "w"})
    cluster.settle()
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "w"}}}
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return pod_with(cluster, affinity={"podAntiAffinity": rule})


def taint_of_a_team():
    """The node is tainted for a team."""
    cluster = begun({"name": "a"})
    taint = {"key": "example.com/team", "value": "x", "effect": "NoSchedule"}
    cluster.patch("nodes", "n0", {"spec": {"taints": [taint]}})
    return pod_with(cluster)


def label_and_cordon():
    """The node lacks a label and is cordoned."""
    cluster = begun({"name": "a"})
    cluster.patch("nodes", "n0", {"spec": {"unschedulable": True}})
    return pod_with(cluster, nodeSelector={"disk": "ssd"})


def label_and_held_device():
    """The node lacks a label, and its only device is held."""
    cluster = begun({"name": "a"})
    cluster.create("resource.k8s.io/v1", "ResourceClaim", "held",
                   spec={"devices": {"requests": [request()]}})  # fmt: skip
    cluster.pod("holds", claim="held")
    cluster.settle()
    return pod_with(cluster, nodeSelector={"disk": "ssd"})


def ports_of_one_number():
    """A pod of the only node has a port of the host under two protocols; the other port is free."""
    cluster = begun({"name": "a"})
    used = [{"containerPort": 53, "hostPort": 8053, "protocol": name} for name in ("TCP", "UDP")]
    labelled_pod(cluster, "first", "", ports=used)
    cluster.settle()
    return pod_with(cluster, ports=[*used, {"containerPort": 80, "hostPort": 8080}])


def pod_with(cluster, **spec):
    cluster.create("resource.k8s.io/v1", "ResourceClaim", "want",
                   spec={"devices": {"requests": [request()]}})  # fmt: skip
    labelled_pod(cluster, "p", "want", **spec)
    return cluster.settle()


def labelled_pod(cluster, name, claim, labels=None, requests=None, ports=(), **spec):
    container = {"name": "main", "image": "busybox:1", "resources": {"requests": requests or {}},
                 "ports": [*ports]}  # fmt: skip
    if claim:
        spec["resourceClaims"] = [{"name": "c", "resourceClaimName": claim}]
        container["resources"]["claims"] = [{"name": "c"}]
    cluster.apply({"apiVersion": "v1", "kind": "Pod",
                   "metadata": {"name": name, "labels": labels or {}},
                   "spec": {"containers": [container], **spec}})  # fmt: skip


def node_affinity(*terms):
    required = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


CASES = {
    patch_that_hides: "remove ResourceSlicePatch hide",
    attribute_left_out: f"set attribute {ROOT} of device {DRIVER}/n0/b to pci0000:00, in "
    "its driver or by a ResourceSlicePatch",
    attribute_that_a_selector_needs: f"set attribute {DRIVER}/model of device {DRIVER}/n0/b to "
    "large, in its driver or by a ResourceSlicePatch",
    cordon: "uncordon node n0",
    cordon_and_count: "uncordon node n0 and lower count to 2 in request gpu of claim default/want",
    drain_and_rule: "remove taint example.com/drain:NoSchedule of node n0 and remove "
    "DeviceTaintRule service",
    label_that_no_node_has: "label node n0 with disk=ssd",
    affinity_that_no_node_fits: "drop topology.kubernetes.io/zone In z1 from the node affinity and "
    "size Gt 4 from the node affinity of the pod",
    affinity_by_operators: "label node n0 with size=5, remove label spot of node n0",
    request_over_what_is_free: "request 12 instead of 16 cpu in container main",
    requests_for_two_resources: "request 500m instead of 1 cpu in container main and request 4Gi "
    "instead of 8Gi memory in container main",
    spread_that_forbids: "set whenUnsatisfiable of the spread over kubernetes.io/hostname to "
    "ScheduleAnyway",
    anti_affinity_that_forbids: "drop the required pod anti-affinity over kubernetes.io/hostname "
    "of the pod",
    taint_of_a_team: "tolerate taint example.com/team=x:NoSchedule in the pod",
    label_and_cordon: "uncordon node n0 and label node n0 with disk=ssd",
    label_and_held_device: "label node n0 with disk=ssd and release claim default/held",
    ports_of_one_number: "drop host ports 8053/TCP, 8053/UDP of the pod",
}


def edit_claim(cluster, edit):
    """A claim never changes: the pod and its claim are made anew."""
    tree = json_tree.copy(cluster.must("resourceclaims", "want"))
    spec = json_tree.copy(cluster.must("pods", "p"))["spec"]
    cluster.delete("pods", "p")
    cluster.settle()
    if cluster.get("resourceclaims", "want") is not None:
        cluster.delete("resourceclaims", "want")
    cluster.settle()
    edit(tree["spec"]["devices"])
    cluster.create("resource.k8s.io/v1", "ResourceClaim", "want", spec=tree["spec"])
    cluster.create("v1", "Pod", "p", spec=spec)


def edit_pod(cluster, edit):
    """Most of a pod's spec never changes: the pod is made anew."""
    tree = json_tree.copy(cluster.must("pods", "p"))
    cluster.delete("pods", "p")
    cluster.settle()
    edit(tree["spec"])
    metadata = {name: tree["metadata"].get(name, {}) for name in ("name", "labels")}
    cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": tree["spec"]})


def label(cluster, node, added):
    labels = dict(one.split("=") for one in added.split(", "))
    cluster.patch("nodes", node, {"metadata": {"labels": labels}})


def label_anew(cluster, node, added, gone):
    label(cluster, node, added)
    cluster.patch("nodes", node, {"metadata": {"labels": {gone: None}}})


def drop_selected(cluster, _):
    edit_pod(cluster, lambda spec: [spec.pop(name, None) for name in ("nodeSelector", "affinity")])


def ask_for_less(cluster, amount, resource):
    edit_pod(
        cluster,
        lambda spec: spec["containers"][0]["resources"]["requests"].update({resource: amount}),
    )


def drop_ports(cluster, texts):
    def without(spec):
        for port in spec["containers"][0]["ports"]:
            if f"{port['hostPort']}/{port['protocol']}" in texts.split(", "):
                del port["hostPort"]

    edit_pod(cluster, without)


def spread_anyway(cluster, key):
    edit_pod(
        cluster,
        lambda spec: [
            one.update(whenUnsatisfiable="ScheduleAnyway")
            for one in spec["topologySpreadConstraints"]
            if one["topologyKey"] == key
        ],
    )


def tolerate_in_pod(cluster, key, value, effect):
    made = {"key": key, "operator": "Equal", "value": value, "effect": effect}
    edit_pod(cluster, lambda spec: spec.setdefault("tolerations", []).append(made))


def request_of(devices, name):
    return next(one["exactly"] for one in devices["requests"] if one["name"] == name)


def tolerate(devices, name, key, effect):
    made = {"key": key, "operator": "Exists", "effect": effect}
    request_of(devices, name).setdefault("tolerations", []).append(made)


def drop_selector(devices, name, number):
    del request_of(devices, name)["selectors"][int(number)]


def release(cluster, name):
    for pod in cluster.names("pods"):
        entries = cluster.must("pods", pod)["spec"].get("resourceClaims", ())
        if any(one.get("resourceClaimName") == name for one in entries):
            cluster.delete("pods", pod)
            cluster.settle()
            if cluster.get("pods", pod) is not None:
                cluster.kill(pod)
    cluster.settle()


ACTS = {
    r"label node (\S+) with ([^ ]+(?:, \S+=\S+)*)": label,
    r"label node (\S+) with (\S+), remove label (\S+) of node \S+": label_anew,
    r"drop host ports? (.*) of the pod": drop_ports,
    r"drop (.*) of the pod": drop_selected,
    r"request (\S+) instead of \S+ (\S+) in container main": ask_for_less,
    r"set whenUnsatisfiable of the spread over (\S+) to ScheduleAnyway": spread_anyway,
    r"tolerate taint ([^:=]+)=?([^:]*):(\S+) in the pod": tolerate_in_pod,
    r"uncordon node (\S+)": lambda cluster, node: cluster.patch(
        "nodes", node, {"spec": {"unschedulable": False}}
    ),
    r"remove taint \S+ of node (\S+)": lambda cluster, node: cluster.patch(
        "nodes", node, {"spec": {"taints": None}}
    ),
    r"remove ResourceSlicePatch (\S+)": lambda cluster, name: cluster.delete(
        "resourceslicepatches", name, version="v1alpha3"
    ),
    r"remove DeviceTaintRule (\S+)": lambda cluster, name: cluster.delete("devicetaintrules", name),
    r"release claim default/(\S+)": release,
    r"set attribute (\S+) of device [^/]+/[^/]+/(\S+) to (\S+), in its driver or by a .*": (
        lambda cluster, name, device, value: cluster.apply(
            patch("proposed", {name: {"string": value}}, device)
        )
    ),
    r"lower count to (\d+) in request (\S+) of claim \S+": lambda cluster, count, name: edit_claim(
        cluster, lambda devices: request_of(devices, name).update(count=int(count))
    ),
    r"tolerate taint ([^:=]+)[^:]*:(\S+) in request (\S+) of claim \S+": (
        lambda cluster, key, effect, name: edit_claim(
            cluster, lambda devices: tolerate(devices, name, key, effect)
        )
    ),
    r"drop selector #(\d+) .* in request (\S+) of claim \S+": (
        lambda cluster, number, name: edit_claim(
            cluster, lambda devices: drop_selector(devices, name, number)
        )
    ),
    r"drop constraint #(\d+) .* of claim \S+": lambda cluster, index: edit_claim(
        cluster, lambda devices: devices["constraints"].pop(int(index))
    ),
}
"""What a person does who reads a proposal."""


def carry_out(cluster, change):
    for pattern, act in ACTS.items():
        if said := re.fullmatch(pattern, change):
            act(cluster, *said.groups())
            cluster.settle()
            return
    raise AssertionError(f"nobody knows how to do this: {change}")


@pytest.mark.parametrize("make", CASES, ids=lambda make: make.__name__)
async def test_proposals_that_are_carried_out_let_the_pod_run(make):
    cluster = make()
    assert "nodeName" not in cluster.must("pods", "p")["spec"]
    async with asking(cluster) as ask:
        answer = await ask("pod", "p", help=True)
    helps = answer.to_json()["helps"]
    assert CASES[make] in [" and ".join(one["changes"]) for one in helps]
    assert any(text.startswith(CASES[make]) for text in texts(answer.reason))
    for proposal in helps:
        twin = make()
        for change in proposal["changes"]:
            carry_out(twin, change)
        twin.wait(400)
        assert twin.must("pods", "p")["spec"].get("nodeName") == proposal["node"], proposal


async def test_port_of_a_pod_in_the_network_of_its_host_is_not_dropped():
    cluster = begun({"name": "a"})
    port = {"containerPort": 8080, "hostPort": 8080}
    labelled_pod(cluster, "first", "", ports=[port])
    cluster.settle()
    pod_with(cluster, hostNetwork=True, ports=[port])
    async with asking(cluster) as ask:
        answer = await ask("pod", "p", help=True)
    assert answer.to_json()["helps"] == []
    assert (
        "1 node refuses the pod before devices are looked at: node(s) didn't have free ports for "
        "the requested pod ports (end the pods that use them, or choose other ports)"
    ) in texts(answer.reason)


async def test_full_node_is_said_to_need_fewer_pods_or_a_higher_limit():
    cluster = begun({"name": "a"})
    cluster.patch("nodes", "n0", {"status": {"allocatable": {"pods": "1"}}}, subresource="status")
    labelled_pod(cluster, "first", "")
    cluster.settle()
    pod_with(cluster)
    async with asking(cluster) as ask:
        answer = await ask("pod", "p", help=True)
    assert (
        "1 node refuses the pod before devices are looked at: Too many pods (end pods there, or "
        "raise maxPods of its kubelet)"
    ) in texts(answer.reason)


async def test_what_a_driver_published_is_never_overruled():
    cluster = begun({"name": "a", "attributes": {"model": {"string": "small"}}},
                    {"name": "b", "attributes": {"model": {"string": "large"}}})  # fmt: skip
    selector = {"cel": {"expression": f"device.attributes['{DRIVER}'].model == 'large'"}}
    asked = [request(selectors=[selector], allocationMode="ExactCount", count=2)]
    pod_of(cluster, requests=asked)
    async with asking(cluster) as ask:
        answer = await ask("pod", "p", help=True)
    assert not any("ResourceSlicePatch" in text for text in texts(answer.reason))


@pytest.mark.parametrize("is_cordoned", [False, True])
async def test_only_claim_is_released_that_is_allocated_for_another_node(is_cordoned):
    cluster = begun({"name": "a"})
    cluster.create("resource.k8s.io/v1", "ResourceClaim", "want",
                   spec={"devices": {"requests": [request()]}})  # fmt: skip
    cluster.pod("first", claim="want")
    cluster.settle()
    cluster.patch("nodes", "n0", {"status": {"allocatable": {"pods": "1"}}}, subresource="status")
    cluster.node("n1")
    cluster.slice("n1", [{"name": "b"}])
    cluster.patch("nodes", "n1", {"spec": {"unschedulable": is_cordoned}})
    cluster.pod("p", claim="want", nodeSelector={"kubernetes.io/hostname": "n1"})
    async with asking(cluster.settle()) as ask:
        (proposal,) = (await ask("pod", "p", help=True)).to_json()["helps"]
    opening = ["uncordon node n1"] if is_cordoned else []
    assert proposal == {"node": "n1", "changes": [*opening, "release claim default/want"]}
    cluster.patch("nodes", "n1", {"spec": {"unschedulable": False}})
    cluster.kill("first")
    cluster.wait(400)
    assert cluster.must("pods", "p")["spec"]["nodeName"] == "n1"
