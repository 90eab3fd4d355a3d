"""Which recorded writes the controllers of a changed world replace, and what these see."""

from types import SimpleNamespace

import pytest

from app.analysis.replay.authors import UNNAMED
from app.analysis.replay.inputs import Input
from app.domain.controllers import registry
from app.domain.log import Actor, Event, EventType, ObjectKey, Revision, Stamp
from app.domain.objects.write.commands import DeleteObject, ImportObject
from app.domain.values.timestamps import Instant
from app.service.replays.deciding.replaced import ReplacedControllers
from projections.objects import ObjectsProjection
from tests.unit.projections.log_of import LogOf

CREATED, UPDATED = EventType.OBJECT_CREATED, EventType.OBJECT_UPDATED
DEPLOYMENT = ObjectKey("apps", "deployments", "ns", "web")
SET = ObjectKey("apps", "replicasets", "ns", "web-1")
POD = ObjectKey("", "pods", "ns", "web-1-a")
SAID = ObjectKey("", "events", "ns", "e")
REQUEST = ObjectKey("resource.k8s.io", "resourcepoolstatusrequests", "", "r")
DEPLOYER = registry.actor_of("deployments").user
REPLICATOR = registry.actor_of("replica-sets").user
ANSWERER = registry.actor_of("pool-status").user


def owned(kind, name, **parts):
    reference = {"kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}
    return {"metadata": {"ownerReferences": [reference]}, **parts}


OURS = owned("Deployment", "web")
ABOUT = {"involvedObject": {"kind": "Deployment", "name": "web", "uid": "uid-web"}}


def event(key, tree=None, kind=UPDATED, uid=""):
    return Event(
        revision=Revision(1),
        type=kind,
        key=key,
        uid=uid or f"uid-{key.name}",
        body=b"",
        stamp=Stamp(time=Instant(1), actor=Actor(user="x"), verb="update"),
        tree=tree or {},
    )


def write(author, key, tree=None, kind=UPDATED, before=None):
    given = event(key, tree, kind)
    return Input(event=given, before=before, time=Instant(1), author=author)


def changed(key, tree=None, *, stored=None):
    """Controllers after the edit of an object, and the pace that they were given."""
    pace = SimpleNamespace()
    controllers = ReplacedControllers(pace)
    log = LogOf(ObjectsProjection())
    if stored is not None:
        log.append(CREATED, key, stored)
    if tree is None:
        command = DeleteObject(key=key)
    else:
        command = ImportObject(operation="MODIFIED", key=key, uid="u", tree=tree)
    controllers.note([command], log.view)
    return controllers, pace


EDITS = {
    "a Deployment": (DEPLOYMENT, {}, None),
    "a Deployment that is removed": (DEPLOYMENT, None, {"metadata": {"name": "web"}}),
    "one of its ReplicaSets": (SET, OURS, None),
    "one that is removed": (SET, None, OURS),
}


@pytest.mark.parametrize(("key", "tree", "stored"), EDITS.values(), ids=EDITS)
@pytest.mark.parametrize(
    ("author", "where", "shown", "is_replaced"),
    [
        (DEPLOYER, DEPLOYMENT, {}, True),
        (DEPLOYER, DEPLOYMENT._replace(name="other"), {}, False),
        (DEPLOYER, DEPLOYMENT._replace(namespace="other"), {}, False),
        (REPLICATOR, DEPLOYMENT, {}, False),
        ("alice", DEPLOYMENT, {}, False),
        (UNNAMED, DEPLOYMENT, {}, False),
        (DEPLOYER, SET, OURS, True),
        (REPLICATOR, SET, OURS, True),
        (UNNAMED, SET, OURS, True),
        ("", SET, OURS, True),
        ("alice", SET, OURS, False),
        (REPLICATOR, SET, owned("Deployment", "other"), False),
        (REPLICATOR, SET, owned("Rollout", "web"), False),
        (REPLICATOR, SET, {}, False),
        (REPLICATOR, POD, owned("Deployment", "web"), False),
        (DEPLOYER, SAID, ABOUT, True),
        (DEPLOYER, SAID, {"involvedObject": {"kind": "ReplicaSet", "name": "web"}}, False),
    ],
)
def test_writes_of_controllers_about_an_edited_deployment_are_replaced(
    key, tree, stored, author, where, shown, is_replaced
):
    controllers, pace = changed(key, tree, stored=stored)
    assert controllers.replaces(write(author, where, shown)) is is_replaced
    # What they write here waits for no recorded instant.
    is_about_it = is_replaced or (where in (DEPLOYMENT, SET) and shown in ({}, OURS))
    is_about_it = is_about_it and (where != SET or shown == OURS)
    assert pace.prompt == ({where} if is_about_it else set())


def test_without_edits_of_deployments_all_recorded_writes_stay():
    controllers, pace = changed(POD, {})
    for author, where, shown in ((DEPLOYER, DEPLOYMENT, {}), (DEPLOYER, SET, OURS)):
        assert not controllers.replaces(write(author, where, shown))
    assert pace.prompt == set()
    assert ReplacedControllers(None).place(SimpleNamespace(name="scheduling")) is None


class Controller:
    """A controller that remembers what it was shown."""

    reads, queues = frozenset(("deployments",)), ("queue",)

    def __init__(self, name):
        self.name, self.shown = name, []
        self.step, self.settled, self.due, self.redecide = "step", "settled", "due", "redecide"

    def fold(self, event, views):
        assert views == "views"
        self.shown.append(event.key)


def test_controller_of_deployments_sees_what_edits_concern_and_all_events():
    controllers, _ = changed(DEPLOYMENT, {})
    inner = Controller("deployments")
    placed = controllers.place(inner)
    for key, tree in (
        (DEPLOYMENT, {}),
        (DEPLOYMENT._replace(name="other"), {}),
        (SET, OURS),
        (SET, owned("Deployment", "other")),
        (SAID, {}),
        (POD, {}),
    ):
        placed.fold(event(key, tree), "views")
    assert inner.shown == [DEPLOYMENT, SET, SAID]
    assert (placed.name, placed.reads, placed.queues) == (inner.name, inner.reads, inner.queues)
    assert (placed.step, placed.settled, placed.due, placed.redecide) == (
        "step",
        "settled",
        "due",
        "redecide",
    )


def test_pod_of_a_replica_set_that_is_not_made_here_is_not_made_either():
    controllers, _ = changed(DEPLOYMENT, {})
    log = LogOf(ObjectsProjection())
    made = event(POD, owned("ReplicaSet", "web-1"), CREATED)
    assert controllers.lack_owner(made, log.view) == ""
    assert controllers.replaces(write(DEPLOYER, SET, OURS, CREATED))
    assert "whose ReplicaSet was not made here" in controllers.lack_owner(made, log.view)
    for other in (
        event(POD, owned("ReplicaSet", "web-1")),
        event(SAID, owned("ReplicaSet", "web-1"), CREATED),
        event(POD, owned("ReplicaSet", "web-2"), CREATED),
        event(POD, {}, CREATED),
    ):
        assert controllers.lack_owner(other, log.view) == ""
    tree = {"metadata": {"name": "web-1", "namespace": "ns", "uid": "uid-web-1"}}
    log.append(CREATED, SET, tree)
    assert controllers.lack_owner(made, log.view) == ""


def test_replica_set_that_is_only_changed_was_made_before():
    controllers, _ = changed(DEPLOYMENT, {})
    assert controllers.replaces(write(REPLICATOR, SET, OURS))
    made = event(POD, owned("ReplicaSet", "web-1"), CREATED)
    assert controllers.lack_owner(made, LogOf(ObjectsProjection()).view) == ""


ANSWER = {"status": {"pools": []}}


@pytest.mark.parametrize(
    ("author", "tree", "kind", "is_replaced"),
    [
        (ANSWERER, ANSWER, UPDATED, True),
        ("", ANSWER, UPDATED, True),
        (UNNAMED, ANSWER, UPDATED, True),
        (UNNAMED, {"spec": {"limit": 1}}, UPDATED, False),
        ("alice", ANSWER, UPDATED, False),
        (ANSWERER, ANSWER, EventType.OBJECT_DELETED, False),
    ],
)
def test_requests_since_the_change_are_answered_here(author, tree, kind, is_replaced):
    controllers, _ = changed(POD, {})
    inner = Controller("pool-status")
    placed = controllers.place(inner)
    answer = write(author, REQUEST, tree, kind, before={})
    assert not controllers.replaces(answer), "an older request"
    placed.fold(event(REQUEST), "views")
    placed.fold(event(REQUEST._replace(group="other"), kind=CREATED), "views")
    assert inner.shown == []
    placed.fold(event(REQUEST, kind=CREATED), "views")
    placed.fold(event(REQUEST), "views")
    assert inner.shown == [REQUEST, REQUEST]
    assert controllers.replaces(answer) is is_replaced


def test_requests_before_the_change_keep_their_answers():
    controllers = ReplacedControllers(None)
    placed = controllers.place(inner := Controller("pool-status"))
    placed.fold(event(REQUEST, kind=CREATED), "views")
    controllers.note([], LogOf(ObjectsProjection()).view)
    assert inner.shown == []
    assert not controllers.replaces(write(ANSWERER, REQUEST, ANSWER, before={}))
