"""Events that do not fit their own objects, or what was stored before, whatever their hashes say.

Each row alters one event of a story as its owner could, without the hashes; the words of the
verdict were fixed before. The untouched story has no problem.
"""

from collections.abc import Callable

import msgspec
import pytest

from app.analysis.verify.consistency import ConsistencyWatch, form_problems
from app.domain.log import Actor, Event, EventType, HistoryId, HistoryInfo, ObjectKey, Stamp
from app.domain.log.chain import canonical_json
from app.domain.log.event import ChainStart, Revision
from app.domain.values.identifiers import Uid
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from tests.cluster import Cluster

HISTORY = HistoryInfo(id=HistoryId(1), name="live", settings={"profile": "1.37"})
RECORDING = msgspec.structs.replace(HISTORY, settings={"recorded": True})
OTHER_UID = Uid("00000000-0000-4000-8000-00000000000a")

Change = Callable[[Event], Event]


@pytest.fixture(scope="module")
def events() -> list[Event]:
    """A pod that gets a device, and one that ends."""
    cluster = Cluster()
    cluster.node("n1")
    cluster.slice("n1", 2)
    cluster.device_class()
    cluster.template()
    for name in ("p0", "p1"):
        cluster.pod(name, template="gpu")
    cluster.wait(5)
    cluster.finish("p0")
    return [event.undecoded() for event in cluster.wait(5).line.events]


def problems(events: list[Event], info: HistoryInfo = HISTORY) -> str:
    watch = ConsistencyWatch(info)
    each = [problem for event in events for problem in watch.take(event)]
    forms = [
        (event.revision, problem)
        for event in events
        if watch.is_live and event.is_about_object
        for problem in form_problems(event.undecoded())
    ]
    return "\n".join([*each, *watch.end(forms)])


def fields(**changed: object) -> Change:
    return lambda event: msgspec.structs.replace(event, **changed)


def key(**fields: str) -> Change:
    return lambda event: msgspec.structs.replace(event, key=event.key._replace(**fields))


def body(change: Callable[[JsonObject], object]) -> Change:
    def changed(event: Event) -> Event:
        tree = msgspec.json.decode(event.body)
        change(tree)
        return msgspec.structs.replace(event, body=canonical_json(tree))

    return changed


def stamp(**fields: object) -> Change:
    return lambda event: msgspec.structs.replace(
        event, stamp=msgspec.structs.replace(event.stamp, **fields)
    )


def named(**fields: object) -> Change:
    return body(lambda tree: tree["metadata"].update(fields))


def is_pod(event: Event) -> bool:
    return event.key.resource == "pods" and event.is_about_object


def is_decision(event: Event) -> bool:
    return event.type is EventType.DECISION_RECORDED


POD, LAST, DECISION = "first pod", "last pod", "first decision"
ROWS: tuple[tuple[str, Change, str], ...] = (
    (POD, key(name="other"), "its name is 'other', and that of its object 'p0'"),
    (POD, key(namespace="other"), "its namespace is 'other'"),
    (POD, key(group="x.example"), "its group is 'x.example'"),
    (POD, key(resource="configmaps"), "it is about configmaps, and its object is a 'Pod'"),
    (POD, fields(uid=OTHER_UID), f"its uid is '{OTHER_UID}'"),
    (POD, named(resourceVersion="3"), "that of its object '3'"),
    (POD, named(name=5), "no readable metadata"),
    (POD, body(lambda tree: tree.pop("metadata")), "no readable metadata"),
    (POD, body(lambda tree: tree.pop("kind")), "no readable metadata"),
    (POD, fields(body=b"[]"), "no readable metadata"),
    (POD, body(lambda tree: tree.update(kind="Node")), "its object is a 'Node'"),
    (POD, lambda event: fields(body=event.body + b" ")(event), "not in the form"),
    (POD, lambda event: fields(body=b'{"kind":"Node",' + event.body[1:])(event), "not in the form"),
    (POD, fields(type=EventType.OBJECT_UPDATED), "which does not exist"),
    (POD, fields(type=EventType.OBJECT_DELETED), "which does not exist"),
    (POD, fields(type=EventType.GAP_OBSERVED), "no GapObserved is stored in a history like this"),
    (POD, stamp(uid=OTHER_UID), "the uid of a new object is not that of its stamp"),
    (POD, stamp(cause=10_000), "the cause in its stamp, 10000, is no earlier revision"),
    (POD, stamp(observed=-1), "the observed revision in its stamp, -1, is no earlier revision"),
    (LAST, fields(type=EventType.OBJECT_CREATED), "it creates pods/default/p0, which exists"),
    (LAST, lambda event: named(uid=OTHER_UID)(fields(uid=OTHER_UID)(event)), "with another uid"),
    (LAST, named(creationTimestamp="2020-01-01T00:00:00Z"), "it changes the creation time of pods"),
    (LAST, named(generation=0), "it sets the generation of pods/default/p0 from 1 back"),
    (DECISION, fields(type=EventType.GAP_OBSERVED), "with the key of another type of event"),
    (DECISION, fields(type=EventType.CONTROLLER_RESTARTED), "with the key of something else"),
    (DECISION, fields(type=EventType.OBJECT_CREATED), "no readable metadata"),
    (DECISION, lambda event: fields(type=EventType.GAP_OBSERVED,
                                    key=ObjectKey("", "", "", ""))(event),
     "no GapObserved is stored in a history like this"),
    (DECISION, key(name="other"), "its decision is about another object"),
    (DECISION, fields(uid=OTHER_UID), "a DecisionRecorded has no uid"),
    (DECISION, fields(body=b"[]"), "its payload is no JSON object"),
    (DECISION, fields(body=b"{}"), "its decision cannot be read"),
    (DECISION, body(lambda tree: tree.update(cause=0)), "not that of its append"),
    (DECISION, stamp(verb="create"), "the verb of a decision is 'create'"),
    (DECISION, stamp(actor=Actor(user="mallory")), "that 'mallory' wrote"),
)  # fmt: skip


@pytest.mark.parametrize(("place", "change", "words"), ROWS)
def test_altered_event_is_named(
    events: list[Event], place: str, change: Change, words: str
) -> None:
    is_meant = is_decision if place == DECISION else is_pod
    places = [at for at, event in enumerate(events) if is_meant(event)]
    at = places[-1 if place == LAST else 0]
    altered = [*events[:at], change(events[at]), *events[at + 1 :]]
    assert f"revision {at + 1}: " in problems(altered)
    assert words in problems(altered)


def test_each_append_of_a_controller_begins_with_a_decision_that_has_its_cause(
    events: list[Event],
) -> None:
    """Also the append that follows another one of the same controller."""
    deciders = [msgspec.json.decode(each.body).get("controller") for each in events]
    stamps = [each.stamp for each in events]
    appends = [(each.time, each.cause, each.observed, each.actor.user) for each in stamps]
    places = [
        at
        for at, event in enumerate(events)
        if is_decision(event)
        and appends[at] != appends[at - 1]
        and deciders[at] in [each for each in deciders[:at] if each][-1:]
    ]
    assert places, "no controller decided twice in a row"
    for at in places:
        altered = [*events]
        altered[at] = body(lambda tree: tree.update(cause=0))(events[at])
        assert f"revision {at + 1}: the cause of the decision" in problems(altered)


@pytest.mark.parametrize(
    ("verb", "words"),
    [
        ("delete", "it deletes pods/default/p0, which has finalizers"),
        ("deletecollection", "it deletes pods/default/p0, which has finalizers"),
        ("patch", ""),
    ],
)
def test_object_goes_with_its_finalizers_only_by_the_write_that_removes_them(
    events: list[Event], verb: str, words: str
) -> None:
    last = max(at for at, event in enumerate(events) if is_pod(event))
    change = named(finalizers=["example.com/wait"], deletionTimestamp="2026-01-01T00:00:00Z")
    gone = stamp(verb=verb)(fields(type=EventType.OBJECT_DELETED)(change(events[last])))
    assert problems([*events[:last], gone]).endswith(words)
    assert bool(problems([*events[:last], gone])) == bool(words)


def test_deletion_is_not_taken_back(events: list[Event]) -> None:
    first = next(at for at, event in enumerate(events) if is_pod(event))
    marked = named(deletionTimestamp="2026-01-01T00:00:00Z")(events[first])
    assert "it takes the deletion of pods/default/p0 back" in problems(
        [*events[:first], marked, *events[first + 1 :]]
    )


def test_untouched_story_is_consistent(events: list[Event]) -> None:
    assert problems(events) == ""


def test_type_of_another_kind_of_history_is_named(events: list[Event]) -> None:
    objects = [event for event in events if event.is_about_object]
    assert problems(objects, RECORDING) == ""
    assert "no DecisionRecorded is stored in a recording" in problems(events, RECORDING)


IMPORTED, ASKED, GAP = (
    EventType.HISTORY_IMPORTED,
    EventType.REQUEST_OBSERVED,
    EventType.GAP_OBSERVED,
)
FORKED, SOUGHT, CONFLICT = (
    EventType.HISTORY_FORKED,
    EventType.REPLAY_SOUGHT,
    EventType.CONFLICT_OBSERVED,
)
DECIDED, BEGUN, ADVANCED = (
    EventType.DECISION_RECORDED,
    EventType.CONTROLLER_RESTARTED,
    EventType.CLOCK_ADVANCED,
)


@pytest.mark.parametrize(
    ("settings", "words", "own"),
    [
        ({}, "a history", {DECIDED, BEGUN, ADVANCED, FORKED}),
        ({"recorded": True}, "a recording", {IMPORTED, ASKED, GAP}),
        (
            {"recorded": True, "paced": True},
            "a paced replay",
            {IMPORTED, ASKED, GAP, FORKED, SOUGHT, CONFLICT},
        ),
    ],
)
def test_each_kind_of_history_has_its_own_events(
    events: list[Event], settings: dict[str, object], words: str, own: set[EventType]
) -> None:
    info = msgspec.structs.replace(HISTORY, settings=settings)
    for kind in EventType:
        if kind.startswith("Object"):
            continue
        said = problems([*events[:2], msgspec.structs.replace(events[2], type=kind)], info)
        named = f"no {kind} is stored in {words} like this one"
        assert (named in said) is (kind not in own), kind


def test_events_before_a_fork_are_judged_with_the_parent(events: list[Event]) -> None:
    """A recording's gap is no problem of its fork; a gap in the fork itself is one."""
    begun = ChainStart(seed=1, settings={"recorded": True}, created=Instant(0))
    fork = msgspec.structs.replace(HISTORY, beginning=begun, is_fork=True)
    time, actor = events[0].stamp.time, Actor(user="redra-admin")

    def fact(type: EventType, key: ObjectKey, revision: int) -> Event:
        return Event(
            revision=Revision(revision),
            type=type,
            key=key,
            uid=Uid(""),
            body=b"{}",
            stamp=Stamp(time=time, actor=actor, verb="x"),
        )

    gap = fact(EventType.GAP_OBSERVED, ObjectKey("", "pods", "", ""), 1)
    forked = fact(EventType.HISTORY_FORKED, ObjectKey("redra", "histories", "", ""), 2)
    later = msgspec.structs.replace(gap, revision=Revision(3))
    assert problems([gap, forked], fork) == ""
    assert problems([gap, forked, later], fork).startswith("revision 3: no GapObserved is stored")


def test_log_that_begins_with_an_import_is_a_recording(events: list[Event]) -> None:
    """Programs that came before the setting imported recordings without it."""
    imported = msgspec.structs.replace(
        events[0],
        type=EventType.HISTORY_IMPORTED,
        key=ObjectKey("redra", "imports", "", "x"),
        uid=Uid(""),
        body=b"{}",
    )
    gap = msgspec.structs.replace(
        imported,
        revision=Revision(2),
        type=EventType.GAP_OBSERVED,
        key=ObjectKey("", "pods", "", ""),
    )
    assert problems([imported, gap]) == ""


UNREADABLE = {"cut": b'{"controller":', "no object": b"[]", "deep": b'{"a":' * 100_000}


@pytest.mark.parametrize("body", UNREADABLE.values(), ids=UNREADABLE)
@pytest.mark.parametrize("kind", [EventType.DECISION_RECORDED, EventType.OBJECT_UPDATED])
def test_event_that_cannot_be_read_is_named_alone(
    events: list[Event], kind: EventType, body: bytes
) -> None:
    place = next(at for at, event in enumerate(events) if event.type is kind)
    unread = msgspec.structs.replace(events[place], body=body)
    said = problems([*events[:place], unread, *events[place + 1 :]])
    assert {line.partition(":")[0] for line in said.splitlines()} == {f"revision {unread.revision}"}
    words = "cannot be read" if kind is EventType.DECISION_RECORDED else "no readable metadata"
    assert words in said
