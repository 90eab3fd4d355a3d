"""Recordings in which one value of one line is another one, drawn for each sort of value.

The places are drawn by the name of the recording and the sort, so that a failure comes again.
"""

import random
from pathlib import Path

import pytest

from tests import draws
from tests.adversary.catalogue import AGREES, FAILS, MIG, QUICKSTART, TAINTS, TPU, VERSIONS
from tests.adversary.contradictions import CONTRADICTING, GIVEN_TWICE, HARMLESS, OVERDRAWN
from tests.adversary.crowded import CLAIM, crowded, reserved_once_more
from tests.adversary.one_value import (
    FAILED,
    SORTS,
    UNNOTICED,
    USED,
    Place,
    altered,
    must_fail,
    outcome,
    places,
)
from tests.adversary.running import ask, recording

UNSEEN = [
    # the spec of a claim and of pods, in lines of others: none of them can have changed it
    (VERSIONS, Place(183, ("spec", "devices", "requests", 0, "exactly", "count"), "count")),
    (VERSIONS, Place(180, ("spec", "nodeName"), "pod's node")),
    (VERSIONS, Place(130, ("spec", "tolerations", 0, "key"), "toleration")),
    (VERSIONS, Place(133, ("spec", "priority"), "priority")),
    (VERSIONS, Place(64, ("metadata", "generation"), "generation")),
    (VERSIONS, Place(130, ("spec", "schedulerName"), "scheduler")),
    # only the removal of the pod shows a lower one
    (MIG, Place(718, ("metadata", "generation"), "generation")),
]
"""Values of which neither verify nor decide once said anything."""

DOUBTED = [
    # what a controller says of a pod, in a line of its own; the next one shows it as it was
    (VERSIONS, Place(64, ("status", "conditions", 0, "reason"), "reason")),
    (
        VERSIONS,
        Place(118, ("status", "resourceClaimStatuses", 0, "resourceClaimName"), "pod's claim"),
    ),
    # the same time as the line before it, which a lost line would follow
    (TPU, Place(185, ("status", "conditions", 0, "message"), "message")),
    # a message, which the run places elsewhere where the next line may be of a lost one
    (QUICKSTART, Place(166, ("status", "conditions", 0, "message"), "message")),
    # a claim in a request that is answered with the version of the line before it
    *(
        (
            QUICKSTART,
            Place(line, ("status", "resourceClaimStatuses", 0, "resourceClaimName"), "pod's claim"),
        )
        for line in (189, 194)
    ),
    # the node of a binding that is no excuse for itself: a later line shows another one
    (TAINTS, Place(291, ("target", "name"), "node")),
    # the effect of a rule, which the next line shows with the same generation
    (
        TAINTS,
        Place(599, ("spec", "taint", "effect"), HARMLESS, "NoSchedule", about="evict-worker-2"),
    ),
    # the key of a taint, where the line of the removal shows another one
    (TAINTS, Place(430, ("spec", "taint", "key"), "taint")),
]
"""Values that were only doubted, since a line that is lost may have changed them back."""

RESULTS = ("status", "allocation", "devices", "results")

BESIDE = [
    # The pod of a claim, and one without claims: a later line shows another node.
    (MIG, 43, Place(515, ("target", "name"), "node", about="o-17")),
    (TPU, 50, Place(270, ("target", "name"), "node", about="small-0")),
    (TAINTS, 46, Place(122, ("target", "name"), "node", about="plain-0")),
    # A device of another pool, of which all slices are there.
    *(
        (MIG, lost, Place(line, (*RESULTS, 0, "pool"), "pool", about=claim))
        for lost, line, claim in (
            (43, 624, "ov-02-dev-x7lsv"),
            (43, 263, "o-08-dev-dtjhv"),
            (45, 263, "o-08-dev-dtjhv"),
        )
    ),
    # Another slice shows a device that does not match the selectors of a claim that got it.
    *(
        (
            MIG,
            lost,
            Place(
                51,
                ("spec", "devices", 1, "attributes", name, "string"),
                "selected",
                about="gpu-6-mig-1g-5gb-0",
            ),
        )
        for lost, name in ((43, "profile"), (45, "profile"), (52, "type"))
    ),
]
"""Recordings without the line of a slice, and a value that is wrong whatever that slice had."""

SURE = (VERSIONS, TPU)
"""The recordings of which each such value was tried."""

DRAWN = [
    (name, sort)
    for name, sorts in (
        (VERSIONS, (*SORTS, GIVEN_TWICE)),
        (TPU, (*SORTS, *USED)),
        (TAINTS, (*SORTS, *USED, *CONTRADICTING)),
        (MIG, (OVERDRAWN,)),
    )
    for sort in sorts
]


def rows() -> list[tuple[str, Place]]:
    """One place of each sort in each recording that has it; most come with more draws alone."""
    return [
        (name, random.Random(f"{name} {sort}").choice(chosen))
        for name, sort in DRAWN
        if draws.WHOLE or name == VERSIONS
        if (chosen := places(recording(name), sort))
    ]


def _id(value: str | int | Place) -> str:
    if isinstance(value, Place):
        return f"{value.sort.replace(' ', '-')}-{value.line}"
    return str(value)


@draws.BY_DAY
@pytest.mark.parametrize(("name", "place"), [*UNSEEN, *DOUBTED, *rows()], ids=_id)
def test_another_value_in_one_line_is_noticed(name: str, place: Place, tmp_path: Path) -> None:
    said = outcome(name, altered(recording(name), place), place, tmp_path)
    is_known = (name, place) in DOUBTED
    is_sure = is_known or name in SURE or place.sort in (*USED, *CONTRADICTING)
    if is_sure and must_fail(recording(name), place):
        assert said == FAILED
    else:
        assert said != UNNOTICED


@draws.BY_DAY
@pytest.mark.parametrize(("name", "lost", "place"), BESIDE, ids=_id)
def test_another_value_fails_beside_a_lost_slice(
    name: str, lost: int, place: Place, tmp_path: Path
) -> None:
    log = altered(recording(name), place)
    log.lines.pop(lost)
    assert outcome(name, log, place, tmp_path) == FAILED


@draws.in_turn("wrongs")
@pytest.mark.parametrize("is_over", [True, False], ids=["257", "256"])
def test_claim_with_more_reservations_than_the_api_allows_fails(
    is_over: bool, tmp_path: Path
) -> None:
    """The log is made by redra's controllers: no recording has so many pods of one claim."""
    log = crowded(tmp_path)
    path = tmp_path / "audit.jsonl"
    path.write_text((reserved_once_more(log) if is_over else log).text())
    answer = ask(path, "crowded", "verify")
    assert answer.verdict == (FAILS if is_over else AGREES)
    broken = {(one["rule"], CLAIM in str(one)) for one in answer.body["invariants"]["examples"]}
    assert (("reservations-within-limit", True) in broken) is is_over


@pytest.mark.parametrize(
    ("name", "sort"), [*((TAINTS, sort) for sort in CONTRADICTING if sort != OVERDRAWN)]
)
def test_a_contradiction_changes_one_line_of_a_recording(name: str, sort: str) -> None:
    log = recording(name)
    chosen = places(log, sort)
    assert chosen
    for place in chosen[:2]:
        other = altered(log, place)
        changed = [n for n, line in enumerate(other.lines) if line != log.lines[n]]
        assert changed == [place.line]
