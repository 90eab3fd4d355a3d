"""Writes of sources that name nobody: who made them, by managers, by content, by circumstances."""

import pytest

from app.analysis.replay.authors import (
    CLAIMS,
    COLLECTOR,
    EVICTION,
    NAMESPACES,
    NODES,
    POD_COLLECTOR,
    SCHEDULER,
    UNNAMED,
    Authors,
    acting,
)
from app.domain.log import Actor, Event, EventType, ObjectKey, Revision, Stamp
from app.domain.log.chain import canonical_json
from app.domain.values.timestamps import Instant

CLAIM = ObjectKey("resource.k8s.io", "resourceclaims", "default", "c")
POD = ObjectKey("", "pods", "default", "a")
NODE = ObjectKey("", "nodes", "", "n")
SLICE = ObjectKey("resource.k8s.io", "resourceslices", "", "s")
RULE = ObjectKey("resource.k8s.io", "devicetaintrules", "", "r")
SAID = ObjectKey("", "events", "default", "e")
HOME = ObjectKey("", "namespaces", "", "default")
MADE = {"resource.kubernetes.io/pod-claim-name": "gpu"}
FINALIZER = "resource.kubernetes.io/delete-protection"
ENDS = {"deletionTimestamp": "t"}
ENDING = {"metadata": ENDS}


def event(key, tree, type_=EventType.OBJECT_UPDATED, uid="u", user=UNNAMED):
    stamp = Stamp(time=Instant(1), actor=Actor(user=user), verb="update")
    return Event(
        revision=Revision(1), type=type_, key=key, uid=uid, body=canonical_json(tree), stamp=stamp
    )


def author(key, before, after, *, type_=EventType.OBJECT_UPDATED, first=()):
    authors = Authors()
    for each in first:
        authors.of(each, None)
    return authors.of(event(key, after, type_), before)


def told(type_, reason, message=""):
    return {"status": {"conditions": [{"type": type_, "reason": reason, "message": message}]}}


def claim(*pods, allocated=False, finalizers=(), **metadata):
    status = {"reservedFor": [{"uid": pod} for pod in pods]}
    if allocated:
        status["allocation"] = {"devices": {}}
    return {"metadata": {"finalizers": list(finalizers), **metadata}, "status": status}


def entry(manager, time="t1", fields=("a",), **more):
    return {
        "manager": manager,
        "operation": "Update",
        "time": time,
        "fieldsV1": {f"f:{name}": {} for name in fields},
        **more,
    }


def managed(*entries, **parts):
    return {"metadata": {"managedFields": list(entries)}, **parts}


def pod(uid, *, node="", phase="Running", type_=EventType.OBJECT_CREATED):
    tree = {"spec": {"nodeName": node}, "status": {"phase": phase}}
    return event(POD._replace(name=uid), tree, type_, uid)


def test_recorded_name_stands():
    assert Authors().of(event(POD, {}, user="alice"), {}) == "alice"


@pytest.mark.parametrize(
    ("key", "before", "after", "who"),
    [
        pytest.param(POD, {}, {"spec": {"nodeName": "n"}}, SCHEDULER, id="a binding"),
        pytest.param(POD, {}, {"status": {"nominatedNodeName": "n"}}, SCHEDULER, id="a nomination"),
        pytest.param(POD, {}, told("PodScheduled", "Unschedulable"), SCHEDULER, id="a refusal"),
        pytest.param(
            POD, {}, {"status": {"resourceClaimStatuses": [{"name": "x"}]}}, CLAIMS, id="names"
        ),
        pytest.param(POD, {}, {"status": {"phase": "Running"}}, UNNAMED, id="a kubelet"),
        pytest.param(
            POD, {}, told("DisruptionTarget", "DeletionByDeviceTaintManager"), EVICTION, id="taints"
        ),
        pytest.param(
            POD, {}, told("DisruptionTarget", "PreemptionByScheduler"), SCHEDULER, id="a victim"
        ),
        pytest.param(
            POD, {}, told("DisruptionTarget", "DeletionByPodGC"), POD_COLLECTOR, id="an orphan"
        ),
        pytest.param(
            POD, {}, told("DisruptionTarget", "EvictionByEvictionAPI"), UNNAMED, id="a drain"
        ),
        pytest.param(CLAIM, claim(), claim(finalizers=[FINALIZER]), SCHEDULER, id="protected"),
        pytest.param(CLAIM, claim(finalizers=[FINALIZER]), claim(), CLAIMS, id="let go"),
        pytest.param(CLAIM, claim(), claim("p", allocated=True), SCHEDULER, id="allocated"),
        pytest.param(CLAIM, claim("p", allocated=True), claim(), CLAIMS, id="released"),
        pytest.param(
            CLAIM, claim(allocated=True), claim(), SCHEDULER, id="taken back to make room"
        ),
        pytest.param(
            CLAIM,
            claim(allocated=True, **ENDING["metadata"]),
            claim(**ENDING["metadata"]),
            CLAIMS,
            id="at its end",
        ),
        pytest.param(
            CLAIM,
            claim("p", allocated=True),
            claim("p", "q", allocated=True),
            SCHEDULER,
            id="shared",
        ),
        pytest.param(
            CLAIM,
            claim("p", allocated=True),
            claim(allocated=True),
            SCHEDULER,
            id="reserved in vain",
        ),
        pytest.param(
            NODE, {"spec": {"taints": []}}, {"spec": {"taints": [{"key": "k"}]}}, NODES, id="taint"
        ),
        pytest.param(
            NODE, {}, {"metadata": {"labels": {"beta.kubernetes.io/os": "x"}}}, NODES, id="labels"
        ),
        pytest.param(RULE, {}, told("EvictionInProgress", "Completed"), EVICTION, id="rule status"),
        pytest.param(RULE, {}, {"spec": {"taint": {}}}, UNNAMED, id="a changed rule"),
        pytest.param(HOME, {}, told("NamespaceContentRemaining", "x"), NAMESPACES, id="namespace"),
        pytest.param(
            SAID, {}, {"reportingComponent": "resource_claim"}, CLAIMS, id="a repeated Event"
        ),
        pytest.param(SAID, {}, {"reportingController": "a-driver"}, UNNAMED, id="others' Event"),
    ],
)
def test_content_tells(key, before, after, who):
    assert author(key, before, after) == who


@pytest.mark.parametrize(
    ("annotation", "who"),
    [
        ("resource.kubernetes.io/pod-claim-name", CLAIMS),
        ("resource.kubernetes.io/extended-resource-claim", SCHEDULER),
        ("example.com/anything", UNNAMED),
    ],
)
def test_maker_of_a_claim_is_told_by_its_annotation(annotation, who):
    tree = {"metadata": {"annotations": {annotation: "true"}}}
    assert author(CLAIM, None, tree, type_=EventType.OBJECT_CREATED) == who


@pytest.mark.parametrize(
    ("before", "after", "who"),
    [
        pytest.param([entry("kube-scheduler")], [entry("kubelet")], UNNAMED, id="new"),
        pytest.param(
            [entry("kube-scheduler"), entry("kubelet")],
            [entry("kube-scheduler"), entry("kubelet", "t2")],
            UNNAMED,
            id="later",
        ),
        pytest.param(
            [entry("kube-scheduler"), entry("kubelet", fields=("a", "b"))],
            [entry("kube-scheduler", fields=("a", "b")), entry("kubelet")],
            SCHEDULER,
            id="wider in the same second",
        ),
        pytest.param([entry("kubelet")], [entry("kubelet")], SCHEDULER, id="nobody: the content"),
        pytest.param([], [entry("kube-controller-manager")], SCHEDULER, id="one of many"),
    ],
)
def test_managers_tell_before_the_content_does(before, after, who):
    """The change is a nomination, which a kubelet could make in a test only."""
    new = managed(*after, status={"nominatedNodeName": "n"})
    assert author(POD, managed(*before), new) == who


def test_manager_of_the_claim_controller_is_its_own():
    new = managed(entry("ResourceClaimController"))
    assert author(POD, managed(entry("kubectl")), new) == CLAIMS


@pytest.mark.parametrize(
    ("first", "who"),
    [
        pytest.param([pod("p")], UNNAMED, id="its pod is at work"),
        pytest.param([pod("p", phase="Succeeded")], CLAIMS, id="its pod has ended"),
        pytest.param([pod("p"), pod("p", type_=EventType.OBJECT_DELETED)], COLLECTOR, id="gone"),
    ],
)
def test_who_ends_a_made_claim_depends_on_its_pod(first, who):
    tree = {"metadata": {"annotations": MADE, "ownerReferences": [{"uid": "p"}], **ENDING}}
    after = {"metadata": {**tree["metadata"], "deletionTimestamp": "t"}}
    assert author(CLAIM, tree, after, first=first) == who
    # The claim controller takes the reservation back first. The collector does not.
    reserved = {**claim("p"), **tree}
    is_first = who in (CLAIMS, UNNAMED)
    after = {**reserved, "metadata": after["metadata"]}
    assert author(CLAIM, reserved, after, first=first) == (UNNAMED if is_first else who)
    # A claim without finalizers goes at once.
    tree = claim(annotations=MADE, ownerReferences=[{"uid": "p"}])
    assert author(CLAIM, tree, tree, type_=EventType.OBJECT_DELETED, first=first) == who


@pytest.mark.parametrize(
    ("reason", "finalizers", "who"),
    [
        pytest.param("DeletionByPodGC", [], POD_COLLECTOR, id="its node is gone"),
        pytest.param("DeletionByPodGC", ["a"], UNNAMED, id="a finalizer went last"),
        pytest.param("DeletionByDeviceTaintManager", [], UNNAMED, id="its kubelet removed it"),
    ],
)
def test_who_removes_a_pod_that_terminates_depends_on_its_reason(reason, finalizers, who):
    before = {**told("DisruptionTarget", reason), "metadata": {"finalizers": finalizers, **ENDS}}
    assert author(POD, before, before, type_=EventType.OBJECT_DELETED) == who


@pytest.mark.parametrize(
    ("node", "ending", "who"),
    [
        pytest.param("", ENDS, POD_COLLECTOR, id="no kubelet has it"),
        pytest.param("n", ENDS, UNNAMED, id="its kubelet"),
        pytest.param("", {}, UNNAMED, id="it is not ending"),
    ],
)
def test_pod_that_ends_without_a_node_is_marked_by_the_pod_collector(node, ending, who):
    before = {"metadata": ending, "spec": {"nodeName": node}, "status": {"phase": "Pending"}}
    assert author(POD, before, {**before, "status": {"phase": "Failed"}}) == who


def test_claim_for_extended_resources_is_given_up_by_the_scheduler():
    notes = {"resource.kubernetes.io/extended-resource-claim": "true"}
    tree = claim(annotations=notes, ownerReferences=[{"uid": "p"}])
    gone = author(CLAIM, tree, tree, type_=EventType.OBJECT_DELETED, first=[pod("p")])
    assert gone == SCHEDULER
    # It takes the finalizer first. A client that deletes the claim does not.
    assert author(CLAIM, tree, claim(**{**tree["metadata"], **ENDS}), first=[pod("p")]) == UNNAMED


@pytest.mark.parametrize(
    ("finalizers", "who"),
    [
        ([FINALIZER], CLAIMS),
        (["foregroundDeletion"], COLLECTOR),
        (["orphan"], COLLECTOR),
        ([], COLLECTOR),
        (["example.com/hold"], UNNAMED),
        ([FINALIZER, "example.com/hold"], UNNAMED),
    ],
)
def test_claim_that_waits_for_its_last_finalizer_goes_with_it(finalizers, who):
    before = claim(finalizers=finalizers, deletionTimestamp="t")
    assert author(CLAIM, before, before, type_=EventType.OBJECT_DELETED) == who


def test_what_is_in_an_ending_namespace_ends_by_its_controller():
    ending = event(HOME, ENDING)
    assert author(POD, {}, ENDING, first=[ending]) == NAMESPACES
    assert author(SAID, {}, {}, type_=EventType.OBJECT_DELETED, first=[ending]) == NAMESPACES
    assert author(HOME, ENDING, ENDING, type_=EventType.OBJECT_DELETED) == NAMESPACES
    # Who asked for the end of the namespace itself came from outside, and so did a kubelet.
    assert author(HOME, {}, ENDING) == UNNAMED
    kubelet = author(POD, ENDING, ENDING, type_=EventType.OBJECT_DELETED, first=[ending])
    assert kubelet == UNNAMED


def test_what_has_lost_its_owners_goes_by_the_collector():
    owned = {"metadata": {"ownerReferences": [{"uid": "set"}]}}
    gone = event(HOME._replace(name="x"), {}, EventType.OBJECT_DELETED, "set")
    after = {"metadata": {**owned["metadata"], "deletionTimestamp": "t"}}
    assert author(POD, owned, after) == UNNAMED
    assert author(POD, owned, after, first=[gone]) == COLLECTOR


@pytest.mark.parametrize(
    ("reason", "who"),
    [
        ("PreemptionByScheduler", SCHEDULER),
        ("DeletionByDeviceTaintManager", EVICTION),
        ("EvictionByEvictionAPI", UNNAMED),
    ],
)
def test_pod_that_was_told_is_deleted_by_who_told_it(reason, who):
    before = told("DisruptionTarget", reason)
    assert author(POD, before, {**before, **ENDING}) == who


@pytest.mark.parametrize(
    ("placed", "who"), [pytest.param("n", CLAIMS, id="bound"), pytest.param("", SCHEDULER, id="no")]
)
def test_pod_that_was_placed_without_the_scheduler_is_reserved_by_the_claim_controller(placed, who):
    first = [pod("q", node=placed)]
    before, after = claim("p", allocated=True), claim("p", "q", allocated=True)
    assert author(CLAIM, before, after, first=first) == who


def tainted(*keys, **labels):
    taints = [{"key": key, "effect": "NoSchedule"} for key in keys]
    return {"metadata": {"labels": labels}, "spec": {"taints": taints}}


BETA_ARCH, ARCH = "beta.kubernetes.io/arch", "kubernetes.io/arch"


@pytest.mark.parametrize(
    ("before", "after", "who"),
    [
        pytest.param(tainted("node.kubernetes.io/not-ready"), tainted(), NODES, id="ready"),
        pytest.param(
            tainted("a"), tainted("a", "node.kubernetes.io/unschedulable"), NODES, id="cordoned"
        ),
        pytest.param(tainted(), tainted("example.com/broken"), "boss", id="a taint of theirs"),
        pytest.param(
            tainted(**{ARCH: "x"}), tainted(**{ARCH: "x", BETA_ARCH: "x"}), NODES, id="copied"
        ),
        pytest.param(tainted(), tainted(**{ARCH: "x", BETA_ARCH: "x"}), "boss", id="labelled"),
    ],
)
def test_account_that_does_other_things_too_is_the_node_controller_where_only_that_writes(
    before, after, who
):
    """The controllers of a small cluster have one account, and most of its writes tell nothing."""
    name = ObjectKey("", "configmaps", "default", "c")
    others = [event(name, {"data": {}}, uid=f"c{number}", user="boss") for number in range(9)]
    changed = [event(NODE, tree, user="boss") for tree in (before, after)]
    authors = Authors(acting([*others, *changed]))
    assert authors.of(changed[-1], before) == who


def acted_by(user):
    """The author of a last write, after that user has placed pods as a scheduler does."""
    events = []
    for number in range(4):
        uid = f"p{number}"
        tree = {"metadata": {"uid": uid}, "spec": {}}
        placed = {"metadata": {"uid": uid}, "spec": {"nodeName": "n"}}
        key = POD._replace(name=uid)
        events.append(event(key, tree, EventType.OBJECT_CREATED, uid, "bob"))
        events.append(event(key, placed, EventType.OBJECT_UPDATED, uid, user))

    def tell(key, before, after, type_):
        last = event(key, after, type_, "last", user)
        return Authors(acting([*events, last])).of(last, before)

    return tell


@pytest.mark.parametrize(
    ("key", "before", "after", "type_"),
    [
        (POD, None, {"spec": {}}, EventType.OBJECT_CREATED),
        (POD, {"spec": {}}, {"spec": {}, **ENDING}, EventType.OBJECT_UPDATED),
        (POD, {"spec": {}}, {"spec": {}}, EventType.OBJECT_DELETED),
        (SLICE, {"spec": {}}, {"spec": {"nodeName": "n"}}, EventType.OBJECT_UPDATED),
    ],
)
def test_person_whose_account_schedules_is_a_person_besides(key, before, after, type_):
    assert acted_by("alice")(key, before, after, type_) == "alice"


def test_account_that_schedules_writes_as_the_scheduler_what_tells_nothing():
    labels = {"metadata": {"labels": {"a": "b"}}}
    tell = acted_by("alice")
    assert tell(CLAIM, {}, labels, EventType.OBJECT_UPDATED) == SCHEDULER


@pytest.mark.parametrize(
    ("key", "before", "after", "who"),
    [
        (RULE, {"spec": {"taint": "None"}}, {"spec": {"taint": "NoExecute"}}, "alice"),
        (RULE, {"spec": {"taint": "None"}}, {"spec": {"taint": "None"}}, EVICTION),
        (RULE, {}, {"spec": {"taint": "None"}}, EVICTION),
        (POD, {"spec": {"schedulingGates": ["g"]}}, {"spec": {"tolerations": ["t"]}}, "alice"),
        (POD, {"spec": {"containers": ["c"]}}, {"spec": {"containers": ["c"]}}, SCHEDULER),
    ],
)
def test_change_of_a_specification_is_of_its_user_whatever_shows_beside_it(key, before, after, who):
    """A lost line of a controller shows in the next line, which may be of a person."""
    condition = "PodScheduled" if key is POD else "EvictionInProgress"
    others = [
        event(POD._replace(name=f"p{number}"), {}, EventType.OBJECT_CREATED, f"p{number}", "alice")
        for number in range(3)
    ]
    made = event(key, before, EventType.OBJECT_CREATED, user="bob")
    last = event(key, {**after, **told(condition, "X")}, user="alice")
    assert Authors(acting([*others, made, last])).of(last, before) == who


SHOWN = {
    "metadata": {"labels": {"beta.kubernetes.io/os": "x"}},
    "spec": {"nodeName": "n", "taints": [{"key": "k"}]},
    "status": {
        "nominatedNodeName": "n",
        "resourceClaimStatuses": [{"name": "x"}],
        "extendedResourceClaimStatus": {"resourceClaimName": "x"},
        "conditions": [
            {"type": "PodScheduled", "reason": "Unschedulable", "message": "m"},
            {"type": "DisruptionTarget", "reason": "PreemptionByScheduler", "message": "m"},
        ],
        "allocation": {"devices": {"results": []}},
        "reservedFor": [{"uid": "p"}],
    },
}
"""An object that shows all that controllers write."""


@pytest.mark.parametrize("key", [POD, CLAIM, NODE, RULE, HOME])
def test_what_a_controller_wrote_before_says_nothing_of_a_later_write(key):
    after = {**SHOWN, "metadata": {**SHOWN["metadata"], "annotations": {"seen": "yes"}}}
    assert author(key, SHOWN, after) == UNNAMED


def without(*path):
    tree = {part: dict(SHOWN[part]) for part in SHOWN}
    del tree[path[0]][path[1]]
    return tree


@pytest.mark.parametrize(
    ("path", "who"),
    [
        (("spec", "nodeName"), SCHEDULER),
        (("status", "nominatedNodeName"), SCHEDULER),
        (("status", "extendedResourceClaimStatus"), SCHEDULER),
        (("status", "resourceClaimStatuses"), CLAIMS),
        (("status", "conditions"), SCHEDULER),
    ],
)
def test_one_field_alone_shows_who_wrote_it_or_took_it(path, who):
    assert author(POD, without(*path), SHOWN) == who
    assert author(POD, SHOWN, without(*path)) == who


OWNED = {"metadata": {"ownerReferences": [{"kind": "Job", "name": "j", "uid": "gone"}]}}
VICTIM = {**OWNED, **told("DisruptionTarget", "PreemptionByScheduler")}
ORPHANED = (OWNED, {**OWNED, "metadata": {**OWNED["metadata"], **ENDS}})
"""The deletion of a pod whose owner is gone, as the garbage collector requests it."""


@pytest.mark.parametrize(
    ("user", "key", "before", "after", "may_be"),
    [
        (EVICTION, POD, *ORPHANED, False),
        (EVICTION, POD, VICTIM, {**VICTIM, "metadata": ORPHANED[1]["metadata"]}, True),
        (EVICTION, POD, {"spec": {}}, {"spec": {"nodeName": "n"}}, True),
        (EVICTION, CLAIM, claim(), claim("p", allocated=True), False),
        (EVICTION, NODE, {}, tainted("node.kubernetes.io/not-ready"), False),
        (CLAIMS, POD, *ORPHANED, False),
        (CLAIMS, POD, VICTIM, {**VICTIM, "metadata": ORPHANED[1]["metadata"]}, False),
        (CLAIMS, POD, {"spec": {}}, {"spec": {"nodeName": "n"}}, True),
        (SCHEDULER, POD, *ORPHANED, True),
        (SCHEDULER, RULE, {}, told("EvictionInProgress", "Completed"), False),
        (SCHEDULER, NODE, {}, tainted("node.kubernetes.io/not-ready"), False),
        (NODES, CLAIM, claim(), claim("p", allocated=True), False),
        (NODES, POD, {"spec": {}}, {"spec": {"nodeName": "n"}}, True),
        (POD_COLLECTOR, POD, *ORPHANED, True),
        (POD_COLLECTOR, NODE, {}, tainted("node.kubernetes.io/not-ready"), False),
    ],
)
@pytest.mark.parametrize("is_removal", [False, True])
def test_name_of_a_controller_that_cannot_have_made_a_write_stands_for_several(
    user, key, before, after, may_be, is_removal
):
    """The eviction controller marks a pod before it deletes it, the claim controller deletes none.

    Another controller makes the write, by its content; the name is in doubt if it cannot be both.
    """
    is_deletion = "deletionTimestamp" in after.get("metadata", {})
    type_ = EventType.OBJECT_UPDATED
    if is_removal and is_deletion:
        type_, after = EventType.OBJECT_DELETED, before
    gone = ObjectKey("batch", "jobs", "default", "j")
    first = {**before, "metadata": {"uid": "u", **before.get("metadata", {})}}
    history = [
        event(gone, {}, EventType.OBJECT_DELETED, "gone", "bob"),
        event(key, first, EventType.OBJECT_CREATED, "u", "bob"),
        event(key, after, type_, "u", user),
    ]
    acts = acting(history).get(user)
    assert (acts is None or user not in acts.not_alone) is may_be
