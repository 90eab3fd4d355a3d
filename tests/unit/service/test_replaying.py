"""Replay: what verification finds in sound, damaged and foreign histories."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.adapters.memory import MemoryLog, MemoryStore
from app.analysis.verify.compare import ComparisonResult, first_difference
from app.analysis.verify.parts import Deciders
from app.analysis.views import features_of
from app.bootstrap.rules import rules_for
from app.domain.controllers import reconcilers
from app.domain.devices.cel_selectors import CelCompiler
from app.domain.log import Actor, Draft, Event, EventType, Head, HistoryInfo, ObjectKey, Revision
from app.domain.log.chain import seal
from app.domain.log.event import GENESIS, Origin
from app.domain.objects.profile import Profile
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from app.ports import Match, Opinion
from app.service import importing
from app.service.replays import replaying, verifying
from app.service.replays.replaying import FoldReport, ReplayBounds
from app.service.replays.second_opinion import SecondReader
from app.service.replays.verifying import VerifyOutcome, VerifyReport
from projections import all_projections
from tests import draws
from tests.cluster import Cluster
from tests.shared_data import shared_path

BOUNDS = ReplayBounds(page_max=50)
Change = Callable[[Event, JsonObject], None]


def story() -> Cluster:
    """Pods fill two nodes; a rule evicts; the rule goes; a late pod finds less than before."""
    cluster = Cluster()
    for node in ("n1", "n2"):
        cluster.node(node)
        cluster.slice(node, 2)
    cluster.device_class()
    cluster.template()
    for number in range(5):
        cluster.pod(f"p{number}", template="gpu")
    cluster.wait(5)
    cluster.finish("p1")
    cluster.wait(2)
    cluster.rule("bad", selector={"pool": "n1"})
    cluster.wait(15)
    for name in cluster.names("pods"):
        if "deletionTimestamp" in cluster.must("pods", name)["metadata"]:
            cluster.kill(name)
    cluster.wait(20)
    cluster.delete("devicetaintrules", "bad")
    cluster.pod("late", template="gpu")
    cluster.wait(20)
    return cluster


@pytest.fixture(scope="module")
def told() -> Cluster:
    return story()


def resealed(events: Sequence[Event], change: Change) -> list[Event]:
    """The events with trees changed by a hand that keeps the chain whole."""
    made: list[Event] = []
    previous = GENESIS
    for event in events:
        tree = json_tree.copy(event.object)
        change(event, tree)
        draft = Draft(type=event.type, key=event.key, uid=event.uid, tree=tree, stamp=event.stamp)
        made.append(seal(draft, event.revision, previous))
        previous = made[-1].hash
    return made


async def history_of(
    events: Sequence[Event], settings: JsonObject | None = None
) -> tuple[MemoryLog, HistoryInfo]:
    log = MemoryLog(MemoryStore())
    info = await log.create_history("h", seed=1, settings=settings or {}, created=Instant(0))
    await log.append(info.id, expected=Head(), events=events)
    return log, info


async def verify(
    log: MemoryLog,
    info: HistoryInfo,
    profile: Profile,
    until: int | None = None,
    **options: Any,
) -> VerifyReport:
    compiler = CelCompiler(detailed_errors=True)
    head = (await log.head(info.id)).revision
    return await verifying.verify(
        log,
        info,
        until=head if until is None else Revision(until),
        deciders=Deciders(
            rules=rules_for(profile),
            controllers=reconcilers.controllers(profile, features_of(profile), compiler),
            compiler=compiler,
        ),
        bounds=BOUNDS,
        **options,
    )


async def verify_events(
    events: Sequence[Event], until: int | None = None, **options: Any
) -> VerifyReport:
    log, info = await history_of(events)
    return await verify(log, info, Profile(), until, **options)


class Agreeable:
    """A second opinion that is the first one: every device of the story matches its class."""

    name = "agreeable"

    def ask(self, expression: str, **device: object) -> Opinion:
        return Opinion(answer=Match.MATCH)


async def test_our_own_history_agrees_in_everything(told: Cluster) -> None:
    report = await verify_events(told.line.events)
    assert report.agrees
    assert report.events == report.revision == told.line.head.revision
    assert report.chain.head == f"sha256:{told.line.head.hash.hex()}"
    decided = sum(event.type is EventType.DECISION_RECORDED for event in told.line.events)
    assert report.decisions.counts == {ComparisonResult.SAME: decided}
    assert set(report.effects.counts) == {ComparisonResult.SAME}
    assert report.effects.total > decided
    allocated = len(first_allocations(told.line.events))
    assert report.allocations.counts == {ComparisonResult.EFFECT: allocated}
    assert report.outcome is VerifyOutcome.VERIFIED


def first_allocations(events: Sequence[Event]) -> list[tuple[ObjectKey, Event]]:
    held: set[ObjectKey] = set()
    found = []
    for event in events:
        if event.key.resource == "resourceclaims":
            has = json_tree.get(event.object, "status", "allocation") is not None
            if has and event.key not in held and event.type is not EventType.OBJECT_DELETED:
                held.add(event.key)
                found.append((event.key, event))
            elif not has:
                held.discard(event.key)
    return found


async def test_verification_may_stop_at_a_revision(told: Cluster) -> None:
    report = await verify_events(told.line.events, until=40)
    assert (report.revision, report.agrees) == (40, True)


async def test_a_changed_event_breaks_the_chain_and_is_named(told: Cluster) -> None:
    log, info = await history_of(told.line.events)
    stored = await log.read(info.id, after=Revision(11), limit=1)
    body = stored[0].body
    stored[0].body = body.replace(b'"uid":"', b'"uid":"x', 1)
    try:
        report = await verify(log, info, Profile())
    finally:
        stored[0].body = body
        stored[0].forget_tree()
    assert not report.agrees
    assert report.chain.problem.startswith("the hash chain breaks at revision 12:")


async def test_another_outcome_is_named_with_both_trees(told: Cluster) -> None:
    wanted = "Scheduled"

    def lie(event: Event, tree: JsonObject) -> None:
        if event.type is EventType.DECISION_RECORDED and tree["outcome"] == wanted:
            tree["outcome"] = "Unschedulable"

    report = await verify_events(resealed(told.line.events, lie))
    assert not report.agrees
    assert not report.chain.problem
    first = report.decisions.differences[0]
    assert (first.path, first.recorded, first.again) == ("outcome", "Unschedulable", wanted)
    assert first.subject.startswith("scheduling pods/default/p")
    assert first.again_tree["outcome"] == wanted


async def test_another_plan_behind_the_same_words_is_found(told: Cluster) -> None:
    def lie(event: Event, tree: JsonObject) -> None:
        if event.type is EventType.DECISION_RECORDED and tree["controller"] == "eviction":
            tree["plan"] = "sha256:00"

    report = await verify_events(resealed(told.line.events, lie))
    assert {found.path for found in report.decisions.differences} == {"plan"}


async def test_another_effect_of_the_same_decision_is_found(told: Cluster) -> None:
    key, _ = first_allocations(told.line.events)[0]

    def steal(event: Event, tree: JsonObject) -> None:
        results = json_tree.objects(tree, "status", "allocation", "devices", "results")
        if event.key == key and results:
            results[0]["device"] = "gpu-9"

    report = await verify_events(resealed(told.line.events, steal))
    assert not report.agrees
    first = report.effects.differences[0]
    assert first.subject == str(key)
    assert first.path == "object.status.allocation.devices.results[0].device"
    assert (first.recorded, first.again) == ("gpu-9", "gpu-0")
    rules = {found.rule for found in report.violations}
    assert "allocated-device-existed" in rules


async def test_a_missing_effect_is_found(told: Cluster) -> None:
    events = [event for event in told.line.events if event.stamp.verb != "delete"]
    renumbered: list[Event] = []
    for number, event in enumerate(events, start=1):
        tree = json_tree.copy(event.object)
        previous = renumbered[-1].hash if renumbered else GENESIS
        draft = Draft(type=event.type, key=event.key, uid=event.uid, tree=tree, stamp=event.stamp)
        renumbered.append(seal(draft, Revision(number), previous))
    report = await verify_events(renumbered)
    assert not report.effects.agrees


async def test_a_decision_of_an_unknown_controller_is_not_comparable(told: Cluster) -> None:
    def rename(event: Event, tree: JsonObject) -> None:
        if event.type is EventType.DECISION_RECORDED and tree["controller"] == "scheduling":
            tree["controller"] = "elsewhere"

    report = await verify_events(resealed(told.line.events, rename))
    reason = "no controller 'elsewhere' here"
    assert list(report.decisions.reasons) == [reason]
    assert list(report.decisions.reasons[reason]) == ["system:kube-scheduler"]
    assert "its decision was not made again" in report.effects.reasons
    assert report.outcome is VerifyOutcome.PARTLY
    assert report.allocations.total == len(first_allocations(told.line.events))
    assert report.allocations.agrees


def by(user: str) -> Callable[[Event], Event]:
    """Allocations as if a scheduler of that name had written them."""

    def change(event: Event) -> Event:
        if event.key.resource != "resourceclaims" or b'"allocation"' not in event.body:
            return event
        return msgspec.structs.replace(
            event, stamp=msgspec.structs.replace(event.stamp, actor=Actor(user=user))
        )

    return change


@pytest.mark.parametrize("user", ["system:serviceaccount:batch:volcano", "alice", "redra:import"])
async def test_an_allocation_is_judged_whoever_wrote_it(told: Cluster, user: str) -> None:
    events = [by(user)(event) for event in told.line.events]
    report = await verify_events(resealed(events, lambda *_: None))
    allocated = len(first_allocations(events))
    assert report.allocations.counts == {ComparisonResult.SAME: allocated}


def stolen(user: str, gaps: Sequence[tuple[ObjectKey, Origin]] = ()) -> list[Event]:
    """The last pod gets the other one of two free devices, which breaks no invariant; then gaps."""
    cluster = Cluster()
    cluster.device_class()
    cluster.node("n1")
    cluster.slice("n1", 4)
    cluster.template()
    for name in ("a", "b"):
        cluster.pod(name, template="gpu")
        cluster.wait(20)
    events = [by(user)(event) for event in cluster.line.events]
    key, _ = first_allocations(events)[-1]
    last = events[-1]
    for number, (gap, origin) in enumerate(gaps, start=1):
        stamp = msgspec.structs.replace(last.stamp, origin=origin)
        revision = Revision(last.revision + number)
        events.append(
            Event(
                revision=revision,
                type=EventType.GAP_OBSERVED,
                key=gap,
                uid="",
                body=b"{}",
                stamp=stamp,
            )
        )

    def steal(event: Event, tree: JsonObject) -> None:
        results = json_tree.objects(tree, "status", "allocation", "devices", "results")
        if event.key == key and results:
            results[0]["device"] = "gpu-3"

    return resealed(events, steal)


@pytest.mark.parametrize("user", ["system:serviceaccount:batch:volcano", "alice"])
async def test_another_device_fails_whoever_wrote_it(user: str) -> None:
    report = await verify_events(stolen(user))
    assert report.violations == ()
    assert report.allocations.counts[ComparisonResult.DIFFERENT] == 1
    assert report.outcome is VerifyOutcome.FAILED


CLAIMS, SLICES = (
    ("resource.k8s.io", "resourceclaims"),
    ("resource.k8s.io", "resourceslices"),
)
LATE = {"time_quality": "exact"}


@pytest.mark.parametrize(
    ("gaps", "result"),
    [
        ([(CLAIMS, "", "", {})], ComparisonResult.DIFFERENT),
        ([(CLAIMS, "", "", LATE)], ComparisonResult.DIFFERENT),
        ([(CLAIMS, "x", "", {}), (CLAIMS, "y", "", LATE)], ComparisonResult.DIFFERENT),
        ([(SLICES, "", "", {})], ComparisonResult.DIFFERENT),
        ([(SLICES, "", "", LATE)], ComparisonResult.NOT_COMPARABLE),
        (
            [(CLAIMS, "x", name, {"losses": ("gap", "metadata_only")}) for name in "cde"],
            ComparisonResult.DIFFERENT,
        ),
        ([(CLAIMS, "x", "c", {})], ComparisonResult.NOT_COMPARABLE),
        ([(CLAIMS, "x", name, {}) for name in "cde"], ComparisonResult.NOT_COMPARABLE),
    ],
)
async def test_gap_after_an_allocation_excuses_it_if_writes_before_it_may_be_missing(
    gaps: list[tuple[tuple[str, str], str, str, dict[str, Any]]], result: ComparisonResult
) -> None:
    """A stretch that begins later, or a write without its body, changed nothing before."""
    told = [
        (ObjectKey(*kind, *name), Origin(**{"source": "audit", "losses": ("gap",)} | more))
        for kind, *name, more in gaps
    ]
    report = await verify_events(stolen("alice", told))
    counts = report.allocations.counts
    assert counts[ComparisonResult.SAME] == 1
    assert counts.get(ComparisonResult.DIFFERENT, 0) == (result is ComparisonResult.DIFFERENT)


async def test_a_report_is_json(told: Cluster) -> None:
    report = (await verify_events(told.line.events)).to_json()
    assert report["decisions"]["counts"]["different"] == 0
    assert report["agrees"] is True
    assert report["outcome"] == "verified"
    assert report["secondOpinion"] is None
    assert report["notJudged"] == []
    assert report["decisions"]["notComparable"] == {}
    assert report["invariants"]["violations"] == 0
    assert report["invariants"]["examples"] == []
    assert set(report["invariants"]["kinds"].values()) == {0}


async def test_a_report_names_what_is_broken_and_what_cannot_be_compared(told: Cluster) -> None:
    def take_finalizer(event: Event, tree: JsonObject) -> None:
        if event.key.resource == "resourceclaims":
            tree["metadata"].pop("finalizers", None)
        if event.type is EventType.DECISION_RECORDED and tree["controller"] == "scheduling":
            tree["controller"] = "another"

    report = (await verify_events(resealed(told.line.events, take_finalizer))).to_json()
    assert report["outcome"] == "failed"
    rules = {each["rule"] for each in report["invariants"]["examples"]}
    assert "allocation-has-finalizer" in rules
    assert report["invariants"]["violations"] == sum(report["invariants"]["kinds"].values())
    reasons = report["decisions"]["notComparable"]
    assert any(authors for authors in reasons.values())


async def test_selectors_are_asked_of_a_second_opinion_when_there_is_one() -> None:
    cluster = Cluster()
    cluster.node("n1")
    cluster.slice("n1", 2)
    cluster.device_class(selector='device.driver != ""')
    cluster.claim("c")
    cluster.settle()
    seen: list[tuple[str, Revision, Revision]] = []
    report = await verify_events(
        cluster.line.events,
        second=SecondReader(opinion=Agreeable()),
        progress=lambda *each: seen.append(each),
    )
    assert report.opinion is not None
    assert report.opinion.expressions == 1
    assert report.opinion.devices > 0
    asked = [each for each in seen if each[0] == "asking for a second opinion"]
    assert asked
    assert asked[-1][1] == asked[-1][2]


async def fold_events(events: Sequence[Event], until: int) -> FoldReport:
    log, info = await history_of(events)
    return await replaying.fold(
        log, info, until=Revision(until), views=all_projections(), bounds=BOUNDS
    )


async def test_a_fold_sums_up_what_there_is(told: Cluster) -> None:
    report = await fold_events(told.line.events, told.line.head.revision)
    assert report.pools == {"usable": 2}
    assert report.devices == 4
    assert report.objects["nodes"] == 2
    assert sum(report.claims.values()) == len(told.names("resourceclaims"))
    assert report.revision == told.line.head.revision
    assert set(report.state_hashes) == {view.name for view in all_projections()}
    assert report.to_json()["pods"] == dict(report.pods)


async def test_a_fold_up_to_a_revision_equals_the_history_cut_there(told: Cluster) -> None:
    cut = await fold_events(told.line.events, 60)
    whole = await fold_events(told.line.events[:60], 60)
    assert cut.revision == 60
    assert cut == whole


@pytest.mark.parametrize(
    ("recorded", "again", "expected"),
    [
        ({"a": 1}, {"a": 1}, None),
        ({"a": [1, 2]}, {"a": [1, 3]}, ("a[1]", 2, 3)),
        ({"a": [1]}, {"a": [1, 3]}, ("a[1]", None, 3)),
        ({"a": {"b": 1}}, {"a": {}}, ("a.b", 1, None)),
        ({"a": True}, {"a": 1}, ("a", True, 1)),
        ({"a": 1}, None, ("", {"a": 1}, None)),
    ],
)
def test_the_first_difference_is_named(
    recorded: object, again: object, expected: tuple[str, object, object] | None
) -> None:
    assert first_difference(recorded, again) == expected


RULES_IGNORED = {"DRADeviceTaintRules": False}
RULES_SEEN = {"DRADeviceTaintRules": True}


async def imported_log(name: str, gates: dict[str, bool]) -> tuple[MemoryLog, HistoryInfo]:
    """A recorded history of a real control plane, and the settings that it ran with."""
    profile = Profile(version="1.36", gates=gates)
    log = MemoryLog(MemoryStore())
    options = ReadOptions(rules=rules_for(profile))
    with open_history([shared_path("histories", name)], options) as source:
        result = await importing.import_records(
            log, source, name=name, options=importing.ImportOptions()
        )
    settings = result.history.settings | profile.settings()
    return log, msgspec.structs.replace(result.history, settings=settings)


async def imported(name: str, gates: dict[str, bool]) -> VerifyReport:
    """Such a history, verified with the gates it ran with."""
    log, info = await imported_log(name, gates)
    return await verify(log, info, Profile(version="1.36", gates=gates))


@pytest.mark.parametrize(
    ("name", "gates", "allocations"),
    [
        draws.by_day("a-quickstart", RULES_SEEN, 12),
        ("c-multihost-tpu", RULES_SEEN, 5),
        draws.by_day("e-taints-rules-ignored", RULES_IGNORED, 27),
        draws.by_day("b-mig-partitions", RULES_SEEN, 42),
        draws.by_day("e-taints", RULES_SEEN, 24),
        draws.by_day("i-soak-short", RULES_SEEN, 128),
    ],
)
async def test_what_a_real_scheduler_chose_is_chosen_again(
    name: str, gates: dict[str, bool], allocations: int
) -> None:
    log, info = await imported_log(name, gates)
    events = await log.read(info.id, after=Revision(0), limit=10_000)
    assert [each for each in events if each.type is EventType.GAP_OBSERVED] == []
    report = await verify(log, info, Profile(version="1.36", gates=gates))
    assert report.agrees
    assert report.to_json()["notJudged"]
    assert report.allocations.total == allocations
    assert report.allocations.agrees
    assert not report.allocations.reasons


@draws.in_turn("wrongs")
async def test_a_scheduler_that_ignored_rules_is_found_out() -> None:
    report = await imported("e-taints-rules-ignored", RULES_SEEN)
    assert report.allocations.counts[ComparisonResult.DIFFERENT] == 7
    assert {found.rule for found in report.violations} == {"placement-respects-taints"}
    assert report.violations_count == 7
    assert not report.agrees, "placements against rules are violations, whoever made them"
