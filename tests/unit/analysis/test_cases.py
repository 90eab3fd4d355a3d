"""Which decision of a history becomes a case for allocators."""

import pytest

from app.analysis.handover import cases
from app.domain.controllers.scheduling import repeated_attempts
from app.domain.errors import InputError
from app.domain.values.fields import decision_body
from tests.cluster import Cluster


def contended():
    """One device, its holder, and a pod that waits; a pod without claims comes last."""
    cluster = Cluster()
    cluster.node("n1")
    cluster.device_class()
    cluster.slice("n1", devices=1)
    cluster.template()
    for name in ("holder", "waiting"):
        cluster.pod(name, template="gpu")
        cluster.settle().wait(10)
    cluster.pod("plain")
    cluster.settle()
    return cluster


def pods_of(case):
    return [claim["metadata"]["ownerReferences"][0]["name"] for claim in case["claims"]]


def last_outcome(cluster):
    bodies = [event.object for event in cluster.line.events if event.key.resource == "decisions"]
    told = [decision_body.read(body) for body in bodies]
    return [each.outcome for each in told if each.controller == "scheduling"][-1]


@pytest.mark.parametrize("minutes", [0, 30])
def test_case_is_of_the_last_attempt_that_had_claims_to_allocate(minutes):
    """A pod without claims, or attempts that wrote nothing, may come after it."""
    cluster = contended().wait(minutes * 60)
    is_repeated = last_outcome(cluster) == repeated_attempts.OUTCOME
    assert is_repeated is (minutes > 0)
    case = cases.case(cluster.line.events, cluster.profile, "x")
    assert pods_of(case) == ["waiting"]
    assert case["expected"]["allocations"] is None
    assert [each["device"] for each in case["allocatedState"]["devices"]] == ["gpu-0"]


def test_case_of_a_named_pod_is_of_its_attempt():
    cluster = contended().wait(1_800)
    case = cases.case(cluster.line.events, cluster.profile, "x", "default/holder")
    assert pods_of(case) == ["holder"]
    (allocation,) = case["expected"]["allocations"]
    assert [each["device"] for each in allocation["devices"]["results"]] == ["gpu-0"]


@pytest.mark.parametrize(
    ("pod", "reason"),
    [("plain", "pod default/plain has no claim"), ("nobody", "decided nothing about pod nobody")],
)
def test_pod_without_an_attempt_for_claims_is_refused(pod, reason):
    cluster = contended()
    with pytest.raises(InputError, match=reason):
        cases.case(cluster.line.events, cluster.profile, "x", pod)
