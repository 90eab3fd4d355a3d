"""Runs the scripts of `expected_differences` on redra's control plane."""

from app.domain.controllers.quirks import ControllerQuirks
from app.domain.controllers.registry import ControllerOptions
from tests.cluster import DRIVER, Cluster, claim_spec
from tests.simulation.expected_differences import PLAIN, STEADFAST, TOLERANT, Act, Script, number_of
from tests.simulation.world import OFF

EPOCH_SECONDS = 1_000
"""Longer than anything that waits in the control plane, so that each act finds it at rest."""

KEY = "example.com/bad"

_TOLERATIONS = {
    PLAIN: [],
    TOLERANT: [{"key": KEY, "operator": "Exists"}],
    STEADFAST: [{"key": KEY, "operator": "Exists", "effect": "NoExecute"}],
}


def run(script: Script) -> Cluster:
    """Runs a script; returns the cluster five epochs after the last act."""
    options = ControllerOptions(off=OFF, quirks=ControllerQuirks(c2=script.c2))
    cluster = Cluster(options=options)
    for part, devices in enumerate(script.devices):
        cluster.node(f"n{part}")
        cluster.device_class(f"gpu-{part}", f'device.driver == "{DRIVER}"')
        _publish(cluster, part, devices, 1)
        for kind, tolerations in _TOLERATIONS.items():
            spec = claim_spec(f"gpu-{part}", tolerations=tolerations)
            cluster.create(
                "resource.k8s.io/v1",
                "ResourceClaimTemplate",
                f"{kind}-{part}",
                spec={"spec": spec},
            )
    for act in script.acts:
        if act.what == "arrive":
            number = number_of(act.name)
            cluster.create(
                "scheduling.k8s.io/v1",
                "PriorityClass",
                f"p-{number}",
                value=1_000 - number,
                preemptionPolicy="Never",
            )
    cluster.settle()
    began = cluster.seconds
    for act in script.acts:
        cluster.wait(began + _seconds(act) - cluster.seconds)
        _do(cluster, script, act)
        cluster.settle()
        for _ in range(3):
            cluster.wait(1)
            _reap(cluster)
    # Each waiting pod is tried once more after the longest wait of the queue.
    for _ in range(3):
        cluster.wait(400)
        _reap(cluster)
    cluster.wait(began + EPOCH_SECONDS * (script.epochs + 10) - cluster.seconds)
    return cluster


def _seconds(act: Act) -> float:
    """The time of an act: a planted act delays no other, and each part has its own offset."""
    return EPOCH_SECONDS * (act.time + 1) + 10 * act.part


def _publish(cluster: Cluster, part: int, devices, generation: int) -> None:
    listed = [{"name": name, "attributes": {"model": {"string": model}}} for name, model in devices]
    name = f"n{part}-slice"
    old = cluster.get("resourceslices", name)
    if old is None:
        cluster.slice(f"n{part}", devices=listed)
        return
    pool = {**old["spec"]["pool"], "generation": old["spec"]["pool"]["generation"] + generation}
    spec = {**old["spec"], "devices": listed, "pool": pool}
    cluster.update("resourceslices", {**old, "spec": spec})


def _do(cluster: Cluster, script: Script, act: Act) -> None:
    name, part = act.name, act.part
    match act.what:
        case "arrive":
            cluster.pod(
                name,
                template=f"{act.value}-{part}",
                priorityClassName=f"p-{number_of(name)}",
                nodeSelector={"kubernetes.io/hostname": f"n{part}"},
            )
        case "finish":
            pod = cluster.get("pods", name)
            if pod is not None and pod["spec"].get("nodeName"):
                cluster.finish(name)
        case "remove":
            if cluster.get("pods", name) is not None:
                cluster.delete("pods", name)
        case "taint":
            device, _, effect = act.value.partition(":")
            selector = {"driver": DRIVER, "pool": f"n{part}", "device": device}
            cluster.rule(name, effect=effect, selector=selector)
        case "untaint":
            if cluster.get("devicetaintrules", name) is not None:
                cluster.delete("devicetaintrules", name)
        case "lose":
            left = [device for device in script.devices[part] if device[0] != name]
            _publish(cluster, part, left, 1)
        case "republish":
            _publish(cluster, part, script.devices[part], 1)
        case "select":
            tree = cluster.must("deviceclasses", name)
            expression = f'device.attributes["{DRIVER}"].model == "a"'
            spec = {"selectors": [{"cel": {"expression": expression}}]}
            cluster.update("deviceclasses", {**tree, "spec": spec})
        case "cordon":
            cluster.patch("nodes", name, {"spec": {"unschedulable": True}})


def _reap(cluster: Cluster) -> None:
    """Deletes terminating pods, as kubelets do."""
    for name in cluster.names("pods"):
        if "deletionTimestamp" in cluster.must("pods", name)["metadata"]:
            cluster.kill(name)
