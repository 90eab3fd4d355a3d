"""Attempts of a recorded scheduler, made again on the states of a log within some instants."""

import pytest

from app.analysis.masks import masked
from app.analysis.replay.proving.earlier_states import ClaimInFlight, EarlierStates, SeenAttempt
from app.domain.controllers.scheduling.reconciler import SchedulingReconciler
from app.domain.log import ObjectKey
from app.domain.values.fields import dra, meta
from app.domain.values.timestamps import SECOND, Instant
from tests.cluster import DRIVER, T0, Cluster

POD = ObjectKey("", "pods", "default", "pod")
CLAIM = ObjectKey("resource.k8s.io", "resourceclaims", "default", "claim")
NO_DEVICE = (
    "0/1 nodes are available: 1 cannot allocate all claims. preemption: "
    "0/1 nodes are available: 1 Preemption is not helpful for scheduling."
)
GIVEN = {
    "devices": {
        "results": [{"request": "gpu", "driver": DRIVER, "pool": "n1", "device": "gpu-0"}],
    },
    "nodeSelector": {
        "nodeSelectorTerms": [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
        ]
    },
}


@pytest.fixture
def cluster():
    """A pod is there from the first second, and a device for it from the fifth; nobody decides."""
    made = Cluster()
    made.stop("scheduling")
    made.device_class()
    made.node()
    made.claim()
    made.claim("other")
    made.pod(claim="claim")
    made.wait(5)
    made.slice(devices=1)
    made.wait(5)
    return made


def attempt(cluster, since, until, **outcome):
    uid = meta.uid(cluster.must("pods", "pod"))
    since, until = (Instant(T0 + int(each * SECOND)) for each in (since, until))
    return SeenAttempt(pod=POD, uid=uid, since=since, until=until, **outcome)


def placed(cluster, **changes):
    claim = meta.uid(cluster.must("resourceclaims", "claim"))
    return {"node": "n1", "allocations": ((claim, masked(GIVEN)),), **changes}


def agrees(cluster, seen, in_flight=()):
    fresh = cluster.fresh_controllers()
    scheduler = next(each for each in fresh if isinstance(each, SchedulingReconciler))
    states = EarlierStates(cluster.profile, scheduler, [seen], in_flight)
    states.follow(cluster.line.events)
    states.end()
    return states.agree


@pytest.mark.parametrize(
    ("since", "until", "is_right"), [(1, 2, True), (4.9, 6, True), (5.1, 6, False), (8, 9, False)]
)
def test_refusal_is_right_only_where_a_state_within_its_instants_refuses(
    cluster, since, until, is_right
):
    seen = attempt(cluster, since, until, message=NO_DEVICE)
    assert agrees(cluster, seen) is is_right


def test_refusal_with_another_message_is_not_right(cluster):
    message = NO_DEVICE.replace("0/1", "0/2")
    assert not agrees(cluster, attempt(cluster, 0, 9, message=message))


@pytest.mark.parametrize(("since", "until", "is_right"), [(1, 4.9, False), (4.9, 6, True)])
def test_placement_is_right_only_where_a_state_within_its_instants_has_the_device(
    cluster, since, until, is_right
):
    seen = attempt(cluster, since, until, **placed(cluster))
    assert agrees(cluster, seen) is is_right


def test_node_that_nothing_shows_may_be_any(cluster):
    assert agrees(cluster, attempt(cluster, 5, 9, **placed(cluster, node="")))


@pytest.mark.parametrize("part", ["node", "device", "claim"])
def test_placement_elsewhere_is_not_right(cluster, part):
    [(claim, allocation)] = placed(cluster)["allocations"]
    [result] = allocation["devices"]["results"]
    elsewhere = {**allocation, "devices": {"results": [{**result, "device": "gpu-1"}]}}
    changes = {
        "node": {"node": "n2"},
        "device": {"allocations": ((claim, elsewhere),)},
        "claim": {"allocations": ()},
    }
    seen = attempt(cluster, 5, 9, **placed(cluster, **changes[part]))
    assert not agrees(cluster, seen)


@pytest.mark.parametrize(("chosen", "is_right"), [(6, True), (8.5, False)])
def test_device_that_was_chosen_for_another_claim_is_taken(cluster, chosen, is_right):
    other = ObjectKey(*CLAIM[:3], "other")
    chosen, written = (Instant(T0 + int(each * SECOND)) for each in (chosen, 9))
    flying = ClaimInFlight(claim=other, since=chosen, until=written, allocation=masked(GIVEN))
    seen = attempt(cluster, 7, 8, message=NO_DEVICE)
    assert agrees(cluster, seen, [flying]) is is_right
    assert agrees(cluster, attempt(cluster, 7, 8, **placed(cluster)), [flying])


def test_pod_of_an_earlier_uid_is_not_tried(cluster):
    seen = attempt(cluster, 1, 2, message=NO_DEVICE)
    cluster.delete("pods", "pod")
    cluster.pod(claim="claim")
    later = attempt(cluster, 1, 2, message=NO_DEVICE)
    assert agrees(cluster, seen)
    assert not agrees(cluster, later)


def test_allocation_that_is_written_is_no_choice_any_more(cluster):
    claim = cluster.must("resourceclaims", "claim")
    cluster.update("resourceclaims", {**claim, "status": {"allocation": GIVEN}}, "status")
    assert dra.results(cluster.must("resourceclaims", "claim"))
    assert not agrees(cluster, attempt(cluster, 10.1, 11, **placed(cluster)))
