"""Which differences of a decide replay a smaller history must keep."""

from dataclasses import replace
from typing import Any

import pytest

from app.analysis.minimise.difference_predicate import DifferencePredicate
from app.analysis.replay.classes import DifferenceClass, Sought
from app.analysis.replay.differences import Aspect
from app.analysis.replay.report import DecideDifference, DecideReport
from app.domain.log import Actor, Event, EventType, ObjectKey, Revision, Stamp
from app.domain.log.chain import canonical_json
from app.domain.values.timestamps import Instant

RACE, UNEXPLAINED = DifferenceClass.RACE, DifferenceClass.UNEXPLAINED


def differing(
    uid: str, reason: str, *, detail: str = "d", owner: str = "", aspect: Aspect = Aspect.NODES
) -> DecideDifference:
    return DecideDifference(
        aspect=aspect,
        subject=uid,
        uid=uid,
        owner=owner or uid,
        since=None,
        revision=1,
        users=(),
        reason=reason,
        detail=detail,
        recorded=[],
        again=[],
    )


def report(*differences: DecideDifference) -> DecideReport:
    return DecideReport(
        history="h",
        revision=Revision(9),
        inputs={},
        aspects={},
        differences=differences,
        not_comparable={},
    )


def line(resource: str, uid: str, tree: dict[str, Any]) -> Event:
    group = "" if resource == "pods" else "resource.k8s.io"
    return Event(
        revision=Revision(1),
        type=EventType.OBJECT_CREATED,
        key=ObjectKey(group, resource, "ns", uid),
        uid=uid,
        body=canonical_json({**tree, "metadata": {"name": uid, **tree.get("metadata", {})}}),
        stamp=Stamp(time=Instant(0), actor=Actor(user="u"), verb="create"),
    )


OWNED = {"metadata": {"ownerReferences": [{"kind": "Pod", "name": "p1", "uid": "p1"}]}}
SHARED = {"status": {"reservedFor": [{"resource": "pods", "name": each, "uid": each}
                                     for each in ("p1", "p2")]}}  # fmt: skip
EVENTS = [
    line("pods", "p1", {}),
    line("pods", "p2", {}),
    line("resourceclaims", "c1", OWNED),
    line("resourceclaims", "c2", SHARED),
    line("nodes", "n1", {}),
]
POD = differing("p1", RACE, detail="x")
CLAIM = differing("c1", RACE, detail="y", owner="p1", aspect=Aspect.DEVICES)


@pytest.mark.parametrize(
    ("others", "shown", "explained"),
    [
        ([], {"p1": ("x",)}, {"p1": ("c1", "c2", "p1")}),
        (
            [CLAIM],
            {"c1": ("y",), "p1": ("x",)},
            {"c1": ("c1", "c2", "p1"), "p1": ("c1", "c2", "p1")},
        ),
        (
            [replace(POD, detail="z", aspect=Aspect.SAID)],
            {"p1": ("x", "z")},
            {"p1": ("c1", "c2", "p1")},
        ),
        # what is unexplained already may stay so
        ([differing("c2", UNEXPLAINED)], {"p1": ("x",)}, {"p1": ("c1", "p1")}),
        ([differing("p2", UNEXPLAINED)], {"p1": ("x",)}, {"p1": ("c1", "c2", "p1")}),
        ([differing("p2", "follows from another difference")], {"p1": ("x",)},
         {"p1": ("c1", "c2", "p1")}),
    ],
)  # fmt: skip
def test_difference_is_kept_with_its_proofs_and_what_is_explained_beside_it(
    others: list[DecideDifference],
    shown: dict[str, tuple[str, ...]],
    explained: dict[str, tuple[str, ...]],
) -> None:
    whole = report(POD, *others)
    predicate = DifferencePredicate(sought=Sought(reason=RACE)).settled(whole, EVENTS)
    assert (predicate.sought.shown, predicate.sought.explained) == (shown, explained)
    assert (predicate.sought.reason, predicate.sought.aspect) == (RACE, "")
    found = predicate.matching(whole)
    assert [each.uid for each in found] == [
        each.uid for each in whole.differences if each.reason == RACE
    ]
    # Another proof, or more that is unexplained, is not the same.
    assert predicate.matching(report(replace(POD, detail="other"))) == []
    worse = report(POD, *others, differing("c1", UNEXPLAINED))
    assert POD not in predicate.matching(worse)


def test_predicate_without_a_class_takes_the_gravest_difference() -> None:
    unexplained = differing("p2", UNEXPLAINED, aspect=Aspect.EVICTIONS)
    ended = differing("p3", DifferenceClass.AFTER_END)
    predicate = DifferencePredicate(sought=Sought(reason=""))
    assert [each.uid for each in predicate.matching(report(POD, ended))] == ["p1"]
    whole = report(POD, unexplained, ended)
    first = predicate.matching(whole)[0]
    settled = predicate.settled(whole, EVENTS).sought
    assert (settled.reason, settled.aspect) == (first.reason, first.aspect.value)
    assert set(settled.shown) == {first.uid}


@pytest.mark.parametrize(
    "reason",
    [
        DifferenceClass.NOT_COMPARABLE,
        DifferenceClass.NOT_EMULATED,
        DifferenceClass.AFTER_END,
    ],
)
def test_class_that_judges_nothing_has_no_subjects(reason: DifferenceClass) -> None:
    whole = report(differing("p1", reason))
    predicate = DifferencePredicate(sought=Sought(reason=reason))
    assert predicate.settled(whole, EVENTS) is predicate
    assert predicate.near(whole) is None
    assert [each.uid for each in predicate.matching(whole)] == ["p1"]


def test_no_other_placements_may_differ_than_in_the_whole_history() -> None:
    said = differing("p3", RACE, aspect=Aspect.SAID)
    near = DifferencePredicate(sought=Sought(reason=RACE)).near(report(CLAIM, said))
    assert near is not None
    assert near.sought.placed == ("c1", "p1")


def test_predicate_is_written_with_its_class() -> None:
    assert DifferencePredicate(sought=Sought(reason="")).text == "difference"
    assert DifferencePredicate(sought=Sought(reason="c24")).text == "difference c24"
