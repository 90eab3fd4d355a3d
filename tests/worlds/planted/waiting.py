"""Questions about waiting pods, each with one planted reason, among noise."""

import random

from tests.cluster import DRIVER, Cluster
from tests.worlds.planted.plant import Cause, Plant, Sow


def names(rng: random.Random, count: int, stem: str) -> list[str]:
    """Random names with a common stem."""
    return [f"{stem}-{rng.randrange(10**6):06d}" for _ in range(count)]


def spec_of(requests: list[dict], constraints: list[dict] = ()) -> dict:
    """The spec of a claim."""
    devices: dict = {"requests": requests}
    if constraints:
        devices["constraints"] = list(constraints)
    return {"devices": devices}


def one(name: str, class_name: str = "gpu", **more: object) -> dict:
    """A request of a claim."""
    return {"name": name, "exactly": {"deviceClassName": class_name, **more}}


def revision_of(cluster: Cluster, resource: str, name: str) -> int:
    """The revision of the last event about an object."""
    return next(
        event.revision
        for event in reversed(cluster.line.events)
        if event.is_about_object and event.key.resource == resource and event.key.name == name
    )


def all_in_use(rng: random.Random) -> Plant:
    cluster = Cluster()
    count, devices = rng.randint(1, 3), rng.randint(2, 5)
    for node in names(rng, count, "node"):
        cluster.node(node)
        cluster.slice(node, devices)
    cluster.device_class()
    holders = names(rng, count * devices, "held")
    for name in holders:
        cluster.claim(name)
        cluster.pod(f"pod-of-{name}", claim=name)
    cluster.settle()
    cluster.claim("wanted")
    cluster.pod("late", claim="wanted")
    cluster.settle()
    total = count * devices
    many = (f"{total} devices|{devices} devices",) if devices > 3 else ()
    words = ("allocated to", *many)
    return Plant(
        cluster=cluster, kind="pod", name="late",
        causes=(Cause(words=("wants 1 device", *words)),),
    )  # fmt: skip


def network_devices_in_use(rng: random.Random) -> Plant:
    """Few devices are reachable from every node, however many nodes are tried."""
    cluster = Cluster()
    nodes, devices = rng.randint(2, 5), rng.randint(4, 6)
    for node in names(rng, nodes, "node"):
        cluster.node(node)
    tree = {
        "driver": DRIVER,
        "allNodes": True,
        "pool": {"name": "fabric", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": f"port-{number}"} for number in range(devices)],
    }
    cluster.create("resource.k8s.io/v1", "ResourceSlice", "fabric", spec=tree)
    cluster.device_class()
    for name in names(rng, devices, "held"):
        cluster.claim(name)
        cluster.pod(f"pod-of-{name}", claim=name)
    cluster.settle()
    cluster.claim("wanted")
    cluster.pod("late", claim="wanted")
    cluster.settle()
    return Plant(
        cluster=cluster, kind="pod", name="late",
        causes=(Cause(words=("allocated to", f"{devices} devices")),),
        never=(f"{nodes * devices} devices",),
    )  # fmt: skip


def devices_of_other_nodes(rng: random.Random) -> Plant:
    """Allocated devices of one node do not explain the refusal of another node."""
    cluster = Cluster()
    mine, other = names(rng, 2, "node")
    cluster.node(mine)
    cluster.node(other)
    own, theirs = rng.randint(1, 3), rng.randint(2, 4)
    devices = [{"name": f"mine-{n}", "nodeName": mine} for n in range(own)]
    devices += [{"name": f"theirs-{n}", "nodeName": other} for n in range(theirs)]
    cluster.create(
        "resource.k8s.io/v1", "ResourceSlice", "split",
        spec={
            "driver": DRIVER, "perDeviceNodeSelection": True,
            "pool": {"name": "split", "generation": 1, "resourceSliceCount": 1},
            "devices": devices,
        },
    )  # fmt: skip
    cluster.device_class()
    for name in names(rng, own + theirs, "held"):
        cluster.claim(name)
        cluster.pod(f"pod-of-{name}", claim=name)
    cluster.settle()
    cluster.claim("wanted")
    cluster.pod("late", claim="wanted")
    cluster.settle()
    shown = [f"theirs-{n}" for n in range(theirs)] if theirs <= 3 else [f"{theirs} devices"]
    return Plant(
        cluster=cluster, kind="pod", name="late", ask={"node": mine},
        causes=(Cause(words=(*shown, "the device is for other nodes")),),
    )  # fmt: skip


def selector_is_false(rng: random.Random) -> Plant:
    cluster = Cluster()
    devices = rng.randint(4, 8)
    node = names(rng, 1, "node")[0]
    cluster.node(node)
    model, wanted = rng.sample(["a100", "h100", "l40s", "b200"], 2)
    made = [
        {"name": f"gpu-{n}", "attributes": {"model": {"string": model}}} for n in range(devices)
    ]
    cluster.slice(node, made)
    expression = f'device.attributes["{DRIVER}"].model == "{wanted}"'
    in_class = rng.random() < 0.5
    cluster.device_class("gpu", expression if in_class else "")
    more = {} if in_class else {"selectors": [{"cel": {"expression": expression}}]}
    cluster.claim("wanted", **more)
    cluster.pod("late", claim="wanted")
    cluster.settle()
    owner = "class gpu" if in_class else "the request"
    return Plant(
        cluster=cluster, kind="pod", name="late",
        causes=(Cause(words=(f"{devices} devices", "not selected", owner, expression)),),
    )  # fmt: skip


def attribute_is_missing(rng: random.Random) -> Plant:
    cluster = Cluster()
    node = names(rng, 1, "node")[0]
    cluster.node(node)
    attribute = f"{DRIVER}/root{rng.randrange(1000)}"
    cluster.slice(node, rng.randint(2, 3))
    cluster.device_class()
    constraint = {"matchAttribute": attribute}
    cluster.create(
        "resource.k8s.io/v1",
        "ResourceClaim",
        "pair",
        spec=spec_of([one("a"), one("b")], [constraint]),
    )
    cluster.pod("late", claim="pair")
    cluster.settle()
    return Plant(
        cluster=cluster, kind="pod", name="late",
        causes=(Cause(words=("has no attribute", attribute)),),
    )  # fmt: skip


def values_do_not_match(rng: random.Random) -> Plant:
    cluster = Cluster()
    node = names(rng, 1, "node")[0]
    cluster.node(node)
    numas = rng.sample(range(100), 2)
    made = [
        {"name": f"d{n}", "attributes": {"numa": {"int": numa}}} for n, numa in enumerate(numas)
    ]
    cluster.slice(node, made)
    cluster.device_class()
    constraint = {"matchAttribute": f"{DRIVER}/numa"}
    cluster.create(
        "resource.k8s.io/v1",
        "ResourceClaim",
        "pair",
        spec=spec_of([one("a"), one("b")], [constraint]),
    )
    cluster.pod("late", claim="pair")
    cluster.settle()
    words = (f"{DRIVER}/numa is {numas[1]}", f"does not match {numas[0]}")
    return Plant(cluster=cluster, kind="pod", name="late", causes=(Cause(words=words),))


def counters_are_used_up(rng: random.Random) -> Plant:
    cluster = Cluster()
    node = names(rng, 1, "node")[0]
    cluster.node(node)
    memory, first = 80, rng.randint(30, 60)
    second = rng.randint(memory - first + 1, memory)
    pool = {"name": node, "generation": 1, "resourceSliceCount": 2}
    amounts = [
        [{"counterSet": "card", "counters": {"memory": {"value": f"{amount}Gi"}}}]
        for amount in (first, second)
    ]
    devices = [{"name": f"part-{n}", "consumesCounters": used} for n, used in enumerate(amounts)]
    counters = [{"name": "card", "counters": {"memory": {"value": f"{memory}Gi"}}}]
    common = {"driver": DRIVER, "nodeName": node, "pool": pool}
    cluster.create(
        "resource.k8s.io/v1", "ResourceSlice", "card", spec={**common, "sharedCounters": counters}
    )
    cluster.create(
        "resource.k8s.io/v1", "ResourceSlice", "parts", spec={**common, "devices": devices}
    )
    cluster.device_class()
    holder = names(rng, 1, "held")[0]
    cluster.claim(holder)
    cluster.pod("early", claim=holder)
    cluster.settle()
    cluster.claim("wanted")
    cluster.pod("late", claim="wanted")
    cluster.settle()
    words = ("counter memory", f"needs {second}Gi", f"{memory - first}Gi is left", holder)
    return Plant(cluster=cluster, kind="pod", name="late", causes=(Cause(words=words),))


def capacity_is_used_up(rng: random.Random) -> Plant:
    cluster = Cluster()
    node = names(rng, 1, "node")[0]
    cluster.node(node)
    whole, first = 100, rng.randint(40, 70)
    second = rng.randint(whole - first + 1, whole)
    device = {
        "name": "nic", "allowMultipleAllocations": True,
        "capacity": {"bandwidth": {"value": f"{whole}G"}},
    }  # fmt: skip
    cluster.slice(node, [device])
    cluster.device_class()
    holder = names(rng, 1, "held")[0]
    for name, amount in ((holder, first), ("wanted", second)):
        cluster.claim(name, capacity={"requests": {"bandwidth": f"{amount}G"}})
        cluster.pod(f"pod-of-{name}", claim=name)
        cluster.settle()
    words = ("bandwidth", f"{second}G", holder)
    return Plant(cluster=cluster, kind="pod", name="pod-of-wanted", causes=(Cause(words=words),))


def rule_taints(rng: random.Random) -> Plant:
    cluster = Cluster()
    node = names(rng, 1, "node")[0]
    devices = rng.randint(4, 7)
    cluster.node(node)
    cluster.slice(node, devices)
    cluster.device_class()
    rule = names(rng, 1, "rule")[0]
    cluster.rule(rule, effect="NoSchedule", key="example.com/broken", value="fan")
    cluster.claim("wanted")
    cluster.pod("late", claim="wanted")
    cluster.settle()
    words = (f"{devices} devices", "example.com/broken=fan:NoSchedule", f"rule {rule}")
    return Plant(cluster=cluster, kind="pod", name="late", causes=(Cause(words=words),))


def pool_is_incomplete(rng: random.Random) -> Plant:
    cluster = Cluster()
    node = names(rng, 1, "node")[0]
    cluster.node(node)
    announced = rng.randint(2, 5)
    pool = {"name": node, "generation": rng.randint(1, 9), "resourceSliceCount": announced}
    cluster.create(
        "resource.k8s.io/v1", "ResourceSlice", "part",
        spec={"driver": DRIVER, "nodeName": node, "pool": pool, "devices": [{"name": "gpu-0"}]},
    )  # fmt: skip
    cluster.device_class()
    cluster.claim("wanted", allocationMode="All")
    cluster.pod("late", claim="wanted")
    cluster.settle()
    words = (f"{DRIVER}/{node}", f"1 of {announced} slices")
    return Plant(cluster=cluster, kind="pod", name="late", causes=(Cause(words=words),))


def nothing_matches_all(rng: random.Random) -> Plant:
    """Mode All without a matching device."""
    cluster = Cluster()
    node = names(rng, 1, "node")[0]
    cluster.node(node)
    cluster.slice(node, rng.randint(1, 4))
    cluster.device_class("gpu", f'device.driver == "other.{DRIVER}"')
    cluster.claim("wanted", allocationMode="All")
    cluster.pod("late", claim="wanted")
    cluster.settle()
    return Plant(
        cluster=cluster, kind="pod", name="late",
        causes=(Cause(words=("all matching devices", "not selected", "class gpu")),),
        never=("all 0", "0 matching devices", "1 devices"),
    )  # fmt: skip


def gates_hold_back(rng: random.Random) -> Plant:
    cluster = Cluster()
    cluster.node("n")
    gates = names(rng, rng.randint(1, 3), "example.com/gate")
    cluster.pod("late", schedulingGates=[{"name": gate} for gate in gates])
    cluster.settle()
    made = next(e.revision for e in cluster.line.events if e.key.name == "late")
    return Plant(
        cluster=cluster, kind="pod", name="late",
        causes=(Cause(words=tuple(gates)), Cause(words=("alice",), revision=made)),
    )  # fmt: skip


def attempts_are_told(rng: random.Random) -> Plant:
    """New nodes that do not help wake the pod, and it is tried again each time."""
    cluster = Cluster()
    cluster.node("n")
    cluster.device_class("gpu", f'device.driver == "other.{DRIVER}"')
    cluster.claim("wanted")
    cluster.pod("late", claim="wanted")
    cluster.settle()
    count = rng.randint(1, 3)
    last, created = "", 0
    for number in range(count):
        cluster.wait(15)
        last = f"node-{number}-{rng.randrange(10**6)}"
        cluster.node(last)
        created = revision_of(cluster, "nodes", last)
        cluster.settle()
    return Plant(
        cluster=cluster, kind="pod", name="late",
        causes=(
            Cause(words=(f"{count + 1} attempts",)),
            Cause(words=("woken by", last), revision=created),
        ),
    )  # fmt: skip


def conditions_are_awaited(rng: random.Random) -> Plant:
    cluster = Cluster()
    node = names(rng, 1, "node")[0]
    cluster.node(node)
    condition = f"example.com/ready{rng.randrange(1000)}"
    device = {"name": "nic", "bindingConditions": [condition], "bindingFailureConditions": ["bad"]}
    cluster.slice(node, [device])
    cluster.device_class()
    cluster.claim("wanted")
    cluster.pod("late", claim="wanted")
    cluster.settle()
    return Plant(
        cluster=cluster, kind="pod", name="late",
        causes=(Cause(words=("nic", condition, node, "until")),),
    )  # fmt: skip


SOWN: tuple[Sow, ...] = (
    all_in_use,
    network_devices_in_use,
    devices_of_other_nodes,
    selector_is_false,
    attribute_is_missing,
    values_do_not_match,
    counters_are_used_up,
    capacity_is_used_up,
    rule_taints,
    pool_is_incomplete,
    nothing_matches_all,
    gates_hold_back,
    attempts_are_told,
    conditions_are_awaited,
)
