"""A replay's pace: pods are held back and put off, and stay what they would be without it."""

from app.analysis.replay.variants import CacheOfClaims, Variant
from app.domain.controllers.pacing import AttemptOutcome
from app.domain.controllers.registry import ControllerOptions
from app.domain.values.timestamps import SECOND, Instant
from tests.cluster import T0, Cluster


class OneInstant:
    """Pods are tried from one second on, and put off until another while they are placed."""

    claims_cache = CacheOfClaims(Variant())

    def __init__(self, first: int, last: int = 0, seen: str = "") -> None:
        self.first = Instant(T0 + first * SECOND)
        self.last = Instant(T0 + last * SECOND)
        self.seen = seen
        self.tried: list[AttemptOutcome] = []

    def not_before(self, queue: str, key: tuple[str, ...], now: Instant) -> Instant:
        return self.first if queue == "scheduling" else now

    def version_seen(self, pod: str, newest: str, now: Instant) -> str:
        return self.seen or newest

    def put_off(self, pod: str, tried: AttemptOutcome, now: Instant) -> Instant | None:
        self.tried.append(tried)
        return self.last if tried.node and now < self.last else None


def paced(pace):
    cluster = Cluster(options=ControllerOptions(pace=pace))
    cluster.device_class()
    cluster.node("node")
    cluster.slice("node", devices=[{"name": "d"}])
    cluster.claim()
    cluster.pod("pod", claim="claim")
    return cluster


def is_bound(cluster):
    return bool(cluster.must("pods", "pod")["spec"].get("nodeName"))


def test_pod_is_not_tried_before_its_instant():
    cluster = paced(OneInstant(5))
    cluster.wait(4)
    assert cluster.decisions("scheduling") == []
    cluster.wait(1)
    assert is_bound(cluster)


def test_attempt_that_is_put_off_leaves_no_trace_and_is_made_again():
    pace = OneInstant(1, 3)
    cluster = paced(pace)
    cluster.wait(2)
    assert cluster.decisions("scheduling") == []
    assert pace.tried == [AttemptOutcome(node="node", devices=("gpu: node/d",))]
    cluster.wait(1)
    assert is_bound(cluster)


def test_pod_that_is_put_off_is_tried_again_when_something_happens():
    pace = OneInstant(1, 60)
    cluster = paced(pace)
    cluster.wait(2)
    cluster.node("other")
    cluster.settle()
    assert len(pace.tried) == 2


def test_claim_that_went_away_while_the_pod_was_held_back_gates_it():
    cluster = paced(OneInstant(5))
    cluster.wait(1)
    cluster.delete("resourceclaims", "claim")
    cluster.wait(10)
    assert cluster.pod_condition("pod") is None
    cluster.claim()
    cluster.wait(1)
    assert is_bound(cluster)


def reports(pace):
    """Message and count of each report about a pod that two attempts found no place for."""
    cluster = Cluster(options=ControllerOptions(pace=pace))
    cluster.device_class()
    cluster.claim()
    cluster.pod("pod", claim="claim")
    cluster.wait(1)
    cluster.node("node")
    cluster.wait(10)
    assert len(pace.tried) == 2
    return [
        (each["message"], each.get("series", {}).get("count", 1))
        for name in cluster.names("events")
        for each in (cluster.must("events", name),)
        if each["reason"] == "FailedScheduling"
    ]


def test_attempts_that_saw_one_version_of_a_pod_report_as_a_series():
    """The condition of the first one was written late, so the second one did not see it."""
    first, second = reports(OneInstant(0))
    assert first[0] != second[0]
    assert first[1] == second[1] == 1
    assert reports(OneInstant(0, seen="7")) == [(first[0], 2)]
