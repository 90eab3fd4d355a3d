"""The scenes of recordings written by hand: prioritized lists, shares, extended resources, binding
conditions, alignment over drivers, generations of pools.

Each function says what happened, request by request; `SCENES` has them all.
"""

from collections.abc import Callable

from tests.conformance.handwritten.recordings import (
    ALICE,
    CLAIMS,
    COLLECTOR,
    DRIVER,
    SCHEDULER,
    Recorder,
    allocation,
    exactly,
    pool,
    result,
    unfit,
)

GPU, NIC = "gpu.example.com", "nic.example.com"
ATTACHED, FAILED = "example.com/attached", "example.com/failed"
CONDITIONS = {"bindingConditions": [ATTACHED], "bindingFailureConditions": [FAILED]}
DEALLOCATED = "deallocation of ResourceClaim completed"
CANNOT = "cannot allocate all claims"
POLL = 5.002
"""Seconds from the writing of the claims to a look that finds something: the grid, and a bit."""


def cluster(seed: str, nodes: int = 1, **amounts: str) -> Recorder:
    recorder = Recorder(seed)
    for number in range(nodes):
        recorder.node(f"node-{number}", **amounts)
    recorder.device_class("gpu", f'device.driver == "{GPU}"')
    return recorder


def conditional(name: str = "d0", **more: object) -> dict:
    """A device that has to be made ready for a node."""
    return {"name": name, "bindsToNode": True, **CONDITIONS, **more}


def with_conditional_devices(seed: str, *names: str) -> Recorder:
    recorder = cluster(seed)
    devices = [conditional(name) for name in names]
    recorder.slice("slice", GPU, pool("node-0"), devices, nodeName="node-0")
    recorder.wait(5)
    return recorder


def own(claim: str) -> list[dict]:
    return [{"name": "dev", "resourceClaimName": claim}]


def made_from(template: str) -> list[dict]:
    return [{"name": "dev", "resourceClaimTemplateName": template}]


def template(recorder: Recorder, name: str, **devices: object) -> None:
    spec = {"spec": {"devices": devices}}
    recorder.create(ALICE, "ResourceClaimTemplate", name, spec=spec)


def on_node_0(*devices: str, request: str = "gpu") -> dict:
    """An allocation of devices that have binding conditions."""
    return allocation(
        "node-0", *(result(request, GPU, "node-0", device, **CONDITIONS) for device in devices)
    )


def tell(recorder: Recorder, claim: str, kind: str, status: str = "True", **why: str) -> None:
    """The driver writes the status of a claim's device."""
    held = recorder.get("ResourceClaim", claim)["status"]["allocation"]["devices"]["results"][0]
    names = ("driver", "pool", "device", "shareID")
    device = {name: held[name] for name in names if name in held}
    condition = {"type": kind, "status": status, "reason": "Told", "message": "", **why}
    condition["lastTransitionTime"] = recorder.seconds
    device["conditions"] = [condition]
    recorder.claim_status(DRIVER, claim, devices=[device])


def wait_for_devices(recorder: Recorder, pod: str, node: str = "node-0") -> float:
    """The Event of a pod whose claims are written; returns the instant of the writes."""
    written = recorder.now
    note = f"waiting for binding conditions for device on node {node}"
    recorder.wait(0.001)
    recorder.say(pod, "Normal", "BindingConditionsPending", "Scheduling", note)
    return written


def place(recorder: Recorder, pod: str, claim: str, node: str, found: dict) -> None:
    """A placement without binding conditions, and the start of the pod."""
    recorder.nominate(pod, node)
    recorder.reserve(pod, claim, found)
    recorder.bind(pod, node)
    recorder.start(pod)


def until(recorder: Recorder, moment: float) -> None:
    recorder.wait(moment - recorder.now)


def give_up(recorder: Recorder, pod: str, text: str, *claims: str) -> None:
    """A failed check: reservations are removed, and the pod gets the message."""
    for claim in claims:
        recorder.unreserve(pod, claim)
        recorder.wait(0.002)
    message = f'running PreBind plugin "DynamicResources": {text}'
    recorder.fail(pod, message, "SchedulerError")


def deallocate(recorder: Recorder, pod: str, claim: str, nodes: int = 1) -> None:
    """The next attempt: no node takes the claim, so it is given back."""
    recorder.claim_status(SCHEDULER, claim, allocation=None, reservedFor=None, devices=None)
    recorder.wait(0.001)
    reasons = f"{nodes} resourceclaim not available on the node"
    recorder.fail(pod, unfit(nodes, reasons, DEALLOCATED))
    recorder.wait(0.006)


def devices_are_made_ready() -> Recorder:
    recorder = with_conditional_devices("ready", "d0")
    recorder.claim("claim", requests=[exactly("gpu", "gpu")])
    recorder.pod("pod", resourceClaims=own("claim"))
    recorder.nominate("pod", "node-0")
    recorder.reserve("pod", "claim", on_node_0("d0"))
    written = wait_for_devices(recorder, "pod")
    until(recorder, written + 4.06)
    tell(recorder, "claim", ATTACHED)
    until(recorder, written + POLL)
    recorder.bind("pod", "node-0")
    recorder.start("pod")
    recorder.wait(3)
    recorder.finish("pod", "claim", generated=False)
    return recorder


def _told_or_not(seed: str, told: float, looked: float, text: str) -> Recorder:
    """A failure that is written after `told` seconds (0: never), and seen after `looked`."""
    recorder = with_conditional_devices(seed, "d0")
    recorder.claim("claim", requests=[exactly("gpu", "gpu")])
    recorder.pod("pod", resourceClaims=own("claim"))
    recorder.nominate("pod", "node-0")
    recorder.reserve("pod", "claim", on_node_0("d0"))
    written = wait_for_devices(recorder, "pod")
    if told:
        until(recorder, written + told)
        tell(recorder, "claim", FAILED, reason="Broken", message="no link")
    until(recorder, written + looked)
    give_up(recorder, "pod", text, "claim")
    recorder.wait(1.8)
    deallocate(recorder, "pod", "claim")
    recorder.nominate("pod", "node-0")
    recorder.reserve("pod", "claim", on_node_0("d0"))
    written = wait_for_devices(recorder, "pod")
    until(recorder, written + 2)
    tell(recorder, "claim", ATTACHED)
    until(recorder, written + POLL)
    recorder.bind("pod", "node-0")
    recorder.start("pod")
    return recorder


def device_fails() -> Recorder:
    text = 'device binding failed: claim=claim, reason=Broken, message="no link"'
    return _told_or_not("failed", 3, POLL, text)


def device_is_late() -> Recorder:
    return _told_or_not("late", 0, 600.003, "device binding timeout: claim=claim")


def failure_behind_another_claim() -> Recorder:
    """The first claim is not ready, so the failure of the second is not seen yet."""
    recorder = with_conditional_devices("two claims", "d0", "d1")
    for name in ("a", "b"):
        recorder.claim(name, requests=[exactly("gpu", "gpu")])
    entries = [{"name": name, "resourceClaimName": name} for name in ("a", "b")]
    recorder.pod("pod", resourceClaims=entries)
    recorder.nominate("pod", "node-0")
    recorder.reserve("pod", "a", on_node_0("d0"))
    recorder.reserve("pod", "b", on_node_0("d1"))
    written = wait_for_devices(recorder, "pod")
    recorder.wait(1)
    tell(recorder, "b", FAILED, reason="Broken")
    until(recorder, written + 7)
    tell(recorder, "a", ATTACHED)
    until(recorder, written + 2 * POLL)
    give_up(recorder, "pod", 'device binding failed: claim=b, reason=Broken, message=""', "a", "b")
    recorder.wait(1.8)
    deallocate(recorder, "pod", "b")
    recorder.nominate("pod", "node-0")
    recorder.reserve("pod", "a")
    recorder.reserve("pod", "b", on_node_0("d1"))
    written = wait_for_devices(recorder, "pod")
    recorder.wait(1)
    tell(recorder, "b", ATTACHED)
    until(recorder, written + POLL)
    recorder.bind("pod", "node-0")
    return recorder


def pod_goes_after_a_failure() -> Recorder:
    """C10: the claim keeps its device until another pod of it comes; that one gives it back."""
    recorder = with_conditional_devices("c10", "d0")
    for name in ("claim", "other"):
        recorder.claim(name, requests=[exactly("gpu", "gpu")])
    recorder.pod("pod", resourceClaims=own("claim"))
    recorder.nominate("pod", "node-0")
    recorder.reserve("pod", "claim", on_node_0("d0"))
    written = wait_for_devices(recorder, "pod")
    recorder.wait(1)
    tell(recorder, "claim", FAILED, reason="Broken")
    until(recorder, written + POLL)
    text = 'device binding failed: claim=claim, reason=Broken, message=""'
    give_up(recorder, "pod", text, "claim")
    recorder.wait(0.3)
    recorder.delete(ALICE, "Pod", "pod")
    recorder.wait(2)
    recorder.pod("other", resourceClaims=own("other"))
    recorder.wait(0.006)
    recorder.fail("other", unfit(1, f"1 {CANNOT}"))
    recorder.wait(3)
    recorder.pod("next", resourceClaims=own("claim"))
    recorder.wait(0.006)
    deallocate(recorder, "next", "claim")
    recorder.nominate("other", "node-0")
    recorder.reserve("other", "other", on_node_0("d0"))
    written = wait_for_devices(recorder, "other")
    recorder.wait(0.8)
    recorder.fail("next", unfit(1, f"1 {CANNOT}"))
    recorder.wait(1)
    tell(recorder, "other", ATTACHED)
    until(recorder, written + POLL)
    recorder.bind("other", "node-0")
    return recorder


def pod_goes_while_devices_are_made_ready() -> Recorder:
    recorder = with_conditional_devices("deleted", "d0")
    template(recorder, "any", requests=[exactly("gpu", "gpu")])
    recorder.pod("pod", resourceClaims=made_from("any"))
    claim = recorder.make_claim("pod", "dev", "any")
    recorder.nominate("pod", "node-0")
    recorder.reserve("pod", claim, on_node_0("d0"))
    wait_for_devices(recorder, "pod")
    recorder.wait(2)
    recorder.pod("next", resourceClaims=made_from("any"))
    other = recorder.make_claim("next", "dev", "any")
    recorder.wait(0.006)
    recorder.fail("next", unfit(1, f"1 {CANNOT}"))
    recorder.wait(1.5)
    recorder.delete(ALICE, "Pod", "pod")
    recorder.wait(0.01)
    recorder.claim_status(CLAIMS, claim, reservedFor=None, allocation=None)
    recorder.nominate("next", "node-0")
    recorder.finalizer(CLAIMS, claim, there=False)
    recorder.wait(0.01)
    recorder.delete(COLLECTOR, "ResourceClaim", claim)
    recorder.reserve("next", other, on_node_0("d0"))
    written = wait_for_devices(recorder, "next")
    recorder.wait(1)
    tell(recorder, other, ATTACHED)
    until(recorder, written + POLL)
    recorder.bind("next", "node-0")
    return recorder


def pods_share_a_fresh_claim() -> Recorder:
    recorder = with_conditional_devices("fresh", "d0")
    recorder.claim("claim", requests=[exactly("gpu", "gpu")])
    for pod in ("first", "second"):
        recorder.pod(pod, resourceClaims=own("claim"))
    recorder.nominate("first", "node-0")
    text = "resource claim work/claim is in the process of being allocated"
    recorder.fail("second", unfit(1, text, "no new claims to deallocate"))
    recorder.reserve("first", "claim", on_node_0("d0"))
    written = wait_for_devices(recorder, "first")
    recorder.nominate("second", "node-0")
    recorder.reserve("second", "claim")
    wait_for_devices(recorder, "second")
    recorder.wait(1)
    tell(recorder, "claim", ATTACHED)
    until(recorder, written + POLL)
    for pod in ("first", "second"):
        recorder.bind(pod, "node-0")
    for pod in ("first", "second"):
        recorder.start(pod)
    return recorder


def extended_claim(recorder: Recorder, pod: str, requests: list[dict]) -> str:
    """The scheduler makes the claim of a pod that asks for extended resources."""
    recorder.wait(0.006)
    return recorder.create(
        SCHEDULER,
        "ResourceClaim",
        metadata={
            "generateName": f"{pod}-extended-resources-",
            "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
            "ownerReferences": [recorder.owner(pod)],
        },
        spec={"devices": {"requests": requests}},
        status={},
    )


def name_extended(recorder: Recorder, pod: str, claim: str, *mappings: tuple[str, ...]) -> None:
    """The last write before the binding: the claim's name and which container has which request."""
    names = ("containerName", "resourceName", "requestName")
    told = [dict(zip(names, each, strict=True)) for each in mappings]
    recorder.wait(0.006)
    status = {"resourceClaimName": claim, "requestMappings": told}
    recorder.pod_status(SCHEDULER, pod, extendedResourceClaimStatus=status)


def extended_resources() -> Recorder:
    """An init container, two others, an implicit resource, and a claim of the pod's own."""
    recorder = Recorder("extended")
    recorder.node("node-0")
    driver = f'device.driver == "{GPU}"'
    recorder.device_class("gpu", driver, extendedResourceName="example.com/gpu")
    recorder.device_class("nic", f'device.driver == "{NIC}"')
    for driver, letter, count in ((GPU, "d", 5), (NIC, "n", 3)):
        devices = [{"name": f"{letter}{number}"} for number in range(count)]
        recorder.slice(f"{letter}-slice", driver, pool("node-0"), devices, nodeName="node-0")
    template(recorder, "any", requests=[exactly("gpu", "gpu")])
    recorder.wait(5)
    gpu, nic = "example.com/gpu", "deviceclass.resource.kubernetes.io/nic"
    recorder.pod(
        "pod",
        resourceClaims=made_from("any"),
        initContainers=[container("init", **{gpu: "3"})],
        containers=[container("a", cpu="1", **{gpu: "1"}), container("b", **{gpu: "1", nic: "2"})],
    )
    named = recorder.make_claim("pod", "dev", "any")
    recorder.nominate("pod", "node-0")
    recorder.reserve("pod", named, allocation("node-0", result("gpu", GPU, "node-0", "d0")))
    init, first = "container-0-request-0", "container-1-request-1"
    nics, second = "container-2-request-0", "container-2-request-1"
    asked = [exactly(init, "gpu"), exactly(first, "gpu"), exactly(nics, "nic", count=2)]
    claim = extended_claim(recorder, "pod", [*asked, exactly(second, "gpu")])
    places = ((init, "d1"), (first, "d2"), (nics, "n0"), (nics, "n1"), (second, "d3"))
    results = [
        result(request, NIC if request == nics else GPU, "node-0", device)
        for request, device in places
    ]
    recorder.reserve("pod", claim, allocation("node-0", *results))
    long = (("b", nic, nics), ("a", gpu, first), ("b", gpu, second))
    short = (("init", gpu, first), ("init", gpu, second), ("init", gpu, init))
    name_extended(recorder, "pod", claim, *long, *short)
    recorder.bind("pod", "node-0")
    recorder.start("pod")
    recorder.wait(3)
    recorder.finish("pod", named, claim)
    return recorder


def container(name: str, **amounts: str) -> dict:
    resources = {"requests": amounts, "limits": amounts}
    return {"name": name, "image": "busybox:1", "resources": resources}


def extended_resource_fails() -> Recorder:
    """The claim is removed with the reservation, and the next attempt makes another one."""
    recorder = Recorder("extended failed")
    recorder.node("node-0")
    driver = f'device.driver == "{GPU}"'
    recorder.device_class("gpu", driver, extendedResourceName="example.com/gpu")
    recorder.slice("slice", GPU, pool("node-0"), [conditional()], nodeName="node-0")
    recorder.wait(5)
    recorder.pod("pod", requests={"example.com/gpu": "1"})
    request = "container-0-request-0"
    for kind in (FAILED, ATTACHED):
        recorder.nominate("pod", "node-0")
        claim = extended_claim(recorder, "pod", [exactly(request, "gpu")])
        recorder.reserve("pod", claim, on_node_0("d0", request=request))
        name_extended(recorder, "pod", claim, ("main", "example.com/gpu", request))
        written = wait_for_devices(recorder, "pod")
        recorder.wait(2)
        tell(recorder, claim, kind)
        until(recorder, written + POLL)
        if kind == FAILED:
            recorder.finalizer(SCHEDULER, claim, there=False)
            recorder.wait(0.005)
            recorder.delete(SCHEDULER, "ResourceClaim", claim)
            text = f'device binding failed: claim={claim}, reason=Told, message=""'
            give_up(recorder, "pod", text)
            recorder.wait(1.8)
    recorder.bind("pod", "node-0")
    recorder.start("pod")
    return recorder


def resource_of_a_plug_in() -> Recorder:
    """One node has the extended resource from a device plug-in, the other as devices."""
    recorder = Recorder("plug-in")
    recorder.node("node-0", **{"example.com/gpu": "1"})
    recorder.node("node-1")
    driver = f'device.driver == "{GPU}"'
    recorder.device_class("gpu", driver, extendedResourceName="example.com/gpu")
    recorder.slice("slice", GPU, pool("node-1"), [{"name": "d0"}], nodeName="node-1")
    recorder.wait(5)
    asked = {"example.com/gpu": "1"}
    recorder.pod("first", requests=asked)
    recorder.wait(0.006)
    recorder.bind("first", "node-0")
    recorder.start("first")
    recorder.wait(1)
    recorder.pod("second", requests=asked)
    recorder.nominate("second", "node-1")
    request = "container-0-request-0"
    claim = extended_claim(recorder, "second", [exactly(request, "gpu")])
    found = allocation("node-1", result(request, GPU, "node-1", "d0"))
    recorder.reserve("second", claim, found)
    name_extended(recorder, "second", claim, ("main", "example.com/gpu", request))
    recorder.bind("second", "node-1")
    recorder.start("second")
    recorder.pod("third", requests=asked)
    recorder.wait(0.006)
    helpless = "1 Preemption is not helpful for scheduling"
    said = f"1 No preemption victims found for incoming pod, {helpless}"
    recorder.fail("third", unfit(2, f"1 Insufficient example.com/gpu, 1 {CANNOT}", said=said))
    return recorder


def share(recorder: Recorder, request: str, place: str, device: str, **amounts: str) -> dict:
    more = CONDITIONS if "conditions" in amounts else {}
    consumed = {name: value for name, value in amounts.items() if name != "conditions"}
    identity = recorder.uuid()
    return result(request, GPU, place, device, shareID=identity, consumedCapacity=consumed, **more)


def shares_of_capacity() -> Recorder:
    """Amounts are rounded up; a pod that finds no room comes when a share is given back."""
    recorder = cluster("shares", 2)
    policy = {"default": "10Gi", "validRange": {"min": "5Gi", "step": "5Gi", "max": "40Gi"}}
    capacity = {"memory": {"value": "40Gi", "requestPolicy": policy}}
    device = {"name": "d0", "allowMultipleAllocations": True, "capacity": capacity}
    for node in ("node-0", "node-1"):
        recorder.slice(f"{node}-gpu", GPU, pool(node), [device], nodeName=node)
    for size in ("12Gi", "25Gi"):
        wanted = exactly("gpu", "gpu", capacity={"requests": {"memory": size}})
        template(recorder, f"wants-{size.lower()}", requests=[wanted])
    recorder.wait(5)
    claims = {}
    for pod, size, node, given in (
        ("a", "12gi", "node-0", "15Gi"),
        ("b", "25gi", "node-1", "25Gi"),
        ("c", "25gi", "node-0", "25Gi"),
        ("d", "12gi", "node-1", "15Gi"),
    ):
        recorder.pod(pod, resourceClaims=made_from(f"wants-{size}"))
        claims[pod] = recorder.make_claim(pod, "dev", f"wants-{size}")
        found = allocation(node, share(recorder, "gpu", node, "d0", memory=given))
        place(recorder, pod, claims[pod], node, found)
    recorder.pod("e", resourceClaims=made_from("wants-12gi"))
    claim = recorder.make_claim("e", "dev", "wants-12gi")
    recorder.wait(0.006)
    recorder.fail("e", unfit(2, f"2 {CANNOT}"))
    recorder.wait(4)
    recorder.finish("a")
    recorder.wait(0.01)
    recorder.claim_status(CLAIMS, claims["a"], reservedFor=None, allocation=None)
    recorder.nominate("e", "node-0")
    recorder.finalizer(CLAIMS, claims["a"], there=False)
    recorder.wait(0.004)
    recorder.delete(CLAIMS, "ResourceClaim", claims["a"])
    found = allocation("node-0", share(recorder, "gpu", "node-0", "d0", memory="15Gi"))
    recorder.reserve("e", claim, found)
    recorder.bind("e", "node-0")
    return recorder


def shares_that_a_driver_names() -> Recorder:
    """A shared device with binding conditions: the driver's status has the ids of the shares."""
    recorder = cluster("named shares")
    capacity = {"memory": {"value": "40Gi", "requestPolicy": {"default": "10Gi"}}}
    device = conditional(allowMultipleAllocations=True, capacity=capacity)
    recorder.slice("slice", GPU, pool("node-0"), [device], nodeName="node-0")
    recorder.wait(5)
    for name in ("a", "b"):
        recorder.claim(name, requests=[exactly("gpu", "gpu")])
        recorder.pod(name, resourceClaims=own(name))
        recorder.nominate(name, "node-0")
        held = share(recorder, "gpu", "node-0", "d0", memory="10Gi", conditions="")
        recorder.reserve(name, name, allocation("node-0", held))
        written = wait_for_devices(recorder, name)
        recorder.wait(1.5)
        tell(recorder, name, ATTACHED, "False", reason="Busy")
        recorder.wait(1)
        tell(recorder, name, ATTACHED)
        until(recorder, written + POLL)
        recorder.bind(name, "node-0")
        recorder.start(name)
    recorder.wait(2)
    recorder.finish("a", "a", generated=False)
    return recorder


def prioritized_lists() -> Recorder:
    """The node with the better alternative is preferred, until it has none left."""
    recorder = Recorder("prioritized")
    kinds = ("slow", "slow", "fast")
    for kind in ("fast", "slow"):
        recorder.device_class(kind, f'device.attributes["{GPU}"].kind == "{kind}"')
    for number, kind in enumerate(kinds):
        node = f"node-{number}"
        recorder.node(node)
        attributes = {"kind": {"string": kind}}
        devices = [{"name": name, "attributes": attributes} for name in ("d0", "d1")]
        recorder.slice(f"slice-{number}", GPU, pool(node), devices, nodeName=node)
    wanted = [
        {"name": kind, "deviceClassName": kind, "allocationMode": "ExactCount", "count": count}
        for kind, count in (("fast", 1), ("slow", 2))
    ]
    template(recorder, "list", requests=[{"name": "gpu", "firstAvailable": wanted}])
    recorder.wait(5)
    for pod, node, kind, devices in (
        ("a", "node-2", "fast", ("d0",)),
        ("b", "node-2", "fast", ("d1",)),
        ("c", "node-0", "slow", ("d0", "d1")),
        ("d", "node-1", "slow", ("d0", "d1")),
    ):
        recorder.pod(pod, resourceClaims=made_from("list"))
        claim = recorder.make_claim(pod, "dev", "list")
        results = [result(f"gpu/{kind}", GPU, node, device) for device in devices]
        place(recorder, pod, claim, node, allocation(node, *results))
    recorder.pod("e", resourceClaims=made_from("list"))
    recorder.make_claim("e", "dev", "list")
    recorder.wait(0.006)
    recorder.fail("e", unfit(3, f"3 {CANNOT}"))
    recorder.wait(1)
    missing = [{**wanted[0], "name": "none", "deviceClassName": "none"}]
    recorder.claim("bad", requests=[{"name": "gpu", "firstAvailable": missing}])
    recorder.pod("f", resourceClaims=own("bad"))
    recorder.wait(0.006)
    text = "request gpu/none: device class none does not exist"
    recorder.fail("f", unfit(3, text, "no new claims to deallocate"))
    return recorder


def aligned_devices() -> Recorder:
    """A GPU and a network card on one root, of two drivers."""
    recorder = cluster("aligned", 2)
    recorder.device_class("nic", f'device.driver == "{NIC}"')
    name = "resource.kubernetes.io/pcieRoot"
    for number in range(2):
        node = f"node-{number}"
        for driver, kind, count, first in ((GPU, "gpu", 2 + number, 0), (NIC, "nic", 2, 1)):
            devices = [
                {
                    "name": f"{kind}-{each}",
                    "attributes": {name: {"string": f"pci0000:{first + each:02d}"}},
                }
                for each in range(count)
            ]
            recorder.slice(f"{kind}-{number}", driver, pool(node), devices, nodeName=node)
    same = {"requests": ["gpu", "nic"], "matchAttribute": name}
    requests = [exactly("gpu", "gpu"), exactly("nic", "nic")]
    template(recorder, "pair", requests=requests, constraints=[same])
    recorder.wait(5)
    for pod, node, gpu, nic in (
        ("a", "node-0", "gpu-1", "nic-0"),
        ("b", "node-1", "gpu-1", "nic-0"),
        ("c", "node-1", "gpu-2", "nic-1"),
    ):
        recorder.pod(pod, resourceClaims=made_from("pair"))
        claim = recorder.make_claim(pod, "dev", "pair")
        both = (result("gpu", GPU, node, gpu), result("nic", NIC, node, nic))
        place(recorder, pod, claim, node, allocation(node, *both))
    recorder.pod("d", resourceClaims=made_from("pair"))
    recorder.make_claim("d", "dev", "pair")
    recorder.wait(0.006)
    recorder.fail("d", unfit(2, f"2 {CANNOT}"))
    return recorder


def generations_of_a_pool() -> Recorder:
    """A pool that is published slice by slice, twice; one pod wants all of its devices."""
    recorder = cluster("generations")
    node = {"nodeName": "node-0"}
    recorder.slice("a", GPU, pool("node-0", 1, 2), [{"name": "d0"}], **node)
    template(recorder, "any", requests=[exactly("gpu", "gpu")])
    every = {"name": "all", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}}
    recorder.claim("every", requests=[every])
    recorder.wait(5)
    updating = (
        'running "DynamicResources" filter plugin: claim work/every, request all: asks for all '
        "devices, but resource pool gpu.example.com/node-0 is currently being updated"
    )
    recorder.pod("one", resourceClaims=made_from("any"))
    claim = recorder.make_claim("one", "dev", "any")
    recorder.wait(0.006)
    recorder.fail("one", unfit(1, f"1 {CANNOT}"))
    recorder.wait(1)
    recorder.pod("all", resourceClaims=own("every"))
    recorder.wait(0.006)
    recorder.fail("all", updating, "SchedulerError")
    recorder.wait(1.9)
    recorder.fail("all", updating, "SchedulerError")
    recorder.wait(1)
    recorder.slice("b", GPU, pool("node-0", 1, 2), [{"name": "d1"}], **node)
    found = allocation("node-0", result("gpu", GPU, "node-0", "d0"))
    place(recorder, "one", claim, "node-0", found)
    recorder.wait(0.9)
    recorder.fail("all", unfit(1, f"1 {CANNOT}"))
    recorder.wait(3)
    _republish(recorder, "a", "d2")
    recorder.wait(0.006)
    recorder.fail("all", updating, "SchedulerError")
    recorder.wait(0.5)
    recorder.pod("two", resourceClaims=made_from("any"))
    claim = recorder.make_claim("two", "dev", "any")
    recorder.wait(0.006)
    recorder.fail("two", unfit(1, f"1 {CANNOT}"))
    recorder.wait(0.3)
    _republish(recorder, "b", "d1")
    found = allocation("node-0", result("gpu", GPU, "node-0", "d2"))
    place(recorder, "two", claim, "node-0", found)
    recorder.wait(3)
    recorder.fail("all", unfit(1, f"1 {CANNOT}"))
    return recorder


def _republish(recorder: Recorder, name: str, device: str) -> None:
    """A driver writes a slice of the next generation."""
    tree = recorder.get("ResourceSlice", name)
    tree["spec"] |= {"pool": pool("node-0", 2, 2), "devices": [{"name": device}]}
    tree["metadata"]["generation"] += 1
    recorder.update(DRIVER, tree)


def invalid_pool() -> Recorder:
    """Two slices of a pool have a device of one name until one of them is repaired."""
    recorder = cluster("invalid", 2)
    for name in ("a", "b"):
        recorder.slice(name, GPU, pool("p", 1, 2), [{"name": "d0"}], nodeName="node-0")
    template(recorder, "any", requests=[exactly("gpu", "gpu")])
    recorder.wait(5)
    recorder.pod("pod", resourceClaims=made_from("any"))
    claim = recorder.make_claim("pod", "dev", "any")
    recorder.wait(0.006)
    recorder.fail("pod", unfit(2, f"1 {CANNOT}, 1 invalid resource pools were encountered"))
    recorder.wait(5)
    tree = recorder.get("ResourceSlice", "b")
    tree["spec"]["devices"] = [{"name": "d1"}]
    tree["metadata"]["generation"] += 1
    recorder.update(DRIVER, tree)
    found = allocation("node-0", result("gpu", GPU, "p", "d0"))
    place(recorder, "pod", claim, "node-0", found)
    return recorder


SCENES: dict[str, Callable[[], Recorder]] = {
    scene.__name__: scene
    for scene in (
        devices_are_made_ready,
        device_fails,
        device_is_late,
        failure_behind_another_claim,
        pod_goes_after_a_failure,
        pod_goes_while_devices_are_made_ready,
        pods_share_a_fresh_claim,
        extended_resources,
        extended_resource_fails,
        resource_of_a_plug_in,
        shares_of_capacity,
        shares_that_a_driver_names,
        prioritized_lists,
        aligned_devices,
        generations_of_a_pool,
        invalid_pool,
    )
}
