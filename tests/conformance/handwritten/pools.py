"""More scenes of recordings written by hand: pools that change while their devices are in use."""

from collections.abc import Callable

from tests.conformance.handwritten.recordings import (
    CLAIMS,
    DRIVER,
    Recorder,
    allocation,
    exactly,
    pool,
    result,
    unfit,
)
from tests.conformance.handwritten.scenes import (
    CANNOT,
    GPU,
    cluster,
    made_from,
    own,
    place,
    template,
)

ON_NODE = {"nodeName": "node-0"}


def _any_device(recorder: Recorder) -> None:
    template(recorder, "any", requests=[exactly("gpu", "gpu")])
    recorder.wait(5)


def _run(recorder: Recorder, pod: str, where: str, device: str, node: str = "node-0") -> str:
    """A pod that is scheduled immediately; returns its claim."""
    recorder.pod(pod, resourceClaims=made_from("any"))
    claim = recorder.make_claim(pod, "dev", "any")
    place(recorder, pod, claim, node, allocation(node, result("gpu", GPU, where, device)))
    recorder.wait(2)
    return claim


def _wait_in_vain(recorder: Recorder, pod: str) -> str:
    """A pod for which there is no device; returns its claim."""
    recorder.pod(pod, resourceClaims=made_from("any"))
    claim = recorder.make_claim(pod, "dev", "any")
    recorder.wait(0.006)
    recorder.fail(pod, unfit(1, f"1 {CANNOT}"))
    recorder.wait(2)
    return claim


def _publish(recorder: Recorder, generation: int, *devices: str) -> None:
    tree = recorder.get("ResourceSlice", "a")
    named = [{"name": device} for device in devices]
    tree["spec"] |= {"pool": pool("node-0", generation, 1), "devices": named}
    tree["metadata"]["generation"] = generation
    recorder.update(DRIVER, tree)


def pool_shrinks_and_grows() -> Recorder:
    """A device that is gone and comes back stays with the pod that has it."""
    recorder = cluster("shrinks")
    for name, device in (("a", "d0"), ("b", "d1")):
        recorder.slice(name, GPU, pool("node-0", 1, 2), [{"name": device}], **ON_NODE)
    _any_device(recorder)
    held = _run(recorder, "one", "node-0", "d0")
    recorder.delete(DRIVER, "ResourceSlice", "b")
    recorder.wait(0.3)
    claim = _wait_in_vain(recorder, "two")
    _publish(recorder, 2, "d1")
    found = allocation("node-0", result("gpu", GPU, "node-0", "d1"))
    place(recorder, "two", claim, "node-0", found)
    recorder.wait(1)
    _publish(recorder, 3, "d0", "d1")
    recorder.wait(1)
    claim = _wait_in_vain(recorder, "three")
    recorder.finish("one")
    recorder.wait(0.01)
    recorder.claim_status(CLAIMS, held, reservedFor=None, allocation=None)
    recorder.nominate("three", "node-0")
    recorder.finalizer(CLAIMS, held, there=False)
    recorder.wait(0.005)
    recorder.delete(CLAIMS, "ResourceClaim", held)
    recorder.reserve("three", claim, allocation("node-0", result("gpu", GPU, "node-0", "d0")))
    recorder.bind("three", "node-0")
    return recorder


def generations_side_by_side() -> Recorder:
    """New slices in addition to the old one: the newest generation counts, and it is incomplete."""
    recorder = cluster("side by side")
    recorder.slice("old", GPU, pool("node-0"), [{"name": "d0"}], **ON_NODE)
    _any_device(recorder)
    recorder.slice("new-a", GPU, pool("node-0", 2, 2), [{"name": "d0"}], **ON_NODE)
    recorder.wait(0.5)
    claim = _wait_in_vain(recorder, "pod")
    recorder.delete(DRIVER, "ResourceSlice", "old")
    recorder.wait(1)
    recorder.slice("new-b", GPU, pool("node-0", 2, 2), [{"name": "d1"}], **ON_NODE)
    found = allocation("node-0", result("gpu", GPU, "node-0", "d0"))
    place(recorder, "pod", claim, "node-0", found)
    return recorder


def hosts_of_two_generations() -> Recorder:
    """Q12: a node with complete slices uses them, though another has a newer generation."""
    recorder = cluster("hosts", 2)
    recorder.slice("a", GPU, pool("shared"), [{"name": "d0"}], nodeName="node-0")
    _any_device(recorder)
    recorder.slice("b", GPU, pool("shared", 2), [{"name": "d1"}], nodeName="node-1")
    recorder.wait(1)
    _run(recorder, "one", "shared", "d0")
    _run(recorder, "two", "shared", "d1", "node-1")
    return recorder


def alternative_that_tolerates() -> Recorder:
    """The first alternative wants two devices, of which one is tainted; the second tolerates it."""
    recorder = cluster("tolerates")
    taint = {"key": "example.com/bad", "effect": "NoSchedule", "timeAdded": recorder.seconds}
    devices = [{"name": "d0", "taints": [taint]}, {"name": "d1"}]
    recorder.slice("a", GPU, pool("node-0"), devices, **ON_NODE)
    recorder.wait(5)
    tolerations = [{"key": "example.com/bad", "operator": "Exists"}]
    inside = {"deviceClassName": "gpu", "allocationMode": "ExactCount"}
    both = {"name": "both", **inside, "count": 2}
    one = {"name": "one", **inside, "count": 1, "tolerations": tolerations}
    recorder.claim("claim", requests=[{"name": "gpu", "firstAvailable": [both, one]}])
    recorder.pod("pod", resourceClaims=own("claim"))
    found = result("gpu/one", GPU, "node-0", "d0", tolerations=tolerations)
    place(recorder, "pod", "claim", "node-0", allocation("node-0", found))
    return recorder


SCENES: dict[str, Callable[[], Recorder]] = {
    scene.__name__: scene
    for scene in (
        pool_shrinks_and_grows,
        generations_side_by_side,
        hosts_of_two_generations,
        alternative_that_tolerates,
    )
}
