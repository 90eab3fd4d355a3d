"""Incidents whose devices are on nodes that refuse the pod for another reason.

Other nodes have devices of another driver, which the class does not select. What is told was fixed
before a look.
"""

from tests.web.invented import Invented, ask, claim, class_of, node, pod, slice_of, space

HOST = "kubernetes.io/hostname"
WOULD_DO = "its claims could be allocated"


def hardware(driver, *having, others, labels=lambda name: {}):
    """Nodes with two devices each, and other nodes with three of another driver."""
    made = [space("lab"), class_of("c", driver)]
    for name in (*having, *others):
        is_there = name in having
        devices = [{"name": f"x{number}"} for number in range(2 if is_there else 3)]
        publisher = driver if is_there else "another.test"
        made += [node(name, labels(name)),
                 slice_of(f"s-{name}", publisher, name, devices, nodeName=name)]  # fmt: skip
    return made


def wanting(name, spec=None, **metadata):
    """A claim and its pod, with more in its spec."""
    made = pod(name, "lab", claim=f"of-{name}")
    made["spec"].update(spec or {})
    made["metadata"].update(metadata)
    return [claim(f"of-{name}", "lab", ask("c")), made]


def filler(name, cpu, on):
    """A pod without devices that takes this much cpu of a node."""
    container = {"name": "main", "image": "example.com/w:1",
                 "resources": {"requests": {"cpu": cpu}}}  # fmt: skip
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "lab"},
            "spec": {"nodeName": on, "containers": [container]}}  # fmt: skip


def pod_chooses_the_zone_without_devices(new):
    """The pod's nodeSelector wants a zone; the devices are in the other one."""
    driver, near, far = f"{new('d')}.test", new("near"), new("far")
    zones = {near: "east", far: "west"}
    return Invented(
        about="job",
        told=(rf"wants zone=east: node {far} has zone=west", WOULD_DO),
        steps=(
            {"apply": hardware(driver, far, others=[near],
                               labels=lambda name: {"zone": zones[name]})},
            {"apply": wanting("job", {"nodeSelector": {"zone": "east"}})},
            {"wait": 10},
        ),
    )  # fmt: skip


def node_with_the_devices_has_no_cpu_left(new):
    """A web server without devices took the cpu of the only node with devices."""
    driver, here, others = f"{new('d')}.test", new("full"), [new("p"), new("q")]
    hog = new("web")
    return Invented(
        about="job",
        told=(rf"node {here} has 16 cpu, of which its pod requests 15\.5; this pod requests 1\b",
              WOULD_DO),
        steps=(
            {"apply": [*hardware(driver, here, others=others), filler(hog, "15500m", here)]},
            {"apply": wanting("job")},
            {"wait": 10},
        ),
    )  # fmt: skip


def spread_leaves_the_node_with_the_devices(new):
    """Two replicas are to stand on two nodes, and one node alone has devices."""
    driver, here, others = f"{new('d')}.test", new("have"), sorted([new("p"), new("q")])
    app = {"app": new("app")}
    spread = [{"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": "DoNotSchedule",
               "labelSelector": {"matchLabels": app}}]  # fmt: skip
    both = {"topologySpreadConstraints": spread}
    return Invented(
        about="second",
        told=(rf"{HOST}={here} would have 2 pods with app={app['app']}, and maxSkew is 1; "
              rf"{', '.join(others)} have 0", WOULD_DO),
        steps=(
            {"apply": hardware(driver, here, others=others)},
            {"apply": wanting("first", both, labels=app)},
            {"wait": 10},
            {"apply": wanting("second", both, labels=app)},
            {"wait": 10},
        ),
    )  # fmt: skip


def spread_over_racks_leaves_nodes_without_a_rack(new):
    """Pods are spread over racks, and the node with the devices was not labelled with its rack."""
    driver, here, other = f"{new('d')}.test", new("bare"), new("p")
    spread = [{"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule",
               "labelSelector": {"matchLabels": {"app": "a"}}}]  # fmt: skip
    return Invented(
        about="job",
        told=(f"{here}: node.s. didn't match pod topology spread constraints .missing",
              "it has no label rack", WOULD_DO),
        steps=(
            {"apply": hardware(driver, here, others=[other],
                               labels=lambda name: {"rack": "r1"} if name == other else {})},
            {"apply": wanting("job", {"topologySpreadConstraints": spread}, labels={"app": "a"})},
            {"wait": 10},
        ),
    )  # fmt: skip


def node_of_the_only_slice_is_gone(new):
    """A node was replaced by one of another name, and its slice stayed; others have devices."""
    driver, name, gone = f"{new('d')}.test", new("slice"), new("gone")
    return Invented(
        about="job",
        told=(rf"slice {name} has 2 devices of class c, for node {gone}, which does not exist",),
        steps=(
            {"apply": [*hardware(driver, others=[new("p"), new("q")]),
                       slice_of(name, driver, gone, [{"name": "x0"}, {"name": "x1"}],
                                nodeName=gone),
                       # Another driver lost its node, too, which does not matter here.
                       slice_of("other", "another.test", "old", [{"name": "x"}], nodeName="old")]},
            {"apply": wanting("job")},
            {"wait": 10},
        ),
    )  # fmt: skip


def card_and_port_are_on_two_nodes(new):
    """A card and a port are wanted together; one node has the card, another one the port."""
    driver, port, first, last = f"{new('d')}.test", f"{new('e')}.test", new("a"), new("z")
    job = pod("job", "lab", claim="both")
    return Invented(
        about="job",
        told=(rf"{first}: cannot allocate all claims", rf"{last}: cannot allocate all claims",
              "request card wants 1 device, and these nodes see none of class c",
              r"request port wants 1 device, and these nodes see none of class p\b"),
        steps=(
            {"apply": [*hardware(driver, first, others=[new("p"), new("q")]), node(last),
                       class_of("p", port),
                       slice_of("port", port, last, [{"name": "port0"}], nodeName=last)]},
            {"apply": [claim("both", "lab", ask("c", "card"), ask("p", "port")), job]},
            {"wait": 10},
        ),
    )  # fmt: skip


CROWDED = (
    node_of_the_only_slice_is_gone,
    card_and_port_are_on_two_nodes,
)
"""Incidents among nodes with devices of other drivers."""

APART = (
    pod_chooses_the_zone_without_devices,
    node_with_the_devices_has_no_cpu_left,
    spread_leaves_the_node_with_the_devices,
    spread_over_racks_leaves_nodes_without_a_rack,
)
