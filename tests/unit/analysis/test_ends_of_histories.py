"""Two histories compared by what is there at their ends: objects by meaning, pods by outcome."""

from typing import Any

import pytest

from app.adapters import schemas
from app.analysis.diff import outcomes
from app.analysis.diff.outcomes import TEXT_MAX, EndReport
from app.analysis.diff.sides import DiffBounds, Side
from app.domain.controllers.registry import ControllerOptions
from app.domain.log import Actor, Event, EventType, ObjectKey, Revision
from app.domain.log.event import Stamp
from app.domain.objects.profile import Profile
from app.domain.values.timestamps import SECOND, Instant

Tree = dict[str, Any]
CONFIG = ObjectKey("", "configmaps", "ns", "c")
POD = ObjectKey("", "pods", "ns", "p")
SAID = ObjectKey("", "events", "ns", "e")
SCHEMAS = schemas.load("1.37")


def write(key: ObjectKey, tree: Tree | None, at: int = 1, uid: str = "u") -> Event:
    """A write at a second; without a tree it deletes the object."""
    return Event(
        revision=Revision(at),
        type=EventType.OBJECT_DELETED if tree is None else EventType.OBJECT_UPDATED,
        key=key,
        uid=uid,
        body=b"",
        stamp=Stamp(time=Instant(at * SECOND), actor=Actor(user="x"), verb="update"),
        tree={"metadata": {}, **(tree or {})},
    )


def side(*events: Event, **more: Any) -> Side:
    return Side(name="h", profile=Profile(), options=ControllerOptions(), events=events, **more)


def done(steps: Any) -> EndReport:
    """The report; the steps in between give other tasks a turn."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def objects(a: Side, b: Side, **bounds: Any) -> EndReport:
    return done(outcomes.objects(a, b, SCHEMAS, DiffBounds(**bounds)))


def config(value: str = "1", **metadata: Any) -> Tree:
    return {"data": {"x": value}, "metadata": {"name": "c", **metadata}}


TIMES = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z")
LONG = "a" * (2 * TEXT_MAX)


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        pytest.param(config(), config(), None, id="same"),
        pytest.param(config("1"), config("2"), ("data.x=1", "data.x=2"), id="value"),
        pytest.param(
            config(labels={"l": "1"}),
            config(labels={"l": "2"}),
            ("metadata.labels.l=1", "metadata.labels.l=2"),
            id="label",
        ),
        pytest.param(
            config("1", labels={"l": "1"}),
            config("2", labels={"l": "2"}),
            ("data.x=1; metadata.labels.l=1", "data.x=2; metadata.labels.l=2"),
            id="both",
        ),
        pytest.param(config(), None, ("exists", "does not exist"), id="only in A"),
        pytest.param(None, config(), ("does not exist", "exists"), id="only in B"),
        pytest.param(
            config(uid="1", selfLink="1", resourceVersion="1", creationTimestamp=TIMES[0]),
            config(uid="2", selfLink="2", resourceVersion="2", creationTimestamp=TIMES[1]),
            None,
            id="identity",
        ),
        pytest.param(
            config(ownerReferences=[{"kind": "Pod", "name": "p", "uid": "1"}]),
            config(ownerReferences=[{"kind": "Pod", "name": "q", "uid": "2"}]),
            None,
            id="owners",
        ),
        pytest.param(
            {"subjects": [{"uid": "1", "name": "s"}]},
            {"subjects": [{"uid": "2", "name": "s"}]},
            None,
            id="uids of references",
        ),
    ],
)  # fmt: skip
def test_objects_differ_by_their_meaning(
    a: Tree | None, b: Tree | None, said: tuple[str, str] | None
) -> None:
    other = CONFIG._replace(name="other")
    events = [
        [write(other, config()), *([write(CONFIG, tree)] if tree is not None else [])]
        for tree in (a, b)
    ]
    report = objects(side(*events[0]), side(*events[1]))
    shown = [(each.a.replace('"', ""), each.b.replace('"', "")) for each in report.entries]
    assert shown == ([] if said is None else [said])
    assert {each.subject for each in report.entries} <= {str(CONFIG)}
    assert (report.same, report.is_same, report.what) == (
        1 + (said is None),
        said is None,
        "objects",
    )


def test_value_that_is_long_is_cut_where_it_differs() -> None:
    a, b = config(LONG + "1" + LONG), config(LONG + "2" + LONG)
    (entry,) = objects(side(write(CONFIG, a)), side(write(CONFIG, b))).entries
    assert "1" in entry.a
    assert "2" in entry.b
    assert max(len(entry.a), len(entry.b)) < TEXT_MAX
    a, b = (config("".join(f"{n}{word}" for n in range(200))) for word in ("x", "y"))
    (entry,) = objects(side(write(CONFIG, a)), side(write(CONFIG, b))).entries
    assert entry.a.endswith("…")
    assert len(entry.a) == len("data.x=") + TEXT_MAX + 1


def test_last_state_of_each_object_counts_and_events_are_left_out() -> None:
    start = [write(CONFIG, config("old")), write(POD, {}), write(SAID, {"reason": "x"})]
    decision = write(CONFIG._replace(name="decided"), config())
    decision = Event(
        revision=decision.revision,
        type=EventType.DECISION_RECORDED,
        key=decision.key,
        uid=decision.uid,
        body=b"",
        stamp=decision.stamp,
        tree=decision.object,
    )
    a = side(write(CONFIG, config("1")), write(CONFIG, config("2")), decision, start=start)
    b = side(write(CONFIG, config("2")), write(POD, None), start=start[:2])
    report = objects(a, b)
    assert [(each.subject, each.a, each.b) for each in report.entries] == [
        (str(POD), "exists", "does not exist")
    ]
    assert report.same == 1


@pytest.mark.parametrize(
    ("at_end", "beyond", "is_late"),
    [
        pytest.param([], [(12, config("2"))], True, id="changed after the end"),
        pytest.param([(10, config("2"))], [], True, id="changed at the end"),
        pytest.param([(5, config("2"))], [], False, id="changed before"),
        pytest.param([(5, config("2"))], [(12, None)], False, id="changed before and gone after"),
        pytest.param([(10, None)], [], True, id="gone at the end"),
    ],
)
@pytest.mark.parametrize("longer", ["a", "b"])
def test_change_for_which_the_shorter_recording_ended_too_early_is_none(
    at_end: list[tuple[int, Tree | None]],
    beyond: list[tuple[int, Tree | None]],
    is_late: bool,
    longer: str,
) -> None:
    """It ends at 10 seconds, with the first state; both have a write by then."""
    first = write(CONFIG, config("1"), 1)
    more = [write(CONFIG, tree, at) for at, tree in at_end]
    later = [write(CONFIG, tree, at) for at, tree in (*beyond, (20, config("3")))]
    end = Instant(10 * SECOND)
    long = side(first, *more, beyond=later, until=end)
    short = side(first, until=end)
    sides = (long, short) if longer == "a" else (short, long)
    report = objects(*sides, within=SECOND)
    assert report.is_same is is_late
    assert report.after_end is not None
    assert report.after_end.side == longer


def pod(node: str = "", phase: str = "Running") -> Tree:
    return {"spec": {"nodeName": node} if node else {}, "status": {"phase": phase}}


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        pytest.param([pod()], [pod()], None, id="both wait"),
        pytest.param([pod("n")], [pod("n", "Pending")], None, id="placed alike"),
        pytest.param([pod("n")], [pod("m")], ("runs on n", "runs on m"), id="moved"),
        pytest.param([pod()], [pod("m")], ("waits", "runs on m"), id="placed on one side"),
        pytest.param([pod("n")], [pod("n"), None], ("runs on n", "ended on n"), id="gone"),
        pytest.param([pod("n")], [], ("runs on n", "does not exist"), id="never made"),
    ],
)
def test_pods_differ_by_outcome_and_place(
    a: list[Tree | None], b: list[Tree | None], said: tuple[str, str] | None
) -> None:
    sides = [
        side(*(write(POD, tree, at, "p") for at, tree in enumerate(trees, 1))) for trees in (a, b)
    ]
    report = done(outcomes.pods(*sides, DiffBounds()))
    assert [(each.subject, each.a, each.b) for each in report.entries] == (
        [] if said is None else [("pods/ns/p", *said)]
    )
    assert (report.what, report.same) == ("outcomes", int(said is None))
    turned = done(outcomes.pods(*sides[::-1], DiffBounds()))
    assert [(each.b, each.a) for each in turned.entries] == ([] if said is None else [said])


@pytest.mark.parametrize(
    ("at", "is_late"), [(5, False), (9, True), (10, True), (11, True), (12, False)]
)
@pytest.mark.parametrize("longer", ["a", "b"])
def test_pod_that_the_longer_recording_places_near_the_end_is_no_difference(
    at: int, is_late: bool, longer: str
) -> None:
    """The shorter one ends at 10 seconds; what comes long after that is not compared at all."""
    end = Instant(10 * SECOND)
    events = [write(POD, pod(), 1, "p"), write(POD, pod("n"), at, "p")]
    long = side(
        *(each for each in events if each.revision <= 10),
        beyond=[*(each for each in events if each.revision > 10), write(CONFIG, config(), 20)],
        until=end,
    )
    short = side(events[0], until=end)
    sides = (long, short) if longer == "a" else (short, long)
    report = done(outcomes.pods(*sides, DiffBounds(within=SECOND)))
    assert report.is_same is (is_late or at == 12)
    assert report.after_end is not None
    assert ("pods/ns/p" in report.after_end.subjects) is (is_late or at == 12)
