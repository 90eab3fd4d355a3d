"""Recordings altered a seventh time, and the verdicts of verify and decide, fixed before any run.

`WRONG`: no server stores it, so verification fails and decide is unexplained. `UNFIT`: an object
contradicts itself, so nothing is called verified, and decide does not agree.

Rows come by day: each is one more contradiction within an object, with the same verdict.
"""

import pytest

from app.analysis.replay.report import Agreement
from app.service.replays.verifying import VerifyOutcome
from tests import draws
from tests.conformance import selection
from tests.conformance import stamped_tampering as stamped
from tests.conformance.verdicts import judged, names_one

pytestmark = pytest.mark.timeout(0)
"""Runs are bounded in number; how long they take is a matter of the machine."""

SHORT = ("a-quickstart", "j-api-versions")

WRONG = [
    *selection.rows((stamped.report_about_another_device,), (*SHORT, "e-taints")),
    ("j-api-versions", stamped.remove_the_protection_of_an_allocated_claim),
]
UNFIT = [
    *selection.rows((stamped.allocate_before_the_creation,), (*SHORT, "e-taints")),
    ("e-taints", stamped.let_a_generation_jump),
    ("e-taints", stamped.let_a_generation_stand_still),
    ("e-taints", stamped.let_a_generation_fall),
    ("e-taints", stamped.let_a_generation_rise_with_a_status),
]


@draws.BY_DAY
@pytest.mark.parametrize(("name", "alter"), WRONG)
async def test_what_no_server_stores_fails_and_is_unexplained(name, alter, tmp_path):
    verified, decided, told = await judged(name, alter, tmp_path)
    assert verified.outcome is VerifyOutcome.FAILED, told
    assert not decided.explained, told
    assert names_one(verified, told)


@draws.in_turn("wrongs")
@pytest.mark.parametrize(("name", "alter"), UNFIT)
async def test_stamps_that_do_not_fit_are_never_verified(name, alter, tmp_path):
    verified, decided, told = await judged(name, alter, tmp_path)
    assert verified.outcome in (VerifyOutcome.PARTLY, VerifyOutcome.FAILED), told
    assert decided.agreement in (Agreement.PARTLY, Agreement.UNEXPLAINED, Agreement.IMPOSSIBLE), (
        told
    )
