"""Acts in the middle of what controllers do: edits, second thoughts, and parts that are made anew.

Each comes milliseconds after its cause, or is taken back after a while: users, administrators and
drivers do not wait for a cluster to be at rest.
"""

from collections.abc import Mapping

from app.domain.log import ObjectKey
from app.domain.objects.kinds.extended_resources import IMPLICIT
from app.domain.objects.write.commands import BindPod
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject
from tests.cluster import USER
from tests.simulation import hardware
from tests.simulation.fleet_acts import add_pod
from tests.simulation.fleet_world import NAMESPACES, RESOURCE, Act, FleetWorld

TEAM = "team"
BATCH = "batch-scheduler"
EDITED = ("one", "two", "half", "room", "fabric")
LISTED = ("full", "gpu", "half")


def edit_in_flight(world: FleetWorld) -> None:
    """A user labels and annotates the claim of a new pod while it is being allocated."""
    draw = world.random
    template, namespace = draw.choice(EDITED), draw.choice(NAMESPACES)
    add_pod(world, namespace, claims=[{"resourceClaimTemplateName": template}])
    for _ in range(draw.randrange(1, 4)):
        world.cluster.wait(draw.uniform(0.002, 0.08))
        for claim in world.find("resourceclaims"):
            meta = claim["metadata"]
            if meta["namespace"] == namespace and draw.random() < 0.5:
                note = {"example.com/note": str(draw.randrange(9))}
                body = {"metadata": {draw.choice(["labels", "annotations"]): note}}
                world.cluster.patch("resourceclaims", meta["name"], body, namespace=namespace)


def raise_quota(world: FleetWorld) -> None:
    """Pods come that a quota refuses claims for, and it is raised later."""
    draw = world.random
    if world.cluster.get("namespaces", TEAM) is None:
        return
    world.put_quota(draw.choice([0, 1]))
    for _ in range(draw.randrange(1, 4)):
        add_pod(world, TEAM, claims=[{"resourceClaimTemplateName": draw.choice(["one", "two"])}])
    world.cluster.wait(draw.choice([0.05, 2, 70]))
    world.put_quota(draw.choice([4, 20]))


def sharpen_rule(world: FleetWorld) -> None:
    """A rule that keeps new pods away evicts for a while, and is as before afterwards."""
    draw = world.random
    name = world.name("rule")
    selector = {"driver": hardware.GPU, "pool": draw.choice(sorted(world.kinds))}
    world.cluster.rule(name, effect="NoSchedule", selector=selector)
    for effect in ("NoExecute", "NoSchedule"):
        world.cluster.wait(draw.choice([0.05, 2, 30]))
        world.cluster.patch("devicetaintrules", name, {"spec": {"taint": {"effect": effect}}})


def watch_amid(world: FleetWorld) -> None:
    """A pod watches devices with admin access while others get them, and ends before they do."""
    draw = world.random
    add_pod(world, "default", claims=[{"resourceClaimTemplateName": "one"}])
    world.cluster.wait(draw.choice([0, 0.02, 0.1]))
    add_pod(world, "watchers", claims=[{"resourceClaimTemplateName": "watch"}])
    add_pod(world, "default", claims=[{"resourceClaimTemplateName": "two"}])


def arrive_with_choice(world: FleetWorld) -> None:
    """A pod takes what there is: its first choices are more devices than any node has."""
    draw = world.random
    name = world.name("choice")
    wanted = [(f"a{place}", draw.choice(LISTED), 9) for place in range(draw.randrange(1, 3))]
    wanted.append(("last", draw.choice(LISTED), 1))
    listed = [
        {"name": place, "deviceClassName": kind, "count": count} for place, kind, count in wanted
    ]
    requests = [{"name": "r0", "firstAvailable": listed}]
    world.put_template(name, {"devices": {"requests": requests}}, "default")
    add_pod(world, "default", claims=[{"resourceClaimTemplateName": name}])


def arrive_by_class(world: FleetWorld) -> None:
    """A pod asks for an extended resource that a class has without saying so."""
    name = IMPLICIT + world.random.choice(["gpu", "half"])
    resources = {"requests": {name: "1"}, "limits": {name: "1"}}
    container = {"name": "main", "image": "busybox:1", "resources": resources}
    add_pod(world, "default", containers=[container])


def end_namespace_amid(world: FleetWorld) -> None:
    """A namespace is deleted while its new pods get their devices."""
    draw = world.random
    if world.cluster.get("namespaces", TEAM) is None:
        return
    for _ in range(draw.randrange(1, 4)):
        template = draw.choice(["one", "half", "net"])
        add_pod(world, TEAM, claims=[{"resourceClaimTemplateName": template}])
    world.cluster.wait(draw.uniform(0.005, 0.15))
    world.cluster.delete("namespaces", TEAM)


def replace_node_amid(world: FleetWorld) -> None:
    """A machine registers anew under its name while a pod is being placed."""
    draw = world.random
    found = world.any_of("nodes")
    if found is None:
        return
    add_pod(world, "default", claims=[{"resourceClaimTemplateName": draw.choice(EDITED)}])
    world.cluster.wait(draw.uniform(0, 0.1))
    name = found["metadata"]["name"]
    world.cluster.delete("nodes", name)
    world.cluster.wait(draw.choice([0.01, 0.2, 3]))
    world.add_node(name)


def schedule_otherwise(world: FleetWorld) -> None:
    """Another scheduler, which nobody here knows, places a pod without claims; or nobody does."""
    draw = world.random
    name = f"pod-{world.names + 1}"
    add_pod(world, "default", schedulerName=BATCH)
    add_pod(world, "default", claims=[{"resourceClaimTemplateName": "one"}])
    world.cluster.wait(draw.choice([0.02, 1, 20]))
    found = world.any_of("nodes")
    if found is not None and draw.random() < 0.8:
        key = ObjectKey("", "pods", "default", name)
        world.cluster.line.submit(BindPod(key=key, node=found["metadata"]["name"]), actor=USER)


def restart_kubelet(world: FleetWorld) -> None:
    """A kubelet that begins deletes the slices of its node, and the drivers publish them anew."""
    draw = world.random
    found = world.any_of("nodes")
    if found is None:
        return
    name = found["metadata"]["name"]
    if draw.random() < 0.5:
        add_pod(world, "default", claims=[{"resourceClaimTemplateName": draw.choice(EDITED)}])
        world.cluster.wait(draw.uniform(0, 0.1))
    for tree in world.find("resourceslices"):
        if json_tree.text(tree, "spec", "nodeName") == name:
            world.cluster.delete("resourceslices", tree["metadata"]["name"])
    for place in [place for place in world.generations if place[1] == name]:
        world.generations[place] = 0
    world.cluster.wait(draw.choice([0.02, 0.5, 12]))
    world.publish(name)


def recreate_claim(world: FleetWorld) -> None:
    """A user deletes a claim that a pod waits for, and makes it anew under its name."""
    draw = world.random
    name = f"again-{draw.randrange(3)}"
    spec: JsonObject = world.cluster.must("resourceclaimtemplates", "one")["spec"]["spec"]
    if world.cluster.get("resourceclaims", name) is None:
        world.cluster.create(RESOURCE, "ResourceClaim", name, spec=json_tree.copy(spec))
    add_pod(world, "default", claims=[{"resourceClaimName": name}])
    world.cluster.wait(draw.uniform(0, 0.1))
    world.cluster.delete("resourceclaims", name)
    world.cluster.wait(draw.choice([0, 0.01, 1]))
    if world.cluster.get("resourceclaims", name) is None:
        world.cluster.create(RESOURCE, "ResourceClaim", name, spec=json_tree.copy(spec))


EDITS: Mapping[Act, int] = {
    edit_in_flight: 8,
    raise_quota: 5,
    sharpen_rule: 5,
    watch_amid: 4,
    arrive_with_choice: 8,
    arrive_by_class: 4,
    end_namespace_amid: 4,
    replace_node_amid: 4,
    schedule_otherwise: 5,
    restart_kubelet: 5,
    recreate_claim: 5,
}
"""Acts in the middle of others, beside those of `ACTS`, with their weights."""
