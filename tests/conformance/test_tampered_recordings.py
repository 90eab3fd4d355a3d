"""Recordings altered by machine, and the verdict that each alteration must get.

What was right stays verified however it is written; what is wrong fails and is named; what is not
recorded is said to be unsure, and is never passed over.
"""

import gzip
import json
import random
import shutil

import pytest

from app.analysis.verify.compare import ComparisonResult
from app.bootstrap import process_settings, replays, stores
from app.cli.application import application
from app.cli.replaying import STATUSES
from app.service.replays.verifying import VerifyOutcome
from tests import draws
from tests.conformance import tampering
from tests.shared_data import shared_path

NAMES = ("a-quickstart", "b-mig-partitions", "e-taints", "i-soak-short")
SEEDS = draws.seeds(1)
LONG = ("b-mig-partitions", "i-soak-short")
"""A third of the alterations is tried on one of them, too, and these rows come in turn."""

DRAWS = tampering.long_by_day(
    [(name, seed) for name in NAMES for seed in SEEDS], (*LONG, "e-taints")
)

LINES_MAX = None if draws.WHOLE else 1_500
"""How much of a long recording is altered and verified with each run of the tests."""

HARMLESS = (
    tampering.nothing,
    tampering.rename_scheduler,
    tampering.remove_authors,
    tampering.write_amounts_otherwise,
    tampering.swap_lines,
    tampering.repeat_lines,
)
"""These change nothing that matters: everything is compared as before, and agrees."""

WRONG = (
    (tampering.give_unknown_device, "allocated-device-existed"),
    (tampering.give_device_twice, "device-in-one-claim"),
    (tampering.move_to_another_node, "pod-on-allocated-node"),
    (tampering.remove_finalizer, "allocation-has-finalizer"),
    (tampering.reserve_for_another, "bound-pod-has-claims"),
    (tampering.reserve_for_a_ghost, "reservation-names-pod"),
    (tampering.reserve_for_a_stranger, "reserved-pod-names-claim"),
    (tampering.change_a_spec, "immutable-field-unchanged"),
    (tampering.allocate_what_is_being_deleted, "terminating-claim-unused"),
)
"""These make a history that no control plane writes, with the invariant that must say so."""


def silent(*_: object) -> None:
    """No progress is shown."""


async def verified(lines, path, gates=()):
    store = stores.memory_store()
    settings = process_settings.settings(profile="1.36", verify_processes=1, gates=gates or None)
    history = await replays.load_files(store, settings, (tampering.write(lines, path),))
    return await replays.verify(store, settings, history, "", silent)


async def tampered(name, alter, seed, tmp_path):
    lines = tampering.read(shared_path("histories", name, "audit.jsonl.gz"))[:LINES_MAX]
    count = len(tampering.allocations(lines))
    told = alter(lines, random.Random(f"{name} {seed}"))
    return await verified(lines, tmp_path / "audit.jsonl"), count, told


@draws.in_turn("rows of ways")
@pytest.mark.parametrize(
    ("name", "alter"),
    tampering.long_by_day(
        [(name, alter) for alter in HARMLESS for name in tampering.chosen(alter, NAMES, LONG)],
        LONG,
    ),
)
async def test_what_changes_nothing_is_verified(name, alter, tmp_path):
    report, count, told = await tampered(name, alter, 0, tmp_path)
    assert report.outcome is VerifyOutcome.VERIFIED, (
        told,
        [str(each) for each in report.violations],
    )
    assert report.allocations.total == count, "every allocation is accounted for"


@draws.in_turn("rows of wrongs")
@pytest.mark.parametrize(
    ("name", "alter", "rule", "seed"),
    tampering.long_by_day(
        [
            (name, alter, rule, seed)
            for alter, rule in WRONG
            for name in tampering.chosen(alter, NAMES, LONG)
            for seed in SEEDS
        ],
        LONG,
    ),
)
async def test_what_no_control_plane_writes_fails(name, alter, rule, seed, tmp_path):
    report, _, told = await tampered(name, alter, seed, tmp_path)
    broken = {each.rule for each in report.violations if each.kind.is_failure}
    assert rule in broken, told
    assert report.outcome is VerifyOutcome.FAILED


@pytest.mark.parametrize(("name", "seed"), DRAWS)
async def test_second_binding_of_a_pod_is_never_verified(name, seed, tmp_path):
    report, _, told = await tampered(name, tampering.bind_again, seed, tmp_path)
    assert report.outcome is not VerifyOutcome.VERIFIED, told


@draws.in_turn("ways")
@pytest.mark.parametrize("name", ["a-quickstart", "b-mig-partitions"])
async def test_log_that_begins_late_accuses_nobody(name, tmp_path):
    """Claims and pods from before its first line are not missed in vain."""
    lines = tampering.read(shared_path("histories", name, "audit.jsonl.gz"))
    report = await verified(lines[len(lines) // 3 :], tmp_path / "audit.jsonl")
    assert [str(each) for each in report.violations if each.kind.is_failure] == []
    assert report.outcome is VerifyOutcome.PARTLY


def without_rules(lines):
    return [line for line in lines if line["objectRef"].get("resource") != "devicetaintrules"]


@draws.in_turn("ways")
async def test_evictions_without_a_taint_fail_where_the_cluster_had_no_rules(tmp_path):
    """Without the gate in the settings a policy may have left the rules out (`test_lossy_logs`)."""
    lines = tampering.read(shared_path("histories", "e-taints", "audit.jsonl.gz"))
    gates = ["DRADeviceTaintRules=false"]
    report = await verified(without_rules(lines), tmp_path / "audit.jsonl", gates)
    assert {each.rule for each in report.violations if each.kind.is_failure} == {
        "eviction-has-taint"
    }


@draws.in_turn("wrongs")
async def test_counters_that_were_never_enough_are_overdrawn(tmp_path):
    report, *_ = await tampered("b-mig-partitions", tampering.shrink_counters, 0, tmp_path)
    assert "counters-not-overdrawn" in {each.rule for each in report.violations}
    assert report.allocations.counts[ComparisonResult.DIFFERENT] > 0
    assert report.outcome is VerifyOutcome.FAILED


@pytest.mark.parametrize(("name", "seed"), DRAWS)
async def test_an_allocation_without_body_leaves_the_rest_unsure(name, seed, tmp_path):
    """Nothing is invented: neither that all is well, nor that a pod runs without its claims."""
    report, _, told = await tampered(name, tampering.drop_bodies, seed, tmp_path)
    assert report.outcome is not VerifyOutcome.VERIFIED, told
    assert [str(each) for each in report.violations if each.kind.is_failure] == [], told


@pytest.mark.parametrize("name", tampering.long_by_day(NAMES, (*LONG, "e-taints")))
async def test_a_log_without_answers_accuses_nobody(name, tmp_path):
    report, _, told = await tampered(name, tampering.drop_answers, 0, tmp_path)
    assert [str(each) for each in report.violations if each.kind.is_failure] == [], told


@draws.in_turn("ways")
async def test_lines_that_are_there_twice_are_events_once(tmp_path):
    report, *_ = await tampered("a-quickstart", tampering.nothing, 0, tmp_path)
    again, *_ = await tampered("a-quickstart", tampering.repeat_lines, 0, tmp_path)
    assert again.events == report.events


def folder_of_two_sources(folder, alter_watch):
    """The audit log of a recording with its stream of claims, in which lines are altered."""
    (folder / "watch").mkdir(parents=True)
    shutil.copy(shared_path("histories", "a-quickstart", "audit.jsonl.gz"), folder)
    stream = shared_path("histories", "a-quickstart", "watch", "resourceclaims.jsonl.gz")
    lines = [json.loads(line) for line in gzip.decompress(stream.read_bytes()).splitlines()]
    alter_watch(lines)
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    (folder / "watch" / "resourceclaims.jsonl").write_text(text)
    return folder


def give_other_devices(lines):
    for line in lines:
        for result in tampering.results_in(line["object"]):
            result["device"] = f"not-{result['device']}"


@draws.in_turn("wrongs")
@pytest.mark.parametrize(
    ("alter", "status", "text"),
    [
        (lambda lines: None, 0, "the order of some changes is not known"),
        (give_other_devices, 3, "watch/resourceclaims.jsonl"),
    ],
)
def test_sources_that_contradict_each_other_are_named(alter, status, text, tmp_path, capsys):
    folder = folder_of_two_sources(tmp_path / "recorded", alter)
    assert application(["verify", str(folder)]) == status
    shown = capsys.readouterr().out
    assert text in shown
    assert ("audit.jsonl.gz:" in shown) is (status == 3)


def test_verdict_says_what_the_recording_does_not_tell_of_the_order(capsys):
    path = shared_path("histories", "a-quickstart", "audit.jsonl.gz")
    assert application(["verify", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "order: the recording does not show the order of all changes" in shown
    assert "the order of some changes against other objects is a guess (25)" in shown
    assert shown.rstrip().endswith("; the order of some changes is not known")


@draws.in_turn("ways")
@pytest.mark.parametrize(
    ("switches", "status", "shown"), [((), 1, True), (("--quirk", "c24=off"), 0, False)]
)
def test_failure_by_other_choices_names_what_finds_a_switch(switches, status, shown, capsys):
    """The scheduler of this recording is a 1.36.2 with a repair of c24."""
    path = shared_path("histories", "e-taints", "audit.jsonl.gz")
    assert application(["replay", str(path), "--mode", "verify", *switches]) == status
    out = capsys.readouterr().out
    assert ("another release, gate or quirk may make those choices" in out) is shown


@draws.in_turn("ways")
@pytest.mark.parametrize(
    ("alter", "status", "text"),
    [
        (tampering.nothing, 0, "verified: everything that is judged was compared and agrees"),
        (tampering.drop_bodies, 3, "not comparable, 1 by system:kube-scheduler: a write of the"),
        (tampering.give_device_twice, 1, "FAILED: it does not agree"),
    ],
)
def test_exit_status_tells_three_outcomes_apart(alter, status, text, tmp_path, capsys):
    lines = tampering.read(shared_path("histories", "a-quickstart", "audit.jsonl.gz"))
    alter(lines, random.Random(0))
    path = tampering.write(lines, tmp_path / "audit.jsonl")
    assert application(["replay", str(path), "--mode", "verify"]) == status
    assert text in capsys.readouterr().out
    assert application(["replay", str(path), "--mode", "verify", "-o", "json"]) == status
    assert STATUSES[json.loads(capsys.readouterr().out)["outcome"]] == status
