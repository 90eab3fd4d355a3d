"""Recordings altered so that each line stays plausible, and the verdict each alteration must get.

An alteration of which a recording holds nothing is listed in `ABSENT`, so that none passes over a
recording in silence.
"""

import random

import pytest

from app.analysis.verify.compare import ComparisonResult
from app.bootstrap import process_settings, replays, stores
from app.domain.log.records import Loss
from app.service.replays.verifying import VerifyOutcome
from tests import draws
from tests.conformance import subtle_tampering as subtle
from tests.conformance import tampering
from tests.shared_data import shared_path

PROFILES = {
    "a-quickstart": "1.36",
    "b-mig-partitions": "1.36",
    "c-multihost-tpu": "1.36",
    "e-taints": "1.36",
    "e-taints-rules-ignored": "1.36.2",
    "i-soak-short": "1.36",
    "j-api-versions": "1.36",
}
"""The recordings, each with the release that decided in it."""

LONG = ("b-mig-partitions", "e-taints-rules-ignored", "i-soak-short")
"""A third of the alterations is tried on one of them, too, and these rows come in turn."""

SEEDS = draws.seeds(1)

LINES_MAX = None if draws.WHOLE else 1_500
"""How much of a long recording is altered and verified with each run of the tests."""

HARMLESS = (
    subtle.rename_scheduler_midway,
    subtle.swap_lines_of_one_time,
    subtle.share_audit_ids,
    subtle.drop_reads,
    subtle.retype_unread_attribute,
)
"""These change nothing that matters: everything is compared as before, and agrees."""

SHIFTED = (subtle.shift_clock_of_a_server, subtle.shift_all_stamps)
"""Times that cannot be right."""

DIFFERENT = (
    subtle.retype_read_attribute,
    subtle.move_to_a_later_equal,
    subtle.forget_node_selector,
)
"""These make allocations that no scheduler chooses."""

BROKEN = (
    (subtle.bind_before_allocation, "bound-pod-has-claims"),
    (subtle.reserve_for_who_went, "reservation-names-pod"),
    (subtle.defuse_rules, "eviction-has-taint"),
    (subtle.take_a_result_away, "request-satisfied"),
)
"""These make a history that no control plane writes, with the invariant that must say so."""

UNFIT = (
    subtle.defuse_one_line,
    subtle.drop_an_allocation,
    subtle.drop_a_release,
    subtle.drop_a_slice,
    subtle.change_uid,
    subtle.refuse_an_allocation,
)
"""After these the lines do not fit together: nobody may say that everything is verified."""

_NOT_TAINTED = (
    "a-quickstart",
    "b-mig-partitions",
    "c-multihost-tpu",
    "i-soak-short",
    "j-api-versions",
)
_CROWDED = ("a-quickstart", "b-mig-partitions", "c-multihost-tpu", "i-soak-short", "j-api-versions")

ABSENT = {
    subtle.retype_unread_attribute: ("c-multihost-tpu",),
    subtle.retype_read_attribute: ("a-quickstart", "c-multihost-tpu"),
    subtle.move_to_a_later_equal: _CROWDED,
    subtle.reserve_for_who_went: ("a-quickstart", "c-multihost-tpu", "j-api-versions"),
    subtle.defuse_rules: _NOT_TAINTED,
    subtle.defuse_one_line: _NOT_TAINTED,
    subtle.take_a_result_away: (
        "a-quickstart",
        "c-multihost-tpu",
        "e-taints",
        "e-taints-rules-ignored",
    ),
}
"""Recordings in which there is nothing to alter: in the first lines of the soak no rule evicts,
and devices that are equal never stay free for long."""


def silent(*_: object) -> None:
    """No progress is shown."""


def rows(alterations):
    """A short and a long recording with each alteration of which it has something; or all."""
    return tampering.long_by_day(
        [
            (name, alter, seed)
            for alter in alterations
            for name in tampering.chosen(alter, names_with(alter), LONG)
            for seed in SEEDS
        ],
        LONG,
    )


def names_with(alter):
    return [name for name in PROFILES if name not in ABSENT.get(alter, ())]


def read(name, lines_max=LINES_MAX):
    return tampering.read(shared_path("histories", name, "audit.jsonl.gz"))[:lines_max]


async def verified(name, lines, folder):
    store = stores.memory_store()
    settings = process_settings.settings(profile=PROFILES[name], verify_processes=1)
    path = tampering.write(lines, folder / "audit.jsonl")
    history = await replays.load_files(store, settings, (path,))
    return await replays.verify(store, settings, history, "", silent)


async def tampered(name, alter, seed, folder):
    lines = read(name)
    count = len(tampering.allocations(lines))
    told = alter(lines, random.Random(f"{name} {seed}"))
    return await verified(name, lines, folder), count, told


def failures(report):
    return [each for each in report.violations if each.kind.is_failure]


@draws.in_turn("rows of ways")
@pytest.mark.parametrize(("name", "alter", "seed"), rows(HARMLESS))
async def test_what_changes_nothing_is_verified(name, alter, seed, tmp_path):
    report, count, told = await tampered(name, alter, seed, tmp_path)
    assert [str(each) for each in failures(report)] == [], told
    assert report.outcome is VerifyOutcome.VERIFIED, told
    assert report.allocations.total == count, "every allocation is accounted for"


@pytest.mark.parametrize(("name", "alter", "seed"), rows(SHIFTED))
async def test_wrong_clock_of_a_server_accuses_nobody(name, alter, seed, tmp_path):
    report, count, told = await tampered(name, alter, seed, tmp_path)
    assert [str(each) for each in failures(report)] == [], told
    assert report.outcome is VerifyOutcome.PARTLY, told
    assert report.allocations.total == count
    assert Loss.TIMES_CONTRADICT in {each.code for each in report.doubts}


@draws.in_turn("wrongs")
@pytest.mark.parametrize(("name", "alter", "seed"), rows(DIFFERENT))
async def test_allocation_that_no_scheduler_chooses_differs(name, alter, seed, tmp_path):
    report, _, told = await tampered(name, alter, seed, tmp_path)
    assert report.allocations.counts.get(ComparisonResult.DIFFERENT, 0) > 0, told
    assert report.outcome is VerifyOutcome.FAILED


@draws.in_turn("rows of wrongs")
@pytest.mark.parametrize(
    ("name", "alter", "seed", "rule"),
    [
        pytest.param(*row.values, rule, marks=row.marks)
        for alter, rule in BROKEN
        for row in rows((alter,))
    ],
)
async def test_what_no_control_plane_writes_fails(name, alter, seed, rule, tmp_path):
    report, _, told = await tampered(name, alter, seed, tmp_path)
    assert rule in {each.rule for each in failures(report)}, told
    assert report.outcome is VerifyOutcome.FAILED


@draws.in_turn("rows of wrongs")
@pytest.mark.parametrize(("name", "alter", "seed"), rows(UNFIT))
async def test_lines_that_do_not_fit_together_are_never_verified(name, alter, seed, tmp_path):
    report, _, told = await tampered(name, alter, seed, tmp_path)
    assert report.outcome is not VerifyOutcome.VERIFIED, told


@pytest.mark.parametrize("name", tampering.long_by_day(PROFILES, (*LONG, "e-taints")))
async def test_lost_release_accuses_nobody(name, tmp_path):
    """Only that something is missing is known, and of which claim."""
    report, _, told = await tampered(name, subtle.drop_a_release, 0, tmp_path)
    assert [str(each) for each in failures(report)] == [], told
    assert report.outcome is VerifyOutcome.PARTLY
    assert ("gap", "resourceclaims.resource.k8s.io") in {
        (each.code, each.kind) for each in report.doubts
    }


@pytest.mark.parametrize(
    "name",
    tampering.long_by_day(
        (name for name in PROFILES if name != "j-api-versions"), (*LONG, "e-taints")
    ),
)
async def test_lost_allocation_is_a_gap_by_the_version_that_was_changed_next(name, tmp_path):
    report, _, told = await tampered(name, subtle.drop_an_allocation, 0, tmp_path)
    assert ("gap", "resourceclaims.resource.k8s.io") in {
        (each.code, each.kind) for each in report.doubts
    }, told


@draws.in_turn("rows of wrongs")
@pytest.mark.parametrize(
    ("name", "alter"), [(name, alter) for alter, names in ABSENT.items() for name in names]
)
def test_what_is_left_out_has_nothing_to_alter(name, alter):
    with pytest.raises(subtle.NothingToAlter):
        alter(read(name, 1_500), random.Random(0))
