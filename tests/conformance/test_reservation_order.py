"""Reservations of a real recording, altered by machine; what verify says was fixed before.

A claim of c-multihost-tpu is shared by four pods. Its lines are altered so that all later lines,
and the versions that updates name, agree with the alteration.
"""

import pytest

from app.bootstrap import replays
from tests import draws
from tests.conformance import test_subtle_tampering as subtly
from tests.conformance.tampering import bodies, of
from tests.conformance.verdicts import judged_lines

NAME = "c-multihost-tpu"
SCHEDULER = "system:kube-scheduler"


def sharings(lines):
    """The lines in which the scheduler reserves a claim for one pod more, in order."""
    return [
        line
        for line in of(lines, "resourceclaims")
        if line["user"]["username"] == SCHEDULER
        if len(line["responseObject"].get("status", {}).get("reservedFor", ())) > 1
    ]


def later(lines, line):
    """The bodies about the claim of a line, from it on."""
    name = line["objectRef"]["name"]
    for other in lines[lines.index(line) :]:
        yield from (each for each in bodies(other) if each.get("metadata", {}).get("name") == name)


def put_first(lines):
    """The scheduler puts the new reservation before the others, where it stays."""
    line = sharings(lines)[-1]
    newest = line["responseObject"]["status"]["reservedFor"][-1]
    for tree in later(lines, line):
        reserved = tree.get("status", {}).get("reservedFor", [])
        if newest in reserved:
            reserved.remove(newest)
            reserved.insert(0, newest)


def put_first_by_another(lines):
    """Another scheduler does the same."""
    put_first(lines)
    for line in lines:
        if line["user"]["username"] == SCHEDULER:
            line["user"]["username"] = "system:another-scheduler"


def reserve_for_two(lines):
    """One line less: the next one reserves for two pods, upon the version before."""
    line = sharings(lines)[-2]
    (following,) = sharings(lines)[-1:]
    assert following["objectRef"]["name"] == line["objectRef"]["name"]
    version = line["requestObject"]["metadata"]["resourceVersion"]
    lines.remove(line)
    following["requestObject"]["metadata"]["resourceVersion"] = version


def lose_a_line(lines):
    """The log lacks a line: the next one names the version that is missing."""
    lines.remove(sharings(lines)[-2])


@draws.in_turn("ways")
@pytest.mark.parametrize(
    ("alter", "is_named"),
    [
        (put_first, True),
        (reserve_for_two, True),
        (put_first_by_another, False),
        (lose_a_line, False),
    ],
)
async def test_order_and_number_of_reservations(alter, is_named, tmp_path):
    lines = subtly.read(NAME)
    alter(lines)
    (report,) = await judged_lines(NAME, lines, tmp_path, (replays.verify,))
    named = [each for each in report.violations if each.rule == "reservation-appended"]
    assert len(named) == is_named
    assert report.agrees is not is_named
