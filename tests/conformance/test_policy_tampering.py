"""Recordings altered a sixth time, and the verdicts of verify and decide, fixed before any run.

`WRONG`: no control plane does it, so verification fails and decide is unexplained. `LACKING`: a
policy leaves lines out, or lines are lost; nobody is accused. `UNFIT`: lines contradict each other.
`HARMLESS`: nothing is different. `UNDECIDED` are judged by verify alone.

Rows come by day, some that accuse nobody each day, and those that are wrong in turn.
"""

import random

import pytest

from app.analysis.replay.report import Agreement
from app.bootstrap import replays
from app.service.replays.verifying import VerifyOutcome
from tests import draws
from tests.conformance import crossed_tampering as crossed
from tests.conformance import further_tampering as further
from tests.conformance import policy_tampering as policy
from tests.conformance import selection
from tests.conformance import test_subtle_tampering as subtly
from tests.conformance.verdicts import judged, judged_lines, names_one

pytestmark = pytest.mark.timeout(0)
"""Runs are bounded in number; how long they take is a matter of the machine."""

SHORT = ("a-quickstart", "j-api-versions")


WRONG = selection.rows((policy.choose_a_later_device,), ("a-quickstart", "e-taints"))
LACKING = [
    *selection.rows((policy.lose_bindings,), (*SHORT, "c-multihost-tpu")),
    *selection.rows((policy.lose_every_third_write_of_claims,), SHORT),
    ("j-api-versions", policy.lose_subresources),
]
UNFIT = selection.rows((policy.give_two_claims_one_uid,), SHORT)
UNDECIDED = [
    ("c-multihost-tpu", policy.lose_statuses_of_pods),
    ("e-taints", policy.lose_statuses_of_pods),
    ("e-taints", policy.lose_every_third_write_of_claims),
    ("b-mig-partitions", crossed.drop_every_second_line_of_claims),
    ("b-mig-partitions", further.cut_the_middle),
]
HARMLESS = selection.rows(
    (policy.show_fields_of_a_newer_release, policy.write_null_for_every_absent_field), SHORT
)


@draws.in_turn("wrongs")
@pytest.mark.parametrize(("name", "alter"), WRONG)
async def test_what_no_control_plane_does_fails_and_is_unexplained(name, alter, tmp_path):
    verified, decided, told = await judged(name, alter, tmp_path)
    assert verified.outcome is VerifyOutcome.FAILED, told
    assert not decided.explained, told
    assert names_one(verified, told)
    assert names_one(decided, told)


@draws.BY_DAY
@pytest.mark.parametrize(("name", "alter"), LACKING)
async def test_what_is_missing_accuses_nobody(name, alter, tmp_path):
    verified, decided, told = await judged(name, alter, tmp_path)
    assert verified.outcome is VerifyOutcome.PARTLY, told
    assert decided.agreement is Agreement.PARTLY, told


@pytest.mark.parametrize(("name", "alter"), UNFIT)
async def test_lines_that_do_not_fit_together_are_never_verified(name, alter, tmp_path):
    verified, decided, told = await judged(name, alter, tmp_path)
    assert verified.outcome is not VerifyOutcome.VERIFIED, told
    assert decided.agreement in (Agreement.PARTLY, Agreement.UNEXPLAINED, Agreement.IMPOSSIBLE), (
        told
    )
    assert names_one(verified, told)


@draws.in_turn("ways")
@pytest.mark.parametrize(("name", "alter"), UNDECIDED)
async def test_verification_of_what_is_missing_accuses_nobody(name, alter, tmp_path):
    lines = subtly.read(name)
    told = alter(lines, random.Random(f"{name} 0"))
    (verified,) = await judged_lines(name, lines, tmp_path, (replays.verify,))
    assert verified.outcome is VerifyOutcome.PARTLY, told


@draws.BY_DAY
@pytest.mark.parametrize(("name", "alter"), HARMLESS)
async def test_what_changes_nothing_is_verified_and_agrees(name, alter, tmp_path):
    verified, decided, told = await judged(name, alter, tmp_path)
    assert verified.outcome is VerifyOutcome.VERIFIED, told
    assert decided.agreement in (Agreement.AGREES, Agreement.PROVED), told
