"""Every alteration by which verification is judged, and the verdict that decide must give of it.

The verdicts were fixed before the first run: what changes nothing leaves the verdict as it was;
what no control plane does is unexplained; what is not recorded, or recorded at times that cannot
be, accuses nobody; and neither excuses what it cannot have caused.

Rows come by day: verify judges these alterations on short recordings in each run
(`test_subtle_tampering`, `test_tampered_recordings`), and each row asks decide for the same.
"""

import random
import re

import pytest

from app.analysis.replay.classes import DifferenceClass
from app.analysis.replay.differences import Aspect
from app.analysis.replay.report import Agreement
from app.bootstrap import process_settings, replays, stores
from app.domain.log.records import Loss
from app.service.replays.verifying import VerifyOutcome
from tests import draws
from tests.conformance import selection, tampering
from tests.conformance import subtle_tampering as subtle
from tests.conformance import test_subtle_tampering as subtly
from tests.conformance import test_tampered_recordings as coarsely
from tests.kept import Kept

pytestmark = pytest.mark.timeout(0)
"""Runs are bounded in number; how long they take is a matter of the machine."""

SHORT = ("a-quickstart", "j-api-versions")
LONGER = ("c-multihost-tpu", "e-taints")
LONG = ("b-mig-partitions", "e-taints-rules-ignored")

NAMES = (*SHORT, *LONGER, *(LONG if draws.WHOLE else ()))
"""What alterations are tried on: in a normal run, one of them each (`selection`)."""

HARMLESS = (*subtly.HARMLESS, *coarsely.HARMLESS)

WRONG = (
    *(alter for alter, _ in coarsely.WRONG),
    *subtly.DIFFERENT,
    *(alter for alter, _ in subtly.BROKEN),
)

UNFIT = (tampering.bind_again, *subtly.UNFIT)
"""After these the lines do not fit together: whether that is a lack or a wrong write is open."""

LACKING = (tampering.drop_bodies, tampering.drop_answers, subtle.drop_a_release)
"""These leave out what was written: nothing that follows accuses anybody."""

DOUBTFUL = (subtle.shift_clock_of_a_server, subtle.drop_a_release, tampering.drop_bodies)
"""Doubts that may hide something, and must not."""


def give_a_tainted_device(lines, draw):
    """A device that was allocated had a taint all the time that its claim does not tolerate."""
    allocated = draw.choice(tampering.allocations(lines))
    picked = allocated.results[0]
    taint = {"key": "example.com/planted", "effect": "NoSchedule"}
    for line in tampering.of(lines, "resourceslices"):
        for tree in tampering.bodies(line):
            spec = tree.get("spec", {})
            if spec.get("pool", {}).get("name") == picked["pool"]:
                for device in spec.get("devices") or ():
                    if device["name"] == picked["device"]:
                        device.get("basic", device)["taints"] = [taint]
    return f"{picked['pool']}/{picked['device']} of {allocated.claim} has a taint"


OPEN = ((subtle.move_to_a_later_equal, tampering.drop_bodies),)
"""A claim whose devices nobody knows may hold the earlier device."""

ONCE_HIDDEN = (
    draws.repeated("e-taints", subtle.defuse_rules),
    ("e-taints", subtle.reserve_for_who_went),
    ("c-multihost-tpu", subtle.bind_before_allocation),
    draws.repeated("a-quickstart", subtle.bind_before_allocation),
    draws.repeated("e-taints", subtle.bind_before_allocation),
)
"""Wrong decisions that decide left not comparable beside a wrong clock."""

ONCE_EXCUSED = [
    row
    for lack in (tampering.drop_bodies, tampering.drop_bodies_beside)
    for row in (("c-multihost-tpu", lack), draws.repeated("a-quickstart", lack))
]
"""An allocation without its node selector was excused by the lost body of another claim, which may
say who has the devices and not what their allocation is like, or of a Deployment."""

ONCE_A_GATE = (
    ("a-quickstart", subtle.shift_clock_of_a_server),
    ("a-quickstart", subtle.drop_a_release),
)
"""A taint that was ignored came out as `gate DRADeviceTaints=false` beside these doubts, though the
taint was stored, which a server without the gate does not do."""

PLANTED = (
    tampering.give_device_twice,
    tampering.give_unknown_device,
    tampering.reserve_for_a_ghost,
    tampering.change_a_spec,
    subtle.take_a_result_away,
    subtle.move_to_a_later_equal,
    give_a_tainted_device,
    tampering.shrink_counters,
)
"""Decisions that nobody makes, whatever is missing and however late it is."""

ABSENT = {
    **subtly.ABSENT,
    tampering.shrink_counters: (
        "a-quickstart",
        "j-api-versions",
        "e-taints",
        "e-taints-rules-ignored",
    ),
}


def rows(alter, names=NAMES):
    fit = [name for name in names if name not in ABSENT.get(alter, ())]
    return [(name, alter, seed) for name in selection.by_work(fit) for seed in draws.seeds(1)]


def rows_of_one(alterations, names):
    """The rows of one recording for each alteration; all with more draws.

    What fits busy recordings alone is judged by verify in `test_subtle_tampering`, and here where
    it stands beside a doubt.
    """
    rows_of_each = draws.first_of_each(rows(alter, names) for alter in alterations)
    return [row for row in rows_of_each if draws.WHOLE or row[0] not in selection.BUSY]


def altered(name, alterations, seed, again=""):
    """The lines of a recording after each alteration, with the alteration's description.

    A body that is left out is not that of the allocation that was altered before: then nothing of
    the alteration would be left.
    """
    lines = subtly.read(name)
    told = [
        alter(lines, random.Random(f"{'then ' * number}{name} {seed}{again if number else ''}"))
        for number, alter in enumerate(alterations)
    ]
    if alterations[1:] == (tampering.drop_bodies,):
        first, second = (set(re.findall(r"\('.*?', '.*?'\)", text)) for text in told)
        if first & second:
            return altered(name, alterations, seed, f"{again} again")
    return lines, told


async def decide(name, alterations, seed, folder):
    lines, told = altered(name, alterations, seed)
    store = stores.memory_store()
    settings = process_settings.settings(profile=subtly.PROFILES[name])
    path = tampering.write(lines, folder / "audit.jsonl")
    history = await replays.load_files(store, settings, (path,))
    report = await replays.decide(store, settings, history, "", lambda *_: None)
    found = [(each.aspect.value, each.subject, each.reason) for each in report.differences]
    return report, (told, found[:20])


_STRAIGHT = Kept()


async def straight(name, folder):
    if name not in _STRAIGHT:
        _STRAIGHT[name], _ = await decide(name, (), 0, folder)
    return _STRAIGHT[name]


@draws.BY_DAY
@pytest.mark.parametrize(("name", "alter", "seed"), rows_of_one(HARMLESS, NAMES))
async def test_what_changes_nothing_leaves_the_verdict(name, alter, seed, tmp_path):
    plain = await straight(name, tmp_path)
    report, told = await decide(name, (alter,), seed, tmp_path)
    assert report.agreement is plain.agreement, told
    for aspect in (Aspect.NODES, Aspect.DEVICES, Aspect.EVICTIONS, Aspect.RULES):
        assert report.aspects[aspect] == plain.aspects[aspect], told


@draws.BY_DAY
@pytest.mark.parametrize(("name", "alter", "seed"), rows_of_one(WRONG, NAMES))
async def test_what_no_control_plane_does_is_unexplained(name, alter, seed, tmp_path):
    report, told = await decide(name, (alter,), seed, tmp_path)
    assert not report.explained, told


@draws.BY_DAY
@pytest.mark.parametrize(("name", "alter", "seed"), rows_of_one(UNFIT, NAMES))
async def test_lines_that_do_not_fit_together_never_agree(name, alter, seed, tmp_path):
    report, told = await decide(name, (alter,), seed, tmp_path)
    assert report.agreement is Agreement.PARTLY or not report.explained, told


@draws.in_turn("ways")
@pytest.mark.parametrize(("name", "alter", "seed"), rows_of_one(LACKING, (*SHORT, *LONGER)))
async def test_what_was_not_recorded_accuses_nobody(name, alter, seed, tmp_path):
    report, told = await decide(name, (alter,), seed, tmp_path)
    assert report.agreement is Agreement.PARTLY, told
    assert report.to_json()["certainty"] == "unsure"


@draws.in_turn("wrongs")
@pytest.mark.parametrize(
    ("name", "alter", "seed"),
    draws.by_turns(
        [(name, alter, seed) for alter in subtly.SHIFTED for seed in range(2)]
        for name in (*SHORT, *LONGER)
    ),
)
async def test_wrong_clock_accuses_nobody_and_is_named(name, alter, seed, tmp_path):
    report, told = await decide(name, (alter,), seed, tmp_path)
    assert report.explained, told
    assert not [
        each for each in report.differences if each.reason == DifferenceClass.NOT_COMPARABLE
    ], told
    assert Loss.TIMES_CONTRADICT in {each.code for each in report.doubts}
    assert report.to_json()["certainty"] == "unsure"


@draws.BY_DAY
@pytest.mark.parametrize(
    ("name", "alter", "seed", "doubt"),
    draws.by_turns(
        [(*row, doubt) for doubt in DOUBTFUL if (row[1], doubt) not in OPEN]
        for row in draws.first_of_each(rows(alter, (*SHORT, *LONGER)) for alter in PLANTED)
    ),
)
async def test_no_doubt_excuses_what_it_cannot_have_caused(name, alter, seed, doubt, tmp_path):
    report, told = await decide(name, (alter, doubt), seed, tmp_path)
    assert not report.explained, told


@draws.in_turn("wrongs")
@pytest.mark.parametrize(("name", "alter"), ONCE_HIDDEN)
async def test_no_wrong_clock_hides_what_order_tells(name, alter, tmp_path):
    report, told = await decide(name, (alter, subtle.shift_clock_of_a_server), 0, tmp_path)
    assert not report.explained, told


@draws.in_turn("wrongs")
@pytest.mark.parametrize(("name", "lack"), ONCE_EXCUSED)
async def test_what_is_not_recorded_of_others_excuses_no_content(name, lack, tmp_path):
    alterations = (subtle.forget_node_selector, lack)
    report, told = await decide(name, alterations, 0, tmp_path)
    assert not report.explained, told
    lines, told = altered(name, alterations, 0)
    verified = await subtly.verified(name, lines, tmp_path)
    assert verified.outcome is VerifyOutcome.FAILED, told
    assert [each.path for each in verified.allocations.differences] == ["nodeSelector"], told


@draws.in_turn("ways")
@pytest.mark.parametrize(("name", "doubt"), ONCE_A_GATE)
async def test_gate_of_what_was_stored_explains_nothing(name, doubt, tmp_path):
    report, told = await decide(name, (give_a_tainted_device, doubt), 0, tmp_path)
    assert not report.explained, told
    assert not [each for each in report.differences if "DRADeviceTaints=false" in each.reason]
    assert not [each for each in report.differences if each.reason.startswith("profile")], told


@draws.in_turn("wrongs")
async def test_counters_that_were_never_enough_are_not_excused_by_a_clock(tmp_path):
    alterations = (tampering.shrink_counters, subtle.shift_clock_of_a_server)
    report, told = await decide("c-multihost-tpu", alterations, 0, tmp_path)
    assert not report.explained, told
    assert any("overdrawn" in problem for problem in report.violations.values())


@draws.in_turn("wrongs")
@pytest.mark.parametrize(("name", "alter"), [(name, tampering.shrink_counters) for name in SHORT])
def test_what_is_left_out_has_nothing_to_alter(name, alter):
    lines = subtly.read(name)
    alter(lines, random.Random(0))
    assert lines == subtly.read(name)
