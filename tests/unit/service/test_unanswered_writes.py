"""Writes about a pod that reached the recorded API after the pod was deleted are left out."""

from types import SimpleNamespace

import pytest

from app.analysis.replay.facts import ConditionSet
from app.analysis.replay.variants import Variant
from app.domain.log import ObjectKey
from app.service.replays.deciding.run import Run

POD = ObjectKey("", "pods", "default", "p")
NOMINATION = {"status": {"nominatedNodeName": "n"}}
LATE_NOMINATION, LATE_REPORT = (
    Variant(unanswered=frozenset(("u",))),
    Variant(unreported=frozenset(("u",))),
)
FAILED = ConditionSet("PodScheduled", "False", "Unschedulable", "0/1 nodes are available")
GATED = ConditionSet("PodScheduled", "False", "SchedulingGated", "")


def condition(reason: str) -> dict:
    said = {"type": "PodScheduled", "status": "False", "reason": reason, "message": "m"}
    return {"status": {"conditions": [said]}}


def is_left_out(variant, body, *, there=(), here=(), uid="u", is_known=True, status=None) -> bool:
    """Whether a patch of the pod is left out, with facts that both sides have written about it."""
    objects = {POD: {"metadata": {"uid": uid}, "status": status or {}}} if is_known else {}
    traces = [
        SimpleNamespace(writes={"u": [SimpleNamespace(facts=facts)]} if facts else {})
        for facts in (there, here)
    ]
    run = SimpleNamespace(
        timeline=SimpleNamespace(views=SimpleNamespace(objects=objects)),
        trace=traces[1],
        _variant=variant,
        _recording=SimpleNamespace(trace=traces[0]),
    )
    return Run._is_unanswered(run, POD, body)


@pytest.mark.parametrize(
    ("variant", "body", "options", "expected"),
    [
        (LATE_NOMINATION, NOMINATION, {}, True),
        (LATE_NOMINATION, {"status": {}}, {}, False),
        (LATE_NOMINATION, NOMINATION, {"uid": "other"}, False),
        (LATE_NOMINATION, NOMINATION, {"is_known": False}, False),
        (LATE_REPORT, NOMINATION, {}, False),
        (Variant(), NOMINATION, {}, False),
    ],
)
def test_nomination_of_a_deleted_pod_is_left_out(variant, body, options, expected):
    assert is_left_out(variant, body, **options) is expected


@pytest.mark.parametrize(
    ("there", "here", "expected"),
    [
        ([], [], True),
        ([FAILED], [], False),
        ([FAILED], [FAILED], True),
        ([FAILED, FAILED], [FAILED], False),
        ([FAILED], [FAILED, FAILED], True),
        ([FAILED], [GATED], False),
        ([GATED], [], True),
    ],
)
def test_as_many_failed_attempts_are_reported_as_were_recorded(there, here, expected):
    body = condition("Unschedulable")
    assert is_left_out(LATE_REPORT, body, there=there, here=here) is expected
    assert not is_left_out(LATE_REPORT, condition("SchedulingGated"), there=there, here=here)
    assert not is_left_out(LATE_REPORT, body, there=there, here=here, uid="other")
    assert not is_left_out(LATE_NOMINATION, body, there=there, here=here)


def test_patch_of_a_message_reports_with_the_reason_that_the_pod_has():
    body = {"status": {"conditions": [{"type": "PodScheduled", "message": "another"}]}}
    assert is_left_out(LATE_REPORT, body, status=condition("Unschedulable")["status"])
    assert not is_left_out(LATE_REPORT, body, status=condition("SchedulingGated")["status"])
    assert not is_left_out(LATE_REPORT, body)
