"""Incidents of rollouts, of two drivers and of shared claims, their causes written down before."""

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
from tests.web.more_incidents import quota
from tests.web.reported_incidents import lab, one

HOST = "kubernetes.io/hostname"


def rollout_renames_the_pools(new):
    """A new version of a driver publishes its devices in pools of other names.

    The running pod keeps a device of the old pool, which is published nowhere, and the same card
    is free under its new name.
    """
    driver, old, name = f"{new('d')}.test", new("old"), new("new")
    return Invented(
        about="first",
        told=(rf"slice {old}\b.{{0,120}}was deleted",
              rf"pool {driver}/n-{name} publishes a device of the same name x"),
        steps=(
            {"apply": lab(driver, slice_of(old, driver, "n", [{"name": "x"}], nodeName="n"))},
            {"apply": [claim("one", "lab", ask("c")), pod("first", "lab", claim="one")]},
            {"wait": 30},
            {"delete": f"resourceslice/{old}"},
            {"apply": [slice_of(name, driver, f"n-{name}", [{"name": "x"}], nodeName="n")]},
            {"wait": 30},
        ),
    )  # fmt: skip


def two_drivers_of_one_class(new):
    """All devices of a class are wanted, and a second driver's device of it is tainted."""
    mine, other, key = f"{new('d')}.test", f"{new('e')}.test", f"x.test/{new('hot')}"
    tree = class_of("c", mine)
    tree["spec"]["selectors"] = cel("true")
    tainted = [{"name": "y", "taints": [{"key": key, "effect": "NoSchedule"}]}]
    return Invented(
        about="job",
        told=(rf"\by\b.{{0,80}}taint {key}:NoSchedule", rf"{other}/n\b"),
        steps=(
            {"apply": [space("lab"), tree, node("n"), one(mine),
                       slice_of("t", other, "n", tainted, nodeName="n")]},
            {"apply": [claim("want", "lab", ask("c", allocationMode="All")),
                       pod("job", "lab", claim="want")]},
            {"wait": 30},
        ),
    )  # fmt: skip


def affinity_excludes_the_node_of_the_claim(new):
    """A claim has a device of one node, and a second pod of it wants another node."""
    driver, here, there = f"{new('d')}.test", new("here"), new("there")
    second = pod("second", "lab", claim="both")
    second["spec"]["nodeSelector"] = {HOST: there}
    return Invented(
        about="second",
        told=(rf"nodeSelector of the pod wants {HOST}={there}: node {here} has",
              f"claim lab/both is allocated on node {here}, and reserved for first"),
        steps=(
            {"apply": [space("lab"), class_of("c", driver), node(here), node(there),
                       slice_of("s", driver, here, [{"name": "x"}], nodeName=here)]},
            {"apply": [claim("both", "lab", ask("c")), pod("first", "lab", claim="both")]},
            {"wait": 30},
            {"apply": [second]},
            {"wait": 30},
        ),
    )  # fmt: skip


def class_was_renamed(new):
    """A class was made anew under another name, and a template has the old name."""
    driver, old, name = f"{new('d')}.test", new("gpu"), new("card")
    return Invented(
        about="job",
        told=(rf"DeviceClass {old}\b.{{0,120}}was deleted, by ",
              f"DeviceClass {name} has the selectors that {old} had"),
        steps=(
            {"apply": [space("lab"), class_of(old, driver), node("n"), one(driver),
                       template("t", "lab", ask(old))]},
            {"wait": 10},
            {"delete": f"deviceclass/{old}"},
            {"apply": [class_of(name, driver)]},
            {"wait": 10},
            {"apply": [pod("job", "lab", template="t")]},
            {"wait": 30},
        ),
    )  # fmt: skip


def quota_was_lowered_under_its_use(new):
    """A quota for devices was lowered below what is in use; the next pod's claim is refused."""
    driver, name = f"{new('d')}.test", new("limit")
    amount = "c.deviceclass.resource.k8s.io/devices"
    limit = quota(name, "lab", **{amount: "4"})
    devices = [{"name": f"x{number}"} for number in range(4)]
    return Invented(
        about="third",
        told=(f"exceeded quota: {name}",
              f"quota {name} allowed 4 of {amount} until it was written with 2, by "),
        steps=(
            {"apply": [*lab(driver, slice_of("s", driver, "n", devices, nodeName="n")), limit,
                       template("t", "lab", ask("c"))]},
            {"wait": 10},
            {"apply": [pod("first", "lab", template="t"), pod("second", "lab", template="t")]},
            {"wait": 30},
            {"patch": {"spec": {"hard": {amount: "2"}}}, "of": f"resourcequota/lab/{name}"},
            {"wait": 30},
            {"apply": [pod("third", "lab", template="t")]},
            {"wait": 30},
        ),
    )  # fmt: skip


def finalizer_keeps_a_withdrawn_slice(new):
    """A driver that went deleted its slice; a finalizer keeps it, and its device is given away."""
    driver, name = f"{new('d')}.test", new("slice")
    finalizer = f"x.test/{new('hold')}"
    kept = one(driver, name)
    kept["metadata"]["finalizers"] = [finalizer]
    return Invented(
        about=f"resourceslice/{name}",
        told=(rf"finalizers? {finalizer}", r"deletion was asked for by redra"),
        steps=(
            {"apply": lab(driver, kept)},
            {"wait": 10},
            {"delete": f"resourceslice/{name}"},
            {"wait": 10},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 30},
        ),
    )  # fmt: skip


def taints_of_driver_and_rule(new):
    """A claim tolerates the taint of the rule, and the driver's has another key."""
    driver, hot = f"{new('d')}.test", new("thermal")
    own = f"x.test/{new('ecc')}"
    tainted = one(driver, taints=[{"key": own, "effect": "NoExecute"}])
    patience = {"key": "x.test/hot", "operator": "Exists"}
    return Invented(
        about="job",
        told=(f"x: taint {own}:NoExecute is not tolerated",
              rf"the driver, slice s taints device \S+ {own}:NoExecute"),
        steps=(
            {"apply": [*lab(driver, tainted),
                       rule(hot, driver, key="x.test/hot", effect="NoExecute")]},
            {"apply": [claim("want", "lab", ask("c", tolerations=[patience])),
                       pod("job", "lab", claim="want")]},
            {"wait": 30},
        ),
    )  # fmt: skip


def shared_claim_and_pods_that_avoid_each_other(new):
    """Two pods of a claim with a device of one node must not run on the same node."""
    driver, here, there = f"{new('d')}.test", new("here"), new("there")
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": {"matchLabels": {"app": "train"}}, "topologyKey": HOST}]}}  # fmt: skip
    pods = [pod(name, "lab", claim="both") for name in ("first", "second")]
    for tree in pods:
        tree["metadata"]["labels"] = {"app": "train"}
        tree["spec"]["affinity"] = apart
    return Invented(
        about="second",
        told=(f"anti-affinity of the pod keeps it apart from pod lab/first on node {here}",
              f"claim lab/both is allocated on node {here}",
              f"{there}: resourceclaim not available on the node"),
        steps=(
            {"apply": [space("lab"), class_of("c", driver), node(here), node(there),
                       slice_of("s", driver, here, [{"name": "x"}], nodeName=here)]},
            {"apply": [claim("both", "lab", ask("c")), pods[0]]},
            {"wait": 30},
            {"apply": [pods[1]]},
            {"wait": 30},
        ),
    )  # fmt: skip


def list_always_falls_to_the_last(new):
    """The first alternative selects an attribute that was renamed, so each pod gets the last."""
    driver, name = f"{new('d')}.test", new("model")
    large = cel(f"has(device.attributes['{driver}'].{name}) && "
                f"device.attributes['{driver}'].{name} == 'H100'")  # fmt: skip
    wanted = {"name": "dev", "firstAvailable": [
        {"name": "large", "deviceClassName": "c", "selectors": large},
        {"name": "any", "deviceClassName": "c"}]}  # fmt: skip
    devices = [{"name": f"x{number}", "attributes": {"productName": {"string": "H100"}}}
               for number in range(3)]  # fmt: skip
    return Invented(
        about="resourceclaim/want",
        told=(r"dev/large\b.{0,80}0 of 3", rf"has\(device.attributes\['{driver}'\].{name}\)"),
        steps=(
            {"apply": lab(driver, slice_of("s", driver, "n", devices, nodeName="n"))},
            {"apply": [claim("want", "lab", wanted), pod("job", "lab", claim="want")]},
            {"wait": 30},
        ),
    )  # fmt: skip


def admin_claim_is_not_made_from_its_template(new):
    """A template for administrative access is older than the loss of its namespace's label."""
    driver, name = f"{new('d')}.test", new("tmpl")
    label = "resource.kubernetes.io/admin-access"
    return Invented(
        about="monitor",
        told=(f"{label}: true",
              f"namespace lab had the label {label}=true until it was changed, by redra"),
        steps=(
            {"apply": [space("lab", **{label: "true"}), class_of("c", driver), node("n"),
                       one(driver), template(name, "lab", ask("c", adminAccess=True))]},
            {"wait": 10},
            {"patch": {"metadata": {"labels": {label: None}}}, "of": "namespace/lab"},
            {"wait": 10},
            {"apply": [pod("monitor", "lab", template=name)]},
            {"wait": 30},
        ),
    )  # fmt: skip


ROLLOUTS = [
    rollout_renames_the_pools,
    two_drivers_of_one_class,
    affinity_excludes_the_node_of_the_claim,
    class_was_renamed,
    quota_was_lowered_under_its_use,
    finalizer_keeps_a_withdrawn_slice,
    taints_of_driver_and_rule,
    shared_claim_and_pods_that_avoid_each_other,
    list_always_falls_to_the_last,
    admin_claim_is_not_made_from_its_template,
]
