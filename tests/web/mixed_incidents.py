"""Incidents of two causes at once, and reported ones, their causes written down before a look."""

from tests.web.deeper_incidents import BY
from tests.web.field_incidents import told_by_kubelet
from tests.web.invented import (
    Invented,
    ask,
    cel,
    claim,
    class_of,
    driver_pod,
    node,
    pod,
    rule,
    slice_of,
    space,
)
from tests.web.night_incidents import container_waits
from tests.web.reported_incidents import lab, one


def restarted_driver_amid_a_drain(new):
    """A node is cordoned for a drain, and the driver of the other one publishes halfway again.

    The pod that was moved fits on neither: both causes count.
    """
    driver, here, there = f"{new('d')}.test", new("here"), new("there")
    pools = [
        slice_of(f"{name}-{number}", driver, name, [{"name": f"x{number}"}], of=2, nodeName=name)
        for name in (here, there)
        for number in (1, 2)
    ]
    half = {"name": there, "generation": 2, "resourceSliceCount": 2}
    return Invented(
        about="job",
        told=(rf"{here}\b.{{0,120}}unschedulable", rf"{there}\b.{{0,200}}incomplete: 1 of 2",
              rf"cordoned.{{0,60}}{BY}"),
        steps=(
            {"apply": [space("lab"), class_of("c", driver), node(here), node(there), *pools]},
            {"wait": 30},
            {"patch": {"spec": {"unschedulable": True}}, "of": f"node/{here}"},
            {"wait": 10},
            {"patch": {"spec": {"pool": half}}, "of": f"resourceslice/{there}-1"},
            {"wait": 10},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 30},
        ),
    )  # fmt: skip


def node_was_deleted_under_its_pod(new):
    """A node was deleted, and its pod stays, with the claim that somebody wants to delete."""
    driver, here = f"{new('d')}.test", new("gone")
    return Invented(
        about="resourceclaim/one",
        told=(rf"node {here}\b.{{0,60}}was deleted.{{0,9}}{BY}",
              r"delete-protection", r"reserved for pod (lab/)?job|pod (lab/)?job"),
        off=("kubelet", "garbage"),
        steps=(
            {"apply": lab(driver, slice_of("s", driver, "fab", [{"name": "x"}], allNodes=True),
                          on=here)},
            {"apply": [claim("one", "lab", ask("c")), pod("job", "lab", claim="one")]},
            {"wait": 30},
            {"delete": f"node/{here}"},
            {"wait": 10},
            {"delete": "resourceclaim/lab/one"},
            {"wait": 30},
        ),
    )  # fmt: skip


def first_choice_is_tainted(new):
    """A pod runs with its second choice, because a rule keeps it from the first."""
    driver, hot, key = f"{new('d')}.test", new("hot"), f"x.test/{new('burn')}"
    devices = [{"name": "big", "attributes": {"size": {"int": 80}}},
               {"name": "small", "attributes": {"size": {"int": 40}}}]  # fmt: skip
    size = f"device.attributes['{driver}'].size"
    wanted = {"name": "dev", "firstAvailable": [
        {"name": "large", "deviceClassName": "c", "selectors": cel(f"{size} >= 80")},
        {"name": "any", "deviceClassName": "c"}]}  # fmt: skip
    tree = rule(hot, driver, key=key, effect="NoSchedule")
    tree["spec"]["deviceSelector"]["device"] = "big"
    return Invented(
        about="resourceclaim/want",
        told=(r"dev/large\b", rf"big: taint {key}:NoSchedule by rule {hot}\b", r"dev/any\b"),
        steps=(
            {"apply": [*lab(driver, slice_of("s", driver, "n", devices, nodeName="n")), tree]},
            {"wait": 10},
            {"apply": [claim("want", "lab", wanted), pod("job", "lab", claim="want")]},
            {"wait": 30},
        ),
    )  # fmt: skip


def booted(boot):
    """A part of the status of a node."""
    names = ("machineID", "systemUUID", "kernelVersion", "osImage", "containerRuntimeVersion",
             "kubeletVersion", "kubeProxyVersion", "operatingSystem", "architecture")  # fmt: skip
    return {"nodeInfo": {**dict.fromkeys(names, "x"), "bootID": boot}}


def runtime_does_not_know_the_device(new):
    """A node was restarted, and its runtime has lost what the driver had written for it.

    kubernetes/kubernetes 141433.
    """
    driver, here = f"{new('d')}.test", new("node")
    said = f"unresolvable CDI devices k8s.{driver}/gpu=claim-x"
    broken = container_waits("CreateContainerError", restarts=2)
    broken["containerStatuses"][0]["state"]["waiting"]["message"] = said
    return Invented(
        about="job",
        told=("CreateContainerError", f"unresolvable CDI devices k8s.{driver}/gpu=claim-x",
              rf"x of {driver}/{here}\b",
              rf"node {here} was rebooted while the pod was there: .{{0,40}}by redra"),
        off=("kubelet",),
        steps=(
            {"apply": lab(driver, one(driver, on=here), on=here)},
            {"status": booted("first"), "of": f"node/{here}"},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 5},
            {"status": booted("second"), "of": f"node/{here}"},
            {"status": broken, "of": "pod/lab/job"},
            {"apply": [told_by_kubelet(new, "job", "Failed", f"Error: {said}")]},
            {"wait": 300},
        ),
    )  # fmt: skip


def node_was_rebooted_by_its_event(new):
    """The node does not say which boot it is of: only its kubelet's Event names the reboot."""
    driver, here = f"{new('d')}.test", new("node")
    said = f"unresolvable CDI devices k8s.{driver}/gpu=claim-x"
    broken = container_waits("CreateContainerError", restarts=2)
    broken["containerStatuses"][0]["state"]["waiting"]["message"] = said
    message = f"Node {here} has been rebooted, boot id: second"
    event = told_by_kubelet(new, here, "Rebooted", message)
    event["involvedObject"] = {"apiVersion": "v1", "kind": "Node", "name": here, "uid": here}
    event |= {"count": 1, "lastTimestamp": "2026-01-02T03:00:10Z"}
    return Invented(
        about="job",
        told=(said, f"node {here} was rebooted while the pod was there: its kubelet said so at "
              "2026-01-02T03:00:10Z"),
        off=("kubelet",),
        steps=(
            {"apply": lab(driver, one(driver, on=here), on=here)},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 20},
            {"apply": [event]},
            {"status": broken, "of": "pod/lab/job"},
            {"wait": 300},
        ),
    )  # fmt: skip


def stopped_driver_keeps_a_pod_from_ending(new):
    """A driver was stopped, and a pod that was deleted cannot end without it.

    kubernetes/kubernetes 129402.
    """
    driver, plugin, here = f"{new('d')}.test", new("plugin"), new("node")
    said = f"error killing pod: unprepare dynamic resources: DRA driver {driver} is not registered"
    return Invented(
        about="job",
        told=(rf"DRA driver {driver} is not registered",
              rf"pod drivers/{plugin}\b.{{0,120}}was deleted.{{0,40}}, by redra",
              r"terminating|deletion was asked for"),
        off=("kubelet",),
        steps=(
            {"apply": [*lab(driver, one(driver, on=here), on=here), space("drivers"),
                       driver_pod(plugin, here)]},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 5},
            {"status": {"phase": "Running"}, "of": "pod/lab/job"},
            {"delete": f"pod/drivers/{plugin}", "now": True},
            {"wait": 60},
            {"delete": "pod/lab/job"},
            {"wait": 30},
            {"apply": [told_by_kubelet(new, "job", "FailedKillPod", said)]},
            {"wait": 300},
        ),
    )  # fmt: skip


def card_is_published_under_another_name(new):
    """A restarted driver names its only card otherwise, and a second pod gets the same card."""
    driver, old, name = f"{new('d')}.test", new("gpu"), new("uuid")
    serial = {"attributes": {"serial": {"string": new("sn")}}}
    return Invented(
        about="first",
        told=(rf"{driver}/n/{old}\b", rf"{name}\b", r"is not published any more",
              r"second\b|lab/two"),
        steps=(
            {"apply": lab(driver, slice_of("s", driver, "n", [{"name": old, **serial}],
                                           nodeName="n"))},
            {"apply": [claim("one", "lab", ask("c")), pod("first", "lab", claim="one")]},
            {"wait": 30},
            {"apply": [slice_of("s", driver, "n", [{"name": name, **serial}], generation=2,
                                nodeName="n")]},
            {"wait": 30},
            {"apply": [claim("two", "lab", ask("c")), pod("second", "lab", claim="two")]},
            {"wait": 30},
        ),
    )  # fmt: skip


def claim_was_made_by_hand(new):
    """Somebody deleted the claim of a waiting pod and made one of its name, which is not its own.

    The pod waits for a claim that it owns.
    """
    driver, name = f"{new('d')}.test", new("hand")
    waiting = pod("job", "lab", template="t")
    waiting["status"] = {"resourceClaimStatuses": [{"name": "d", "resourceClaimName": name}]}
    return Invented(
        about="job",
        told=(rf"{name}\b", r"(not owned|does not own|owner)"),
        off=("claims",),
        steps=(
            {"apply": [*lab(driver, one(driver)), claim(name, "lab", ask("c"))]},
            {"apply": [waiting]},
            {"status": waiting["status"], "of": "pod/lab/job"},
            {"wait": 60},
        ),
    )  # fmt: skip


def extended_resource_is_spread_over_nodes(new):
    """A container wants two of an extended resource, and each node has one device of its class."""
    driver, card = f"{new('d')}.test", f"x.test/{new('card')}"
    tree = class_of("c", driver)
    tree["spec"]["extendedResourceName"] = card
    wanted = pod("job", "lab", claim="no")
    del wanted["spec"]["resourceClaims"]
    amounts = {card: "2", "cpu": "1"}
    wanted["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    return Invented(
        about="job",
        told=(rf"{card}", r"wants 2 devices, 1 of 1 can be taken", r"2 nodes"),
        steps=(
            {"apply": [space("lab"), tree, node("n"), node("m"), one(driver),
                       slice_of("t", driver, "m", [{"name": "y"}], nodeName="m")]},
            {"apply": [wanted]},
            {"wait": 30},
        ),
    )  # fmt: skip


MIXED = [
    restarted_driver_amid_a_drain,
    node_was_deleted_under_its_pod,
    first_choice_is_tainted,
    runtime_does_not_know_the_device,
    node_was_rebooted_by_its_event,
    stopped_driver_keeps_a_pod_from_ending,
    card_is_published_under_another_name,
    claim_was_made_by_hand,
    extended_resource_is_spread_over_nodes,
]
