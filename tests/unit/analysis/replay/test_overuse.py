"""Which allocations of a recording took a device that was not free when it was chosen.

Each row is a story of one device, a holder that gives it back, and a pod that takes it: the writes
in order, and whether they prove that the device was chosen while it was held.
"""

import json

import pytest
from msgspec.structs import replace

from app.analysis.replay.unsure.lacks import Lacks
from app.analysis.replay.unsure.overuse import CHOSEN_ANEW, OveruseAudit
from app.analysis.views import LiveViews
from app.domain.log import Actor, Event, EventType, ObjectKey, Revision, Stamp
from app.domain.log.event import Origin
from app.domain.log.records import Loss
from app.domain.objects.profile import Profile
from app.domain.values.timestamps import SECOND, Instant

POD = ObjectKey("", "pods", "default", "p")
HOLDER = ObjectKey("resource.k8s.io", "resourceclaims", "default", "holder")
TAKER = ObjectKey("resource.k8s.io", "resourceclaims", "default", "taker")

WAITS = "0/2 nodes are available: 2 cannot allocate all claims."


def allocated(consumer=""):
    result = {"request": "r", "driver": "gpu.example", "pool": "n1", "device": "gpu-0"}
    reserved = (
        [{"resource": "pods", "name": consumer, "uid": f"uid-{consumer}"}] if consumer else []
    )
    return {"status": {"allocation": {"devices": {"results": [result]}}, "reservedFor": reserved}}


def pod(node="", refusal=""):
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    status = {"conditions": [{**condition, "message": refusal}]} if refusal else {}
    return {"status": status | ({"nominatedNodeName": node} if node else {})}


HELD, FREE = (HOLDER, allocated("other")), (HOLDER, {"status": {}})
GONE = (HOLDER, None)
TAKEN = (TAKER, allocated("p"))
MADE, NOMINATED = (POD, pod()), (POD, pod("n1"))

STORIES = {
    "given back before the nomination": (False, [HELD, MADE, FREE, NOMINATED, TAKEN]),
    "given back after it": (True, [HELD, MADE, NOMINATED, FREE, TAKEN]),
    "its claim deleted after it": (True, [HELD, MADE, NOMINATED, GONE, TAKEN]),
    "held only after it": (False, [MADE, NOMINATED, HELD, FREE, TAKEN]),
    "no nomination": (False, [HELD, MADE, FREE, TAKEN]),
    "refused after it, and chosen again": (
        False,
        [HELD, MADE, NOMINATED, (POD, pod("n1", WAITS)), FREE, TAKEN],
    ),
    "nominated when it was refused, for pre-emption": (
        False,
        [HELD, MADE, (POD, pod("n1", WAITS)), FREE, TAKEN],
    ),
    "nominated again in the same words, for pre-emption": (
        False,
        [
            *(HELD, MADE, (POD, pod("n1", WAITS)), (POD, pod("", WAITS))),
            *((POD, pod("n1", WAITS)), FREE, TAKEN),
        ],
    ),
    "nominated for its placement after a refusal": (
        True,
        [HELD, MADE, (POD, pod("", WAITS)), (POD, pod("n1", WAITS)), FREE, TAKEN],
    ),
    "nominated for another node": (
        False,
        [HELD, MADE, NOMINATED, (POD, pod("n2")), FREE, TAKEN],
    ),
}


LEASE = ObjectKey("coordination.k8s.io", "leases", "kube-system", "kube-scheduler")
HELD_BY_ONE = (
    LEASE,
    {
        "spec": {
            "holderIdentity": "cp-1_0b7e5f6a-93d1-4c57-8f0e-2a61c4f1d9b3",
            "leaseTransitions": 1,
        }
    },
)

PAUSES = {
    "a scheduler that wrote no longer than two seconds before": (True, 19, []),
    "one that paused, and may be another one": (False, 20, []),
    "one that wrote meanwhile": (True, 20, [(ObjectKey("", "pods", "default", "q"), pod("n2"))]),
}


@pytest.mark.parametrize(("is_proved", "writes"), STORIES.values(), ids=STORIES)
def test_device_that_was_held_when_it_was_chosen_is_overused(is_proved, writes):
    audit = audited(writes, range(len(writes)))
    assert list(audit.overused()) == (["uid-taker"] if is_proved else [])
    assert not audit.unsure


def test_scheduler_that_paused_is_the_same_as_long_as_it_holds_its_lease():
    writes = [HELD_BY_ONE, HELD, MADE, NOMINATED, FREE, TAKEN]
    audit = audited([*writes, HELD_BY_ONE], [0, 0, 1, 2, 10, 40, 41])
    assert list(audit.overused()) == ["uid-taker"]
    assert not audit.unsure
    assert audited(writes, [0, 0, 1, 2, 10, 40]).unsure == {CHOSEN_ANEW: 1}


@pytest.mark.parametrize(("is_proved", "pause", "meanwhile"), PAUSES.values(), ids=PAUSES)
def test_scheduler_that_paused_may_have_been_replaced_and_chosen_anew(is_proved, pause, meanwhile):
    writes = [HELD, MADE, NOMINATED, FREE, *meanwhile, TAKEN]
    audit = audited(writes, [0, 1, 2, 10, *(12 for _ in meanwhile), 2 + pause])
    assert list(audit.overused()) == (["uid-taker"] if is_proved else [])
    assert audit.unsure == ({} if is_proved else {CHOSEN_ANEW: 1})


LOST = (HOLDER, "a line of the holder is lost")

WITH_A_LOST_LINE = {
    "that of the release, which may have come before the choice": (
        False,
        [HELD, MADE, NOMINATED, LOST, FREE, TAKEN],
        [1, 2, 4, 5, 5, 6],
    ),
    "that of the release, which has a version only after the choice": (
        True,
        [HELD, MADE, NOMINATED, LOST, FREE, TAKEN],
        [1, 2, 3, 5, 5, 6],
    ),
    "that of the release, and versions are no order of writes": (
        False,
        [(POD, pod()), HELD, NOMINATED, LOST, FREE, TAKEN],
        [2, 1, 3, 5, 5, 6],
    ),
    "one before the holder was seen to keep its device": (
        True,
        [HELD, MADE, LOST, HELD, NOMINATED, FREE, TAKEN],
        [1, 2, 3, 5, 6, 7, 8],
    ),
    "that of the release, after the holder was seen with the device once more": (
        True,
        [HELD, MADE, HELD, NOMINATED, LOST, FREE, TAKEN],
        [1, 2, 5, 6, 8, 8, 9],
    ),
}
"""Stories of which a line is lost: whether the choice is proved, the lines, and their versions."""


@pytest.mark.parametrize(
    ("is_proved", "writes", "versions"), WITH_A_LOST_LINE.values(), ids=WITH_A_LOST_LINE
)
def test_device_may_have_been_given_back_in_a_lost_line(is_proved, writes, versions):
    audit = audited(writes, range(len(writes)), versions)
    assert list(audit.overused()) == (["uid-taker"] if is_proved else [])


def audited(writes, tenths, versions=()):
    """The audit of these writes, each at its tenth of a second, with versions of their own."""
    views, before = LiveViews(Profile()), {}
    lacks = Lacks(())
    audit = OveruseAudit(views, lacks)
    for (number, (key, tree)), tenth in zip(enumerate(writes, 1), tenths, strict=True):
        if (key, tree) == LOST:
            lacks.note(lost(number, key), Instant(tenth * SECOND // 10))
            continue
        event = written(number, key, before.get(key), tree)
        if versions:
            event = requested(event, versions[number - 1], Instant(tenth * SECOND // 10))
            lacks.note(event, Instant(tenth * SECOND // 10))
        views.fold(event)
        is_of_scheduler = key == TAKER or "nominatedNodeName" in event.object.get("status", {})
        known = Instant(tenth * SECOND // 10)
        audit.after(event, before.get(key), known, is_of_scheduler=is_of_scheduler)
        before[key] = None if tree is None else event.object
    return audit


def lost(number, key):
    """What the import says where a line about an object is lost, and only a later one shows it."""
    origin = Origin(source="audit", losses=(Loss.GAP.value,))
    stamp = Stamp(time=Instant(0), actor=Actor(user="a"), verb="observe", origin=origin)
    revision, type_ = Revision(number), EventType.GAP_OBSERVED
    return Event(revision=revision, type=type_, key=key, uid="", body=b"{}", stamp=stamp)


def requested(event, version, time):
    """The event as that of a request whose answer has this version and time."""
    origin = replace(event.stamp.origin, resource_version=str(version), answered=time, asked=time)
    stamp = replace(event.stamp, time=time, origin=origin, request_id=f"request-{version}")
    return replace(event, stamp=stamp)


def written(number, key, before, tree):
    """The event of the write with this number, which is its version, too."""
    type_ = EventType.OBJECT_UPDATED if before else EventType.OBJECT_CREATED
    if tree is None:
        type_, tree = EventType.OBJECT_DELETED, before
    uid = f"uid-{key.name}"
    metadata = {"name": key.name, "namespace": key.namespace, "uid": uid}
    origin = Origin(source="audit", resource_version=str(number))
    stamp = Stamp(
        time=Instant(number * SECOND), actor=Actor(user="a"), verb="update", origin=origin
    )
    body = json.dumps({"metadata": metadata, **tree}).encode()
    return Event(revision=Revision(number), type=type_, key=key, uid=uid, body=body, stamp=stamp)


COUNTED = ObjectKey("resource.k8s.io", "resourceslices", "", "n1")


def counting(units):
    """The slice of a pool whose only device draws 4 units of the counter."""
    draw = [{"counterSet": "set", "counters": {"units": {"value": "4"}}}]
    return {
        "spec": {
            "driver": "gpu.example",
            "nodeName": "n1",
            "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "gpu-0", "consumesCounters": draw}],
            "sharedCounters": [{"name": "set", "counters": {"units": {"value": units}}}],
        }
    }


ENOUGH, LESS = (COUNTED, counting("4")), (COUNTED, counting("3"))
TAINTED = (COUNTED, counting("3"))
TAINTED[1]["spec"]["devices"][0]["taints"] = [{"key": "k", "effect": "NoExecute"}]


@pytest.mark.parametrize(
    ("is_proved", "writes", "wait"),
    [
        (True, [LESS, MADE, NOMINATED, TAKEN], 60),
        (False, [ENOUGH, MADE, NOMINATED, LESS, TAKEN], 60),
        (False, [ENOUGH, MADE, LESS, NOMINATED, TAKEN], 1),
        (True, [ENOUGH, MADE, LESS, NOMINATED, TAKEN], 60),
        (True, [ENOUGH, MADE, LESS, TAKEN], 60),
        (False, [ENOUGH, MADE, LESS, TAKEN], 1),
        (True, [LESS, MADE, NOMINATED, TAINTED, TAKEN], 60),
    ],
)
def test_counter_that_shrank_after_a_choice_is_not_overused(is_proved, writes, wait):
    """The writes come some seconds apart, which is what proves an order without a nomination."""
    assert list(problems_of(writes, 10 * wait)) == (["uid-taker"] if is_proved else [])


SLICE = ObjectKey("resource.k8s.io", "resourceslices", "", "s")
DEVICE = {"request": "r", "driver": "gpu.example", "pool": "n1"}


def published(**more):
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": more.pop("slices", 1)}
    return {"spec": {"driver": "gpu.example", "nodeName": "n1", "pool": pool, **more}}


def counted(name, value):
    draws = [{"counterSet": "set", "counters": {"memory": {"value": value}}}]
    return {"name": name, "consumesCounters": draws}


COUNTERS = {"name": "set", "counters": {"memory": {"value": "8Gi"}}}
WITH_COUNTERS = [
    (SLICE._replace(name="counters"), published(slices=2, sharedCounters=[COUNTERS])),
    (
        SLICE,
        published(
            slices=2, devices=[counted("a", "6Gi"), counted("b", "2Gi"), counted("c", "3Gi")]
        ),
    ),
]
PLAIN = (SLICE, published(devices=[{"name": "a"}, {"name": "b"}]))
SHARED = (SLICE, published(devices=[{"name": "a", "allowMultipleAllocations": True}]))
CLAIM = ObjectKey("resource.k8s.io", "resourceclaims", "default", "x")
X, Y, Z = (CLAIM._replace(name=name) for name in "xyz")


def holding(*names, **more):
    results = [{**DEVICE, "device": name, **more} for name in names]
    return {"status": {"allocation": {"devices": {"results": results}}}}


def problems_of(writes, tenths=600):
    """The problems by the accused claims; the writes come some tenths of a second apart."""
    times = range(tenths, tenths * (len(writes) + 1), tenths)
    return dict(audited(writes, times).overused())


TWICE = "device n1/a is allocated to default/x and to default/y"
OVERDRAWN = "counter memory of set set in pool n1 is overdrawn"


@pytest.mark.parametrize(
    ("writes", "problems"),
    [
        pytest.param([PLAIN, (X, holding("a")), (Y, holding("b"))], {}, id="one each"),
        pytest.param(
            [PLAIN, (X, holding("a")), (Y, holding("a"))],
            {"uid-x": TWICE, "uid-y": TWICE},
            id="one for two",
        ),
        pytest.param(
            [PLAIN, (X, holding("a")), (X, None), (Y, holding("a"))], {}, id="one after the other"
        ),
        pytest.param(
            [SHARED, (X, holding("a", shareID="1")), (Y, holding("a", shareID="2"))],
            {},
            id="shares",
        ),
        pytest.param(
            [PLAIN, (X, holding("a")), (Y, holding("a", adminAccess=True))], {}, id="for an admin"
        ),
        pytest.param(
            [*WITH_COUNTERS, (X, holding("a")), (Y, holding("b"))], {}, id="all of a counter"
        ),
        pytest.param(
            [*WITH_COUNTERS, (X, holding("a")), (Y, holding("c")), (Z, holding("b"))],
            {"uid-y": OVERDRAWN, "uid-z": OVERDRAWN},
            id="more than a counter has",
        ),
        pytest.param(
            [*WITH_COUNTERS, (X, holding("a")), (Y, holding("c", adminAccess=True))],
            {},
            id="counters for an admin",
        ),
        pytest.param(
            [*WITH_COUNTERS, (X, holding("a")), (X, None), (Y, holding("c"))],
            {},
            id="counter given back",
        ),
        pytest.param(
            [PLAIN, (X, holding("a")), (Y, holding("a")), (Y, holding("a"))],
            {"uid-x": TWICE, "uid-y": TWICE},
            id="written again",
        ),
    ],
)
def test_resource_that_has_more_users_than_room_is_named_with_the_claims(writes, problems):
    """Of a counter the claims are named that overdraw it, of a device all that have it."""
    assert problems_of(writes) == problems


def test_device_that_was_chosen_while_it_was_tainted_is_named():
    taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
    tainted = (SLICE, published(devices=[{"name": "a", "taints": [taint]}]))
    taken = (X, {**holding("a"), "status": {**holding("a")["status"], **RESERVED}})
    lifted = [tainted, MADE, NOMINATED, PLAIN, taken]
    said = "device n1/a was chosen for default/x before it lost its taint k=v:NoSchedule"
    assert problems_of(lifted, 5) == {"uid-x": said}
    assert problems_of([tainted, MADE, PLAIN, NOMINATED, taken], 5) == {}
    assert problems_of([MADE, NOMINATED, tainted, PLAIN, taken], 5) == {}


RESERVED = {"reservedFor": [{"resource": "pods", "name": "p", "uid": "uid-p"}]}


def test_device_that_was_chosen_before_it_was_given_back_is_named_with_its_holder():
    stories = [HELD, MADE, NOMINATED, FREE, TAKEN]
    said = "device n1/gpu-0 was chosen for default/taker before default/holder gave it back"
    assert problems_of(stories, 5) == {"uid-taker": said}
