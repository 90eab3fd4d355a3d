"""The writes of a pre-emption: pods that lose their nomination, and victims.

First the nominated pods of lower priority lose the node. Then each victim gets its condition, is
deleted with its own grace period, and gets an Event. Victims that already terminate are skipped.
The pod itself is nominated together with the report of its failed attempt (`writes`). Upstream does
the same in the background of the next attempts; here all writes are one append, so that no state is
incomplete.
"""

from collections.abc import Iterator

from app.domain.controllers import conditions
from app.domain.controllers.resources import pod_key
from app.domain.controllers.scheduling.framework import pod_spec
from app.domain.controllers.scheduling.reports import events, messages
from app.domain.controllers.scheduling.reports.events import MANAGER
from app.domain.controllers.scheduling.scheduling_cycle.default_preemption import (
    CONDITION_REASON,
    Preemption,
)
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.write.commands import Command, DeleteObject, PatchObject, PatchType
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

VICTIMS_SHOWN_MAX = 8


def commands(
    objects: ObjectsReader, preemption: Preemption, pod: JsonObject, now: Instant
) -> Iterator[Command]:
    """The commands about other pods: displaced pods and victims."""
    chosen = preemption.chosen
    if chosen is None:
        return
    for place in preemption.displaced:
        other = objects.get(pod_key(*place))
        if other is not None:
            yield _pod_status(other, {"nominatedNodeName": None})
    for victim in chosen.victims:
        tree = objects.get(pod_key(*victim.place))
        if tree is None or "deletionTimestamp" in tree["metadata"]:
            continue
        condition = conditions.disruption(
            tree,
            reason=CONDITION_REASON,
            message=f"{_scheduler_of(pod)}: {messages.PREEMPTED}",
            now=now,
            generation=meta.generation(tree),
        )
        if condition is not None:
            yield _pod_status(tree, conditions.patch_of(tree, condition))
        uid = meta.uid(tree)
        yield DeleteObject(key=pod_key(*victim.place), uid=uid, options=MANAGER)
        yield events.preempted(objects, tree, pod, chosen.node, now)


def summary_of(preemption: Preemption) -> JsonObject:
    """The victims in a decision's summary; the list of names is cut, the counts are complete."""
    chosen = preemption.chosen
    assert chosen is not None, "called when there are victims"
    return {
        "node": chosen.node,
        "victims": ["/".join(victim.place) for victim in chosen.victims[:VICTIMS_SHOWN_MAX]],
        "victimsCount": len(chosen.victims),
        "violations": chosen.violations,
        "candidates": preemption.candidates,
    }


def _scheduler_of(pod: JsonView) -> str:
    return core.scheduler_name(pod) or pod_spec.DEFAULT_SCHEDULER


def _pod_status(pod: JsonObject, status: JsonObject) -> PatchObject:
    metadata = pod["metadata"]
    return PatchObject(
        key=pod_key(metadata["namespace"], metadata["name"]),
        version="v1",
        type=PatchType.STRATEGIC,
        body={"metadata": meta.same_object(pod), "status": status},
        subresource="status",
        options=MANAGER,
    )
