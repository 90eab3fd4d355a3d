"""Which writes of controllers contradict themselves."""

import msgspec
import pytest

from app.analysis.replay.authors import CLAIMS, SCHEDULER
from app.analysis.replay.unsure.contradictory import Contradictory
from app.domain.log import EventType, ObjectKey
from app.domain.log.records import Loss
from tests.unit.analysis.replay.test_lacks import CLAIM, POD, REPORT, event

OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}
ENTRY = {"resource.kubernetes.io/pod-claim-name": "gpu"}


def made(key, tree, *, losses=(), verb="create", type_=EventType.OBJECT_CREATED):
    return msgspec.structs.replace(
        event(key, type_, losses=losses, verb=verb), body=msgspec.json.encode(tree)
    )


def claim(owners=(OWNER,), entry=ENTRY, base="p-gpu-", **how):
    metadata = {"ownerReferences": list(owners), "annotations": entry, "generateName": base}
    return made(CLAIM, {"metadata": metadata}, **how)


def assigned(text, *, uid=f"uid of {POD.name}"):
    regarding = {"kind": "Pod", "namespace": POD.namespace, "name": POD.name, "uid": uid}
    return made(REPORT, {"reason": "Scheduled", "regarding": regarding, "note": text})


def on(node):
    return made(POD, {"spec": {"nodeName": node}}, type_=EventType.OBJECT_UPDATED)


def accused(*events):
    judge = Contradictory()
    for each, author in events:
        judge.note(each, author)
    return set(judge.problems())


@pytest.mark.parametrize(
    "wrong",
    [
        claim(owners=()),
        claim(owners=[OWNER | {"controller": False}]),
        claim(owners=[OWNER | {"apiVersion": "apps/v1", "kind": "ReplicaSet"}]),
        claim(entry={}),
        claim(base="other-gpu-"),
        claim(entry={"resource.kubernetes.io/pod-claim-name": "nic"}),
    ],
)
def test_claim_that_its_controller_made_as_it_never_makes_one(wrong):
    assert accused((wrong, CLAIMS)) == {CLAIM}
    assert not accused((wrong, "")), "somebody else makes any claim"


@pytest.mark.parametrize(
    "honest",
    [
        claim(),
        claim(base=""),
        claim(owners=(), losses=[Loss.METADATA_ONLY]),
        claim(owners=(), verb="update"),
        claim(owners=(), type_=EventType.OBJECT_UPDATED),
        made(ObjectKey("", "pods", "default", "c"), {}),
    ],
)
def test_other_writes_of_the_claim_controller_prove_nothing(honest):
    assert not accused((honest, CLAIMS))


@pytest.mark.parametrize(
    ("text", "node", "is_wrong"),
    [
        ("Successfully assigned default/p to worker-1", "worker-1", False),
        ("Successfully assigned default/p to worker-1", "worker-2", True),
        ("Successfully assigned default/q to worker-1", "worker-1", True),
    ],
)
def test_event_of_a_placement_says_which_pod_is_on_which_node(text, node, is_wrong):
    expected = {POD} if is_wrong else set()
    said = (assigned(text), SCHEDULER)
    assert accused(said, (on(node), "")) == accused((on(node), ""), said) == expected
    assert not accused((assigned(text), ""), (on(node), ""))


def test_placement_of_a_pod_of_that_name_with_another_uid_is_another_one():
    said = assigned("Successfully assigned default/p to worker-1", uid="of an earlier pod")
    assert not accused((said, SCHEDULER), (on("worker-2"), ""))
    assert not accused((said, SCHEDULER)), "its node is not recorded"


def report(phase, *, ready="True", user="system:node:n", node="n", **how):
    conditions = [{"type": "Ready", "status": ready}]
    tree = {"spec": {"nodeName": node}, "status": {"phase": phase, "conditions": conditions}}
    event_ = made(POD, tree, type_=EventType.OBJECT_UPDATED, **how)
    stamp = msgspec.structs.replace(
        event_.stamp, actor=msgspec.structs.replace(event_.stamp.actor, user=user)
    )
    return msgspec.structs.replace(event_, stamp=stamp)


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_kubelet_does_not_end_a_pod_that_is_ready(phase):
    assert accused((report("Running"), ""), (report(phase), "")) == {POD}


@pytest.mark.parametrize(
    "honest",
    [
        (report("Running"), report("Failed", ready="False")),
        (report("Running"), report("Failed", user="alice")),
        (report("Running"), report("Failed", node="m")),
        (report("Running"), report("Failed", user="alice"), report("Failed")),
        (report("Running"), report("Failed", losses=[Loss.METADATA_ONLY])),
        (report("Running"), event(POD, EventType.GAP_OBSERVED), report("Failed")),
        (report("Failed"),),
    ],
)
def test_end_that_somebody_else_may_have_set_accuses_no_kubelet(honest):
    judge = Contradictory()
    for each in honest:
        if each.type is EventType.GAP_OBSERVED:
            judge.note_gap(each)
        else:
            judge.note(each, "")
    assert not judge.problems()
