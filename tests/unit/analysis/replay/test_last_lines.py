"""Last lines that are lost: an act has no reason in the last state of an object."""

import pytest
from msgspec.structs import replace

from app.analysis.replay.authors import CLAIMS, COLLECTOR, NODES, SCHEDULER
from app.analysis.replay.unsure.last_lines import LastLines
from app.domain.log import Actor, Event, EventType, ObjectKey, Revision, Stamp
from app.domain.log.chain import canonical_json
from app.domain.log.event import Origin
from app.domain.log.store_versions import Versions
from tests.unit.analysis.replay.test_lacks import at

POD = ObjectKey("", "pods", "default", "p")
CLAIM = ObjectKey("resource.k8s.io", "resourceclaims", "default", "c")
OTHER = ObjectKey("resource.k8s.io", "resourceclaims", "default", "o")
SET = ObjectKey("apps", "replicasets", "default", "r")
DEVICES = {"results": [{"driver": "d", "pool": "n", "device": "x", "request": "g"}]}
ALLOCATED = {"allocation": {"devices": DEVICES}}


class Leftover(Versions):
    """Versions of which one is left over at some time, or none."""

    def __init__(self, *, is_any):
        super().__init__()
        self.is_any, self.spans = is_any, []

    def may_hide(self, first, last, beside=()):
        self.spans.append((first, last))
        return self.is_any


PROTECTED = ["resource.kubernetes.io/delete-protection"]


def state(
    key,
    user="alice",
    verb="update",
    *,
    owner=None,
    entry="",
    ends=False,
    ending=None,
    kept=(),
    **parts,
):
    owners = [] if owner is None else [{"uid": owner.name, "kind": "X", "name": owner.name}]
    metadata = {"name": key.name, "namespace": key.namespace, "ownerReferences": owners}
    metadata |= {"finalizers": list(kept)}
    metadata |= {"annotations": {"resource.kubernetes.io/pod-claim-name": entry}} if entry else {}
    metadata |= {} if ending is None else {"deletionTimestamp": ending}
    type_ = EventType.OBJECT_DELETED if ends else EventType.OBJECT_UPDATED
    stamp = Stamp(time=at(1), actor=Actor(user=user), verb=verb)
    body = canonical_json({"metadata": {**metadata, "uid": key.name}, **parts})
    return Event(revision=Revision(1), type=type_, key=key, uid=key.name, body=body, stamp=stamp)


def reserved(*pods, **parts):
    users = [{"resource": "pods", "name": each, "uid": each} for each in pods]
    return {"status": {"reservedFor": users, **parts}}


def found(*events, is_any=True, are_others_lost=False):
    lines = LastLines(Leftover(is_any=is_any))
    for second, each in enumerate(events):
        lines.note(each, at(second))
    return [(line.key, line.since) for line in lines.lost_lines(are_others_lost=are_others_lost)]


USED = state(CLAIM, **reserved("p"))
FREED = state(CLAIM, CLAIMS, **reserved())
DELETED = state(CLAIM, COLLECTOR, "delete", owner=POD, ends=True)
BOUND = state(
    POD,
    SCHEDULER,
    "create",
    spec={"nodeName": "n", "resourceClaims": [{"name": "g", "resourceClaimName": "c"}]},
)
EXTENDED = state(
    POD,
    SCHEDULER,
    "create",
    spec={"nodeName": "n"},
    status={"extendedResourceClaimStatus": {"resourceClaimName": "c"}},
)
GIVEN = state(CLAIM, SCHEDULER, status=ALLOCATED)
DRIVEN = {"driver": "d", "pool": "n", "device": "x"}


def reported(status, *, key=CLAIM, pod="p"):
    """A claim of a pod whose device has two binding conditions, of which one is reported."""
    named = ("A", "B")
    result = {**DRIVEN, "request": "g", "bindingConditions": named}
    result |= {"bindingFailureConditions": ["C"]}
    conditions = [{"type": each, "status": status if each == "B" else "True"} for each in named]
    report = {"devices": [{**DRIVEN, "conditions": conditions}]} if status else {}
    given = {"allocation": {"devices": {"results": [result]}}}
    return state(key, "driver", **reserved(pod, **given, **report))


def made(key, user, kind, owner):
    """An object that a user makes for a pod or about a node."""
    reference = {"uid": owner.name, "kind": kind, "name": owner.name}
    about = {"regarding": reference} if key.resource == "events" else {}
    tree = {"metadata": {"uid": key.name, "ownerReferences": [] if about else [reference]}, **about}
    stamp = Stamp(time=at(1), actor=Actor(user=user), verb="create")
    type_, body = EventType.OBJECT_CREATED, canonical_json(tree)
    return Event(revision=Revision(1), type=type_, key=key, uid=key.name, body=body, stamp=stamp)


def naming(user, **status):
    """A pod in which a user names the claim that was made from a template."""
    entries = [{"name": "g", "resourceClaimTemplateName": "t"}]
    made = [{"name": "g", "resourceClaimName": "c"}]
    status = {**status, "resourceClaimStatuses": made}
    return state(POD, user, "patch", spec={"resourceClaims": entries}, status=status)


def using(status):
    """A pod that names a claim of a user, with a status that the scheduler writes."""
    entries = [{"name": "g", "resourceClaimName": "c"}]
    return state(POD, SCHEDULER, "patch", spec={"resourceClaims": entries}, status=status)


PLACED = naming(SCHEDULER, nominatedNodeName="n")
OF_ENTRY = state(OTHER, CLAIMS, "create", owner=POD, entry="g")
NOMINATED = using({"nominatedNodeName": "n"})
TRIED = using({"conditions": [{"type": "PodScheduled", "status": "False", "message": "no node"}]})
NODE = ObjectKey("", "nodes", "", "n")
SAID = ObjectKey("events.k8s.io", "events", "default", "e")
MADE = made(CLAIM, CLAIMS, "Pod", POD)
NOTED = made(SAID, NODES, "Node", NODE)
LABELLED = state(CLAIM, "alice", "patch", status=ALLOCATED)
RUNNING = state(POD, spec={"nodeName": "n"})
ENDING = state(POD, spec={"nodeName": "n"}, ending="2026-01-01T00:00:00Z")
FINISHED = state(POD, status={"phase": "Failed"})
GONE = state(OTHER, ends=True)
LATER_SETS = [state(SET)] * 2
LATER = [state(OTHER)] * 16
"""Lines of other objects, one each second."""


@pytest.mark.parametrize(
    ("events", "lost"),
    [
        # a reservation is taken back
        ((state(POD), USED, FREED), [POD]),
        ((FINISHED, USED, FREED), []),
        ((RUNNING, USED, FREED, *LATER), []),
        # a deletion without a grace period may be answered after the end of the log
        ((RUNNING, USED, FREED), [POD]),
        ((RUNNING, USED, FREED, *LATER[:2]), []),  # no request takes that long here
        ((RUNNING, USED, state(CLAIM, "alice", **reserved())), []),
        # a kubelet ends a pod in several lines; the last one may be lost
        ((RUNNING, DELETED, *LATER), []),
        ((ENDING, DELETED), [POD]),
        ((state(POD), USED, state(CLAIM, "alice", **reserved())), []),
        ((state(POD), USED, state(POD, ends=True), FREED), []),
        ((state(POD), USED, FREED, state(POD)), []),
        # what belonged to a pod is collected; the claim controller also deletes for finished ones
        ((state(POD), DELETED), [POD]),
        ((FINISHED, DELETED), [POD]),
        ((FINISHED, state(CLAIM, CLAIMS, "delete", owner=POD, ends=True)), []),
        ((state(POD), state(CLAIM, "alice", "delete", owner=POD, ends=True)), []),
        # what else the lost owner has ends with it
        (
            (state(SET), state(POD, owner=SET), state(CLAIM, COLLECTOR, "delete", owner=SET)),
            [SET, CLAIM, POD],
        ),
        # a pod is bound before its claim is allocated, which only the allocation follows
        ((state(CLAIM, kept=PROTECTED), BOUND), [CLAIM]),
        ((state(CLAIM), BOUND), []),
        ((state(CLAIM, kept=PROTECTED), EXTENDED), [CLAIM]),
        ((state(CLAIM, **reserved("p", **ALLOCATED)), BOUND), []),
        # or before its claim is reserved for it, too
        ((state(CLAIM, **reserved("q", **ALLOCATED)), BOUND), [CLAIM]),
        # the scheduler gives no devices without a reservation, and takes one back by a patch
        ((state(CLAIM, kept=PROTECTED), GIVEN, BOUND), []),
        ((state(CLAIM, kept=PROTECTED), GIVEN, LABELLED, BOUND), []),
        ((state(CLAIM, kept=PROTECTED), LABELLED, BOUND), [CLAIM]),
        ((LABELLED, state(CLAIM, SCHEDULER, "patch", status=ALLOCATED), BOUND), [CLAIM]),
        ((state(CLAIM, kept=PROTECTED), BOUND, state(CLAIM, status=ALLOCATED)), []),
        ((BOUND, state(CLAIM)), []),
        # or before its devices are ready, which drivers report
        ((reported("False"), BOUND), [CLAIM]),
        ((reported("True"), BOUND), []),
        ((reported("False"), BOUND, reported("True")), []),
        ((reported("", key=CLAIM), BOUND), []),
        ((reported("True", key=OTHER, pod="q"), reported(""), BOUND), [CLAIM]),
        # the claim controller names a claim that it has made, and no line is about
        ((state(POD), naming(CLAIMS)), [CLAIM, POD]),
        ((state(POD), naming("alice")), []),
        ((state(POD), state(CLAIM, CLAIMS, "create"), naming(CLAIMS)), []),
        ((state(POD), naming(CLAIMS), state(CLAIM, CLAIMS)), []),
        ((naming(CLAIMS),), []),
        # a name that is not that of the claim which was made for the entry
        ((state(POD), state(OTHER, CLAIMS, "create", owner=POD, entry="g"), naming(CLAIMS)), []),
        ((state(POD), naming(CLAIMS), state(OTHER, CLAIMS, owner=POD, entry="g")), []),
        ((state(POD), state(OTHER, CLAIMS, owner=POD, entry="h"), naming(CLAIMS)), [CLAIM, POD]),
        # a claim is made for a pod, or an Event about a node, whose creation is answered later
        ((MADE,), [CLAIM, POD]),
        ((NOTED,), [SAID, NODE]),
        ((MADE, *LATER), []),
        ((MADE, state(POD)), []),
        ((state(POD), MADE), []),
        ((state(POD), state(POD, ends=True), MADE), []),
        ((made(CLAIM, "alice", "Pod", POD),), []),
        ((made(CLAIM, CLAIMS, "Job", POD),), []),
        # or a pod gets a node before the answer to the creation of the claim that it names
        ((state(POD), NOMINATED), [CLAIM, POD]),
        ((state(POD), NOMINATED, *LATER), []),
        ((state(POD), NOMINATED, state(CLAIM)), []),
        ((state(CLAIM), NOMINATED), []),
        ((state(CLAIM), state(CLAIM, ends=True), NOMINATED), [CLAIM, POD]),
        ((state(POD), TRIED), []),
        # a name that is not that of the claim which is there for the entry
        ((naming("alice"), OF_ENTRY, PLACED), []),
        ((naming("alice"), PLACED, OF_ENTRY), []),
        ((naming("alice"), PLACED), [CLAIM, POD]),
        ((naming("alice"), OF_ENTRY, state(OTHER, ends=True), PLACED), [CLAIM, POD]),
        # nor when that claim goes later, and not in the moment of the act
        ((naming("alice"), OF_ENTRY, PLACED, *LATER_SETS[:1], GONE), []),
        ((naming("alice"), PLACED, OF_ENTRY, GONE), []),
        ((naming("alice"), OF_ENTRY, PLACED, GONE), [CLAIM, POD]),
        ((naming("alice"), state(OTHER, owner=POD, entry="h"), PLACED, GONE, GONE), [CLAIM, POD]),
        ((naming("alice"), state(OTHER, owner=POD, entry="h"), PLACED), [CLAIM, POD]),
        # the scheduler's line shows a name whose own line is answered later
        ((state(POD), MADE, naming(SCHEDULER)), [POD]),
        ((state(POD), MADE, naming(SCHEDULER), *LATER), []),
        ((state(POD), MADE, naming(CLAIMS), naming(SCHEDULER)), []),
    ],
)
def test_act_without_a_reason_shows_that_a_last_line_is_lost(events, lost):
    assert sorted(key for key, _ in found(*events)) == sorted(lost)
    assert found(*events, is_any=False) == []


def test_two_lines_are_lost_only_where_others_are():
    """The finalizer of an allocated claim comes in a write of its own."""
    assert found(state(CLAIM), BOUND) == []
    assert found(state(CLAIM), BOUND, are_others_lost=True) == [(CLAIM, at(0))]
    assert found(state(CLAIM), BOUND, are_others_lost=True, is_any=False) == []


def test_it_was_lost_between_the_last_line_and_the_act():
    lines = LastLines(Leftover(is_any=True))
    for second, each in ((3, state(POD)), (5, USED), (8, FREED), (9, FREED)):
        lines.note(each, at(second))
    assert [line.since for line in lines.lost_lines(are_others_lost=False)] == [at(3)]
    assert lines.versions.spans == [(at(3), at(8))]


def test_act_is_decided_before_its_request():
    lines = LastLines(Leftover(is_any=True))
    origin = Origin(source="audit", asked=at(6), answered=at(8))
    freed = replace(FREED, stamp=replace(FREED.stamp, origin=origin))
    for second, each in ((3, state(POD)), (5, USED), (8, freed)):
        lines.note(each, at(second))
    assert [line.since for line in lines.lost_lines(are_others_lost=False)] == [at(3)]
    assert lines.versions.spans == [(at(3), at(6))]


def test_controller_acts_no_later_than_twice_its_slowest_act():
    other = ObjectKey("", "pods", "default", "q")
    shared = ObjectKey(*CLAIM[:3], "d")
    lines = LastLines(Leftover(is_any=True))
    timed = (
        (1, state(POD)),
        (1, USED),
        (2, state(other)),
        (2, state(shared, **reserved("q"))),
        (10, state(other, ends=True)),
        (13, state(shared, CLAIMS, **reserved())),
        (20, FREED),
    )
    for second, each in timed:
        lines.note(each, at(second))
    assert [line.key for line in lines.lost_lines(are_others_lost=False)] == [POD]
    assert lines.versions.spans == [(at(14), at(20))]


def test_claim_keeps_its_devices_when_it_is_reserved_once_more():
    for status, keeps in ((reserved("q", **ALLOCATED), True), (reserved(), False)):
        lines = LastLines(Leftover(is_any=True))
        for second, each in enumerate((state(CLAIM, kept=PROTECTED, **status), BOUND)):
            lines.note(each, at(second))
        assert [line.keeps_devices for line in lines.lost_lines(are_others_lost=False)] == [keeps]
