"""Incidents as strangers meet them, first made with kubectl; causes were written before a look.

The words of each stand in `why`, and with the first finding.
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
from tests.web.quiet_incidents import daemons, role_of
from tests.web.reported_incidents import lab


def _selecting(driver, expression, **published):
    """The steps of a pod whose claim selects by an expression among two devices of a node."""
    devices = [{"name": f"x{number}", **published} for number in range(2)]
    return (
        {"apply": lab(driver, slice_of("s", driver, "n", devices, nodeName="n"))},
        {"apply": [claim("want", "lab", ask("c", selectors=cel(expression))),
                   pod("job", "lab", claim="want")]},
        {"wait": 2},
    )  # fmt: skip


def capacity_is_read_as_an_attribute(new):
    """A selector reads the memory of a card among its attributes, and fails."""
    driver = f"{new('d')}.test"
    return Invented(
        about="job",
        told=(r"no such key: memory",
              rf"do you mean device\.capacity\['{driver}'\]\.memory\?"),
        steps=_selecting(driver, f"device.attributes['{driver}'].memory > 40",
                         capacity={"memory": {"value": "80Gi"}}),
    )  # fmt: skip


def selector_names_another_domain(new):
    """A selector looks for the model in the domain of the vendor and not in that of the driver."""
    vendor = f"{new('v')}.test"
    driver = f"gpu.{vendor}"
    return Invented(
        about="job",
        told=(rf"no device has device\.attributes\['{vendor}'\]\.model; do you mean "
              rf"device\.attributes\['{driver}'\]\.model\?",),
        steps=_selecting(driver, f"device.attributes['{vendor}'].model == 'h100'",
                         attributes={"model": {"string": "h100"}}),
    )  # fmt: skip


def guarded_attribute_is_misspelled(new):
    """The guard makes the selector false where it would have failed."""
    driver = f"{new('d')}.test"
    of = f"device.attributes['{driver}']"
    return Invented(
        about="job",
        told=(rf"there is no device\.attributes\['{driver}'\]\.modle",
              rf"do you mean device\.attributes\['{driver}'\]\.model\?"),
        steps=_selecting(driver, f"has({of}.modle) && {of}.modle == 'h100'",
                         attributes={"model": {"string": "h100"}}),
    )  # fmt: skip


def number_is_compared_with_a_text(new):
    """Values of two types are never equal, and nothing fails."""
    driver, count = f"{new('d')}.test", int(new("")) % 10 + 2
    path = f"device.attributes['{driver}'].slots"
    return Invented(
        about="job",
        told=(rf"slots is {count}\b", rf"slots is a number, and '{count}' is a text: these are "
                                      r"never equal"),
        steps=_selecting(driver, f"{path} == '{count}'", attributes={"slots": {"int": count}}),
    )  # fmt: skip


def usable_memory_is_less_than_the_printed_one(new):
    """A card of 80Gi publishes what is left of them for users."""
    driver, usable = f"{new('d')}.test", int(new("")) % 10 + 70
    path = f"device.capacity['{driver}'].memory"
    return Invented(
        about="job",
        told=(r"memory\.compareTo\(quantity\('80Gi'\)\) >= 0", rf"memory is {usable}Gi"),
        steps=_selecting(driver, f"{path}.compareTo(quantity('80Gi')) >= 0",
                         capacity={"memory": {"value": f"{usable}Gi"}}),
    )  # fmt: skip


def slice_lost_its_attributes(new):
    """A slice came without the attributes that its driver meant to publish."""
    driver = f"{new('d')}.test"
    return Invented(
        about="job",
        told=(rf"device {driver}/n/x0 has no attributes and no capacity",),
        steps=_selecting(driver, f"device.attributes['{driver}'].model == 'h100'"),
    )  # fmt: skip


def driver_wants_a_label_that_no_node_has(new):
    """The DaemonSet of a driver is for nodes with a label, and nobody has set it."""
    driver, plugin, key = f"{new('d')}.test", new("plugin"), f"x.test/{new('gpu')}"
    return Invented(
        about="job",
        told=(r"no ResourceSlice is published",
              rf"DaemonSet drivers/{plugin} runs as ServiceAccount drivers/{plugin}, which may "
              rf"write ResourceSlices by ClusterRole {plugin}-role, and wants no pod on node n: "
              rf"the nodeSelector of its pods wants {key}=true: node n has no label {key}"),
        steps=(
            {"apply": [space("lab"), space("drivers"), class_of("c", driver), node("n"),
                       *role_of(plugin, "resourceslices"),
                       daemons(plugin, nodeSelector={key: "true"})]},
            {"wait": 2},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 2},
        ),
    )  # fmt: skip


def pod_of_high_priority_evicts_none(new):
    """A pod waits for the cpu of pods that are less urgent, and its class forbids to evict them."""
    driver, name = f"{new('d')}.test", new("polite")
    polite = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
              "metadata": {"name": name}, "value": 1000, "preemptionPolicy": "Never"}  # fmt: skip
    bulk, urgent = pod("bulk", "lab", claim="first"), pod("job", "lab", claim="want")
    for user in (bulk, urgent):
        user["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "10"
    urgent["spec"]["priorityClassName"] = name
    devices = [{"name": "x0"}, {"name": "x1"}]
    return Invented(
        about="job",
        told=(r"Insufficient cpu", r"preemptionPolicy"),
        steps=(
            {"apply": [*lab(driver, slice_of("s", driver, "n", devices, nodeName="n")), polite,
                       claim("first", "lab", ask("c")), bulk]},
            {"wait": 2},
            {"apply": [claim("want", "lab", ask("c")), urgent]},
            {"wait": 2},
        ),
    )  # fmt: skip


def limit_range_refuses_the_pods(new):
    """A LimitRange allows less cpu than the containers of a Deployment have."""
    driver, name = f"{new('d')}.test", new("small")
    limits = {"apiVersion": "v1", "kind": "LimitRange",
              "metadata": {"name": name, "namespace": "lab"},
              "spec": {"limits": [{"type": "Container", "max": {"cpu": "2"}}]}}  # fmt: skip
    user = pod("job", "lab", template="t")["spec"]
    user["containers"][0]["resources"] |= {"requests": {"cpu": "4"}, "limits": {"cpu": "4"}}
    labels = {"app": "job"}
    wanted = {"apiVersion": "apps/v1", "kind": "Deployment",
              "metadata": {"name": "job", "namespace": "lab"},
              "spec": {"replicas": 2, "selector": {"matchLabels": labels},
                       "template": {"metadata": {"labels": labels}, "spec": user}}}  # fmt: skip
    return Invented(
        about="deployment/job",
        told=(r"maximum cpu usage per Container is 2, but limit is 4",
              rf"LimitRange lab/{name} sets that maximum of cpu"),
        steps=(
            {"apply": [*lab(driver, slice_of("s", driver, "n", [{"name": "x"}], nodeName="n")),
                       limits, template("t", "lab", ask("c")), wanted]},
            {"wait": 5},
        ),
    )  # fmt: skip


TOLD = (limit_range_refuses_the_pods,)
"""Incidents whose words stand in `why` alone."""

STRANGERS = (
    capacity_is_read_as_an_attribute,
    selector_names_another_domain,
    guarded_attribute_is_misspelled,
    number_is_compared_with_a_text,
    usable_memory_is_less_than_the_printed_one,
    slice_lost_its_attributes,
    driver_wants_a_label_that_no_node_has,
    pod_of_high_priority_evicts_none,
)
"""Incidents whose first finding has all words of the cause."""
