"""Recordings without some of their lines, and the verdict of verify, fixed before any run.

Nothing wrong happened, so nothing may be said to be wrong: what cannot be compared is counted. What
is planted beside still fails wherever the remaining lines prove it.

What is left out or lost comes by day, as does what the rest still proves: some of both each day.
"""

import random

import pytest

from app.analysis.oversight import JudgeName
from app.analysis.verify.compare import ComparisonResult
from app.bootstrap import process_settings, replays, stores
from app.bootstrap.pacing.overseeing import oversight_for
from app.service.replays.verifying import VerifyOutcome
from tests import draws
from tests.conformance import further_tampering as further
from tests.conformance import lossy_logs as lossy
from tests.conformance import scanning, tampering
from tests.conformance import subtle_tampering as subtle
from tests.conformance import test_subtle_tampering as subtly
from tests.conformance.verdicts import judged_lines

pytestmark = pytest.mark.timeout(0)
"""Runs are bounded in number; how long they take is a matter of the machine."""

NEEDLESS = ("a-quickstart", "b-mig-partitions", "c-multihost-tpu", "j-api-versions")
"""Recordings in which no rule decides anything: without their lines the rest is whole."""

LEAVING_OUT = (lossy.leave_out_rules, lossy.leave_out_deletions)

LOSING = [
    lossy.lose_one_of(number, first) for number in (3, 4, 5, 7, 10) for first in range(number)
]

SOME = {
    "a-quickstart": {"lose_one_of_10_from_2"},
    "b-mig-partitions": {
        "lose_one_of_3_from_2",
        "lose_one_of_10_from_0",
        "lose_one_of_10_from_3",
    },
    "e-taints": {"lose_one_of_10_from_0", "lose_one_of_10_from_6"},
    "e-taints-rules-ignored": {"lose_one_of_4_from_2"},
    "j-api-versions": {
        "lose_one_of_5_from_0",
        "lose_one_of_7_from_6",
        "lose_one_of_10_from_3",
        "lose_one_of_10_from_5",
    },
}
"""The rows of each run of the tests: each was accused once. With more draws all are tried."""

PLANTED = (
    tampering.give_device_twice,
    tampering.change_a_spec,
    further.give_another_request,
)
"""What claims alone show: no lost line of another object explains it."""

PROVEN = (
    *draws.by_turns(
        [(name, plant, lose) for plant in plants]
        for name, lose, plants in (
            ("a-quickstart", lossy.leave_out_deletions, PLANTED),
            ("e-taints", lossy.leave_out_deletions, PLANTED),
            ("e-taints", lossy.leave_out_rules, PLANTED),
            ("e-taints", lossy.lose_one_of(10, 0), PLANTED),
            ("a-quickstart", lossy.leave_out_kubelets, PLANTED),
            ("e-taints", lossy.leave_out_kubelets, PLANTED),
            ("e-taints", lossy.leave_out_claim_controller, PLANTED[1:]),
            ("a-quickstart", lossy.ask_of_pods_alone, PLANTED),
        )
    ),
    ("e-taints", subtle.move_to_a_later_equal, lossy.leave_out_deletions),
    ("e-taints-rules-ignored", subtle.move_to_a_later_equal, lossy.leave_out_rules),
    ("e-taints", tampering.give_unknown_device, lossy.leave_out_rules),
    ("e-taints", tampering.give_unknown_device, lossy.leave_out_deletions),
)
"""A device that comes after a free one of its kind: no deletion keeps the first from being had, and
a scheduler that sees no rules avoids none."""

OPEN = (
    ("e-taints", subtle.move_to_a_later_equal, lossy.leave_out_rules),
    ("e-taints", subtle.move_to_a_later_equal, lossy.lose_one_of(10, 0)),
    ("e-taints", tampering.give_unknown_device, lossy.lose_one_of(10, 0)),
    ("e-taints", tampering.give_device_twice, lossy.leave_out_claim_controller),
)
"""A rule that nobody recorded may taint the first device, a claim in a lost line may hold it, and a
lost line of a slice may publish the unknown one. The claim controller gives devices back."""


ROWS = [
    pytest.param(name, lose, id=f"{name}-{lose.__name__}")
    for name in subtly.PROFILES
    for lose in LOSING
    if draws.WHOLE or lose.__name__ in SOME.get(name, ())
]


async def outcome(name, alterations, folder):
    lines = subtly.read(name, None)
    for place, alter in enumerate(alterations):
        alter(lines, random.Random(f"{name} {place}"))
    (report,) = await judged_lines(name, lines, folder, (replays.verify,))
    return report


@draws.BY_DAY
@pytest.mark.parametrize("alter", LEAVING_OUT)
@pytest.mark.parametrize(
    "name", [name for name in subtly.PROFILES if draws.WHOLE or name not in subtly.LONG]
)
async def test_lines_that_are_left_out_accuse_nobody(name, alter, tmp_path):
    report = await outcome(name, (alter,), tmp_path)
    is_whole = alter is lossy.leave_out_rules and name in NEEDLESS
    assert report.outcome is (VerifyOutcome.VERIFIED if is_whole else VerifyOutcome.PARTLY)


@draws.in_turn("ways")
@pytest.mark.parametrize("alter", LEAVING_OUT)
async def test_judges_that_watch_over_a_log_accuse_nobody_either(alter, tmp_path):
    lines = subtly.read("e-taints", None)
    alter(lines, random.Random("e-taints"))
    settings = process_settings.settings(profile=subtly.PROFILES["e-taints"], scan_attempts_max=0)
    store = stores.memory_store()
    name = await replays.load_files(
        store, settings, (tampering.write(lines, tmp_path / "a.jsonl"),)
    )
    history = await stores.find_history(store, name)
    oversight = await oversight_for(store, settings, history)
    observations = []
    while page := await store.log.read(history.id, after=oversight.revision, limit=500):
        observations += oversight.take(page)
    observations += oversight.end()
    accused = {(each.judge, each.name) for each in observations if each.is_failure}
    assert accused == {(JudgeName.INCIDENT, name) for name in HAPPENED}
    report = await scanning.scan(store, settings, name, "")
    assert {each.incident for each in report.sightings} == HAPPENED


HAPPENED = {"toleration-without-effect", "placed-to-be-evicted"}
"""The incident that e-taints shows as it is, too."""


@draws.in_turn("wrongs")
@pytest.mark.parametrize(
    ("name", "alter"),
    [
        ("a-quickstart", lossy.leave_out_updates),
        ("c-multihost-tpu", lossy.leave_out_kubelets),
        ("e-taints", lossy.leave_out_kubelets),
        ("e-taints", lossy.leave_out_claim_controller),
        ("e-taints", lossy.leave_out_service_accounts),
        ("b-mig-partitions", lossy.ask_of_pods_alone),
        ("c-multihost-tpu", lossy.ask_of_pods_alone),
    ],
)
async def test_users_and_verbs_that_are_left_out_accuse_nobody(name, alter, tmp_path):
    report = await outcome(name, (alter,), tmp_path)
    assert report.outcome is VerifyOutcome.PARTLY


@draws.BY_DAY
@pytest.mark.parametrize(("name", "lose"), ROWS)
async def test_lost_lines_accuse_nobody(name, lose, tmp_path):
    report = await outcome(name, (lose,), tmp_path)
    assert report.outcome is VerifyOutcome.PARTLY
    found = report.allocations
    assert not found.differences
    told = sum(count for authors in found.reasons.values() for count in authors.values())
    assert told == found.counts.get(ComparisonResult.NOT_COMPARABLE, 0)


@draws.in_turn("rows of wrongs")
@pytest.mark.parametrize(("name", "plant", "lose"), PROVEN)
async def test_remaining_lines_still_prove_what_is_wrong(name, plant, lose, tmp_path):
    report = await outcome(name, (plant, lose), tmp_path)
    assert report.outcome is VerifyOutcome.FAILED


@draws.BY_DAY
@pytest.mark.parametrize(("name", "plant", "lose"), OPEN)
async def test_what_lost_lines_may_explain_is_not_comparable(name, plant, lose, tmp_path):
    report = await outcome(name, (plant, lose), tmp_path)
    assert report.outcome is VerifyOutcome.PARTLY
