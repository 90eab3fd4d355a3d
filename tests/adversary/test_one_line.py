"""Recordings that lost one line, chosen by the kind of line or drawn."""

import random
from pathlib import Path

import pytest

from tests import draws
from tests.adversary.catalogue import FAILS, MIG, QUICKSTART, TAINTS, TPU, VERSIONS
from tests.adversary.one_line import is_accused, judged, positions, without
from tests.adversary.running import summary

LOST = [
    # what the next patch of the object shows
    (VERSIONS, 118),  # the names of a pod's claims
    (TPU, 94),  # labels of a node
    (VERSIONS, 120),  # a nomination that the binding takes back
    (VERSIONS, 96),  # a taint of the only node: no other patch names it
    (VERSIONS, 98),  # labels of the only node
    # what the next patch overwrites
    (TPU, 142),  # the condition of a pod
    # what the deletion of a collection shows
    (QUICKSTART, 293),  # the condition of a pod
    # the last line about an object
    (TPU, 283),  # the removal of a pod
    (TPU, 352),  # the deletion of a Deployment
    (VERSIONS, 105),  # an allocation
    (VERSIONS, 109),  # another one, sent before an allocation that took account of it
    (TAINTS, 103),  # labels of a node, which may come after its taint was removed
    # what allocations rest on
    (VERSIONS, 43),  # the creation of a class, its only line
    (TAINTS, 486),  # the deletion of a rule
    (TAINTS, 208),  # taints of a slice, until a line lets the pods be tried that they kept waiting
    # what shows in a write of somebody else
    (TAINTS, 361),  # the first status of a rule
    (TAINTS, 84),  # the names of a pod's claims, in the condition of an attempt
]
"""Recordings and the position of a line of each kind that `decide` once missed."""

DENSE = [
    (TPU, 283, 2),  # a pod is removed in two writes
    (VERSIONS, 105, 1),
]
"""Lines whose loss only the versions tell of, with the number of versions of the request."""


MORE = [
    (QUICKSTART, 42),  # the creation of a slice, its only line
    (TAINTS, 46),  # the creation of a slice, which updates show
    (TAINTS, 306),  # the last update of a slice
    (TAINTS, 309),
    (TAINTS, 210),  # as 208
    (MIG, 43),  # the creation of the slice with the counters of a pool
    (MIG, 52),  # the creation of a slice whose devices several claims get
    (MIG, 45),  # the creation of a slice of which one claim gets a device
    (MIG, 446),  # the creation of a claim
    (TPU, 140),  # the creation of a slice after all of its pool were deleted, with counters
    (TPU, 141),  # the same, with devices
    (MIG, 117),  # an allocation, of a device that others wait for
]
"""Further lines that allocations rest on."""

OPEN = {
    # The deletion of a rule, whose device a single claim gets.
    (TAINTS, 494),
}
"""Lines without which `decide` still accuses the log."""


def drawn() -> list[tuple[str, int]]:
    """Some lines of the recordings that are decided soonest."""
    source = random.Random("one line")
    return [
        (name, number)
        for name, every in ((TPU, 5), (VERSIONS, 2))
        for number in sorted(source.sample(positions(name)[::every], 16))
        if (name, number) not in OPEN
    ]


@draws.in_turn("rows of ways")
@pytest.mark.parametrize(
    ("name", "number"), [*LOST, *(draws.repeated(*each) for each in (*MORE, *drawn()))]
)
def test_honest_log_without_one_line_is_not_accused(name: str, number: int, tmp_path: Path) -> None:
    log, line = without(name, number)
    answer = judged(name, log, tmp_path)
    assert not is_accused(name, answer, tmp_path), (
        f"{line['objectRef']}: {summary(answer, 'decide')}"
    )


@draws.in_turn("wrongs")
@pytest.mark.parametrize(("name", "number", "writes"), DENSE)
def test_write_that_was_never_made_leaves_no_version(
    name: str, number: int, writes: int, tmp_path: Path
) -> None:
    """A log with a version for each write lacks none, so what is missing was left undone."""
    log, line = without(name, number)
    last = int(line["responseObject"]["metadata"]["resourceVersion"])
    for version in range(last, last - writes, -1):
        log.close(version)
    answer = judged(name, log, tmp_path)
    assert answer.verdict == FAILS, summary(answer, "decide")
