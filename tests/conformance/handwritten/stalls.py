"""Scenes in which a placement stands still before one of its writes."""

from tests.conformance.handwritten.recordings import Recorder, allocation, exactly, pool, result
from tests.conformance.handwritten.scenes import ATTACHED, GPU, cluster, conditional, own, tell

OTHERS = 3
"""The seconds between other pods that the scheduler binds meanwhile."""


def stall(
    seconds: float, before: str, *, works: bool = True, conditions: bool = False, **spec: object
) -> Recorder:
    """So many seconds lie before the write of a claim or the binding of its pod.

    The scheduler binds other pods meanwhile if it `works`. With `conditions` a driver makes the
    device ready at the end.
    """
    recorder = cluster(f"stall {before} {seconds} {works}")
    device = conditional() if conditions else {"name": "d0"}
    recorder.slice("slice", GPU, pool("node-0"), [device], nodeName="node-0")
    recorder.wait(5)
    recorder.claim("claim", requests=[exactly("gpu", "gpu")])
    recorder.pod("pod", resourceClaims=own("claim"), **spec)
    recorder.nominate("pod", "node-0")
    if before == "claim":
        _stand(recorder, seconds, works=works)
    copied = {name: device[name] for name in device if name.startswith("binding")}
    given = result("gpu", GPU, "node-0", "d0", **copied)
    recorder.reserve("pod", "claim", allocation("node-0", given))
    if conditions:
        note = "waiting for binding conditions for device on node node-0"
        recorder.say("pod", "Normal", "BindingConditionsPending", "Scheduling", note)
    if before == "binding":
        _stand(recorder, seconds, works=works)
    if conditions:
        tell(recorder, "claim", ATTACHED)
        recorder.wait(0.5)
    recorder.bind("pod", "node-0")
    recorder.start("pod")
    _others(recorder, 3, "end")
    return recorder


def _stand(recorder: Recorder, seconds: float, *, works: bool) -> None:
    if works:
        _others(recorder, int(seconds / OTHERS), "meanwhile")
        seconds %= OTHERS
    recorder.wait(seconds)


def _others(recorder: Recorder, count: int, name: str) -> None:
    for number in range(count):
        pod = f"{name}-{number}"
        recorder.wait(OTHERS)
        recorder.pod(pod)
        recorder.wait(0.006)
        recorder.bind(pod, "node-0")
