"""Which bindings came before the reports that made their devices ready.

Each row is a story of one claim and its pod: the writes in order, each with its user, and whether
they prove that the pod was bound too early.
"""

import pytest

from app.analysis.replay.unsure.lacks import Lacks
from app.analysis.replay.unsure.unready_bindings import UnreadyBindings
from app.analysis.verify.invariants import InvariantWatch
from app.domain.log import Actor, Event, EventType, ObjectKey, Revision, Stamp
from app.domain.log.chain import canonical_json
from app.domain.log.event import Origin
from app.domain.values.timestamps import Instant
from tests.unit.analysis.replay.test_last_lines import Leftover

POD = ObjectKey("", "pods", "default", "p")
CLAIM = ObjectKey("resource.k8s.io", "resourceclaims", "default", "c")
DEVICE = {"driver": "d", "pool": "n", "device": "x"}
RESULT = {**DEVICE, "request": "g", "bindingConditions": ["Ready"]}
RESULT |= {"bindingFailureConditions": ["Failed"]}
ENTRIES = [{"name": "g", "resourceClaimName": "c"}]


def claim(ready="", *, user="driver", verb="update", **report):
    status = {"allocation": {"devices": {"results": [RESULT]}}}
    if ready:
        conditions = [{"type": "Ready", "status": ready}]
        status["devices"] = [{**DEVICE, "conditions": conditions, **report}]
    return CLAIM, user, verb, {"spec": {}, "status": status}


def pod(node="", user="scheduler", verb="create"):
    return (
        POD,
        user,
        verb,
        {"spec": {"resourceClaims": ENTRIES} | ({"nodeName": node} if node else {})},
    )


def refused(of="c"):
    message = f'running PreBind plugin: device binding failed: claim={of}, reason=R, message="m"'
    condition = {"type": "PodScheduled", "status": "False", "reason": "SchedulerError"}
    status = {"conditions": [{**condition, "message": message}]}
    return POD, "scheduler", "patch", {"spec": {"resourceClaims": ENTRIES}, "status": status}


def failed():
    key, user, verb, parts = claim("False")
    conditions = parts["status"]["devices"][0]["conditions"]
    conditions.append({"type": "Failed", "status": "True", "reason": "R", "message": "m"})
    return key, user, verb, parts


GIVEN, FREE = claim(user="scheduler"), (CLAIM, "controller", "update", {"spec": {}, "status": {}})
MADE, BOUND, RUNNING = pod(user="alice"), pod("n1"), pod("n1", "kubelet", "patch")
READY, WAITS = claim("True"), claim("False")


def removed(write):
    """The removal of a claim, whose line shows this last state."""
    key, _, _, parts = write
    return key, "controller", "delete", parts


@pytest.mark.parametrize(
    ("is_proved", "wait", "writes"),
    [
        (False, 5, [MADE, GIVEN, READY, BOUND]),
        (True, 5, [MADE, GIVEN, BOUND, READY]),
        (True, 5, [MADE, GIVEN, WAITS, BOUND, READY]),
        (True, 5, [MADE, GIVEN, BOUND, WAITS, READY]),
        # the devices were ready before
        (False, 5, [MADE, GIVEN, READY, WAITS, BOUND, READY]),
        # clocks may differ by a second, unless a version of the pod lies between
        (False, 0.2, [MADE, GIVEN, BOUND, READY]),
        (True, 0.2, [MADE, GIVEN, BOUND, RUNNING, READY]),
        # a report that says more may not be the first one
        (False, 5, [MADE, GIVEN, BOUND, claim("True", networkData={"ips": ["10.0.0.1/24"]})]),
        # somebody else than the scheduler binds the pod
        (False, 5, [MADE, GIVEN, pod("n1", "alice"), READY]),
        # a failure that drivers report afterwards
        (True, 5, [MADE, GIVEN, refused(), failed()]),
        (True, 0.2, [MADE, GIVEN, WAITS, refused(), failed()]),
        (False, 5, [MADE, GIVEN, failed(), refused()]),
        (False, 5, [MADE, GIVEN, failed(), WAITS, refused(), failed()]),
        (False, 5, [MADE, GIVEN, refused("other"), failed()]),
        (False, 5, [MADE, GIVEN, refused(), READY, BOUND]),
        # another allocation
        (False, 5, [MADE, GIVEN, BOUND, FREE, GIVEN, READY]),
        # the state in the line of a removal is no report, and another claim may have the name
        (False, 5, [MADE, GIVEN, BOUND, removed(READY)]),
        (False, 5, [MADE, GIVEN, BOUND, removed(GIVEN), GIVEN, READY]),
        (True, 5, [MADE, GIVEN, removed(GIVEN), GIVEN, BOUND, READY]),
        (True, 5, [MADE, GIVEN, BOUND, READY, removed(READY)]),
    ],
)
def test_binding_before_its_devices_are_ready_is_too_early(is_proved, wait, writes):
    assert early(writes, wait) == (["uid-c"] if is_proved else [])


@pytest.mark.parametrize(
    ("is_broken", "wait", "writes"),
    [
        (False, 5, [READY, BOUND]),
        (True, 5, [BOUND, READY]),
        (True, 5, [WAITS, BOUND, READY]),
        (True, 5, [BOUND, WAITS, READY]),
        (False, 5, [READY, WAITS, BOUND, READY]),
        (False, 0.2, [BOUND, READY]),
        (True, 0.2, [BOUND, RUNNING, READY]),
        # the first line that shows the binding is of another user
        (True, 5, [RUNNING, READY]),
        (False, 5, [pod("n1", "alice"), READY]),
        # no report says that the devices are ready
        (True, 5, [BOUND, RUNNING]),
        (True, 5, [failed(), BOUND, RUNNING]),
        (True, 5, [BOUND, FREE, GIVEN, READY]),
        (False, 0.2, [BOUND, RUNNING]),
    ],
)
def test_rule_of_ready_devices_judges_the_same_bindings(is_broken, wait, writes):
    """The watch over invariants shares nothing with the other judge."""
    watch = InvariantWatch()
    watch.follow(list(lines([MADE, FREE, GIVEN, *writes], wait)))
    rules = [each.rule for each in watch.violations() if each.kind.is_failure]
    assert ("bound-pod-has-ready-devices" in rules) is is_broken


@pytest.mark.parametrize("is_any", [True, False])
def test_patch_proves_nothing_where_a_line_before_it_may_be_lost(is_any):
    writes = [MADE, GIVEN, BOUND, claim("True", verb="patch")]
    assert early(writes, 5, is_any=is_any) == ([] if is_any else ["uid-c"])


def early(writes, wait, *, is_any=False):
    """The claims whose pod was bound too early; `is_any` when the store has versions to spare."""
    lacks = Lacks(())
    lacks.versions = Leftover(is_any=is_any)
    audit, before = UnreadyBindings(lacks), {}
    for event in lines(writes, wait):
        audit.after(event, before.get(event.key), event.stamp.time)
        is_gone = event.type is EventType.OBJECT_DELETED
        before[event.key] = None if is_gone else event.object
    return list(audit.problems())


def lines(writes, wait):
    """The events of the writes."""
    known = set()
    for number, (key, user, verb, parts) in enumerate(writes, 1):
        is_binding = key == POD and verb == "create" and number > 1
        origin = Origin(source="audit", resource_version="" if is_binding else str(number))
        now = Instant(int(number * wait * 1_000_000))
        stamp = Stamp(time=now, actor=Actor(user=user), verb=verb, origin=origin)
        type_ = EventType.OBJECT_UPDATED if key in known else EventType.OBJECT_CREATED
        known.add(key)
        if verb == "delete":
            type_ = EventType.OBJECT_DELETED
            known.discard(key)
        metadata = {"name": key.name, "namespace": key.namespace, "uid": f"uid-{key.name}"}
        body = canonical_json({"metadata": metadata, **parts})
        uid = f"uid-{key.name}"
        yield Event(revision=Revision(number), type=type_, key=key, uid=uid, body=body, stamp=stamp)
