"""Recordings altered once more, and the verdicts of verify and decide, fixed before the first run.

What no control plane does fails and is unexplained; what changes nothing is verified and agrees;
who wrote is named. What is missing or dated wrongly accuses nobody.

Rows come by day: the rows of a test share verdict and cause, on recordings of different work.
"""

import random

import pytest

from app.analysis.replay.report import Agreement
from app.service.replays.verifying import VerifyOutcome
from tests import draws
from tests.conformance import further_tampering as further
from tests.conformance import selection
from tests.conformance import subtle_tampering as subtle
from tests.conformance import test_subtle_tampering as subtly
from tests.conformance.verdicts import judged

pytestmark = pytest.mark.timeout(0)
"""Runs are bounded in number; how long they take is a matter of the machine."""

NAMES = ("a-quickstart", "j-api-versions", "c-multihost-tpu", "e-taints")

WRONG = (
    further.swap_two_bindings,
    further.bind_to_another_node,
    further.give_another_driver,
    further.give_another_request,
    further.tolerate_in_the_result_alone,
    further.ask_for_more_than_was_given,
    further.reserve_before_allocation,
)
HARMLESS = (
    further.change_one_version_of_a_slice,
    further.repeat_an_allocation,
    further.cut_the_end,
)
LACKING = (
    further.cut_the_beginning,
    further.cut_the_middle,
    further.shift_stamps_of_a_kind,
)
FORGETFUL = ("a-quickstart", "c-multihost-tpu", "e-taints")
"""What is written later shows in these that a pod has ended. In j-api-versions nothing is written:
the claim is taken from a pod that runs, as far as the log tells."""

UNFIT = (further.forget_an_end, further.remove_slices_of_a_node)
ABSENT = {
    further.swap_two_bindings: ("j-api-versions",),
    further.evict_as_a_stranger: ("a-quickstart", "j-api-versions", "c-multihost-tpu"),
}


def rows(alterations, names=NAMES):
    return selection.rows(alterations, names, ABSENT)


@draws.BY_DAY
@pytest.mark.parametrize(("name", "alter"), rows(WRONG))
async def test_what_no_control_plane_does_fails_and_is_unexplained(name, alter, tmp_path):
    verified, decided, told = await judged(name, alter, tmp_path)
    assert verified.outcome is VerifyOutcome.FAILED, told
    assert not decided.explained, told


@draws.BY_DAY
@pytest.mark.parametrize(("name", "alter"), rows(HARMLESS))
async def test_what_changes_nothing_is_verified_and_agrees(name, alter, tmp_path):
    verified, decided, told = await judged(name, alter, tmp_path)
    assert verified.outcome is VerifyOutcome.VERIFIED, told
    assert decided.agreement in (Agreement.AGREES, Agreement.PROVED), told


@draws.BY_DAY
@pytest.mark.parametrize(
    ("name", "alter"),
    [*rows(LACKING), *rows((further.forget_an_end,), FORGETFUL)],
)
async def test_what_is_missing_or_dated_wrongly_accuses_nobody(name, alter, tmp_path):
    verified, decided, told = await judged(name, alter, tmp_path)
    assert verified.outcome is VerifyOutcome.PARTLY, told
    assert decided.agreement is Agreement.PARTLY, told


@pytest.mark.parametrize(("name", "alter"), rows(UNFIT))
async def test_lines_that_do_not_fit_together_are_never_verified(name, alter, tmp_path):
    verified, decided, told = await judged(name, alter, tmp_path)
    assert decided.agreement in (Agreement.PARTLY, Agreement.UNEXPLAINED, Agreement.IMPOSSIBLE), (
        told
    )
    assert verified.outcome is not VerifyOutcome.VERIFIED, told


@pytest.mark.parametrize(("name", "alter"), rows((further.allocate_as_a_stranger,), NAMES))
async def test_author_of_an_allocation_is_named(name, alter, tmp_path):
    verified, decided, _ = await judged(name, alter, tmp_path)
    assert verified.outcome is VerifyOutcome.VERIFIED
    authors = verified.to_json()["allocations"]["authors"]
    assert authors[further.STRANGER] == 1
    assert authors[further.SCHEDULER] == verified.allocations.total - 1
    assert decided.to_json()["writtenBy"] == {"scheduler": {further.STRANGER: 1}}


@draws.in_turn("ways")
async def test_author_of_an_eviction_is_named(tmp_path):
    _, decided, _ = await judged("e-taints", further.evict_as_a_stranger, tmp_path)
    assert list(decided.written_by["device-taint-eviction-controller"]) == [further.STRANGER]


@draws.in_turn("ways")
async def test_difference_names_who_wrote(tmp_path):
    def alter(lines, draw):
        told = further.give_another_driver(lines, draw)
        for line in lines:
            if line["user"].get("username") == further.SCHEDULER:
                line["user"]["username"] = further.STRANGER
        return told

    verified, decided, _ = await judged("j-api-versions", alter, tmp_path)
    (difference,) = verified.allocations.differences
    assert difference.subject.endswith(f"written by {further.STRANGER}")
    devices = [each for each in decided.differences if each.aspect == "devices"]
    assert devices
    assert all(further.STRANGER in each.users for each in devices)


@pytest.mark.parametrize(
    ("name", "alter"), [(name, alter) for alter, names in ABSENT.items() for name in names]
)
def test_what_is_left_out_has_nothing_to_alter(name, alter):
    with pytest.raises(subtle.NothingToAlter):
        alter(subtly.read(name), random.Random(0))
