"""What a recording leaves out, as its lines show, and what that leaves undecided."""

import json

import pytest

from app.analysis.replay.unsure.omissions import LOST, Omissions
from app.domain.log import Actor, Event, EventType, ObjectKey, Revision, Stamp
from app.domain.log.event import Origin
from app.domain.log.records import Loss
from app.domain.values.timestamps import SECOND, Instant

POD = ObjectKey("", "pods", "default", "p")
CLAIM = ObjectKey("resource.k8s.io", "resourceclaims", "default", "c")
OTHER = ObjectKey("resource.k8s.io", "resourceclaims", "default", "d")
MANAGED = "system:serviceaccount:kube-system:"
KUBELET = "system:node:n1"
SCHEDULER = "system:kube-scheduler"
EVICTION = f"{MANAGED}device-taint-eviction-controller"
COLLECTOR = "generic-garbage-collector"


def at(seconds):
    return Instant(seconds * SECOND)


def line(second, key=POD, *, verb="update", user="alice", type_=EventType.OBJECT_UPDATED, **tree):
    """A line, at the revision of its second."""
    losses = (Loss.GAP.value,) if type_ is EventType.GAP_OBSERVED else ()
    stamp = Stamp(
        time=at(second),
        actor=Actor(user=user),
        verb=verb,
        origin=Origin(source="audit", losses=losses),
    )
    body = json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {}, **tree}).encode()
    uid = f"uid of {key.name}"
    return Event(revision=Revision(second), type=type_, key=key, uid=uid, body=body, stamp=stamp)


def lost(second, key):
    return line(second, key, type_=EventType.GAP_OBSERVED)


def omissions(*lines):
    made = Omissions()
    for each in lines:
        made.note(each, each.stamp.time)
    return made


def before(made, second, *, is_of_content=False):
    return made.before(at(second), is_of_content=is_of_content)


def conditions(*types, status="True"):
    return {"conditions": [{"type": each, "status": status} for each in types]}


def owned(kind="Deployment", api_version="apps/v1"):
    owner = {"apiVersion": api_version, "kind": kind, "name": "o", "uid": "o", "controller": True}
    return {"ownerReferences": [owner]}


def test_several_lost_lines_explain_what_comes_after_the_first_and_no_content():
    made = omissions(line(1, CLAIM), line(2, OTHER), lost(5, CLAIM), lost(6, OTHER))
    assert [before(made, second) for second in (0, 1, 9)] == ["", LOST, LOST]
    assert before(made, 9, is_of_content=True) == ""


def test_one_lost_line_explains_a_single_missing_write_alone():
    made = omissions(line(1, CLAIM), lost(5, CLAIM))
    assert (before(made, 9), made.of_one_line()) == ("", LOST)
    assert omissions(line(1, CLAIM)).of_one_line() == ""


@pytest.mark.parametrize(
    ("shown", "user", "verb", "is_lost"),
    [
        (conditions("Initialized"), SCHEDULER, "patch", True),
        (conditions("Initialized"), KUBELET, "patch", False),
        (conditions("Initialized"), "kwok", "patch", False),
        (conditions("PodScheduled", status="False"), SCHEDULER, "patch", False),
        (conditions("Initialized"), f"{MANAGED}kwok-controller", "patch", False),
        (conditions("DisruptionTarget"), EVICTION, "delete", True),
        (conditions("PodScheduled"), EVICTION, "delete", False),
        (conditions("Initialized"), "alice", "delete", True),
    ],
)
def test_condition_that_its_writer_does_not_write_shows_a_lost_line(shown, user, verb, is_lost):
    made = omissions(
        line(1, status=conditions("PodScheduled")), line(2, user=user, verb=verb, status=shown)
    )
    assert made.lost.has_any is is_lost


@pytest.mark.parametrize(
    ("shown", "verb", "is_lost"),
    [
        (conditions("PodScheduled"), "delete", False),
        # Another value may be another line's mistake; a condition that no line has was written.
        (conditions("PodScheduled", status="False"), "delete", False),
        (conditions("PodScheduled", "Initialized"), "delete", True),
        # An end that was not requested shows the last state that a source has.
        (conditions("PodScheduled", "Initialized"), "observe", False),
    ],
)
def test_removal_that_shows_a_condition_of_no_line_shows_a_lost_line(shown, verb, is_lost):
    end = line(2, verb=verb, type_=EventType.OBJECT_DELETED, status=shown)
    made = omissions(line(1, status=conditions("PodScheduled")), end)
    assert made.lost.has_any is is_lost


def test_field_that_sources_may_leave_out_shows_no_lost_line():
    known = conditions("PodScheduled")
    shown = {"conditions": [{**known["conditions"][0], "lastProbeTime": None}]}
    made = omissions(line(1, status=known), line(2, user="alice", verb="delete", status=shown))
    assert not made.lost.has_any


@pytest.mark.parametrize(("more", "is_lost"), [((), False), (("PodScheduled",), True)])
def test_nomination_is_a_write_of_its_own(more, is_lost):
    nominated = {**conditions(*more), "nominatedNodeName": "n1"}
    made = omissions(line(1, status={}), line(2, user=SCHEDULER, verb="patch", status=nominated))
    assert made.lost.has_any is is_lost


def test_log_without_patches_that_lines_show_to_be_missing_decides_nothing():
    made = omissions(line(1, CLAIM, verb="create"), line(2, CLAIM))
    assert before(made, 1) == ""
    made.note(lost(5, POD), at(5))
    assert "no patch" in before(made, 1)


def test_without_lines_of_kubelets_nothing_is_decided_since_a_pod_was_bound():
    bound = line(5, user=SCHEDULER, spec={"nodeName": "n1"})
    ended = line(
        9, user=EVICTION, verb="delete", spec={"nodeName": "n1"}, status=conditions("Initialized")
    )
    made = omissions(line(1, user=SCHEDULER), bound, ended)
    assert [bool(before(made, second)) for second in (4, 5, 9)] == [False, True, True]
    by_kubelet = line(6, user=KUBELET, spec={"nodeName": "n1"}, status=conditions("Initialized"))
    assert before(omissions(bound, by_kubelet, ended), 9) == ""


@pytest.mark.parametrize("writer", ["", "kwok", f"{MANAGED}kwok-controller"])
def test_cluster_without_kubelets_lacks_none(writer):
    """No pod runs in it, or a simulator of nodes writes what kubelets write."""
    lines = [line(1, user=SCHEDULER), line(5, user=SCHEDULER, spec={"nodeName": "n1"})]
    if writer:
        ran = {"spec": {"nodeName": "n1"}, "status": conditions("Initialized")}
        lines += [line(6, user=writer, verb="patch", **ran), line(7, user=EVICTION, **ran)]
    assert before(omissions(*lines), 9) == ""


def test_log_without_updates_decides_nothing_once_a_pod_with_claims_is_bound():
    made = omissions(line(1, CLAIM, verb="create"), line(2, verb="patch"))
    made.note(line(3, verb="create", spec={"nodeName": "n1"}), at(3))
    assert before(made, 9) == ""
    claims = [{"name": "gpu", "resourceClaimName": "c"}]
    made.note(line(4, verb="create", spec={"nodeName": "n1", "resourceClaims": claims}), at(4))
    assert "no update" in before(made, 9)
    assert "no update" in made.verb


def test_rules_that_an_eviction_shows_leave_everything_undecided():
    made = omissions(line(1, user=KUBELET))
    assert before(made, 1) == ""
    made.lacks_rules = True
    assert "DeviceTaintRules" in before(made, 1)


@pytest.mark.parametrize(
    ("users", "is_left_out"),
    [
        ((f"{MANAGED}resource-claim-controller",), True),
        ((f"{MANAGED}resource-claim-controller", f"{MANAGED}{COLLECTOR}"), False),
        (("system:kube-controller-manager",), False),
    ],
)
def test_controller_is_left_out_where_others_of_its_manager_have_lines(users, is_left_out):
    made = omissions(*(line(second, user=user) for second, user in enumerate(users, 1)))
    assert (COLLECTOR in made.controllers) is is_left_out


def test_owner_of_a_kind_without_lines_is_not_known():
    made = omissions(line(1, metadata=owned()), line(2, CLAIM, metadata=owned("Pod", "v1")))
    assert made.ownerless == {"uid of p"}
    deployment = ObjectKey("apps", "deployments", "default", "x")
    shown = line(3, deployment, apiVersion="apps/v1", kind="Deployment")
    assert omissions(line(1, metadata=owned()), shown).ownerless == set()


def test_owner_of_a_kind_that_is_not_served_has_no_effect():
    assert omissions(line(1, metadata=owned("RayJob", "ray.io/v1"))).ownerless == set()


SLICE = ObjectKey("resource.k8s.io", "resourceslices", "", "s")


@pytest.mark.parametrize(
    ("witness", "is_undecided"),
    [
        (line(2, SLICE, spec={"nodeName": "n2"}), True),
        (line(2, user="system:node:n2"), True),
        (line(2, SLICE, spec={"nodeName": "n1"}), False),
        (line(2, SLICE, spec={"allNodes": True}), False),
        (line(2, ObjectKey("", "nodes", "", "n2")), False),
    ],
)
def test_node_without_a_line_leaves_placements_undecided(witness, is_undecided):
    """That a scheduler binds a pod to a node does not prove that there is one."""
    node = line(1, ObjectKey("", "nodes", "", "n1"))
    waiting, bound = line(2), line(3, spec={"nodeName": "n2"}, user=SCHEDULER)
    assert bool(before(omissions(node, witness, waiting, bound), 3)) == is_undecided
