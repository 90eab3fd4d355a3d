"""Recordings altered a ninth time, and the verdict of decide, fixed before any run.

`LACKING`: whole sorts of lines are missing, so nobody is accused and nothing is called whole.
`PLANTED` beside them: what the log proves without those lines stays unexplained. A log that ends
early, and controllers that share an account, change nothing.

Rows come by day: each lacks another sort of lines, with the same verdict.
"""

import random

import pytest

from app.analysis.replay.report import Agreement
from app.bootstrap import replays
from app.domain.log.records import Loss
from app.service.replays.verifying import VerifyOutcome
from tests import draws
from tests.conformance import lossy_tampering as lossy
from tests.conformance import policy_tampering as policy
from tests.conformance import selection, tampering
from tests.conformance import test_subtle_tampering as subtly
from tests.conformance.verdicts import judged_lines

pytestmark = pytest.mark.timeout(0)
"""Runs are bounded in number; how long they take is a matter of the machine."""

SHORT = ("a-quickstart", "j-api-versions")

LACKING = [
    *selection.rows((policy.lose_statuses_of_pods,), (*SHORT, "c-multihost-tpu", "e-taints")),
    *((name, lossy.lose_deletions) for name in ("a-quickstart", "e-taints")),
    ("j-api-versions", lossy.lose_the_middle_third),
]
PLANTED = (
    tampering.give_device_twice,
    tampering.give_unknown_device,
    tampering.reserve_for_a_ghost,
)
CROSSED = [
    *(
        (*row, policy.lose_statuses_of_pods)
        for row in selection.rows((*PLANTED, policy.choose_a_later_device), SHORT)
    ),
    ("a-quickstart", tampering.give_device_twice, lossy.lose_deletions),
    *(draws.repeated("a-quickstart", alter, lossy.lose_deletions) for alter in PLANTED[1:]),
    draws.repeated("e-taints", tampering.give_device_twice, lossy.lose_deletions),
    ("a-quickstart", lossy.give_an_unknown_device_early, lossy.lose_the_middle_third),
]


def altered(name, *alterations):
    lines = subtly.read(name)
    for number, alter in enumerate(alterations):
        alter(lines, random.Random(f"{'then ' * number}{name} 0"))
    return lines


@draws.in_turn("ways")
@pytest.mark.parametrize(("name", "alter"), LACKING)
async def test_sort_of_lines_that_is_missing_accuses_nobody(name, alter, tmp_path):
    verified, decided = await judged_lines(name, altered(name, alter), tmp_path)
    assert verified.outcome is VerifyOutcome.PARTLY
    assert decided.agreement is Agreement.PARTLY, decided.differences
    assert Loss.GAP in {each.code for each in decided.doubts}


@draws.in_turn("wrongs")
@pytest.mark.parametrize(("name", "planted", "lack"), CROSSED)
async def test_what_is_proved_without_the_missing_lines_is_unexplained(
    name, planted, lack, tmp_path
):
    verified, decided = await judged_lines(name, altered(name, planted, lack), tmp_path)
    assert verified.outcome is VerifyOutcome.FAILED
    assert not decided.explained


async def test_event_that_would_come_after_the_end_is_not_missing(tmp_path):
    """The log ends with a binding, whose Event the scheduler writes some milliseconds later."""
    lines = altered("c-multihost-tpu", lossy.lose_the_last_third)
    assert lines[-1]["objectRef"]["subresource"] == "binding"
    (decided,) = await judged_lines("c-multihost-tpu", lines, tmp_path, (replays.decide,))
    assert decided.agreement is Agreement.PROVED, decided.differences


@draws.in_turn("ways")
@pytest.mark.parametrize(
    ("name", "account"),
    draws.first_of_each(
        [(name, account) for name in ("c-multihost-tpu", "e-taints")] for account in lossy.ACCOUNTS
    ),
)
async def test_controllers_that_share_an_account_are_told_apart(name, account, tmp_path):
    lines = subtly.read(name)
    lossy.act_under_one_account(lines, account)
    (decided,) = await judged_lines(name, lines, tmp_path, (replays.decide,))
    assert decided.agreement is Agreement.AGREES, decided.differences
