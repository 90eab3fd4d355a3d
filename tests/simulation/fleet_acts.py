"""The acts of a fleet world: one function per act, and the weight with which it is chosen."""

from collections.abc import Mapping

from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject
from tests.cluster import claim_spec
from tests.simulation import hardware
from tests.simulation.fleet_world import NAMESPACES, RESOURCE, Act, FleetWorld

TEMPLATES = tuple(name for name in hardware.templates() if name != "watch")
REPLACED = tuple(name for name in TEMPLATES if name != "patient")
"""What pods that are replaced may ask for: on a device that is tainted longer than the patience
lasts they would be placed, evicted and replaced for ever, in no time at all.
"""
SECONDS = ("0", "3", "30", "600", "3600")
LOST = "redra.dev/lost-drivers"
LABELLED = ("pods", "resourceclaims", "nodes", "resourceslices", "resourceclaimtemplates")
HELD = ("pods", "resourceclaims")
HOLD = "example.com/hold"
SERVICE = "example.com/service"
DRIVERS = (hardware.GPU, hardware.NIC, hardware.CUT, hardware.SHARE, hardware.NET)


# Users


def arrive(world: FleetWorld) -> None:
    draw = world.random
    template = draw.choice(TEMPLATES)
    add_pod(world, draw.choice(NAMESPACES), claims=[{"resourceClaimTemplateName": template}])


def arrive_with_two(world: FleetWorld) -> None:
    draw = world.random
    chosen = [{"resourceClaimTemplateName": draw.choice(TEMPLATES)} for _ in range(2)]
    add_pod(world, draw.choice(NAMESPACES), claims=chosen)


def arrive_shared(world: FleetWorld) -> None:
    draw = world.random
    name = f"shared-{draw.randrange(3)}"
    if world.cluster.get("resourceclaims", name) is None:
        if draw.random() < 0.5:
            world.cluster.claim(name)
        else:
            spec = world.cluster.must("resourceclaimtemplates", "quarter")["spec"]["spec"]
            world.cluster.create(RESOURCE, "ResourceClaim", name, spec=json_tree.copy(spec))
    add_pod(world, "default", claims=[{"resourceClaimName": name}])


def arrive_before_claim(world: FleetWorld) -> None:
    """Creates a pod whose claim is created later, or never."""
    add_pod(world, "default", claims=[{"resourceClaimName": f"late-{world.random.randrange(4)}"}])


def make_claim(world: FleetWorld) -> None:
    name = f"late-{world.random.randrange(4)}"
    world.cluster.create(RESOURCE, "ResourceClaim", name, spec=claim_spec())


def arrive_extended(world: FleetWorld) -> None:
    add_pod(world, "default", extended=world.random.choice([1, 1, 2]))


def watch(world: FleetWorld) -> None:
    """Creates a pod that uses devices with admin access."""
    add_pod(world, "watchers", claims=[{"resourceClaimTemplateName": "watch"}])


def deploy(world: FleetWorld) -> None:
    name = world.name("deployment")
    spec = _pod_spec(world, [{"resourceClaimTemplateName": world.random.choice(REPLACED)}], 0)
    world.cluster.create(
        "apps/v1",
        "Deployment",
        name,
        spec={
            "replicas": world.random.randrange(1, 4),
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": spec},
        },
    )


def scale(world: FleetWorld) -> None:
    found = world.any_of("deployments")
    if found is not None:
        name = found["metadata"]["name"]
        replicas = world.random.randrange(4)
        world.cluster.patch("deployments", name, {"spec": {"replicas": replicas}})


def undeploy(world: FleetWorld) -> None:
    found = world.any_of("deployments")
    if found is not None:
        way = world.random.choice(["Background", "Foreground", "Orphan"])
        world.cluster.delete("deployments", found["metadata"]["name"], propagation=way)


def run_job(world: FleetWorld) -> None:
    draw = world.random
    spec = _pod_spec(world, [{"resourceClaimTemplateName": draw.choice(REPLACED)}], 0)
    spec["restartPolicy"] = "Never"
    annotations = {"redra.dev/run-seconds": draw.choice(SECONDS)}
    if draw.random() < 0.2:
        annotations["redra.dev/exit-code"] = "1"
    world.cluster.create(
        "batch/v1",
        "Job",
        world.name("job"),
        spec={
            "completions": draw.randrange(1, 4),
            "parallelism": draw.randrange(1, 3),
            "backoffLimit": 2,
            "template": {"metadata": {"annotations": annotations}, "spec": spec},
        },
    )


def forget_job(world: FleetWorld) -> None:
    found = world.any_of("jobs")
    if found is not None:
        world.cluster.delete("jobs", found["metadata"]["name"], propagation="Background")


def remove(world: FleetWorld) -> None:
    found = world.any_of("pods")
    if found is not None:
        meta = found["metadata"]
        world.cluster.delete("pods", meta["name"], meta["namespace"])


def remove_at_once(world: FleetWorld) -> None:
    found = world.any_of("pods")
    if found is not None:
        meta = found["metadata"]
        world.cluster.delete("pods", meta["name"], meta["namespace"], grace_seconds=0)


def tidy(world: FleetWorld) -> None:
    """Deletes finished pods, as users do now and then."""
    for tree in world.find("pods"):
        if json_tree.text(tree, "status", "phase") in ("Succeeded", "Failed"):
            meta = tree["metadata"]
            world.cluster.delete("pods", meta["name"], meta["namespace"])


def drop_claim(world: FleetWorld) -> None:
    found = world.any_of("resourceclaims")
    if found is not None:
        meta = found["metadata"]
        world.cluster.delete("resourceclaims", meta["name"], meta["namespace"])


# Administrators


def taint(world: FleetWorld) -> None:
    draw = world.random
    driver = draw.choice(DRIVERS)
    selector: JsonObject = {"driver": driver}
    if draw.random() < 0.7:
        selector["pool"] = draw.choice(sorted(world.kinds))
        if driver == hardware.GPU and draw.random() < 0.5:
            selector["device"] = f"gpu-{draw.randrange(4)}"
    effect = draw.choice(["NoExecute", "NoExecute", "NoSchedule", "None"])
    world.cluster.rule(world.name("rule"), effect=effect, selector=selector)


def change_rule(world: FleetWorld) -> None:
    found = world.any_of("devicetaintrules")
    if found is not None:
        effect = world.random.choice(["NoExecute", "NoSchedule", "None"])
        body = {"spec": {"taint": {"effect": effect}}}
        world.cluster.patch("devicetaintrules", found["metadata"]["name"], body)


def untaint(world: FleetWorld) -> None:
    found = world.any_of("devicetaintrules")
    if found is not None:
        world.cluster.delete("devicetaintrules", found["metadata"]["name"])


def patch_devices(world: FleetWorld) -> None:
    driver = hardware.GPU
    value = world.random.choice(["new", "old", "odd"])
    devices = {"filter": {"driver": driver}, "attributes": {f"{driver}/model": {"string": value}}}
    if world.random.random() < 0.7:
        devices["filter"]["pool"] = world.random.choice(sorted(world.kinds))
    name = world.name("patch")
    tree = {
        "apiVersion": "resource.k8s.io/v1alpha3",
        "kind": "ResourceSlicePatch",
        "metadata": {"name": name},
        "spec": {"devices": devices},
    }
    world.cluster.apply(tree)


def unpatch(world: FleetWorld) -> None:
    found = world.any_of("resourceslicepatches")
    if found is not None:
        world.cluster.delete("resourceslicepatches", found["metadata"]["name"])


def change_quota(world: FleetWorld) -> None:
    world.put_quota(world.random.choice([2, 8, 20]))


def cordon(world: FleetWorld) -> None:
    found = world.any_of("nodes")
    if found is not None:
        flag = world.random.random() < 0.5
        world.cluster.patch("nodes", found["metadata"]["name"], {"spec": {"unschedulable": flag}})


def drop_class(world: FleetWorld) -> None:
    world.cluster.delete("deviceclasses", world.random.choice(sorted(hardware.classes())))


def restore_classes(world: FleetWorld) -> None:
    for name, spec in hardware.classes().items():
        if world.cluster.get("deviceclasses", name) is None:
            world.cluster.create(RESOURCE, "DeviceClass", name, spec=spec)


def drop_namespace(world: FleetWorld) -> None:
    world.cluster.delete("namespaces", "team")


def restore_namespace(world: FleetWorld) -> None:
    if world.cluster.get("namespaces", "team") is not None:
        return
    world.cluster.create("v1", "Namespace", "team")
    world.put_quota(8)
    for name, spec in hardware.templates().items():
        if name != "watch":
            world.put_template(name, spec, "team")


def ask_for_pools(world: FleetWorld) -> None:
    tree = {
        "apiVersion": "resource.k8s.io/v1alpha3",
        "kind": "ResourcePoolStatusRequest",
        "metadata": {"name": world.name("pools")},
        "spec": {"driver": world.random.choice(DRIVERS)},
    }
    world.cluster.apply(tree)


# Drivers and nodes


def fall_ill(world: FleetWorld) -> None:
    """A driver taints a device of its own, or heals it."""
    found = world.any_of("resourceslices")
    if found is None or not found["spec"].get("devices"):
        return
    new = json_tree.copy(found)
    device = world.random.choice(new["spec"]["devices"])
    if device.pop("taints", None) is None:
        effect = world.random.choice(["NoExecute", "NoSchedule"])
        device["taints"] = [{"key": "example.com/ill", "value": "yes", "effect": effect}]
    world.cluster.update("resourceslices", new)


def lose_driver(world: FleetWorld) -> None:
    """Removes a driver; the kubelet deletes its slices after a while."""
    found = world.any_of("nodes")
    if found is not None:
        name = found["metadata"]["name"]
        lost = ",".join(hardware.DRIVERS_OF[world.kinds[name]])
        world.cluster.patch("nodes", name, {"metadata": {"annotations": {LOST: lost}}})


def lose_slice(world: FleetWorld) -> None:
    found = world.any_of("resourceslices")
    if found is not None:
        world.cluster.delete("resourceslices", found["metadata"]["name"])


def restore_drivers(world: FleetWorld) -> None:
    for node in world.find("nodes"):
        name = node["metadata"]["name"]
        if json_tree.text(node, "metadata", "annotations", LOST):
            world.cluster.patch("nodes", name, {"metadata": {"annotations": {LOST: None}}})
        world.publish(name)
    world.publish_network()


def publish_half(world: FleetWorld) -> None:
    found = world.any_of("nodes")
    if found is not None:
        world.publish(found["metadata"]["name"], only_first=True)


def lose_devices(world: FleetWorld) -> None:
    """Publishes the next generation of a pool without its last devices."""
    wanted = [name for name, kind in sorted(world.kinds.items()) if kind in ("whole", "shared")]
    world.publish(world.random.choice(wanted), without=1)


def lose_node(world: FleetWorld) -> None:
    found = world.any_of("nodes")
    if found is not None and world.random.random() < 0.7:
        world.cluster.delete("nodes", found["metadata"]["name"])


def restore_nodes(world: FleetWorld) -> None:
    for name in sorted(world.kinds):
        if world.cluster.get("nodes", name) is None:
            world.add_node(name)


def attach(world: FleetWorld) -> None:
    """The fabric's driver reports the result of attaching for every claim that waits for it."""
    for claim in world.find("resourceclaims"):
        results = json_tree.objects(claim, "status", "allocation", "devices", "results")
        waiting = [found for found in results if found.get("bindingConditions")]
        if not waiting or json_tree.objects(claim, "status", "devices"):
            continue
        condition = world.random.choice(["attached", "attached", "attached", "broken"])
        new = json_tree.copy(claim)
        new["status"]["devices"] = [_told(found, condition) for found in waiting]
        world.cluster.update("resourceclaims", new, "status")


def _told(result: JsonObject, condition: str) -> JsonObject:
    said = {
        "type": condition,
        "status": "True",
        "reason": "Told",
        "message": "by the driver",
        "lastTransitionTime": "2026-01-02T03:00:00Z",
    }
    return {**_device(result), "conditions": [said]}


def _device(result: JsonObject) -> JsonObject:
    named = ("driver", "pool", "device", "shareID")
    return {name: result[name] for name in named if name in result}


def _pod_spec(world: FleetWorld, claims: list[JsonObject], extended: int) -> JsonObject:
    container: JsonObject = {"name": "main", "image": "busybox:1"}
    resources: JsonObject = {"requests": {"cpu": world.random.choice(["100m", "1", "8"])}}
    if extended:
        resources["requests"][hardware.EXTENDED] = str(extended)
        resources["limits"] = {hardware.EXTENDED: str(extended)}
    container["resources"] = resources
    entries = [{"name": f"c{place}", **claim} for place, claim in enumerate(claims)]
    return {"containers": [container], "resourceClaims": entries}


def add_pod(
    world: FleetWorld,
    namespace: str,
    *,
    claims: list[JsonObject] | None = None,
    extended: int = 0,
    **more: object,
) -> None:
    draw = world.random
    annotations = {"redra.dev/start-seconds": draw.choice(SECONDS[:4])}
    if draw.random() < 0.8:
        annotations["redra.dev/run-seconds"] = draw.choice(SECONDS)
    if draw.random() < 0.3:
        annotations["redra.dev/stop-seconds"] = draw.choice(SECONDS[:3])
    spec = {**_pod_spec(world, claims or [], extended), "restartPolicy": "Never", **more}
    if draw.random() < 0.1:
        spec["priorityClassName"] = "urgent"
    name = world.name("pod")
    world.cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "annotations": annotations},
            "spec": spec,
        }
    )


ACTS: Mapping[Act, int] = {
    arrive: 24,
    arrive_with_two: 4,
    arrive_shared: 6,
    arrive_before_claim: 2,
    make_claim: 2,
    arrive_extended: 4,
    watch: 1,
    deploy: 2,
    scale: 3,
    undeploy: 2,
    run_job: 3,
    forget_job: 2,
    remove: 8,
    remove_at_once: 2,
    tidy: 5,
    drop_claim: 2,
    taint: 4,
    change_rule: 2,
    untaint: 5,
    patch_devices: 1,
    unpatch: 2,
    change_quota: 1,
    cordon: 3,
    drop_class: 1,
    restore_classes: 3,
    drop_namespace: 1,
    restore_namespace: 3,
    ask_for_pools: 1,
    fall_ill: 3,
    lose_driver: 1,
    lose_slice: 1,
    restore_drivers: 3,
    publish_half: 1,
    lose_devices: 1,
    lose_node: 1,
    restore_nodes: 3,
    attach: 6,
}
"""Every act with its weight. New acts go to the end: seeds keep their stories longer."""


# What is usual in clusters, and about which no controller here decides


def label(world: FleetWorld) -> None:
    """A user labels an object of any kind, or takes the label away again."""
    resource = world.random.choice(LABELLED)
    found = world.any_of(resource)
    if found is not None:
        meta = found["metadata"]
        value = None if "team" in meta.get("labels", {}) else world.random.choice(["red", "blue"])
        body = {"metadata": {"labels": {"team": value}}}
        namespace = meta.get("namespace", "")
        world.cluster.patch(resource, meta["name"], body, namespace=namespace)


def hold(world: FleetWorld) -> None:
    """A controller of a third party keeps an object, until it is done with it."""
    resource = world.random.choice(HELD)
    found = world.any_of(resource)
    if found is not None and "deletionTimestamp" not in found["metadata"]:
        kept = [each for each in found["metadata"].get("finalizers", []) if each != HOLD]
        _finalizers(world, resource, found, [*kept, HOLD])


def let_go(world: FleetWorld) -> None:
    """That controller is done with all that it keeps."""
    for resource in HELD:
        for tree in world.find(resource):
            kept = tree["metadata"].get("finalizers", [])
            if HOLD in kept:
                _finalizers(world, resource, tree, [each for each in kept if each != HOLD])


def _finalizers(world: FleetWorld, resource: str, tree: JsonObject, kept: list[str]) -> None:
    new = json_tree.copy(tree)
    new["metadata"]["finalizers"] = kept
    world.cluster.update(resource, new)


def roll_out(world: FleetWorld) -> None:
    """A Deployment gets another image, so that its pods are replaced one after the other."""
    found = world.any_of("deployments")
    if found is not None:
        new = json_tree.copy(found)
        container = new["spec"]["template"]["spec"]["containers"][0]
        container["image"] = f"busybox:{world.random.randrange(2, 9)}"
        world.cluster.update("deployments", new)


def report_devices(world: FleetWorld) -> None:
    """Drivers say which addresses the devices of the claims in use have, or that they changed."""
    for claim in world.find("resourceclaims"):
        results = json_tree.objects(claim, "status", "allocation", "devices", "results")
        plain = [each for each in results if not each.get("bindingConditions")]
        if not plain or world.random.random() < 0.5:
            continue
        new = json_tree.copy(claim)
        address = f"192.0.2.{world.random.randrange(1, 255)}/24"
        network = {"interfaceName": "net1", "ips": [address]}
        new["status"]["devices"] = [{**_device(each), "networkData": network} for each in plain]
        world.cluster.update("resourceclaims", new, "status")


def arrive_gated(world: FleetWorld) -> None:
    """Creates a pod that a queue of jobs admits later."""
    gates = [{"name": "example.com/queue"}]
    claims = [{"resourceClaimTemplateName": world.random.choice(TEMPLATES)}]
    add_pod(world, world.random.choice(NAMESPACES), claims=claims, schedulingGates=gates)


def admit(world: FleetWorld) -> None:
    """The queue of jobs admits the pods that wait."""
    for tree in world.find("pods"):
        if tree["spec"].get("schedulingGates") and world.random.random() < 0.7:
            new = json_tree.copy(tree)
            del new["spec"]["schedulingGates"]
            world.cluster.update("pods", new)


def taint_node(world: FleetWorld) -> None:
    """An administrator taints a node, or takes the taint away again."""
    found = world.any_of("nodes")
    if found is None:
        return
    kept = found["spec"].get("taints", [])
    left = [each for each in kept if each["key"] != SERVICE]
    if len(left) == len(kept):
        left = [*kept, {"key": SERVICE, "value": "yes", "effect": "NoSchedule"}]
    new = json_tree.copy(found)
    new["spec"]["taints"] = left
    world.cluster.update("nodes", new)


def replace_node(world: FleetWorld) -> None:
    """A node is deleted, and its machine registers again under the same name."""
    found = world.any_of("nodes")
    if found is not None:
        name = found["metadata"]["name"]
        world.cluster.delete("nodes", name)
        world.cluster.wait(world.random.choice([0.2, 3, 40]))
        world.add_node(name)


def drain(world: FleetWorld) -> None:
    """An administrator closes a node for new pods and deletes those that are on it."""
    found = world.any_of("nodes")
    if found is None:
        return
    name = found["metadata"]["name"]
    world.cluster.patch("nodes", name, {"spec": {"unschedulable": True}})
    for pod in world.find("pods"):
        if pod["spec"].get("nodeName") == name:
            world.cluster.delete("pods", pod["metadata"]["name"], pod["metadata"]["namespace"])


def edit_class(world: FleetWorld) -> None:
    """A class selects nothing for a while, or what it did before, by an edit in place."""
    name = world.random.choice(sorted(hardware.classes()))
    found = world.cluster.get("deviceclasses", name)
    if found is None:
        return
    new = json_tree.copy(found)
    selectors = hardware.classes()[name].get("selectors", [])
    nothing = [*selectors, {"cel": {"expression": "false"}}]
    new["spec"]["selectors"] = selectors if len(found["spec"]["selectors"]) > 1 else nothing
    world.cluster.update("deviceclasses", new)


def arrive_together(world: FleetWorld) -> None:
    """A job queue makes many pods of one sort at one instant."""
    template, namespace = world.random.choice(TEMPLATES), world.random.choice(NAMESPACES)
    for _ in range(world.random.randrange(4, 9)):
        add_pod(world, namespace, claims=[{"resourceClaimTemplateName": template}])


UPKEEP: Mapping[Act, int] = {drain: 5, edit_class: 8, arrive_together: 8}
"""Acts of administrators and job queues, beside those of `ACTS`, with their weights."""

ROUTINE: Mapping[Act, int] = {
    label: 10,
    hold: 6,
    let_go: 8,
    roll_out: 3,
    report_devices: 6,
    arrive_gated: 6,
    admit: 6,
    taint_node: 3,
    replace_node: 2,
}
"""Acts of everyday clusters, beside those of `ACTS`, with their weights."""
