"""The report of a verification, joined from what its passes and parts give.

What each input must give is written down beside it, from the texts of the classes.
"""

import itertools
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from app.adapters.memory import MemoryLog, MemoryStore
from app.analysis.verify.compare import ComparisonCounts, ComparisonResult
from app.analysis.verify.invariants.placements import Switches
from app.analysis.verify.invariants.violations import Moment, Violation, ViolationKind
from app.analysis.verify.parts import Division, PartFindings
from app.domain.allocation import Quirks
from app.domain.log import (
    Actor,
    Draft,
    EventType,
    Head,
    HistoryId,
    HistoryInfo,
    ObjectKey,
    Revision,
    Stamp,
)
from app.domain.log.chain import genesis_of, seal
from app.domain.log.doubts import Affects, Doubt
from app.domain.log.event import GENESIS
from app.domain.objects.profile import Profile
from app.domain.values.identifiers import Uid
from app.domain.values.timestamps import Instant
from app.service.replays import verifying
from app.service.replays.first_pass import FirstPass
from app.service.replays.integrity import Integrity, SettingsProof
from app.service.replays.replaying import ReplayBounds
from app.service.replays.verifying import VIOLATIONS_MAX, VerifyOutcome, VerifyReport

SAME, CONCURRENT = ComparisonResult.SAME, ComparisonResult.CONCURRENT
OTHER, NOT_COMPARABLE = ComparisonResult.DIFFERENT, ComparisonResult.NOT_COMPARABLE
BROKEN, LATE, OUTSIDE = ViolationKind.BROKEN, ViolationKind.LATE, ViolationKind.OUTSIDE
KNOWN, UNSURE = ViolationKind.KNOWN, ViolationKind.UNSURE
WHOLE = Integrity(head="h", settings=SettingsProof.ANCHORED)


def counts(**by: int) -> ComparisonCounts:
    numbers = {ComparisonResult[name]: count for name, count in by.items()}
    return ComparisonCounts(counts=numbers, differences=(), reasons={})


def violation(kind: ViolationKind, begin: int) -> Violation:
    moment = Moment(revision=Revision(begin), time=Instant(begin))
    return Violation(
        rule="device-in-one-claim", kind=kind, objects=(), message="", begin=moment, end=None
    )


def part(revision: int, events: int, **more: ComparisonCounts) -> PartFindings:
    compared = {"decisions": counts(), "effects": counts(), "allocations": counts(), **more}
    return PartFindings(revision=Revision(revision), events=events, **compared)


def report(
    parts: list[PartFindings] | None = None,
    invariants: tuple[Violation, ...] = (),
    writes: tuple[Violation, ...] = (),
    settings: dict[str, Any] | None = None,
    chain: Integrity = WHOLE,
    **first: Any,
) -> VerifyReport:
    watches = {
        name: SimpleNamespace(violations=lambda rows=rows: list(rows))
        for name, rows in (("invariants", invariants), ("writes", writes))
    }
    ahead = FirstPass(division=Division(), **watches, **first)
    history = HistoryInfo(id=HistoryId(1), name="prod", settings=settings or {})
    return verifying._report(ahead, history, chain, parts or [part(9, 9)])


def test_parts_are_one_report() -> None:
    joined = report(
        [
            part(4, 4, decisions=counts(SAME=1), effects=counts(SAME=2)),
            part(9, 5, decisions=counts(SAME=3, CONCURRENT=1), allocations=counts(SAME=7)),
        ]
    )
    assert (joined.history, joined.revision, joined.events) == ("prod", 9, 9)
    assert joined.decisions.counts == {SAME: 4, CONCURRENT: 1}
    assert joined.effects.counts == {SAME: 2}
    assert joined.allocations.counts == {SAME: 7}
    assert (joined.chain, joined.outcome) == (WHOLE, VerifyOutcome.VERIFIED)


@pytest.mark.parametrize(
    ("begin", "counted"),
    [
        (0, {BROKEN: 2, UNSURE: 1, OUTSIDE: 1}),
        (4, {BROKEN: 2, UNSURE: 1, OUTSIDE: 1}),
        (5, {BROKEN: 2, OUTSIDE: 1}),
        (6, {BROKEN: 1, OUTSIDE: 1}),
        (8, {}),
    ],
    ids=["no fork", "all are its own", "one began with the parent", "two did", "nothing is new"],
)
def test_fork_answers_for_what_began_after_its_beginning(begin, counted) -> None:
    """The first own event itself tells of the fork; what it meets is of the parent."""
    joined = report(
        invariants=(violation(UNSURE, 5), violation(BROKEN, 6), violation(OUTSIDE, 8)),
        writes=(violation(BROKEN, 7),),
        begin=Revision(begin),
    )
    assert joined.violations_counts == counted
    assert Counter(each.kind for each in joined.violations) == counted
    assert joined.judged_after == begin
    assert joined.violations_count == counted.get(BROKEN, 0)


def test_failures_are_named_first_and_all_are_counted() -> None:
    mild = [violation(OUTSIDE, number) for number in range(1, VIOLATIONS_MAX + 1)]
    graver = (violation(BROKEN, 500), violation(LATE, 600))
    joined = report(invariants=(*mild, graver[0]), writes=(graver[1],))
    assert joined.violations == (*graver, *mild[:-2])
    assert joined.violations_counts == {OUTSIDE: VIOLATIONS_MAX, BROKEN: 1, LATE: 1}
    assert joined.violations_count == 2


@pytest.mark.parametrize(
    ("settings", "is_imported", "begin", "is_recorded"),
    [
        ({"recorded": True}, True, 0, True),
        ({"recorded": True}, False, 3, True),
        ({}, True, 0, True),
        ({}, True, 3, False),
        ({}, False, 0, False),
    ],
    ids=["a recording", "a fork that says so", "an old import", "a fork of an import", "our own"],
)
def test_writes_that_nobody_judges_are_those_of_recordings(
    settings, is_imported, begin, is_recorded
) -> None:
    joined = report(settings=settings, is_imported=is_imported, begin=Revision(begin))
    assert joined.is_recorded is is_recorded
    assert bool(joined.to_json()["notJudged"]) is is_recorded


VERIFIED, PARTLY, FAILED = VerifyOutcome.VERIFIED, VerifyOutcome.PARTLY, VerifyOutcome.FAILED
BREACH = Integrity(head="h", settings=SettingsProof.ANCHORED, problems=("cut",), problems_count=1)
OUTCOMES = [
    ("nothing to say", {}, VERIFIED),
    ("a breach of the chain", {"chain": BREACH}, FAILED),
    *((str(kind), {"invariants": (violation(kind, 2),)}, outcome)
      for kind, outcome in ((BROKEN, FAILED), (LATE, FAILED), (OUTSIDE, VERIFIED),
                            (KNOWN, VERIFIED), (UNSURE, PARTLY))),
    *((f"{result} among {what}", {"parts": [part(9, 9, **{what: counts(**{result: 1})})]}, outcome)
      for what in ("decisions", "effects", "allocations")
      for result, outcome in (("SAME", VERIFIED), ("CONCURRENT", VERIFIED),
                              ("NOT_COMPARABLE", PARTLY), ("DIFFERENT", FAILED))),
]  # fmt: skip


@pytest.mark.parametrize(
    ("inputs", "outcome"), [row[1:] for row in OUTCOMES], ids=[row[0] for row in OUTCOMES]
)
def test_outcome_is_the_worst_of_what_was_met(inputs, outcome) -> None:
    joined = report(**inputs)
    assert joined.outcome is outcome
    assert joined.agrees is (outcome is not FAILED)
    shown = joined.to_json()
    assert (shown["outcome"], shown["agrees"]) == (outcome.value, outcome is not FAILED)


@pytest.mark.parametrize(
    ("affects", "certainty", "outcome"),
    [(Affects.CONTENT, "unsure", PARTLY), (Affects.TIME, "sure", VERIFIED)],
)
def test_doubts_of_the_recording_travel_with_the_report(affects, certainty, outcome) -> None:
    doubt = Doubt(code="x", affects=affects, kind="", count=1, text="a line is lost")
    joined = report(recorded=(doubt,))
    assert joined.doubts == (doubt,)
    assert joined.to_json()["certainty"] == certainty
    assert (joined.outcome, joined.agrees) == (outcome, True)


async def stored_log(*, is_anchored: bool, is_altered: bool) -> tuple[MemoryLog, HistoryInfo]:
    """A log of three events, whose chain begins with the settings of its history or not."""
    log = MemoryLog(MemoryStore())
    info = await log.create_history("h", seed=1, settings={"recorded": True}, created=Instant(0))
    previous, events = genesis_of(info) if is_anchored else GENESIS, []
    for number in (1, 2, 3):
        key = ObjectKey("", "configmaps", "default", f"c{number}")
        stamp = Stamp(time=Instant(number), actor=Actor(user="u"), verb="create")
        draft = Draft(
            type=EventType.OBJECT_CREATED, key=key, uid=Uid(""), tree={"data": {}}, stamp=stamp
        )
        events.append(seal(draft, Revision(number), previous))
        previous = b"x" * 32 if is_altered and number == 2 else events[-1].hash
    await log.append(info.id, expected=Head(), events=events)
    return log, info


@pytest.mark.parametrize(
    ("is_anchored", "is_altered", "problem", "said"),
    [
        (True, False, "", ""),
        (True, False, "unknown setting", ""),
        (False, False, "", ""),
        (False, False, "unknown setting", "unknown setting"),
        (True, True, "", "3"),
        (True, True, "unknown setting", "3"),
    ],
)
async def test_settings_that_are_not_known_count_as_altered_unless_the_chain_has_them(
    is_anchored, is_altered, problem, said
) -> None:
    log, info = await stored_log(is_anchored=is_anchored, is_altered=is_altered)
    joined = await verifying.verify_stored(log, info, bounds=ReplayBounds(), problem=problem)
    assert (joined.history, joined.revision, joined.events) == ("h", 3, 3)
    assert joined.outcome is (FAILED if said else VERIFIED)
    assert said in joined.chain.problem
    assert bool(joined.chain.problem) is bool(said)
    assert joined.is_recorded
    assert (joined.decisions.total, joined.effects.total, joined.allocations.total) == (0, 0, 0)


ALL_GATES = {
    "DRADeviceTaints": True,
    "DRADeviceTaintRules": True,
    "DRAAdminControlledDeviceAttributes": True,
    "DRADeviceBindingConditions": True,
}
SETTLED = Switches()
FEW = Quirks(q6=False)


@pytest.mark.parametrize(
    ("gates", "settings", "quirks", "expected"),
    [
        ({}, None, FEW, SETTLED),
        ({"DRADeviceTaints": False}, None, FEW, replace(SETTLED, rules=False, taints=False)),
        ({"DRADeviceTaintRules": False}, None, FEW, replace(SETTLED, rules=False)),
        (
            {"DRAAdminControlledDeviceAttributes": False},
            None,
            FEW,
            replace(SETTLED, patches=False),
        ),
        ({"DRADeviceBindingConditions": False}, None, FEW, replace(SETTLED, waits=False)),
        ({}, None, Quirks(q6=True), replace(SETTLED, distinct_by_last=True)),
        ({}, {"profile": "1.37"}, FEW, replace(SETTLED, stops=True)),
        ({}, {"profile": "1.37", "paced": True}, FEW, SETTLED),
        ({}, {"recorded": True}, FEW, replace(SETTLED, rules_open=True)),
        ({}, {"recorded": True, "gates": {"DRADeviceTaintRules": True}}, FEW, SETTLED),
    ],
)
def test_switches_of_the_invariants_follow_gates_settings_and_quirks(
    gates: dict[str, bool], settings: dict[str, object] | None, quirks: Quirks, expected: Switches
) -> None:
    profile = Profile(version="1.37", gates={**ALL_GATES, **gates})
    assert verifying.switches_of(profile, quirks, settings) == expected


def test_rules_that_the_scheduler_does_not_see_are_in_force() -> None:
    """Parity: controllers.md C24."""
    for enabled in (True, False):
        profile = Profile(version="1.36.0", gates={**ALL_GATES, "DRADeviceTaintRules": enabled})
        switches = verifying.switches_of(profile, FEW)
        assert (switches.rules, switches.rules_unseen) == (enabled, True)


@pytest.mark.parametrize("is_kept", [True, False])
def test_workers_get_the_kept_events_while_this_process_keeps_all_of_them(is_kept: bool) -> None:
    handed: list[tuple[Any, Any]] = []
    kept: Any = SimpleNamespace(keep=lambda _: is_kept)
    workers: Any = SimpleNamespace(keep=lambda *given: handed.append(given))
    events: Any = ["event"]
    verifying._keeping(kept, workers)(events)
    assert handed == [(events, kept if is_kept else None)]
    verifying._keeping(kept, None)(events)
    assert len(handed) == 1


async def test_progress_of_all_parts_is_told_as_if_they_were_verified_in_a_row() -> None:
    """Each part tells how far it is; it counts from where it begins, and to its end at last."""
    told: list[tuple[int, int]] = []
    parts: Any = [
        SimpleNamespace(after=Revision(after), until=Revision(until))
        for after, until in ((0, 40), (40, 90), (90, 100))
    ]
    progress = verifying._PartsProgress(
        parts, Revision(100), lambda _, at, until: told.append((at, until))
    )

    async def start(_: Any) -> None:
        """Starts nobody."""

    async def verify(others: Any, reached: Any) -> Any:
        assert others == parts[1:]
        reached(0, Revision(60))
        reached(1, Revision(85))  # folded up to there, not checked
        reached(1, Revision(95))
        return ["second", "third"]

    async def here() -> Any:
        progress.reached(0, Revision(40))
        return "first"

    workers: Any = SimpleNamespace(start=start, verify=verify)
    assert await verifying._divided(parts, here, workers, progress) == ["first", "second", "third"]
    assert {until for _, until in told} == {100}
    assert max(at for at, _ in told) == 100
    steps = [later - earlier for (earlier, _), (later, _) in itertools.pairwise(told)]
    assert sorted(each for each in [told[0][0], *steps] if each) == [5, 5, 20, 30, 40]
