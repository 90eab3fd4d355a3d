"""Incidents of the field that lie in nodes, with the words of their causes, fixed before a look."""

from tests.web.field_incidents import told_by_kubelet
from tests.web.invented import Invented, ask, claim, node, pod, slice_of
from tests.web.reported_incidents import lab, one

HOST = "kubernetes.io/hostname"


def _on(made, name):
    made["spec"]["nodeSelector"] = {HOST: name}
    return made


def shared_claims_are_on_different_nodes(new):
    """A pod uses two claims that two other pods have, each on its own node."""
    driver, first, second = f"{new('d')}.test", new("node"), new("node")
    both = pod("job", "lab", claim="model")
    both["spec"]["resourceClaims"].append({"name": "e", "resourceClaimName": "feed"})
    return Invented(
        about="job",
        told=(rf"claim lab/model is allocated on node {first}, and reserved for loader",
              rf"claim lab/feed is allocated on node {second}, and reserved for reader"),
        steps=(
            {"apply": [*lab(driver, one(driver, on=first), on=first), node(second),
                       one(driver, "other", on=second),
                       claim("model", "lab", ask("c")), claim("feed", "lab", ask("c")),
                       _on(pod("loader", "lab", claim="model"), first),
                       _on(pod("reader", "lab", claim="feed"), second)]},
            {"wait": 5},
            {"apply": [both]},
            {"wait": 5},
        ),
    )  # fmt: skip


def pods_without_devices_fill_the_node(new):
    """The only node with a free device has no cpu left: pods that need no device use it up."""
    driver, here, large = f"{new('d')}.test", new("node"), new("large")
    other = _on(pod(large, "lab", claim="no"), here)
    del other["spec"]["resourceClaims"]
    other["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "16"}}
    return Invented(
        about="job",
        told=(rf"node {here} has 16 cpu, of which its pod requests 16; this pod requests 1",
              rf"pod lab/{large} requests 16"),
        steps=(
            {"apply": [*lab(driver, one(driver, on=here), on=here), node(new("empty")), other]},
            {"wait": 5},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 5},
        ),
    )  # fmt: skip


def node_died_before_the_pod_started(new):
    """A pod is bound to a node whose kubelet has just stopped, and nothing starts it."""
    driver, here = f"{new('d')}.test", new("node")
    gone = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown",
            "message": "Kubelet stopped posting node status."}  # fmt: skip
    return Invented(
        about="job",
        told=(rf"the kubelet of node {here} has reported nothing about it",
              r"the node is not ready since .{0,40}NodeStatusUnknown: Kubelet stopped posting"),
        off=("kubelet",),
        steps=(
            {"apply": lab(driver, one(driver, on=here), on=here)},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 5},
            {"status": {"conditions": [gone]}, "of": f"node/{here}"},
            {"wait": 600},
        ),
    )  # fmt: skip


def driver_is_too_slow(new):
    """The driver takes longer to prepare a device than the kubelet waits."""
    driver, here = f"{new('d')}.test", new("node")
    said = "Failed to prepare dynamic resources: prepare dynamic resources: NodePrepareResources "
    said += "failed: rpc error: code = DeadlineExceeded desc = context deadline exceeded"
    return Invented(
        about="job",
        told=("DeadlineExceeded desc = context deadline exceeded", rf"x of {driver}/{here}\b"),
        off=("kubelet",),
        steps=(
            {"apply": [*lab(driver, on=here),
                       slice_of("s", driver, here, [{"name": "x"}], nodeName=here)]},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 5},
            {"apply": [told_by_kubelet(new, "job", "FailedPrepareDynamicResources", said)]},
            {"wait": 300},
        ),
    )  # fmt: skip


def disk_of_the_only_node_is_full(new):
    """Images have filled the disk of the node with the devices, and its taint follows that."""
    driver, words = f"{new('d')}.test", f"{new('full')} of 100% used"
    pressure = {"type": "DiskPressure", "status": "True", "reason": "Full", "message": words}
    ready = {"type": "Ready", "status": "True"}
    taint = {"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}
    return Invented(
        about="job",
        told=(rf"node n is tainted node.kubernetes.io/disk-pressure:NoSchedule "
              rf"\(DiskPressure: {words}\)",),
        steps=({"apply": [*lab(driver, one(driver)), node("m")]}, {"wait": 5},
               {"patch": {"spec": {"taints": [taint]}}, "of": "node/n"},
               {"status": {"conditions": [ready, pressure]}, "of": "node/n"}, {"wait": 5},
               {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
               {"wait": 5}),
    )  # fmt: skip


NODES = (
    shared_claims_are_on_different_nodes,
    pods_without_devices_fill_the_node,
    node_died_before_the_pod_started,
    driver_is_too_slow,
    disk_of_the_only_node_is_full,
)
