"""The courses of pods, read from drawn writes, compared with what a model reads from the same.

The model looks at the list of all writes for each pod by itself, where the program folds them once.
"""

import random
from typing import Any

import pytest

from app.analysis.diff.courses import Course, Courses
from app.analysis.diff.sides import Side
from app.domain.controllers.registry import ControllerOptions
from app.domain.log import Actor, Event, EventType, ObjectKey, Revision
from app.domain.log.event import Stamp
from app.domain.objects.profile import Profile
from app.domain.values.timestamps import SECOND, Instant
from tests import draws

Tree = dict[str, Any]
ENTRY = "resource.kubernetes.io/pod-claim-name"
EXTENDED = "resource.kubernetes.io/extended-resource-claim"
RESOURCES = {"pods": "", "resourceclaims": "resource.k8s.io"}


class Script:
    """Writes of pods and claims, one each second; an object is written as it is by then."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.trees: dict[tuple[str, str, str], Tree] = {}

    def write(
        self, resource: str, name: str, uid: str, *, user: str = "x", is_gone: bool = False
    ) -> None:
        place = (resource, name, uid)
        tree = self.trees.setdefault(place, {"metadata": {"name": name, "uid": uid}})
        is_new = not any(
            event.uid == uid and event.key.resource == resource for event in self.events
        )
        kind = EventType.OBJECT_CREATED if is_new else EventType.OBJECT_UPDATED
        number = len(self.events) + 1
        self.events.append(
            Event(
                revision=Revision(number),
                type=EventType.OBJECT_DELETED if is_gone else kind,
                key=ObjectKey(RESOURCES[resource], resource, "ns", name),
                uid=uid,
                body=b"",
                stamp=Stamp(time=Instant(number * SECOND), actor=Actor(user=user), verb="update"),
                tree=copied(tree),
            )
        )
        if is_gone:
            del self.trees[place]


def copied(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: copied(value) for key, value in tree.items()}
    return [copied(each) for each in tree] if isinstance(tree, list) else tree


def owner(kind: str, uid: str, *, controls: bool = True) -> Tree:
    return {"apiVersion": "v1", "kind": kind, "name": uid, "uid": uid, "controller": controls}


def claim_of(drawn: random.Random, pods: list[str], device: int) -> Tree:
    users = drawn.sample(pods, min(len(pods), drawn.randrange(3)))
    return {
        "reservedFor": [{"resource": "pods", "name": uid, "uid": uid} for uid in users],
        "allocation": {
            "devices": {
                "results": [
                    {"request": "r", "driver": "d", "pool": "p", "device": f"g{device}-{number}"}
                    for number in range(drawn.randrange(1, 3))
                ]
            }
        },
    }


def drawn_writes(drawn: random.Random) -> list[Event]:
    script, pods, count = Script(), list[tuple[str, str]](), 0
    for _ in range(60):
        act = drawn.choice(["pod", "pod", "claim", "claim", "bind", "say", "evict", "end", "gone"])
        if act == "pod":
            name, count = drawn.choice("abc"), count + 1
            if any(each[0] == name for each in pods):
                continue
            uid = f"{name}-{count}"
            pods.append((name, uid))
            metadata: Tree = {"name": name, "uid": uid}
            if drawn.random() < 0.5:
                metadata["ownerReferences"] = [
                    owner("Node", "n", controls=False), owner("ReplicaSet", "rs")
                ]  # fmt: skip
                metadata["generateName"] = drawn.choice(["rs-", ""])
            script.trees["pods", name, uid] = {"metadata": metadata, "spec": {}, "status": {}}
            script.write("pods", name, uid)
            continue
        if not pods:
            continue
        name, uid = drawn.choice(pods)
        if act == "claim":
            number = drawn.randrange(4)
            place = ("resourceclaims", f"c{number}", f"c{number}")
            tree = script.trees.setdefault(place, {"metadata": {"name": place[1]}})
            if place[2] not in {event.uid for event in script.events}:
                if number % 2:
                    tree["metadata"]["ownerReferences"] = [owner("Pod", uid)]
                    tree["metadata"]["annotations"] = drawn.choice(
                        [{ENTRY: "entry"}, {EXTENDED: "true"}, {}]
                    )
            else:
                tree["status"] = claim_of(drawn, [each[1] for each in pods], number)
            script.write(*place, is_gone=drawn.random() < 0.1)
            continue
        tree = script.trees["pods", name, uid]
        user = drawn.choice(["alice", "system:serviceaccount:kube-system:replicaset-controller"])
        if act == "bind" and drawn.random() < 0.6:
            tree["spec"].setdefault("nodeName", drawn.choice(["n1", "n2"]))
        elif act == "say":
            tree["status"]["conditions"] = [
                {
                    "type": "PodScheduled",
                    "status": drawn.choice(["False", "False", "True"]),
                    "message": drawn.choice(["full", "tainted"]),
                    "lastTransitionTime": f"2026-01-01T00:00:0{drawn.randrange(2)}Z",
                }
            ]
        elif act == "evict" and drawn.random() < 0.5:
            tree["status"]["conditions"] = [
                {
                    "type": "DisruptionTarget",
                    "status": drawn.choice(["False", "True"]),
                    "reason": drawn.choice(["DeletionByDeviceTaintManager", "Other"]),
                    "message": "words",
                }
            ]
        elif act == "end":
            if drawn.random() < 0.5:
                tree["status"]["phase"] = drawn.choice(["Running", "Succeeded", "Failed"])
            else:
                tree["metadata"].setdefault("deletionTimestamp", "2026-01-01T00:00:00Z")
        is_gone = act == "gone" and drawn.random() < 0.5
        script.write("pods", name, uid, user=user, is_gone=is_gone)
        if is_gone:
            pods.remove((name, uid))
    return script.events


def condition(tree: Tree, kind: str) -> Tree | None:
    return next((c for c in tree["status"].get("conditions", []) if c["type"] == kind), None)


def said(uid: str, events: list[Event], common: int) -> Tree:
    """What the model reads of one pod: a row in the form of `shown`."""
    own = [event for event in events if event.key.resource == "pods" and event.uid == uid]
    first, trees = own[0], [(event, event.object) for event in own]
    references = first.object["metadata"].get("ownerReferences", [])
    bound = next((event for event, tree in trees if tree["spec"].get("nodeName")), None)
    evicted = next(
        (
            (event.revision, found["reason"], found["message"])
            for event, tree in trees
            if (found := condition(tree, "DisruptionTarget")) and found["status"] == "True"
        ),
        None,
    )
    is_done = {"Succeeded", "Failed"}
    ended = next(
        (
            (event.revision, phase if phase in is_done else "removed")
            for event, tree in trees
            if (phase := tree["status"].get("phase", "")) in is_done
            or event.type is EventType.OBJECT_DELETED
        ),
        (0, ""),
    )
    going = [
        event.stamp.actor.user
        for event, tree in trees
        if event.type is EventType.OBJECT_DELETED or "deletionTimestamp" in tree["metadata"]
    ]
    earlier = {
        event.uid
        for event in events[: first.revision]
        if event.key == first.key and event.uid != uid
    }
    messages, before = [], ("", "")
    for event, tree in trees:
        if bound is not None and event.revision >= bound.revision:
            break
        found = condition(tree, "PodScheduled")
        if found is not None and found["status"] == "False":
            text = (found["message"], found["lastTransitionTime"])
            if text != before:
                messages.append((event.revision, event.revision - 1, found["message"]))
            before = text
    controlled = [each for each in references if each["controller"]]
    done_by = "system:serviceaccount:kube-system:replicaset-controller"
    outcome = "waits" if bound is None else "runs"
    if ended[0]:
        outcome = "gone" if bound is None else "ended"
    return {
        "name": first.key.name + (f" #{len(earlier)}" if earlier else ""),
        "created": first.revision,
        "owner": controlled[0]["name"] if controlled else "",
        "base": first.object["metadata"].get("generateName") or first.key.name,
        "placed": None if bound is None else placement(uid, bound, events, common),
        "evicted": evicted,
        "ended": ended,
        "deleted_by": going[0] if going else "",
        "by_owner": bool(controlled) and bool(going) and going[0] == done_by,
        "messages": messages,
        "outcome": "evicted" if evicted else outcome,
    }


def users_of(tree: Tree) -> list[str]:
    return [user["uid"] for user in tree.get("status", {}).get("reservedFor", [])]


def placement(uid: str, bound: Event, events: list[Event], common: int) -> Tree:
    """The placement, decided before the first of its writes: a reservation, an extended claim."""
    first, devices = int(bound.revision), []
    until = [event for event in events[: bound.revision] if event.key.resource != "pods"]
    for key in {event.key for event in until}:
        states = [event for event in until if event.key == key]
        reserved = [
            event.type is not EventType.OBJECT_DELETED
            and uid
            in [user["uid"] for user in event.object.get("status", {}).get("reservedFor", [])]
            for event in states
        ]
        owners = [each["uid"] for each in states[-1].object["metadata"].get("ownerReferences", [])]
        for event in states:
            tree = event.object["metadata"]
            names = [each["uid"] for each in tree.get("ownerReferences", [])]
            is_made = event.type is EventType.OBJECT_CREATED and uid in names
            if is_made and EXTENDED in tree.get("annotations", {}) and event.revision > common:
                first = min(first, event.revision)
        if not reserved[-1]:
            continue
        since = len(reserved) - 1
        while since and reserved[since - 1]:
            since -= 1
        if states[since].revision > common:
            first = min(first, states[since].revision)
        name = "" if uid in owners else key.name
        if uid in owners:
            name = states[-1].object["metadata"].get("annotations", {}).get(ENTRY, "")
        devices += [
            (name, "r", f"d/p/{each['device']}")
            for each in states[-1].object["status"]["allocation"]["devices"]["results"]
        ]
    return {
        "at": bound.revision,
        "node": bound.object["spec"]["nodeName"],
        "decided": first - 1,
        "devices": sorted(devices),
    }


def shown(course: Course) -> Tree:
    placed, evicted, ended = course.placed, course.evicted, course.ended
    for each in (course.created, placed and placed.at, evicted and evicted.at, ended):
        assert each is None or each.time == each.revision * SECOND
    return {
        "name": course.key.name + (f" #{course.ordinal}" if course.ordinal else ""),
        "created": course.created.revision,
        "owner": course.owner.name if course.owner else "",
        "base": course.base,
        "placed": placed
        and {
            "at": placed.at.revision,
            "node": placed.node,
            "decided": placed.decided,
            "devices": [tuple(each) for each in placed.devices],
        },
        "evicted": evicted and (evicted.at.revision, evicted.reason, evicted.message),
        "ended": (ended.revision if ended else 0, course.phase),
        "deleted_by": course.deleted_by,
        "by_owner": course.is_ended_by_owner,
        "messages": [(each.at.revision, each.decided, each.message) for each in course.refusals],
        "outcome": course.outcome,
    }


def courses(start: list[Event], events: list[Event]) -> Courses:
    common = Revision(start[-1].revision if start else 0)
    options = ControllerOptions()
    # The last event of each object that is there begins a side, in any order.
    states = {event.key: event for event in start}
    there = [event for event in states.values() if event.type is not EventType.OBJECT_DELETED]
    return Courses(
        Side(
            name="a",
            profile=Profile(),
            options=options,
            events=events,
            start=there[::-1],
            common=common,
        )
    )


@pytest.mark.parametrize("seed", draws.seeds(3))
def test_courses_are_those_that_a_model_reads_from_the_writes(seed: int) -> None:
    reached = set()
    for number in range(30):
        events = drawn_writes(random.Random(f"courses {seed} {number}"))
        mine = courses([], events)
        assert [course.uid for course in mine.all()] == list(
            dict.fromkeys(event.uid for event in events if event.key.resource == "pods")
        )
        for uid, course in mine.by_uid.items():
            wanted = said(uid, events, 0)
            assert shown(course) == wanted, (number, uid)
            reached |= {key for key, value in wanted.items() if value}
            reached.add(wanted["outcome"])
    assert reached >= {"by_owner", "messages", "evicted", "ended", "gone", "waits", "runs"}


@pytest.mark.parametrize("seed", draws.seeds(2))
def test_course_that_begins_in_the_common_past_has_its_further_writes(seed: int) -> None:
    """Of the common past there is the last state of each object; claims are known before pods."""
    compared = 0
    for number in range(30):
        events = drawn_writes(random.Random(f"common {seed} {number}"))
        common = len(events) // 2
        mine = courses(events[:common], events[common:])
        for uid, course in mine.by_uid.items():
            wanted = said(uid, events, common)
            placed = course.placed
            if placed is not None and placed.at.revision > common:
                assert shown(course)["placed"] == wanted["placed"], (number, uid)
                compared += 1
    assert compared > 20
