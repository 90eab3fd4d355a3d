"""What happened in a world after a change, read from the versions of its objects."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from app.domain.values.timestamps import SECOND, Instant
from tests.cluster import Cluster
from tests.truth.raw import Key, State

MOMENTS = (1, 60, 61, 120, 400, 3200, 3201, 3600, 3601, 4100)
"""Seconds after the change at which kubelets end what is terminating; tolerations end before."""

FINISHED = ("Succeeded", "Failed")


@dataclass(slots=True)
class Life:
    """What became of the pods and claims that were there when the change was made.

    `before`, `after` and `last` are the objects before it, at once after it, and at the end.

    `ended` has the second at which deletion of a pod was asked for or at which it was gone, and
    why: a reason of its condition DisruptionTarget, or nothing. `at_once` and `later` are the pods
    that got a node, and the node; `since` has the second at which they got it.
    """

    before: State
    after: State
    last: State = field(default_factory=dict)
    ended: dict[str, tuple[float, str]] = field(default_factory=dict)
    at_once: dict[str, str] = field(default_factory=dict)
    later: dict[str, str] = field(default_factory=dict)
    since: dict[str, float] = field(default_factory=dict)


def live(cluster: Cluster, act: Callable[[Cluster], None], deleted: str = "") -> Life:
    """Makes the change and lets time pass; pods with a node that begin to terminate end.

    What was terminating before goes on to, but for the pod that the change itself deletes, and so
    does a pod that got its node by the change and is evicted later.
    """
    before = state(cluster)
    since, start = len(cluster.line.events), cluster.line.now
    act(cluster)
    cluster.settle()
    life = Life(before, state(cluster))
    life.at_once = _placed(cluster, before)
    _end(cluster, life, deleted)
    for moment in MOMENTS:
        cluster.line.advance(Instant(start + moment * SECOND))
        _end(cluster, life, deleted)
    uids = {tree["metadata"]["uid"]: key for key, tree in before.items() if key[0] == "pods"}
    for event in cluster.line.events[since:]:
        if event.key.resource != "pods" or not event.is_about_object:
            continue
        tree = event.object
        key = uids.get(tree["metadata"]["uid"])
        was = before.get(key) if key else None
        if key is None or was is None:
            continue
        seconds = (event.stamp.time - start) / SECOND
        if tree["spec"].get("nodeName") and not was["spec"].get("nodeName"):
            life.since.setdefault(key[2], seconds)
            life.later.setdefault(key[2], tree["spec"]["nodeName"])
        if key[2] in life.ended:
            continue
        is_gone = event.type == "ObjectDeleted"
        if "deletionTimestamp" in was["metadata"] and not is_gone:
            continue
        if is_gone or "deletionTimestamp" in tree["metadata"]:
            life.ended[key[2]] = (seconds, _reason(tree))
    life.later = {name: node for name, node in life.later.items() if name not in life.at_once}
    life.last = state(cluster)
    return life


def state(cluster: Cluster) -> State:
    """The objects of the present moment."""
    objects: State = {}
    for event in cluster.line.events:
        if event.is_about_object:
            key: Key = (event.key.resource, event.key.namespace, event.key.name)
            if event.type == "ObjectDeleted":
                objects.pop(key, None)
            else:
                objects[key] = event.object
    return objects


def seconds_between(start: str, end: str) -> float:
    """The seconds from one RFC 3339 text to another."""
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()


def _placed(cluster: Cluster, before: State) -> dict[str, str]:
    """The pods without a node before that have one."""
    return {
        key[2]: tree["spec"]["nodeName"]
        for key, tree in state(cluster).items()
        if key[0] == "pods"
        and tree["spec"].get("nodeName")
        and (was := before.get(key)) is not None
        and was["metadata"]["uid"] == tree["metadata"]["uid"]
        and not was["spec"].get("nodeName")
    }


def _end(cluster: Cluster, life: Life, deleted: str) -> None:
    """Ends the pods with a node before whose deletion the change brought about, as kubelets do."""
    before = life.before
    while True:
        ending = [
            key[2]
            for key, tree in state(cluster).items()
            if key[0] == "pods"
            and "deletionTimestamp" in tree["metadata"]
            and (was := before.get(key)) is not None
            and (was["spec"].get("nodeName") or key[2] in _brief(cluster))
            and ("deletionTimestamp" not in was["metadata"] or key[2] == deleted)
            and (
                tree["metadata"].get("deletionGracePeriodSeconds") != 0
                or not tree["metadata"].get("finalizers")
            )
        ]
        if not ending:
            return
        for name in ending:
            cluster.patch("pods", name, {"metadata": {"finalizers": None}})
            if cluster.get("pods", name) is not None:
                cluster.kill(name)
        cluster.settle()


def _brief(cluster: Cluster) -> set[str]:
    """The pods whose deletion was asked for at the instant at which they got their node."""
    placed: dict[str, int] = {}
    brief = set()
    for event in cluster.line.events:
        if event.key.resource == "pods" and event.is_about_object:
            tree = event.object
            if tree["spec"].get("nodeName"):
                placed.setdefault(event.key.name, event.stamp.time)
            is_ending = "deletionTimestamp" in tree["metadata"]
            if is_ending and placed.get(event.key.name) == event.stamp.time:
                brief.add(event.key.name)
    return brief


def _reason(tree: dict) -> str:
    for one in tree["status"].get("conditions") or ():
        if one["type"] == "DisruptionTarget" and one["status"] == "True":
            return str(one["reason"])
    return ""
