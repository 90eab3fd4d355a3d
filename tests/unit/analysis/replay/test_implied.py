"""Objects that no line shows: what proves that they were there, since when, and until when."""

import json

from app.analysis.replay.unsure.implied import Implied
from app.domain.log import Actor, Event, EventType, ObjectKey, Revision, Stamp
from app.domain.values.timestamps import SECOND, Instant

GROUP = "resource.k8s.io"
POD = ObjectKey("", "pods", "team", "p")
CLAIM = ObjectKey(GROUP, "resourceclaims", "team", "p-gpu-x7x7x")
TEMPLATE = ObjectKey(GROUP, "resourceclaimtemplates", "team", "one-gpu")
TEAM = ObjectKey("", "namespaces", "", "team")
ENDER = "system:serviceaccount:kube-system:namespace-controller"


def event(key, tree=None, *, type_=EventType.OBJECT_CREATED, user="alice", uid="", verb="create"):
    body = json.dumps({"metadata": {"name": key.name}, **(tree or {})}).encode()
    stamp = Stamp(time=Instant(7 * SECOND), actor=Actor(user=user), verb=verb)
    uid = uid or f"uid of {key.name}"
    return Event(revision=Revision(1), type=type_, key=key, uid=uid, body=body, stamp=stamp)


def pod(key=POD):
    entry = {"name": "gpu", "resourceClaimTemplateName": TEMPLATE.name}
    return event(key, {"spec": {"resourceClaims": [entry]}})


def claim(key=CLAIM, *, of=POD, count=1, admin=False):
    exactly = {"deviceClassName": "gpu", "count": count, "adminAccess": admin}
    owner = {"kind": "Pod", "name": of.name, "uid": f"uid of {of.name}", "controller": True}
    metadata = {
        "name": key.name,
        "annotations": {"resource.kubernetes.io/pod-claim-name": "gpu", "team": "blue"},
        "labels": {"app": "train"},
        "ownerReferences": [owner],
    }
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
    return event(key, {"metadata": metadata, "spec": spec})


def implied(*events):
    """The implied writes before each event, by key."""
    found = Implied(events)
    return [{each.key: each for each in found.before(one)} for one in events]


def test_namespace_of_an_object_is_there_once_unless_a_line_shows_it():
    assert [set(each) for each in implied(pod(), claim(of=CLAIM))] == [{TEAM}, set()]
    assert implied(pod(), event(TEAM)) == [{}, {}]
    assert implied(event(ObjectKey("", "nodes", "", "n"))) == [{}]


def test_implied_namespace_is_one_in_which_objects_can_be_made():
    (made,) = implied(pod())
    assert made[TEAM].object == {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": "team",
            "uid": f"implied-{TEAM}",
            "labels": {"kubernetes.io/metadata.name": "team"},
        },
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def test_namespace_in_which_a_claim_may_ask_for_admin_access_has_the_label():
    for admin in (False, True):
        (made,) = implied(claim(admin=admin))
        labels = made[TEAM].object["metadata"]["labels"]
        assert ("resource.kubernetes.io/admin-access" in labels) is admin


def test_namespace_ends_before_its_controller_deletes_what_is_in_it():
    gone = event(POD, type_=EventType.OBJECT_DELETED, user=ENDER)
    by_another = event(POD, type_=EventType.OBJECT_DELETED)
    first, second, third = implied(pod(), by_another, gone)
    assert [set(first), set(second), set(third)] == [{TEAM}, set(), {TEAM}]
    assert "deletionTimestamp" not in first[TEAM].object["metadata"]
    assert third[TEAM].object["metadata"]["deletionTimestamp"] == "1970-01-01T00:00:07Z"
    assert third[TEAM].stamp.verb == "delete"
    assert third[TEAM].uid == first[TEAM].uid


def bare(key, verb="create"):
    return event(key, type_=EventType.GAP_OBSERVED, verb=verb)


def test_line_without_a_body_does_not_show_an_object():
    first, second, third = implied(bare(TEAM), bare(TEMPLATE), pod())
    assert (first, second, set(third)) == ({}, {}, {TEAM})
    assert TEMPLATE in implied(bare(TEMPLATE), pod(), claim())[1]


def test_namespace_that_is_seen_whole_only_later_is_there_before_with_its_uid():
    later = event(TEAM, uid="own", verb="baseline")
    assert [set(each) for each in implied(bare(TEAM), pod(), later)] == [set(), {TEAM}, set()]
    assert implied(bare(TEAM), pod(), later)[1][TEAM].uid == "own"
    assert implied(pod(), later) == [{}, {}]


def test_request_without_a_body_says_when_a_namespace_was_to_end():
    own = {"metadata": {"name": TEAM.name, "uid": "own"}}
    for before, uid in ((pod(), f"implied-{TEAM}"), (event(TEAM, own, uid="own"), "own")):
        _, ended, again = implied(before, bare(TEAM, "delete"), bare(TEAM, "delete"))
        assert ended[TEAM].uid == uid
        assert ended[TEAM].object["metadata"]["deletionTimestamp"] == "1970-01-01T00:00:07Z"
        assert again == {}
    assert implied(bare(TEAM, "delete"), pod())[0] == {}


def test_template_of_a_claim_is_there_before_the_pod_with_all_that_the_claim_has_of_it():
    shown = claim()
    before_pod, before_claim = implied(pod(), shown)
    assert before_claim == {}
    assert before_pod[TEMPLATE].object["spec"] == {
        "metadata": {"annotations": {"team": "blue"}, "labels": {"app": "train"}},
        "spec": shown.object["spec"],
    }


def test_template_that_no_claim_was_generated_from_or_that_a_line_shows_is_not_implied():
    assert TEMPLATE not in implied(pod())[0]
    assert all(TEMPLATE not in each for each in implied(pod(), claim(), event(TEMPLATE)))


def test_template_that_was_not_there_by_an_event_is_there_when_the_claim_is_made():
    report = {"involvedObject": {"uid": "uid of p"}, "reason": "FailedResourceClaimCreation"}
    said = event(ObjectKey("", "events", "team", "p.1"), report)
    before_pod, _, before_claim = implied(pod(), said, claim())
    assert TEMPLATE not in before_pod
    assert TEMPLATE in before_claim


def test_claim_with_another_spec_shows_that_its_template_was_replaced():
    other, others = POD._replace(name="q"), CLAIM._replace(name="q-gpu-y8y8y")
    made = implied(pod(), claim(), pod(other), claim(others, of=other, count=2), pod(other))
    assert [TEMPLATE in each for each in made] == [True, False, True, False, False]
    assert made[2][TEMPLATE].type is EventType.OBJECT_UPDATED
    (request,) = made[2][TEMPLATE].object["spec"]["spec"]["devices"]["requests"]
    assert request["exactly"]["count"] == 2
