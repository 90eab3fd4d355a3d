"""Honest recordings in which the caches of the claim controller lag behind the store.

What it does then is decided again to the letter; the same acts of a controller that had seen the
store long before are not excused.
"""

import pytest

from app.analysis.replay.classes import DifferenceClass
from app.bootstrap import replays
from tests.conformance.handwritten.recordings import (
    ALICE,
    CLAIMS,
    COLLECTOR,
    Recorder,
    allocation,
    exactly,
    pool,
    result,
)
from tests.conformance.handwritten.scenes import GPU, cluster, made_from, own, place, template
from tests.conformance.test_handwritten_recordings import replay

DEVICES = ("d0", "d1")
OF_CLAIMS = "quirk C8 or C22"


def with_devices(seed: str) -> Recorder:
    recorder = cluster(seed)
    devices = [{"name": name} for name in DEVICES]
    recorder.slice("slice", GPU, pool("node-0"), devices, nodeName="node-0")
    template(recorder, "any", requests=[exactly("gpu", "gpu")])
    recorder.wait(5)
    return recorder


def on_node_0(device: str) -> dict:
    return allocation("node-0", result("gpu", GPU, "node-0", device))


def finished_with_two_entries(seed: str) -> tuple[Recorder, list[str]]:
    """A pod with two claims ran and has finished; its second claim is given back and removed."""
    recorder = with_devices(seed)
    entries = [{"name": name, "resourceClaimTemplateName": "any"} for name in ("a", "b")]
    recorder.pod("pod", resourceClaims=entries)
    claims = [make(recorder, "pod", entry) for entry in ("a", "b")]
    name_claims(recorder, "pod", a=claims[0], b=claims[1])
    recorder.nominate("pod", "node-0")
    for claim, device in zip(claims, DEVICES, strict=True):
        recorder.reserve("pod", claim, on_node_0(device))
    recorder.bind("pod", "node-0")
    recorder.start("pod")
    recorder.wait(3)
    recorder.pod_status("system:node:node-0", "pod", phase="Succeeded")
    release(recorder, claims[1])
    return recorder, claims


def told_of_no_template(seed: str, late: float) -> Recorder:
    """The controller reports that the template of a pod, which was made before it, is missing."""
    recorder = with_devices(seed)
    template(recorder, "new", requests=[exactly("gpu", "gpu")])
    recorder.wait(0.004)
    recorder.pod("pod", resourceClaims=made_from("new"))
    recorder.wait(late)
    problem = 'resourceclaimtemplate.resource.k8s.io "new" not found'
    tell_of_claims(
        recorder, "pod", f'PodResourceClaim dev: resource claim template "new": {problem}'
    )
    return recorder


def place_with_the_template(recorder: Recorder) -> None:
    """The claim is made after all, and the pod gets its device."""
    claim = recorder.make_claim("pod", "dev", "new")
    place(recorder, "pod", claim, "node-0", on_node_0("d0"))
    recorder.wait(20)


def reserved_again_and_again() -> Recorder:
    """A finished pod is reserved and released again, five times (C8)."""
    recorder = with_devices("c8")
    recorder.claim("claim", requests=[exactly("gpu", "gpu")])
    recorder.pod("one", resourceClaims=own("claim"))
    place(recorder, "one", "claim", "node-0", on_node_0("d0"))
    recorder.pod("other", resourceClaims=own("claim"))
    recorder.nominate("other", "node-0")
    recorder.reserve("other", "claim")
    recorder.bind("other", "node-0")
    recorder.start("other")
    both = recorder.get("ResourceClaim", "claim")["status"]["reservedFor"]
    recorder.wait(3)
    recorder.pod_status("system:node:node-0", "one", phase="Succeeded")
    for _ in range(5):
        recorder.wait(0.005)
        recorder.claim_status(CLAIMS, "claim", reservedFor=both[1:])
        recorder.wait(0.005)
        recorder.claim_status(CLAIMS, "claim", reservedFor=[both[1], both[0]])
    recorder.wait(0.005)
    recorder.claim_status(CLAIMS, "claim", reservedFor=both[1:])
    recorder.wait(20)
    return recorder


def second_claims_of_two_entries() -> Recorder:
    """A finished pod gets a second claim for each of its entries, at different times (C22)."""
    recorder, claims = finished_with_two_entries("c22")
    second = make(recorder, "pod", "b")
    name_claims(recorder, "pod", a=claims[0], b=second)
    recorder.wait(0.012)
    recorder.delete(CLAIMS, "ResourceClaim", second)
    release(recorder, claims[0])
    third = make(recorder, "pod", "a")
    name_claims(recorder, "pod", a=third, b=second)
    recorder.wait(0.012)
    recorder.delete(CLAIMS, "ResourceClaim", third)
    recorder.wait(20)
    return recorder


def pod_goes_before_its_claim(late: float = 0.012) -> Recorder:
    """A pod is deleted while the request for its claim is under way."""
    recorder = with_devices("early end")
    recorder.pod("before", resourceClaims=made_from("any"))
    place(
        recorder, "before", recorder.make_claim("before", "dev", "any"), "node-0", on_node_0("d0")
    )
    recorder.wait(1)
    recorder.pod("pod", resourceClaims=made_from("any"))
    owner = recorder.owner("pod")
    recorder.wait(0.005)
    remove(recorder, "pod")
    recorder.wait(late)
    claim = make(recorder, "pod", "dev", owner)
    recorder.wait(0.015)
    recorder.delete(COLLECTOR, "ResourceClaim", claim)
    recorder.wait(20)
    return recorder


def finished_pod_goes_before_its_second_claim(late: float = 0.05) -> Recorder:
    """A finished pod, which is gone, gets a second claim (C22)."""
    recorder = with_devices("gone")
    recorder.pod("pod", resourceClaims=made_from("any"))
    claim = recorder.make_claim("pod", "dev", "any")
    place(recorder, "pod", claim, "node-0", on_node_0("d0"))
    recorder.wait(3)
    recorder.pod_status("system:node:node-0", "pod", phase="Succeeded")
    release(recorder, claim)
    owner = recorder.owner("pod")
    recorder.wait(0.005)
    remove(recorder, "pod")
    recorder.wait(late)
    second = make(recorder, "pod", "dev", owner)
    recorder.wait(0.015)
    recorder.delete(COLLECTOR, "ResourceClaim", second)
    recorder.wait(20)
    return recorder


def template_comes_late(late: float = 0.02) -> Recorder:
    """The controller sees a pod before the template, which was made before it."""
    recorder = told_of_no_template("template", late)
    place_with_the_template(recorder)
    return recorder


def template_comes_after_failures(late: float = 0.02) -> Recorder:
    """The controller tries three times, and once more as soon as it sees the template."""
    recorder = told_of_no_template("failures", late)
    for count, wait in ((2, 0.006), (3, 0.011), (4, 0.021), (5, 0.041)):
        recorder.wait(wait)
        said = recorder.get("Event", "pod.18ea008df40c9c78") | {"count": count}
        recorder.update(CLAIMS, said | {"lastTimestamp": recorder.seconds}, verb="patch")
    place_with_the_template(recorder)
    return recorder


def remove(recorder: Recorder, pod: str) -> None:
    """Deletes a pod that no kubelet has; of both revisions the log has the second one."""
    tree = recorder.get("Pod", pod)
    tree["metadata"] |= {"deletionTimestamp": recorder.seconds, "deletionGracePeriodSeconds": 0}
    tree["metadata"]["generation"] += 1
    recorder.objects["Pod", pod] = tree
    recorder.delete(ALICE, "Pod", pod)


def tell_of_claims(recorder: Recorder, pod: str, message: str) -> None:
    involved = {"kind": "Pod", "namespace": "work", "name": pod, "apiVersion": "v1"}
    recorder.create(
        CLAIMS,
        "Event",
        f"{pod}.18ea008df40c9c78",
        involvedObject=involved | {"uid": recorder.get("Pod", pod)["metadata"]["uid"]},
        reason="FailedResourceClaimCreation",
        message=message,
        source={"component": "resource_claim"},
        reportingComponent="resource_claim",
        firstTimestamp=recorder.seconds,
        lastTimestamp=recorder.seconds,
        count=1,
        type="Warning",
    )


def claim_goes_amid_a_sync() -> Recorder:
    """One sync makes a second claim of an entry while that of an earlier entry is removed."""
    recorder, claims = finished_with_two_entries("amid")
    recorder.wait(0.005)
    recorder.claim_status(CLAIMS, claims[0], reservedFor=None, allocation=None)
    recorder.wait(0.005)
    recorder.finalizer(CLAIMS, claims[0], there=False)
    second = make(recorder, "pod", "b")
    recorder.wait(0.004)
    recorder.delete(CLAIMS, "ResourceClaim", claims[0])
    name_claims(recorder, "pod", a=claims[0], b=second)
    recorder.wait(0.012)
    recorder.delete(CLAIMS, "ResourceClaim", second)
    third = make(recorder, "pod", "a")
    name_claims(recorder, "pod", a=third, b=second)
    recorder.wait(0.012)
    recorder.delete(CLAIMS, "ResourceClaim", third)
    recorder.wait(20)
    return recorder


def make(recorder: Recorder, pod: str, entry: str, owner: dict | None = None) -> str:
    """A claim of a pod, which its status does not name yet."""
    recorder.wait(0.008)
    return recorder.create(
        CLAIMS,
        "ResourceClaim",
        metadata={
            "generateName": f"{pod}-{entry}-",
            "annotations": {"resource.kubernetes.io/pod-claim-name": entry},
            "ownerReferences": [owner or recorder.owner(pod)],
        },
        spec=recorder.get("ResourceClaimTemplate", "any")["spec"]["spec"],
        status={},
    )


def name_claims(recorder: Recorder, pod: str, **claims: str) -> None:
    recorder.wait(0.007)
    named = [{"name": entry, "resourceClaimName": claim} for entry, claim in claims.items()]
    recorder.pod_status(CLAIMS, pod, resourceClaimStatuses=named)


def release(recorder: Recorder, claim: str) -> None:
    recorder.wait(0.01)
    recorder.claim_status(CLAIMS, claim, reservedFor=None, allocation=None)
    recorder.wait(0.012)
    recorder.finalizer(CLAIMS, claim, there=False)
    recorder.wait(0.012)
    recorder.delete(CLAIMS, "ResourceClaim", claim)


LAGS = (
    pod_goes_before_its_claim,
    template_comes_late,
    template_comes_after_failures,
)


@pytest.mark.parametrize("scene", LAGS)
async def test_what_the_claim_controller_had_not_seen_is_a_race(scene, tmp_path):
    report = await replay(replays.decide, scene().write(tmp_path / "audit.jsonl"))
    assert {found.reason for found in report.differences} == {DifferenceClass.RACE}
    assert (await replay(replays.verify, tmp_path / "audit.jsonl")).agrees


@pytest.mark.parametrize("scene", [*LAGS, finished_pod_goes_before_its_second_claim])
async def test_what_the_claim_controller_must_have_seen_is_unexplained(scene, tmp_path):
    report = await replay(replays.decide, scene(late=1.5).write(tmp_path / "audit.jsonl"))
    assert DifferenceClass.UNEXPLAINED in {found.reason for found in report.differences}


AGAIN = (
    reserved_again_and_again,
    second_claims_of_two_entries,
    claim_goes_amid_a_sync,
    finished_pod_goes_before_its_second_claim,
)


@pytest.mark.parametrize("scene", AGAIN)
async def test_looks_at_a_finished_pod_are_made_when_they_were_recorded(scene, tmp_path):
    report = await replay(replays.decide, scene().write(tmp_path / "audit.jsonl"))
    assert {found.reason for found in report.differences} == {OF_CLAIMS}
    assert (await replay(replays.verify, tmp_path / "audit.jsonl")).agrees
