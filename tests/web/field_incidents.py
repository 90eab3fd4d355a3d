"""Incidents as users of other clusters reported them, with the words that must tell their causes.

The words were written down before anybody had looked at what redra says of them.
"""

from tests.web.invented import (
    Invented,
    ask,
    cel,
    claim,
    class_of,
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
    driver_pod = {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": plugin, "namespace": "drivers"},
        "spec": {"nodeName": here, "containers": [{"name": "main", "image": "example.com/d:1"}]},
    }  # fmt: skip
    said = "Failed to prepare dynamic resources: prepare dynamic resources: "
    said += f"DRA driver {driver} is not registered"
    return Invented(
        about="job",
        told=("FailedPrepareDynamicResources", f"DRA driver {driver} is not registered",
              rf"pod drivers/{plugin}\b.{{0,120}}was deleted, by redra"),
        off=("kubelet",),
        steps=(
            {"apply": [space("lab"), space("drivers"), class_of("c", driver), node(here),
                       slice_of("s", driver, here, [{"name": "x"}], nodeName=here), driver_pod]},
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


FIELD = (
    driver_died_and_its_slice_stayed,
    template_was_mended_but_its_claim_is_old,
    dead_node_keeps_a_device_of_the_fabric,
    driver_upgrade_renamed_an_attribute,
    scheduler_is_misspelled,
)
