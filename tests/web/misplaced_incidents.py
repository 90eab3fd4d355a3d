"""Incidents of the field in which something stands in the wrong place, first made with kubectl.

A toleration in the pod, a device for a node of another name, two devices on one NUMA node, a pool
that was emptied, free devices that are scattered. Their causes were fixed before a look at a page.
"""

from tests.web.invented import Invented, ask, cel, claim, node, pod, rule, slice_of
from tests.web.reported_incidents import lab

HOST = "kubernetes.io/hostname"


def toleration_stands_in_the_pod(new):
    """The pod itself tolerates the taint of its device, and its claim does not."""
    driver, key = f"{new('d')}.test", f"x.test/{new('ecc')}"
    tainted = {"name": "x", "taints": [{"key": key, "value": "soft", "effect": "NoSchedule"}]}
    user = pod("job", "lab", claim="want")
    user["spec"]["tolerations"] = [{"key": key, "operator": "Exists", "effect": "NoSchedule"}]
    return Invented(
        about="job",
        told=(rf"taint {key}=soft:NoSchedule is not tolerated",
              rf"the pod tolerates {key} Exists:NoSchedule itself, which is for taints of nodes; a "
              rf"request has to tolerate taint {key}=soft:NoSchedule"),
        steps=(
            {"apply": lab(driver, slice_of("s", driver, "n", [tainted], nodeName="n"))},
            {"apply": [claim("want", "lab", ask("c")), user]},
            {"wait": 5},
        ),
    )  # fmt: skip


def device_of_a_shelf_is_for_no_node(new):
    """A pool says for each device which node has it; one of these nodes has another name."""
    driver, shelf, gone = f"{new('d')}.test", new("shelf"), new("node")
    devices = [{"name": "x0", "nodeName": "n"}, {"name": "x1", "nodeName": gone}]
    return Invented(
        about="job",
        told=(r"allocated to lab/first",
              rf"slice {shelf} has free device x1 for node {gone}, which does not exist"),
        steps=(
            {"apply": [*lab(driver), node("other"),
                       slice_of(shelf, driver, "p", devices, perDeviceNodeSelection=True),
                       claim("first", "lab", ask("c")), pod("one", "lab", claim="first")]},
            {"wait": 5},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 5},
        ),
    )  # fmt: skip


def free_ports_are_on_one_numa_node(new):
    """A claim wants two ports on distinct NUMA nodes; those that are free share one."""
    driver, first = f"{new('d')}.test", new("first")
    ports = [{"name": f"x{number}", "attributes": {"numa": {"int": number // 2}}}
             for number in range(4)]  # fmt: skip
    upper = ask("c", count=2, selectors=cel(f"device.attributes['{driver}'].numa == 1"))
    apart = [{"distinctAttribute": f"{driver}/numa"}]
    return Invented(
        about="job",
        told=(rf"{driver}/numa is 0, which is not distinct from 0", rf"allocated to lab/{first}"),
        steps=(
            {"apply": [*lab(driver, slice_of("s", driver, "n", ports, nodeName="n")),
                       claim(first, "lab", upper), pod("one", "lab", claim=first)]},
            {"wait": 5},
            {"apply": [claim("want", "lab", ask("c", "left"), ask("c", "right"),
                             constraints=apart),
                       pod("job", "lab", claim="want")]},
            {"wait": 5},
        ),
    )  # fmt: skip


def pool_was_emptied_for_another_layout(new):
    """A driver begins to divide a card anew: the new generation of its pool has no device yet."""
    driver, name = f"{new('d')}.test", new("slice")
    return Invented(
        about="job",
        told=(rf"slice {name} had devices x0, x1 for request dev of claim want until it was "
              r"written without them, by redra",),
        steps=(
            {"apply": [*lab(driver), slice_of(name, driver, "n", [{"name": "x0"}, {"name": "x1"}],
                                              nodeName="n")]},
            {"wait": 5},
            {"apply": [slice_of(name, driver, "n", [], generation=2, nodeName="n")]},
            {"wait": 5},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 5},
        ),
    )  # fmt: skip


def free_devices_are_scattered(new):
    """Two devices are wanted on one node: two nodes have one each, a third is frozen by a rule."""
    driver, frozen = f"{new('d')}.test", new("frozen")
    nodes, steps = [new("host") for _ in range(3)], []
    for name in nodes[:2]:
        user = pod(f"on-{name}", "lab", claim=f"of-{name}")
        user["spec"]["nodeSelector"] = {HOST: name}
        steps += [claim(f"of-{name}", "lab", ask("c")), user]
    freeze = rule(frozen, driver, key="x.test/freeze", value="audit", effect="NoSchedule")
    freeze["spec"]["deviceSelector"]["pool"] = nodes[2]
    return Invented(
        about="job",
        told=(*(rf"{name}.{{0,200}}1 of 2 can be taken" for name in nodes[:2]),
              rf"taint x.test/freeze=audit:NoSchedule by rule {frozen} is not tolerated",
              rf"rule {frozen} taints 2 devices .{{0,60}}since it was written, by redra"),
        steps=(
            {"apply": [*lab(driver), *map(node, nodes),
                       *(slice_of(name, driver, name, [{"name": "x0"}, {"name": "x1"}],
                                  nodeName=name) for name in nodes)]},
            {"apply": steps},
            {"wait": 5},
            {"apply": [freeze, claim("want", "lab", ask("c", count=2)),
                       pod("job", "lab", claim="want")]},
            {"wait": 5},
        ),
    )  # fmt: skip


MISPLACED = (
    toleration_stands_in_the_pod,
    device_of_a_shelf_is_for_no_node,
    free_ports_are_on_one_numa_node,
    pool_was_emptied_for_another_layout,
    free_devices_are_scattered,
)
