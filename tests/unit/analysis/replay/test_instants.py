"""When the writes of a recording could be seen: by answers, or by their order within a second."""

import dataclasses
import json

import pytest
from msgspec.structs import replace

from app.analysis.replay import tolerances
from app.analysis.replay.acts import Act
from app.analysis.replay.attempts import Placing, PodTries, attempts_of, waits_of
from app.analysis.replay.authors import EVICTION, SCHEDULER
from app.analysis.replay.instants import Undated, known_instants, seen_from
from app.analysis.replay.lags import Waits
from app.analysis.replay.pace import RecordedPace
from app.domain.controllers.pacing import AttemptOutcome
from app.domain.controllers.scheduling.queue.waiting_pods import QUEUE
from app.domain.log import Actor, Event, EventType, ObjectKey, Origin, Revision, Stamp
from app.domain.values.timestamps import SECOND, Instant

POD = ObjectKey("", "pods", "default", "a")


def event(
    seconds, *, quality="derived", answered=0.0, asked=0.0, kind=EventType.OBJECT_UPDATED, uid="u"
):
    origin = Origin(
        source="x",
        time_quality=quality,
        answered=int(answered * SECOND),
        asked=int(asked * SECOND),
    )
    time = Instant(int(seconds * SECOND))
    stamp = Stamp(time=time, actor=Actor(user="x"), verb="update", origin=origin)
    return Event(
        revision=Revision(1),
        type=kind,
        key=POD,
        uid=uid,
        body=b"{}",
        stamp=stamp,
    )


def seconds(events):
    return [pytest.approx(instant / SECOND, abs=1e-5) for instant in known_instants(events)]


def test_writes_of_one_second_are_spread_over_it_in_their_order():
    assert seconds([event(7), event(7), event(7), event(9)]) == [7, 7 + 1 / 3, 7 + 2 / 3, 9]


def test_import_of_the_last_second_says_nothing_of_when_its_writes_were_made():
    imported = event(7, kind=EventType.HISTORY_IMPORTED)
    imported = replace(imported, stamp=replace(imported.stamp, origin=None))
    assert seconds([event(7), event(7), imported]) == [7, 7 + 1 / 3, 7 + 1 / 3]


def test_writes_before_a_known_instant_lie_before_it():
    assert seconds([event(7), event(7), event(7.5), event(7.5), event(8)]) == [
        7,
        7.25,
        7.5,
        7.75,
        8,
    ]


def test_writes_without_any_time_are_spread_like_others():
    assert seconds([event(7), event(7, quality="none"), event(8)]) == [7, 7.5, 8]


def test_writes_at_the_instant_at_which_a_replay_begins_come_one_after_the_other():
    events = [event(7, quality="exact") for _ in range(3)] + [event(8, quality="exact")]
    begin = Instant(7 * SECOND)
    assert known_instants(events, begin) == [begin + 1, begin + 2, begin + 3, 8 * SECOND]
    assert known_instants(events)[:3] == [begin - 2, begin - 1, begin]


def test_exact_instants_stay_but_for_what_was_answered_before():
    exact = [event(7, quality="exact", answered=7.3), event(7, quality="exact", answered=7.2)]
    assert seconds(exact) == [7, 7]
    late = [event(8, quality="exact", answered=8), event(7.9, quality="exact", answered=7.9)]
    assert seconds(late) == [7.9, 7.9]


@pytest.mark.parametrize(
    ("write", "first"),
    [
        (event(7.4, quality="exact", asked=7.1), 7.1),
        (event(7.4, quality="exact", asked=7.9), 7.6),
        (event(7.4, quality="exact"), 7.6),
        (event(7.4), 7),
    ],
    ids=["asked before", "clocks differ", "not known when asked", "whole seconds"],
)
def test_write_is_seen_after_its_request_at_the_earliest(write, first):
    assert seen_from(write, Instant(int(7.6 * SECOND))) == first * SECOND


def test_report_that_saw_the_condition_is_of_a_later_attempt():
    """They are half a second apart, and only the versions tell that there were two attempts."""
    message = "0/1 nodes are available"
    report, condition = Instant(10_400_000), Instant(10_000_000)
    for seen, attempts in ((7, 1), (8, 2)):
        tries = PodTries(
            failures=[(report, message)], refusals=[(condition, message)], seen=[seen], written=[8]
        )
        found = attempts_of(tries, waits_of({}, []), None)
        assert len(found) == attempts


@pytest.mark.parametrize(
    ("slack", "seconds", "seen", "note", "attempts"),
    [
        (SECOND, 2, 7, "no room", 2),
        (SECOND, -2, 7, "no room", 2),
        (0, 2, 7, "no room", 3),
        (SECOND, 2, 7, "no device", 3),
        (SECOND, 2, 6, "no room", 3),
        (SECOND, 2, 8, "no room", 3),
        (SECOND, 2, 0, "no room", 3),
        (SECOND, 21, 7, "no room", 3),
    ],
)
def test_versions_pair_a_report_with_a_condition_that_no_time_is_known_of(
    slack: int, seconds: int, seen: int, note: str, attempts: int
) -> None:
    """The report of the second of two conditions, which created the versions 7 and 8."""
    first, second = Instant(10 * SECOND), Instant(60 * SECOND)
    report = Instant(second + seconds * SECOND)
    tries = PodTries(
        failures=[(report, note)],
        refusals=[(first, "no class"), (second, "no room")],
        seen=[seen],
        written=[7, 8],
    )
    found = attempts_of(tries, waits_of({}, []), None, slack)
    assert len(found) == attempts
    assert report in [each.instant for each in found]


@pytest.mark.parametrize(
    ("condition", "nomination", "placed"),
    [(8, 9, [False, True]), (9, 8, [True, False]), (0, 9, [True, False])],
    ids=["refused before", "refused after", "not known"],
)
def test_versions_order_a_refusal_and_a_placement_that_two_servers_date(
    condition: int, nomination: int, placed: list[bool]
) -> None:
    """The condition is dated 10 ms after the nomination, by a clock that may be ahead."""
    sent, began = Instant(SECOND + 20_000), Instant(SECOND + 10_000)
    placing = Placing(began=began, node="n", written=nomination, seen_from=Instant(SECOND + 12_000))
    tries = PodTries(
        failures=[(Instant(sent - 1_000), "no device")],
        refusals=[(sent, "no device")],
        seen=[7],
        written=[condition],
        placings=[placing],
    )
    attempts = attempts_of(tries, waits_of({}, []), None, 20_000)
    assert [each.placing is not None for each in attempts] == placed


def test_attempt_is_not_later_than_its_condition_however_late_its_report_is_dated():
    """The pod was tried again, and placed, before the report of the first attempt was dated."""
    message = "resource claim c is in the process of being allocated"
    condition, placed, report = (Instant(SECOND + 1_000 * each) for each in (10, 50, 60))
    tries = PodTries(
        failures=[(report, message)],
        refusals=[(condition, message)],
        placings=[Placing(began=placed, node="n")],
    )
    failed, succeeded = attempts_of(tries, waits_of({}, []), None)
    assert failed.tried.message == message
    assert failed.instant == condition
    assert succeeded.tried.node == "n"
    assert succeeded.first > condition


def test_placement_whose_requests_waited_may_have_been_decided_since_the_attempt_before():
    failed, placed = Instant(10 * SECOND), Instant(25 * SECOND)
    tries = PodTries(
        failures=[(failed, "no room")], placings=[Placing(began=placed, node="n")], seen=[7]
    )
    queue = [Instant(placed - number * SECOND // 10) for number in range(200)]
    for have_waited, first in ((False, placed - 10_000), (True, failed + 1)):
        *_, found = attempts_of(tries, waits_of({}, queue), None, have_waited=have_waited)
        assert found.first == first
        assert found.last > placed


@pytest.mark.parametrize(("since", "first"), [(0, 4), (10, 10), (24, 24), (25.2, 25.2), (26, 25.5)])
def test_attempt_is_not_earlier_than_the_claims_that_its_placement_writes(since, first):
    """Where only the order of writes is known, the attempt may lie far before its first write.

    The answer to a claim may come after the request of that; the attempt saw it soon afterwards.
    """
    placed = Instant(25 * SECOND)
    early = Instant(4 * SECOND + tolerances.TABLE.placed_before)
    placing = Placing(began=placed, node="n", earliest=early, since=Instant(int(since * SECOND)))
    (found,) = attempts_of(PodTries(placings=[placing]), waits_of({}, []), None)
    assert found.first == first * SECOND
    assert found.last >= found.instant >= max(found.first, placed)


def test_attempts_saw_the_version_that_reports_name():
    """A third attempt upon one version has no report; one that was first has none to go by."""
    refused, first, second, later = (Instant(each * SECOND) for each in (10, 20, 21, 40))
    third = Instant(30 * SECOND)
    tries = PodTries(
        failures=[(first, "no room"), (second, ""), (later, "no room")],
        refusals=[(refused, "no class"), (third, "no device")],
        seen=[7, 7, 9],
        written=[7, 9],
    )
    found = attempts_of(tries, waits_of({}, []), None)
    assert [(each.instant, each.version) for each in found] == [
        (refused, 0),
        (first, 7),
        (second, 7),
        (third, 7),
        (later, 9),
    ]


@pytest.mark.parametrize("are_apart", [False, True])
def test_condition_after_a_repeated_report_is_of_its_attempt_or_of_a_later_one(are_apart):
    """Requests wait four seconds at that time, and a repeated report has the text of the first."""
    first, repeated, sent = (Instant(each * SECOND) for each in (10, 12, 16))
    tries = PodTries(
        failures=[(first, "no room"), (repeated, "")], refusals=[(sent, "in flight")], seen=[7, 7]
    )
    waits = Waits([(Instant(sent - 10_000), repeated)], ())
    found = attempts_of(tries, waits, None, are_apart=are_apart)
    assert [each.tried.message for each in found if each.instant >= sent - 4 * SECOND][-1] == (
        "in flight"
    )
    assert [each.is_paired_by_time for each in found] == (
        [False, False, False] if are_apart else [False, True]
    )


@pytest.mark.parametrize(
    ("options", "instant"), [({}, 12), ({"as_asked": True}, 11), ({"as_answered": True}, 13)]
)
def test_rule_is_looked_at_when_its_status_was_seen_asked_for_or_answered(options, instant):
    rule = ObjectKey("resource.k8s.io", "devicetaintrules", "", "r")
    asked, known, answered = (Instant(each * SECOND) for each in (11, 12, 13))
    origin = Origin(source="x", time_quality="exact", asked=asked, answered=answered)
    stamp = Stamp(time=answered, actor=Actor(user=EVICTION), verb="patch", origin=origin)
    status = Event(
        revision=Revision(1),
        type=EventType.OBJECT_UPDATED,
        key=rule,
        uid="u",
        body=b"{}",
        stamp=stamp,
    )
    pace = RecordedPace()
    act = Act(event=status, before={}, known=known, user=EVICTION, is_guessed=False)
    pace.learn([act], {EVICTION: ("rule-status",)}, {})
    looked = pace.next_act("rule-status", ("r", "u"), Instant(10 * SECOND), **options)
    assert looked == instant * SECOND


def test_attempts_of_a_source_without_versions_have_none():
    first, second = Instant(10 * SECOND), Instant(20 * SECOND)
    tries = PodTries(failures=[(first, "no room"), (second, "no device")])
    found = attempts_of(tries, waits_of({}, []), None)
    assert [(each.instant, each.version) for each in found] == [(first, 0), (second, 0)]


def written(number: int, at: float, status: dict[str, object], before: dict[str, object]) -> Act:
    """A write of the scheduler about the status of the pod."""
    instant = Instant(int(at * SECOND))
    origin = Origin(
        source="x",
        time_quality="exact",
        asked=instant,
        answered=instant,
        resource_version=str(number),
    )
    stamp = Stamp(time=instant, actor=Actor(user=SCHEDULER), verb="patch", origin=origin)
    tree = {"metadata": {"name": "a", "uid": "u"}, "status": status}
    event = Event(
        revision=Revision(number),
        type=EventType.OBJECT_UPDATED,
        key=POD,
        uid="u",
        body=json.dumps(tree).encode(),
        stamp=stamp,
    )
    old = {**tree, "status": before}
    return Act(event=event, before=old, known=instant, user=SCHEDULER, is_guessed=False)


@pytest.mark.parametrize(("late", "seconds"), [(0, 1200), (2, 602)])
def test_attempts_after_a_placement_that_was_late_here_are_as_late(late: int, seconds: int) -> None:
    """A pod that gets devices which are never ready: given up, refused, and given up again."""
    placed: dict[str, object] = {"nominatedNodeName": "n"}
    refused = [
        {"conditions": [{"type": "PodScheduled", "status": "False", "message": text}]}
        for text in ("not ready in time", "no node fits", "not ready in time")
    ]
    states = [{}, placed, *refused]
    instants = [10, 600, 602, 1200]
    acts = [
        written(number + 1, at, states[number + 1], states[number])
        for number, at in enumerate(instants)
    ]
    pace = RecordedPace()
    pace.learn(acts, {SCHEDULER: ("scheduling",)}, {})
    placing = Instant((10 + late) * SECOND)
    assert pace.put_off("u", AttemptOutcome(node="n"), placing) is None
    pace.bind_delay("u", placing)
    due = pace.not_before(QUEUE, ("u",), Instant(603 * SECOND + SECOND // 2))
    assert due == pytest.approx(seconds * SECOND, abs=SECOND)


def claimed(number: int, at: float, pods: list[str], before: list[str]) -> Act:
    """A write of the scheduler that reserves a claim for pods, or takes reservations back."""
    new, old = (
        {"reservedFor": [{"resource": "pods", "name": uid, "uid": uid} for uid in uids]}
        for uids in (pods, before)
    )
    act = written(number, at, new, old)
    key = ObjectKey("resource.k8s.io", "resourceclaims", "default", "c")
    return dataclasses.replace(act, event=replace(act.event, key=key, uid="c"))


def test_placement_whose_reservation_was_taken_back_is_followed_by_another_one() -> None:
    """The second nomination comes with a reason for an attempt before it."""
    refused = {**REFUSED, "nominatedNodeName": "n"}
    acts = [
        written(1, 10, PLACED, {}),
        claimed(2, 11, ["u"], []),
        claimed(3, 610, [], ["u"]),
        written(4, 612, refused, PLACED),
        claimed(5, 613, ["u"], []),
    ]
    pace = RecordedPace()
    pace.learn(acts, {SCHEDULER: ("scheduling",)}, {})
    placings = [each.placing for each in pace.attempts("u") if each.placing is not None]
    assert [(each.began, each.claims_at) for each in placings] == [
        (10 * SECOND, 11 * SECOND),
        (613 * SECOND, 613 * SECOND),
    ]


PLACED: dict[str, object] = {"nominatedNodeName": "n"}
REFUSED: dict[str, object] = {
    "conditions": [{"type": "PodScheduled", "status": "False", "message": "conflict"}]
}


@pytest.mark.parametrize(
    ("states", "made", "is_before"),
    [
        ([{}, PLACED], 3, True),
        ([{}, PLACED], 2, False),  # the same write
        ([{}, PLACED], 1, False),
        ([{}, PLACED], 0, False),  # its creation is not recorded
        ([{}, PLACED, {**PLACED, **REFUSED}], 9, False),  # the next attempt writes no node
        ([{}, REFUSED, PLACED], 4, True),
        ([{}, REFUSED, PLACED], 3, False),
        ([{}, REFUSED], 9, False),  # it was never placed
        ([{}, {**PLACED, **REFUSED}, {**REFUSED, "nominatedNodeName": "m"}], 9, False),  # evicts
    ],
)
def test_placement_was_decided_before_all_pods_made_after_its_first_write(
    states: list[dict[str, object]], made: int, is_before: bool
) -> None:
    acts = [
        written(number + 1, number, states[number], states[number - 1])
        for number in range(1, len(states))
    ]
    pace = RecordedPace(entered={"other": made} if made else {})
    pace.learn(acts, {SCHEDULER: ("scheduling",)}, {})
    pace = pace.afresh()
    assert pace.is_decided_before("u", "other") is is_before
    assert not pace.is_decided_before("other", "u")
    assert not pace.is_decided_before("u", "unknown")


@pytest.mark.parametrize(
    ("quality", "removed", "written", "expected"),
    [
        ("none", [7, 7.5], 90, {"a": (7, 90), "b": (7.5, 90)}),
        ("none", [7, 20], 90, {"a": (7, 20), "b": (20, 90)}),
        ("recorded", [7, 7.5], 90, {}),
    ],
    ids=["of one second", "one after the other", "with times"],
)
def test_removal_without_a_time_came_by_the_next_write(quality, removed, written, expected):
    undated = Undated()
    for at, uid in zip(removed, "ab", strict=True):
        each = event(at, quality=quality, kind=EventType.OBJECT_DELETED, uid=uid)
        undated.note(each, each.stamp.time)
    undated.note(event(written), Instant(written * SECOND))
    assert undated.within == {
        uid: (first * SECOND, last * SECOND - 1) for uid, (first, last) in expected.items()
    }


@pytest.mark.parametrize(("version", "last"), [(3, 10.0), (0, 10.5)])
def test_attempt_saw_nothing_that_is_newer_than_its_first_write(version: int, last: float) -> None:
    pace = RecordedPace()
    pace.learn([written(version, 10, PLACED, {})], {SCHEDULER: ("scheduling",)}, {})
    (made,) = pace.attempts("u")
    assert made.last == last * SECOND
