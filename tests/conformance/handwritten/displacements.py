"""A scene in which the scheduler displaces a pod for one of a higher priority."""

from tests.conformance.handwritten.recordings import SCHEDULER, Recorder, exactly, pool
from tests.conformance.handwritten.scenes import GPU, cluster

CLASSES = {
    0: "",
    2_000_000_000: "system-cluster-critical",
    2_000_001_000: "system-node-critical",
}
"""The classes that every server has, by priority."""

LOWEST, MIDDLE, HIGHEST = CLASSES
TEXT = "default-scheduler: preempting to accommodate a higher priority pod"


def displacement(
    victim: str = "low",
    *,
    priorities: tuple[int, int] = (LOWEST, MIDDLE),
    cpu: str = "8",
    text: str = TEXT,
) -> Recorder:
    """Two pods fill a node, and one of them goes for a third one of the highest priority."""
    recorder = cluster(f"displaced {victim} {priorities} {cpu}", cpu=cpu)
    recorder.slice("slice", GPU, pool("node-0"), [{"name": "d0"}], nodeName="node-0")
    recorder.claim("claim", requests=[exactly("gpu", "gpu")])
    recorder.wait(5)
    for name, priority in zip(("low", "middle"), priorities, strict=True):
        _pod(recorder, name, priority)
        recorder.bind(name, "node-0")
        recorder.start(name)
        recorder.wait(1)
    _pod(recorder, "high", HIGHEST)
    _displace(recorder, victim, text)
    message = "0/1 nodes are available: 1 Insufficient cpu."
    recorder.fail("high", message, nominatedNodeName="node-0")
    recorder.wait(2)
    recorder.pod_status("system:node:node-0", victim, phase="Succeeded")
    recorder.wait(0.1)
    recorder.delete("system:node:node-0", "Pod", victim)
    recorder.wait(0.006)
    recorder.bind("high", "node-0")
    recorder.start("high")
    return recorder


def _pod(recorder: Recorder, name: str, priority: int) -> None:
    spec = {"priorityClassName": CLASSES[priority]} if CLASSES[priority] else {}
    recorder.pod(name, requests={"cpu": "4"}, priority=priority, **spec)
    recorder.wait(0.006)


def _displace(recorder: Recorder, victim: str, text: str) -> None:
    condition = {"type": "DisruptionTarget", "status": "True", "message": text}
    condition |= {"reason": "PreemptionByScheduler", "observedGeneration": 1}
    recorder.pod_status(SCHEDULER, victim, condition)
    recorder.wait(0.004)
    tree = recorder.get("Pod", victim)
    tree["metadata"] |= {"deletionGracePeriodSeconds": 5, "generation": 2}
    tree["metadata"]["deletionTimestamp"] = recorder.after(5)
    recorder.update(SCHEDULER, tree, verb="delete")
    uid = recorder.objects["Pod", "high"]["metadata"]["uid"]
    note = f"Preempted by pod {uid} on node node-0"
    recorder.say(victim, "Normal", "Preempted", "Preempting", note)
