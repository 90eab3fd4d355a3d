"""A scene with an eviction for the taint of a slice, at an instant that is stated."""

from tests.conformance.handwritten.recordings import (
    CLAIMS,
    DRIVER,
    EVICTION,
    NAMESPACE,
    Recorder,
    allocation,
    exactly,
    pool,
    result,
)
from tests.conformance.handwritten.scenes import GPU, cluster, own, place, until

TOLERATED = 5
"""The seconds for which the claim tolerates the taint."""


def eviction(after: float, effect: str = "NoExecute") -> Recorder:
    """A pod is evicted so many seconds after the taint. Parity: controllers.md 1.5."""
    recorder = cluster(f"evicted {after} {effect}")
    recorder.slice("slice", GPU, pool("node-0"), [{"name": "d0"}], nodeName="node-0")
    recorder.wait(5)
    toleration = {"key": "example.com/bad", "operator": "Exists", "effect": "NoExecute"}
    tolerations = [{**toleration, "tolerationSeconds": TOLERATED}]
    recorder.claim("claim", requests=[exactly("gpu", "gpu", tolerations=tolerations)])
    recorder.pod("pod", resourceClaims=own("claim"))
    given = result("gpu", GPU, "node-0", "d0", tolerations=tolerations)
    place(recorder, "pod", "claim", "node-0", allocation("node-0", given))
    # The recorder begins a quarter of a second after a whole one, and taints have whole seconds.
    until(recorder, 10.75)
    tree = recorder.get("ResourceSlice", "slice")
    taint = {"key": "example.com/bad", "effect": effect, "timeAdded": recorder.seconds}
    tree["spec"]["devices"] = [{"name": "d0", "taints": [taint]}]
    tree["metadata"]["generation"] = 2
    recorder.update(DRIVER, tree)
    until(recorder, 10.75 + after)
    _evict(recorder)
    recorder.wait(3)
    recorder.pod_status("system:node:node-0", "pod", phase="Succeeded")
    recorder.wait(0.01)
    recorder.claim_status(CLAIMS, "claim", reservedFor=None, allocation=None)
    recorder.wait(0.012)
    recorder.finalizer(CLAIMS, "claim", there=False)
    recorder.wait(0.1)
    recorder.delete("system:node:node-0", "Pod", "pod")
    return recorder


def _evict(recorder: Recorder) -> None:
    uid = recorder.objects["Pod", "pod"]["metadata"]["uid"]
    about = {"kind": "Pod", "namespace": NAMESPACE, "name": "pod", "uid": uid, "apiVersion": "v1"}
    recorder.create(
        EVICTION,
        "Event",
        "pod.18a0000000000000",
        involvedObject=about,
        reason="DeviceTaintManagerEviction",
        message="Marking for deletion",
        source={"component": "device-taint-eviction-controller"},
        reportingComponent="device-taint-eviction-controller",
        firstTimestamp=recorder.seconds,
        lastTimestamp=recorder.seconds,
        count=1,
        type="Normal",
    )
    condition = {"type": "DisruptionTarget", "status": "True"}
    condition["reason"] = "DeletionByDeviceTaintManager"
    condition["message"] = "Device Taint manager: deleting due to NoExecute taint"
    recorder.pod_status(EVICTION, "pod", condition)
    recorder.wait(0.01)
    tree = recorder.get("Pod", "pod")
    tree["metadata"] |= {"deletionGracePeriodSeconds": 5, "generation": 2}
    tree["metadata"]["deletionTimestamp"] = recorder.after(5)
    recorder.update(EVICTION, tree, verb="delete")
