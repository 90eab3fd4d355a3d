"""Hypotheses about differences: which are tried, and about what."""

from app.adapters import schemas
from app.analysis.replay.differences import Aspect, Sides
from app.analysis.replay.facts import ConditionSet
from app.analysis.replay.hypotheses import Proposals
from app.analysis.replay.traces import Step, Trace
from app.domain.log import ObjectKey
from app.domain.values import condition_types
from app.domain.values.timestamps import Instant


def test_object_that_only_a_report_names_has_no_hypothesis_of_its_own() -> None:
    recorded, again = (Trace(schemas.load("1.36")) for _ in range(2))
    sides = Sides(aspect=Aspect.SAID, uid="gone", recorded=["a"], again=[])
    assert list(Proposals(recorded).local(sides, again)) == []


def test_condition_that_only_its_instant_gives_to_an_attempt_may_be_of_another_one() -> None:
    key = ObjectKey("", "pods", "default", "pod")
    failed = ConditionSet(
        type=condition_types.POD_SCHEDULED, status="False", reason="Unschedulable", message="none"
    )
    recorded, again = (Trace(schemas.load("1.36")) for _ in range(2))
    recorded.keys["pod"] = key
    step = Step(revision=1, time=Instant(1), writer="", key=key, uid="pod", facts=(failed,))
    sides = Sides(
        aspect=Aspect.CONDITIONS, uid="pod", recorded=["a"], again=[], only_recorded=(step,)
    )
    for paired_by_time, expected in (({"pod"}, ["apart", "apart+tried"]), ({"other"}, [])):
        proposed = Proposals(recorded, paired_by_time).local(sides, again)
        assert [each.field for each in proposed if "apart" in each.field] == expected
