"""Recordings decided again from inputs from outside, and verified allocation by allocation.

Single parts of recordings come by day, and their verifications; some whole recordings are decided
in each run.
"""

from dataclasses import replace

import pytest

from app.analysis.replay.classes import DifferenceClass, Sought
from app.analysis.replay.differences import Aspect
from app.analysis.verify.compare import ComparisonResult
from app.analysis.verify.invariants import ViolationKind
from app.bootstrap import process_settings, replays, stores
from app.service.replays.verifying import VerifyOutcome
from tests import draws
from tests.conformance.recordings import RECORDINGS
from tests.imports import load_once
from tests.kept import Kept
from tests.shared_data import shared_path

pytestmark = pytest.mark.timeout(0)
"""Runs are bounded in number; how long they take is a matter of the machine."""

PROFILES = {"e-taints-rules-ignored": "1.36.2"}
"""The release that a recording is of; 1.36 otherwise."""

LITERAL = frozenset((Aspect.NODES, Aspect.DEVICES, Aspect.RULES, Aspect.EVICTIONS))
"""What is the same in every recording, without exception."""

SAID = {
    "a-quickstart": ({}, {}),
    "b-mig-partitions": ({}, {DifferenceClass.TIMING: 5}),
    "c-multihost-tpu": ({}, {}),
    "e-taints": ({}, {}),
    "e-taints-rules-ignored": ({}, {DifferenceClass.RACE: 1}),
    "i-soak-short": (
        {DifferenceClass.TIMING: 1},
        {DifferenceClass.IN_FLIGHT: 1, DifferenceClass.TIMING: 1, DifferenceClass.RACE: 5},
    ),
    "j-api-versions": ({}, {}),
}
"""Conditions and Events that differ: attempts that only one side made, or in another order."""

SNAPSHOTS = ("a-quickstart", "b-mig-partitions", "e-taints", "e-taints-rules-ignored")
"""Recordings with a snapshot of etcd at their end; it has all revisions."""

ENDINGS = frozenset(
    (
        DifferenceClass.RACE,
        DifferenceClass.TIMING,
        DifferenceClass.IN_FLIGHT,
        DifferenceClass.FINISHED_POD,
    )
)
"""Why orders of writes and final objects may differ: the collector and the claim controller end a
claim together, finished pods are reserved again (C8, C22), attempts as above."""


def silent(*_):
    pass


PARTS = tuple(name for name in RECORDINGS if name != "i-soak-short")
"""Recordings that are decided from each of their parts. A run of the soak takes seconds, and
`test_decide_soaks` decides watch streams and logs of others like it."""


PART_OF = {
    "a-quickstart": "etcd-final.db.gz",
    "b-mig-partitions": "watch",
    "c-multihost-tpu": "audit.jsonl.gz",
    "e-taints": "watch",
    "e-taints-rules-ignored": "etcd-final.db.gz",
    "j-api-versions": "watch",
}
"""The part from which a recording is decided with each run of the tests; with more draws it is
decided from each of its parts."""


SOON = ("a-quickstart", "c-multihost-tpu", "j-api-versions")
"""Recordings that are decided in a second each, with each run of the tests."""


def decided_from(part, names):
    """The recordings that are decided from this part."""
    return [name for name in names if draws.WHOLE or PART_OF[name] == part]


async def replay(work, name, *, part="", profile="", quirks=(), moment="", bounds=None, **more):
    version = profile or PROFILES.get(name, "1.36")
    settings = process_settings.settings(profile=version, quirks=list(quirks))
    settings = replace(settings, **(bounds or {}))
    store, history = await loaded(version, name, part)
    return await work(store, settings, history, moment, silent, **more)


_LOADED = Kept()


async def loaded(version, name, part):
    """The store with a recording, or a part of it, and the name of the history."""
    if (version, name, part) not in _LOADED:
        store = stores.memory_store()
        path = shared_path("histories", name, part) if part else shared_path("histories", name)
        _LOADED[version, name, part] = store, await load_once(store, path, version)
    return _LOADED[version, name, part]


_DECIDED = Kept()


async def decided(name, part="", profile=""):
    """The report of a recording, or of a part of it; made once."""
    key = name, part, profile
    if key not in _DECIDED:
        _DECIDED[key] = await replay(replays.decide, name, part=part, profile=profile)
    return _DECIDED[key]


@pytest.mark.parametrize(
    "name",
    [
        name if name in SOON else pytest.param(name, marks=draws.in_turn("ways"))
        for name in (RECORDINGS if draws.WHOLE else PARTS)
    ],
)
async def test_every_difference_of_a_decided_recording_has_a_known_reason(name):
    report = await decided(name)
    unexplained = [
        found for found in report.differences if found.reason is DifferenceClass.UNEXPLAINED
    ]
    assert [found.to_json() for found in unexplained] == []
    assert report.explained
    assert report.not_comparable == {}
    assert not any("refused" in why for why in report.not_done)
    different = {aspect: dict(counts.different) for aspect, counts in report.aspects.items()}
    assert [different[aspect] for aspect in LITERAL] == [{}] * len(LITERAL)
    assert (different[Aspect.CONDITIONS], different[Aspect.SAID]) == SAID[name]
    for aspect in (Aspect.WRITES, Aspect.ORDER, Aspect.FINAL):
        assert different[aspect].keys() <= ENDINGS


@draws.in_turn("wrongs")
async def test_soak_up_to_a_moment_differs_by_known_reasons_and_by_what_comes_after_it():
    """The first 60 of its 170 placements by its log; all of it is decided with more draws."""
    report = await replay(replays.decide, "i-soak-short", part="audit.jsonl.gz", moment="1500")
    assert report.explained
    assert report.not_comparable == {}
    different = {aspect: dict(counts.different) for aspect, counts in report.aspects.items()}
    for aspect in LITERAL:
        assert different[aspect].keys() <= {DifferenceClass.AFTER_END}
    assert report.aspects[Aspect.NODES].same == 60
    assert different[Aspect.CONDITIONS] == {DifferenceClass.TIMING: 1, DifferenceClass.AFTER_END: 2}
    assert different[Aspect.SAID] == {
        DifferenceClass.IN_FLIGHT: 1,
        DifferenceClass.TIMING: 1,
        DifferenceClass.AFTER_END: 2,
    }
    for aspect in (Aspect.WRITES, Aspect.ORDER, Aspect.FINAL):
        assert different[aspect].keys() <= ENDINGS | {DifferenceClass.AFTER_END}


@draws.in_turn("ways")
@pytest.mark.parametrize("name", decided_from("audit.jsonl.gz", PARTS))
async def test_log_alone_is_decided_like_all_of_a_recording(name):
    await check_part(name, "audit.jsonl.gz")


@draws.in_turn("ways")
@pytest.mark.parametrize("name", decided_from("watch", PARTS))
async def test_watch_streams_alone_are_decided_literally(name):
    """They lack authors and times; managers, contents and the order of writes replace them."""
    await check_part(name, "watch")


@draws.in_turn("ways")
@pytest.mark.parametrize("name", decided_from("etcd-final.db.gz", SNAPSHOTS))
async def test_snapshot_of_the_store_is_decided_literally(name):
    await check_part(name, "etcd-final.db.gz")


async def check_part(name, part):
    report = await decided(name, part)
    different = {aspect: dict(counts.different) for aspect, counts in report.aspects.items()}
    same = (Aspect.NODES, Aspect.DEVICES, Aspect.EVICTIONS)
    assert [different[aspect] for aspect in same] == [{}] * len(same)
    assert report.aspects[Aspect.NODES].same > 4
    assert report.explained
    assert (different[Aspect.CONDITIONS], different[Aspect.SAID]) == SAID[name]
    # Who is evicted when is known to a second only: a status counts in between, or not.
    assert different[Aspect.RULES].keys() <= {DifferenceClass.TIMING}
    for aspect in (Aspect.WRITES, Aspect.ORDER, Aspect.FINAL):
        assert different[aspect].keys() <= ENDINGS


@draws.in_turn("ways")
async def test_history_can_be_decided_and_verified_as_another_release():
    """The recorded scheduler was a 1.36.2, which does not see rules (C24)."""
    own = await decided("e-taints-rules-ignored", profile="1.36")
    store, history = await loaded("1.36", "e-taints-rules-ignored", "")
    other = await replays.decide(
        store, process_settings.settings(), history, "", silent, profile="1.36.2"
    )
    assert DifferenceClass.IGNORED_RULES in {each.reason for each in own.differences}
    assert DifferenceClass.IGNORED_RULES not in {each.reason for each in other.differences}
    verified = [
        await replays.verify(store, process_settings.settings(), history, "", silent, profile)
        for profile in ("1.36", "1.36.2")
    ]
    assert [report.allocations.agrees for report in verified] == [False, True]


@draws.in_turn("ways")
async def test_replay_decides_the_same_twice_whether_or_not_its_runs_share_events():
    first = await decided("e-taints")
    second = await replay(replays.decide, "e-taints", bounds={"decide_shared_events_max": 0})
    assert first.to_json() == second.to_json()


@draws.in_turn("ways")
@pytest.mark.parametrize("revision", range(150, 340, 19 if draws.WHOLE else 57))
async def test_moment_inside_attempts_leaves_nothing_but_what_comes_after_it(revision):
    report = await replay(replays.decide, "e-taints", moment=str(revision))
    reasons = {found.reason for found in report.differences}
    assert reasons <= {DifferenceClass.AFTER_END, DifferenceClass.RACE}
    for aspect in LITERAL:
        assert report.aspects[aspect].different.keys() <= {DifferenceClass.AFTER_END}


async def test_an_idle_cluster_is_decided_literally():
    report = await decided("a-quickstart")
    same = (Aspect.CONDITIONS, Aspect.SAID, Aspect.ORDER, Aspect.FINAL)
    assert not any(report.aspects[aspect].different for aspect in same)


@pytest.mark.parametrize(
    "name",
    ["c-multihost-tpu", pytest.param("e-taints", marks=draws.in_turn("ways")), "j-api-versions"],
)
async def test_recording_is_decided_to_the_last_write(name):
    """Also which of the collector and the claim controller ends a claim, and in how many writes."""
    report = await decided(name)
    assert [found.to_json() for found in report.differences] == []


@draws.in_turn("wrongs")
async def test_without_the_recorded_pace_races_are_named():
    report = await replay(replays.decide, "b-mig-partitions", pace="virtual")
    assert report.explained
    assert report.aspects[Aspect.NODES].different[DifferenceClass.QUEUE_ORDER] > 0


@draws.BY_DAY
@pytest.mark.parametrize("name", RECORDINGS)
async def test_every_recorded_allocation_is_decided_alike_on_its_node(name):
    report = await replay(replays.verify, name)
    counts = report.allocations.counts
    assert counts.get(ComparisonResult.DIFFERENT, 0) == 0
    assert counts.get(ComparisonResult.NOT_COMPARABLE, 0) == 0
    assert counts[ComparisonResult.SAME] > 0
    assert report.agrees


@draws.in_turn("wrongs")
async def test_audit_lists_placements_against_rules_that_the_scheduler_did_not_see():
    report = await replay(replays.verify, "e-taints-rules-ignored", profile="1.36")
    found = [each for each in report.violations if each.rule == "placement-respects-taints"]
    claims = [each.objects[-1].name.partition("-dev-")[0] for each in found]
    web = {name for name in claims if name.startswith("web-")}
    assert sorted(set(claims) - web) == ["blocked", "n-0", "n-1", "n-2", "n-3"]
    assert len(web) == 2
    assert not report.agrees


@draws.in_turn("wrongs")
async def test_placements_against_unseen_rules_are_listed_as_the_known_mistake_of_the_release():
    report = await replay(replays.verify, "e-taints-rules-ignored", profile="1.36.2")
    found = [each for each in report.violations if each.rule == "placement-respects-taints"]
    claims = {each.objects[-1].name.partition("-dev-")[0] for each in found}
    assert {"blocked", "n-0", "n-1", "n-2", "n-3"} <= claims
    assert {each.kind for each in found} == {ViolationKind.KNOWN}
    assert all("(C24)" in each.message for each in found)
    assert report.outcome is VerifyOutcome.VERIFIED


@draws.in_turn("ways")
async def test_rules_are_honoured_when_the_profile_says_so_and_c24_explains_the_difference():
    report = await decided("e-taints-rules-ignored", profile="1.36")
    assert report.aspects[Aspect.DEVICES].different[DifferenceClass.IGNORED_RULES] == 4
    assert report.aspects[Aspect.EVICTIONS].different == {DifferenceClass.IGNORED_RULES: 3}
    assert report.explained


@draws.in_turn("ways")
async def test_difference_that_is_sought_is_judged_as_in_the_whole_report():
    name = "e-taints-rules-ignored"
    whole = await decided(name)
    listed = {str(each) for each in whole.differences}
    reason, aspect = next(iter({(each.reason, each.aspect) for each in whole.differences}))
    sought = Sought(reason=reason, aspect=aspect.value)
    report = await replay(replays.decide, name, sought=sought)
    assert (reason, aspect) in {(each.reason, each.aspect) for each in report.differences}
    assert {str(each) for each in report.differences} <= listed
    assert report.runs <= whole.runs
    nothing = Sought(reason=DifferenceClass.RACE, aspect=Aspect.RULES.value)
    report = await replay(replays.decide, name, sought=nothing)
    assert (report.differences, report.runs) == ((), 0)


@draws.in_turn("wrongs")
async def test_effect_of_a_switch_that_is_sought_is_proved_before_other_classes_are_tried():
    name, turned = "e-taints-rules-ignored", ("c24=off",)
    whole = await replay(replays.decide, name, quirks=turned)
    reason = "switch --quirk c24=off"
    listed = {str(each) for each in whole.differences if each.reason == reason}
    assert listed
    report = await replay(replays.decide, name, quirks=turned, sought=Sought(reason=reason))
    assert {str(each) for each in report.differences if each.reason == reason} == listed
    assert report.runs == 1
    # Here no rule was ignored: that it was not is known without other hypotheses.
    nothing = Sought(reason=DifferenceClass.IGNORED_RULES)
    report = await replay(replays.decide, name, quirks=turned, sought=nothing)
    assert DifferenceClass.IGNORED_RULES not in {each.reason for each in report.differences}
    assert report.runs <= 2


@draws.in_turn("ways")
async def test_difference_about_another_subject_or_with_another_proof_is_not_the_one_sought():
    name = "e-taints-rules-ignored"
    whole = await decided(name)
    race = next(each for each in whole.differences if each.reason == DifferenceClass.RACE)
    for shown, is_found in (
        ({race.uid: (race.detail,)}, True),
        ({race.uid: ("another proof",)}, False),
        ({"another uid": (race.detail,)}, False),
    ):
        sought = Sought(reason=DifferenceClass.RACE, shown=shown)
        report = await replay(replays.decide, name, sought=sought)
        assert any(each.uid == race.uid for each in report.differences) is is_found, shown


@draws.in_turn("ways")
async def test_placement_that_may_not_differ_ends_the_search_for_a_difference():
    name, turned = "e-taints", ("c24=on",)
    whole = await replay(replays.decide, name, quirks=turned)
    effect = "switch --quirk c24=on"
    placed = {each.uid for each in whole.differences if each.aspect is Aspect.DEVICES}
    assert placed
    owners = {each.owner for each in whole.differences}
    # What a switch does to all of them is known after one run.
    for reason, allowed, runs in (
        (effect, placed | owners, 1),
        (effect, (), 1),
        (DifferenceClass.TIMING, (), 0),
    ):
        sought = Sought(reason=reason, placed=tuple(sorted(allowed)))
        report = await replay(replays.decide, name, quirks=turned, sought=sought)
        assert report.runs == runs
        assert any(each.reason == reason for each in report.differences) is (reason == effect)
