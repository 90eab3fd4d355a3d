"""Incidents of the field whose cause is in an object that nobody looks at, first made with kubectl.

A slice that counts for nothing, a label that a node lost after a claim got its devices, a class
that takes the name of another, a driver that is gone although its slice is there, a configuration
for what was not chosen. Their causes were fixed before a look at a page.
"""

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
    slice_of,
    space,
)
from tests.web.night_incidents import container_waits
from tests.web.reported_incidents import lab, one


def driver_counts_its_generations_anew(new):
    """A driver without its checkpoint begins with generation 1 again; the old slice stays."""
    driver, old, name = f"{new('d')}.test", new("old"), new("slice")
    cards = [{"name": f"x{number}"} for number in range(3)]
    return Invented(
        about="job",
        told=(rf"slice {name} has devices x1, x2 for request dev of claim want and is passed over: "
              rf"its generation 1 is older than generation 5 of pool {driver}/n \(slice {old}\)",
              r"published with a generation above 5"),
        steps=(
            {"apply": [*lab(driver, slice_of(old, driver, "n", cards[:1], generation=5,
                                             nodeName="n")),
                       claim("first", "lab", ask("c")), pod("one", "lab", claim="first")]},
            {"wait": 5},
            {"apply": [slice_of(name, driver, "n", cards, nodeName="n"),
                       claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 5},
        ),
    )  # fmt: skip


def node_of_a_shared_claim_lost_its_label(new):
    """A claim is for the nodes of a rack; the only one of them loses its label."""
    driver, rack, host = f"{new('d')}.test", new("rack"), new("host")
    where = {
        "nodeSelectorTerms": [
            {"matchExpressions": [{"key": "rack", "operator": "In", "values": [rack]}]}
        ]
    }
    return Invented(
        about="job",
        told=(rf"claim lab/want is allocated rack In {rack}",
              rf"node {host} had rack={rack} until that was taken away, by redra"),
        steps=(
            {"apply": [*lab(driver), node(host, {"rack": rack}),
                       slice_of("s", driver, "p", [{"name": "x"}], nodeSelector=where),
                       claim("want", "lab", ask("c")), pod("one", "lab", claim="want")]},
            {"wait": 5},
            {"patch": {"metadata": {"labels": {"rack": None}}}, "of": f"node/{host}"},
            {"apply": [pod("job", "lab", claim="want")]},
            {"wait": 5},
        ),
    )  # fmt: skip


def newer_class_takes_the_name_of_a_resource(new):
    """A second class is given the name of an extended resource; none of its devices is there."""
    driver, newer, name = f"{new('d')}.test", new("canary"), f"x.test/{new('card')}"
    classes = [class_of("c", driver), class_of(newer, f"{newer}.test")]
    for each in classes:
        each["spec"]["extendedResourceName"] = name
    user = pod("job", "lab", claim="no")
    del user["spec"]["resourceClaims"]
    amounts = {name: "1"}
    user["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    return Invented(
        about="job",
        told=(rf"{name} stands for devices of class {newer} and not of class c",),
        steps=(
            {"apply": [*lab(driver, slice_of("s", driver, "n", [{"name": "x"}], nodeName="n")),
                       classes[0]]},
            {"wait": 5},
            {"apply": [classes[1]]},
            {"wait": 5},
            {"apply": [user]},
            {"wait": 5},
        ),
    )  # fmt: skip


def driver_crashes_behind_its_slice(new):
    """The driver's pod restarts again and again after an upgrade; its slice is there as before."""
    driver, plugin, here, module = f"{new('d')}.test", new("plugin"), new("node"), new("module")
    said = "Failed to prepare dynamic resources: prepare dynamic resources: "
    said += f"DRA driver {driver} is not registered"
    crashed = container_waits("CrashLoopBackOff", restarts=7)
    crashed["containerStatuses"][0]["lastState"] = {
        "terminated": {"exitCode": 1, "reason": "Error", "message": f"{module} is not loaded"}
    }
    return Invented(
        about="job",
        told=(rf"DRA driver {driver} is not registered",
              rf"pod drivers/{plugin} on that node fails: .{{0,60}}CrashLoopBackOff; it ended "
              rf"before with exit code 1 \(Error: {module} is not loaded\)"),
        off=("kubelet",),
        steps=(
            {"apply": [*lab(driver, one(driver, on=here), on=here), space("drivers"),
                       driver_pod(plugin, here), driver_pod("well", here)]},
            {"status": crashed, "of": f"pod/drivers/{plugin}"},
            {"wait": 60},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 5},
            {"apply": [told_by_kubelet(new, "job", "FailedPrepareDynamicResources", said)]},
            {"wait": 300},
        ),
    )  # fmt: skip


def class_is_edited_for_other_hardware(new):
    """A class is changed to a model that no node has yet; pods of the former one wait."""
    driver, host, old, newer = f"{new('d')}.test", new("host"), new("old"), new("newer")
    classes = [class_of("c", driver), class_of("c", driver)]
    for tree, model in zip(classes, (old, newer), strict=True):
        tree["spec"]["selectors"] = cel(f"device.attributes['{driver}'].model == '{model}'")
    devices = [{"name": name, "attributes": {"model": {"string": old}}} for name in ("x", "y")]
    return Invented(
        about="job",
        told=(rf"class c selected {driver}/{host}/\S+ for request dev of claim want until it was "
              rf"changed, by redra",),
        steps=(
            {"apply": [*lab(driver, slice_of("s", driver, host, devices, nodeName=host), on=host),
                       classes[0], claim("first", "lab", ask("c")),
                       pod("one", "lab", claim="first")]},
            {"wait": 5},
            {"apply": [classes[1]]},
            {"wait": 5},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 5},
        ),
    )  # fmt: skip


def two_drivers_publish_one_pool(new):
    """Two replicas of a driver publish the devices of one fabric, each in a slice of its own."""
    driver, pool, names = f"{new('d')}.test", new("fabric"), (new("first"), new("second"))
    slices = [
        slice_of(name, driver, pool, [{"name": "x"}, {"name": "y"}], of=2, allNodes=True)
        for name in names
    ]
    return Invented(
        about="job",
        told=(rf"devices x, y of pool {driver}/{pool} are in 2 slices: "
              rf"{names[0]} \(written by redra.{{0,60}}\), {names[1]} \(written by redra",),
        steps=(
            {"apply": [*lab(driver), slices[0]]},
            {"wait": 5},
            {"apply": [slices[1]]},
            {"wait": 5},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 5},
        ),
    )  # fmt: skip


def configuration_is_for_the_other_alternative(new):
    """A list falls to its second alternative; the claim configures the first alone."""
    driver, large, small = f"{new('d')}.test", new("large"), new("small")
    sizes = {large: 2, small: 1}
    either = [
        {"name": name, "deviceClassName": "c",
         "selectors": cel(f"device.attributes['{driver}'].size == {size}")}
        for name, size in sizes.items()
    ]  # fmt: skip
    config = [{"requests": [f"dev/{large}"], "opaque": {"driver": driver, "parameters": {"a": 1}}}]
    device = {"name": "x", "attributes": {"size": {"int": 1}}}
    return Invented(
        about="job",
        told=(rf"alternative {small} of request dev was chosen, and no configuration for driver "
              rf"{driver} is for it; what is written for alternative {large} does not count",),
        steps=(
            {"apply": [*lab(driver, slice_of("s", driver, "n", [device], nodeName="n")),
                       claim("want", "lab", {"name": "dev", "firstAvailable": either},
                             config=config),
                       pod("job", "lab", claim="want")]},
            {"wait": 5},
        ),
    )  # fmt: skip


OVERLOOKED = (
    driver_counts_its_generations_anew,
    node_of_a_shared_claim_lost_its_label,
    newer_class_takes_the_name_of_a_resource,
    two_drivers_publish_one_pool,
    class_is_edited_for_other_hardware,
)

PLACED = (driver_crashes_behind_its_slice, configuration_is_for_the_other_alternative)
