"""What came from outside is put on top of what there is here."""

import msgspec
import pytest

from app.analysis.replay.inputs import Input, beside_deletion, command_of, hastened, merge
from app.domain.log import Actor, Event, EventType, ObjectKey, Revision, Stamp
from app.domain.log.chain import canonical_json
from app.domain.log.event import Origin
from app.domain.log.records import Loss
from app.domain.objects.write.commands import DeleteObject, ImportObject, Propagation
from app.domain.values.timestamps import Instant

POD = ObjectKey("", "pods", "default", "a")


@pytest.mark.parametrize(
    ("before", "after", "ours", "merged"),
    [
        pytest.param({"a": 1}, {"a": 2}, {"a": 1}, {"a": 2}, id="untouched here: taken over"),
        pytest.param(
            {"a": 1, "b": 1},
            {"a": 2, "b": 1},
            {"a": 1, "b": 5, "c": 7},
            {"a": 2, "b": 5, "c": 7},
            id="what controllers changed here stays",
        ),
        pytest.param({"a": 1, "b": 1}, {"a": 1}, {"a": 3, "b": 1}, {"a": 3}, id="removed"),
        pytest.param(
            {"conditions": [{"type": "PodScheduled", "status": "True"}]},
            {
                "conditions": [
                    {"type": "PodScheduled", "status": "True"},
                    {"type": "Ready", "status": "True"},
                ]
            },
            {"conditions": [{"type": "PodScheduled", "status": "True", "reason": "here"}]},
            {
                "conditions": [
                    {"type": "PodScheduled", "status": "True", "reason": "here"},
                    {"type": "Ready", "status": "True"},
                ]
            },
            id="conditions by type",
        ),
        pytest.param(
            {"finalizers": ["x"]},
            {"finalizers": ["x", "y"]},
            {"finalizers": ["z"]},
            {"finalizers": ["z", "y"]},
            id="texts as a set",
        ),
        pytest.param({"l": [1]}, {"l": [1, 2]}, {"l": [3]}, {"l": [1, 2]}, id="other lists whole"),
        pytest.param(
            {"resourceVersion": "1", "a": 1},
            {"resourceVersion": "2", "a": 2},
            {"resourceVersion": "9", "a": 0},
            {"resourceVersion": "9", "a": 2},
            id="versions are our own",
        ),
    ],
)
def test_recorded_change_is_put_on_top(before, after, ours, merged):
    assert merge(before, after, ours) == merged


NOW = Instant(5)


def event(tree, *, type_=EventType.OBJECT_UPDATED, verb="patch", user="alice"):
    stamp = Stamp(time=NOW, actor=Actor(user=user), verb=verb)
    return Event(
        revision=Revision(7), type=type_, key=POD, uid="u", body=canonical_json(tree), stamp=stamp
    )


def pod(*, node="", deleting=None, grace=None, phase="Pending"):
    metadata = {"name": "a", "namespace": "default", "uid": "u"}
    if deleting:
        metadata |= {"deletionTimestamp": deleting, "deletionGracePeriodSeconds": grace}
    spec = {"terminationGracePeriodSeconds": 30} | ({"nodeName": node} if node else {})
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


def test_change_of_an_object_that_is_another_one_here_is_left_out():
    other = pod() | {"metadata": {"name": "a", "uid": "other"}}
    found = Input(event=event(pod(phase="Running")), before=pod(), time=NOW)
    assert command_of(found, other) is None
    assert command_of(found, None) is None


def test_creation_is_taken_over_as_it_was_stored():
    made = event(pod(), type_=EventType.OBJECT_CREATED, verb="create")
    found = Input(event=made, before=None, time=NOW)
    command = command_of(found, None)
    assert isinstance(command, ImportObject)
    assert (command.operation, command.uid, command.tree) == ("ADDED", "u", pod())


@pytest.mark.parametrize(
    ("before", "after", "grace"),
    [
        pytest.param(
            pod(node="n"), pod(node="n", deleting="t", grace=30), None, id="the pod's own period"
        ),
        pytest.param(pod(node="n"), pod(node="n", deleting="t", grace=5), 5, id="a shorter one"),
        pytest.param(pod(), pod(deleting="t", grace=0), None, id="never bound: by the rules"),
        pytest.param(
            pod(node="n", deleting="t", grace=30),
            pod(node="n", deleting="t", grace=0),
            0,
            id="the kubelet ends it",
        ),
    ],
)
def test_deletion_is_asked_for_with_its_period(before, after, grace):
    found = Input(event=event(after, verb="delete"), before=before, time=NOW)
    command = command_of(found, before)
    assert isinstance(command, DeleteObject)
    assert (command.grace_seconds, command.uid) == (grace, "u")


@pytest.mark.parametrize(
    ("before", "after", "propagation"),
    [
        pytest.param([], [], Propagation.BACKGROUND, id="dependents go later"),
        pytest.param([], ["foregroundDeletion"], Propagation.FOREGROUND, id="they go first"),
        pytest.param([], ["orphan"], Propagation.ORPHAN, id="they stay"),
        pytest.param(["other"], ["other"], Propagation.BACKGROUND, id="another finalizer"),
        pytest.param(["orphan"], [], Propagation.BACKGROUND, id="it was not asked for before"),
    ],
)
@pytest.mark.parametrize("is_terminating", [False, True])
def test_deletion_does_to_dependents_what_its_finalizers_say(
    before: list[str], after: list[str], propagation: Propagation, is_terminating: bool
) -> None:
    """A later request changes nothing of what an earlier one asked for."""
    trees = []
    for finalizers, is_asked in ((before, is_terminating), (after, True)):
        tree = pod(deleting="t" if is_asked else None, grace=30)
        tree["metadata"]["finalizers"] = finalizers
        trees.append(tree)
    write = Input(event=event(trees[1], verb="delete"), before=trees[0], time=NOW)
    command = command_of(write, trees[0])
    assert isinstance(command, DeleteObject)
    is_older = is_terminating and before == ["orphan"]
    assert command.propagation is (None if is_older else propagation)
    assert command.options.skips_review, "the recorded API admitted it"
    assert (command.key, command.uid) == (POD, "u")


NAMED = [
    pytest.param(
        [{"name": "a"}, {"name": "b"}],
        [{"name": "a"}, {"name": "b", "x": 1}],
        [{"name": "b"}, {"name": "a", "y": 2}],
        [{"name": "a", "y": 2}, {"name": "b", "x": 1}],
        id="in the order after the write",
    ),
    pytest.param(
        [{"name": "a"}, {"name": "b"}],
        [{"name": "a"}],
        [{"name": "a"}, {"name": "b", "y": 2}, {"name": "c"}],
        [{"name": "a"}, {"name": "c"}],
        id="what was removed goes, what exists only here stays last",
    ),
    pytest.param(
        [{"name": "a"}],
        [{"name": "a"}, {"name": "b"}],
        [],
        [{"name": "b"}],
        id="what went here comes back only if it changed",
    ),
    pytest.param(
        [{"name": "a"}],
        [{"name": "a", "x": 1}],
        [{"name": "c"}],
        [{"name": "a", "x": 1}, {"name": "c"}],
        id="a changed entry comes back",
    ),
    pytest.param(
        [],
        [{"key": "k", "type": "t"}],
        [{"key": "j", "type": "t"}],
        [{"key": "k", "type": "t"}],
        id="the first field that all have names them",
    ),
    pytest.param(
        [{"name": "a"}],
        [{"name": "a"}, {"name": "a"}],
        [{"name": "c"}],
        [{"name": "a"}, {"name": "a"}],
        id="entries of one name are taken as a whole",
    ),
    pytest.param(["a", "b"], ["b", "c"], ["a", "b", "d"], ["b", "d", "c"], id="texts"),
    pytest.param(["a"], ["a", "b"], ["b"], ["b"], id="a text that is there"),
    pytest.param(None, {"a": 1}, {"b": 2}, {"b": 2, "a": 1}, id="new on both sides"),
    pytest.param({"a": 1}, None, {"a": 2}, None, id="removed as a whole"),
    pytest.param({"a": {"b": 1}}, {"a": {"b": 2}}, {}, {"a": {"b": 2}}, id="a field went here"),
    pytest.param({"a": 1, "b": 1}, {"a": 1, "b": 2}, {"b": 1}, {"b": 2}, id="it did not change"),
]


@pytest.mark.parametrize(("before", "after", "ours", "merged"), NAMED)
def test_entries_of_lists_are_merged_by_their_names(before, after, ours, merged) -> None:
    assert merge(before, after, ours) == merged


@pytest.mark.parametrize(
    ("asked", "stored", "version"),
    [
        ("v1beta1", "example.com/v2", "v1beta1"),
        ("", "example.com/v2", "v2"),
        (None, "example.com/v2", "v2"),
        ("", "v1", "v1"),
        (None, "v1", "v1"),
    ],
)
def test_deletion_is_in_the_version_of_its_request_or_else_of_the_object(asked, stored, version):
    """A log line names the version of a request; without one, the object has that of its writer."""
    origin = None if asked is None else Origin(source="audit", version=asked)
    tree = {"apiVersion": stored, **pod(node="n")}
    removed = event(tree, type_=EventType.OBJECT_DELETED, verb="delete")
    removed.stamp = msgspec.structs.replace(removed.stamp, origin=origin)
    command = command_of(Input(event=removed, before=tree, time=NOW), tree)
    assert isinstance(command, DeleteObject)
    assert command.version == version


def test_end_of_a_pod_is_asked_for_at_once_whatever_its_last_state_says():
    last = pod(node="n", deleting="t", grace=30)
    removed = event(last, type_=EventType.OBJECT_DELETED, verb="delete")
    command = command_of(Input(event=removed, before=last, time=NOW), last)
    assert isinstance(command, DeleteObject)
    assert command.grace_seconds == 0


@pytest.mark.parametrize(
    ("verb", "deleting", "held", "ends"),
    [
        ("patch", "t", ["x"], True),
        ("update", "t", ["x"], True),
        ("delete", "t", ["x"], False),
        ("deletecollection", "t", ["x"], False),
        ("patch", "t", [], False),
        ("patch", "t", ["x", "of ours"], False),
        ("patch", "", ["x"], False),
    ],
)
def test_write_that_removes_the_last_finalizer_ends_what_only_that_finalizer_keeps(
    verb, deleting, held, ends
):
    """A request to delete it would leave it to the finalizer."""
    last, ours = pod(deleting=deleting, grace=0), pod(deleting="t", grace=0)
    last["metadata"]["finalizers"] = ["x"]
    ours["metadata"]["finalizers"] = held
    removed = event(last, type_=EventType.OBJECT_DELETED, verb=verb)
    command = command_of(Input(event=removed, before=last, time=NOW), ours)
    if ends:
        assert isinstance(command, ImportObject)
        assert (command.operation, command.uid, command.tree) == ("DELETED", "u", ours)
    else:
        assert isinstance(command, DeleteObject)


def test_kubelet_waits_until_the_pod_is_bound_and_terminating_here():
    running = Input(event=event(pod(node="n", phase="Running")), before=pod(node="n"), time=NOW)
    assert not running.is_possible(pod())
    assert running.is_possible(pod(node="m"))
    stopped = Input(
        event=event(pod(node="n", phase="Failed", deleting="t", grace=30)),
        before=pod(node="n", deleting="t", grace=30),
        time=NOW,
    )
    assert not stopped.is_possible(pod(node="m"))
    assert stopped.is_possible(pod(node="m", deleting="t", grace=30))


@pytest.mark.parametrize(
    ("share", "is_possible"), [("recorded", True), ("another", False), ("", False)]
)
def test_device_status_waits_until_the_claim_has_the_device(share, is_possible):
    key = ObjectKey("resource.k8s.io", "resourceclaims", "default", "a")
    device = {"driver": "d", "pool": "p", "device": "x"}
    told = {"metadata": {}, "status": {"devices": [{**device, "shareID": "recorded"}]}}
    held = {**device, "shareID": share} if share else device
    ours = {"status": {"allocation": {"devices": {"results": [held]}}}}
    event = Event(
        revision=Revision(1),
        type=EventType.OBJECT_UPDATED,
        key=key,
        uid="u",
        stamp=Stamp(time=Instant(0), actor=Actor(user="driver"), verb="patch"),
        body=canonical_json(told),
    )
    found = Input(event=event, before={}, time=Instant(0))
    assert found.is_about_devices
    assert found.is_possible(ours) is is_possible


def labelled(tree, **labels):
    return {**tree, "metadata": {**tree["metadata"], "labels": labels}}


DELETING = "2026-01-02T03:00:00Z"


def test_write_that_shows_a_deletion_leaves_its_other_changes_to_be_made() -> None:
    """The deletion was asked for here with a grace of its own, which stays."""
    after = labelled(pod(deleting=DELETING, grace=30), team="b")
    ours = pod(deleting="2026-01-02T03:00:01Z", grace=60)
    command = beside_deletion(Input(event=event(after), before=pod(), time=NOW), ours)
    assert isinstance(command, ImportObject)
    assert (command.operation, command.key, command.uid) == ("MODIFIED", POD, "u")
    assert command.tree == labelled(ours, team="b")


def test_nothing_is_left_beside_a_deletion_that_changes_nothing_else_or_is_not_there() -> None:
    after, ours = pod(deleting=DELETING, grace=30), pod(deleting=DELETING, grace=60)
    source = Input(event=event(after), before=pod(), time=NOW)
    assert beside_deletion(source, ours) is None
    more = Input(event=event(labelled(after, team="b")), before=pod(), time=NOW)
    assert beside_deletion(more, pod()) is None
    assert beside_deletion(more, None) is None
    asked = Input(event=event(labelled(after, team="b"), verb="delete"), before=pod(), time=NOW)
    assert beside_deletion(asked, ours) is None
    first = Input(event=event(labelled(after, team="b")), before=None, time=NOW)
    assert beside_deletion(first, ours) is None
    another = {**ours, "metadata": {**ours["metadata"], "uid": "v"}}
    assert beside_deletion(more, another) is None


UNPLACED = (Loss.NO_RV.value,)
"""The losses of a write that only its time places among others."""


@pytest.mark.parametrize(
    ("removed", "skew", "losses", "expected"),
    [
        ((), 4, UNPLACED, [("a", 1), ("b", 5), ("a", 8)]),
        (("a",), 4, UNPLACED, [("a", 1), ("a", 4), ("b", 5)]),
        (("a",), 4, (), [("a", 1), ("b", 5), ("a", 8)]),
        (("a",), 2, UNPLACED, [("a", 1), ("b", 5), ("a", 6)]),
        (("a",), 9, UNPLACED, [("a", 1), ("a", 1), ("b", 5)]),
        (("b",), 4, UNPLACED, [("a", 1), ("b", 5), ("a", 8)]),
    ],
    ids=[
        "none",
        "before another write",
        "with a version",
        "less",
        "not before its own last write",
        "of no removal",
    ],
)
def test_removal_comes_earlier_by_the_difference_of_clocks(removed, skew, losses, expected):
    made = [
        Input(
            event=Event(
                revision=Revision(1),
                type=kind,
                key=POD,
                uid=uid,
                body=b"{}",
                stamp=Stamp(
                    time=Instant(at),
                    actor=Actor(user="x"),
                    verb="update",
                    origin=Origin(source="audit", losses=losses),
                ),
            ),
            before=None,
            time=Instant(at),
        )
        for uid, at, kind in (
            ("a", 1, EventType.OBJECT_UPDATED),
            ("b", 5, EventType.OBJECT_UPDATED),
            ("a", 8, EventType.OBJECT_DELETED),
        )
    ]
    moved = hastened(made, frozenset(removed), skew)
    assert [(each.event.uid, each.time) for each in moved] == expected
