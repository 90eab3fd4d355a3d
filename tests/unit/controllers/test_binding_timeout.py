"""How long devices may take to be ready is a setting of the history (controllers.md 3, 3.8)."""

from dataclasses import replace

import pytest

from app.analysis.verify.compare import ComparisonResult
from app.bootstrap import history_settings, process_settings
from app.domain.controllers import registry
from app.domain.controllers.registry import ControllerOptions
from app.domain.errors import InputError
from app.domain.values import json_tree
from app.domain.values.timestamps import SECOND, Instant
from tests.cluster import T0, Cluster, check_decisions
from tests.conformance.soak_recordings import Load, SlowControlPlane

TIMED_OUT = "device binding timeout: claim=claim"


class RecordedEnd(SlowControlPlane):
    """A pace that knows only when the pod waited no more for its devices."""

    def __init__(self, end: int) -> None:
        super().__init__(Load())
        self._end = Instant(T0 + end * SECOND)

    def not_before(self, queue: str, key: tuple[str, ...], now: Instant) -> Instant:
        return now

    def version_seen(self, pod: str, newest: str, now: Instant) -> str:
        return newest

    def wait_ends(self, pod: str, now: Instant) -> Instant | None:
        return self._end if now < self._end else None


class LostWait(SlowControlPlane):
    """A pace that knows when the process ended that waits."""

    def __init__(self, end: int) -> None:
        super().__init__(Load())
        self._end: Instant | None = Instant(T0 + end * SECOND)

    def not_before(self, queue: str, key: tuple[str, ...], now: Instant) -> Instant:
        return now

    def version_seen(self, pod: str, newest: str, now: Instant) -> str:
        return newest

    def wait_lost(self, pod: str, begun: Instant) -> Instant | None:
        return self._end

    def forget_wait(self, pod: str) -> None:
        self._end = None


def waiting(options: ControllerOptions) -> Cluster:
    """A pod whose device is never made ready."""
    cluster = Cluster(options=options)
    cluster.device_class()
    cluster.node()
    cluster.slice(
        devices=[
            {"name": "d", "bindingConditions": ["ready"], "bindingFailureConditions": ["failed"]}
        ]
    )
    cluster.claim()
    cluster.pod(claim="claim")
    return cluster.settle()


def has_timed_out(cluster: Cluster) -> bool:
    return any(TIMED_OUT in text for text in cluster.messages("pod"))


@pytest.mark.parametrize(
    ("settings", "seconds"), [({}, 600), ({"controllers": {"bindingTimeoutSeconds": 30}}, 30)]
)
def test_devices_may_take_as_long_as_the_history_says(settings, seconds):
    cluster = waiting(registry.options_from(settings))
    cluster.wait(seconds - 1)
    assert not has_timed_out(cluster)
    cluster.wait(1)
    assert has_timed_out(cluster)
    decisions, effects = check_decisions(cluster)
    assert ComparisonResult.DIFFERENT not in decisions.counts.keys() | effects.counts.keys()


def test_claim_that_is_to_be_deleted_is_waited_for_as_before():
    """Parity: controllers.md 3.8, a look is at the allocation and at the status of its devices."""
    cluster = waiting(registry.options_from({"controllers": {"bindingTimeoutSeconds": 30}}))
    cluster.delete("resourceclaims", "claim")
    cluster.wait(29)
    assert [outcome for _, outcome in cluster.decisions("scheduling")] == ["WaitingForBinding"]
    cluster.wait(1)
    assert has_timed_out(cluster)


def test_claim_that_was_given_back_meanwhile_is_not_waited_for():
    cluster = waiting(registry.options_from({"controllers": {"bindingTimeoutSeconds": 30}}))
    claim = json_tree.copy(cluster.must("resourceclaims", "claim"))
    claim["status"] = {}
    cluster.update("resourceclaims", claim, "status")
    cluster.wait(5)
    said = "claim default/claim got deallocated elsewhere in the meantime"
    assert any(said in text for text in cluster.messages("pod"))


def test_claim_whose_time_is_up_is_given_back_by_the_next_attempt():
    cluster = waiting(registry.options_from({"controllers": {"bindingTimeoutSeconds": 30}}))
    cluster.wait(36)
    outcomes = [outcome for _, outcome in cluster.decisions("scheduling")]
    assert outcomes[:2] == ["WaitingForBinding", "Error"]
    cluster.wait(30)
    assert any(
        "deallocation of ResourceClaim completed" in text for text in cluster.messages("pod")
    )


@pytest.mark.parametrize("seconds", [0, -1, 0.5, "30", registry.BINDING_TIMEOUT_MAX_SECONDS + 1])
def test_time_is_a_number_of_seconds(seconds):
    with pytest.raises(InputError):
        registry.options_from({"controllers": {"bindingTimeoutSeconds": seconds}})


def test_new_histories_take_the_time_of_the_process():
    chosen = replace(process_settings.settings(), binding_timeout_seconds=30)
    told = history_settings.history_settings(chosen)["controllers"]
    assert told["bindingTimeoutSeconds"] == 30
    assert registry.options_from({"controllers": told}).binding_timeout == 30 * SECOND
    assert (
        "bindingTimeoutSeconds"
        not in history_settings.history_settings(process_settings.settings())["controllers"]
    )


@pytest.mark.parametrize(
    ("recorded", "seconds"), [(27, 30), (30, 30), (31, 31), (34, 34), (36, 30)]
)
def test_recorded_wait_ends_with_the_check_that_was_recorded(recorded: int, seconds: int) -> None:
    options = registry.options_from({"controllers": {"bindingTimeoutSeconds": 30}})
    cluster = waiting(replace(options, pace=RecordedEnd(recorded)))
    cluster.wait(seconds - 1)
    assert not has_timed_out(cluster)
    cluster.wait(1)
    assert has_timed_out(cluster)


def test_pod_whose_wait_was_lost_with_its_process_is_tried_anew() -> None:
    cluster = waiting(ControllerOptions(pace=LostWait(12)))
    outcomes = []
    for _ in range(2):
        cluster.wait(6)
        outcomes.append([outcome for _, outcome in cluster.decisions("scheduling")])
    assert outcomes == [["WaitingForBinding"], ["WaitingForBinding"] * 2]
    assert cluster.must("resourceclaims", "claim")["status"]["reservedFor"]
