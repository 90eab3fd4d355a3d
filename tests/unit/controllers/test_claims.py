"""The ResourceClaim controller (controllers.md 2 and 8.2)."""

from types import SimpleNamespace

import pytest

from app.domain.controllers import registry
from app.domain.controllers.claims import templates
from app.domain.controllers.quirks import NO_SWITCH, ControllerQuirks
from app.domain.controllers.registry import ControllerOptions
from app.domain.errors import InputError
from app.domain.values import json_tree
from tests.cluster import Cluster, claim_spec

FINALIZER = "resource.kubernetes.io/delete-protection"
ENTRY = "resource.kubernetes.io/pod-claim-name"
ADMIN = "admin access is requested, but the feature is disabled"
ALTERNATIVES = "template includes a prioritized list of subrequests, but the feature is disabled"


def ready_cluster(**options) -> Cluster:
    cluster = Cluster(**options)
    cluster.node()
    cluster.device_class()
    cluster.slice(devices=4)
    cluster.template()
    return cluster.settle()


def only_claims(**options) -> Cluster:
    """Nothing is scheduled: the claim controller is alone."""
    return ready_cluster(
        options=ControllerOptions(off=frozenset({"scheduling", "garbage"})), **options
    )


@pytest.mark.parametrize(
    ("pod", "entry", "prefix"),
    [
        ("pod", "gpu", "pod-gpu-"),
        ("p" * 50, "gpu", "p" * 50 + "-gpu-"),
        ("p" * 52, "gpu", "p" * 52 + "-gpu-"),
        ("p" * 53, "gpu", "p" * 52 + "-gp"),
        ("p" * 60, "e" * 10, "p" * 47 + "-" + "e" * 7),
        ("p" * 63, "e" * 63, "p" * 28 + "-" + "e" * 28),
    ],
)
def test_long_names_are_cut_in_proportion(pod, entry, prefix):
    assert templates.generate_name(pod, entry) == prefix


def test_claim_is_made_from_the_template_and_named_in_the_pod():
    cluster = only_claims()
    cluster.pod(template="gpu")
    cluster.settle()
    claim = cluster.must("resourceclaims", cluster.claim_of("pod"))
    pod = cluster.must("pods", "pod")
    assert claim["metadata"]["annotations"] == {ENTRY: "gpu"}
    assert claim["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "pod",
            "uid": pod["metadata"]["uid"],
            "controller": True,
        }
    ]
    assert json_tree.get(claim, "spec", "devices", "requests") is not None


def test_labels_and_annotations_of_the_template_go_to_the_claim():
    cluster = only_claims()
    cluster.create(
        "resource.k8s.io/v1",
        "ResourceClaimTemplate",
        "labelled",
        spec={
            "metadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}},
            "spec": claim_spec(),
        },
    )
    cluster.pod(template="labelled")
    cluster.settle()
    metadata = cluster.must("resourceclaims", cluster.claim_of("pod"))["metadata"]
    assert metadata["labels"] == {"team": "a"}
    assert metadata["annotations"] == {"note": "b", ENTRY: "gpu"}


def test_pod_with_two_templates_gets_its_status_after_both_claims():
    cluster = only_claims()
    first = cluster.line.head.revision
    cluster.pod(
        resourceClaims=[
            {"name": "a", "resourceClaimTemplateName": "gpu"},
            {"name": "b", "resourceClaimTemplateName": "gpu"},
        ]
    )
    cluster.settle()
    kinds = [event.key.resource for event in cluster.line.events if event.revision > first]
    assert kinds == ["pods", "resourceclaims", "resourceclaims", "pods"]
    assert cluster.claim_of("pod", "a") != cluster.claim_of("pod", "b")


def test_missing_template_is_reported_and_retried_with_growing_delay():
    cluster = only_claims()
    cluster.pod(template="absent")
    cluster.wait(2.6)
    said = [
        event.object
        for event in cluster.line.events
        if event.key.resource == "events" and event.object["involvedObject"]["name"] == "pod"
    ]
    text = (
        'PodResourceClaim gpu: resource claim template "absent": '
        'resourceclaimtemplate.resource.k8s.io "absent" not found'
    )
    assert said[-1]["message"] == text
    assert said[-1]["reason"] == "FailedResourceClaimCreation"
    assert said[-1]["count"] == 10
    assert {tree["metadata"]["name"] for tree in said} == {said[0]["metadata"]["name"]}
    cluster.template("absent")
    cluster.settle()
    assert cluster.claim_of("pod")


def test_owned_claim_named_in_the_status_is_left_alone():
    cluster = only_claims()
    cluster.pod(template="gpu")
    cluster.settle()
    before = cluster.line.head.revision
    cluster.patch("pods", "pod", {"metadata": {"labels": {"a": "b"}}})
    cluster.settle()
    assert cluster.line.head.revision == before + 1


def test_claim_missing_from_the_store_is_made_again():
    cluster = only_claims()
    cluster.pod(template="gpu")
    cluster.settle()
    lost = cluster.claim_of("pod")
    cluster.delete("resourceclaims", lost)
    cluster.settle()
    assert cluster.claim_of("pod") != lost
    assert cluster.get("resourceclaims", cluster.claim_of("pod")) is not None


def test_claim_with_the_annotation_is_adopted():
    cluster = only_claims()
    pod = cluster.pod(template="late")
    cluster.settle()
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "pod",
        "uid": pod["metadata"]["uid"],
        "controller": True,
    }
    cluster.apply(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {
                "name": "orphan",
                "annotations": {ENTRY: "gpu"},
                "ownerReferences": [owner],
            },
            "spec": claim_spec(),
        }
    )
    cluster.template("late")
    cluster.settle()
    assert cluster.claim_of("pod") == "orphan"


def test_owned_claim_without_the_annotation_is_not_adopted():
    cluster = only_claims()
    pod = cluster.pod(template="late")
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "pod",
        "uid": pod["metadata"]["uid"],
        "controller": True,
    }
    cluster.apply(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "other", "ownerReferences": [owner]},
            "spec": claim_spec(),
        }
    )
    cluster.template("late")
    cluster.settle()
    assert cluster.claim_of("pod") != "other"


def test_finished_pod_frees_and_deletes_its_claim_in_three_writes():
    cluster = ready_cluster()
    cluster.pod(template="gpu")
    cluster.settle()
    claim = cluster.claim_of("pod")
    assert cluster.devices_of(claim) == ["n1/gpu-0"]
    first = cluster.line.head.revision
    cluster.finish("pod")
    cluster.settle()
    steps = [
        (event.stamp.verb, str(event.type))
        for event in cluster.line.events
        if event.revision > first and event.key.name == claim and event.is_about_object
    ]
    assert steps == [
        ("update", "ObjectUpdated"),
        ("update", "ObjectUpdated"),
        ("delete", "ObjectDeleted"),
    ]
    assert cluster.get("resourceclaims", claim) is None
    # Parity: controllers.md 2.2; the status of a finished pod keeps naming the claim.
    assert cluster.claim_of("pod") == claim


def test_decision_to_release_names_the_pods_that_lose_their_reservation():
    cluster = ready_cluster()
    cluster.pod(template="gpu")
    cluster.settle()
    cluster.finish("pod")
    cluster.settle()
    summaries = [
        event.object["summary"]
        for event in cluster.line.events
        if event.type == "DecisionRecorded" and "removed" in event.object["summary"]
    ]
    (released,) = [each for each in summaries if each["removedCount"]]
    assert [(each["name"], each["why"]) for each in released["removed"]] == [
        ("pod", "pod is Succeeded")
    ]
    assert (released["removedCount"], released["kept"]) == (1, 0)


@pytest.mark.parametrize(
    ("request_", "off", "text"),
    [
        ({"exactly": {"adminAccess": True}}, "DRAAdminAccess", ADMIN),
        ({"exactly": {"adminAccess": True}}, "DRAPrioritizedList", ""),
        ({"exactly": {"adminAccess": False}}, "DRAAdminAccess", ""),
        ({"exactly": {}}, "DRAAdminAccess", ""),
        ({"firstAvailable": [{"name": "a"}]}, "DRAPrioritizedList", ALTERNATIVES),
        ({"firstAvailable": [{"name": "a"}]}, "DRAAdminAccess", ""),
        ({"firstAvailable": []}, "DRAPrioritizedList", ""),
    ],
)
def test_template_with_a_feature_that_is_off_is_refused(request_, off, text):
    """Parity: controllers.md 2.2. A request that uses none does not hide one that does."""
    gates = SimpleNamespace(enabled=lambda name: name != off)
    requests = [{"name": "plain", "exactly": {}}, {"name": "r", **request_}]
    for listed in (requests, requests[::-1]):
        template = {"spec": {"spec": {"devices": {"requests": listed}}}}
        assert templates.disabled_feature(template, gates) == text


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda cluster: cluster.finish("pod"), "pod is Succeeded"),
        (lambda cluster: cluster.finish("pod", "Failed"), "pod is Failed"),
        (lambda cluster: cluster.kill("pod"), "pod is gone"),
        (lambda cluster: (cluster.kill("pod"), cluster.pod("pod")), "pod was replaced"),
    ],
)
def test_decision_to_release_says_why(change, why):
    cluster = ready_cluster()
    cluster.claim("shared")
    cluster.pod(claim="shared")
    cluster.settle()
    cluster.stop("claims")
    change(cluster)
    cluster.start()
    cluster.settle()
    removed = [
        (each["name"], each["why"])
        for event in cluster.line.events
        if event.type == "DecisionRecorded" and event.object["controller"] == "claims"
        for each in event.object["summary"].get("removed", ())
    ]
    assert removed == [("pod", why)]


def test_claim_is_made_from_a_template_with_alternatives():
    cluster = ready_cluster()
    alternatives = [{"name": "one", "deviceClassName": "gpu"}]
    request = {"name": "gpu", "firstAvailable": alternatives}
    spec = {"spec": {"devices": {"requests": [request]}}}
    cluster.create("resource.k8s.io/v1", "ResourceClaimTemplate", "listed", spec=spec)
    cluster.pod(template="listed")
    cluster.settle()
    claim = cluster.must("resourceclaims", cluster.claim_of("pod"))
    assert [each["name"] for each in claim["spec"]["devices"]["requests"]] == ["gpu"]
    assert cluster.devices_of(cluster.claim_of("pod")) == ["n1/gpu-0"]


def test_deleted_pod_leaves_a_shared_claim_to_the_others():
    cluster = ready_cluster()
    cluster.claim()
    cluster.pod("a", claim="claim")
    cluster.pod("b", claim="claim")
    cluster.settle()
    cluster.delete("pods", "a")
    cluster.kill("a")
    cluster.settle()
    status = cluster.must("resourceclaims", "claim")["status"]
    assert [ref["name"] for ref in status["reservedFor"]] == ["b"]
    assert "allocation" in status
    cluster.delete("pods", "b")
    cluster.settle()
    assert "allocation" in cluster.must("resourceclaims", "claim")["status"], "b still runs"
    cluster.kill("b")
    cluster.settle()
    claim = cluster.must("resourceclaims", "claim")
    assert claim.get("status", {}) == {}
    assert "finalizers" not in claim["metadata"]


def test_claim_deleted_while_in_use_stays_until_its_consumer_is_gone():
    cluster = ready_cluster()
    cluster.claim()
    cluster.pod(claim="claim")
    cluster.settle()
    cluster.delete("resourceclaims", "claim")
    cluster.settle()
    assert "deletionTimestamp" in cluster.must("resourceclaims", "claim")["metadata"]
    cluster.finish("pod")
    cluster.settle()
    assert cluster.get("resourceclaims", "claim") is None


def test_claim_without_the_finalizer_keeps_its_allocation():
    cluster = ready_cluster()
    cluster.claim()
    cluster.pod(claim="claim")
    cluster.settle()
    cluster.patch("resourceclaims", "claim", {"metadata": {"finalizers": None}})
    cluster.finish("pod")
    cluster.settle()
    status = cluster.must("resourceclaims", "claim")["status"]
    assert "allocation" in status
    assert "reservedFor" not in status


def test_pod_with_a_node_from_the_start_is_reserved_but_never_allocated():
    cluster = ready_cluster()
    cluster.claim()
    cluster.pod("first", claim="claim")
    cluster.settle()
    cluster.pod("placed", claim="claim", nodeName="n1")
    cluster.claim("empty")
    cluster.pod("vain", claim="empty", nodeName="n1")
    cluster.settle()
    reserved = cluster.must("resourceclaims", "claim")["status"]["reservedFor"]
    assert [ref["name"] for ref in reserved] == ["first", "placed"]
    assert "allocation" not in cluster.must("resourceclaims", "empty").get("status", {})


@pytest.mark.parametrize("stray", ["", "gone", "theirs"])
def test_placed_pod_is_reserved_for_its_own_claims_beside_those_that_it_cannot_have(stray):
    """One entry may name a claim that does not exist, or one that was made for another pod."""
    cluster = ready_cluster()
    cluster.pod("other", template="gpu")
    cluster.claim("own")
    cluster.pod("user", claim="own")
    cluster.settle()
    theirs = cluster.claim_of("other")
    entries = [{"name": "own", "resourceClaimName": "own"}]
    if stray:
        how = {"gone": "resourceClaimName", "theirs": "resourceClaimTemplateName"}[stray]
        entries.insert(0, {"name": "stray", how: "gone" if stray == "gone" else "gpu"})
    cluster.stop("claims")
    cluster.pod("placed", nodeName="n1", resourceClaims=entries)
    if stray == "theirs":
        named = [{"name": "stray", "resourceClaimName": theirs}]
        cluster.patch("pods", "placed", {"status": {"resourceClaimStatuses": named}},
                      subresource="status")  # fmt: skip
    cluster.start()
    cluster.settle().wait(5)
    consumers = {
        name: [ref["name"] for ref in cluster.must("resourceclaims", name)["status"]["reservedFor"]]
        for name in ("own", theirs)
    }
    assert consumers == {"own": ["user", "placed"], theirs: ["other"]}


def test_consumers_of_other_kinds_are_never_removed():
    cluster = ready_cluster()
    cluster.claim()
    cluster.pod(claim="claim")
    cluster.settle()
    tree = json_tree.copy(cluster.must("resourceclaims", "claim"))
    tree["status"]["reservedFor"] += [
        {"apiGroup": "example.com", "resource": "jobs", "name": "j", "uid": "1"},
        {"apiGroup": "example.com", "resource": "pods", "name": "p", "uid": "2"},
    ]
    cluster.update("resourceclaims", tree, "status")
    cluster.finish("pod")
    cluster.settle()
    status = cluster.must("resourceclaims", "claim")["status"]
    assert [ref["name"] for ref in status["reservedFor"]] == ["j", "p"]
    assert "allocation" in status


def test_finished_pod_gets_no_second_claim_unless_asked_for():
    cluster = ready_cluster()
    cluster.pod(template="gpu")
    cluster.settle()
    cluster.finish("pod")
    cluster.wait(60)
    made = [e for e in cluster.line.events if e.type == "ObjectCreated"]
    assert sum(event.key.resource == "resourceclaims" for event in made) == 1


def test_with_quirk_c22_a_finished_pod_gets_one_second_claim_that_is_deleted_at_once():
    quirky = ControllerOptions(quirks=ControllerQuirks(c22=True))
    cluster = ready_cluster(options=quirky)
    cluster.pod(template="gpu")
    cluster.settle()
    cluster.finish("pod")
    cluster.wait(60)
    made = [
        event.key.name
        for event in cluster.line.events
        if event.type == "ObjectCreated" and event.key.resource == "resourceclaims"
    ]
    assert len(made) == 2
    assert cluster.names("resourceclaims") == []
    # One sync makes the second claim and enters its name, though it is deleted in between.
    assert cluster.claim_of("pod") == made[1]


def test_claim_is_not_touched_twice_for_one_release():
    cluster = ready_cluster()
    cluster.pod(template="gpu")
    cluster.settle()
    cluster.finish("pod")
    cluster.settle()
    releases = cluster.decisions("claims")
    assert len(releases) == 1
    assert releases[0][1] == "Deleted"


def test_with_quirk_c8_a_finished_pod_of_a_shared_claim_is_reserved_again_and_comes_to_rest():
    cluster = ready_cluster(options=ControllerOptions(quirks=ControllerQuirks(c8=True)))
    cluster.claim()
    cluster.pod("a", claim="claim")
    cluster.pod("b", claim="claim")
    cluster.settle()
    first = len(cluster.line.events)
    cluster.finish("a")
    cluster.wait(60)
    users = [
        [ref["name"] for ref in event.object["status"]["reservedFor"]]
        for event in cluster.line.events[first:]
        if event.key.resource == "resourceclaims"
    ]
    assert users == [["b"], ["b", "a"], ["b"], ["b", "a"], ["b"]]


def test_with_quirk_c8_only_new_reservations_of_a_finished_pod_count():
    cluster = ready_cluster(options=ControllerOptions(quirks=ControllerQuirks(c8=True)))
    cluster.claim()
    cluster.pod("a", claim="claim")
    cluster.pod("b", claim="claim")
    cluster.settle()
    cluster.finish("a")
    for number in range(3):
        cluster.patch("resourceclaims", "claim", {"metadata": {"labels": {"seen": str(number)}}})
    first = len(cluster.line.events)
    cluster.wait(60)
    users = [
        [ref["name"] for ref in event.object["status"]["reservedFor"]]
        for event in cluster.line.events[first:]
        if event.key.resource == "resourceclaims"
    ]
    assert users == [["b"], ["b", "a"], ["b"], ["b", "a"], ["b"]]


def test_with_quirk_c9_a_replaced_name_drops_the_other_which_is_put_back():
    options = ControllerOptions(
        quirks=ControllerQuirks(c9=True), off=frozenset({"scheduling", "garbage"})
    )
    cluster = ready_cluster(options=options)
    entries = [{"name": name, "resourceClaimTemplateName": "gpu"} for name in ("a", "b")]
    cluster.pod(resourceClaims=entries)
    cluster.settle()
    first = len(cluster.line.events)
    lost, kept = cluster.claim_of("pod", "a"), cluster.claim_of("pod", "b")
    cluster.delete("resourceclaims", lost)
    cluster.settle()
    made = cluster.claim_of("pod", "a")
    named = [
        [found["resourceClaimName"] for found in event.object["status"]["resourceClaimStatuses"]]
        for event in cluster.line.events[first:]
        if event.key.resource == "pods"
    ]
    assert named == [[made], [made, kept]]
    assert made != lost


@pytest.mark.parametrize("name", sorted(NO_SWITCH))
def test_quirk_without_a_switch_is_refused_with_its_reason(name):
    with pytest.raises(InputError, match=f"quirk {name} has no switch: "):
        registry.options_from({"quirks": {name: True}})
