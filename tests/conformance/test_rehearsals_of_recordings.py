"""Rehearsals of recordings: no change under their own release, the known changes under 1.37.

Recordings that are decided alike come by day.
"""

from dataclasses import replace

import pytest

from app.analysis.diff import text as diff_text
from app.analysis.diff.causes import Proof, RootKind
from app.analysis.diff.classes import Class
from app.analysis.diff.report import DiffReport
from app.analysis.explain import pages
from app.analysis.rehearse import text
from app.analysis.rehearse.report import Rehearsal
from app.analysis.replay.classes import DifferenceClass
from app.bootstrap import replays
from app.bootstrap.answers import differences as answers
from app.bootstrap.answers import rehearsals
from app.bootstrap.stores import Store
from app.domain.log import Revision
from app.service.diffing import ComparisonAspect
from app.service.replays.deciding.replay import Pacing
from app.settings import Settings
from tests import draws
from tests.conformance.recordings import RECORDINGS
from tests.conformance.test_decide_recordings import PARTS, PROFILES, replay
from tests.kept import Kept

pytestmark = pytest.mark.timeout(0)
"""Runs are bounded in number; how long they take is a matter of the machine."""

CALM = ("a-quickstart", "b-mig-partitions", "c-multihost-tpu", "e-taints", "j-api-versions")
"""Recordings in which no rule of 1.36 decided that 1.37 has not.

The longest is also decided as the next release, by
`test_difference_of_messages_alone_has_no_parting_and_no_root`.
"""

LONGEST = "b-mig-partitions"
"""Its rehearsals come with more draws; worlds in which a machine planted the gate of partitions
and releases in which nothing changes are in `tests/simulation/test_rehearsals.py`."""

FREED = ("still not schedulable,", "no new claims to deallocate,")
"""What 1.36 adds to a refusal and 1.37 does not (r8)."""


_REHEARSALS: Kept[tuple[str, str], Rehearsal] = Kept()
"""Each made once: no test changes one."""


async def rehearsed(name: str, release: str) -> Rehearsal:
    async def work(store: Store, settings: Settings, history: str, *_: object) -> Rehearsal:
        return await rehearsals.rehearse(store, settings, history, release)

    if (name, release) not in _REHEARSALS:
        _REHEARSALS[name, release] = await replay(work, name)
    return _REHEARSALS[name, release]


@draws.in_turn("ways")
@pytest.mark.parametrize(
    "name", RECORDINGS if draws.WHOLE else [name for name in PARTS if name != LONGEST]
)
async def test_nothing_changes_under_the_release_of_the_recording(name: str) -> None:
    report = await rehearsed(name, PROFILES.get(name, "1.36"))
    assert report.is_quiet, report.to_json()
    assert (list(report.aside), list(report.unapplied)) == ([], [])
    # What is said of a change is worth something: the decisions are those of the recording.
    assert list(report.unlike) == []
    assert report.compared["nodes"] >= 5
    assert report.compared["devices"] >= 5
    assert report.compared["nodes"] == report.decided["nodes"]
    assert report.outcome == "nothing changes"
    # Where no decision came out as it was, or nothing had happened, that says nothing.
    for blind in (
        replace(report, compared=dict.fromkeys(report.compared, 0)),
        replace(report, compared={}, decided={}, revision=Revision(0)),
    ):
        assert (blind.is_blind, blind.outcome) == (True, "nothing could be compared")
    assert not replace(report, compared={}, decided={}).is_blind
    # What the other release alone could not do, or does to a pod unsurely, is not nothing.
    assert not replace(report, unapplied=["an input"]).is_quiet
    assert not replace(report, aside=["a difference"]).is_quiet


@draws.in_turn("ways")
@pytest.mark.parametrize("name", [name for name in CALM if draws.WHOLE or name != LONGEST])
async def test_next_release_changes_no_decision_of_calm_recordings(name: str) -> None:
    report = await rehearsed(name, "1.37")
    assert report.diff.is_same, report.diff.to_json()["differences"]
    assert (list(report.refused), list(report.dropped), list(report.versions)) == ([], [], [])
    # An error of a selector says at which device it was, and what helps.
    errors = "CEL runtime error"
    for each in report.contents.texts:
        is_error = errors in each.before and errors in each.after
        assert is_error or (each.before in FREED and not each.after), each
    # Entries of configurations lose the requests that they name (allocator.md 10.2).
    config = "resourceclaims status.allocation.devices.config"
    assert {each.what for each in report.contents.fields} <= {config}
    assert (name == "j-api-versions") is bool(report.contents.fields)
    if report.contents.texts and not report.contents.fields:
        assert text.head_of(report).endswith("no pod has another outcome; only texts change")
        assert not report.is_quiet


OLDER = {
    # name and release: what the pages of parity say of the difference that decides there
    ("a-quickstart", "1.35"): "quirk r5: off → on",  # controllers.md 4.5: the balance
    ("b-mig-partitions", "1.35"): "gate DRAPartitionableDevices: true → false",  # allocator.md 15
    ("e-taints-rules-ignored", "1.36"): "quirk c24: on → off",
}


@draws.in_turn("wrongs")
@pytest.mark.parametrize("case", [case for case in OLDER if draws.WHOLE or case[0] != LONGEST])
async def test_one_setting_is_named_for_each_change_of_an_older_release(
    case: tuple[str, str],
) -> None:
    report = await rehearsed(*case)
    assert report.diff.differences
    for each in report.diff.differences:
        assert each.proof == Proof(settings=(OLDER[case],)), each.pair.name
    assert {root.text for root, _ in report.diff.roots() if root.kind is RootKind.SETTINGS} <= {
        OLDER[case]
    }
    assert report.trials > 0 or case[1] == "1.36"
    shown = "\n".join(pages.of_json(text.page_json(report), 100))
    assert OLDER[case] in " ".join(shown.replace("│", "").split())


@draws.in_turn("ways")
async def test_texts_of_the_next_release_are_put_to_what_changes_them() -> None:
    report = await rehearsed("a-quickstart", "1.37")
    by = {each.before: report.proof(("text", *each.words)) for each in report.contents.texts}
    assert {by[text] for text in FREED} == {Proof(settings=("quirk r8: on → off",))}
    (error,) = (each for each in report.contents.texts if each.before not in FREED)
    proof = by[error.before]
    assert proof is not None
    (setting,) = proof.settings
    assert setting.startswith("rule selector-errors: off → on")


async def decided_again(name: str, profile: str, pace: Pacing) -> DiffReport:
    async def work(store: Store, settings: Settings, history: str, *_: object) -> DiffReport:
        by = ComparisonAspect.DECISIONS
        report = await answers.diff_again(store, settings, history, "", by, 1.0, None, pace)
        assert isinstance(report, DiffReport)
        return report

    return await replay(work, name, profile=profile)


@draws.in_turn("ways")
async def test_recording_of_a_repaired_scheduler_is_told_by_its_switch() -> None:
    """The scheduler of e-taints saw rules, which those of 1.36.2 do not."""
    report = await decided_again("e-taints", "1.36.2", Pacing.RECORDED)
    assert len(report.differences) == 6
    assert report.unexplained == 0
    roots = [*report.roots(), *report.texts()]
    assert {(root.kind, root.name) for root, _ in roots} == {(RootKind.RUN, "quirk c24=off")}
    assert {each.root.name for each in report.differences} == {"quirk c24=off"}
    shown = " ".join(diff_text.reasons_of(report)[0].text.split())
    assert shown.startswith("quirk c24=off: the recorded scheduler saw rules")


@draws.in_turn("ways")
async def test_pods_of_one_instant_in_another_order_are_told_as_that() -> None:
    """Without the recorded pace pods that came together are tried in another order."""
    report = await decided_again("b-mig-partitions", "1.36", Pacing.VIRTUAL)
    placed = [each for each in report.differences if not each.is_about_words]
    assert placed
    assert report.unexplained == 0
    names = {each.root.name for each in placed}
    assert DifferenceClass.QUEUE_ORDER in names
    assert names <= {
        DifferenceClass.QUEUE_ORDER,
        DifferenceClass.RACE,
        DifferenceClass.TIMING,
        DifferenceClass.FOLLOWS,
    }


@draws.in_turn("wrongs")
async def test_seven_placements_against_rules_are_named() -> None:
    name = "e-taints-rules-ignored"
    audit = await replay(replays.verify, name, profile="1.36")
    forbidden = {
        f"taints/{each.objects[-1].name.partition('-dev-')[0]}"
        for each in audit.violations
        if each.rule == "placement-respects-taints"
    }
    assert len(forbidden) == 7
    report = await rehearsed(name, "1.37")
    fared = {each.pair.name: each for each in report.diff.differences}
    assert forbidden <= fared.keys()
    assert Class.SAID not in {found for each in fared.values() for found in each.classes[:1]}
    for pod in fared.keys() - forbidden:
        assert forbidden & {link.pair.name for link in fared[pod].chain}, pod
    (gone,) = report.defects.changing
    assert (gone.incident, gone.number, gone.after) == ("rules-not-seen", "C24", None)
    assert gone.before is not None
    assert gone.before.times == 7


RELEASES = ("1.34", "1.35", "1.36", "1.36.2", "1.37")


@draws.in_turn("wrongs")
@pytest.mark.parametrize("release", RELEASES if draws.WHOLE else ("1.36.2",))
@pytest.mark.parametrize("name", CALM if draws.WHOLE else ("e-taints",))
async def test_rehearsal_is_of_the_release_that_was_named(name: str, release: str) -> None:
    report = await rehearsed(name, release)
    assert report.target == release
    assert f"under {release} " in text.head_of(report)
    # A patch release is named for what it does not see; no switch of the recording undoes that.
    sees_rules = release != "1.36.2"
    if name == "e-taints":
        assert sees_rules is ("c24" not in report.defects.introduced)
        assert sees_rules or report.diff.differences
    notes = " ".join(text.notes_of(report))
    assert sees_rules or "they are kept: quirk c24" not in notes


@draws.in_turn("ways")
async def test_devices_at_which_worlds_part_are_those_that_were_given() -> None:
    report = await rehearsed("e-taints", "1.36.2")
    given: list[str] = []
    for each in report.diff.differences:
        parting = each.parting
        if parting is None or not parting.device:
            continue
        for said, course in ((parting.a, each.pair.a), (parting.b, each.pair.b)):
            placed = None if course is None else course.placed
            if said == "chosen" and placed and placed.at.time == each.parted.time:
                devices = {device.device for device in placed.devices}
                assert parting.device in devices, each.pair.name
                given.append(each.pair.name)
    assert len(given) >= 3
