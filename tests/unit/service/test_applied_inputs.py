"""What a run makes of recorded writes from outside: at once, later, at their turn, or not at all.

A changed world here is one whose API refuses some recorded writes; everything else follows.
"""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import msgspec
import pytest

from app.analysis.replay import tolerances
from app.analysis.replay.authors import SCHEDULER
from app.analysis.replay.beginning import Beginning
from app.analysis.replay.differences import compare
from app.analysis.replay.inputs import Input
from app.analysis.replay.recording import Recording
from app.analysis.replay.unsure.lacks import Lacks
from app.analysis.replay.variants import Variant
from app.analysis.replay.writers import Writers
from app.analysis.views import LiveViews
from app.bootstrap.rules import rules_for
from app.domain.controllers import registry
from app.domain.controllers.registry import ControllerOptions
from app.domain.errors import Rejected
from app.domain.log import Event, EventType, Head, ObjectKey
from app.domain.log.chain import canonical_json
from app.domain.log.event import Origin
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.write.commands import Command
from app.domain.values.timestamps import SECOND, Instant
from app.service.replays.deciding import run as running
from app.service.replays.deciding.altered import Alteration
from app.service.replays.deciding.run import Run
from app.service.replays.deciding.runs import Runs
from tests.cluster import T0, USER, Cluster
from tests.unit.analysis.replay.test_recording import story
from tests.unit.service import recorded_runs

POD = ObjectKey("", "pods", "default", "a")
OUTSIDE = ControllerOptions(off=frozenset({"replica-sets", "deployments"}))


def runs_of(cluster: Cluster, change: Callable[[Event], Event] = lambda event: event) -> Runs:
    """The runs of what happened, where `change` alters the recorded events.

    The first of the two revisions of a removal is left out, as other sources do.
    """
    kept = (event for event in cluster.line.events if not is_first_half(event))
    cluster.line.events[:] = [change(event) for event in kept]
    return recorded_runs.runs_of(cluster)


def is_first_half(event: Event) -> bool:
    is_change = event.type is EventType.OBJECT_UPDATED
    return is_change and event.object["metadata"].get("deletionGracePeriodSeconds") == 0


async def changed(runs: Runs, refused: Collection[tuple[str, str]]) -> Run:
    """A world whose API refuses these writes: pairs of verb and name."""
    control = await runs.run(Variant(), is_control=True)

    def admit(recorded: Input, command: Command, objects: ObjectsReader) -> Command:
        event = recorded.event
        if (event.stamp.verb, event.key.name) in refused:
            raise Rejected(f"no {event.stamp.verb}")
        return command

    alteration = Alteration(
        edits=lambda objects: (), actor=USER, control=control.readiness, admit=admit
    )
    return await runs.run(Variant(), keep_events=True, alteration=alteration)


def seconds(event: Event) -> float:
    return (event.stamp.time - T0) / SECOND


def told(run: Run) -> list[str]:
    """What the run has of its inputs about pods: the second, the verb and the name of each."""
    return [
        f"{seconds(event):g} {event.stamp.verb} {event.key.name}"
        for event in run.timeline.events
        if event.key.resource == "pods" and event.stamp.actor == USER and not is_first_half(event)
    ]


def owned(cluster: Cluster, name: str) -> None:
    """A pod of the ReplicaSet `web`, as its recorded controller made it."""
    uid = cluster.must("replicasets", "web")["metadata"]["uid"]
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": uid}
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "ownerReferences": [{**owner, "controller": True}]},
            "spec": {"containers": [{"name": "main", "image": "busybox:1"}]},
        }
    )


def replicas() -> Cluster:
    """A ReplicaSet of two pods; those that go are replaced by others."""
    cluster = Cluster(options=OUTSIDE)
    labels = {"app": "web"}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "main", "image": "busybox:1"}]},
    }
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    cluster.create("apps/v1", "ReplicaSet", "web", spec=spec)
    owned(cluster, "a")
    owned(cluster, "b")
    cluster.wait(10).kill("a")
    owned(cluster, "c")
    cluster.wait(10).patch("pods", "c", {"metadata": {"labels": {"of": "c"}}})
    cluster.wait(10).kill("b")
    owned(cluster, "d")
    cluster.wait(10).patch("pods", "d", {"metadata": {"labels": {"of": "d"}}})
    return cluster


BEGUN = ["0 create a", "0 create b"]
NOT_NEEDED = {running._NOT_NEEDED: 2}


@pytest.mark.parametrize(
    ("refused", "expected", "not_done"),
    [
        (
            [],
            [
                *BEGUN, "10 delete a", "10 create c", "20 patch c",
                "30 delete b", "30 create d", "40 patch d",
            ],
            {},
        ),
        (  # its set lacks a pod when `b` goes: then `c` is made, with what was written about it
            [("delete", "a")],
            [*BEGUN, "30 delete b", "30 create c", "30 patch c"],
            {"a write from outside that is refused here: no delete": 1, **NOT_NEEDED},
        ),
        (
            [("delete", "a"), ("delete", "b")],
            BEGUN,
            {"a write from outside that is refused here: no delete": 2, running._NOT_NEEDED: 4},
        ),
        (
            [("delete", "b")],
            [*BEGUN, "10 delete a", "10 create c", "20 patch c"],
            {"a write from outside that is refused here: no delete": 1, **NOT_NEEDED},
        ),
        (  # nothing is left to be changed or deleted of what was not made
            [("create", "c"), ("create", "b")],
            ["0 create a", "10 delete a", "30 create d", "40 patch d"],
            {
                "a write from outside that is refused here: no create": 2,
                running._GONE: 2,
            },
        ),
    ],
)  # fmt: skip
async def test_pod_of_a_set_is_made_where_its_set_lacks_one(
    refused: list[tuple[str, str]], expected: list[str], not_done: dict[str, int]
) -> None:
    run = await changed(runs_of(replicas()), refused)
    assert told(run) == expected
    assert run.not_done == Counter(not_done)
    assert Counter(each.why for each in run.unapplied) == run.not_done


async def test_write_to_an_object_that_another_one_replaced_is_left_out() -> None:
    """The name is that of the pod before, which was not deleted here."""
    cluster = Cluster(options=OUTSIDE)
    cluster.pod("a")
    cluster.wait(10).kill("a")
    cluster.pod("a")
    cluster.wait(10).patch("pods", "a", {"metadata": {"labels": {"of": "a"}}})
    run = await changed(runs_of(cluster), [("delete", "a")])
    assert told(run) == ["0 create a"]
    assert {why.partition(":")[0]: count for why, count in run.not_done.items()} == {
        "a write from outside that is refused here": 1,
        "a creation from outside of an object whose name another one has here": 1,
        running._ANOTHER: 1,
    }


async def test_other_changes_beside_a_deletion_are_made_by_their_writer() -> None:
    """A line without the request shows the mark of the deletion and a label in one write."""
    cluster = Cluster(options=OUTSIDE)
    cluster.node("n1")
    cluster.pod("a")
    cluster.wait(10).delete("pods", "a", grace_seconds=30)
    cluster.wait(1)

    def labelled(event: Event) -> Event:
        if event.key != POD or "deletionTimestamp" not in event.object["metadata"]:
            return event
        tree = event.object
        tree = {**tree, "metadata": {**tree["metadata"], "labels": {"of": "a"}}}
        stamp = msgspec.structs.replace(event.stamp, verb="patch")
        made = msgspec.structs.replace(event, body=canonical_json(tree), stamp=stamp)
        made.forget_tree()
        return made

    run = await runs_of(cluster, labelled).run(Variant(), keep_events=True)
    about = [
        (event.stamp.actor.user, event.stamp.verb, event.object["metadata"])
        for event in run.timeline.events
        if event.key.resource == "pods" and seconds(event) == 10
    ]
    assert [(user, verb) for user, verb, _ in about] == [("alice", "patch")] * 2
    assert ["deletionTimestamp" in metadata for _, _, metadata in about] == [True, True]
    assert ["labels" in metadata for _, _, metadata in about] == [False, True]


def unplaced() -> Cluster:
    """A pod without a node, which a user deletes after ten seconds."""
    cluster = Cluster(options=OUTSIDE)
    cluster.pod("a")
    cluster.settle().wait(10).kill("a")
    cluster.create("v1", "Namespace", "other")
    return cluster


def derived(event: Event) -> Event:
    """The event in a source that has no time of its own for writes."""
    origin = Origin(source="watch", time_quality="derived")
    return msgspec.structs.replace(event, stamp=msgspec.structs.replace(event.stamp, origin=origin))


COARSE = tolerances.TABLE.coarse / SECOND


@pytest.mark.parametrize(
    ("variant", "is_derived", "until", "removed"),
    [
        ("", True, None, 10),
        ("postponed", True, None, 10 + COARSE),
        ("postponed", False, None, 10),
        ("removed_last", True, 14, 14),
        ("removed_last", True, None, 10),
        ("removed_last", False, 14, 14),
    ],
)
async def test_removal_is_applied_as_late_as_its_time_is_unsure(
    variant: str, is_derived: bool, until: float | None, removed: float
) -> None:
    cluster = unplaced()
    uid = next(event.uid for event in cluster.line.events if event.key == POD)
    runs = runs_of(cluster, derived if is_derived else lambda event: event)
    if until is not None:
        span = (Instant(T0 + 10 * SECOND), Instant(T0 + int(until * SECOND)))
        runs.recording.undated.within = {uid: span}
    chosen = Variant(**{variant: frozenset({uid})}) if variant else Variant()
    run = await runs.run(chosen, keep_events=True)
    gone = [each for each in run.timeline.events if each.type.value == "ObjectDeleted"]
    assert [(each.uid, seconds(each)) for each in gone] == [(uid, removed)]
    assert run.not_done == {}


@pytest.mark.parametrize("is_skipped", [False, True])
async def test_pod_may_be_tried_between_the_two_revisions_of_its_removal(is_skipped: bool) -> None:
    """The scheduler says that it skips the pod; the recording need not have the first revision."""
    cluster = unplaced()
    uid = next(event.uid for event in cluster.line.events if event.key == POD)
    variant = Variant(skipped=frozenset({uid}) if is_skipped else frozenset())
    run = await runs_of(cluster).run(variant, keep_events=True)
    about = [event for event in run.timeline.events if event.uid == uid and seconds(event) == 10]
    assert [(event.stamp.verb, event.stamp.actor.user, event.type.value) for event in about] == [
        ("delete", "" if is_skipped else "alice", "ObjectUpdated"),
        ("delete", "alice", "ObjectDeleted"),
    ]
    metadata = about[0].object["metadata"]
    assert metadata["deletionTimestamp"] == "2026-01-02T03:00:10Z"
    assert metadata["deletionGracePeriodSeconds"] == 0
    said = [
        event.object.get("message") or event.object.get("note")
        for event in run.timeline.events
        if event.key.resource == "events" and seconds(event) == 10
    ]
    assert [text.startswith("skip schedule deleting pod") for text in said] == [True] * is_skipped


def of_scheduler(events: Sequence[Event], *, resource: str) -> list[tuple[float, str]]:
    """When the scheduler wrote which objects about the pod, and how."""
    return [
        (seconds(event), event.type.value)
        for event in events
        if event.key.resource == resource and event.stamp.actor.user == SCHEDULER
    ]


MADE, AGAIN = "ObjectCreated", "ObjectUpdated"


def refused_twice() -> Cluster:
    """A pod that is refused at once, and again when a node comes that it does not fit on."""
    cluster = Cluster(options=OUTSIDE)
    cluster.pod("a", requests={"cpu": "8"})
    cluster.settle().wait(20)
    cluster.node("n1", cpu="1")
    cluster.settle().wait(20)
    cluster.node("n2", cpu="2")
    cluster.settle().wait(20)
    return cluster


def later(kind: str, by: float) -> Callable[[Event], Event]:
    """The scheduler's Events of a type are recorded so many seconds after their attempt."""

    def change(event: Event) -> Event:
        is_report = event.key.resource == "events" and event.stamp.actor.user == SCHEDULER
        if not is_report or event.type.value != kind:
            return event
        at = Instant(event.stamp.time + int(by * SECOND))
        return msgspec.structs.replace(event, stamp=msgspec.structs.replace(event.stamp, time=at))

    return change


@pytest.mark.parametrize(
    ("kind", "by", "names", "expected"),
    [
        (MADE, 1, (), [0, 0]),
        (MADE, 1, ("reported",), [1, 0]),
        (MADE, 1, ("repeated",), [0, 0]),
        (AGAIN, 3, ("repeated",), [0, 3]),
        (AGAIN, 3, ("reported",), [0, 0]),
        (AGAIN, 3, ("reported", "repeated"), [0, 3]),
        (MADE, -3, ("reported",), [0, 0]),
    ],
)
async def test_report_is_written_when_it_was_recorded(
    kind: str, by: float, names: Sequence[str], expected: list[float]
) -> None:
    """Only the reports that the variant names are, and none before its attempt."""
    cluster = refused_twice()
    uid = next(event.uid for event in cluster.line.events if event.key == POD)
    made = of_scheduler(cluster.line.events, resource="events")
    runs = runs_of(cluster, later(kind, by))
    run = await runs.run(Variant(**{name: frozenset({uid}) for name in names}), keep_events=True)
    found = of_scheduler(run.timeline.events, resource="events")
    late = dict(zip((MADE, AGAIN), expected, strict=True))
    assert found == [(at + late[how], how) for at, how in made]
    assert {how for _, how in found} == {MADE, AGAIN}
    assert run.not_done == {}


@pytest.mark.parametrize("kept", [0, 1, 2])
@pytest.mark.parametrize("is_unreported", [False, True])
async def test_no_more_conditions_are_written_than_were_recorded(
    kept: int, is_unreported: bool
) -> None:
    """Those of the last attempts may have reached the server after the deletion of the pod."""
    cluster = refused_twice()
    written = [event for event in cluster.line.events if is_of_attempt(event)]
    assert len(written) == 3
    gone = {event.revision for event in written[kept:]}
    cluster.line.events[:] = [each for each in cluster.line.events if each.revision not in gone]
    uid = written[0].uid
    runs = runs_of(cluster)
    variant = Variant(unreported=frozenset({uid}) if is_unreported else frozenset())
    run = await runs.run(variant, keep_events=True)
    made = [event for event in run.timeline.events if is_of_attempt(event)]
    assert len(made) == (kept if is_unreported else 3)


def is_of_attempt(event: Event) -> bool:
    return event.key == POD and event.stamp.actor.user == SCHEDULER


def runs_from(cluster: Cluster, second: float) -> Runs:
    """The runs of what happened after an instant; the objects of that moment are the beginning."""
    until = Instant(T0 + int(second * SECOND))
    before = [event for event in cluster.line.events if event.stamp.time <= until]
    views = LiveViews(cluster.profile)
    for event in before:
        views.fold(event)
    head = Head(revision=before[-1].revision, time=until)
    beginning = Beginning(
        head=head,
        after=head.revision,
        state=views.objects.dump(),
        objects=views.objects.left_over(head.revision),
    )
    schemas = rules_for(cluster.profile).schemas
    live = LiveViews(cluster.profile)
    recording = Recording(Writers(registry.NAMES), live, {}, Lacks(()), schemas)
    recording.begin(beginning)
    for event in cluster.line.events[len(before) :]:
        recording.take(event, event.stamp.time)
    recording.finish()
    return replace(runs_of(cluster), recording=recording, beginning=beginning)


@pytest.mark.parametrize("is_paced", [False, True])
@pytest.mark.parametrize("second", [5, 100])
async def test_run_from_a_moment_gives_what_came_after_it(second: float, is_paced: bool) -> None:
    """The pods that had a place or were refused by then are there, and so is what they need."""
    cluster = story()
    runs = runs_from(cluster, second)
    run = await runs.run(Variant(is_paced=is_paced), keep_events=True)
    different = compare(runs.recording.trace, run.trace).different
    assert different == {}
    assert run.not_done == {}
    assert min(map(seconds, run.timeline.events)) >= second
