"""Writes are sorted by who made them; what controllers make gets its recorded identity."""

import pytest

from app.adapters.uids import DerivedUids
from app.analysis.replay.inputs import Input
from app.analysis.replay.writers import (
    DECIDED,
    Writer,
    Writers,
    foreign_schedulers,
    foreign_users,
    is_by_anyone_alike,
    is_first_of_removal,
)
from app.domain.log import Actor, Event, EventType, ObjectKey, Revision, Stamp
from app.domain.log.chain import canonical_json
from app.domain.objects.write.commands import CreateObject, PatchObject, PatchType, UpdateObject
from app.domain.values.timestamps import Instant
from app.service.replays.deciding.names import RecordedNames

CLAIMS = ObjectKey("resource.k8s.io", "resourceclaims", "default", "")
POD = ObjectKey("", "pods", "default", "a")
MANAGER = "system:serviceaccount:kube-system:"


def event(key, tree, *, user, type_=EventType.OBJECT_UPDATED, uid="u"):
    stamp = Stamp(time=Instant(1), actor=Actor(user=user), verb="update")
    return Event(
        revision=Revision(1), type=type_, key=key, uid=uid, body=canonical_json(tree), stamp=stamp
    )


@pytest.mark.parametrize(
    ("user", "sort"),
    [
        ("alice", Writer.OUTSIDE),
        ("system:node:worker-1", Writer.OUTSIDE),
        ("system:serviceaccount:drivers:gpu", Writer.OUTSIDE),
        ("system:kube-scheduler", Writer.DECIDED),
        (MANAGER + "resource-claim-controller", Writer.DECIDED),
        (MANAGER + "device-taint-eviction-controller", Writer.DECIDED),
        (MANAGER + "replicaset-controller", Writer.NOT_EMULATED),
        (MANAGER + "ttl-controller", Writer.NOT_EMULATED),
    ],
)
def test_user_name_tells_who_wrote(user, sort):
    before = {"metadata": {"name": "a"}}
    after = {"metadata": {"name": "a", "labels": {"x": "y"}}}
    assert Writers(DECIDED).of(event(POD, after, user=user), before, user) is sort


@pytest.mark.parametrize(
    ("user", "type_", "sort"),
    [
        ("system:kube-scheduler", EventType.OBJECT_CREATED, Writer.OUTSIDE),
        ("system:kube-scheduler", EventType.OBJECT_UPDATED, Writer.OUTSIDE),
        (MANAGER + "generic-garbage-collector", EventType.OBJECT_UPDATED, Writer.DECIDED),
        (MANAGER + "namespace-controller", EventType.OBJECT_DELETED, Writer.DECIDED),
    ],
)
def test_lease_by_which_a_process_leads_is_no_decision(user, type_, sort):
    key = ObjectKey("coordination.k8s.io", "leases", "kube-system", "kube-scheduler")
    written = event(key, {"spec": {"holderIdentity": "cp-1"}}, user=user, type_=type_)
    assert Writers(DECIDED).of(written, None, user) is sort


def report_by(reporter, reason="Scheduled", user="redra:import", manager=""):
    key = ObjectKey("", "events", "default", "e")
    tree = {"kind": "Event", "reason": reason, "reportingComponent": reporter}
    if manager:
        tree["metadata"] = {"managedFields": [{"manager": manager, "operation": "Update"}]}
    return event(key, tree, user=user)


def pod_of(scheduler, user="redra:import", **status):
    return event(POD, {"spec": {"schedulerName": scheduler}, "status": status}, user=user)


@pytest.mark.parametrize(
    ("events", "foreign"),
    [
        ([report_by("default-scheduler")], {"mine"}),
        ([report_by("default-scheduler", "FailedScheduling")], {"mine"}),
        ([report_by("default-scheduler", "Preempted")], set()),
        ([], set()),
        ([report_by("kubelet")], set()),
        ([report_by("default-scheduler"), report_by("mine")], set()),
        ([report_by("default-scheduler"), pod_of("mine", "system:kube-scheduler")], set()),
        ([report_by("default-scheduler"), pod_of("mine", nominatedNodeName="n")], set()),
        ([report_by("default-scheduler"), pod_of("")], {"mine"}),
        ([report_by("default-scheduler"), report_by("mine", user="me")], {"mine"}),
        ([report_by("default-scheduler", user="me"), report_by("mine", user="me")], set()),
        ([report_by("default-scheduler"), report_by("mine", user="system:kube-scheduler")], set()),
        ([report_by("default-scheduler"), report_by("mine", manager="m")], {"mine"}),
        (
            [
                report_by("default-scheduler", manager="m"),
                report_by("default-scheduler", manager="n"),
                report_by("mine", manager="m"),
            ],
            set(),
        ),
    ],
)
def test_scheduler_that_reports_nothing_or_as_another_user_is_another_program(events, foreign):
    """Two pods, of `mine` and of the usual scheduler, and what else is recorded."""
    assert foreign_schedulers([pod_of("mine"), pod_of("default-scheduler"), *events]) == foreign


def test_writes_of_a_user_who_reports_for_another_scheduler_are_foreign():
    usual, other = report_by("default-scheduler"), report_by("mine", user="me")
    users = foreign_users([usual, other], {"mine"})
    assert users == {"me"}
    writers = Writers(DECIDED, {"mine"}, users)
    claim = ObjectKey("resource.k8s.io", "resourceclaims", "default", "c")
    for user, is_foreign in (("me", True), ("redra:import", False)):
        assert writers.is_foreign(event(claim, {"status": {}}, user=user), None) is is_foreign
    assert [writers.is_foreign(each, None) for each in (usual, other)] == [False, True]


@pytest.mark.parametrize(
    ("key", "user", "pod_of_scheduler", "names"),
    [
        (POD, "me", "mine", "mine"),
        (POD, "me", "default-scheduler", "mine, other"),
        (CLAIMS._replace(name="c"), "me", "", "mine, other"),
        (CLAIMS._replace(name="c"), "redra:import", "", ""),
    ],
)
def test_words_name_the_schedulers_apart_from_kube_scheduler(key, user, pod_of_scheduler, names):
    """That of the pod; of a write that does not say it, all whose choices are not judged."""
    tree = {"spec": {"schedulerName": pod_of_scheduler}} if pod_of_scheduler else {}
    words = Writers(DECIDED, {"mine", "other"}, {"me"}).apart(event(key, tree, user=user), None)
    assert words == (names and f" for a scheduler apart from kube-scheduler ({names})")


def test_first_half_of_a_removal_is_part_of_it():
    before = {"metadata": {"deletionTimestamp": "t1", "deletionGracePeriodSeconds": 30}}
    after = {"metadata": {"deletionTimestamp": "t2", "deletionGracePeriodSeconds": 0}}
    written = event(POD, after, user="redra:import")
    namespaces = MANAGER + "namespace-controller"
    assert Writers(DECIDED).of(written, before, "redra:import") is Writer.ECHO
    assert Writers(DECIDED).of(written, before, namespaces) is Writer.ECHO


def test_mark_of_a_pod_that_a_finalizer_keeps_is_a_deletion_of_its_own():
    kept = {"finalizers": ["batch.kubernetes.io/job-tracking"]}
    mark = {"deletionTimestamp": "t", "deletionGracePeriodSeconds": 0}
    marked = event(POD, {"metadata": {**kept, **mark}}, user="redra:import")
    assert Writers(DECIDED).of(marked, {"metadata": kept}, "redra:import") is Writer.OUTSIDE


@pytest.mark.parametrize(
    ("change", "is_first"),
    [
        pytest.param({}, True, id="marked, to go at once, by nobody who is recorded"),
        pytest.param({"grace": 30}, False, id="it has time"),
        pytest.param({"grace": None}, False, id="it is not marked"),
        pytest.param({"finalizers": ["f"]}, False, id="a finalizer keeps it"),
        pytest.param({"user": "alice"}, False, id="who wrote it is recorded"),
        pytest.param({"key": CLAIMS}, False, id="it is no pod"),
        pytest.param({"type_": EventType.OBJECT_DELETED}, False, id="it is the end itself"),
    ],
)
def test_pod_goes_at_once_after_a_mark_that_nobody_wrote(change, is_first):
    given = {"key": POD, "user": "redra:import", "grace": 0, "finalizers": []} | change
    metadata = {"finalizers": given.pop("finalizers")}
    if (grace := given.pop("grace")) is not None:
        metadata["deletionGracePeriodSeconds"] = grace
    written = event(given.pop("key"), {"metadata": metadata}, **given)
    assert is_first_of_removal(written) is is_first


NODE = ObjectKey("", "nodes", "", "n1")
DONE = {"spec": {"nodeName": "n1"}, "status": {"phase": "Succeeded"}}


@pytest.mark.parametrize(
    ("user", "before", "objects", "is_alike"),
    [
        pytest.param("redra:import", DONE, {}, True, id="its node is gone"),
        pytest.param("redra:import", DONE, {NODE: {}}, False, id="its node is there"),
        pytest.param("alice", DONE, {}, False, id="its author is recorded"),
        pytest.param("redra:import", {**DONE, "status": {}}, {}, False, id="it has not finished"),
        pytest.param("redra:import", None, {}, False, id="it was never seen"),
    ],
)
def test_removal_that_a_client_or_the_pod_collector_made(user, before, objects, is_alike):
    removed = event(POD, before or DONE, user=user, type_=EventType.OBJECT_DELETED)
    assert is_by_anyone_alike(removed, before, objects) is is_alike


BOUND = {"spec": {"nodeName": "n1"}, "status": {"phase": "Pending"}}
RUNNING = {"spec": {"nodeName": "n1"}, "status": {"phase": "Running"}}
LABELLED = {**BOUND, "metadata": {"labels": {"x": "y"}}}


@pytest.mark.parametrize(
    ("user", "after", "is_kubelet"),
    [
        ("system:node:n1", LABELLED, True),
        ("redra:import", LABELLED, True),
        ("user-7", RUNNING, True),
        ("alice", LABELLED, False),
    ],
)
def test_kubelet_is_known_by_its_name_or_by_what_it_does(user, after, is_kubelet):
    """Its write waits until the pod has its node here: otherwise the pod ends before."""
    made = Input(event=event(POD, after, user=user), before=BOUND, time=Instant(1), author=user)
    assert made.is_of_kubelet is is_kubelet


def claim(name=""):
    metadata = {
        "generateName": "a-gpu-",
        "ownerReferences": [{"uid": "pod", "controller": True}],
    }
    return {"metadata": metadata | ({"name": name} if name else {})}


def made(name, uid):
    return event(
        CLAIMS._replace(name=name),
        claim(name),
        user=MANAGER + "resource-claim-controller",
        type_=EventType.OBJECT_CREATED,
        uid=uid,
    )


def names_of(recorded=()):
    return RecordedNames(DerivedUids(1), frozenset(recorded).__contains__)


def test_uid_that_the_recording_has_for_another_object_is_not_given():
    derived = DerivedUids(1)
    names = names_of([derived.uid(), derived.uid()])
    assert names.uid() == derived.uid()


def test_generated_claim_gets_its_recorded_name_and_uid_once():
    names = names_of()
    names.learn(made("a-gpu-x1", "first"))
    names.learn(made("a-gpu-x2", "second"))
    command = CreateObject(key=CLAIMS, version="v1", tree=claim())
    for name, uid in (("a-gpu-x1", "first"), ("a-gpu-x2", "second")):
        (adapted,) = names.adapt([command])
        assert isinstance(adapted, CreateObject)
        assert (adapted.key.name, adapted.tree["metadata"]["name"]) == (name, name)
        assert names.uid() == uid
        names.follow(made(name, uid))
    (fresh,) = names.adapt([command])
    assert fresh == command
    assert names.uid() == DerivedUids(1).uid()


def test_recorded_name_that_no_server_gives_is_not_used_here():
    names = names_of()
    names.learn(made("b-gpu-x1", "first"))
    command = CreateObject(key=CLAIMS, version="v1", tree=claim())
    assert list(names.adapt([command])) == [command]


def test_refused_creation_keeps_its_recorded_name_for_the_next_try():
    names = names_of()
    names.learn(made("a-gpu-x1", "first"))
    command = CreateObject(key=CLAIMS, version="v1", tree=claim())
    names.adapt([command])
    names.adapt([command])
    assert names.uid() == "first"


def test_name_that_a_plan_has_drawn_is_replaced_in_all_its_commands():
    names = names_of()
    names.learn(made("a-gpu-x1", "first"))
    own = claim("a-gpu-own")
    key = CLAIMS._replace(name="a-gpu-own")
    status = {"status": {"extendedResourceClaimStatus": {"resourceClaimName": "a-gpu-own"}}}
    create, update, patch = names.adapt(
        [
            CreateObject(key=key, version="v1", tree=own),
            UpdateObject(key=key, version="v1", tree=own, subresource="status"),
            PatchObject(key=POD, version="v1", type=PatchType.STRATEGIC, body=status),
        ]
    )
    assert isinstance(create, CreateObject)
    assert isinstance(update, UpdateObject)
    assert isinstance(patch, PatchObject)
    assert {create.key.name, update.key.name, update.tree["metadata"]["name"]} == {"a-gpu-x1"}
    assert patch.body == {
        "status": {"extendedResourceClaimStatus": {"resourceClaimName": "a-gpu-x1"}}
    }


def shared(device, *ids):
    results = [
        {"request": "r", "driver": "d", "pool": "p", "device": device, "shareID": each}
        for each in ids
    ]
    status = {"allocation": {"devices": {"results": results}}}
    return {**claim(), "metadata": {"name": "a", "uid": "u"}, "status": status}


def shares_given(names, tree):
    key = CLAIMS._replace(name="a")
    command = UpdateObject(key=key, version="v1", tree=tree, subresource="status")
    (adapted,) = names.adapt([command])
    assert isinstance(adapted, UpdateObject)
    results = adapted.tree["status"]["allocation"]["devices"]["results"]
    return [found["shareID"] for found in results]


def test_shares_get_their_recorded_ids_allocation_by_allocation():
    names = names_of()
    key = CLAIMS._replace(name="a")
    for ids in (("one", "two"), ("three", "four")):
        names.learn(event(key, shared("x", *ids), user="system:kube-scheduler"))
    assert shares_given(names, shared("x", "own-1", "own-2")) == ["one", "two"]
    names.follow(event(key, shared("x", "one", "two"), user="system:kube-scheduler"))
    assert shares_given(names, shared("x", "one", "two")) == ["one", "two"], "a later write"
    assert shares_given(names, shared("x", "own-3", "own-4")) == ["three", "four"]
    assert shares_given(names, shared("y", "own-5", "own-6")) == ["own-5", "own-6"]


def test_shares_of_a_whole_device_are_none_and_a_used_id_is_not_given_again():
    names = names_of()
    key = CLAIMS._replace(name="a")
    whole = shared("x", "")
    names.learn(event(key, whole, user="system:kube-scheduler"))
    assert shares_given(names, whole) == [""]
    mixed = shared("x", "one", "")
    names.learn(event(key, mixed, user="system:kube-scheduler"))
    assert shares_given(names, shared("x", "own", "")) == ["one", ""]
    gone = shared("x", "late", "")
    names.learn(event(key, gone, user="alice", type_=EventType.OBJECT_DELETED))
    names.follow(event(key, mixed, user="system:kube-scheduler"))
    assert shares_given(names, shared("x", "own", "")) == ["own", ""]


def test_claim_that_is_made_and_allocated_at_once_gets_the_recorded_shares():
    """The plan knows no uid of what it makes."""
    names = names_of()
    names.learn(made("a-gpu-x1", "u"))
    names.learn(event(CLAIMS._replace(name="a-gpu-x1"), shared("x", "one"), user="s", uid="u"))
    key = CLAIMS._replace(name="a-gpu-own")
    tree = shared("x", "own")
    tree["metadata"] = claim("a-gpu-own")["metadata"]
    _, update = names.adapt(
        [
            CreateObject(key=key, version="v1", tree=claim("a-gpu-own")),
            UpdateObject(key=key, version="v1", tree=tree, subresource="status"),
        ]
    )
    assert isinstance(update, UpdateObject)
    assert update.tree["status"]["allocation"]["devices"]["results"][0]["shareID"] == "one"


ADDED = {
    "app": "x",
    "example.com/a": "x",
    "notkubernetes.io/a": "x",
    "a.kubernetes.io/a": "x",
    "kubernetes.io/a": "x",
    "sub.k8s.io/a": "x",
}


@pytest.mark.parametrize("field", ["labels", "annotations"])
@pytest.mark.parametrize(
    ("own", "wanted"),
    [
        (None, {"app": "x", "example.com/a": "x", "notkubernetes.io/a": "x"}),
        (
            {"app": "own", "more": "y"},
            {"app": "own", "more": "y", "example.com/a": "x", "notkubernetes.io/a": "x"},
        ),
    ],
)
def test_what_webhooks_add_to_a_recorded_object_is_added_here(field, own, wanted):
    """Not what Kubernetes itself writes; a value of this world stays."""
    names = names_of()
    tree = claim("a-gpu-x1")
    tree["metadata"][field] = ADDED
    names.learn(
        event(
            CLAIMS._replace(name="a-gpu-x1"),
            tree,
            user="u",
            type_=EventType.OBJECT_CREATED,
            uid="f",
        )
    )
    ours = claim()
    if own is not None:
        ours["metadata"][field] = own
    (command,) = names.adapt([CreateObject(key=CLAIMS, version="v1", tree=ours)])
    assert isinstance(command, CreateObject)
    assert command.tree["metadata"][field] == wanted
    other = "annotations" if field == "labels" else "labels"
    assert other not in command.tree["metadata"]


@pytest.mark.parametrize(
    ("change", "is_counterpart"),
    [
        ({}, True),
        ({"namespace": "other"}, False),
        ({"resource": "pods"}, False),
        ({"group": "other"}, False),
        ({"generate_name": "b-gpu-"}, False),
        ({"owner": "another"}, False),
    ],
)
def test_counterpart_has_the_same_place_and_owners(change, is_counterpart):
    names = names_of()
    names.learn(made("a-gpu-x1", "first"))
    tree = claim()
    tree["metadata"]["generateName"] = change.pop("generate_name", "a-gpu-")
    tree["metadata"]["ownerReferences"][0]["uid"] = change.pop("owner", "pod")
    command = CreateObject(key=CLAIMS._replace(**change), version="v1", tree=tree)
    (adapted,) = names.adapt([command])
    assert isinstance(adapted, CreateObject)
    assert adapted.key.name == ("a-gpu-x1" if is_counterpart else "")


def test_objects_of_one_plan_get_one_counterpart_each():
    names = names_of()
    names.learn(made("a-gpu-x1", "first"))
    names.learn(made("a-gpu-x2", "second"))
    command = CreateObject(key=CLAIMS, version="v1", tree=claim())
    assert [each.key.name for each in names.adapt([command] * 3)] == ["a-gpu-x1", "a-gpu-x2", ""]
    assert [names.uid(), names.uid(), names.uid()] == ["first", "second", DerivedUids(1).uid()]
