"""Differences beside explained ones: those of the same pod, its claims and their users."""

from app.adapters import schemas
from app.analysis.replay.classes import DifferenceClass, Judgement
from app.analysis.replay.differences import Aspect
from app.analysis.replay.hypotheses.hypothesis import Hypothesis
from app.analysis.replay.pace import RecordedPace
from app.analysis.replay.proving import together
from app.analysis.replay.races import Races
from app.analysis.replay.traces import Trace

RACE = Hypothesis(reason=DifferenceClass.RACE, detail="of a", field="x", target="a")
OTHER = Hypothesis(reason=DifferenceClass.RACE, detail="of z", field="x", target="z")


def key(uid: str) -> tuple[Aspect, str, str]:
    return (Aspect.NODES, uid, "")


def judged(chosen: dict[str, Hypothesis], *unexplained: str) -> dict[str, str]:
    """The details of the judgements, by uid; pods `a` and `b` share claim `c`, `z` has none."""
    recorded, again = Trace(schemas.load("1.36")), Trace(schemas.load("1.36"))
    recorded.users["c"] |= {"a", "b"}
    answer = together.reasons(
        {key(uid): each for uid, each in chosen.items()},
        [key(uid) for uid in unexplained],
        Races(recorded, RecordedPace()),
        again,
    )
    assert all(isinstance(each, Judgement) for each in answer.values())
    return {uid: each.detail for (_, uid, _), each in answer.items()}


def test_reason_of_a_pod_is_that_of_its_claims_and_of_those_who_share_them() -> None:
    assert judged({"a": RACE}, "a", "b", "c", "y") == {"a": "of a", "b": "of a", "c": "of a"}


def test_difference_with_a_reason_of_its_own_keeps_it() -> None:
    assert judged({"a": RACE, "b": OTHER}, "b", "a") == {"a": "of a", "b": "of z"}


def test_of_several_related_reasons_that_of_the_first_uid_is_taken() -> None:
    assert judged({"b": OTHER, "a": RACE}, "c") == {"a": "of a", "b": "of z", "c": "of a"}


def test_nothing_is_judged_beside_unrelated_differences() -> None:
    assert judged({"z": OTHER}, "a", "c") == {"z": "of z"}
