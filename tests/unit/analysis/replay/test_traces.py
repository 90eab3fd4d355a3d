"""What a trace holds of drawn writes, compared with a model that reads their raw objects.

The model goes through the writes once for each question, and shares nothing with the trace but
the names of its fields.
"""

import copy
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from app.analysis.replay.traces import Trace
from app.domain.log import Actor, Draft, EventType, ObjectKey, Revision, Stamp
from app.domain.log.chain import seal
from app.domain.values.identifiers import Uid
from app.domain.values.timestamps import Instant
from tests import draws

Tree = dict[str, Any]

CREATED, UPDATED, DELETED = (
    EventType.OBJECT_CREATED,
    EventType.OBJECT_UPDATED,
    EventType.OBJECT_DELETED,
)
EVENT = ObjectKey("", "events", "ns", "e")
WRITES = 60
KINDS = ("Job", "ReplicaSet", "StatefulSet", "ReplicationController", "DaemonSet")


@dataclass(frozen=True)
class Write:
    """A write of a controller, or of another client without a `writer`, at a second of its own."""

    type: EventType
    key: ObjectKey
    uid: str
    tree: Tree
    before: Tree | None
    writer: str | None
    at: int


def pod_tree(draw: random.Random, uid: str) -> Tree:
    owners = [{"kind": draw.choice(KINDS), "name": "o", "uid": "o", "controller": True}]
    conditions = [
        {
            "type": each,
            "status": draw.choice(("True", "False")),
            "observedGeneration": draw.choice((1, 2)),
        }
        for each in ("PodScheduled", "DisruptionTarget")
        if draw.random() < 0.3
    ]
    return {
        "metadata": {"name": uid, "uid": uid, "ownerReferences": owners[: draw.randrange(2)]},
        "spec": draw.choice(({}, {"nodeName": "n1"}, {"nodeName": "n2"})),
        "status": {
            "phase": draw.choice(("Pending", "Pending", "Running", "Succeeded", "Failed")),
            "conditions": conditions,
        },
    }


def claim_tree(draw: random.Random, uid: str) -> Tree:
    owner = {"kind": "Pod", "name": "p0", "uid": "p0", "controller": draw.random() < 0.7}
    results = [
        {"request": each, "driver": "d", "pool": "pool", "device": draw.choice("ab")}
        for each in ("r1", "r2")[: draw.randrange(1, 3)]
    ]
    allocation: Tree = {"devices": {"results": results}}
    if draw.random() < 0.5:
        allocation["allocationTimestamp"] = "2026-01-01T00:00:00Z"
    users = sorted(draw.sample(("p0", "p1", "p2"), draw.randrange(3)))
    status: Tree = {"reservedFor": [{"resource": "pods", "name": u, "uid": u} for u in users]}
    if draw.random() < 0.5:
        status["allocation"] = allocation
    owners = [owner] if draw.random() < 0.4 else []
    return {"metadata": {"name": uid, "uid": uid, "ownerReferences": owners}, "status": status}


def event_tree(draw: random.Random, uid: str) -> Tree:
    subject = {"kind": "Pod", "namespace": "ns", "name": "p1", "uid": draw.choice(("p1", "p2"))}
    place = draw.choice(("regarding", "involvedObject"))
    return {"metadata": {"name": uid, "uid": uid}, "reason": "Killing", place: subject}


TREES = {"pods": pod_tree, "resourceclaims": claim_tree, "events": event_tree}


def drawn(seed: int) -> list[Write]:
    draw = random.Random(seed)
    names = {
        "p0": ObjectKey("", "pods", "ns", "p0"),
        "p1": ObjectKey("", "pods", "ns", "p1"),
        "p2": ObjectKey("", "pods", "ns", "p2"),
        "c0": ObjectKey("resource.k8s.io", "resourceclaims", "ns", "c0"),
        "c1": ObjectKey("resource.k8s.io", "resourceclaims", "ns", "c1"),
        "e": EVENT,
    }
    stored: dict[str, Tree] = {}
    writes = []
    for at in range(1, WRITES + 1):
        uid = draw.choice(sorted(names))
        before = stored.get(uid)
        kind = CREATED if before is None else draw.choice((UPDATED, UPDATED, UPDATED, DELETED))
        # The last state of a deleted object may differ from the one before.
        tree = TREES[names[uid].resource](draw, uid)
        writer = draw.choice(("scheduler", "claims", None))
        writes.append(Write(kind, names[uid], uid, tree, before, writer, at))
        stored.pop(uid, None)
        if kind is not DELETED:
            stored[uid] = tree
    return writes


def traced(writes: Sequence[Write], **options: Any) -> Trace:
    trace = Trace(**options)
    for each in writes:
        stamp = Stamp(time=Instant(each.at), actor=Actor(user="u"), verb="update")
        draft = Draft(type=each.type, key=each.key, uid=Uid(each.uid), tree=each.tree, stamp=stamp)
        trace.add(seal(draft, Revision(each.at), bytes(32)), each.before, each.writer)
    return trace


def first(writes: Sequence[Write], holds: Any) -> dict[str, int]:
    """When something first held, by uid."""
    return {each.uid: each.at for each in reversed(writes) if holds(each)}


def conditions(tree: Tree | None) -> dict[str, Tree]:
    return {each["type"]: each for each in (tree or {}).get("status", {}).get("conditions", ())}


def named_node(tree: Tree | None) -> str:
    return str((tree or {}).get("spec", {}).get("nodeName", ""))


def owner_of(write: Write) -> str:
    owners = write.tree["metadata"].get("ownerReferences", ())
    return next((each["uid"] for each in owners if each["controller"]), "")


def users_of(tree: Tree | None) -> set[str]:
    return {each["uid"] for each in (tree or {}).get("status", {}).get("reservedFor", ())}


def of_kind(writes: Sequence[Write], kind: str) -> list[Write]:
    return [each for each in writes if each.key.resource == kind]


def expected(writes: Sequence[Write]) -> dict[str, Any]:
    pods, claims = of_kind(writes, "pods"), of_kind(writes, "resourceclaims")
    ours = [each for each in (*pods, *claims) if each.writer is not None]
    ours.sort(key=lambda each: each.at)
    living = [each for each in ours if each.type is not DELETED]
    last = {each.uid: each for each in writes}
    owners = {each.uid: owner_of(each) for each in claims if owner_of(each)}
    known_owner = {
        each.at: next((owner_of(w) for w in reversed(claims[: n + 1])
                       if w.uid == each.uid and owner_of(w)), "")
        for n, each in enumerate(claims)
    }  # fmt: skip
    bound = {
        each.uid: (each.at, f"bound to {named_node(each.tree)}")
        for each in of_kind(living, "pods")
        if each.before is not None
        and named_node(each.tree)
        and named_node(each.tree) != named_node(each.before)
    }
    allocated = [
        (
            each.uid,
            each.at,
            tuple(
                f"{r['request']}: {r['pool']}/{r['device']}"
                for r in each.tree["status"]["allocation"]["devices"]["results"]
            ),
            "allocationTimestamp" in each.tree["status"]["allocation"],
        )
        for each in of_kind(living, "resourceclaims")
        if "allocation" in each.tree["status"]
        and "allocation" not in (each.before or {}).get("status", {})
    ]
    changed = sorted(
        (each.uid, kind, each.at)
        for each in ours
        for kind, one in conditions(each.tree).items()
        if conditions(each.before).get(kind) != one and is_shown(each)
    )
    of_pod = sorted(
        (pod, each.at)
        for each in ours
        if is_shown(each)
        for pod in (
            [each.uid]
            if each.key.resource == "pods"
            else [known_owner[each.at]]
            if known_owner[each.at]
            else users_of(each.before) ^ users_of(each.tree)
        )
    )
    return {
        "keys": {each.uid: each.key for each in writes},
        "kept": {uid: str(each.at) for uid, each in last.items() if each.type is not DELETED},
        "removed": first(writes, lambda each: each.type is DELETED),
        "finished": first(pods, lambda e: e.tree["status"]["phase"] in ("Succeeded", "Failed")),
        "replicas": {
            each.uid
            for each in pods
            for owner in each.tree["metadata"]["ownerReferences"]
            if owner["kind"] in ("ReplicaSet", "StatefulSet", "ReplicationController")
        },
        "owner_of": owners,
        "users": {
            uid: set().union(*(users_of(each.tree) for each in claims if each.uid == uid))
            for uid in {each.uid for each in claims}
        },
        "other_writers": {each.uid for each in (*pods, *claims) if each.writer is None},
        "said": sorted(
            ((each.tree.get("regarding") or each.tree["involvedObject"])["uid"], each.at)
            for each in of_kind(writes, "events")
            if each.writer is not None and each.type is not DELETED
        ),
        "node_of": bound,
        "evicted": first(
            of_kind(living, "pods"),
            lambda each: (
                each.before is not None
                and "DisruptionTarget" in conditions(each.tree)
                and conditions(each.before).get("DisruptionTarget")
                != conditions(each.tree)["DisruptionTarget"]
            ),
        ),
        "allocations": allocated,
        "conditions": changed,
        "of_pod": of_pod,
    }


def is_shown(write: Write) -> bool:
    """Whether a write says something of its object: more than a time."""
    old, new = conditions(write.before), conditions(write.tree)
    return write.type is not UPDATED or old != new or compared(write.tree) != compared(write.before)


def compared(tree: Tree | None) -> Tree:
    """The object without its conditions and the time of its allocation."""
    copied = copy.deepcopy(tree or {})
    copied["status"].pop("conditions", None)
    copied["status"].get("allocation", {}).pop("allocationTimestamp", None)
    return copied


def held(trace: Trace) -> Mapping[str, Any]:
    return {
        "keys": trace.keys,
        "kept": {uid: tree["metadata"]["resourceVersion"] for uid, tree in trace.kept.items()},
        "removed": trace.removed,
        "finished": trace.finished,
        "replicas": trace.replicas,
        "owner_of": trace.owner_of,
        "users": trace.users,
        "other_writers": trace.other_writers,
        "said": sorted((uid, step.time) for uid, steps in trace.said.items() for step in steps),
        "node_of": {uid: (step.time, step.text) for uid, step in trace.node_of.items()},
        "evicted": {uid: step.time for uid, step in trace.evicted.items()},
        "allocations": sorted(
            (
                (uid, step.time, step.devices, step.is_dated)
                for uid, steps in trace.allocations.items()
                for step in steps
            ),
            key=lambda each: each[1],
        ),
        "conditions": sorted(
            (uid, kind, step.time)
            for (uid, kind), steps in trace.conditions.items()
            for step in steps
        ),
        "of_pod": sorted((uid, step.time) for uid, steps in trace.of_pod.items() for step in steps),
    }


@pytest.mark.parametrize("seed", draws.seeds(4))
def test_trace_holds_what_the_raw_objects_of_drawn_writes_show(seed: int) -> None:
    writes = drawn(seed)
    wanted, trace = expected(writes), held(traced(writes))
    assert {name: trace[name] for name in wanted} == wanted


def test_observed_generations_of_pods_are_left_out_where_they_are_not_compared() -> None:
    writes = [each for seed in range(3) for each in drawn(seed)]
    whole, without = traced(writes), traced(writes, pods_observed=False)
    assert whole.shows_generations()
    assert not without.shows_generations()
    assert whole.conditions.keys() == without.conditions.keys()
