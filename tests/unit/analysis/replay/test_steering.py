"""The pace of a run: what a variant has done first, last, never or at its own time.

Nothing is recorded here, so whatever is not steered is done when the recorded pace has acts that
nobody saw. The meaning of each set is in the docstring of `Variant`.
"""

from itertools import islice

import msgspec
import pytest

from app.analysis.replay import tolerances
from app.analysis.replay.acts import Act
from app.analysis.replay.attempts import Placing, PodCourse, Try
from app.analysis.replay.authors import CLAIMS, COLLECTOR, EVICTION, SCHEDULER
from app.analysis.replay.lags import Waits
from app.analysis.replay.lateness import Process, Timers
from app.analysis.replay.pace import RecordedPace
from app.analysis.replay.readiness import FirstTurns, Readiness
from app.analysis.replay.steering import NEVER, SteeredPace
from app.analysis.replay.unmade import TRIED_WITHIN, UnmadeAttempts
from app.analysis.replay.variants import Hold, Variant
from app.analysis.verify.invariants.violations import LATE_AFTER
from app.domain.controllers.garbage import namespaces
from app.domain.controllers.pacing import AttemptOutcome
from app.domain.controllers.scheduling.queue.waiting_pods import QUEUE
from app.domain.log import (
    Actor,
    Draft,
    Event,
    EventType,
    ObjectKey,
    Revision,
    Stamp,
    chain,
)
from app.domain.log.event import Origin
from app.domain.values import api_resources, json_tree
from app.domain.values.identifiers import Uid
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import SECOND, Instant

NOW = Instant(1_000)
LATER = Instant(2_000)
LAST = Instant(NOW + LATE_AFTER)
POD = ObjectKey("", "pods", "ns", "p")
CLAIM = ObjectKey("resource.k8s.io", "resourceclaims", "ns", "c")
RULE = ObjectKey(*api_resources.DEVICE_TAINT_RULES, "", "r")
KEYS = {"pod": POD, "claim": CLAIM}

TURNS = {
    "attempt": (QUEUE, ("pod",)),
    "claims of a pod": ("claims/pods", ("ns", "p")),
    "claim": ("claims", ("ns", "c")),
    "collection": ("garbage", tuple(CLAIM)),
    "eviction": ("eviction", ("ns", "p")),
    "cancellation": ("eviction/cancelled", ("ns", "p")),
    "rule": ("rule-status", ("r",)),
    "round for a pod": ("pod-gc", ("unscheduled", "ns", "p", "pod")),
}
"""A turn of each controller that variants steer: its queue and key."""


def seen(key: ObjectKey, tree: JsonObject, uid: Uid = Uid("uid")) -> Event:
    """An event of an object."""
    draft = Draft(
        type=EventType.OBJECT_UPDATED,
        key=key,
        uid=uid,
        tree={**tree, "metadata": {**tree.get("metadata", {}), "name": key.name}},
        stamp=Stamp(time=NOW, actor=Actor(user="me"), verb="update"),
    )
    return chain.seal(draft, Revision(1), b"")


def pod(phase: str) -> Event:
    return seen(POD, {"status": {"phase": phase}})


def rule(*, observed: int) -> Event:
    """A rule of the second generation."""
    status = {"type": "EvictionInProgress", "observedGeneration": observed}
    tree = {"metadata": {"generation": 2}, "status": {"conditions": [status]}}
    return seen(RULE, tree)


def due(variant: Variant, turn: str) -> Instant:
    """When a turn is taken that could be taken now."""
    return SteeredPace(RecordedPace(), variant, KEYS).not_before(*TURNS[turn], NOW)


@pytest.mark.parametrize(
    ("variant", "changed"),
    [
        (Variant(), {}),
        (Variant(held=frozenset({Hold(pod="pod", until=LATER)})), {"attempt": LATER}),
        (Variant(held=frozenset({Hold(pod="other", until=LATER)})), {}),
        (Variant(held=frozenset({Hold(pod="pod", until=NOW)})), {}),
        (Variant(held=frozenset({Hold(pod="pod", since=LATER, until=LAST)})), {}),
        (Variant(held=frozenset({Hold(pod="pod", since=NOW, until=LAST)})), {"attempt": LAST}),
        (Variant(untried=frozenset({"pod"})), {"attempt": LAST}),
        (Variant(unsynced=frozenset({POD})), {"claims of a pod": LAST}),
        (Variant(unsynced=frozenset({RULE})), {"rule": LAST}),
        (Variant(uncollected=frozenset({POD})), {"round for a pod": LAST}),
        (Variant(released_last=frozenset({CLAIM})), {"claim": LAST}),
        (Variant(released_first=frozenset({CLAIM})), {"claim": NOW}),
        (Variant(collected_last=frozenset({CLAIM})), {"collection": LAST}),
        (Variant(collected_first=frozenset({CLAIM})), {"collection": NOW}),
        (Variant(counted_first=frozenset({"r"})), {"rule": NOW}),
        (Variant(counted_first=frozenset({"s"})), {}),
        # The recording has no write of its status.
        (Variant(counted=frozenset({"r"})), {}),
        (Variant(counted_last=frozenset({"r"})), {}),
        (Variant(imposed=frozenset({(SCHEDULER, "pod")})), {"attempt": NEVER}),
        (Variant(imposed=frozenset({(CLAIMS, "pod")})), {"claims of a pod": NEVER}),
        (Variant(imposed=frozenset({(CLAIMS, "claim")})), {"claim": NEVER}),
        (Variant(imposed=frozenset({(COLLECTOR, "claim")})), {"collection": NEVER}),
        (Variant(imposed=frozenset({(EVICTION, "pod")})),
         {"eviction": NEVER, "cancellation": NEVER}),
        (Variant(imposed=frozenset({(EVICTION, "claim"), (CLAIMS, "gone")})), {}),
    ],
)  # fmt: skip
def test_variant_steers_these_turns_and_no_others(variant: Variant, changed: dict) -> None:
    unsteered = {turn: RecordedPace().not_before(*TURNS[turn], NOW) for turn in TURNS}
    assert LATER < min(unsteered.values()) < NEVER
    assert {turn: due(variant, turn) for turn in TURNS} == {**unsteered, **changed}


def test_first_turn_outranks_writes_that_are_taken_as_recorded() -> None:
    imposed = frozenset({(CLAIMS, "claim"), (COLLECTOR, "claim")})
    variant = Variant(
        imposed=imposed, released_first=frozenset({CLAIM}), collected_first=frozenset({CLAIM})
    )
    assert (due(variant, "claim"), due(variant, "collection")) == (NOW, NOW)


def test_claim_is_handed_over_between_its_finalizers() -> None:
    """A claim has no finalizer before its allocation either: then it is not given up."""
    pace = SteeredPace(RecordedPace(), Variant(handed_over=frozenset({CLAIM})), KEYS)
    held, free = ({"metadata": {"finalizers": each}} for each in (["f"], []))
    is_left = []
    for tree in (free, held, free, free, held):
        pace.follow(seen(CLAIM, tree))
        pace.follow(seen(CLAIM._replace(name="other"), free))
        is_left.append(pace.not_before(*TURNS["claim"], NOW) == LAST)
    assert is_left == [False, False, True, True, False]
    assert NOW < pace.not_before("claims", ("ns", "other"), NOW) < LAST


@pytest.mark.parametrize(
    ("turn", "variant"),
    [
        ("claim", Variant(released_last=frozenset({CLAIM}))),
        ("collection", Variant(collected_last=frozenset({CLAIM}))),
        ("claims of a pod", Variant(unsynced=frozenset({POD}))),
        ("attempt", Variant(untried=frozenset({"pod"}))),
    ],
)
def test_what_comes_last_comes_at_last(turn: str, variant: Variant) -> None:
    """Each reason to look begins the wait anew, and what waited is done before the next wait."""
    pace = SteeredPace(RecordedPace(), variant, KEYS)
    assert pace.not_before(*TURNS[turn], NOW) == LAST
    assert pace.not_before(*TURNS[turn], LATER) == LATER + LATE_AFTER
    at_last = Instant(LATER + LATE_AFTER)
    assert pace.not_before(*TURNS[turn], at_last) == at_last
    assert pace.not_before(*TURNS[turn], at_last) == at_last + LATE_AFTER


def test_pod_that_was_tried_before_is_tried_again_within_the_time_of_the_flush() -> None:
    """Another reason to look does not begin the wait anew, unlike for a pod that nobody tried."""
    variant = Variant(untried=frozenset({"pod"}))
    pace = SteeredPace(RecordedPace(), variant, KEYS)
    pace.attempts = lambda pod: (object(),)
    until = Instant(NOW + TRIED_WITHIN)
    assert TRIED_WITHIN > 340 * SECOND
    assert pace.not_before(*TURNS["attempt"], NOW) == until
    assert pace.not_before(*TURNS["attempt"], LATER) == until
    assert pace.not_before(*TURNS["attempt"], until) == until
    assert pace.not_before(*TURNS["attempt"], until) == until + TRIED_WITHIN


@pytest.mark.parametrize(
    ("seconds", "again", "signs", "is_late"),
    [
        (2000, "other", (400, 450), True),
        (2000, "other", (100, 400), False),
        (2000, "other", (400,), False),
        (2000, "other", (400, 1999), False),
        (2000, "no", (400, 450), False),
        (400, "other", (350, 370), False),
    ],
)
def test_attempt_that_would_say_something_new_is_made_in_time(
    seconds: int, again: str, signs: tuple[int, ...], is_late: bool
) -> None:
    """A scheduler that came back twice after it was due tried the pod, if its reason was new."""
    at = Instant(NOW + seconds * SECOND)
    tries = [
        Try(instant=each, first=each, last=each, tried=AttemptOutcome(message=text))
        for each, text in ((Instant(0), "no"), (at, "other"))
    ]
    recorded = RecordedPace()
    course = recorded._pods["pod"] = PodCourse(tries=tries, number=1)
    process = Process(Instant(NOW + each * SECOND) for each in signs)
    unmade = UnmadeAttempts(recorded, Timers(processes={QUEUE: process}))
    unmade.count(POD, "pod", AttemptOutcome(message="no"), Instant(0))
    due = unmade.next_look("pod", NOW, at)
    if due == NOW:
        assert unmade.end_look("pod", AttemptOutcome(message=again)) == at
    course.number = 2
    unmade.count(POD, "pod", AttemptOutcome(message="other"), at)
    assert [each.uid for each in unmade.late] == ["pod"] * is_late


def test_pod_that_is_let_through_is_tried_now_whatever_holds_it() -> None:
    for variant in (
        Variant(held=frozenset({Hold(pod="pod", until=LATER)})),
        Variant(untried=frozenset({"pod"})),
        Variant(imposed=frozenset({(SCHEDULER, "pod")})),
    ):
        pace = SteeredPace(RecordedPace(), variant, KEYS)
        pace.let_through("pod")
        assert pace.not_before(*TURNS["attempt"], NOW) == NOW
        pace.let_through("")
        assert pace.not_before(*TURNS["attempt"], NOW) > NOW


def test_finished_pod_is_synced_only_when_the_recording_shows_it() -> None:
    pace = SteeredPace(RecordedPace(), Variant(resyncs=True), KEYS)
    turn = TURNS["claims of a pod"]
    assert NOW < pace.not_before(*turn, NOW) < NEVER
    pace.begin((pod("Succeeded"),), NOW)
    assert pace.not_before(*turn, NOW) == NEVER
    pace.follow(pod("Running"))
    assert NOW < pace.not_before(*turn, NOW) < NEVER
    pace.follow(pod("Failed"))
    assert pace.not_before(*turn, NOW) == NEVER


@pytest.mark.parametrize(("observed", "waits"), [(2, True), (1, False)])
def test_rule_with_a_status_waits_for_a_reason_to_be_looked_at(observed: int, waits: bool) -> None:
    """The recorded controller had looked at it; a later look or event is a reason."""
    pace, turn = SteeredPace(RecordedPace(), Variant(), KEYS), ("rule-status", ("r", "uid"))
    pace.begin((rule(observed=observed),), NOW)
    assert (pace.not_before(*turn, NOW) == NEVER) is waits
    assert LATER < pace.not_before(*turn, LATER) < NEVER
    pace.follow(rule(observed=observed))
    assert NOW < pace.not_before(*turn, NOW) < NEVER


def test_untried_pod_is_tried_in_a_changed_world_and_counts_if_it_changes_anything() -> None:
    pace = SteeredPace(
        RecordedPace(), Variant(untried=frozenset({"pod"})), KEYS, Readiness({})
    )  # fmt: skip
    assert pace.not_before(*TURNS["attempt"], NOW) == NOW
    assert pace.put_off("pod", AttemptOutcome(node="", devices=(), message="no"), NOW) == NEVER
    assert pace.put_off("pod", AttemptOutcome(node="n", devices=(), message=""), NOW) is None
    assert pace.put_off("pod", AttemptOutcome(message="no", moves_others=True), NOW) is None


def test_untried_pod_is_not_placed_while_the_unchanged_world_could_place_it_too() -> None:
    """The control notes when that is so, and tries the pod at last, after all others."""
    variant = Variant(untried=frozenset({"pod"}))
    placed, failed = AttemptOutcome(node="n"), AttemptOutcome(message="no")
    steps = [(1_000, failed), (10_000_000, placed), (20_000_000, placed), (30_000_000, failed)]
    control = SteeredPace(RecordedPace(), variant, KEYS, is_control=True)
    for now, tried in steps:
        assert control.not_before(*TURNS["attempt"], Instant(now)) == now
        assert control.put_off("pod", tried, Instant(now)) == LAST
    changed = SteeredPace(RecordedPace(), variant, KEYS, control.readiness)
    for tried in (placed, AttemptOutcome(message="no", moves_others=True)):
        given = [
            changed.put_off("pod", tried, Instant(now))
            for now in (1_000, 10_000_000, 15_000_000, 30_000_000, 40_000_000)
        ]
        assert given == [None, NEVER, NEVER, NEVER, None]
    changed.let_through("pod")
    assert changed.put_off("pod", placed, Instant(15_000_000)) == NEVER
    assert changed.put_off("pod", failed, Instant(15_000_000)) is None
    assert control.put_off("pod", failed, LAST) is None
    assert control.put_off("pod", failed, LAST) == LAST + LATE_AFTER


class OneAttempt(RecordedPace):
    """A recording of one later attempt for each pod."""

    AT = Instant(60_000_000)

    def not_before(self, queue: str, key: tuple[str, ...], now: Instant) -> Instant:
        return self.AT


def refused(pod: str, **metadata: object) -> Event:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    return seen(POD, {"metadata": metadata, "status": {"conditions": [condition]}}, Uid(pod))


def test_refused_pod_is_placed_between_attempts_where_the_unchanged_world_could_not() -> None:
    """Attempts in vain leave no line, so the recording shows none in these forty seconds."""
    placed, failed = AttemptOutcome(node="n"), AttemptOutcome(message="no")
    control = SteeredPace(OneAttempt(), Variant(), KEYS, is_control=True)
    control.begin((refused("pod"),), NOW)
    for seconds, tried in ((10, failed), (20, placed), (30, failed)):
        now = Instant(seconds * 1_000_000)
        assert control.not_before(*TURNS["attempt"], now) == now
        assert control.put_off("pod", tried, now) == OneAttempt.AT
    changed = SteeredPace(OneAttempt(), Variant(), KEYS, control.readiness)
    changed.begin((refused("pod"),), NOW)
    given = []
    for seconds in (10, 25, 40):
        now = Instant(seconds * 1_000_000)
        assert changed.not_before(*TURNS["attempt"], now) == now
        given.append(changed.put_off("pod", placed, now))
    assert given == [None, OneAttempt.AT, None]


def test_pod_is_tried_between_recorded_attempts_after_its_back_off_only() -> None:
    pace = SteeredPace(OneAttempt(), Variant(), KEYS, is_control=True)
    pace.begin((refused("pod"),), NOW)
    tried = []
    for seconds in range(1, 60, 3):
        now = Instant(seconds * 1_000_000)
        due = pace.not_before(*TURNS["attempt"], now)
        if due <= now:
            tried.append(seconds)
            assert pace.put_off("pod", AttemptOutcome(message="no"), now) == OneAttempt.AT
        else:
            assert due in (Instant((tried[-1] + 10) * 1_000_000), OneAttempt.AT)
    assert tried == [1, 13, 25, 37, 49]


@pytest.mark.parametrize(
    ("event", "seconds"),
    [
        (None, 10),
        (refused("pod"), 50),
        (refused("pod", deletionTimestamp="2026-01-01T00:00:09Z"), 10),
        (refused("other"), 10),
    ],
    ids=["new", "next attempt within its back-off", "terminating", "another pod"],
)
def test_recorded_attempt_is_the_next_one_of_a_pod(event: Event | None, seconds: int) -> None:
    pace = SteeredPace(OneAttempt(), Variant(), KEYS, is_control=True)
    pace.begin(() if event is None else (event,), NOW)
    now = Instant(seconds * 1_000_000)
    assert pace.not_before(*TURNS["attempt"], now) == OneAttempt.AT


def test_attempts_that_are_not_recorded_are_left_out_of_a_replay() -> None:
    pace = SteeredPace(OneAttempt(), Variant(), KEYS)
    pace.begin((refused("pod"),), NOW)
    assert pace.not_before(*TURNS["attempt"], NOW) == OneAttempt.AT


def test_wait_is_noted_unless_it_has_no_end() -> None:
    held = SteeredPace(
        RecordedPace(), Variant(held=frozenset({Hold(pod="pod", until=LATER)})), KEYS
    )
    held.not_before(*TURNS["attempt"], NOW)
    assert held.readiness.was_waiting(*TURNS["attempt"], NOW)
    imposed = frozenset({(SCHEDULER, "pod")})
    never = SteeredPace(RecordedPace(), Variant(imposed=imposed), KEYS)
    never.not_before(*TURNS["attempt"], NOW)
    assert not never.readiness.was_waiting(*TURNS["attempt"], NOW)


def test_act_that_did_not_wait_in_the_unchanged_world_is_done_at_once_in_a_changed_one() -> None:
    variant = Variant(held=frozenset({Hold(pod="pod", until=LATER)}))
    waited = Readiness({})
    waited.note(*TURNS["attempt"], NOW, LATER)
    assert SteeredPace(RecordedPace(), variant, KEYS, waited).not_before(
        *TURNS["attempt"], NOW
    ) == LATER  # fmt: skip
    assert SteeredPace(RecordedPace(), variant, KEYS, Readiness({})).not_before(
        *TURNS["attempt"], NOW
    ) == NOW  # fmt: skip


def test_plan_takes_as_long_in_a_changed_world_as_in_the_unchanged_one() -> None:
    """Until it is stored, others act on the state before it."""
    unchanged = Readiness({})
    unchanged.note_under_way("claims", NOW, LATER)
    pace = SteeredPace(RecordedPace(), Variant(), KEYS, unchanged)
    assert pace.stored_at("claims", NOW) == LATER
    assert pace.stored_at("claims", Instant(LATER - 1)) == LATER
    assert pace.stored_at("claims", Instant(NOW - 1)) is None
    assert pace.stored_at("claims", LATER) is None
    assert pace.stored_at("garbage", NOW) is None


def test_a_pace_begins_anew_for_each_run() -> None:
    """What one run did at which instant says nothing about another one."""
    learned = RecordedPace()
    queue, key = TURNS["claim"]
    first = learned.afresh()
    due = first.not_before(queue, key, NOW)
    assert first.not_before(queue, key, Instant(NOW + 1)) == due
    for pace in (learned.afresh(), learned):
        assert pace.not_before(queue, key, LATER) == due + LATER - NOW


def written(revision: int, kind: str, name: str, tree: JsonObject, **how: object) -> Event:
    """A write about a new object, or with `later` about one that exists."""
    draft = Draft(
        type=EventType.OBJECT_UPDATED if "later" in how else EventType.OBJECT_CREATED,
        key=POD._replace(name=name) if kind == "pod" else CLAIM._replace(name=name),
        uid=Uid(name),
        tree={**tree, "metadata": {"namespace": "ns", "name": name, "uid": name}},
        stamp=Stamp(time=NOW, actor=Actor(user="me"), verb=str(how.get("verb", "create"))),
    )
    return chain.seal(draft, Revision(revision), b"")


def course(name: str, made: int, claimed: int, named: int, **spec: object) -> list[Event]:
    """A pod, its claim, and the pod with the name of its claim, at these revisions."""
    verb = spec.pop("verb", "create")
    entries = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one"}]}
    tree: JsonObject = {"spec": {**entries, **spec}}
    status = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": f"{name}-gpu"}]}
    return [
        written(made, "pod", name, tree, verb=verb),
        written(claimed, "claim", f"{name}-gpu", {}),
        written(named, "pod", name, {**tree, "status": status}, later=True),
    ]


A = course("a", 1, 3, 5)
SOON, LONG_AFTER = Instant(NOW + 1), Instant(NOW + 60_000_000)


@pytest.mark.parametrize(
    ("other", "until", "is_first"),
    [
        (course("b", 2, 4, 6), SOON, True),
        (course("b", 2, 4, 6), LONG_AFTER, False),
        (course("b", 2, 6, 4), SOON, False),  # named before A
        (course("b", 4, 2, 6), SOON, False),  # claimed before A
        (course("b", 2, 4, 6, priority=7), SOON, False),
        (course("b", 2, 4, 6, priority=-7), SOON, True),
        (course("b", 2, 4, 6, schedulingGates=[{"name": "g"}]), SOON, False),
        (course("b", 2, 4, 6, schedulingGroup={"podGroupName": "g"}), SOON, False),
        (course("b", 2, 4, 6, verb=""), SOON, False),  # it was there at the beginning
    ],
)
def test_new_pod_that_is_ready_first_is_tried_first(
    other: list[Event], until: Instant, is_first: bool
) -> None:
    turns = FirstTurns()
    for event in sorted([*A, *other], key=lambda event: event.revision):
        turns.follow(event)
    assert turns.precedes("a", "b", until) is is_first
    assert not turns.precedes("b", "a", until)


@pytest.mark.parametrize(
    ("other", "last", "latest"),
    [
        (course("b", 2, 4, 6), LATER, LATER - 1),
        (course("b", 2, 4, 6), LAST, LAST - 1),
        (course("b", 2, 4, 6), LAST + 1, None),  # its turn does not end before that of A
        (course("b", 2, 6, 4), LATER, None),  # it may have been the first
        (course("b", 0, 4, 6), LATER, None),
    ],
)
def test_turn_of_a_pod_ends_before_that_of_a_pod_behind_it(
    other: list[Event], last: Instant, latest: Instant | None
) -> None:
    """An attempt that comes to what was recorded at no instant does not let the next one pass."""
    turns = FirstTurns()
    for event in sorted([*A, *other], key=lambda event: event.revision):
        turns.follow(event)

    def first_attempt(ends: Instant) -> Try:
        tried = AttemptOutcome(node="node")
        placing = Placing(began=SOON)
        return Try(instant=SOON, first=NOW, last=ends, tried=tried, placing=placing)

    firsts = {"a": first_attempt(LAST), "b": first_attempt(last)}
    assert turns.latest("a", firsts.get) == latest
    assert turns.latest("b", firsts.get) is None
    assert turns.latest("a", {"a": firsts["a"]}.get) is None


@pytest.mark.parametrize(("claim", "is_first"), [(None, True), (2, False), (4, False)])
def test_pod_without_claims_waits_for_itself_alone(claim: int | None, is_first: bool) -> None:
    """The other one has none; where this one has a claim, another watch shows that."""
    entries = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}]}
    mine: JsonObject = {"spec": {} if claim is None else entries}
    turns = FirstTurns()
    events = [written(1, "pod", "a", mine), written(3, "pod", "b", {"spec": {}})]
    if claim is not None:
        events.append(written(claim, "claim", "c", {}))
    for event in sorted(events, key=lambda event: event.revision):
        turns.follow(event)
    assert turns.precedes("a", "b", SOON) is is_first
    assert not turns.precedes("b", "a", SOON)


def test_plan_is_under_way_until_the_recording_has_it_stored() -> None:
    """What a run of the recording notes of that, a changed world keeps to."""
    recorded = RecordedPace()
    pace = SteeredPace(recorded, Variant(), KEYS)
    assert pace.stored_at("claims", NOW) is None
    for until, expected in ((LATER, LATER), (NOW, None), (Instant(NOW - 1), None)):
        recorded.stored_at = until
        assert pace.stored_at("claims", NOW) == expected
    recorded.stored_at = LATER
    pace.begin_step()
    assert pace.stored_at("claims", NOW) is None, "another step begins"
    changed = SteeredPace(recorded, Variant(), KEYS, pace.readiness)
    assert changed.stored_at("claims", NOW) == LATER
    assert changed.stored_at("garbage", NOW) is None


GONE = Instant(NOW + 500)


@pytest.mark.parametrize(
    ("now", "passed", "expected"),
    [
        (NOW, (), GONE + 1),
        (GONE, (), GONE + 1),
        (LATER, (), LATER),
        (NOW, ((LATER, NOW),), LATER),
        (NOW, ((GONE, NOW),), GONE + 1),
        (NOW, ((LATER, LATER),), GONE + 1),
    ],
    ids=[
        "after its deletion",
        "at its deletion",
        "not in the past",
        "when the limit lets it through",
        "the limit passed it before",
        "a later request waited",
    ],
)
def test_placement_that_left_no_write_is_written_when_its_pod_is_gone(
    now: Instant, passed: tuple[tuple[Instant, Instant], ...], expected: Instant
) -> None:
    recorded = RecordedPace()
    recorded.waits = Waits(passed, ())
    hidden = SteeredPace(recorded, Variant(hidden=frozenset({("pod", GONE)})), KEYS)
    assert hidden.bind_delay("pod", now) == (expected, expected)
    usual = RecordedPace().bind_delay("pod", now)
    assert hidden.bind_delay("other", now) == usual
    assert SteeredPace(recorded, Variant(), KEYS).bind_delay("pod", now) == usual


def course_until(last: Instant) -> PodCourse:
    """One placement, which was tried by an instant."""
    tried, placing = AttemptOutcome(node="n"), Placing(began=NOW)
    return PodCourse([Try(instant=NOW, first=NOW, last=last, tried=tried, placing=placing)])


@pytest.mark.parametrize(
    ("ends", "now", "expected"),
    [
        ({"a": LATER}, NOW, LATER),
        ({"a": LATER}, LATER, None),
        ({"a": LATER, "b": Instant(LATER - 1)}, NOW, LATER),
        ({"b": Instant(LATER - 1)}, NOW, LATER - 1),
        ({"a": LAST}, NOW, LATER + 500),
        ({"d": LATER}, NOW, None),
        ({}, NOW, None),
    ],
    ids=[
        "after the one before",
        "that one is over",
        "after all before",
        "after another one",
        "no later than its own deletion",
        "not after the one behind",
        "none is recorded",
    ],
)
@pytest.mark.parametrize("is_limited", [False, True])
def test_pod_whose_placement_left_no_write_is_tried_after_those_before_it(
    ends: dict[str, Instant], now: Instant, expected: Instant | None, is_limited: bool
) -> None:
    recorded = RecordedPace()
    recorded._pods = {name: course_until(last) for name, last in ends.items()}
    turns = FirstTurns()
    for number, name in enumerate(("a", "b", "pod", "d"), 1):
        turns.follow(written(number, "pod", name, {"spec": {}}))
    hidden = frozenset({("pod", Instant(LATER + 500))})
    variant = Variant(hidden=hidden, is_limited=is_limited)
    for known in (turns, None):
        pace = SteeredPace(recorded, variant, KEYS, turns=known)
        assert pace.not_before(*TURNS["attempt"], now) == now
        due = pace.put_off("pod", AttemptOutcome(node="n"), now)
        assert due == (expected if is_limited and known else None)


@pytest.mark.parametrize(
    ("own", "other", "is_before"),
    [
        ((0, 2), (0, 1), True),
        ((0, 2), (0, 3), False),
        ((0, 2), (5, 3), True),
        ((5, 2), (5, 3), False),
        ((5, 2), (0, 1), False),
    ],
)
def test_pods_before_another_one_in_the_queue_have_priority_or_were_named_first(
    own: tuple[int, int], other: tuple[int, int], is_before: bool
) -> None:
    """Each has a priority and the revision at which it was made."""
    turns = FirstTurns()
    for name, (priority, made) in {"own": own, "other": other}.items():
        turns.follow(written(made, "pod", name, {"spec": {"priority": priority}}))
    assert list(turns.before("own")) == (["other"] if is_before else [])
    assert list(turns.before("unknown")) == []


def test_new_process_looks_at_the_rules_that_the_variant_names_as_often_as_it_began_anew() -> None:
    key = ObjectKey(*api_resources.DEVICE_TAINT_RULES, "", "r")
    recorded = RecordedPace()
    for seconds in (5, 60, 61, 70, 100):
        at = Instant(seconds * SECOND)
        event = rule(observed=2)
        act = Act(event=event, before=None, known=at, user="", is_guessed=False)
        recorded._note(("rule-status", ("r", "u")), act)
    process = Process(Instant(each * SECOND) for each in (0, 5, 60, 61, 70, 100))
    timers = Timers(processes={"rule-status": process})
    keys = {"u": key, "v": key._replace(name="s"), "p": POD._replace(name="r")}
    for names, expected in (({"r"}, [60, 61, 100]), ({"s"}, []), ((), [])):
        variant = Variant(begun_anew=frozenset(names))
        looks = SteeredPace(recorded, variant, keys, timers=timers).looks_anew()
        assert list(looks) == [(("r", "u"), at * SECOND) for at in expected]


def test_looks_of_new_processes_in_a_history_of_redra_end() -> None:
    """There, an act begins when its controller had seen what it saw, before others see the act."""
    recorded = RecordedPace()
    for seconds in (5, 60, 100):
        at, seen = (Instant(each * SECOND) for each in (seconds, seconds - 1))
        made = rule(observed=2)
        stamp = msgspec.structs.replace(made.stamp, time=at)
        event = msgspec.structs.replace(made, stamp=stamp)
        act = Act(event=event, before=None, known=at, user="", is_guessed=False, seen=seen)
        recorded._note(("rule-status", ("r", "u")), act)
    timers = Timers(
        processes={"rule-status": Process(Instant(each * SECOND) for each in (0, 4, 59, 99))}
    )
    keys = {"u": ObjectKey(*api_resources.DEVICE_TAINT_RULES, "", "r")}
    variant = Variant(begun_anew=frozenset({"r"}))
    looks = SteeredPace(recorded, variant, keys, timers=timers).looks_anew()
    assert list(islice(looks, 9)) == [(("r", "u"), at * SECOND) for at in (59, 99)]


@pytest.mark.parametrize(
    ("reason", "observed", "written", "is_held", "is_late"),
    [
        pytest.param("NoEffect", 2, (0, 60), False, False, id="a new process counts once more"),
        pytest.param("NoEffect", 2, (0, 55, 60), False, True, id="the old one was at work"),
        pytest.param("NoEffect", 2, (0, 60), True, True, id="the same one holds the Lease"),
        pytest.param("NoEffect", 1, (0, 60), False, True, id="the rule has changed since"),
        pytest.param("NotStarted", 2, (0, 60), False, True, id="evictions change its status"),
    ],
)
def test_status_that_is_written_once_is_due_again_when_a_new_process_begins(
    reason, observed, written, is_held, is_late
) -> None:
    """The status was looked at in the tenth second, and written again in the sixtieth."""
    event = rule(observed=observed)
    before = json_tree.copy(event.object)
    before["status"]["conditions"][0]["reason"] = reason
    first, last = Instant(10 * SECOND), Instant(60 * SECOND)
    act = Act(event=event, before=before, known=last, user="", is_guessed=False)
    recorded = RecordedPace()
    recorded._note(("rule-status", ("r", "u")), act)
    process = Process([Instant(each * SECOND) for each in written], lambda *_: is_held)
    timers = Timers(processes={"rule-status": process})
    pace = SteeredPace(recorded, Variant(), KEYS, timers=timers)
    assert pace.not_before("rule-status", ("r", "u"), first) == last
    assert pace.not_before("rule-status", ("r", "u"), last) == last
    assert [each.ready for each in pace.run.acts] == [first if is_late else last]


ASKED, KNOWN = Instant(NOW + 100), Instant(NOW + 300)


def act_about(key: ObjectKey, type_: EventType, asked: Instant, known: Instant) -> Act:
    """An act that was requested at one instant, and that others could see from another on."""
    origin = Origin(source="audit", asked=asked)
    stamp = Stamp(time=known, actor=Actor(user="u"), verb="update", origin=origin)
    event = Event(revision=Revision(1), type=type_, key=key, uid="uid", body=b"{}", stamp=stamp)
    return Act(event=event, before=None, known=known, user="u", is_guessed=False)


CLAIMS_OF = frozenset({CLAIM})
REMOVED, CHANGED = EventType.OBJECT_DELETED, EventType.OBJECT_UPDATED


@pytest.mark.parametrize(
    ("variant", "type_", "now", "expected"),
    [
        (Variant(), REMOVED, NOW, KNOWN),
        (Variant(removed_first=CLAIMS_OF), REMOVED, NOW, ASKED),
        (Variant(removed_first=CLAIMS_OF), CHANGED, NOW, KNOWN),
        (Variant(removed_first=frozenset({CLAIM._replace(name="d")})), REMOVED, NOW, KNOWN),
        (Variant(removed_first=CLAIMS_OF), REMOVED, ASKED, ASKED),
        (Variant(resyncs=True), CHANGED, NOW, KNOWN),
        (Variant(resyncs=True, released_first=CLAIMS_OF), CHANGED, NOW, ASKED),
        (Variant(released_first=CLAIMS_OF), CHANGED, NOW, NOW),
        (Variant(released_last=CLAIMS_OF), CHANGED, NOW, LAST),
        (Variant(released_last=CLAIMS_OF, removed_first=CLAIMS_OF), REMOVED, NOW, LAST),
        (Variant(imposed=frozenset({(CLAIMS, "claim")})), CHANGED, NOW, NEVER),
        (
            Variant(imposed=frozenset({(CLAIMS, "claim")}), removed_first=CLAIMS_OF),
            REMOVED,
            NOW,
            ASKED,
        ),
    ],
)
def test_claim_is_released_or_removed_when_the_variant_says(
    variant: Variant, type_: EventType, now: Instant, expected: Instant
) -> None:
    """Others could see the only recorded act later than it was requested."""
    recorded = RecordedPace()
    recorded._note(("claims", ("ns", "c")), act_about(CLAIM, type_, ASKED, KNOWN))
    pace = SteeredPace(recorded, variant, KEYS)
    assert pace.not_before(*TURNS["claim"], now) == expected
    if variant.removed_first == CLAIMS_OF and now == ASKED:
        assert recorded.stored_at is None, "the removal is not put off until its answer"


@pytest.mark.parametrize(
    ("resyncs", "expected"), [(False, [True, False, True]), (True, [True, True, True])]
)
def test_each_recorded_act_about_a_claim_counts_where_claims_are_synced_again(
    resyncs: bool, expected: list[bool]
) -> None:
    """Two acts lie behind; without it, one look is for both of them."""
    recorded = RecordedPace()
    for at in (KNOWN, Instant(KNOWN + 1)):
        recorded._note(("claims", ("ns", "c")), act_about(CLAIM, CHANGED, at, at))
    pace = SteeredPace(recorded, Variant(resyncs=resyncs), KEYS)
    late = Instant(KNOWN + 10)
    looks = [pace.not_before(*TURNS["claim"], late) <= late for _ in range(2)]
    looks.append(pace.not_before(*TURNS["claim"], late) > late)
    assert looks == expected


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ({}, KNOWN),
        ({"counted": {"r"}}, ASKED),
        ({"counted_last": {"r"}}, Instant(KNOWN + 200)),
        ({"counted_first": {"r"}, "counted": {"r"}}, NOW),
        ({"counted": {"s"}, "counted_last": {"s"}}, KNOWN),
    ],
)
def test_rule_is_counted_at_the_request_or_the_answer(
    names: dict[str, set[str]], expected: Instant
) -> None:
    recorded, key = RecordedPace(), ObjectKey(*api_resources.DEVICE_TAINT_RULES, "", "r")
    act = act_about(key, CHANGED, ASKED, KNOWN)
    assert act.event.stamp.origin is not None
    origin = msgspec.structs.replace(act.event.stamp.origin, answered=Instant(KNOWN + 200))
    act.event.stamp = msgspec.structs.replace(act.event.stamp, origin=origin)
    recorded._note(("rule-status", ("r",)), act)
    variant = Variant(**{name: frozenset(rules) for name, rules in names.items()})
    assert SteeredPace(recorded, variant, KEYS).not_before(*TURNS["rule"], NOW) == expected


ENDED = Instant(NOW + 400)


@pytest.mark.parametrize(
    ("queue", "now", "known", "expected"),
    [
        ("namespaces", NOW, True, KNOWN),
        ("namespaces", ENDED, True, ENDED),
        ("namespaces", ENDED + 1, True, ENDED + 1 + tolerances.TABLE.unseen),
        ("namespaces/end", ENDED, True, ENDED),
        ("namespaces", ENDED, False, ENDED + 500),
        ("others", ENDED, True, ENDED + 500),
    ],
)
def test_acts_about_a_namespace_that_has_ended_there_are_of_another_one(
    queue: str, now: Instant, known: bool, expected: Instant
) -> None:
    recorded = RecordedPace()
    at = KNOWN if now == NOW else Instant(ENDED + 500)
    place = (
        namespaces.END
        if queue == "namespaces/end"
        else queue.replace("namespaces", namespaces.NAME)
    )
    key = ObjectKey(*api_resources.NAMESPACES, "", "ns")
    recorded._note((place, ("ns",)), act_about(key, CHANGED, at, at))
    timers = Timers(ended={"uid": ENDED})
    pace = SteeredPace(recorded, Variant(), KEYS, timers=timers)
    if known:
        pace.follow(seen(key, {}))
    assert pace.not_before(place, ("ns",), now) == expected
