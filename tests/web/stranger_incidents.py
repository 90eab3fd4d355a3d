"""Incidents as strangers meet them, first made with kubectl; causes were written before a look.

The words of each stand in `why`, and with the first finding.
"""

from tests.web.invented import Invented, ask, cel, claim, class_of, node, pod, slice_of, space
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


STRANGERS = (
    capacity_is_read_as_an_attribute,
    selector_names_another_domain,
    guarded_attribute_is_misspelled,
    number_is_compared_with_a_text,
    usable_memory_is_less_than_the_printed_one,
    slice_lost_its_attributes,
    driver_wants_a_label_that_no_node_has,
)
"""Incidents whose first finding has all words of the cause."""
