"""Incidents with which the pages were walked by keyboard, their causes written down before."""

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
from tests.web.reported_incidents import lab, one

ZONE = "topology.kubernetes.io/zone"


def driver_is_too_old(new):
    """A selector wants a later version of the driver than a node has."""
    driver = f"{new('d')}.test"
    of = f"device.attributes['{driver}'].driverVersion"
    wanted = ask("c", selectors=cel(f"{of}.compareTo(semver('570.0.0')) >= 0"))
    old = {"driverVersion": {"version": "565.12.0"}}
    return Invented(
        about="train",
        told=(r"driverVersion is 565\.12\.0", r"semver\('570\.0\.0'\)"),
        steps=(
            {"apply": lab(driver, one(driver, attributes=old))},
            {"apply": [claim("want", "lab", wanted), pod("train", "lab", claim="want")]},
            {"wait": 30},
        ),
    )


def toleration_has_another_effect(new):
    """A claim tolerates that its pod is not evicted, and the rule keeps new pods away."""
    driver, hot = f"{new('d')}.test", new("thermal")
    patience = {"key": "x.test/hot", "operator": "Exists", "effect": "NoExecute"}
    return Invented(
        about="train",
        told=(r"x\.test/hot:NoSchedule", rf"rule {hot}\b", "hot Exists:NoExecute"),
        steps=(
            {"apply": [*lab(driver, one(driver)),
                       rule(hot, driver, key="x.test/hot", effect="NoSchedule")]},
            {"apply": [claim("want", "lab", ask("c", tolerations=[patience])),
                       pod("train", "lab", claim="want")]},
            {"wait": 30},
        ),
    )  # fmt: skip


def zone_has_no_devices(new):
    """A pod wants a zone whose nodes have no devices; they are in another zone."""
    driver, here, there = f"{new('d')}.test", new("zone"), new("zone")
    job = pod("train", "lab", claim="want")
    job["spec"]["nodeSelector"] = {ZONE: there}
    return Invented(
        about="train",
        told=(rf"nodeSelector of the pod wants {ZONE}={there}", rf"node gpus has {ZONE}={here}"),
        steps=(
            {"apply": [space("lab"), class_of("c", driver), node("gpus", {ZONE: here}),
                       node("plain", {ZONE: there}), one(driver, on="gpus")]},
            {"apply": [claim("want", "lab", ask("c")), job]},
            {"wait": 30},
        ),
    )  # fmt: skip


def affinity_wants_a_label_that_went(new):
    """A node affinity wants a product, and the node with the devices has no such label."""
    driver, product = f"{new('d')}.test", new("product")
    job = pod("train", "lab", claim="want")
    wanted = {"key": "x.test/product", "operator": "In", "values": [product]}
    job["spec"]["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [wanted]}]}}}  # fmt: skip
    return Invented(
        about="train",
        told=(rf"node affinity of the pod wants x\.test/product in \({product}\)",
              r"node n has no label x\.test/product"),
        steps=(
            {"apply": lab(driver, one(driver))},
            {"apply": [claim("want", "lab", ask("c")), job]},
            {"wait": 30},
        ),
    )  # fmt: skip


def template_is_misspelled(new):
    """A pod names a template that is not there."""
    driver, typo = f"{new('d')}.test", new("tmpl")
    return Invented(
        about="train",
        told=(rf'resourceclaimtemplate\.resource\.k8s\.io "{typo}" not found',),
        steps=(
            {"apply": [*lab(driver, one(driver)), template("gpus", "lab", ask("c"))]},
            {"apply": [pod("train", "lab", template=typo)]},
            {"wait": 30},
        ),
    )


def no_alternative_fits(new):
    """Of two alternatives one wants more devices than there are, the other excludes them all."""
    driver = f"{new('d')}.test"
    newest = cel(f"device.attributes['{driver}'].gen >= 5")
    wanted = {"name": "dev", "firstAvailable": [
        {"name": "big", "deviceClassName": "c", "count": 4},
        {"name": "small", "deviceClassName": "c", "selectors": newest}]}  # fmt: skip
    devices = [{"name": f"x{number}", "attributes": {"gen": {"int": 4}}} for number in range(2)]
    return Invented(
        about="train",
        told=("dev/big wants 4 devices, 2 of 2", "dev/small wants 1 device, 0 of 2", r"gen is 4"),
        steps=(
            {"apply": lab(driver, slice_of("s", driver, "n", devices, nodeName="n"))},
            {"apply": [claim("want", "lab", wanted), pod("train", "lab", claim="want")]},
            {"wait": 30},
        ),
    )


WALKED = (
    driver_is_too_old,
    toleration_has_another_effect,
    zone_has_no_devices,
    affinity_wants_a_label_that_went,
    template_is_misspelled,
    no_alternative_fits,
)
