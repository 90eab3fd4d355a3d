"""Deletions without a recorded answer: what goes at once, what begins to go, what is not known.

The verdicts follow from the rules of the API server: it takes a grace period of zero for pods
without a node and for finished ones, and keeps what has a finalizer.
"""

import pytest

from app.domain.log.records import Loss, Op
from tests.unit.history.worlds import CLAIMS, NAMESPACES, PODS, audit, audit_records, tree

PROTECTION = "resource.kubernetes.io/delete-protection"
KUBELET = "system:node:n1"
OPTIONS = {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/__internal"}
ANSWER = {"kind": "Status", "apiVersion": "v1"}
DUE = "2026-01-01T00:00:38Z"

GONE, GOING, UNSURE = ["DELETED"], ["MODIFIED"], ["GAP"]


def pod(rv, phase="Pending", node="", **metadata):
    spec = {"terminationGracePeriodSeconds": 30, "containers": []}
    spec |= {"nodeName": node} if node else {}
    return tree(PODS, "p1", rv=rv, metadata=metadata, spec=spec, status={"phase": phase})


def claim(rv, *finalizers, **metadata):
    metadata |= {"finalizers": [*finalizers]} if finalizers else {}
    return tree(CLAIMS, "c1", rv=rv, metadata=metadata, spec={}, status={})


def of_pod(verb, second, response=None, **options):
    return audit(verb, response, type_=PODS, name="p1", second=second, **options)


def of_claim(verb, second, response=None, **options):
    return audit(verb, response, name="c1", second=second, **options)


def deletion(of=of_pod, second=8, **options):
    """A deletion at level Request with these options."""
    user = options.pop("user", "alice")
    request = {**OPTIONS, **options}
    return of("delete", second, level="Request", request=request, user=user)


def eviction(level="RequestResponse", **options):
    request = {"kind": "Eviction", "deleteOptions": options}
    answer = ANSWER if level == "RequestResponse" else None
    return of_pod("create", 8, answer, subresource="eviction", level=level, request=request)


def status(second, phase, **metadata):
    answer = pod(20, phase, "n1", **metadata)
    patch = {"status": {"phase": phase}}
    return of_pod("patch", second, answer, subresource="status", user=KUBELET, request=patch)


CREATED = of_pod("create", 1, pod(10))
BOUND = of_pod(
    "create", 2, ANSWER, subresource="binding", request={"target": {"name": "n1"}}, code=201
)
RUNNING = status(3, "Running")
POD = (CREATED, BOUND, RUNNING)
LAST = deletion(second=40, user=KUBELET, gracePeriodSeconds=0)
UNSEEN = of_pod("delete", 8, level="Metadata")
UNSEEN_LAST = of_pod("delete", 40, level="Metadata", user=KUBELET)
TERMINATING = {"deletionTimestamp": DUE, "deletionGracePeriodSeconds": 30}

PLAIN = of_claim("create", 1, claim(10))
PROTECTED = of_claim("update", 2, claim(11, PROTECTION))
ENDING = {"deletionTimestamp": "2026-01-01T00:00:08Z", "deletionGracePeriodSeconds": 0}
HELD_POD = of_pod("create", 1, pod(10, "Running", "n1", finalizers=["batch.kubernetes.io/job"]))

ROWS = {
    "running": ((*POD, deletion()), GOING),
    "running, ended": ((*POD, deletion(), LAST), GOING + GONE),
    "running, reported on the way": (
        (*POD, deletion(), status(20, "Failed", **TERMINATING), LAST),
        GOING + GOING + GONE,
    ),
    "grace of the request": ((*POD, deletion(gracePeriodSeconds=5)), GOING),
    "forced": ((*POD, deletion(gracePeriodSeconds=0)), GONE),
    "forced after a graceful one": (
        (*POD, deletion(), deletion(second=9, gracePeriodSeconds=0)),
        GOING + GONE,
    ),
    "asked for twice": ((*POD, deletion(), deletion(second=9)), GOING),
    "without a node": ((CREATED, deletion()), GONE),
    "finished": ((CREATED, BOUND, status(3, "Failed"), deletion()), GONE),
    "bound, never shown since": ((CREATED, BOUND, deletion()), GOING + UNSURE),
    "held by a finalizer": ((HELD_POD, deletion(gracePeriodSeconds=0)), GOING),
    "in the foreground": ((CREATED, deletion(propagationPolicy="Foreground")), GOING),
    "dry run": ((*POD, deletion(dryRun=["All"])), []),
    "never seen before": ((PLAIN, deletion()), UNSURE),
    "level Metadata": ((*POD, UNSEEN), UNSURE),
    "level Metadata, ended": ((*POD, UNSEEN, UNSEEN_LAST), UNSURE + GONE),
    "all at level Request": (
        (
            of_pod("create", 1, level="Request", request=pod("")),
            {**BOUND, "level": "Request", "responseObject": None},
            deletion(),
        ),
        GOING + UNSURE,
    ),
    "all at level Request, ended": (
        (
            of_pod("create", 1, level="Request", request=pod("")),
            {**BOUND, "level": "Request", "responseObject": None},
            deletion(),
            LAST,
        ),
        GOING + UNSURE + GONE,
    ),
    "evicted while it runs": ((*POD, eviction()), GOING),
    "evicted without a node": ((CREATED, eviction()), GONE),
    "evicted at once": ((*POD, eviction(gracePeriodSeconds=0)), GONE),
    "eviction is tried": ((*POD, eviction(dryRun=["All"])), []),
    "eviction at level Request": ((*POD, eviction("Request")), GOING),
    "evicted twice": ((*POD, eviction(), {**eviction(), "auditID": "other"}), GOING),
    "protected claim": ((PLAIN, PROTECTED, deletion(of_claim)), GOING),
    "claim": ((PLAIN, deletion(of_claim)), GONE),
    "claim in the foreground": (
        (PLAIN, deletion(of_claim, propagationPolicy="Foreground")),
        GOING,
    ),
    "orphans of a claim": ((PLAIN, deletion(of_claim, orphanDependents=True)), GOING),
    "claim in the background": (
        (PLAIN, deletion(of_claim, propagationPolicy="Background")),
        GONE,
    ),
    "claim that is released": (
        (PLAIN, PROTECTED, deletion(of_claim), of_claim("update", 9, claim(13, **ENDING))),
        GOING + GONE,
    ),
    "claim that is released at level Request": (
        (
            PLAIN,
            PROTECTED,
            deletion(of_claim),
            of_claim("update", 9, level="Request", request=claim(13, **ENDING)),
        ),
        GOING + GONE,
    ),
    "claim that a patch releases": (
        (
            PLAIN,
            PROTECTED,
            deletion(of_claim),
            of_claim(
                "patch",
                9,
                level="Request",
                agent="controller/1",
                request={"metadata": {"finalizers": None}},
            ),
        ),
        GOING + GONE,
    ),
    "eviction at level Metadata": ((*POD, eviction("Metadata")), UNSURE),
}


@pytest.mark.parametrize("title", ROWS)
def test_deletion_without_an_answer_ends_what_nothing_holds(title, tmp_path):
    lines, expected = ROWS[title]
    records = audit_records(tmp_path, *lines)
    since = max(line["stageTimestamp"] for line in lines if line["stageTimestamp"][17:19] < "08")
    known = [one for one in records if one.position and one.name in ("p1", "c1")]
    later = [one for one in known if int(one.position) > _count(lines, since)]
    assert [one.op.value for one in later if one.op is not Op.CONTEXT] == expected


def _count(lines, since):
    return sum(line["stageTimestamp"] <= since for line in lines)


@pytest.mark.parametrize(
    ("lines", "due", "grace"),
    [
        ((*POD, deletion()), DUE, 30),
        ((*POD, deletion(gracePeriodSeconds=5)), "2026-01-01T00:00:13Z", 5),
        ((*POD, deletion(), deletion(second=9, gracePeriodSeconds=1)), "2026-01-01T00:00:10Z", 1),
        ((*POD, deletion(), deletion(second=9, gracePeriodSeconds=90)), DUE, 30),
    ],
)
def test_grace_period_is_that_of_the_request_or_of_the_pod(lines, due, grace, tmp_path):
    shown = [one for one in audit_records(tmp_path, *lines) if one.op is Op.MODIFIED][-1]
    metadata = shown.object["metadata"]
    assert metadata["deletionTimestamp"] == due
    assert metadata["deletionGracePeriodSeconds"] == grace


def test_gap_after_a_deletion_tells_what_it_is_about(tmp_path):
    gap = audit_records(tmp_path, CREATED, BOUND, deletion())[-1]
    assert gap.op is Op.GAP
    assert set(gap.losses) == {Loss.GAP, Loss.NO_DELETE_STATE}
    assert gap.message == "whether the deletion ended the object at once was not recorded"


def test_deletion_of_another_object_of_the_name_is_not_that_of_the_known_one(tmp_path):
    """The request names the uid that it is about."""
    other = deletion(preconditions={"uid": "uid-other"})
    records = [one for one in audit_records(tmp_path, *POD, other) if one.position == "4"]
    assert [one.op for one in records] == [Op.DELETED, Op.GAP]
    assert Loss.SYNTHETIC_DELETE in records[0].losses


def test_namespace_begins_to_go(tmp_path):
    held, living = {"finalizers": ["kubernetes"]}, {"phase": "Active"}
    namespace = tree(NAMESPACES, "ns", rv=7, spec=held, status=living)
    of = {"type_": NAMESPACES, "namespace": "ns", "name": "ns"}
    records = audit_records(
        tmp_path,
        audit("create", namespace, **of),
        audit("delete", None, second=3, level="Request", request=OPTIONS, **of),
    )
    assert [one.op for one in records] == [Op.ADDED, Op.MODIFIED]
    going = records[1].object
    assert going["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:03Z"
    assert "deletionGracePeriodSeconds" not in going["metadata"]
    assert going["status"] == {"phase": "Terminating"}


@pytest.mark.parametrize(
    ("options", "op"),
    [
        ({}, Op.MODIFIED),
        ({"gracePeriodSeconds": 0}, Op.DELETED),
        ({"gracePeriodSeconds": 0, "propagationPolicy": "Foreground"}, Op.MODIFIED),
    ],
)
def test_deleted_collection_goes_by_the_options_of_its_request(options, op, tmp_path):
    listed = {"kind": "PodList", "apiVersion": "v1", "items": [pod(20, "Running", "n1")]}
    collection = audit(
        "deletecollection", listed, type_=PODS, second=8, request={**OPTIONS, **options}
    )
    assert audit_records(tmp_path, *POD, collection)[-1].op is op


def test_answer_to_a_deleted_collection_tells_what_holds_a_pod_and_changes_nothing_else(tmp_path):
    """It shows the state before, of which a line may be lost: that is no write of this request."""
    listed = {"kind": "PodList", "apiVersion": "v1", "items": [pod(20, "Running", "n1")]}
    collection = audit("deletecollection", listed, type_=PODS, second=8)
    records = [one for one in audit_records(tmp_path, CREATED, collection) if one.name == "p1"]
    assert [one.op for one in records] == [Op.ADDED, Op.MODIFIED]
    assert records[-1].object["metadata"]["deletionTimestamp"] == DUE
    assert records[-1].object["status"] == {"phase": "Pending"}
