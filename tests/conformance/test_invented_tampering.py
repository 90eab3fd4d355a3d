"""Recordings altered a fifth time, and the verdicts of verify and decide, fixed before any run.

`WRONG`: no control plane does it, so verification fails and decide is unexplained. `MISPLACED`:
verification does not judge placements of pods, decide is unexplained. `HARMLESS`: nothing is
different. `UNSEEN_CHANGES` and `UNSEEN_ROUNDS` lack all writes between the state before and after.

Rows come by day: the rows of a test share verdict and cause.
"""

import random

import pytest

from app.analysis.replay.report import Agreement
from app.service.replays.verifying import VerifyOutcome
from tests import draws
from tests.conformance import invented_tampering as invented
from tests.conformance import selection
from tests.conformance import test_subtle_tampering as subtly
from tests.conformance.verdicts import judged, names_one

pytestmark = pytest.mark.timeout(0)
"""Runs are bounded in number; how long they take is a matter of the machine."""

NAMES = ("a-quickstart", "j-api-versions", "c-multihost-tpu")

WRONG = (
    invented.allocate_from_an_incomplete_pool,
    invented.tolerate_more_afterwards,
    invented.give_admin_access,
    invented.give_a_share,
    invented.let_a_class_select_nothing,
    invented.forget_a_reservation,
    invented.taint_from_the_beginning,
)
MISPLACED = (invented.bind_to_a_cordoned_node,)
HARMLESS = (invented.write_status_by_another_agent, invented.write_null_for_what_is_absent)

UNSEEN_CHANGES = (invented.bind_elsewhere_unseen, invented.ask_otherwise_unseen)
"""What no gap permits: all writes in between are missing."""

UNSEEN_ROUNDS = (invented.write_in_an_older_version_unseen,)
"""What a gap may hide."""

UNSEEN_TOLERATION = ("j-api-versions", invented.tolerate_more_afterwards)
"""The allocation itself agrees there, and a write is missing before the first wrong state."""

ABSENT = {invented.bind_elsewhere_unseen: ("j-api-versions", "c-multihost-tpu")}


def rows(alterations):
    return selection.rows(alterations, NAMES, ABSENT)


@draws.BY_DAY
@pytest.mark.parametrize(("name", "alter"), [*rows(WRONG), UNSEEN_TOLERATION])
async def test_what_no_control_plane_does_fails_and_is_unexplained(name, alter, tmp_path):
    verified, decided, told = await judged(name, alter, tmp_path)
    assert verified.outcome is VerifyOutcome.FAILED, told
    assert not decided.explained, told
    assert names_one(verified, told)
    assert names_one(decided, told)


@draws.in_turn("wrongs")
@pytest.mark.parametrize(("name", "alter"), rows(MISPLACED))
async def test_placement_that_no_scheduler_chooses_is_unexplained(name, alter, tmp_path):
    verified, decided, told = await judged(name, alter, tmp_path)
    assert "placements of pods" in verified.to_json()["notJudged"]
    assert not decided.explained, told
    assert names_one(decided, told)


@draws.BY_DAY
@pytest.mark.parametrize(("name", "alter"), rows(HARMLESS))
async def test_what_changes_nothing_is_verified_and_agrees(name, alter, tmp_path):
    verified, decided, told = await judged(name, alter, tmp_path)
    assert verified.outcome is VerifyOutcome.VERIFIED, told
    assert decided.agreement in (Agreement.AGREES, Agreement.PROVED), told


async def verified_after(name, alter, tmp_path):
    lines = subtly.read(name)
    told = alter(lines, random.Random(f"{name} 0"))
    return await subtly.verified(name, lines, tmp_path), told


@pytest.mark.parametrize(("name", "alter"), [*rows(UNSEEN_CHANGES), UNSEEN_TOLERATION])
async def test_what_no_gap_permits_fails(name, alter, tmp_path):
    verified, told = await verified_after(name, alter, tmp_path)
    assert verified.outcome is VerifyOutcome.FAILED, told
    assert names_one(verified, told)


@pytest.mark.parametrize(("name", "alter"), rows(UNSEEN_ROUNDS))
async def test_what_a_gap_may_hide_accuses_nobody(name, alter, tmp_path):
    verified, told = await verified_after(name, alter, tmp_path)
    assert verified.outcome is VerifyOutcome.PARTLY, told
