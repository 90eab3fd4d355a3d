"""Incidents as users of other clusters reported them, with the words that must tell their causes.

The words were written down before anybody had looked at what redra says of them.
"""

from tests.web.invented import (
    Invented,
    ask,
    cel,
    claim,
    class_of,
    driver_pod,
    node,
    pod,
    slice_of,
    space,
    template,
)


def told_by_kubelet(new, about, reason, message):
    """An Event that the kubelet of a node writes about a pod."""
    return {
        "apiVersion": "v1", "kind": "Event", "type": "Warning",
        "metadata": {"name": f"{about}.{new('event')}", "namespace": "lab"},
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "namespace": "lab", "name": about},
        "reason": reason, "message": message, "count": 14,
        "source": {"component": "kubelet"}, "reportingComponent": "kubelet",
    }  # fmt: skip


def driver_died_and_its_slice_stayed(new):
    """A pod gets a device of a driver that has left the node, and its kubelet cannot prepare it.

    kubernetes/kubernetes 141912, kubernetes-sigs/dra-driver-nvidia-gpu 814.
    """
    driver, plugin, here = f"{new('d')}.test", new("plugin"), new("node")
    said = "Failed to prepare dynamic resources: prepare dynamic resources: "
    said += f"DRA driver {driver} is not registered"
    return Invented(
        about="job",
        told=("FailedPrepareDynamicResources", f"DRA driver {driver} is not registered",
              rf"pod drivers/{plugin}\b.{{0,120}}was deleted.{{0,40}}, by redra"),
        off=("kubelet",),
        steps=(
            {"apply": [space("lab"), space("drivers"), class_of("c", driver), node(here),
                       slice_of("s", driver, here, [{"name": "x"}], nodeName=here),
                       driver_pod(plugin, here)]},
            {"wait": 60},
            {"delete": f"pod/drivers/{plugin}", "now": True},
            {"wait": 60},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 5},
            {"apply": [told_by_kubelet(new, "job", "FailedPrepareDynamicResources", said)]},
            {"wait": 300},
        ),
    )  # fmt: skip


def template_was_mended_but_its_claim_is_old(new):
    """A template asked for too much and was made anew; the claim of the waiting pod stays."""
    driver, name = f"{new('d')}.test", new("template")
    card = [{"name": "card-0", "attributes": {"gen": {"int": 4}}}]

    def asking(generation):
        wanted = cel(f"device.attributes['{driver}'].gen >= {generation}")
        return template(name, "lab", ask("c", selectors=wanted))

    return Invented(
        about="job",
        told=(rf"device\.attributes\['{driver}'\]\.gen >= 9",
              rf"template (lab/)?{name}\b.{{0,160}}(changed|anew|different)"),
        steps=(
            {"apply": [space("lab"), class_of("c", driver), node("n"),
                       slice_of("s", driver, "n", card, nodeName="n"), asking(9)]},
            {"wait": 5},
            {"apply": [pod("job", "lab", template=name)]},
            {"wait": 60},
            {"delete": f"resourceclaimtemplate/lab/{name}"},
            {"apply": [asking(4)]},
            {"wait": 60},
        ),
    )  # fmt: skip


def dead_node_keeps_a_device_of_the_fabric(new):
    """A pod ends on a node whose kubelet is gone, so its claim keeps what others could use."""
    driver, first, here = f"{new('d')}.test", new("first"), new("node")
    gone = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown",
            "message": "Kubelet stopped posting node status.",
            "lastTransitionTime": "2026-01-02T03:01:00Z"}  # fmt: skip
    return Invented(
        about="next",
        told=(rf"allocated to lab/{first}", r"pod (lab/)?old\b.{0,200}(terminat|delet)",
              rf"node {here}\b.{{0,80}}not ready"),
        off=("kubelet",),
        steps=(
            {"apply": [space("lab"), class_of("c", driver), node(here),
                       slice_of("s", driver, "fab", [{"name": "x"}], allNodes=True),
                       claim(first, "lab", ask("c")), pod("old", "lab", claim=first)]},
            {"wait": 30},
            {"apply": [node(new("other"))]},
            {"status": {"conditions": [gone]}, "of": f"node/{here}"},
            {"wait": 60},
            {"delete": "pod/lab/old"},
            {"wait": 60},
            {"apply": [claim("want", "lab", ask("c")), pod("next", "lab", claim="want")]},
            {"wait": 20},
        ),
    )  # fmt: skip


def driver_upgrade_renamed_an_attribute(new):
    """A new version of a driver publishes an attribute under another name than claims ask for."""
    driver, name, old, now = f"{new('d')}.test", new("slice"), new("model"), new("product")

    def cards(attribute):
        return [{"name": f"card-{n}", "attributes": {attribute: {"string": "A100"}}}
                for n in range(2)]  # fmt: skip

    return Invented(
        about="job",
        told=(rf"{old}\b", rf"slice {name}\b.{{0,200}}{old}.{{0,120}}{now}.{{0,120}}by redra"),
        steps=(
            {"apply": [space("lab"), class_of("c", driver), node("n"),
                       slice_of(name, driver, "n", cards(old), nodeName="n")]},
            {"wait": 60},
            {"apply": [slice_of(name, driver, "n", cards(now), generation=2, nodeName="n")]},
            {"wait": 60},
            {"apply": [claim("want", "lab", ask("c", selectors=cel(
                           f"device.attributes['{driver}'].{old} == 'A100'"))),
                       pod("job", "lab", claim="want")]},
            {"wait": 5},
        ),
    )  # fmt: skip


def scheduler_is_misspelled(new):
    """The name of the pod's scheduler has two letters changed, so nobody looks at the pod."""
    driver = f"{new('d')}.test"
    wanted = pod("job", "lab", claim="want")
    wanted["spec"]["schedulerName"] = "defualt-scheduler"
    return Invented(
        about="job",
        told=("scheduler defualt-scheduler", r"\bdefault-scheduler"),
        steps=(
            {"apply": [space("lab"), class_of("c", driver), node("n"),
                       slice_of("s", driver, "n", [{"name": "x"}], nodeName="n"),
                       claim("want", "lab", ask("c")), wanted]},
            {"wait": 60},
        ),
    )  # fmt: skip


def autoscaler_removes_the_only_node(new):
    """An autoscaler has marked the node with the only free device for removal."""
    driver, here, mark = f"{new('d')}.test", new("node"), "ToBeDeletedByClusterAutoscaler"
    taint = {"key": mark, "value": "1767322860", "effect": "NoSchedule"}
    return Invented(
        about="job",
        told=(rf"{here}: node\(s\) had untolerated taint", mark,
              rf"node {here}\b.{{0,120}}{mark}.{{0,120}}by redra"),
        steps=(
            {"apply": [space("lab"), class_of("c", driver), node(here), node(new("other")),
                       slice_of("s", driver, here, [{"name": "x"}], nodeName=here)]},
            {"wait": 60},
            {"patch": {"spec": {"taints": [taint]}}, "of": f"node/{here}"},
            {"wait": 60},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 5},
        ),
    )  # fmt: skip


def partner_on_the_same_root_is_in_use(new):
    """Card and network card have to share a root, and a pod has taken only the network card."""
    driver, other, first = f"{new('d')}.test", f"{new('e')}.test", new("first")
    root = "resource.kubernetes.io/pcieRoot"

    def at(name, value):
        return {"name": name, "attributes": {root: {"string": value}}}

    return Invented(
        about="job",
        told=(rf"nic-0\b.{{0,80}}allocated to lab/{first}",
              r"pcieRoot is pci0000:80, which does not match pci0000:00"),
        steps=(
            {"apply": [space("lab"), class_of("c", driver), class_of("e", other), node("n"),
                       slice_of("s", driver, "n", [at("card", "pci0000:00")], nodeName="n"),
                       slice_of("t", other, "n", [at("nic-0", "pci0000:00"),
                                                  at("nic-1", "pci0000:80")], nodeName="n"),
                       claim(first, "lab", ask("e")), pod("old", "lab", claim=first)]},
            {"wait": 20},
            {"apply": [claim("pair", "lab", ask("c", "card"), ask("e", "nic"),
                             constraints=[{"matchAttribute": root}]),
                       pod("job", "lab", claim="pair")]},
            {"wait": 20},
        ),
    )  # fmt: skip


def all_devices_are_wanted_and_one_is_in_use(new):
    """A training job wants the whole node, on which a notebook holds one device of eight."""
    driver, first = f"{new('d')}.test", new("notebook")
    cards = [{"name": f"card-{number}"} for number in range(8)]
    return Invented(
        about="job",
        told=(r"wants all 8 matching devices", rf"card-0\b.{{0,60}}allocated to lab/{first}"),
        steps=(
            {"apply": [space("lab"), class_of("c", driver), node("n"),
                       slice_of("s", driver, "n", cards, nodeName="n"),
                       claim(first, "lab", ask("c")), pod("notebook", "lab", claim=first)]},
            {"wait": 20},
            {"apply": [claim("want", "lab", ask("c", allocationMode="All")),
                       pod("job", "lab", claim="want")]},
            {"wait": 20},
        ),
    )  # fmt: skip


def deployment_makes_no_pods(new):
    """A quota refuses the pods of a Deployment, so there is no pod that could be asked why."""
    driver, limit, name = f"{new('d')}.test", new("quota"), new("web")
    wanted = pod("no", "lab", template="one")
    label = {"app": name}
    tree = {
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": "lab"},
        "spec": {"replicas": 2, "selector": {"matchLabels": label},
                 "template": {"metadata": {"labels": label}, "spec": wanted["spec"]}},
    }  # fmt: skip
    hard = {"apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hard": {"pods": "0"}},
            "metadata": {"name": limit, "namespace": "lab"}}  # fmt: skip
    return Invented(
        about=f"deployment/{name}",
        told=(f"exceeded quota: {limit}", rf"(ReplicaSet|deployment) (lab/)?{name}"),
        steps=(
            {"apply": [space("lab"), class_of("c", driver), node("n"),
                       slice_of("s", driver, "n", [{"name": "x"}], nodeName="n"),
                       template("one", "lab", ask("c")), hard]},
            {"wait": 5},
            {"apply": [tree]},
            {"wait": 60},
        ),
    )  # fmt: skip


def image_cannot_be_pulled(new):
    """A pod that never starts keeps the only device from the pod that needs it."""
    driver, first = f"{new('d')}.test", new("first")
    waits = {"name": "main", "ready": False, "restartCount": 0, "image": "example.com/job:1",
             "imageID": "", "state": {"waiting": {"reason": "ImagePullBackOff"}}}  # fmt: skip
    return Invented(
        about="next",
        told=(rf"allocated to lab/{first}", r"pod (lab/)?stuck\b.{0,200}ImagePullBackOff"),
        off=("kubelet",),
        steps=(
            {"apply": [space("lab"), class_of("c", driver), node("n"),
                       slice_of("s", driver, "n", [{"name": "x"}], nodeName="n"),
                       claim(first, "lab", ask("c")), pod("stuck", "lab", claim=first)]},
            {"wait": 20},
            {"status": {"containerStatuses": [waits]}, "of": "pod/lab/stuck"},
            {"wait": 300},
            {"apply": [claim("want", "lab", ask("c")), pod("next", "lab", claim="want")]},
            {"wait": 20},
        ),
    )  # fmt: skip


FIELD = (
    driver_died_and_its_slice_stayed,
    template_was_mended_but_its_claim_is_old,
    dead_node_keeps_a_device_of_the_fabric,
    driver_upgrade_renamed_an_attribute,
    scheduler_is_misspelled,
    autoscaler_removes_the_only_node,
    partner_on_the_same_root_is_in_use,
    all_devices_are_wanted_and_one_is_in_use,
    deployment_makes_no_pods,
    image_cannot_be_pulled,
)
