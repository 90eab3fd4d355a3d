"""The place of removals beside what the garbage collector deleted because of them.

Parity: history-formats.md 4.4.
"""

import pytest

from app.domain.values import timestamps
from tests.unit.history.worlds import CLAIMS, PODS, audit, audit_records, tree

COLLECTOR = "system:serviceaccount:kube-system:generic-garbage-collector"
ENDING = {"deletionTimestamp": "2026-01-01T00:00:10Z", "deletionGracePeriodSeconds": 0}


def at(asked, answered):
    stamps = (f"2026-01-01T00:00:{each:09.6f}Z" for each in (asked, answered))
    return dict(zip(("requestReceivedTimestamp", "stageTimestamp"), stamps, strict=True))


def owned(owners, rv, **more):
    references = [{"kind": "Pod", "name": uid, "uid": uid} for uid in owners]
    return tree(CLAIMS, "c", rv=rv, metadata={"ownerReferences": references, **more})


def delete(asked, answered, *, user=COLLECTOR, owners=("uid-p",), verb="delete"):
    """The collector's deletion of a claim, which waits for its finalizer."""
    gone = owned(owners, 20, finalizers=["held"], **ENDING)
    return audit(verb, gone, name="c", user=user, **at(asked, answered))


def remove(asked, answered, user="jobs"):
    """The update that takes the pod's last finalizer, answered with the version before it."""
    pod = tree(PODS, "p", rv=11, metadata=ENDING, spec={})
    return audit("update", pod, type_=PODS, name="p", user=user, **at(asked, answered))


MADE = (
    audit("create", tree(PODS, "p", rv=5, spec={}), type_=PODS, **at(1, 1.001)),
    audit("create", owned(["uid-p"], 6, finalizers=["held"]), name="c", **at(2, 2.001)),
    audit(
        "delete",
        tree(PODS, "p", rv=11, metadata={**ENDING, "finalizers": ["jobs"]}, spec={}),
        type_=PODS,
        name="p",
        **at(10, 10.001),
    ),
)
RELEASED = audit(
    "update", owned(["uid-p"], 21, **ENDING, finalizers=["held"]), name="c", **at(10.03, 10.031)
)


@pytest.mark.parametrize(
    ("lines", "order"),
    [
        ((remove(10.01, 10.015), delete(10.02, 10.03)), "pc"),
        ((remove(10.01, 10.05), delete(10.02, 10.03)), "pc"),
        ((remove(10.01, 10.05), delete(10.02, 10.08)), "pc"),
        ((remove(10.01, 10.05), delete(10.02, 10.03), RELEASED), "pcc"),
        ((remove(10.01, 10.05), delete(10.02, 10.03, owners=("uid-q", "uid-p"))), "pc"),
        # Asked for before the removal was, by another, about what another owns, or no deletion.
        ((remove(10.025, 10.05), delete(10.02, 10.03)), "cp"),
        ((remove(10.01, 10.05), delete(10.02, 10.03, user="alice")), "cp"),
        ((remove(10.01, 10.05), delete(10.02, 10.03, owners=("uid-q",))), "cp"),
        ((remove(10.01, 10.05), delete(10.02, 10.03, verb="patch")), "cp"),
        # The collector itself ends an owner that waits for its dependents.
        ((remove(10.01, 10.05, user=COLLECTOR), delete(10.02, 10.03)), "cp"),
    ],
)
def test_removal_comes_before_what_the_collector_deleted_because_of_it(tmp_path, lines, order):
    records = audit_records(tmp_path, *MADE, *lines)
    ends = [
        record
        for record in records
        if record.observed_at > timestamps.parse("2026-01-01T00:00:10.002Z")
    ]
    assert "".join(record.name for record in ends) == order
    instants = [record.settled_at for record in records]
    assert instants == sorted(instants)
    (removed,) = [record for record in ends if record.name == "p"]
    assert removed.observed_at == timestamps.parse(lines[0]["stageTimestamp"])
