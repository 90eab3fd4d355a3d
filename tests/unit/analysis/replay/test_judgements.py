"""The judgement about a pod from what runs have shown of its differences, one by one."""

import random

import pytest

from app.analysis.diff import causes
from app.analysis.diff.causes import PodDifference, Root, RootKind
from app.analysis.diff.classes import Class, Parted, PodAspect
from app.analysis.diff.courses import Course, Moment
from app.analysis.diff.matching import Pair
from app.analysis.replay import report
from app.analysis.replay.classes import DifferenceClass, Judgement
from app.analysis.replay.differences import Aspect, DifferenceKey
from app.analysis.replay.traces import Trace
from app.domain.log import ObjectKey, Revision
from app.domain.values.timestamps import Instant
from tests.together import together

FATES = (Aspect.NODES, Aspect.DEVICES, Aspect.EVICTIONS)
UNPROVED = {DifferenceClass.UNEXPLAINED, DifferenceClass.NOT_COMPARABLE}


def judged(
    reasons: dict[tuple[Aspect, str], DifferenceClass], users: dict[str, set[str]]
) -> dict[str, str]:
    trace = Trace()
    trace.users.update(users)
    given: dict[DifferenceKey, Judgement] = {
        (aspect, uid, ""): Judgement(reason=reason, detail="")
        for (aspect, uid), reason in reasons.items()
    }
    return {
        uid: each.reason for uid, each in report.judgements_of_pods(given, trace, Trace()).items()
    }


@pytest.mark.parametrize("unproved", sorted(UNPROVED))
def test_proof_of_one_difference_of_a_pod_is_none_of_another(unproved):
    found = judged(
        {(Aspect.NODES, "p"): DifferenceClass.RACE, (Aspect.EVICTIONS, "p"): unproved}, {}
    )
    assert found == {"p": unproved}


@pytest.mark.parametrize("unproved", sorted(UNPROVED))
def test_proof_about_a_claim_is_none_of_what_else_befalls_its_users(unproved):
    reasons = {
        (Aspect.DEVICES, "c"): DifferenceClass.QUEUE_ORDER,
        (Aspect.EVICTIONS, "p2"): unproved,
    }
    found = judged(reasons, {"c": {"p1", "p2"}})
    assert found == {
        "c": DifferenceClass.QUEUE_ORDER,
        "p1": DifferenceClass.QUEUE_ORDER,
        "p2": unproved,
    }


@pytest.mark.parametrize("words", [Aspect.CONDITIONS, Aspect.SAID])
@pytest.mark.parametrize("fate", FATES)
def test_what_becomes_of_a_pod_weighs_more_than_words_about_it(fate, words):
    proved, unproved = DifferenceClass.RACE, DifferenceClass.UNEXPLAINED
    assert judged({(fate, "p"): proved, (words, "p"): unproved}, {}) == {"p": proved}
    assert judged({(fate, "p"): unproved, (words, "p"): proved}, {}) == {"p": unproved}


def waiting(uid: str, number: int) -> PodDifference:
    """A pod that is not the same, of which nothing tells why."""
    course = Course(
        key=ObjectKey("", "pods", "default", uid),
        uid=uid,
        ordinal=0,
        owner=None,
        base=uid,
        created=Moment(revision=Revision(1), time=Instant(0)),
    )
    return PodDifference(
        pair=Pair(number=number, a=course, b=course),
        classes=(Class.LATER,),
        parted=Parted(aspect=PodAspect.EVICTION, time=Instant(0), side="a"),
        roots=[Root(kind=RootKind.UNKNOWN, name="unknown")],
    )


def test_difference_that_no_run_proves_stays_unexplained_beside_one_that_is():
    trace = Trace()
    trace.users["c"] = {"p1", "p2"}
    proved = Judgement(reason=DifferenceClass.QUEUE_ORDER, detail="taken in another order")
    unproved = Judgement(reason=DifferenceClass.UNEXPLAINED, detail="")
    given = {(Aspect.DEVICES, "c", ""): proved, (Aspect.EVICTIONS, "p2", ""): unproved}
    found = [waiting("p1", 0), waiting("p2", 1)]
    causes.judge(found, report.judgements_of_pods(given, trace, Trace()))
    assert [each.root.kind for each in found] == [RootKind.RUN, RootKind.UNKNOWN]
    assert causes.unexplained(found) == 1


@together(range(40), str)
def test_pod_is_proved_only_when_all_about_it_is(seed):
    drawn = random.Random(seed)
    users = {f"c{n}": set(drawn.sample(["p0", "p1", "p2"], drawn.randrange(3))) for n in range(3)}
    reasons = {
        (
            drawn.choice(FATES),
            drawn.choice(["p0", "p1", "p2", "c0", "c1", "c2"]),
        ): drawn.choice(
            [
                DifferenceClass.RACE,
                DifferenceClass.QUEUE_ORDER,
                DifferenceClass.UNEXPLAINED,
                DifferenceClass.NOT_COMPARABLE,
            ]
        )
        for _ in range(drawn.randrange(1, 7))
    }
    found = judged(reasons, users)
    for pod in ("p0", "p1", "p2"):
        said = {
            reason
            for (_, uid), reason in reasons.items()
            if uid == pod or pod in users.get(uid, ())
        }
        assert (found.get(pod) is None) is (not said)
        if said:
            assert found[pod] in said
            assert (found[pod] in UNPROVED) is bool(said & UNPROVED)
