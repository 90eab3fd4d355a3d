"""Recordings altered a fourth time, and the verdicts of verify and decide, fixed before any run.

`WRONG`: no control plane does it, so verification fails, decide is unexplained, and one of the
objects is named. `BESIDE`: the same beside something missing. `LACKING`: something is missing or
dated wrongly, which is said, and accuses nobody. `UNFIT`: lines contradict each other. `HARMLESS`:
nothing is different. An alteration of which a recording holds nothing stands in `ABSENT`.

Rows come by day: the rows of a test share verdict and cause, and each judge has all its paths from
the other families, too.
"""

import random

import pytest

from app.analysis.replay.report import Agreement
from app.analysis.verify.reallocate import CHOSEN_ANEW
from app.bootstrap import replays
from app.service.replays.verifying import VerifyOutcome
from tests import draws
from tests.conformance import crossed_tampering as crossed
from tests.conformance import further_tampering as further
from tests.conformance import invented_tampering as invented
from tests.conformance import selection, tampering
from tests.conformance import subtle_tampering as subtle
from tests.conformance import test_subtle_tampering as subtly
from tests.conformance.verdicts import judged, judged_lines, names_one

pytestmark = pytest.mark.timeout(0)
"""Runs are bounded in number; how long they take is a matter of the machine."""

NAMES = ("a-quickstart", "j-api-versions")

WRONG = (
    crossed.swap_the_devices_of_two_claims,
    crossed.give_a_device_to_a_claim_of_later,
    crossed.write_an_allocation_again_with_other_devices,
    crossed.restore_an_allocation_that_was_taken_away,
    crossed.allocate_to_another_namespace,
    crossed.draw_more_from_a_counter,
)
"""A normal run judges `evict_before_the_taint`, too, but by verify alone (`BESIDE`)."""

LACKING = (
    crossed.date_a_user_in_another_time_zone,
    crossed.drop_every_second_line_of_claims,
    crossed.lose_what_one_server_kept,
    crossed.let_an_old_status_arrive_late,
)
UNFIT = (crossed.bind_to_a_node_that_was_not_there,)
"""The line of a binding and the states after it contradict each other: which is right is open."""

HARMLESS = (
    crossed.drop_every_second_heartbeat,
    crossed.repeat_a_binding_that_is_refused,
    crossed.write_stamps_with_an_offset,
)
ELSEWHERE = {
    crossed.draw_more_from_a_counter: ("c-multihost-tpu",),
    crossed.give_a_device_to_a_claim_of_later: ("e-taints", "b-mig-partitions"),
    crossed.write_an_allocation_again_with_other_devices: ("c-multihost-tpu",),
    crossed.let_an_old_status_arrive_late: ("c-multihost-tpu",),
    crossed.date_a_user_in_another_time_zone: ("c-multihost-tpu",),
    crossed.lose_what_one_server_kept: ("c-multihost-tpu", "e-taints"),
}
"""Longer recordings on which an alteration is tried, too."""

ABSENT = {
    crossed.swap_the_devices_of_two_claims: ("j-api-versions",),
    crossed.allocate_to_another_namespace: ("j-api-versions", "c-multihost-tpu"),
    crossed.let_an_old_status_arrive_late: ("j-api-versions",),
    crossed.evict_before_the_taint: ("a-quickstart", "j-api-versions", "c-multihost-tpu"),
    crossed.draw_more_from_a_counter: ("a-quickstart", "j-api-versions"),
}
BESIDE = (
    ("e-taints", subtle.defuse_rules, tampering.drop_bodies),
    ("e-taints", crossed.evict_before_the_taint, tampering.drop_bodies),
    ("e-taints", crossed.evict_before_the_taint, further.forget_an_end),
    ("c-multihost-tpu", crossed.restore_an_allocation_that_was_taken_away, tampering.drop_bodies),
    ("c-multihost-tpu", tampering.change_a_spec, further.forget_an_end),
    ("c-multihost-tpu", crossed.draw_more_from_a_counter, crossed.lose_what_one_server_kept),
    ("c-multihost-tpu", tampering.change_a_spec, crossed.drop_every_second_line_of_claims),
    ("e-taints", further.bind_to_another_node, further.cut_the_middle),
    (
        "c-multihost-tpu",
        invented.let_a_class_select_nothing,
        crossed.drop_every_second_line_of_claims,
    ),
    (
        "c-multihost-tpu",
        invented.allocate_from_an_incomplete_pool,
        crossed.lose_what_one_server_kept,
    ),
)
"""What no control plane does, beside something missing that it does not rest on."""


def rows(alterations):
    """On which recordings an alteration is tried was written down before the first run."""
    return selection.rows(alterations, NAMES, ABSENT, ELSEWHERE)


@draws.BY_DAY
@pytest.mark.parametrize(
    ("name", "alter"),
    [*rows(WRONG), draws.repeated("e-taints", crossed.evict_before_the_taint)],
)
async def test_what_no_control_plane_does_fails_and_is_unexplained(name, alter, tmp_path):
    verified, decided, told = await judged(name, alter, tmp_path)
    assert verified.outcome is VerifyOutcome.FAILED, told
    assert not decided.explained, told
    assert names_one(verified, told)
    assert names_one(decided, told)


@pytest.mark.parametrize(
    ("name", "alter"),
    [
        ("a-quickstart", crossed.nominate_before_the_device_is_given_back),
        ("e-taints", crossed.nominate_before_the_taint_is_gone),
    ],
)
async def test_device_that_was_not_free_when_it_was_chosen_is_an_impossible_state(
    name, alter, tmp_path
):
    lines = subtly.read(name)
    told = alter(lines, random.Random(f"{name} 0"))
    (decided,) = await judged_lines(name, lines, tmp_path, (replays.decide,))
    assert decided.agreement is Agreement.IMPOSSIBLE, told
    assert names_one(decided, told)


async def test_scheduler_of_another_name_is_judged_like_any_other(tmp_path):
    name = "a-quickstart"
    lines = subtly.read(name)
    crossed.rename_the_scheduler(lines, random.Random(name))
    (decided,) = await judged_lines(name, lines, tmp_path, (replays.decide,))
    assert decided.agreement in (Agreement.AGREES, Agreement.PROVED), "it is the same recording"
    told = crossed.swap_the_devices_of_two_claims(lines, random.Random(f"{name} 0"))
    (decided,) = await judged_lines(name, lines, tmp_path, (replays.decide,))
    assert not decided.explained, told
    assert names_one(decided, told)


@pytest.mark.parametrize(
    ("key", "is_explained"),
    [("acme.example/cost", True), ("cost", True), ("resource.kubernetes.io/cost", False)],
)
async def test_what_a_webhook_adds_to_the_metadata_of_a_claim_accuses_nobody(
    key, is_explained, tmp_path
):
    """Keys of Kubernetes' own domains are written by its controllers alone."""
    lines = subtly.read("a-quickstart")
    crossed.annotate_and_label(key)(lines, random.Random(0))
    (decided,) = await judged_lines("a-quickstart", lines, tmp_path, (replays.decide,))
    assert decided.explained == is_explained


async def test_nomination_by_another_than_the_scheduler_dates_no_choice(tmp_path):
    verified, decided, told = await judged(
        "a-quickstart", crossed.let_an_autoscaler_nominate, tmp_path
    )
    assert verified.outcome is VerifyOutcome.VERIFIED, told
    assert decided.agreement in (Agreement.AGREES, Agreement.PROVED), told


async def test_scheduler_that_paused_after_the_nomination_may_be_another_one(tmp_path):
    """It chose the device when that was free; nothing in the log says whether it was replaced."""
    verified, decided, told = await judged(
        "a-quickstart", crossed.replace_the_scheduler_after_the_nomination, tmp_path
    )
    assert verified.outcome is VerifyOutcome.PARTLY, told
    assert CHOSEN_ANEW in verified.allocations.reasons, told
    assert decided.agreement is Agreement.PARTLY, told


async def test_scheduler_that_paused_and_kept_its_lease_is_no_other_one(tmp_path):
    verified, decided, told = await judged(
        "a-quickstart", crossed.keep_the_lease_of_the_scheduler, tmp_path
    )
    assert verified.outcome is VerifyOutcome.FAILED, told
    assert names_one(verified, told)
    assert decided.agreement is Agreement.IMPOSSIBLE, told
    assert names_one(decided, told)


@pytest.mark.parametrize(
    ("name", "alter", "seed"),
    [
        ("a-quickstart", crossed.nominate_before_the_device_is_given_back, 0),
        ("e-taints", crossed.nominate_before_the_taint_is_gone, 0),
        ("e-taints", crossed.give_a_device_to_a_claim_of_after_the_nomination, 2),
        ("b-mig-partitions", crossed.give_a_device_to_a_claim_of_after_the_nomination, 0),
    ],
)
async def test_what_came_after_the_nomination_explains_no_choice(name, alter, seed, tmp_path):
    lines = subtly.read(name)
    told = alter(lines, random.Random(f"{name} {seed}"))
    (verified,) = await judged_lines(name, lines, tmp_path, (replays.verify,))
    assert verified.outcome is VerifyOutcome.FAILED, told
    assert names_one(verified, told)


@draws.BY_DAY
@pytest.mark.parametrize(("name", "alter", "beside"), BESIDE)
async def test_what_is_missing_beside_hides_nothing(name, alter, beside, tmp_path):
    lines, sound = subtly.read(name), subtly.read(name)
    told = alter(lines, random.Random(f"{name} 0"))
    for each in (lines, sound):
        beside(each, random.Random(f"{name} 1"))
    assert lines != sound, "what is wrong is in no line any more"
    (verified,) = await judged_lines(name, lines, tmp_path, (replays.verify,))
    assert verified.outcome is VerifyOutcome.FAILED, told
    (verified,) = await judged_lines(name, sound, tmp_path, (replays.verify,))
    assert verified.outcome is VerifyOutcome.PARTLY, "what is missing alone accuses nobody"


@draws.BY_DAY
@pytest.mark.parametrize(("name", "alter"), rows(LACKING))
async def test_what_is_missing_or_dated_wrongly_accuses_nobody(name, alter, tmp_path):
    verified, decided, told = await judged(name, alter, tmp_path)
    assert verified.outcome is VerifyOutcome.PARTLY, told
    assert decided.agreement is Agreement.PARTLY, told


@pytest.mark.parametrize(("name", "alter"), rows(UNFIT))
async def test_lines_that_do_not_fit_together_are_never_verified(name, alter, tmp_path):
    verified, decided, told = await judged(name, alter, tmp_path)
    assert verified.outcome is not VerifyOutcome.VERIFIED, told
    assert decided.agreement in (Agreement.PARTLY, Agreement.UNEXPLAINED, Agreement.IMPOSSIBLE), (
        told
    )


@draws.BY_DAY
@pytest.mark.parametrize(("name", "alter"), rows(HARMLESS))
async def test_what_changes_nothing_is_verified_and_agrees(name, alter, tmp_path):
    verified, decided, told = await judged(name, alter, tmp_path)
    assert verified.outcome is VerifyOutcome.VERIFIED, told
    assert decided.agreement in (Agreement.AGREES, Agreement.PROVED), told


@pytest.mark.parametrize(
    ("name", "alter"), [(name, alter) for alter, names in ABSENT.items() for name in names]
)
def test_what_is_left_out_has_nothing_to_alter(name, alter):
    with pytest.raises(subtle.NothingToAlter):
        alter(subtly.read(name), random.Random(f"{name} 0"))
