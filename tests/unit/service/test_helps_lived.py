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


CASES = {
    patch_that_hides: "remove resourceslicepatch hide",
    attribute_left_out: f"set attribute {ROOT} of device {DRIVER}/n0/b to pci0000:00 by a "
    "resourceslicepatch",
    attribute_that_a_selector_needs: f"set attribute {DRIVER}/model of device {DRIVER}/n0/b to "
    "large by a resourceslicepatch",
    cordon: "uncordon node n0",
    cordon_and_count: "uncordon node n0 and lower count to 2 in request gpu of claim default/want",
    drain_and_rule: "remove taint example.com/drain:NoSchedule of node n0 and remove "
    "devicetaintrule service",
}


def edit_claim(cluster, edit):
    """A claim never changes: the pod and its claim are made anew."""
    tree = json_tree.copy(cluster.must("resourceclaims", "want"))
    cluster.delete("pods", "p")
    cluster.settle()
    if cluster.get("resourceclaims", "want") is not None:
        cluster.delete("resourceclaims", "want")
    cluster.settle()
    edit(tree["spec"]["devices"])
    cluster.create("resource.k8s.io/v1", "ResourceClaim", "want", spec=tree["spec"])
    cluster.pod("p", claim="want")


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
    r"uncordon node (\S+)": lambda cluster, node: cluster.patch(
        "nodes", node, {"spec": {"unschedulable": False}}
    ),
    r"remove taint \S+ of node (\S+)": lambda cluster, node: cluster.patch(
        "nodes", node, {"spec": {"taints": None}}
    ),
    r"remove resourceslicepatch (\S+)": lambda cluster, name: cluster.delete(
        "resourceslicepatches", name, version="v1alpha3"
    ),
    r"remove devicetaintrule (\S+)": lambda cluster, name: cluster.delete("devicetaintrules", name),
    r"release claim default/(\S+)": release,
    r"set attribute (\S+) of device [^/]+/[^/]+/(\S+) to (\S+) by a resourceslicepatch": (
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


async def test_what_a_driver_published_is_never_overruled():
    cluster = begun({"name": "a", "attributes": {"model": {"string": "small"}}},
                    {"name": "b", "attributes": {"model": {"string": "large"}}})  # fmt: skip
    selector = {"cel": {"expression": f"device.attributes['{DRIVER}'].model == 'large'"}}
    asked = [request(selectors=[selector], allocationMode="ExactCount", count=2)]
    pod_of(cluster, requests=asked)
    async with asking(cluster) as ask:
        answer = await ask("pod", "p", help=True)
    assert not any("resourceslicepatch" in text for text in texts(answer.reason))


@pytest.mark.parametrize("is_cordoned", [False, True])
async def test_only_claim_is_released_that_is_allocated_for_another_node(is_cordoned):
    cluster = begun({"name": "a"})
    cluster.create("resource.k8s.io/v1", "ResourceClaim", "want",
                   spec={"devices": {"requests": [request()]}})  # fmt: skip
    cluster.pod("first", claim="want")
    cluster.settle()
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
